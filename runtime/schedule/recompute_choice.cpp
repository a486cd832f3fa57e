#include "runtime/schedule/recompute_choice.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace sheaf::rt {

namespace {

/// FLOP in the time in which one byte of a row is read or written; an estimate.
constexpr double kFlopPerByte = 8;
/// Chains of dropped records are no longer than that: each segment of the backward pass makes the
/// beginnings again of those that it meets.
constexpr uint32_t kLongestChain = 4;
/// So near to what is wanted is near enough.
constexpr double kEnough = 0.99;
/// Of a launch that is so large a part of all that is dropped, records are dropped one by one.
constexpr double kLargeLaunch = 1.0 / 16;
/// What others read of an allocation stays by itself if the rest is at least this part of it.
constexpr uint32_t kLeastRest = 8;

bool isStatic(const RecordTensor &tensor) {
  return std::ranges::all_of(tensor.extents, [](const WordSum &sum) { return isConstant(sum); });
}

int expenseOf(double work, uint64_t granules) {
  return granules ? std::ilogb(1 + work / static_cast<double>(granules)) : 0;
}

} // namespace

bool RecomputeChoice::make(std::span<const ScheduledBucket> launches, PromisedRows &promised,
                           std::span<Slot *const> results, const RowSpace &space, uint64_t most,
                           bool compact) {
  launches_ = launches;
  promised_ = &promised;
  space_ = &space;
  uint32_t allocations = promised.number();
  uint64_t records = 0;
  for (const ScheduledBucket &launch : launches)
    records += static_cast<uint64_t>(launch.count);
  uint64_t bytes = allocations * (sizeof(MadeBy) + 2 * sizeof(uint32_t) + 2) +
                   records * sizeof(uint32_t) + sizeof(MadeBy);
  if (!meter_.charge(count_, bytes))
    return false;
  charged_ += bytes;
  try {
    made_.reserve(allocations + 1);
    promised.forEachStart(
        [&](uint64_t at) { made_.push_back({MadeBy::kNone, 0, static_cast<uint32_t>(at)}); });
    made_.push_back({MadeBy::kNone, 0, static_cast<uint32_t>(promised.granules())});
    byRecord_.reserve(records);
    stays_.assign(allocations, false);
    shared_.assign(allocations, 0);
    staying_.resize(allocations);
    for (uint32_t i = 0; i < allocations; ++i)
      staying_[i] = granulesOf(i);
    uint64_t all = promised.granules(), wanted = all > most ? all - most : 0;
    droppedGranules_ = 0;
    if (wanted == 0)
      return true;
    chain_.assign(allocations, 0);
    findMakers(results);
    findShared();
    findWork();
    for (longest_ = 1; !(isEnough_ = drop(wanted, compact)) && longest_ < kLongestChain;)
      longest_ *= 2;
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What may be dropped
//===----------------------------------------------------------------------===//

/// Which record makes each allocation, and which ones stay in any case.
void RecomputeChoice::findMakers(std::span<Slot *const> results) {
  auto stays = [&](uint32_t id) {
    if (PromisedRows::has(id))
      stays_[promised_->numberOf(id)] = true;
  };
  for (uint32_t i = 0; i < launches_.size(); ++i) {
    const ScheduledBucket &launch = launches_[i];
    uint32_t words = model_.kernels[launch.kernel].words;
    for (uint32_t r = 0; r < launch.count; ++r) {
      const int32_t *record = launch.records + size_t(r) * words;
      words_.forEachListed(launch.kernel, record, *space_, stays);
      auto id = static_cast<uint32_t>(record[words - 1]);
      uint32_t allocation = PromisedRows::has(id) ? promised_->numberOf(id) : MadeBy::kNone;
      byRecord_.push_back(allocation);
      if (allocation == MadeBy::kNone)
        continue;
      MadeBy &made = made_[allocation];
      if (made.launch != MadeBy::kNone || made.begin != id - PromisedRows::kFirst)
        stays_[allocation] = true;
      made.launch = i;
      made.record = r;
    }
  }
  for (const Slot *slot : results)
    stays(TensorHandle::unpack(*slot).id);
}

/// How much of each allocation others than its maker read: whole results.
void RecomputeChoice::findShared() {
  for (const ScheduledBucket &launch : launches_) {
    uint32_t words = model_.kernels[launch.kernel].words;
    for (int64_t r = 0; r < launch.count; ++r)
      words_.forEach(launch.kernel, launch.records + r * words, *space_,
                     [&](uint32_t, uint32_t id, uint64_t granules) {
                       if (!PromisedRows::has(id))
                         return;
                       uint32_t allocation = promised_->numberOf(id);
                       uint64_t end =
                           id - PromisedRows::kFirst - made_[allocation].begin + granules;
                       shared_[allocation] =
                           std::max(shared_[allocation], static_cast<uint32_t>(end));
                     });
  }
  kernels_.assign(model_.kernels.size(), {});
  const uint32_t *made = byRecord_.data();
  for (const ScheduledBucket &launch : launches_) {
    uint32_t words = model_.kernels[launch.kernel].words;
    for (int64_t r = 0; r < launch.count; ++r, ++made) {
      if (!mayDrop(*made))
        continue;
      uint32_t all = granulesOf(*made);
      uint32_t end = endOfResult(launch, launch.records + r * words, shared_[*made]);
      shared_[*made] = all - std::min(all, end) < std::max(all / kLeastRest, 1u) ? all : end;
    }
  }
}

/// Of the first of a record's results that end after so many granules or more.
uint32_t RecomputeChoice::endOfResult(const ScheduledBucket &launch, const int32_t *record,
                                      uint32_t granules) {
  const std::vector<RecordTensor> &results = model_.kernels[launch.kernel].results;
  Kernel &kernel = kernels_[launch.kernel];
  if (kernel.ends.empty() && std::ranges::all_of(results, isStatic)) {
    uint64_t end = 0;
    for (const RecordTensor &result : results)
      kernel.ends.push_back(static_cast<uint32_t>(end += rt::granulesOf(result, record)));
  }
  if (granules == 0)
    return 0;
  auto found = std::ranges::find_if(kernel.ends, [&](uint32_t end) { return end >= granules; });
  if (found != kernel.ends.end())
    return *found;
  uint64_t end = 0;
  for (const RecordTensor &result : results)
    if ((end += rt::granulesOf(result, record)) >= granules)
      break;
  return static_cast<uint32_t>(end);
}

/// What each kernel's records make that may be dropped, and what that costs.
void RecomputeChoice::findWork() {
  forEachLaunch([&](const ScheduledBucket &launch, const uint32_t *made) {
    const KernelDesc &desc = model_.kernels[launch.kernel];
    Kernel &kernel = kernels_[launch.kernel];
    for (int64_t r = 0; r < launch.count; ++r)
      if (mayDrop(made[r])) {
        kernel.whole.granules += granulesOf(made[r]);
        kernel.own.granules += granulesOf(made[r]) - shared_[made[r]];
      }
    kernel.work += sumOverRecords(desc.flop, desc.words, launch);
    if (desc.bytes)
      kernel.work += kFlopPerByte * sumOverRecords(*desc.bytes, desc.words, launch);
  });
  for (Kernel &kernel : kernels_) {
    kernel.whole.expense = expenseOf(kernel.work, kernel.whole.granules);
    kernel.own.expense = expenseOf(kernel.work, kernel.own.granules);
  }
}

//===----------------------------------------------------------------------===//
// What is dropped
//===----------------------------------------------------------------------===//

/// Calls `visit(launch, made)` for all; `made`: by record of the launch, what it makes.
template <typename Visit> void RecomputeChoice::forEachLaunch(Visit visit) {
  const uint32_t *made = byRecord_.data();
  for (const ScheduledBucket &launch : launches_) {
    visit(launch, made);
    made += launch.count;
  }
}

/// Both ways, in the order that was asked for. False when that is not enough.
bool RecomputeChoice::drop(uint64_t wanted, bool compact) {
  auto enough = static_cast<uint64_t>(kEnough * static_cast<double>(wanted));
  constexpr int kTries = 3;
  uint64_t more = 0;
  for (int i = 0; i < kTries && droppedGranules_ < enough; ++i) {
    keepAll();
    if (compact)
      dropOwn(wanted);
    if (droppedGranules_ < enough)
      dropWhole(wanted - droppedGranules_ + more);
    more += wanted - std::min(wanted, droppedGranules_); // where a chain would be too long
  }
  if (!compact && droppedGranules_ < enough)
    dropOwn(wanted - droppedGranules_);
  return droppedGranules_ >= enough;
}

/// Which share of each kernel's granules is dropped, so that it is so many: all of the cheap ones,
/// and of those that cost as much as the last of them the same share. `size(allocation)`: how many
/// may be.
template <typename Size>
void RecomputeChoice::share(Part Kernel::*which, uint64_t wanted, Size size) {
  std::vector<Part *> parts;
  for (Kernel &kernel : kernels_)
    (kernel.*which).granules = 0;
  forEachLaunch([&](const ScheduledBucket &launch, const uint32_t *made) {
    for (int64_t r = 0; r < launch.count; ++r)
      (kernels_[launch.kernel].*which).granules += size(made[r]);
  });
  for (Kernel &kernel : kernels_) {
    Part &part = kernel.*which;
    part.due = part.share = 0;
    if (part.granules)
      parts.push_back(&part);
  }
  std::ranges::sort(parts, [](const Part *a, const Part *b) {
    return std::pair(a->expense, a) < std::pair(b->expense, b); // those of one array
  });
  for (size_t begin = 0, end; begin < parts.size(); begin = end) {
    uint64_t granules = 0;
    for (end = begin; end < parts.size() && parts[end]->expense == parts[begin]->expense; ++end)
      granules += parts[end]->granules;
    uint64_t some = std::min(wanted, granules);
    for (size_t i = begin; i < end; ++i)
      parts[i]->share = static_cast<double>(some) / static_cast<double>(granules);
    wanted -= some;
  }
}

void RecomputeChoice::keepAll() {
  for (uint32_t i = 0; i < staying_.size(); ++i)
    staying_[i] = granulesOf(i);
  std::ranges::fill(chain_, uint8_t(0));
  droppedGranules_ = 0;
}

/// Drops the share of a launch that is due: all of it or nothing, or, of a large one, its first
/// records. `size(record)`: granules that may be dropped; `drop(record)`: granules that were.
template <typename Size, typename Drop>
void RecomputeChoice::dropSome(Part &part, const ScheduledBucket &launch, Size size, Drop drop) {
  if (part.share == 0)
    return;
  uint64_t all = 0;
  for (int64_t r = 0; r < launch.count; ++r)
    all += size(r);
  auto granules = static_cast<double>(all);
  part.due += part.share * granules;
  bool isLarge = granules > kLargeLaunch * part.share * static_cast<double>(part.granules);
  if (!isLarge && part.due < granules / 2)
    return;
  for (int64_t r = 0; r < launch.count; ++r) {
    uint32_t next = size(r);
    if (next == 0)
      continue;
    if (isLarge && part.due < static_cast<double>(next) / 2)
      return;
    part.due -= drop(r);
  }
}

/// Records as a whole, but no chain that is too long.
void RecomputeChoice::dropWhole(uint64_t wanted) {
  share(&Kernel::whole, wanted, [&](uint32_t allocation) { return wholeOf(allocation); });
  forEachLaunch(
      [&](const ScheduledBucket &launch, const uint32_t *made) { dropWhole(launch, made); });
}

void RecomputeChoice::dropWhole(const ScheduledBucket &launch, const uint32_t *made) {
  uint32_t words = model_.kernels[launch.kernel].words;
  auto size = [&](int64_t r) { return wholeOf(made[r]); };
  dropSome(kernels_[launch.kernel].whole, launch, size, [&](int64_t r) -> uint32_t {
    uint32_t chain = 0;
    words_.forEach(launch.kernel, launch.records + r * words, *space_,
                   [&](uint32_t, uint32_t id, uint64_t) {
                     if (PromisedRows::has(id))
                       chain = std::max<uint32_t>(chain, chain_[promised_->numberOf(id)]);
                   });
    if (chain >= longest_)
      return 0;
    chain_[made[r]] = static_cast<uint8_t>(chain + 1);
    uint32_t granules = std::exchange(staying_[made[r]], 0);
    droppedGranules_ += granules;
    return granules;
  });
}

/// Of records that are there as a whole, what only they need.
void RecomputeChoice::dropOwn(uint64_t wanted) {
  share(&Kernel::own, wanted, [&](uint32_t allocation) { return ownOf(allocation); });
  forEachLaunch([&](const ScheduledBucket &launch, const uint32_t *made) {
    auto size = [&](int64_t r) { return ownOf(made[r]); };
    dropSome(kernels_[launch.kernel].own, launch, size, [&](int64_t r) {
      uint32_t granules = size(r);
      staying_[made[r]] = shared_[made[r]];
      droppedGranules_ += granules;
      return granules;
    });
  });
}

} // namespace sheaf::rt

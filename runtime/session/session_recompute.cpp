//===- session_recompute.cpp - Training in less memory than it asks for ---===//
//
// A forward pass whose rows memory does not hold together with what the backward pass takes is
// promised rows only. When all of it is recorded, some are chosen to stay
// (schedule/recompute_choice.h); the others lie where there is room while the forward pass runs,
// and are made again by the backward pass.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/gradient_records.h"
#include "runtime/session/session_impl.h"

#include <algorithm>
#include <cstring>

namespace sheaf::rt {

namespace {

/// Of what was learned from one mini-batch to the next: how much less another may take, how much
/// more is allowed for, and how much more where it was too little. What was too little once is
/// tried again after some hundred mini-batches.
constexpr double kLess = 0.8, kMargin = 1.05, kMore = 1.2, kForgets = 0.999;
/// Mini-batches differ: one that is larger by so much shall find its rows promised.
constexpr double kLarger = 1.25;

/// What a group makes that is to pass is there as a whole until the group has run: one that makes
/// more than a part of so many of all is divided.
constexpr uint64_t kParts = 16;

/// Launches as they are planned and run: those of large groups in pieces, each a group of its own.
struct DividedLaunches {
  Schedule launches;           ///< of depths that count the groups
  std::vector<MadeBy> origins; ///< of each: where it begins in what was recorded

  /// Groups that make more than so many granules are divided.
  DividedLaunches(const Model &model, std::span<const ScheduledBucket> recorded, uint64_t most) {
    uint32_t group = 0;
    uint64_t made = 0; // by the group
    for (uint32_t i = 0; i < recorded.size(); ++i) {
      if (i > 0 && recorded[i].depth != recorded[i - 1].depth)
        ++group, made = 0;
      const ScheduledBucket &launch = recorded[i];
      const KernelDesc &kernel = model.kernels[launch.kernel];
      int64_t begin = 0;
      auto close = [&](int64_t end) {
        if (end == begin)
          return;
        launches.push_back(
            {group, launch.kernel, launch.records + begin * kernel.words, end - begin});
        origins.push_back({i, static_cast<uint32_t>(begin)});
        begin = end;
      };
      for (int64_t r = 0; most != UINT64_MAX && r < launch.count; ++r) {
        uint64_t next = 0;
        for (const RecordTensor &result : kernel.results)
          next += granulesOf(result, launch.records + r * kernel.words);
        if (made > 0 && made + next > most) {
          close(r);
          ++group, made = 0;
        }
        made += next;
      }
      close(launch.count);
    }
  }
};

} // namespace

bool Session::Impl::mayRecompute() const {
  return model.training && options.recompute != When::Never && recomputeAllowed && !model.reads &&
         !mayReorder() && !trace && !keepsAll && !options.checkResults &&
         options.keepBytes == uint64_t(0) && rowPlan.isPossible();
}

/// Whether rows of this mini-batch are promised.
bool Session::Impl::drops() {
  if (!mayRecompute())
    return false;
  double forward = static_cast<double>(need.forwardBytes) * kLarger;
  bool result = rowReuse == When::Always || options.recompute == When::Always ||
                (options.hostile && counters.runs % 2 == 0) ||
                forward + needBytes(forward) > static_cast<double>(need.roomBytes);
  need.tried |= result;
  return result;
}

/// Rows that the backward pass takes when those of the forward pass are so many bytes.
double Session::Impl::needBytes(double forward) const {
  return static_cast<double>(uint64_t(model.paramGranules) * kGranuleBytes) + need.share * forward;
}

/// There was too little memory for the backward pass: first it shall take less, then it takes more
/// than was thought.
void Session::Impl::noteShort() {
  if (need.droppedAll) { // no share would have been enough, so none was too little
    need.share = need.shareBefore;
    need.least = need.leastBefore;
    return;
  }
  if (need.tried && !std::exchange(need.compact, true))
    return;
  auto forward = static_cast<double>(std::max<uint64_t>(need.forwardBytes, 1));
  double left = static_cast<double>(need.roomBytes) - forward - needBytes(0);
  need.share = std::max(need.share, need.tried ? 0 : left / forward) * kMore;
  need.least = need.share;
}

/// The rows that it took.
void Session::Impl::noteNeed(uint64_t bytes) {
  if (need.forwardBytes == 0)
    return;
  double share = (static_cast<double>(bytes) - needBytes(0)) /
                 static_cast<double>(need.forwardBytes) * kMargin;
  constexpr double least = 0.05;
  need.least *= kForgets;
  need.share = need.shareBefore = std::max({least, share, need.share * kLess, need.least});
  need.leastBefore = need.least;
}

void Session::Impl::beginNeed() {
  need.tried = need.droppedAll = false;
  need.roomBytes = recorder.rowSpace.left() * kGranuleBytes;
}

/// `promised`: bytes, of this mini-batch.
void Session::Impl::endNeed(uint64_t promised) {
  need.forwardBytes =
      promised ? promised : (handedOutBefore + recorder.rowSpace.handedOut()) * kGranuleBytes;
  // Where nothing was made nothing can be dropped.
  need.droppedAll |= need.forwardBytes == 0 || (need.tried && promised == 0);
}

/// How many of the granules that were promised to these launches may stay when they have run.
uint64_t Session::Impl::mostToStay(std::span<const ScheduledBucket> launches) const {
  if (options.recompute == When::Always)
    return 0;
  uint64_t granules = recorder.promised.granules(), records = 0;
  for (const ScheduledBucket &launch : launches)
    records += static_cast<uint64_t>(launch.count) * model.kernels[launch.kernel].words;
  uint64_t walk = Backward::walkBytes(records * sizeof(int32_t), granules);
  double left = static_cast<double>(recorder.rowSpace.left() * kGranuleBytes) -
                needBytes(static_cast<double>(granules * kGranuleBytes)) -
                static_cast<double>(walk - std::min(walk, backward->bytes()));
  uint64_t most = left > 0 ? static_cast<uint64_t>(left) / kGranuleBytes : 0;
  return options.hostile ? std::min(most, granules / 4 * (counters.runs / 2 % 3)) : most;
}

/// placeRows() of training: what stays are results, and what is not dropped. `results`: handles.
std::optional<RowRange> Session::Impl::placeTraining(size_t begin, std::span<Slot *const> results) {
  RowSpace &rows = recorder.rowSpace;
  recordedLaunches.assign(schedule.begin() + static_cast<ptrdiff_t>(begin), schedule.end());
  uint64_t all = recorder.promised.granules(), most = mostToStay(recordedLaunches);
  DividedLaunches planned(model, recordedLaunches, most < all ? all / kParts : UINT64_MAX);
  RecomputeChoice choice(model, rowWords, meter, memory.records);
  if (!choice.make(planned.launches, recorder.promised, results, rows, most, need.compact) ||
      !rowPlan.make(planned.launches, recorder.promised, results, rows, choice.staying()))
    return std::nullopt;
  need.droppedAll = need.compact && (most == 0 || !choice.isEnough());
  std::optional<RowRange> passing = allocatePlanned();
  if (!passing)
    return std::nullopt;
  if (choice.droppedGranules() == 0) {
    rowPlan.apply(passing->begin);
    return passing;
  }
  Schedule copies = copiesOf(planned.launches);
  if (copies.empty() || !dropped.begin(choice, rowPlan.placesStaying(), planned.origins, begin)) {
    dropped.forget();
    return std::nullopt;
  }
  counters.droppedBytes += choice.droppedGranules() * kGranuleBytes;
  rowPlan.applyStaying(passing->begin);
  if (!placeCopies(begin, copies)) {
    dropped.forget();
    return std::nullopt;
  }
  return passing;
}

/// The launches with copies of their records. Nothing when there is no memory for that.
Schedule Session::Impl::copiesOf(std::span<const ScheduledBucket> launches) {
  Schedule copies(launches.begin(), launches.end());
  for (ScheduledBucket &launch : copies) {
    size_t bytes =
        static_cast<size_t>(launch.count) * model.kernels[launch.kernel].words * sizeof(int32_t);
    auto *records = static_cast<int32_t *>(placedRecords.allocate(bytes));
    if (!records)
      return {};
    memcpy(records, launch.records, bytes);
    launch.records = records;
  }
  return copies;
}

/// The copies run, and have places, while what was recorded keeps names; after each group, launches
/// that copy what stays of allocations that do not. False when there is no memory for these.
bool Session::Impl::placeCopies(size_t begin, std::span<const ScheduledBucket> copies) {
  auto place = [&](uint32_t &id) {
    if (PromisedRows::has(id))
      id = rowPlan.placeOf(id);
  };
  std::vector<int32_t> parts;
  schedule.resize(begin);
  runsAt.clear();
  for (size_t first = 0, end; first < copies.size(); first = end) {
    end = groupEnd(copies, first);
    parts.clear();
    for (size_t i = first; i < end; ++i) {
      const ScheduledBucket &launch = copies[i];
      runsAt.push_back(static_cast<uint32_t>(schedule.size() - begin));
      schedule.push_back(launch);
      rowWords.forEachId(launch, recorder.rowSpace, place);
      size_t words = model.kernels[launch.kernel].words;
      auto *records = const_cast<int32_t *>(launch.records);
      for (int64_t r = 1; r <= launch.count; ++r) {
        auto &out = reinterpret_cast<uint32_t &>(records[size_t(r) * words - 1]);
        if (PromisedRows::has(out) && !placeMade(out, parts))
          return false;
      }
    }
    if (parts.empty())
      continue;
    auto *records = static_cast<int32_t *>(placedRecords.allocate(parts.size() * sizeof(int32_t)));
    if (!records)
      return false;
    std::ranges::copy(parts, records);
    // Of a depth that no neighbour has.
    schedule.push_back({UINT32_MAX, nativeKernel(model, NativeKernel::Sum), records,
                        static_cast<int64_t>(parts.size()) / kRecordWords<SumRecord>});
  }
  runsAt.push_back(static_cast<uint32_t>(schedule.size() - begin));
  return true;
}

/// Where a record makes its results, and, if only a part of them stays, a record of `parts` that
/// copies it. False when there is no memory for that.
bool Session::Impl::placeMade(uint32_t &out, std::vector<int32_t> &parts) {
  uint32_t id = out, granules = rowPlan.granulesCopied(id);
  out = rowPlan.placeMade(id);
  if (granules == 0)
    return true;
  auto *source = static_cast<uint32_t *>(placedRecords.allocate(sizeof(uint32_t)));
  if (!source)
    return false;
  *source = out;
  appendRecord(parts, copyRecord(rowPlan.placeOf(id), granules, source));
  return true;
}

/// The schedule shows what was recorded again.
void Session::Impl::takeRecordedBack(size_t begin) {
  schedule.resize(begin);
  schedule.insert(schedule.end(), recordedLaunches.begin(), recordedLaunches.end());
}

void Session::Impl::forgetCopies() {
  if (recordedLaunches.empty())
    return;
  recordedLaunches.clear();
  runsAt.clear();
  placedRecords.reset();
  placedRecords.giveBack();
}

/// There was no room for what a mini-batch of training has promised: its instances fail, so that
/// whoever runs it divides it.
void Session::Impl::giveUpWave(const Wave &wave) {
  settle();
  recorder.setFailure({Failure::Rows, 0, 0, 0, recorder.promised.granules()});
  for (size_t number : wave.members) {
    if (!outcomes[number].slots)
      continue;
    outcomes[number] = {};
    giveUp(walks[number], outcomes[number]);
  }
  rowPlan.release();
  forgetCopies();
  recorder.promised.release();
  recorder.known.forgetSeen();
}

} // namespace sheaf::rt

#include "runtime/schedule/dropped_rows.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace sheaf::rt {

DroppedRows::DroppedRows(const Model &model, const RowWords &words, MemoryMeter &meter,
                         MemoryKind &count)
    : model_(model), words_(words), meter_(meter), count_(count), names_(meter, count),
      arena_(meter, count, alignof(uint64_t), size_t(64) << 10, /*redzones=*/false) {}

bool DroppedRows::begin(const RecomputeChoice &choice, std::span<const uint32_t> places,
                        std::span<const MadeBy> origins, size_t first) {
  std::span<const MadeBy> made = choice.made();
  uint64_t bytes = made.size() * (sizeof(Row) + 2 * sizeof(uint32_t));
  if (!meter_.charge(count_, bytes))
    return false;
  charged_ += bytes;
  try {
    made_.reserve(made.size());
    needed_.reserve(made.size());
    placed_.reserve(made.size());
  } catch (const std::bad_alloc &) {
    return false;
  }
  for (size_t i = 0; i < made.size(); ++i) {
    Row &row = made_.emplace_back(Row{made[i]});
    row.made.launch = MadeBy::kNone;
    if (i + 1 == made.size() || choice.staying()[i] == made[i + 1].begin - made[i].begin)
      continue;
    const MadeBy &origin = origins[made[i].launch];
    row.made.launch = origin.launch + static_cast<uint32_t>(first);
    row.made.record += origin.record;
    row.staying = choice.staying()[i];
    row.stays = row.staying ? places[i] : 0;
  }
  return true;
}

void DroppedRows::forget() {
  std::exchange(made_, {}); // an assignment of {} would keep the memory
  std::exchange(needed_, {});
  std::exchange(placed_, {});
  std::exchange(launches_, {});
  arena_.reset();
  names_.forget();
  meter_.uncharge(count_, std::exchange(charged_, 0));
}

void DroppedRows::swap(DroppedRows &other) noexcept {
  std::swap(charged_, other.charged_);
  names_.swap(other.names_);
  made_.swap(other.made_);
  needed_.swap(other.needed_);
  placed_.swap(other.placed_);
  launches_.swap(other.launches_);
  arena_.swap(other.arena_);
}

void DroppedRows::needPromised(uint32_t id) {
  uint32_t allocation = names_.numberOf(id);
  Row &row = made_[allocation];
  if (row.made.launch == MadeBy::kNone)
    throw InternalError("a row that stayed is known by the name that was promised");
  if (stays(id))
    return;
  if (row.place == 0) {
    row.place = kNeeded;
    needed_.push_back(allocation);
  }
}

uint32_t DroppedRows::goBack(uint32_t id) {
  if (!PromisedRows::has(id))
    return 0;
  uint32_t allocation = names_.numberOf(id);
  Row &row = made_[allocation];
  row.isGone = true;
  return row.made.launch == MadeBy::kNone || row.place ? 0 : granulesOf(allocation);
}

uint32_t DroppedRows::placeOf(uint32_t id) const {
  const Row &row = rowOf(id);
  uint32_t offset = offsetOf(id);
  if (offset < row.staying)
    return row.stays + offset;
  if (row.place == 0 || row.place == kNeeded)
    throw InternalError("a row that was dropped is read before it is made again");
  return row.place + offset;
}

void DroppedRows::need(std::span<const ScheduledBucket> launches, const RowSpace &space) {
  for (const ScheduledBucket &launch : launches)
    words_.forEachId(launch, space, [&](uint32_t id) { need(id); });
}

void DroppedRows::place(std::span<const ScheduledBucket> launches, const RowSpace &space) const {
  for (const ScheduledBucket &launch : launches)
    words_.forEachId(launch, space, [&](uint32_t &id) { place(id); });
}

std::span<const ScheduledBucket> DroppedRows::makeAgain(std::span<const ScheduledBucket> forward,
                                                        const RowSpace &space,
                                                        const Allocate &allocate) {
  auto recordOf = [&](const Row &row) {
    const ScheduledBucket &launch = forward[row.made.launch];
    return launch.records + size_t(row.made.record) * model_.kernels[launch.kernel].words;
  };
  // What each follows from is needed, too.
  for (size_t i = 0; i < needed_.size(); ++i) {
    const Row &row = made_[needed_[i]];
    words_.forEach(forward[row.made.launch].kernel, recordOf(row), space,
                   [&](uint32_t, uint32_t id, uint64_t) { need(id); });
  }
  std::sort(needed_.begin(), needed_.end(), [&](uint32_t a, uint32_t b) {
    const MadeBy &first = made_[a].made, &second = made_[b].made;
    return std::pair(first.launch, first.record) < std::pair(second.launch, second.record);
  });
  // A tensor of no size is named as what comes after it, which may be made later.
  for (uint32_t allocation : needed_)
    made_[allocation].place = allocate(granulesOf(allocation));
  launches_.clear();
  for (size_t end, i = 0; i < needed_.size(); i = end) {
    uint32_t which = made_[needed_[i]].made.launch;
    for (end = i + 1; end < needed_.size() && made_[needed_[end]].made.launch == which;)
      ++end;
    const ScheduledBucket &from = forward[which];
    size_t words = model_.kernels[from.kernel].words;
    auto *records = static_cast<int32_t *>(arena_.allocate((end - i) * words * sizeof(int32_t)));
    if (!records)
      throw std::bad_alloc();
    launches_.push_back({from.depth, from.kernel, records, static_cast<int64_t>(end - i)});
    for (; i < end; ++i, records += words) {
      const Row &row = made_[needed_[i]];
      memcpy(records, recordOf(row), words * sizeof(int32_t));
      words_.forEachId(from.kernel, records, space, [&](uint32_t &id) { place(id); });
      records[words - 1] = static_cast<int32_t>(row.place);
    }
  }
  placed_.insert(placed_.end(), needed_.begin(), needed_.end());
  needed_.clear();
  return launches_;
}

void DroppedRows::endPiece(bool endsSegment, const GiveBack &giveBack) {
  std::erase_if(placed_, [&](uint32_t allocation) {
    Row &row = made_[allocation];
    if (!endsSegment && !row.isGone)
      return false;
    giveBack(row.place, granulesOf(allocation));
    row.place = 0;
    return true;
  });
  launches_.clear();
  arena_.reset();
}

void DroppedRows::begin() {
  for (Row &row : made_) {
    row.place = 0;
    row.isGone = false;
  }
  needed_.clear();
  placed_.clear();
  launches_.clear();
  arena_.reset();
}

} // namespace sheaf::rt

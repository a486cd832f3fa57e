#include "runtime/schedule/row_plan.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <new>
#include <utility>

namespace sheaf::rt {

void RowPlan::release() {
  meter_.uncharge(count_, std::exchange(charged_, 0));
  for (std::vector<uint32_t> *each : {&groups_, &made_, &starts_, &last_, &places_, &staying_,
                                      &divided_, &cellsInUse_, &freeAfter_})
    std::exchange(*each, {}); // an assignment of {} would keep the memory
  std::exchange(cells_, {});
  std::exchange(live_, {});
  std::exchange(free_, {});
  std::exchange(pieces_, {});
}

bool RowPlan::make(std::span<const ScheduledBucket> launches, PromisedRows &promised,
                   std::span<Slot *const> needed, const RowSpace &space,
                   std::span<const uint32_t> staying) {
  launches_ = launches;
  promised_ = &promised;
  handles_ = needed;
  space_ = &space;
  stayingGranules_ = passing_ = least_ = needed_ = 0;
  uint64_t records = 0;
  for (const ScheduledBucket &launch : launches)
    records += static_cast<uint64_t>(launch.count);
  uint32_t allocations = promised.number();
  try {
    findGroups();
    if (!reserve(records, allocations, groups()))
      return false;
    staying_.assign(staying.begin(), staying.end());
    promised.forEachStart([&](uint64_t at) { starts_.push_back(static_cast<uint32_t>(at)); });
    starts_.push_back(static_cast<uint32_t>(promised.granules()));
    findLastGroups();
    size_t record = 0;
    for (uint32_t group = 0; group < groups(); ++group)
      placeGroup(group, record);
  } catch (const std::bad_alloc &) {
    release();
    return false;
  }
  return true;
}

void RowPlan::findGroups() {
  groups_.clear();
  for (size_t i = 0; i < launches_.size(); i = groupEnd(launches_, i))
    groups_.push_back(static_cast<uint32_t>(i));
  groups_.push_back(static_cast<uint32_t>(launches_.size()));
}

bool RowPlan::reserve(uint64_t records, uint64_t allocations, uint64_t groups) {
  uint64_t bytes = records * sizeof(uint32_t) + (allocations + 1) * 5 * sizeof(uint32_t) +
                   groups * (sizeof(Cell) + sizeof(uint64_t) + 3 * sizeof(uint32_t));
  if (bytes > charged_) {
    if (!meter_.charge(count_, bytes - charged_))
      return false;
    charged_ = bytes;
  }
  made_.clear();
  made_.reserve(records);
  starts_.clear();
  starts_.reserve(allocations + 1);
  last_.assign(allocations, 0);
  places_.assign(allocations, kUnplaced);
  divided_.clear();
  cells_.assign(groups, {});
  cellsInUse_.clear();
  freeAfter_.assign(groups, kNone);
  pieces_.clear();
  live_.clear();
  live_.reserve(groups);
  free_.clear();
  return true;
}

void RowPlan::findLastGroups() {
  for (uint32_t group = 0; group < groups(); ++group)
    for (uint32_t i = groups_[group]; i < groups_[group + 1]; ++i) {
      const ScheduledBucket &launch = launches_[i];
      uint32_t words = model_.kernels[launch.kernel].words;
      const int32_t *out = launch.records + words - 1;
      for (int64_t r = 0; r < launch.count; ++r, out += words) {
        auto id = static_cast<uint32_t>(*out);
        made_.push_back(PromisedRows::has(id) ? promised_->numberOf(id) : kNone);
        if (made_.back() != kNone)
          last_[made_.back()] = group;
      }
      words_.forEachId(launch, *space_, [&](uint32_t id) {
        if (!PromisedRows::has(id))
          return;
        // What others read of a divided one lies elsewhere.
        if (uint32_t allocation = promised_->numberOf(id); !isDivided(allocation))
          last_[allocation] = group;
      });
    }
  for (const Slot *slot : handles_)
    if (uint32_t id = TensorHandle::unpack(*slot).id; PromisedRows::has(id))
      last_[promised_->numberOf(id)] = kStays;
  bool anyDivided = false;
  for (uint32_t allocation = 0; allocation < staying_.size(); ++allocation) {
    if (staying_[allocation] == granulesOf(allocation))
      last_[allocation] = kStays;
    anyDivided |= isDivided(allocation);
  }
  if (anyDivided)
    divided_.assign(last_.size(), 0);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// `record`: the number of its first record, then of the next group's.
void RowPlan::placeGroup(uint32_t group, size_t &record) {
  size_t first = record;
  for (uint32_t i = groups_[group]; i < groups_[group + 1]; ++i)
    record += static_cast<size_t>(launches_[i].count);
  for (size_t r = first; r < record; ++r) {
    uint32_t made = made_[r];
    // Several may write into one allocation.
    if (made == kNone || places_[made] != kUnplaced)
      continue;
    uint64_t granules = granulesOf(made);
    needed_ += granules;
    places_[made] = kToPlace;
    if (last_[made] == kStays) { // by placeStaying()
      stayingGranules_ += granules;
      continue;
    }
    if (isDivided(made)) {
      stayingGranules_ += staying_[made];
      needed_ += staying_[made];
    }
    Cell &cell = cells_[last_[made]];
    if (cell.left == 0 && granules > 0)
      cellsInUse_.push_back(last_[made]);
    cell.left += granules;
  }
  least_ = std::max(least_, needed_);
  live_.push_back(needed_);
  for (size_t r = first; r < record; ++r)
    if (made_[r] != kNone && places_[made_[r]] == kToPlace && last_[made_[r]] != kStays)
      place(made_[r]);
  for (uint32_t last : cellsInUse_) {
    leave(cells_[last], last);
    cells_[last] = {};
  }
  cellsInUse_.clear();
  for (uint32_t i = freeAfter_[group]; i != kNone; i = pieces_[i].next) {
    needed_ -= pieces_[i].end - pieces_[i].begin;
    free(pieces_[i].begin, pieces_[i].end);
  }
}

void RowPlan::place(uint32_t allocation) {
  uint64_t granules = granulesOf(allocation);
  uint32_t last = last_[allocation];
  Cell &cell = cells_[last];
  if (cell.end - cell.at < granules) {
    leave(cell, last);
    take(cell, granules);
  }
  places_[allocation] = static_cast<uint32_t>(cell.at);
  cell.at += granules;
  cell.left -= granules;
}

/// Somewhere for all that the cell still has, or for as much of it as is free in one piece, but for
/// `least` granules; else at the end.
void RowPlan::take(Cell &cell, uint64_t least) {
  auto best = free_.end(), largest = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    uint64_t granules = it->granules();
    if (granules >= cell.left && (best == free_.end() || granules < best->granules()))
      best = it;
    if (largest == free_.end() || granules > largest->granules())
      largest = it;
  }
  if (best == free_.end() && largest != free_.end() && largest->granules() >= least)
    best = largest;
  if (best != free_.end()) {
    cell.begin = cell.at = best->begin;
    cell.end = std::min(best->end, best->begin + cell.left);
    best->begin = cell.end;
    if (best->begin == best->end)
      free_.erase(best);
    return;
  }
  cell.begin = passing_;
  if (!free_.empty() && free_.back().end == passing_) {
    cell.begin = free_.back().begin;
    free_.pop_back();
  }
  cell.at = cell.begin;
  cell.end = passing_ = cell.begin + cell.left;
}

/// What it has filled is free after group `last`, and what is left of it at once.
void RowPlan::leave(Cell &cell, uint32_t last) {
  if (cell.at > cell.begin) {
    pieces_.push_back({cell.begin, cell.at, freeAfter_[last]});
    freeAfter_[last] = static_cast<uint32_t>(pieces_.size() - 1);
  }
  if (cell.end > cell.at)
    free(cell.at, cell.end);
  cell.begin = cell.at = cell.end;
}

void RowPlan::free(uint64_t begin, uint64_t end) {
  auto next = std::upper_bound(free_.begin(), free_.end(), begin,
                               [](uint64_t at, const Range &range) { return at < range.begin; });
  bool meetsNext = next != free_.end() && next->begin == end;
  if (next != free_.begin() && std::prev(next)->end == begin) {
    std::prev(next)->end = meetsNext ? next->end : end;
    if (meetsNext)
      free_.erase(next);
  } else if (meetsNext) {
    next->begin = begin;
  } else {
    free_.insert(next, {begin, end});
    // Looking through more would take longer than what lies in them is worth.
    constexpr size_t most = 512;
    if (free_.size() > most && !looksAtAll_)
      forgetSmall();
  }
}

/// The smaller half of what is free.
void RowPlan::forgetSmall() {
  std::vector<uint64_t> sizes;
  for (const Range &range : free_)
    sizes.push_back(range.granules());
  auto middle = sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  uint64_t median = *middle;
  auto larger = static_cast<size_t>(
      std::ranges::count_if(sizes, [&](uint64_t granules) { return granules > median; }));
  size_t equal = sizes.size() / 2 - larger; // so many of them stay
  std::erase_if(free_, [&](const Range &range) {
    if (range.granules() != median)
      return range.granules() < median;
    return equal == 0 || equal-- == 0;
  });
}

//===----------------------------------------------------------------------===//
// What follows from a plan
//===----------------------------------------------------------------------===//

uint32_t RowPlan::placeOf(uint32_t id) const {
  uint32_t allocation = promised_->numberOf(id);
  if (isDivided(allocation))
    return divided_[allocation] + static_cast<uint32_t>(id - PromisedRows::kFirst) -
           starts_[allocation];
  return placeMade(id);
}

uint32_t RowPlan::placeMade(uint32_t id) const {
  uint32_t allocation = promised_->numberOf(id);
  if (places_[allocation] >= kToPlace)
    throw InternalError("a record reads rows that none before it makes");
  uint64_t at = last_[allocation] == kStays ? 0 : passingAt_;
  return static_cast<uint32_t>(at + places_[allocation] + (id - PromisedRows::kFirst) -
                               starts_[allocation]);
}

template <typename Move> void RowPlan::applyBy(Move move) {
  for (const ScheduledBucket &launch : launches_) {
    words_.forEachId(launch, *space_, move);
    uint32_t words = model_.kernels[launch.kernel].words;
    auto *out = reinterpret_cast<uint32_t *>(const_cast<int32_t *>(launch.records)) + words - 1;
    for (int64_t r = 0; r < launch.count; ++r, out += words)
      move(*out);
  }
  for (Slot *slot : handles_) {
    TensorHandle handle = TensorHandle::unpack(*slot);
    move(handle.id);
    *slot = handle.pack();
  }
}

void RowPlan::apply(uint64_t passing) {
  passingAt_ = passing;
  applyBy([&](uint32_t &id) {
    if (PromisedRows::has(id))
      id = placeOf(id);
  });
}

void RowPlan::applyStaying(uint64_t passing) {
  passingAt_ = passing;
  applyBy([&](uint32_t &id) {
    if (PromisedRows::has(id) && last_[promised_->numberOf(id)] == kStays)
      id = placeOf(id);
  });
}

std::vector<RowPlan::Release> RowPlan::releases() const {
  std::vector<Release> result;
  for (uint32_t group = 0; group < groups(); ++group)
    for (uint32_t i = freeAfter_[group]; i != kNone; i = pieces_[i].next)
      result.push_back(
          {groups_[group + 1], {passingAt_ + pieces_[i].begin, pieces_[i].end - pieces_[i].begin}});
  return result;
}

} // namespace sheaf::rt

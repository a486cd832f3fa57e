#include "runtime/schedule/record_graph.h"

#include <algorithm>
#include <new>
#include <utility>

namespace sheaf::rt {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void RowMakers::release() {
  meter_.uncharge(count_, std::exchange(charged_, 0));
  starts_ = {};
  makers_ = {};
  promisedAt_ = 0;
  others_.clear();
  kept_.clear();
}

void RowMakers::begin(const RowSpace &rows, uint64_t keptEnd) {
  first_ = rows.first();
  keptBegin_ = keptEnd_ = keptEnd;
  std::fill(starts_.begin(), starts_.end(), 0);
  others_.clear();
  kept_.clear();
}

bool RowMakers::grow(const RowSpace &rows, const PromisedRows *promised) {
  keptBegin_ = rows.keptBegin();
  uint64_t granules = rows.used() + 1; // a record of no size may begin after the last
  for (uint64_t word = (promisedAt_ + 63) / 64; word < starts_.size() && promisedAt_ > 0; ++word)
    starts_[word] = 0;
  promisedAt_ = 0;
  if (promised && promised->granules() > 0) {
    promisedAt_ = (granules + 63) / 64 * 64;
    granules = promisedAt_ + promised->granules() + 1;
  }
  if (granules <= makers_.size())
    return true;
  granules = std::max<uint64_t>(granules, 2 * makers_.size());
  granules = (granules + 63) / 64 * 64;
  uint64_t bytes = granules * sizeof(uint32_t) + granules / 8;
  if (!meter_.charge(count_, bytes - charged_))
    return false;
  charged_ = bytes;
  try {
    makers_.resize(granules);
    starts_.resize(granules / 64);
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

void RowMakers::addInputs(uint64_t id) {
  starts_[(id - first_) / 64] |= uint64_t(1) << (id - first_) % 64;
  makers_[id - first_] = kNone;
}

void RowMakers::add(uint64_t id, uint32_t record) {
  if (id >= keptBegin_ && !PromisedRows::has(id)) {
    kept_[id] = record;
    return;
  }
  uint64_t at = indexOf(id), bit = uint64_t(1) << at % 64;
  // Of two at one place, one has no size; which one cannot be told here.
  if ((starts_[at / 64] & bit) && makers_[at] != kNone)
    others_.emplace(at, makers_[at]);
  starts_[at / 64] |= bit;
  makers_[at] = record;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

RecordGraph::RecordGraph(const Model &model, const RowWords &words, MemoryMeter &meter,
                         MemoryKind &count)
    : model_(model), meter_(meter), count_(count), rows_(words), familyOf_(model.kernels.size()) {}

void RecordGraph::release() {
  meter_.uncharge(count_, std::exchange(charged_, 0));
  records_ = {};
  families_ = {};
  needsBegin_ = {};
  needs_ = {};
  usersBegin_ = {};
  users_ = {};
}

bool RecordGraph::reserve(const Schedule &schedule, size_t begin) {
  uint64_t records = 0, rows = 0;
  for (size_t i = begin; i < schedule.size(); ++i) {
    records += static_cast<uint64_t>(schedule[i].count);
    rows += rows_.count(schedule[i]);
  }
  uint64_t bytes =
      records * (sizeof(const int32_t *) + 3 * sizeof(uint32_t)) + rows * 2 * sizeof(uint32_t);
  if (records > UINT32_MAX || rows > UINT32_MAX ||
      (bytes > charged_ && !meter_.charge(count_, bytes - charged_)))
    return false;
  charged_ = std::max(charged_, bytes);
  records_.clear();
  families_.clear();
  needs_.clear();
  try {
    records_.reserve(records);
    families_.reserve(records);
    needsBegin_.resize(records + 1);
    usersBegin_.assign(records + 2, 0);
    needs_.reserve(rows);
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

bool RecordGraph::build(const Schedule &schedule, size_t begin, const RowSpace &space,
                        RowMakers &makers, uint32_t firstNumber) {
  space_ = &space;
  if (!reserve(schedule, begin))
    return false;
  constexpr uint32_t none = UINT32_MAX;
  std::fill(familyOf_.begin(), familyOf_.end(), none);
  kernels_.clear();
  for (size_t i = begin; i < schedule.size(); ++i) {
    const ScheduledBucket &launch = schedule[i];
    const KernelDesc &desc = model_.kernels[launch.kernel];
    uint32_t first = desc.family.value_or(launch.kernel);
    if (familyOf_[first] == none) {
      familyOf_[first] = families();
      kernels_.push_back(first);
    }
    for (int64_t r = 0; r < launch.count; ++r) {
      const int32_t *words = launch.records + r * desc.words;
      makers.add(static_cast<uint32_t>(words[desc.words - 1]), firstNumber + size());
      records_.push_back(words);
      families_.push_back(familyOf_[first]);
    }
  }

  uint32_t to = 0, last = none;
  // What runs earlier is none of this graph. What is no earlier than the record itself only stands
  // at the same place, and has no size.
  auto need = [&](uint32_t number) {
    uint32_t from = number - firstNumber;
    if (number < firstNumber || from >= to || from == last)
      return;
    last = from;
    needs_.push_back(from);
    ++usersBegin_[from + 2];
  };
  for (size_t i = begin; i < schedule.size(); ++i) {
    for (int64_t r = 0; r < schedule[i].count; ++r, ++to) {
      needsBegin_[to] = static_cast<uint32_t>(needs_.size());
      last = none;
      rows_.forEach(
          schedule[i].kernel, records_[to], *space_,
          [&](uint32_t, uint32_t id, uint64_t granules) { makers.of(id, granules, need); });
    }
  }
  needsBegin_[to] = static_cast<uint32_t>(needs_.size());
  for (size_t i = 2; i < usersBegin_.size(); ++i)
    usersBegin_[i] += usersBegin_[i - 1];
  users_.resize(needs_.size());
  for (uint32_t record = 0; record < to; ++record)
    for (uint32_t other : needs(record))
      users_[usersBegin_[other + 1]++] = record;
  return true;
}

std::vector<bool> RecordGraph::resultsNeededFor(const RowMakers &makers, uint64_t id,
                                                uint64_t count) const {
  std::vector<size_t> begins(size() + size_t(1)); // by record: the bit of its first result
  for (uint32_t record = 0; record < size(); ++record)
    begins[record + 1] = begins[record] + model_.kernels[kernel(family(record))].results.size();
  std::vector<bool> needed(begins.back());
  auto need = [&](uint64_t first, uint64_t granules) {
    makers.of(first, granules, [&](uint32_t record) {
      const KernelDesc &desc = model_.kernels[kernel(family(record))];
      uint64_t begin = static_cast<uint32_t>(words(record)[desc.words - 1]);
      for (size_t i = 0; i < desc.results.size(); ++i) {
        uint64_t end = begin + rt::granulesOf(desc.results[i], words(record));
        if (begin < first + granules && first < end)
          needed[begins[record] + i] = true;
        begin = end;
      }
    });
  };
  need(id, count);
  // Nobody waits for one of a higher number.
  for (uint32_t record = size(); record-- > 0;) {
    const KernelDesc &desc = model_.kernels[kernel(family(record))];
    auto visit = [&](uint32_t word, uint32_t row, uint64_t granules) {
      bool isRead = false;
      for (size_t i = 0; i < desc.results.size(); ++i)
        isRead = isRead ||
                 (needed[begins[record] + i] && std::ranges::count(desc.resultRows[i], word) > 0);
      if (isRead)
        need(row, granules);
    };
    rows_.forEach(kernel(family(record)), words(record), *space_, visit);
  }
  return needed;
}

uint32_t RecordGraph::findWaysBehind(std::span<uint32_t> records) const {
  std::fill(records.begin(), records.end(), 0);
  uint32_t most = 0;
  for (uint32_t record = size(); record-- > 0;) {
    most = std::max(most, records[record]);
    for (uint32_t other : needs(record))
      records[other] = std::max(records[other], records[record] + 1);
  }
  return most;
}

std::vector<uint32_t> RecordGraph::longestChains() const {
  std::vector<uint32_t> longest(families());
  std::vector<uint32_t> before(size());
  for (uint32_t family = 0; family < families(); ++family) {
    std::fill(before.begin(), before.end(), 0);
    for (uint32_t record = 0; record < size(); ++record) {
      uint32_t here = before[record] + (families_[record] == family);
      longest[family] = std::max(longest[family], here);
      for (uint32_t user : users(record))
        before[user] = std::max(before[user], here);
    }
  }
  return longest;
}

} // namespace sheaf::rt

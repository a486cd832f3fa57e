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

bool RowMakers::grow(const RowSpace &rows) {
  keptBegin_ = rows.keptBegin();
  uint64_t granules = rows.used() + 1; // a record of no size may begin after the last
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
  if (id >= keptBegin_) {
    kept_[id] = record;
    return;
  }
  uint64_t at = id - first_, bit = uint64_t(1) << at % 64;
  // Of two at one place, one has no size; which one cannot be told here.
  if ((starts_[at / 64] & bit) && makers_[at] != kNone)
    others_.emplace(at, makers_[at]);
  starts_[at / 64] |= bit;
  makers_[at] = record;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

RecordGraph::RecordGraph(const Model &model, MemoryMeter &meter, MemoryKind &count)
    : model_(model), meter_(meter), count_(count), rows_(model.kernels.size()),
      familyOf_(model.kernels.size()) {
  for (size_t k = 0; k < model.kernels.size(); ++k) {
    uint32_t word = 0;
    for (const RecordWord &entry : model.kernels[k].layout) {
      bool isList = entry.kind == RecordWord::List;
      if (isList || entry.kind == RecordWord::Row) {
        bool isStatic = std::find(entry.shape.begin(), entry.shape.end(), -1) == entry.shape.end();
        rows_[k].push_back({word, isList, isStatic ? tensorGranules(entry.shape, entry.dtype) : -1,
                            entry.shape, entry.dtype});
      }
      word += entry.kind == RecordWord::Int || entry.kind == RecordWord::Float ? 2 : 1;
    }
  }
}

void RecordGraph::release() {
  meter_.uncharge(count_, std::exchange(charged_, 0));
  records_ = {};
  families_ = {};
  needsBegin_ = {};
  needs_ = {};
  usersBegin_ = {};
  users_ = {};
}

uint64_t RecordGraph::granulesOf(const Row &row, const int32_t *words) {
  if (row.granules >= 0)
    return static_cast<uint64_t>(row.granules);
  // Its extents follow it.
  return static_cast<uint64_t>(tensorGranules(row.shape, row.dtype, words + row.word + 1));
}

uint64_t RecordGraph::countRows(uint32_t kernel, const int32_t *records, int64_t count) const {
  uint64_t rows = 0;
  for (const Row &row : rows_[kernel]) {
    if (!row.isList) {
      rows += static_cast<uint64_t>(count);
      continue;
    }
    const int32_t *length = records + row.word + 1;
    for (int64_t r = 0; r < count; ++r, length += model_.kernels[kernel].words)
      rows += static_cast<uint32_t>(*length);
  }
  return rows;
}

bool RecordGraph::reserve(const Schedule &schedule, size_t begin) {
  uint64_t records = 0, rows = 0;
  for (size_t i = begin; i < schedule.size(); ++i) {
    records += static_cast<uint64_t>(schedule[i].count);
    rows += countRows(schedule[i].kernel, schedule[i].records, schedule[i].count);
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
      forEachRow(schedule[i].kernel, records_[to],
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
    forEachRow(kernel(family(record)), words(record), visit);
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

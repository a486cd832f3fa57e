//===- record_graph.h - Which records need which ----------------*- C++ -*-===//
//
// Recording by depth makes no graph: a record's depth says all that running in order of depth
// needs. Another order needs to know who waits for whom. That can be found afterwards: the words of
// a record say which rows it reads (KernelDesc::layout) and where its own begin.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_RECORD_GRAPH_H
#define SHEAF_RUNTIME_SCHEDULE_RECORD_GRAPH_H

#include "runtime/memory/memory.h"
#include "runtime/memory/rows.h"
#include "runtime/model/model.h"
#include "runtime/schedule/row_words.h"
#include "runtime/schedule/schedule.h"

#include <map>
#include <span>
#include <vector>

namespace sheaf::rt {

/// Which record made which rows of a mini-batch.
class RowMakers {
public:
  RowMakers(MemoryMeter &meter, MemoryKind &count) : meter_(meter), count_(count) {}
  ~RowMakers() { meter_.uncharge(count_, charged_); }
  RowMakers(const RowMakers &) = delete;

  /// Gives all memory back.
  void release();
  /// Forgets all. Kept rows from `keptEnd` on are older than the mini-batch.
  void begin(const RowSpace &rows, uint64_t keptEnd);
  /// Rows have been handed out, or `promised`: room for those. False when the budget does not allow
  /// it. What was promised before is forgotten.
  bool grow(const RowSpace &rows, const PromisedRows *promised);
  /// What stands from granule `id` up to the next record's rows was made by none: inputs.
  void addInputs(uint64_t id);
  /// The rows of `record` begin at granule `id`.
  void add(uint64_t id, uint32_t record);

  /// Calls `visit` with the makers of granules [id, id + count).
  template <typename Visit> void of(uint64_t id, uint64_t count, Visit &&visit) const {
    if (count == 0 || id < first_ || (id >= keptEnd_ && !PromisedRows::has(id)))
      return;
    if (id >= keptBegin_ && !PromisedRows::has(id))
      return ofKept(id, visit);
    uint64_t at = indexOf(id), end = std::min(at + count, makers_.size());
    if (at >= end)
      return;
    // Whoever began last at or before it, and all who begin in it: a stack has many.
    uint64_t word = at / 64, bits = starts_[word] & (~uint64_t(0) >> (63 - at % 64));
    while (bits == 0) [[unlikely]] {
      if (word == 0)
        return;
      bits = starts_[--word];
    }
    visitStart(word * 64 + 63 - static_cast<uint64_t>(__builtin_clzll(bits)), visit);
    for (uint64_t next = at + 1; next < end; next = (next / 64 + 1) * 64) {
      bits = starts_[next / 64] & ~uint64_t(0) << next % 64;
      if (uint64_t left = end - next / 64 * 64; left < 64)
        bits &= (uint64_t(1) << left) - 1;
      for (; bits; bits &= bits - 1)
        visitStart(next / 64 * 64 + static_cast<uint64_t>(__builtin_ctzll(bits)), visit);
    }
  }

private:
  /// Of an id that is not kept, in starts_ and makers_.
  uint64_t indexOf(uint64_t id) const {
    return PromisedRows::has(id) ? promisedAt_ + (id - PromisedRows::kFirst) : id - first_;
  }
  template <typename Visit> void visitStart(uint64_t start, Visit &visit) const {
    if (makers_[start] != kNone)
      visit(makers_[start]);
    if (!others_.empty()) [[unlikely]]
      visitOthers(start, visit);
  }
  template <typename Visit> [[gnu::noinline]] void visitOthers(uint64_t start, Visit &visit) const {
    for (auto [it, end] = others_.equal_range(start); it != end; ++it)
      visit(it->second);
  }
  template <typename Visit> void ofKept(uint64_t id, Visit &visit) const {
    auto it = kept_.upper_bound(id);
    if (it != kept_.begin())
      visit(std::prev(it)->second);
  }

  static constexpr uint32_t kNone = UINT32_MAX;

  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  uint64_t first_ = 0, keptBegin_ = 0, keptEnd_ = 0;
  uint64_t promisedAt_ = 0;                  ///< promised granules come after those with memory
  std::vector<uint64_t> starts_;             ///< a bit a granule: rows of a record or inputs begin
  std::vector<uint32_t> makers_;             ///< by granule, where starts_ has a bit
  std::multimap<uint64_t, uint32_t> others_; ///< at starts of several: those of no size
  std::map<uint64_t, uint32_t> kept_;        ///< by granule: those of kept rows
};

/// The records of some launches and who waits for whom. Records are numbered in the order of the
/// launches; nobody waits for one of a higher number.
class RecordGraph {
public:
  RecordGraph(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count);
  ~RecordGraph() { meter_.uncharge(count_, charged_); }
  RecordGraph(const RecordGraph &) = delete;

  /// Gives all memory back.
  void release();

  /// Takes the launches of `schedule` from `begin` on, whose rows are in `space`, or promised;
  /// their records are noted in `makers`, where those of earlier launches already are. False when
  /// the budget does not allow it.
  bool build(const Schedule &schedule, size_t begin, const RowSpace &space, RowMakers &makers,
             uint32_t firstNumber);

  uint32_t size() const { return static_cast<uint32_t>(records_.size()); }
  const int32_t *words(uint32_t record) const { return records_[record]; }
  /// Its kernel's family (KernelDesc::family), as a number below families().
  uint32_t family(uint32_t record) const { return families_[record]; }
  /// Those whose rows it reads; one whose rows it reads in several places may come several times,
  /// and then has it among its users as often.
  std::span<const uint32_t> needs(uint32_t record) const {
    return {needs_.data() + needsBegin_[record], needs_.data() + needsBegin_[record + 1]};
  }
  std::span<const uint32_t> users(uint32_t record) const {
    return {users_.data() + usersBegin_[record], users_.data() + usersBegin_[record + 1]};
  }

  /// Which results of records granules [id, id + count) follow from, as bits: those of the first
  /// record, then those of the next. `makers` as build() left them.
  std::vector<bool> resultsNeededFor(const RowMakers &makers, uint64_t id, uint64_t count) const;

  uint32_t families() const { return static_cast<uint32_t>(kernels_.size()); }
  /// The first kernel of a family.
  uint32_t kernel(uint32_t family) const { return kernels_[family]; }

  /// For each record how many are on the longest way after it; returns the most.
  uint32_t findWaysBehind(std::span<uint32_t> records) const;

  /// For each family the records on the longest chain of its own, which others may stand between:
  /// no order of launches needs fewer of its kernel.
  std::vector<uint32_t> longestChains() const;

private:
  bool reserve(const Schedule &schedule, size_t begin);

  const Model &model_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  const RowSpace *space_ = nullptr;
  uint64_t charged_ = 0;
  const RowWords &rows_;
  std::vector<uint32_t> familyOf_; ///< by kernel: its number among those of this graph
  std::vector<uint32_t> kernels_;
  std::vector<const int32_t *> records_;
  std::vector<uint32_t> families_, needsBegin_, needs_, usersBegin_, users_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_RECORD_GRAPH_H

//===- live_values.h - Which rows, lists and data are needed ----*- C++ -*-===//
//
// While instances wait and nothing is pending, everything that may still be asked for can be
// reached from what host code says that it needs (RootFrame), from the calls that have not ended,
// and from the results of instances that have. A walk from there marks the granules of every tensor
// that it meets and the blocks of every list and data value; the others hold what no one can ask
// for, and are handed out again (RowSpace::reclaim, Heap::reclaim). Nothing is moved.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_LIVE_VALUES_H
#define SHEAF_RUNTIME_WALK_LIVE_VALUES_H

#include "runtime/memory/heap.h"
#include "runtime/model/members.h"
#include "runtime/walk/inputs.h"
#include "runtime/walk/tasks.h"

#include <map>
#include <unordered_set>

namespace sheaf::rt {

class LiveValues {
public:
  /// Its own memory is charged to `count`.
  LiveValues(const Model &model, const TypeFacts &facts, MemoryMeter &meter, MemoryKind &count)
      : model_(model), facts_(facts), meter_(meter), count_(count) {}
  ~LiveValues() { meter_.uncharge(count_, charged_); }
  LiveValues(const LiveValues &) = delete;

  /// Begins anew, with the rows as they are now, and lists and data of `heap`, if that is given.
  /// All functions may throw std::bad_alloc.
  void begin(const RowSpace &rows, Heap *heap);
  /// The same where only handles of promised rows are asked for.
  void beginPromised();
  /// A value in these slots is needed, with all that it holds.
  void add(uint32_t type, const Slot *slots);
  /// What calls on a stack need, from the innermost on.
  void add(const RootFrame *frames);
  /// The memory of a call that has not ended, or whose failure has not been told yet: its own, that
  /// of its results, and of whoever forked it.
  void keep(const Task &task);
  /// Memory of the heap, whatever it holds.
  void keep(const void *memory) {
    if (heap_)
      heap_->mark(memory);
  }
  /// What was found is known: gives the memory that looking took back.
  void end();

  /// Whether any of the rows that were found is kept beyond the mini-batch.
  bool meetsKept() const { return meetsKept_; }

  /// The handles of promised rows that were found, each once.
  std::span<Slot *const> promised() const { return promised_; }

  /// How much has been looked at: frames, values, and lists and data inside of them.
  uint64_t looked() const { return looked_; }

  const GranuleBits &bits() const { return bits_; }
  GranuleBits &bits() { return bits_; }

private:
  void addRoot(const RootDesc &root, const Slot *slots);
  void addFork(uint32_t type, const Slot *slots);
  void addList(uint32_t element, const Slot *elements, int64_t count);
  void look(uint32_t type, const Slot *slots);
  void keepList(const ListObject *list);
  bool isLookedAt(uint32_t type) const {
    return facts_.hasTensor(type) || (heap_ && facts_.hasMemory(type));
  }
  void finish();
  void charge(uint64_t bytes);
  template <typename Visit> void enter(const Slot *begin, const Slot *end, Visit visit);

  const Model &model_;
  const TypeFacts &facts_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  Heap *heap_ = nullptr;
  GranuleBits bits_;
  uint64_t first_ = 0;
  uint64_t keptBegin_ = 0; ///< rows from there on are kept
  bool meetsKept_ = false;
  std::vector<Slot *> promised_;
  uint64_t looked_ = 0;
  /// Slots of lists and data that have been looked into, as ranges that do not touch. Lists that
  /// are views of one buffer, such as all tails of a list, share elements.
  std::map<const Slot *, const Slot *> seen_;
  /// Buffers whose rest has been looked at: all lists through one end in the same way.
  std::unordered_set<const ListBuffer *> followed_;
  uint64_t round_ = 0; ///< Task::keptIn of those that have been kept
  struct Open {
    uint32_t type; ///< of each of `count` values
    int64_t count;
    const Slot *slots;
  };
  std::vector<Open> open_; ///< still to be looked at: values may be as deep as memory allows
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_LIVE_VALUES_H

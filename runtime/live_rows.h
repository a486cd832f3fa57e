//===- live_rows.h - Which rows are still needed ----------------*- C++ -*-===//
//
// While instances wait and nothing is pending, everything that may still be asked for can be
// reached from what host code says that it needs (RootFrame) and from the results of instances that
// have ended. A walk from there marks the granules of every tensor that it meets; the others hold
// what no one can ask for, and are handed out again (RowSpace::reclaim). Nothing is moved.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_LIVEROWS_H
#define SHEAF_RUNTIME_LIVEROWS_H

#include "runtime/inputs.h"
#include "runtime/members.h"
#include "runtime/tasks.h"

#include <map>
#include <unordered_set>

namespace sheaf::rt {

class LiveRows {
public:
  LiveRows(const Model &model, const TypeFacts &facts) : model_(model), facts_(facts) {}

  /// Begins anew, with the rows as they are now. All functions may throw std::bad_alloc.
  void begin(const RowSpace &rows);
  /// A value in these slots is needed, with all that it holds.
  void add(uint32_t type, const Slot *slots);
  /// What calls on a stack need, from the innermost on.
  void add(const RootFrame *frames);

  /// How much has been looked at: frames, values, and lists and data inside of them.
  uint64_t looked() const { return looked_; }

  const GranuleBits &bits() const { return bits_; }
  GranuleBits &bits() { return bits_; }

private:
  void addRoot(const RootDesc &root, const Slot *slots);
  void addFork(uint32_t type, const Slot *slots);
  void addList(uint32_t element, const Slot *elements, int64_t count);
  void look(uint32_t type, const Slot *slots);
  void finish();
  template <typename Visit> void enter(const Slot *begin, const Slot *end, Visit visit);

  const Model &model_;
  const TypeFacts &facts_;
  GranuleBits bits_;
  uint64_t first_ = 0;
  uint64_t looked_ = 0;
  /// Slots of lists and data that have been looked into, as ranges that do not touch. Lists that
  /// are views of one buffer, such as all tails of a list, share elements.
  std::map<const Slot *, const Slot *> seen_;
  /// Buffers whose rest has been looked at: all lists through one end in the same way.
  std::unordered_set<const ListBuffer *> followed_;
  struct Open {
    uint32_t type; ///< of each of `count` values
    int64_t count;
    const Slot *slots;
  };
  std::vector<Open> open_; ///< still to be looked at: values may be as deep as memory allows
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_LIVEROWS_H

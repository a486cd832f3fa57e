//===- list.h - Persistent lists --------------------------------*- C++ -*-===//
//
// A list is a view of a run of slots in a buffer. The buffer has room at both ends, and a cons or
// append writes into the slot next to the view if nothing has been written there; otherwise it
// starts a new buffer. So n conses, appends or tails cost O(n) together when each list is built on
// once.
//
// When the slot before a list is taken (its tail gets another head: a stack popped and pushed, or
// two lists built on one) there are two ways:
//  - chained: the new buffer holds the new elements only and continues with the old list. So cons
//    and tail are O(1) however lists branch. Such a list is in pieces; `flat` joins them once,
//    where elements are read by index. Lists are chained only when the model's code knows of it
//    (Model::chainedLists).
//  - copied: O(size) for each such branch. The copy gets room for a few elements only and grows by
//    doubling, so a branch that is never built on costs little more than its size.
// Appending to one list several times copies it each time but the first.
//
// A list whose `buffer` is null may be read but never grows in place: inputs, and views of them.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_LIST_H
#define SHEAF_RUNTIME_WALK_LIST_H

#include "runtime/memory/heap.h"
#include "runtime/model/layout.h"

namespace sheaf::rt {

struct ListBuffer {
  Slot *begin;      ///< room
  Slot *low, *high; ///< in use by some list; no `low` once another buffer continues it
  Slot *end;        ///< room
  ListObject *rest; ///< what follows the element before `high`, or null
};

/// Makes lists in a heap. Every function returns null when that is full.
class Lists {
public:
  Lists(Heap &heap, bool chained) : heap_(heap), chained_(chained) {}

  ListObject *make(int64_t elementSlots, int64_t size);
  ListObject *cons(const Slot *head, ListObject *tail);
  ListObject *append(ListObject *init, const Slot *last);
  ListObject *concat(ListObject *a, ListObject *b);
  ListObject *slice(ListObject *list, int64_t lo, int64_t hi);
  ListObject *reverse(ListObject *list);
  /// Joins the pieces of `list` in place, if there are several.
  ListObject *flat(ListObject *list);

  /// Whether any list in pieces was made since the last call of forget().
  bool anyChained() const { return anyChained_; }
  void forget() { anyChained_ = false; }

private:
  ListObject *object(Slot *elements, int64_t size, int64_t elementSlots, ListBuffer *buffer);
  /// A buffer whose elements in use are `size` uninitialised ones.
  ListBuffer *buffer(int64_t elementSlots, int64_t roomBefore, int64_t size, int64_t roomAfter);
  /// A list with `list`'s elements and at least so much room, or null.
  ListObject *copy(const ListObject *list, int64_t roomBefore, int64_t roomAfter);
  /// flat(), with that much room at the ends; false when the heap is full.
  bool join(ListObject *list, int64_t roomBefore, int64_t roomAfter);
  ListObject *chain(const Slot *elements, int64_t count, ListObject *rest);

  Heap &heap_;
  bool chained_;
  bool anyChained_ = false;
};

/// Elements in the first piece of a list.
inline int64_t firstPiece(const ListObject *list) {
  const ListObject *rest = list->buffer ? list->buffer->rest : nullptr;
  return rest ? list->size - rest->size : list->size;
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_LIST_H

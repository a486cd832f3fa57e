#include "runtime/walk/list.h"

#include <cstring>

namespace sheaf::rt {

namespace {
/// Room for a new branch: most are never built on.
constexpr int64_t kBranchRoom = 4;
/// Room for more elements that one chained piece has at most.
constexpr int64_t kMostInPiece = 256;
/// No list of that many slots fits into any machine; larger ones would overflow the arithmetic.
constexpr int64_t kMostSlots = int64_t(1) << 45;

Slot *endOf(const ListObject *list) { return list->elements + list->size * list->elementSlots; }

void copySlots(Slot *to, const Slot *from, int64_t slots) {
  if (slots > 0)
    memcpy(to, from, static_cast<size_t>(slots) * sizeof(Slot));
}

bool inPieces(const ListObject *list) { return list->buffer && list->buffer->rest; }

/// Whether nobody has used the slots just before (after) the list, whatever room there is.
bool ownsLow(const ListObject *list) { return list->buffer && list->elements == list->buffer->low; }
bool ownsHigh(const ListObject *list) {
  return list->buffer && !list->buffer->rest && endOf(list) == list->buffer->high;
}
int64_t roomBefore(const ListObject *list) {
  return ownsLow(list) ? list->buffer->low - list->buffer->begin : 0;
}
int64_t roomAfter(const ListObject *list) {
  return ownsHigh(list) ? list->buffer->end - list->buffer->high : 0;
}

/// When a list grows at one end, what room there is at the other is kept (in elements), or building
/// at both ends in turn would copy every time.
int64_t keptBefore(const ListObject *list) {
  return list->elementSlots ? std::min(roomBefore(list) / list->elementSlots, list->size) : 0;
}
int64_t keptAfter(const ListObject *list) {
  return list->elementSlots ? std::min(roomAfter(list) / list->elementSlots, list->size) : 0;
}

/// Copies all elements, piece by piece.
void copyElements(Slot *to, const ListObject *list) {
  for (; list; list = inPieces(list) ? list->buffer->rest : nullptr) {
    int64_t slots = firstPiece(list) * list->elementSlots;
    copySlots(to, list->elements, slots);
    to += slots;
  }
}
} // namespace

ListObject *Lists::object(Slot *elements, int64_t size, int64_t elementSlots, ListBuffer *buffer) {
  auto *list = static_cast<ListObject *>(heap_.allocate(sizeof(ListObject)));
  if (list)
    *list = {elements, size, elementSlots, buffer};
  return list;
}

ListBuffer *Lists::buffer(int64_t elementSlots, int64_t roomBefore, int64_t size,
                          int64_t roomAfter) {
  int64_t elements = roomBefore + size + roomAfter;
  if (size < 0 || elements > kMostSlots / std::max<int64_t>(elementSlots, 1))
    return nullptr;
  auto *memory = static_cast<uint8_t *>(heap_.allocate(
      sizeof(ListBuffer) + static_cast<size_t>(elements * elementSlots) * sizeof(Slot)));
  if (!memory)
    return nullptr;
  auto *result = reinterpret_cast<ListBuffer *>(memory);
  auto *slots = reinterpret_cast<Slot *>(memory + sizeof(ListBuffer));
  *result = {slots, slots + roomBefore * elementSlots, slots + (roomBefore + size) * elementSlots,
             slots + elements * elementSlots, nullptr};
  return result;
}

ListObject *Lists::copy(const ListObject *list, int64_t before, int64_t after) {
  ListBuffer *to = buffer(list->elementSlots, before, list->size, after);
  if (!to)
    return nullptr;
  copyElements(to->low, list);
  return object(to->low, list->size, list->elementSlots, to);
}

ListObject *Lists::chain(const Slot *elements, int64_t count, ListObject *rest) {
  // Many lists may continue one. The first has room in proportion to what it continues, the others
  // are branches: so all rooms together are in proportion to the elements that were written.
  bool goesOn = ownsLow(rest);
  int64_t room = goesOn ? std::min(2 * firstPiece(rest), kMostInPiece) : kBranchRoom;
  ListBuffer *to = buffer(rest->elementSlots, room, count, 0);
  if (!to)
    return nullptr;
  if (goesOn)
    rest->buffer->low = nullptr;
  copySlots(to->low, elements, count * rest->elementSlots);
  to->rest = rest;
  anyChained_ = true;
  return object(to->low, count + rest->size, rest->elementSlots, to);
}

ListObject *Lists::make(int64_t elementSlots, int64_t size) {
  ListBuffer *to = buffer(elementSlots, 0, size, 0);
  return to ? object(to->low, size, elementSlots, to) : nullptr;
}

ListObject *Lists::cons(const Slot *head, ListObject *tail) {
  int64_t slots = tail->elementSlots;
  if (!ownsLow(tail) || roomBefore(tail) < slots) {
    if (tail->size > 0 && chained_)
      return chain(head, 1, tail);
    int64_t before = ownsLow(tail) ? std::max(tail->size, kBranchRoom) : kBranchRoom;
    tail = copy(tail, before, keptAfter(tail));
    if (!tail)
      return nullptr;
  }
  ListBuffer *to = tail->buffer;
  Slot *at = to->low - slots;
  copySlots(at, head, slots);
  ListObject *list = object(at, tail->size + 1, slots, to);
  if (list)
    to->low = at;
  return list;
}

ListObject *Lists::append(ListObject *init, const Slot *last) {
  if (!join(init, init->size, init->size))
    return nullptr;
  int64_t slots = init->elementSlots;
  if (!ownsHigh(init) || roomAfter(init) < slots) {
    int64_t after = ownsHigh(init) ? std::max(init->size, kBranchRoom) : kBranchRoom;
    init = copy(init, keptBefore(init), after);
    if (!init)
      return nullptr;
  }
  ListBuffer *to = init->buffer;
  copySlots(to->high, last, slots);
  ListObject *list = object(init->elements, init->size + 1, slots, to);
  if (list)
    to->high += slots;
  return list;
}

ListObject *Lists::concat(ListObject *a, ListObject *b) {
  if (a->size == 0)
    return b;
  if (b->size == 0)
    return a;
  if (!join(a, a->size, a->size))
    return nullptr;
  int64_t slots = a->elementSlots;
  int64_t size = a->size + b->size;
  int64_t aSlots = a->size * slots, bSlots = b->size * slots;

  // Copy the shorter one next to the longer one, growing the longer one if its neighbouring slots
  // are free.
  if (b->size <= a->size && ownsHigh(a)) {
    if (roomAfter(a) < bSlots && !(a = copy(a, keptBefore(a), a->size)))
      return nullptr;
    ListBuffer *to = a->buffer;
    copyElements(to->high, b);
    ListObject *list = object(a->elements, size, slots, to);
    if (list)
      to->high += bSlots;
    return list;
  }
  if (a->size <= b->size && ownsLow(b) && (roomBefore(b) >= aSlots || !chained_)) {
    if (roomBefore(b) < aSlots && !(b = copy(b, b->size, keptAfter(b))))
      return nullptr;
    ListBuffer *to = b->buffer;
    copySlots(to->low - aSlots, a->elements, aSlots);
    ListObject *list = object(to->low - aSlots, size, slots, to);
    if (list)
      to->low -= aSlots;
    return list;
  }
  if (chained_)
    return chain(a->elements, a->size, b);
  ListBuffer *to = buffer(slots, 0, size, 0);
  if (!to)
    return nullptr;
  copySlots(to->low, a->elements, aSlots);
  copyElements(to->low + aSlots, b);
  return object(to->low, size, slots, to);
}

ListObject *Lists::slice(ListObject *list, int64_t lo, int64_t hi) {
  if (lo == 0 && hi == list->size)
    return list;
  if (lo == hi)
    return object(list->elements, 0, list->elementSlots, nullptr);
  if (inPieces(list)) {
    // A view of a list in pieces reaches to its end.
    if (hi != list->size) {
      if (!(list = flat(list)))
        return nullptr;
    } else {
      while (inPieces(list) && lo >= firstPiece(list)) {
        lo -= firstPiece(list);
        list = list->buffer->rest;
      }
      hi = list->size;
      if (lo == 0)
        return list;
    }
  }
  return object(list->elements + lo * list->elementSlots, hi - lo, list->elementSlots,
                list->buffer);
}

ListObject *Lists::reverse(ListObject *list) {
  if (!(list = flat(list)))
    return nullptr;
  ListObject *result = make(list->elementSlots, list->size);
  if (!result)
    return nullptr;
  int64_t slots = list->elementSlots;
  const Slot *from = endOf(list);
  for (Slot *to = result->elements; from != list->elements; to += slots) {
    from -= slots;
    copySlots(to, from, slots);
  }
  return result;
}

ListObject *Lists::flat(ListObject *list) {
  // Room to go on with, as a copy made while growing has.
  return join(list, list->size, 0) ? list : nullptr;
}

bool Lists::join(ListObject *list, int64_t roomBefore, int64_t roomAfter) {
  if (!inPieces(list))
    return true;
  ListBuffer *to = buffer(list->elementSlots, roomBefore, list->size, roomAfter);
  if (!to)
    return false;
  copyElements(to->low, list);
  list->elements = to->low;
  list->buffer = to;
  return true;
}

} // namespace sheaf::rt

#include "runtime/walk/live_values.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace sheaf::rt {

namespace {
/// What an element of a map or a set takes, as the standard library makes them.
constexpr uint64_t kNodeBytes = 64;
} // namespace

void LiveValues::charge(uint64_t bytes) {
  if (!meter_.charge(count_, bytes))
    throw std::bad_alloc();
  charged_ += bytes;
}

void LiveValues::begin(const RowSpace &rows, Heap *heap) {
  beginPromised();
  charge(rows.used() / 8);
  bits_.reset(rows.used());
  first_ = rows.first();
  keptBegin_ = rows.keptBegin();
  heap_ = heap;
  if (heap)
    heap->beginMarking();
}

void LiveValues::beginPromised() {
  end();
  bits_.reset(0);
  first_ = 0;
  keptBegin_ = UINT64_MAX;
  meetsKept_ = false;
  heap_ = nullptr;
  looked_ = 0;
  ++round_;
}

void LiveValues::end() {
  seen_.clear();
  followed_.clear();
  open_ = {};
  promised_ = {};
  meter_.uncharge(count_, std::exchange(charged_, 0));
}

void LiveValues::add(uint32_t type, const Slot *slots) {
  look(type, slots);
  finish();
}

void LiveValues::add(const RootFrame *frames) {
  for (const RootFrame *frame = frames; frame; frame = frame->caller) {
    const Slot *slots = frame->slots();
    if (frame->place == RootFrame::kMemory) {
      keep(std::bit_cast<const void *>(slots[0]));
      continue;
    }
    size_t place = static_cast<size_t>(frame->place);
    if (place >= model_.roots->size())
      throw InternalError("host code needs what the model does not describe");
    ++looked_;
    for (const RootDesc &root : (*model_.roots)[place]) {
      addRoot(root, slots);
      slots += root.kind == RootDesc::Value ? facts_.slots(root.type) : 2;
    }
    finish();
  }
}

void LiveValues::addRoot(const RootDesc &root, const Slot *slots) {
  switch (root.kind) {
  case RootDesc::Value:
    return look(root.type, slots);
  case RootDesc::List: {
    const auto *list = std::bit_cast<const ListObject *>(slots[0]);
    keepList(list);
    return addList(root.type, list->elements, slots[1]);
  }
  case RootDesc::Fork:
    return addFork(root.type, slots);
  case RootDesc::Forks:
    keep(std::bit_cast<const void *>(slots[0]));
    for (int64_t i = 0; i < slots[1]; ++i)
      addFork(root.type, std::bit_cast<const Slot *>(slots[0]) + 2 * i);
  }
}

void LiveValues::addFork(uint32_t type, const Slot *slots) {
  // One that has not ended has no results yet, and says itself what it needs.
  const auto *task = std::bit_cast<const Task *>(slots[0]);
  keep(static_cast<const void *>(task));
  keep(std::bit_cast<const void *>(slots[1]));
  if (!task || task->state == Task::Done)
    look(type, std::bit_cast<const Slot *>(slots[1]));
}

void LiveValues::keep(const Task &task) {
  for (const Task *at = &task; at && at->keptIn != round_; at = at->parent) {
    at->keptIn = round_;
    keep(static_cast<const void *>(at));
    keep(at->results);
  }
}

void LiveValues::keepList(const ListObject *list) {
  keep(static_cast<const void *>(list));
  // One that cannot grow is a view of memory that has no head.
  keep(list->buffer ? static_cast<const void *>(list->buffer) : list->elements);
}

void LiveValues::addList(uint32_t element, const Slot *elements, int64_t count) {
  if (count > 0 && isLookedAt(element))
    enter(elements, elements + count * facts_.slots(element),
          [&](const Slot *begin, const Slot *end) {
            open_.push_back({element, (end - begin) / facts_.slots(element), begin});
          });
}

/// Calls `visit` with the parts of a range that have not been seen.
template <typename Visit> void LiveValues::enter(const Slot *begin, const Slot *end, Visit visit) {
  auto it = seen_.upper_bound(begin);
  if (it != seen_.begin() && std::prev(it)->second >= begin)
    --it;
  const Slot *from = begin, *to = end, *at = begin;
  for (; it != seen_.end() && it->first <= end; it = seen_.erase(it)) {
    if (at < it->first)
      visit(at, it->first);
    at = std::max(at, it->second);
    from = std::min(from, it->first);
    to = std::max(to, it->second);
  }
  if (at < end)
    visit(at, end);
  charge(kNodeBytes);
  seen_.emplace(from, to);
}

void LiveValues::look(uint32_t type, const Slot *slots) {
  if (!isLookedAt(type))
    return;
  ++looked_;
  const TypeDesc &desc = model_.types.types[type];
  switch (desc.kind) {
  case TypeKind::Tensor: {
    uint64_t id = TensorHandle::unpack(slots[0]).id;
    if (PromisedRows::has(id))
      return promised_.push_back(const_cast<Slot *>(slots));
    if (id < first_ || id - first_ >= bits_.size()) { // a parameter's, or kept
      meetsKept_ |= id >= keptBegin_;
      return;
    }
    auto granules = static_cast<uint64_t>(tensorGranules(desc.shape, desc.dtype, slots + 1));
    return bits_.set(id - first_, id - first_ + granules);
  }
  case TypeKind::Tuple:
    for (uint32_t child : desc.children) {
      look(child, slots);
      slots += facts_.slots(child);
    }
    return;
  case TypeKind::List: {
    // A list may be in pieces.
    const auto *list = std::bit_cast<const ListObject *>(slots[0]);
    while (list) {
      keepList(list);
      int64_t piece = firstPiece(list);
      addList(desc.children[0], list->elements, piece);
      bool goesOn = piece < list->size && followed_.insert(list->buffer).second;
      list = goesOn ? list->buffer->rest : nullptr;
    }
    return;
  }
  case TypeKind::Data: {
    const std::vector<uint32_t> &fields = constructorOf(model_.types, desc, slots).fieldTypes;
    const Slot *object = std::bit_cast<const Slot *>(slots[0]), *end = object + 1;
    if (std::none_of(fields.begin(), fields.end(),
                     [&](uint32_t field) { return isLookedAt(field); }))
      return keep(static_cast<const void *>(object));
    for (uint32_t field : fields)
      end += facts_.slots(field);
    bool isNew = false;
    enter(object, end, [&](const Slot *, const Slot *) { isNew = true; });
    if (!isNew)
      return;
    keep(static_cast<const void *>(object));
    const Slot *at = object + 1;
    // Tensors at once: only what may be deep has to wait.
    for (uint32_t field : fields) {
      if (model_.types.types[field].kind == TypeKind::Tensor)
        look(field, at);
      else if (isLookedAt(field))
        open_.push_back({field, 1, at});
      at += facts_.slots(field);
    }
    return;
  }
  default:
    return;
  }
}

void LiveValues::finish() {
  while (!open_.empty()) {
    Open &open = open_.back();
    uint32_t type = open.type;
    const Slot *slots = open.slots;
    open.slots += facts_.slots(type);
    if (--open.count == 0)
      open_.pop_back();
    look(type, slots);
  }
}

} // namespace sheaf::rt

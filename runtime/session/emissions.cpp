#include "runtime/session/emissions.h"

#include "runtime/model/members.h"

#include <algorithm>
#include <bit>

namespace sheaf::rt {

void Emissions::beginRun(std::span<const Instance> instances) {
  instances_ = instances;
  delivered_.clear();
  for (const Instance &instance : instances)
    delivered_.push_back(instance.delivered);
}

uint64_t Emissions::ready(const Walk &walk) const {
  if (walk.failed || !walk.emitted)
    return 0;
  // A call that runs beside it may fail, and stand before it in the program.
  if (walk.open > 1)
    return walk.certain;
  return static_cast<uint64_t>(std::bit_cast<const ListObject *>(*walk.emitted)->size);
}

uint64_t Emissions::ready(const Walk &walk, uint64_t next, uint32_t depth) {
  uint64_t end = ready(walk);
  if (next >= end)
    return next;
  const auto *list = std::bit_cast<const ListObject *>(*walk.emitted);
  while (next < end &&
         depthOf(list->elements + static_cast<int64_t>(next) * list->elementSlots) <= depth)
    ++next;
  return next;
}

/// Joins the pieces of the lists in an emitted value. False when memory is too short.
bool Emissions::flatten(const Slot *value) {
  if (!recorder_.lists.anyChained() || values_.flatten(*model_.entry.emits, value))
    return true;
  recorder_.failure = {};
  return false;
}

/// The depth of the deepest tensor in an emitted value; beyond all where memory is too short to
/// look.
uint32_t Emissions::depthOf(const Slot *value) {
  uint32_t type = *model_.entry.emits, depth = 0;
  const TypeFacts &facts = values_.facts();
  if (!facts.hasTensor(type))
    return depth;
  if (!flatten(value))
    return UINT32_MAX;
  forEachTensor(
      model_.types, facts.allSlots(), {{&type, 1}, false, 1, value},
      [&](uint32_t part) { return facts.hasTensor(part); },
      [&](uint32_t, const Slot *tensor) {
        depth = std::max(depth, TensorHandle::unpack(*tensor).depth);
      });
  return depth;
}

void Emissions::handOut(const Walk &walk, uint64_t &next, uint64_t end,
                        const std::function<void(const Slot *)> &deliver) {
  while (next < end) {
    const auto *list = std::bit_cast<const ListObject *>(*walk.emitted);
    const Slot *value = list->elements + static_cast<int64_t>(next) * list->elementSlots;
    if (!flatten(value))
      return;
    ++next;
    deliver(value);
  }
}

void Emissions::afterFlush(std::span<const Walk> walks, std::span<const Outcome> outcomes) {
  if (!deliver_ || !model_.entry.emits)
    return;
  for (size_t i = 0; i < walks.size(); ++i)
    // Of one that was given up for want of memory the list may be gone.
    if (walks[i].open > 0 || outcomes[i].ok())
      handOut(walks[i], delivered_[i], ready(walks[i]),
              [&](const Slot *value) { deliver_(instances_[i], value); });
}

} // namespace sheaf::rt

#include "runtime/session/emissions.h"

#include <bit>

namespace sheaf::rt {

void Emissions::beginRun(std::span<const Instance> instances) {
  instances_ = instances;
  delivered_.clear();
  for (const Instance &instance : instances)
    delivered_.push_back(instance.delivered);
}

void Emissions::afterFlush(std::span<const Walk> walks, std::span<const Outcome> outcomes) {
  if (!deliver_ || !model_.entry.emits)
    return;
  for (size_t i = 0; i < walks.size(); ++i) {
    const Walk &walk = walks[i];
    // Of one that was given up for want of memory the list may be gone.
    if (walk.failed || !walk.emitted || (walk.open == 0 && !outcomes[i].ok()))
      continue;
    const auto *list = std::bit_cast<const ListObject *>(*walk.emitted);
    // A call that runs beside it may fail, and stand before it in the program.
    uint64_t count = walk.open > 1 ? walk.certain : static_cast<uint64_t>(list->size);
    for (uint64_t &next = delivered_[i]; next < count; ++next) {
      const Slot *value = list->elements + static_cast<int64_t>(next) * list->elementSlots;
      if (recorder_.lists.anyChained() && !values_.flatten(*model_.entry.emits, value)) {
        recorder_.failure = {};
        break;
      }
      deliver_(instances_[i], value);
    }
  }
}

} // namespace sheaf::rt

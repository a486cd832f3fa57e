// Extents that must agree in an instance.
#include "runtime/api/values.h"

#include "runtime/io/types.h"

#include <bit>
#include <unordered_set>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

void api::bindExtents(const LoadedModel &model, std::span<const uint32_t> argTypes,
                      const Slot *args) {
  struct Item {
    uint32_t type;
    const Slot *slots;
  };
  io::ExtentBinder extents(&model.model().dims);
  auto bind = [&](uint32_t type, const std::string &name, int64_t value, const char *what) {
    if (io::isFreeDim(name))
      return;
    const io::ExtentBinder::Binding *binding = extents.find(name);
    if (!io::ExtentBinder::isPlainName(name))
      extents.expect(name, value, what);
    else if (!binding)
      extents.bind(name, value, what);
    else if (binding->value != value)
      throw Invalid("the extent " + name + " of '" + model.text(type) + "' is " +
                    std::to_string(value) + " in " + what + " and " +
                    std::to_string(binding->value) + " in another of the same instance");
  };
  std::unordered_set<const Slot *> seen; // parts may stand in many places
  std::vector<Item> pending;
  auto push = [&](std::span<const uint32_t> types, const Slot *slots) {
    for (uint32_t type : types) {
      if (model.bindsExtents(type))
        pending.push_back({type, slots});
      slots += model.slots(type);
    }
  };
  push(argTypes, args);
  while (!pending.empty()) {
    Item item = pending.back();
    pending.pop_back();
    const rt::TypeDesc &type = model.types().types[item.type];
    switch (type.kind) {
    case TypeKind::Tensor: {
      const Slot *extent = item.slots;
      for (size_t axis = 0; axis < type.shape.size(); ++axis)
        if (type.shape[axis] < 0)
          bind(item.type, type.dimNames[axis], *++extent, "one tensor");
      break;
    }
    case TypeKind::Tuple:
      push(type.children, item.slots);
      break;
    case TypeKind::List: {
      const auto *list = std::bit_cast<const rt::ListObject *>(item.slots[0]);
      if (type.length == -1)
        bind(item.type, type.dimNames[0], list->size, "one list");
      if (model.bindsExtents(type.children[0]) &&
          seen.insert(std::bit_cast<const Slot *>(list)).second)
        for (int64_t i = 0; i < list->size; ++i)
          pending.push_back({type.children[0], list->elements + i * list->elementSlots});
      break;
    }
    case TypeKind::Data: {
      const auto *object = std::bit_cast<const Slot *>(item.slots[0]);
      if (seen.insert(object).second)
        push(model.types().data[type.data].ctors[static_cast<size_t>(object[0])].fieldTypes,
             object + 1);
      break;
    }
    default:
      break;
    }
  }
  if (std::string message = extents.finish(); !message.empty())
    throw Invalid(message);
}

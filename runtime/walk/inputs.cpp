#include "runtime/walk/inputs.h"

#include "runtime/model/members.h"
#include "runtime/walk/value_image.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace sheaf::rt {

TypeFacts::TypeFacts(const TypeTable &types)
    : slots_(types.types.size()), hasTensor_(types.types.size()), hasList_(types.types.size()),
      hasMemory_(types.types.size()) {
  for (uint32_t i = 0; i < types.types.size(); ++i) {
    slots_[i] = types.slots(i);
    hasTensor_[i] = types.types[i].kind == TypeKind::Tensor;
    hasList_[i] = types.types[i].kind == TypeKind::List;
    hasMemory_[i] = hasList_[i] || types.types[i].kind == TypeKind::Data;
  }
  spreadToWholes(types, hasTensor_);
  spreadToWholes(types, hasList_);
  spreadToWholes(types, hasMemory_);
}

Slot *ValueMover::allocate(int64_t slots) {
  auto *p = static_cast<Slot *>(recorder_.heap.allocate(static_cast<size_t>(slots) * sizeof(Slot)));
  if (!p)
    recorder_.setFailure({Failure::Heap, 0, 0, 0, static_cast<uint64_t>(slots) * sizeof(Slot)});
  return p;
}

const Slot *ValueMover::bringIn(std::span<const uint32_t> argTypes, const Slot *args,
                                std::span<const PresentArgument> present) {
  begins_.clear();
  int64_t slots = 0;
  bool tensors = !present.empty();
  for (uint32_t type : argTypes) {
    slots += facts_.slots(type);
    tensors |= facts_.hasTensor(type);
  }
  if (!tensors)
    return args;
  Slot *result = allocate(slots);
  if (!result)
    return nullptr;
  stack_.clear();
  Slot *to = result;
  for (size_t i = 0; i < argTypes.size(); ++i) {
    uint32_t type = argTypes[i];
    auto found = std::find_if(present.begin(), present.end(),
                              [&](const PresentArgument &one) { return one.argument == i; });
    if (found == present.end())
      stack_.push_back({type, args, to});
    else if (!takePresent(*found, type, to))
      return nullptr;
    args += facts_.slots(type);
    to += facts_.slots(type);
  }
  while (!stack_.empty()) {
    Item item = stack_.back();
    stack_.pop_back();
    if (!moveIn(item))
      return nullptr;
  }
  return result;
}

bool ValueMover::takePresent(const PresentArgument &present, uint32_t type, Slot *to) {
  const ValueImage &image = *present.image;
  Slot *copy = allocate(image.size());
  if (!copy)
    return false;
  // Computed, as all that stands there or above: what follows from it joins what runs.
  image.copyTo(copy, static_cast<uint32_t>(recorder_.computed));
  std::copy_n(copy + present.slot, facts_.slots(type), to);
  return true;
}

bool ValueMover::moveIn(const Item &item) {
  if (!facts_.hasTensor(item.type)) {
    std::copy_n(item.from, facts_.slots(item.type), item.to);
    return true;
  }
  const TypeDesc &type = types_.types[item.type];
  switch (type.kind) {
  case TypeKind::Tensor: {
    const HostTensor *tensor = HostTensor::fromInputSlot(item.from[0]);
    int64_t granules = tensor->granules();
    uint64_t id = recorder_.rowSpace.allocateNow(granules);
    if (id == RowSpace::kFull) {
      recorder_.setFailure({Failure::Rows, 0, 0, 0, static_cast<uint64_t>(granules)});
      return false;
    }
    if (begins_.empty() || id != end_)
      begins_.push_back(id);
    end_ = id + static_cast<uint64_t>(granules);
    memcpy(recorder_.rowSpace.address(id), tensor->bytes.get(),
           static_cast<size_t>(granules) * kGranuleBytes);
    recorder_.written.note(id, granules);
    // Computed, as all that stands there or above: what follows from it joins what runs.
    item.to[0] =
        TensorHandle{static_cast<uint32_t>(id), static_cast<uint32_t>(recorder_.computed)}.pack();
    std::copy_n(item.from + 1, facts_.slots(item.type) - 1, item.to + 1);
    return true;
  }
  case TypeKind::Tuple: {
    const Slot *from = item.from;
    Slot *to = item.to;
    for (uint32_t child : type.children) {
      stack_.push_back({child, from, to});
      from += facts_.slots(child);
      to += facts_.slots(child);
    }
    return true;
  }
  case TypeKind::List: {
    auto *list = std::bit_cast<const ListObject *>(item.from[0]);
    uint32_t element = type.children[0];
    ListObject *copy = recorder_.lists.make(list->elementSlots, list->size);
    if (!copy) {
      recorder_.setFailure({Failure::Heap, 0, 0, 0,
                            static_cast<uint64_t>(list->size * list->elementSlots) * sizeof(Slot)});
      return false;
    }
    item.to[0] = std::bit_cast<Slot>(copy);
    // Backwards, so that the first element is moved first and rows lie in the order of the list.
    for (int64_t i = list->size; i-- > 0;)
      stack_.push_back({element, list->elements + i * list->elementSlots,
                        copy->elements + i * list->elementSlots});
    return true;
  }
  case TypeKind::Data: {
    auto *value = std::bit_cast<const Slot *>(item.from[0]);
    const CtorDesc &ctor = types_.data[type.data].ctors[static_cast<size_t>(value[0])];
    int64_t slots = 1;
    for (uint32_t field : ctor.fieldTypes)
      slots += facts_.slots(field);
    Slot *copy = allocate(slots);
    if (!copy)
      return false;
    item.to[0] = std::bit_cast<Slot>(copy);
    copy[0] = value[0];
    const Slot *from = value + 1;
    Slot *to = copy + 1;
    for (uint32_t field : ctor.fieldTypes) {
      stack_.push_back({field, from, to});
      from += facts_.slots(field);
      to += facts_.slots(field);
    }
    return true;
  }
  default:
    return true;
  }
}

bool ValueMover::flatten(uint32_t resultType, const Slot *slots) {
  if (!facts_.hasList(resultType))
    return true;
  // Results may share parts, so each list and data value is visited once.
  std::unordered_set<Slot> seen;
  stack_.clear();
  stack_.push_back({resultType, slots, nullptr});
  while (!stack_.empty()) {
    Item item = stack_.back();
    stack_.pop_back();
    if (!facts_.hasList(item.type))
      continue;
    const TypeDesc &type = types_.types[item.type];
    const Slot *from = item.from;
    if (type.kind == TypeKind::Tuple) {
      for (uint32_t child : type.children) {
        stack_.push_back({child, from, nullptr});
        from += facts_.slots(child);
      }
      continue;
    }
    if (!seen.insert(from[0]).second)
      continue;
    if (type.kind == TypeKind::List) {
      auto *list = std::bit_cast<ListObject *>(from[0]);
      if (!recorder_.lists.flat(list)) {
        recorder_.setFailure(
            {Failure::Heap, 0, 0, 0,
             static_cast<uint64_t>(list->size * list->elementSlots) * sizeof(Slot)});
        return false;
      }
      if (facts_.hasList(type.children[0]))
        for (int64_t i = 0; i < list->size; ++i)
          stack_.push_back({type.children[0], list->elements + i * list->elementSlots, nullptr});
    } else if (type.kind == TypeKind::Data) {
      auto *value = std::bit_cast<const Slot *>(from[0]);
      const CtorDesc &ctor = types_.data[type.data].ctors[static_cast<size_t>(value[0])];
      from = value + 1;
      for (uint32_t field : ctor.fieldTypes) {
        stack_.push_back({field, from, nullptr});
        from += facts_.slots(field);
      }
    }
  }
  return true;
}

} // namespace sheaf::rt

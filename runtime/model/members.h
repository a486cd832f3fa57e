//===- members.h - What lists, tuples and data have inside ------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_MEMBERS_H
#define SHEAF_RUNTIME_MODEL_MEMBERS_H

#include "runtime/model/layout.h"

#include <bit>
#include <utility>

namespace sheaf::rt {

/// Members of a value, one after the other. A walk through a value of any depth keeps these on a
/// stack of its own and takes the first ones off.
struct Members {
  std::span<const uint32_t> types; ///< of each member, or of all
  bool sameType = false;           ///< list: all members are types[0]
  int64_t count = 0;
  const Slot *first = nullptr;

  /// Takes the first member off: its type and its slots. `slots`: TypeTable::slots by type.
  std::pair<uint32_t, const Slot *> take(std::span<const int64_t> slots) {
    std::pair<uint32_t, const Slot *> member(types[0], first);
    first += slots[types[0]];
    --count;
    if (!sameType)
      types = types.subspan(1);
    return member;
  }
};

/// Calls `visit(type)` once for each of these types and of all that values of them may hold.
template <typename Visit>
void forEachReachable(const TypeTable &types, std::vector<uint32_t> pending, Visit visit) {
  std::vector<bool> reached(types.types.size());
  while (!pending.empty()) {
    uint32_t type = pending.back();
    pending.pop_back();
    if (reached[type])
      continue;
    reached[type] = true;
    visit(type);
    const TypeDesc &desc = types.types[type];
    pending.insert(pending.end(), desc.children.begin(), desc.children.end());
    if (desc.kind == TypeKind::Data)
      for (const CtorDesc &ctor : types.data[desc.data].ctors)
        pending.insert(pending.end(), ctor.fieldTypes.begin(), ctor.fieldTypes.end());
  }
}

/// The same, by type.
inline std::vector<bool> reachableTypes(const TypeTable &types, std::vector<uint32_t> from) {
  std::vector<bool> reached(types.types.size());
  forEachReachable(types, std::move(from), [&](uint32_t type) { reached[type] = true; });
  return reached;
}

/// Of a property of types, which `has` says by type: makes it that of all types whose values may
/// hold one that has it.
inline void spreadToWholes(const TypeTable &types, std::vector<bool> &has) {
  // Types are recursive, so: until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < types.types.size(); ++i) {
      auto absorb = [&](uint32_t part) {
        if (has[part] && !has[i])
          has[i] = changed = true;
      };
      const TypeDesc &type = types.types[i];
      for (uint32_t child : type.children)
        absorb(child);
      if (type.kind == TypeKind::Data)
        for (const CtorDesc &ctor : types.data[type.data].ctors)
          for (uint32_t field : ctor.fieldTypes)
            absorb(field);
    }
  }
}

/// The constructor that made a value of data.
inline const CtorDesc &constructorOf(const TypeTable &types, const TypeDesc &type,
                                     const Slot *slots) {
  const auto *object = std::bit_cast<const Slot *>(*slots);
  return types.data[type.data].ctors[static_cast<size_t>(object[0])];
}

/// The members of a list, a tuple or data of type `type`; none of anything else.
inline Members membersOf(const TypeTable &types, uint32_t type, const Slot *slots) {
  const TypeDesc &desc = types.types[type];
  switch (desc.kind) {
  case TypeKind::List: {
    const auto *list = std::bit_cast<const ListObject *>(*slots);
    return {desc.children, true, list->size, list->elements};
  }
  case TypeKind::Tuple:
    return {desc.children, false, static_cast<int64_t>(desc.children.size()), slots};
  case TypeKind::Data: {
    const std::vector<uint32_t> &fields = constructorOf(types, desc, slots).fieldTypes;
    return {fields, false, static_cast<int64_t>(fields.size()),
            std::bit_cast<const Slot *>(*slots) + 1};
  }
  default:
    return {};
  }
}

/// Calls `visit(type, slots)` for each tensor in these values, depth first and left to right.
/// `slots`: TypeTable::slots by type; `mayHold(type)`: whether it is worth looking into.
template <typename MayHold, typename Visit>
void forEachTensor(const TypeTable &types, std::span<const int64_t> slots, Members values,
                   MayHold mayHold, Visit visit) {
  std::vector<Members> pending{values}; // values may be as deep as memory allows
  while (!pending.empty()) {
    if (pending.back().count == 0) {
      pending.pop_back();
      continue;
    }
    auto [type, value] = pending.back().take(slots);
    if (types.types[type].kind == TypeKind::Tensor)
      visit(type, value);
    else if (mayHold(type))
      pending.push_back(membersOf(types, type, value));
  }
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_MEMBERS_H

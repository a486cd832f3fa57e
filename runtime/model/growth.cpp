#include "runtime/model/growth.h"

#include <algorithm>
#include <set>

namespace sheaf::rt {

namespace {

/// Of more no row has memory.
constexpr double kMostElements = 0x1p40;

bool holdsTensors(const TypeTable &types, uint32_t type) {
  std::vector<uint32_t> pending{type};
  std::set<uint32_t> seen;
  while (!pending.empty()) {
    uint32_t next = pending.back();
    pending.pop_back();
    if (!seen.insert(next).second)
      continue;
    const TypeDesc &desc = types.types[next];
    if (desc.kind == TypeKind::Tensor)
      return true;
    pending.insert(pending.end(), desc.children.begin(), desc.children.end());
    if (desc.kind == TypeKind::Data)
      for (const CtorDesc &ctor : types.data[desc.data].ctors)
        pending.insert(pending.end(), ctor.fieldTypes.begin(), ctor.fieldTypes.end());
  }
  return false;
}

std::optional<int64_t> ofTensor(const TypeDesc &type) {
  auto own = std::count_if(type.shape.begin(), type.shape.end(), [](int64_t e) { return e < 0; });
  if (own == 0)
    return 0;
  // Elements of a vector share granules.
  if (own > 1 || type.shape.front() >= 0 || type.shape.size() < 2)
    return std::nullopt;
  double elements = 1; // of the innermost axis there may be a granule more
  for (int64_t extent : std::span(type.shape).subspan(1))
    elements *= static_cast<double>(std::max<int64_t>(extent, 1));
  if (elements > kMostElements)
    return std::nullopt;
  return tensorGranules(std::span(type.shape).subspan(1), type.dtype) * kGranuleBytes;
}

} // namespace

std::optional<int64_t> growthBytes(const TypeTable &types, uint32_t type) {
  if (!holdsTensors(types, type))
    return 0;
  const TypeDesc &desc = types.types[type];
  if (desc.kind == TypeKind::Tensor)
    return ofTensor(desc);
  if (desc.kind == TypeKind::Data)
    return std::nullopt;
  int64_t bytes = 0;
  for (uint32_t child : desc.children) {
    std::optional<int64_t> own = growthBytes(types, child);
    if (!own)
      return std::nullopt;
    if (__builtin_add_overflow(bytes, *own, &bytes))
      return std::nullopt;
  }
  if (desc.kind == TypeKind::List) {
    int64_t length = desc.length.value_or(-1);
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes))
      return std::nullopt;
  }
  return bytes;
}

} // namespace sheaf::rt

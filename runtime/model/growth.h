//===- growth.h - What a row more takes -------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_GROWTH_H
#define SHEAF_RUNTIME_MODEL_GROWTH_H

#include "runtime/model/layout.h"

#include <optional>

namespace sheaf::rt {

/// Bytes of rows that a value of this type has more when every tensor in it whose first extent is
/// the instance's own gets a row more: those of a cache for a token. Nothing where the type does
/// not say: other extents, or the number of tensors, are the instance's own.
std::optional<int64_t> growthBytes(const TypeTable &types, uint32_t type);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_GROWTH_H

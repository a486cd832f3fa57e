//===- Slots.h - What values take in host code ------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_SLOTS_H
#define SHEAF_COMPILER_ANALYSIS_SLOTS_H

#include "mlir/IR/Types.h"

#include <cstdint>

namespace sheaf::passes {

/// Slots of a value of a type (runtime/model/layout.h).
int64_t slotCount(mlir::Type type);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_SLOTS_H

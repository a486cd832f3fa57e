//===- Growth.h - What grows step by step -----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_GROWTH_H
#define SHEAF_COMPILER_ANALYSIS_GROWTH_H

#include "mlir/IR/Operation.h"

namespace sheaf::passes {

/// Whether an operation that appends to a list or to the rows of a tensor is the only one to make a
/// version longer that the loop around it carries, and no version goes elsewhere. Then elements are
/// copied twice at most, on average, however long it becomes.
bool growsInPlace(mlir::Operation *op);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_GROWTH_H

//===- Growth.h - What grows step by step -----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_GROWTH_H
#define SHEAF_COMPILER_ANALYSIS_GROWTH_H

#include "mlir/IR/Operation.h"

namespace sheaf::passes {

/// The loop around an operation that appends to a list or to the rows of a tensor, or the function
/// that calls itself, which goes on with the longest version from turn to turn: no older one is
/// made longer, or kept where that could be. Then elements are copied twice at most, on average,
/// however long it becomes. Null where that is not known.
///
/// What grows may be what the loop carries, or stand in a tuple or a list of that, as the caches of
/// all layers do; of a list every element must grow in each turn, or the list goes on as it is.
mlir::Operation *growsInTurnsOf(mlir::Operation *op);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_GROWTH_H

//===- Guards.h - Which checks an operator comes after ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_GUARDS_H
#define SHEAF_COMPILER_ANALYSIS_GUARDS_H

#include "compiler/ir/Program.h"

#include "llvm/ADT/DenseMap.h"

namespace sheaf::passes {

/// The last check of a region block that each of these operations comes after.
using Guards = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// The guards of tensor code whose extents may disagree with each other, or with a number: if they
/// do, it would read outside of its operands. A check that comes before it, about one of these
/// extents, ends the instance before. (Positions and indices need no guard: kernels hold them
/// between the first and the last.)
Guards guardsIn(mlir::Block &block);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_GUARDS_H

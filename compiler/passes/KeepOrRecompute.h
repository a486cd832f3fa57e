//===- KeepOrRecompute.h - What a backward block reads ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_KEEPORRECOMPUTE_H
#define SHEAF_COMPILER_PASSES_KEEPORRECOMPUTE_H

#include "compiler/ir/Program.h"

#include "llvm/ADT/SetVector.h"

namespace sheaf::passes {

/// A backward block begins as a copy of the forward block with the gradients after it. Values of
/// the copy that the gradients need may be kept by the forward block, or computed once more from
/// others that are. Products and reductions are not computed again, but for products that leave
/// more than they read, such as scores, and what reduces these; of all choices that leave, this is
/// the one that keeps the fewest bytes (a minimum cut), and of equal ones the values closest to
/// where they are needed, which saves most work.
///
/// `copied`: the operations of the copy, in order. `isThere`: the value is kept in any case.
/// `isFactor`: it is kept as bf16.
/// Returns the values to be kept or there, as far as they are needed.
llvm::SetVector<mlir::Value> chooseKept(llvm::ArrayRef<mlir::Operation *> copied,
                                        llvm::function_ref<bool(mlir::Value)> isThere,
                                        llvm::function_ref<bool(mlir::Value)> isFactor);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_KEEPORRECOMPUTE_H

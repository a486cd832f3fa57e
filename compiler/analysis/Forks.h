//===- Forks.h - Who waits for what was forked ------------------*- C++ -*-===//
//
// A fork is a call, or a branch that calls, that runs beside what follows it. Whatever needs its
// results waits for it, but for arguments of other forks: these wait for it themselves.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_FORKS_H
#define SHEAF_COMPILER_ANALYSIS_FORKS_H

#include "compiler/ir/Program.h"

namespace sheaf::passes {

/// Whether a call, or the branch of an `if` or `match` that is taken, may run beside what follows.
inline bool isForked(mlir::Operation *op) { return op->hasAttr(ir::kForkAttr); }

/// A fork, and the operations of its block that only take its results apart: these wait for
/// nothing, either. Whoever is taken apart stands before what it is taken apart by.
llvm::SmallVector<mlir::Operation *> partsOf(mlir::Operation *fork);

/// Whether `op`, which stands in the same block, is or holds a fork that takes results of `fork` as
/// arguments.
bool isHandedTo(mlir::Operation *fork, mlir::Operation *op);

/// Whether `op`, of the same block, needs results of `fork` to go on.
bool waitsFor(mlir::Operation *op, mlir::Operation *fork);

/// Whether anything after `op`, of the same block, uses results of `fork`.
bool isUsedBehind(mlir::Operation *fork, mlir::Operation *op);

/// The first operation after `op` for which `reads` holds and that can do so before `op` has
/// ended, if `op` is a fork; or null. With `whole` as if that were a fork of which the operations
/// `with` are part, and which is handed what it needs.
mlir::Operation *readsBeside(mlir::Operation *op, llvm::function_ref<bool(mlir::Operation *)> reads,
                             const llvm::SmallPtrSet<mlir::Operation *, 8> &with = {},
                             mlir::Operation *whole = nullptr);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_FORKS_H

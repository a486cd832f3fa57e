//===- Invariants.h - What a loop computes alike at every step --*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_INVARIANTS_H
#define SHEAF_COMPILER_PASSES_INVARIANTS_H

#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <vector>

namespace sheaf::passes {

/// What may run before one loop, in the order of the program. What it takes that is free (views,
/// constants, what weights alone make) may stand inside of the loop, to be copied.
struct InvariantBatch {
  mlir::Operation *loop;
  mlir::SmallVector<mlir::Operation *> ops;     ///< in any case
  mlir::SmallVector<mlir::Operation *> guarded; ///< if the list has elements
};

/// Decides what moves. Remarks tell of it, and of what stays though it would be worth a record.
class Invariants {
public:
  /// Looks at the module as it is now.
  Invariants(mlir::ModuleOp module, PassContext &context);
  ~Invariants();
  /// Of a function that has not been changed since.
  std::vector<InvariantBatch> find(mlir::func::FuncOp func);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_INVARIANTS_H

//===- CallGraph.h - Who calls whom -----------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_CALLGRAPH_H
#define SHEAF_COMPILER_ANALYSIS_CALLGRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace sheaf::passes {

/// The call graph of a module at the time of construction.
class CallGraph {
public:
  explicit CallGraph(mlir::ModuleOp module);

  /// Functions with callees before callers (members of one cycle in any order).
  const std::vector<mlir::func::FuncOp> &bottomUp() const { return order_; }
  /// Whether the function may call itself, directly or through others.
  bool isRecursive(mlir::func::FuncOp func) const { return recursive_.contains(func); }
  /// Whether both are the same or call each other.
  bool sameCycle(mlir::func::FuncOp a, mlir::func::FuncOp b) const {
    return component_.lookup(a) == component_.lookup(b);
  }
  /// The callees of a function, each once, in order of their first call.
  const std::vector<mlir::func::FuncOp> &callees(mlir::func::FuncOp func) const {
    return callees_.find(func)->second;
  }

  /// Adds every function that calls one of these, directly or through others.
  void addCallers(llvm::DenseSet<mlir::Operation *> &functions) const;
  /// The functions that may wait for a tensor: those that read, and their callers.
  llvm::DenseSet<mlir::Operation *> readers() const;
  /// Those that may emit.
  llvm::DenseSet<mlir::Operation *> emitters() const;

private:
  std::vector<mlir::func::FuncOp> functions_, order_;
  llvm::DenseMap<mlir::Operation *, std::vector<mlir::func::FuncOp>> callees_, callers_;
  llvm::DenseMap<mlir::Operation *, unsigned> component_;
  llvm::DenseSet<mlir::Operation *> recursive_;
};

/// Erases private functions that no public one reaches, nor the run time (ir::kFoldedAttr). Returns
/// how many.
unsigned dropUnreachable(mlir::ModuleOp module);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_CALLGRAPH_H

//===- Recurrences.h - What depends on what a recursion carries -*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_RECURRENCES_H
#define SHEAF_COMPILER_PASSES_RECURRENCES_H

#include "compiler/analysis/CallGraph.h"

namespace sheaf::passes {

/// The recursions of a Program: folds and scans, whose bodies take what they gave for the element
/// before, and functions that call themselves, which take what these calls give, or hand on what
/// they have computed. Of a value in one it is known whether its tensors depend on what is
/// carried. What does not is there before the recursion runs, however deep it goes. At the time of
/// construction, before there are blocks.
class Recurrences {
public:
  explicit Recurrences(mlir::ModuleOp module);

  /// Of the recursions around an operation, from the outermost to the innermost, the number of the
  /// last one that the value depends on; 0: of none.
  unsigned depth(mlir::Value value, mlir::Operation *at);
  /// Whether the recursion of this number (1 or more) waits for tensors: what could run before it
  /// would be recorded no earlier.
  bool reads(mlir::Operation *at, unsigned number);

private:
  using Values = llvm::DenseSet<mlir::Value>;
  struct Recursion {
    Values carried; ///< what depends on it
    bool reads = false;
  };

  const std::vector<const Recursion *> &around(mlir::Operation *at);
  const Recursion &ofLoop(mlir::Operation *loop);
  const Recursion &ofFunction(mlir::func::FuncOp func);
  void spread(Values &values, llvm::SmallVector<mlir::Value> work, mlir::func::FuncOp cycle,
              llvm::SmallVectorImpl<mlir::Value> *handedOn) const;

  mlir::ModuleOp module_;
  mlir::SymbolTable symbols_;
  CallGraph calls_;
  llvm::DenseSet<mlir::Operation *> readers_;
  /// Of a loop, or of the first function of a cycle.
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Recursion>> recursions_;
  llvm::DenseMap<mlir::Block *, std::vector<const Recursion *>> around_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_RECURRENCES_H

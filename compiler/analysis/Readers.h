//===- Readers.h - What may wait for a tensor, or emit ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_READERS_H
#define SHEAF_COMPILER_ANALYSIS_READERS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace sheaf::passes {

/// Which operations may wait for a tensor when they run: reads, calls of functions that read,
/// directly or through others, and what has such in its regions. Likewise which may emit.
class Readers {
public:
  explicit Readers(mlir::ModuleOp module);

  bool any() const { return !reading_.empty(); }
  bool reads(mlir::Operation *root) const;
  bool reads(mlir::Block &block) const {
    return llvm::any_of(block, [&](mlir::Operation &op) { return reads(&op); });
  }
  /// Whether it may call a function that reads.
  bool callsReader(mlir::Operation *root) const;
  bool callsReader(mlir::Block &block) const {
    return llvm::any_of(block, [&](mlir::Operation &op) { return callsReader(&op); });
  }

  /// Whether it may emit, or call a function that does.
  bool emits(mlir::Operation *root) const;

private:
  bool isReadingCall(mlir::Operation *op) const;

  mlir::SymbolTable symbols_;
  llvm::DenseSet<mlir::Operation *> reading_, emitting_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_READERS_H

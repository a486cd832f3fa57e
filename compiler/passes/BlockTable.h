//===- BlockTable.h - The blocks of a module --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_BLOCKTABLE_H
#define SHEAF_COMPILER_PASSES_BLOCKTABLE_H

#include "compiler/ir/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/StringMap.h"

namespace sheaf::passes {

/// Erases the operations of a block that nothing follows from.
void eraseUnused(ir::BlockOp block);

/// Keeps one block of each structure and names it.
class BlockTable {
public:
  explicit BlockTable(mlir::ModuleOp module) : module_(module), symbols_(module) {}

  /// Takes a block that is in no module yet. Returns the block of the same structure (operators,
  /// types and attributes; locations do not count) that the module has; the given one becomes it,
  /// named after `function`, if there is none.
  ir::BlockOp intern(ir::BlockOp block, llvm::StringRef function);

  ir::ParamOp param(mlir::FlatSymbolRefAttr name) {
    return symbols_.lookup<ir::ParamOp>(name.getAttr());
  }

  /// Records a block that makes a constant tensor for those of its users that stay in host code.
  void recordFill(mlir::Operation *fill, llvm::StringRef function);

  /// Gives an operator over a list (`stack`) the blocks that the host code records for it:
  /// `sheaf.copy` copies one element into its place among the rows that all elements share,
  /// a tensor of type `sheaf.rows`; `sheaf.arrange`, there when those rows are not the result yet,
  /// makes the result of them.
  void attachCopy(ir::ApplyOp apply, llvm::StringRef function);

  /// Gives an operator that appends rows the block, `sheaf.copy`, that copies granules, whatever
  /// they hold.
  void attachRowCopy(ir::ApplyOp apply, llvm::StringRef function);

  int64_t distinct() const { return blocks_.size(); }
  int64_t uses() const { return uses_; }

private:
  /// A block of one argument.
  mlir::FlatSymbolRefAttr
  unaryBlock(mlir::Location loc, mlir::RankedTensorType type, llvm::StringRef function,
             llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::Value)> body);

  mlir::ModuleOp module_;
  mlir::SymbolTable symbols_;
  llvm::StringMap<ir::BlockOp> blocks_;
  llvm::StringMap<int64_t> perFunction_;
  int64_t uses_ = 0;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_BLOCKTABLE_H

//===- OwnOperands.h - Operands that each block makes itself ----*- C++ -*-===//
//
// A kernel packs what a view of a weight shows, so inside of a block a view costs nothing. Made in
// another block it would be a row of every record, and what takes it a product by a matrix of the
// instance's own. And what follows from places and numbers alone, such as a mask of keys that a row
// sees, tells a kernel what it need not compute, if it is made there; made elsewhere it would be
// read. So each block has its own.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_PASSES_OWNOPERANDS_H
#define SHEAF_COMPILER_PASSES_OWNOPERANDS_H

#include "compiler/analysis/Grouping.h"

namespace sheaf::passes {

/// Whether a tensor is a parameter that was transposed, cut or given another shape.
bool isViewOfWeight(mlir::Value value);

/// Copies of such operands for what stands together, each made once.
class OwnOperands {
public:
  /// The copy of an operand, made unless it is known, before `place`, or if that is null after what
  /// is copied; what is made goes to `made`.
  mlir::Value of(mlir::Value operand, mlir::Operation *place,
                 llvm::SmallVectorImpl<mlir::Operation *> &made);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> copies_;
};

/// Tensor code that takes such an operand from an enclosing region gets it in its own.
void copyIntoRegions(mlir::func::FuncOp func);

/// Groups that take such operands of other groups get their own.
void copyIntoGroups(std::vector<Group> &groups);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_OWNOPERANDS_H

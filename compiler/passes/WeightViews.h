//===- WeightViews.h - Views of weights where they are taken ----*- C++ -*-===//
//
// A kernel packs what a view of a weight shows, so inside of a block a view costs nothing. Made in
// another block it would be a row of every record, and what takes it a product by a matrix of the
// instance's own. So each block has its own.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_PASSES_WEIGHTVIEWS_H
#define SHEAF_COMPILER_PASSES_WEIGHTVIEWS_H

#include "compiler/analysis/Grouping.h"

namespace sheaf::passes {

/// Whether a tensor is a parameter that was transposed, cut or given another shape.
bool isViewOfWeight(mlir::Value value);

/// Copies of views for what stands together, each made once.
class OwnViews {
public:
  /// The copy of a view, made unless it is known, before `place`, or if that is null after what is
  /// copied; what is made goes to `made`.
  mlir::Value of(mlir::Value view, mlir::Operation *place,
                 llvm::SmallVectorImpl<mlir::Operation *> &made);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> copies_;
};

/// Tensor code that takes a view from an enclosing region gets it in its own.
void copyViewsIntoRegions(mlir::func::FuncOp func);

/// Groups that take views of other groups get their own.
void copyViewsIntoGroups(std::vector<Group> &groups);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_WEIGHTVIEWS_H

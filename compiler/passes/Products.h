//===- Products.h - Products and the weights that they take -----*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_PRODUCTS_H
#define SHEAF_COMPILER_PASSES_PRODUCTS_H

#include "compiler/analysis/OpQueries.h"

namespace sheaf::passes {

inline mlir::RankedTensorType tensorTypeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}

/// Products in program order, but for those of which it matters which operand is which.
inline llvm::SmallVector<ir::ApplyOp> productsIn(mlir::ModuleOp module) {
  llvm::SmallVector<ir::ApplyOp> products;
  module.walk([&](ir::ApplyOp apply) {
    if (auto *rule = batchRule<ops::Product>(apply); rule && !rule->leavesOutZeros)
      products.push_back(apply);
  });
  return products;
}

/// What a transposition of the last two axes is of, else null.
inline mlir::Value transposedBy(mlir::Value value) {
  mlir::Operation *def = value.getDefiningOp();
  if (!moves(def, ops::Movement::Transpose))
    return {};
  int64_t rank = ops::rankOf(value);
  auto apply = mlir::cast<ir::ApplyOp>(def);
  int64_t one = ops::axisOf(apply, "axis1", -2, rank),
          other = ops::axisOf(apply, "axis2", -1, rank);
  bool areLast = std::min(one, other) == rank - 2 && std::max(one, other) == rank - 1;
  return areLast ? apply.getOperand(0) : mlir::Value();
}

/// Whether it is a matrix of a batch by a number of the host.
inline bool isPickByHost(mlir::Value value) {
  mlir::Operation *def = value.getDefiningOp();
  auto *address = batchRule<ops::HostAddress>(def);
  return address && address->kind == ops::HostAddress::Row && ops::rankOf(def->getOperand(0)) == 3;
}

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_PRODUCTS_H

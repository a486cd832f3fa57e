//===- Gradient.h - What gradient rules share -------------------*- C++ -*-===//
//
// A rule sees one application inside a block that is being differentiated and makes the gradients
// of its operands out of plain operators: nothing that expands, for blocks hold none of those.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_GRADIENT_H
#define SHEAF_COMPILER_OPS_GRADIENT_H

#include "compiler/ops/Expand.h"

#include "llvm/ADT/StringMap.h"

namespace sheaf::ops {

struct GradientCall {
  mutable ir::ApplyOp apply;          ///< its operands and results are values of the forward pass
  std::vector<mlir::Value> gradients; ///< of its results; null where none arrives
  std::vector<bool> wanted;           ///< which operands' gradients are needed

  mlir::Value x(size_t operand) const { return apply->getOperand(operand); }
  mlir::Value y(size_t result = 0) const { return apply->getResult(result); }
  mlir::Value dy(size_t result = 0) const { return gradients[result]; }
};

/// Gradient rules by the operators' names.
using GradientRules = llvm::StringMap<Gradient>;

/// The families; each adds its operators' rules.
void addElementwiseGradients(GradientRules &rules);
void addMovementGradients(GradientRules &rules);
void addProductGradients(GradientRules &rules);

/// The gradient of a tensor that was broadcast: summed over what it was repeated along.
mlir::Value sumToShapeOf(ExpandBuilder &b, mlir::Value gradient, mlir::Value x);
/// Zeros with the extents and the element type of a tensor.
mlir::Value zerosLike(ExpandBuilder &b, mlir::Value x);

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_GRADIENT_H

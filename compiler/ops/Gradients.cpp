//===- Gradients.cpp - How every operator is differentiated ---------------===//

#include "compiler/ops/Gradient.h"

#include "compiler/ops/Shape.h"

namespace sheaf::ops {

using mlir::Value;

Value sumToShapeOf(ExpandBuilder &b, Value gradient, Value x) {
  while (rankOf(gradient) > rankOf(x))
    gradient = reduceAxis(b, "reduce_sum", gradient, 0, false);
  auto is1 = [](Value v, int64_t axis) {
    return mlir::cast<mlir::RankedTensorType>(v.getType()).getDimSize(axis) == 1;
  };
  for (int64_t axis = 0; axis < rankOf(x); ++axis)
    if (is1(x, axis) && !is1(gradient, axis))
      gradient = reduceAxis(b, "reduce_sum", gradient, axis, true);
  return gradient;
}

Value zerosLike(ExpandBuilder &b, Value x) {
  Value zeros = applyOne(b, "full", {}, {{"value", 0.0}, {"dims", extentsOf(b, x)}});
  return narrow(b, zeros, dtypeOf(x));
}

void addGradients(std::vector<Op> &ops) {
  GradientRules rules;
  addElementwiseGradients(rules);
  addMovementGradients(rules);
  addProductGradients(rules);
  for (Op &op : ops) {
    if (op.gradient.kind != Gradient::Unstated)
      continue;
    if (auto it = rules.find(op.name); it != rules.end())
      op.gradient = it->second;
    else if (std::holds_alternative<Expand>(op.batch))
      op.gradient = {Gradient::Expansion};
    else if (std::holds_alternative<HostAddress>(op.batch))
      op.gradient = {Gradient::Rows};
  }
}

} // namespace sheaf::ops

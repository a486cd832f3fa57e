//===- Gradients.cpp - How every operator is differentiated ---------------===//

#include "compiler/ops/Gradient.h"

#include "compiler/ops/Shape.h"

namespace sheaf::ops {

using mlir::Value;

// The last axes first: sums along rows leave little, and go with blocks of these rows
// (kernels/plan/RowBlocks.cpp).
Value sumToShapeOf(ExpandBuilder &b, Value gradient, Value x) {
  auto is1 = [](Value v, int64_t axis) {
    return mlir::cast<mlir::RankedTensorType>(v.getType()).getDimSize(axis) == 1;
  };
  int64_t more = rankOf(gradient) - rankOf(x);
  for (int64_t axis = rankOf(x); axis-- > 0;)
    if (is1(x, axis) && !is1(gradient, axis + more))
      gradient = reduceAxis(b, "reduce_sum", gradient, axis + more, true);
  while (more-- > 0)
    gradient = reduceAxis(b, "reduce_sum", gradient, more, false);
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

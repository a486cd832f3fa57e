//===- ExpandOperators.cpp - Operators made of simpler ones ---------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Parts along an extent of the instance become parts whose extents host code knows: whether and
/// how it divides may follow from other extents than those that a kernel sees.
void splitByHost(ir::ApplyOp split) {
  auto type = cast<RankedTensorType>(split.getOperand(0).getType());
  int64_t axis = ops::axisOf(split, "axis", 0, type.getRank());
  if (!type.isDynamicDim(static_cast<unsigned>(axis)))
    return;
  ImplicitLocOpBuilder b(split.getLoc(), split);
  Value x = split.getOperand(0);
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)).getResult();
  };
  Value whole = ops::extentValue(b, ops::extentOf(b, x, axis));
  Value size = ir::DivOp::create(b, whole, number(split.getNumResults()));
  for (OpResult result : split->getResults()) {
    Value start = arith::MulIOp::create(b, size, number(result.getResultNumber()));
    Value part = ops::makePart(b, x, ops::Extent(start), ops::Extent(size), axis);
    part.setType(result.getType());
    result.replaceAllUsesWith(part);
  }
  split.erase();
}

LogicalResult expandOperators(ModuleOp module, PassContext &context) {
  llvm::MapVector<StringRef, int64_t> counts;
  if (failed(ops::expandAll(module, [&](const ops::Op &op) { ++counts[op.name]; })))
    return failure();
  module.walk([](ir::ApplyOp apply) {
    if (moves(apply, ops::Movement::Split))
      splitByHost(apply);
  });
  for (auto [name, count] : counts)
    context.remark(module.getLoc(), Twine(count) + " times " + name + " expanded");
  return success();
}

} // namespace

PassRecord expandOperatorsPass() {
  return {.name = "expand-operators",
          .description = "Rewrites operators whose record has an Expand rule (softmax, layer_norm, "
                         "cross_entropy, ...) into operators that kernels know.",
          .run = expandOperators,
          .required = true,
          .after = Level::Plain};
}

} // namespace sheaf::passes

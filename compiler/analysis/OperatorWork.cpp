//===- OperatorWork.cpp - About how much an operator computes -------------===//

#include "compiler/analysis/OperatorWork.h"

#include "compiler/analysis/OpQueries.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Measured on kernels of sigmoid and tanh against products of f32[1, 128] and f32[128, 256].
constexpr double kFunction = 32, kDivision = 8;
/// Of a list whose length nobody knows.
constexpr double kListElements = 4;
/// One lane costs as much as these.
constexpr double kVector = 16;

double elementsOf(Type type) {
  double elements = 1;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t extent : tensor.getShape())
      elements *= ShapedType::isDynamic(extent) ? 1 : static_cast<double>(extent);
  return elements;
}

double workOfLanes(Operation &op) {
  if (isa<arith::ConstantOp>(op))
    return 0;
  if (isa<arith::DivFOp, arith::RemFOp, math::SqrtOp>(op))
    return kDivision;
  bool isFunction = isa<math::MathDialect>(op.getDialect()) &&
                    !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::FmaOp>(op);
  return isFunction ? kFunction : 1;
}

/// What lanes of this type compute in.
Type laneType(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && isa<RankedTensorType>(type)
             ? Float32Type::get(type.getContext())
             : element;
}

} // namespace

double OperatorWork::ofElement(Operation *apply) {
  auto *rule = batchRule<ops::Elementwise>(apply);
  auto [it, isNew] = perElement_.try_emplace(cast<ir::ApplyOp>(apply).getOp(), 1);
  if (!rule || !isNew)
    return it->second;
  // The operator's own code for one lane tells.
  Block lane;
  SmallVector<Value> operands;
  for (Value operand : apply->getOperands())
    operands.push_back(lane.addArgument(laneType(operand.getType()), apply->getLoc()));
  ImplicitLocOpBuilder builder(apply->getLoc(), apply->getContext());
  builder.setInsertionPointToEnd(&lane);
  rule->emit(builder, operands);
  double work = 0;
  for (Operation &op : lane)
    work += workOfLanes(op);
  return it->second = work;
}

double OperatorWork::of(Operation *apply) {
  if (batchRule<ops::Product>(apply)) {
    // Every element of the result is a sum as long as the left operand's last axis.
    auto left = cast<RankedTensorType>(apply->getOperand(0).getType());
    int64_t terms = left.getRank() == 0 ? 1 : left.getShape().back();
    return elementsOf(apply->getResult(0).getType()) *
           (ShapedType::isDynamic(terms) ? 1 : static_cast<double>(terms));
  }
  double elements = 0;
  for (Type type : apply->getResultTypes())
    elements += elementsOf(type);
  if (batchRule<ops::Reduction>(apply))
    elements = elementsOf(apply->getOperand(0).getType());
  if (batchRule<ops::Fold>(apply))
    elements *= kListElements;
  return std::max(elements, kVector) * ofElement(apply);
}

bool hasUnknownExtents(Operation *op) {
  auto isUnknown = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !tensor.hasStaticShape();
  };
  return llvm::any_of(op->getOperandTypes(), isUnknown) ||
         llvm::any_of(op->getResultTypes(), isUnknown);
}

} // namespace sheaf::passes

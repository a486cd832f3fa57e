//===- Terms.cpp - Derivatives as formulas --------------------------------===//

#include "compiler/ops/Terms.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

namespace sheaf::ops {

using mlir::Value;

namespace {

/// The number that all elements of a tensor are, when that is known.
std::optional<double> constantOf(Value value) {
  while (auto apply = value.getDefiningOp<ir::ApplyOp>()) {
    const Op *op = OpTable::get().find(apply.getOp().str());
    if (auto *fill = std::get_if<Fill>(&op->batch)) {
      auto number = apply.getAttrs().getAs<mlir::FloatAttr>("value");
      if (fill->kind != Fill::Constant || !number)
        return std::nullopt;
      return number.getValueAsDouble();
    }
    if (apply->getNumOperands() == 0 || !isFloat(dtypeOf(value)))
      return std::nullopt;
    llvm::StringRef name = apply.getOp();
    value = apply.getOperand(0);
    if (name == "scalar") {
      mlir::FloatAttr number;
      mlir::IntegerAttr count;
      if (mlir::matchPattern(value, mlir::m_Constant(&number)))
        return number.getValueAsDouble();
      if (mlir::matchPattern(value, mlir::m_Constant(&count)))
        return static_cast<double>(count.getInt());
      return std::nullopt;
    }
    if (name != "f32" && name != "broadcast_to" && name != "reshape")
      return std::nullopt;
  }
  return std::nullopt;
}

/// Whether a tensor has neither infinity nor NaN, whatever the block is given: 0 times it is 0 as
/// it is. Of what comes in nothing is known, so few are.
bool isFinite(Value tensor) {
  constexpr size_t kMost = 32;
  llvm::SmallVector<Value> work{tensor};
  for (size_t i = 0; i < work.size(); ++i) {
    Value value = work[i];
    if (auto number = constantOf(value)) {
      if (!std::isfinite(static_cast<float>(*number)))
        return false;
      continue;
    }
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    if (!apply || i == kMost)
      return false;
    llvm::StringRef name = apply.getOp();
    bool ofOperands =
        llvm::is_contained({"broadcast_to", "reshape", "transpose", "window", "concat", "split",
                            "where", "neg", "rope_sin", "rope_cos"},
                           name);
    if (name == "f32" && !isFloat(dtypeOf(apply.getOperand(0))))
      continue;
    if (!ofOperands)
      return false;
    for (Value operand : apply.getOperands().drop_front(name == "where"))
      if (mlir::isa<mlir::RankedTensorType>(operand.getType()))
        work.push_back(operand);
  }
  return true;
}

} // namespace

Value Terms::times(Value dy, Value derivative) {
  Value product = mul(dy, derivative);
  return isFinite(derivative) ? product : unlessZero(dy, product);
}

Value Terms::over(Value dy, Value x) {
  std::optional<double> number = constantOf(x);
  Value quotient = div(dy, x);
  return number && *number != 0 && !std::isnan(*number) ? quotient : unlessZero(dy, quotient);
}

} // namespace sheaf::ops

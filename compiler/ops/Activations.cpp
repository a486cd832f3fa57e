//===- Activations.cpp - Activations with parameters ----------------------===//
//
// leaky_relu (x, slope). Kernels know none of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {

using mlir::Value;

void addActivations(std::vector<Op> &ops) {
  constexpr double kSlope = 0.01;
  Op op;
  op.name = "leaky_relu";
  op.summary = "x where it is positive, else slope * x";
  op.params = {{"x", ParamKind::Tensor}, {"slope", ParamKind::Number, Attr(kSlope)}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
    auto operand = floatTensor(operands, 0, "apply 'leaky_relu' to");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return ShapeResult(*error);
    return ShapeResult::ok(std::get<TensorType>(operand));
  };
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    double slope = numberAttr(attrs, "slope", kSlope);
    for (size_t i = 0; i < results[0].data.size(); ++i) {
      double x = operands[0].data[i];
      results[0].data[i] = x < 0 ? arithmetic.round(x * slope) : x;
    }
    return std::string();
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value x = apply.getOperands()[0];
    DType dtype = dtypeOf(x);
    Value scaled = applyOne(b, "mul", {x, number(b, numberAttr(apply, "slope"), dtype)});
    Value below = applyOne(b, "lt", {x, number(b, 0, dtype)});
    return {applyOne(b, "where", {below, scaled, x})};
  });
  ops.push_back(std::move(op));
}

} // namespace sheaf::ops

//===- Factors.cpp - What products in bf16 take ---------------------------===//
//
// For kernels: round_factor (x) is x as a factor of a bf16 product, in f32; factor (x) is the same
// as a tensor of bf16 (docs/numerics.md): rounded to nearest, ties to even, a subnormal number to
// zero of its sign. Gradients go through round_factor as they are.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Lanes.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

/// Lanes of f32 that bf16 can hold, as rt::floatToFactor rounds them.
Value roundLanes(lanes::Builder &b, mlir::ValueRange x) {
  constexpr double leastNormal = 0x1p-126;
  mlir::Type floats = x[0].getType();
  Value isTiny = mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OLT,
                                             mlir::math::AbsFOp::create(b, x[0]),
                                             lanes::constant(b, floats, leastNormal));
  // Of its sign.
  Value zero = mlir::arith::MulFOp::create(b, x[0], lanes::constant(b, floats, 0));
  Value kept = mlir::arith::SelectOp::create(b, isTiny, zero, x[0]);
  Value narrow =
      mlir::arith::TruncFOp::create(b, lanes::withElement(floats, b.getBF16Type()), kept);
  return mlir::arith::ExtFOp::create(b, floats, narrow);
}

void add(std::vector<Op> &ops, const std::string &name, const std::string &summary, DType to) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor}};
  op.internal = true;
  op.shape = [to](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
    auto operand = floatTensor(operands, 0, "round");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return ShapeResult(*error);
    TensorType type = std::get<TensorType>(operand);
    type.dtype = to;
    return ShapeResult::ok(std::move(type));
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    for (size_t i = 0; i < results[0].data.size(); ++i)
      results[0].data[i] = arithmetic.roundFactor(operands[0].data[i]);
    return std::string();
  };
  op.batch = Elementwise{.emit = roundLanes, .factor = true};
  ops.push_back(std::move(op));
}

} // namespace

void addFactors(std::vector<Op> &ops) {
  add(ops, "round_factor", "x, rounded as a factor of a product in bf16", DType::F32);
  add(ops, "factor", "x as factors of a product in bf16", DType::BF16);
  ops.back().gradient = {Gradient::Untrained};
}

} // namespace sheaf::ops

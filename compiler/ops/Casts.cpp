//===- Casts.cpp - Conversions between element types ----------------------===//
//
// `f32(x)`, `bf16(x)`, `f16(x)`, `i32(x)`, `i64(x)`, `bool(x)`; no attributes. Float to int
// truncates towards zero, saturates at the ends and makes 0 of NaN; i64 to i32 wraps; to bool is
// x != 0. Casting a token tensor to ints gives the tokens' numbers.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Lanes.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using lanes::Builder;
using mlir::Value;
using mlir::ValueRange;

ShapeResult castShape(DType to, std::span<const OperandType> operands) {
  TensorType result{to, {}, {}};
  if (const TensorType *tensor = operands[0].tensor(); tensor && !operands[0].isList) {
    if (tensor->vocab && to != DType::I32 && to != DType::I64)
      return ShapeResult::fail("cannot convert " + tensor->str() + " to " +
                                   std::string(dtypeName(to)) + ": tokens are not numbers",
                               0, "convert it with i32(...) first");
    result.dims = tensor->dims;
    return ShapeResult::ok(std::move(result));
  }
  if (operands[0].isList || *operands[0].host() == HostKind::Token)
    return ShapeResult::fail("cannot convert " + describe(operands[0]) + " to " +
                                 std::string(dtypeName(to)),
                             0, operands[0].isList ? "" : "convert it with int(...) first");
  return ShapeResult::ok(std::move(result));
}

std::string castReference(const RefTensors &operands, const Arithmetic &arithmetic,
                          RefTensor &result) {
  bool fromFloat = isFloat(operands[0].dtype);
  for (size_t i = 0; i < result.data.size(); ++i) {
    double x = operands[0].data[i];
    if (isFloat(result.dtype))
      x = arithmetic.round(x);
    else if (result.dtype == DType::Bool)
      x = x != 0;
    else
      // The greatest ints are rounded up in `data`, to what no int is.
      x = wrapInt(truncateToInt(x, fromFloat ? result.dtype : DType::I64), result.dtype);
    result.data[i] = x;
  }
  return {};
}

/// How far a float is from those that become this int or bool (Decision::distance): the boundary
/// stays where it is.
double castDistance(double x, DType to, double value) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (std::isnan(x) || value != std::floor(value))
    return never;
  auto from = [&](double boundary) { return 2 * distanceToMeet(x, boundary); };
  if (to == DType::Bool)
    return value == 0 ? from(0) : value == 1 ? 0 : never;
  // Truncated: all between -1 and 1 become 0. What is beyond all ints becomes the last one.
  double least = value <= 0 ? value - 1 : value, greatest = value >= 0 ? value + 1 : value;
  if (x < least && value != static_cast<double>(truncateToInt(-never, to)))
    return from(least);
  if (x > greatest && value != static_cast<double>(truncateToInt(never, to)))
    return from(greatest);
  return 0;
}

Value toF32(Builder &b, Value x) {
  if (lanes::isFloat(x))
    return x;
  mlir::Type type = lanes::withElement(x.getType(), b.getF32Type());
  if (lanes::isBool(x))
    return mlir::arith::UIToFPOp::create(b, type, x);
  return mlir::arith::SIToFPOp::create(b, type, x);
}

/// Float lanes hold what a narrow element can hold.
Value throughNarrow(Builder &b, Value x, mlir::Type narrow) {
  Value wide = toF32(b, x);
  Value rounded =
      mlir::arith::TruncFOp::create(b, lanes::withElement(wide.getType(), narrow), wide);
  return mlir::arith::ExtFOp::create(b, wide.getType(), rounded);
}

/// arith.fptosi has no defined result out of range, so the range is cut to what fits.
Value floatToInt(Builder &b, Value x, mlir::Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  mlir::Type floats = x.getType(), ints = lanes::withElement(floats, element);
  double end = std::ldexp(1.0, static_cast<int>(bits) - 1);
  double lastBelow = static_cast<double>(std::nextafter(static_cast<float>(end), 0.0F));
  Value zero = lanes::constant(b, floats, 0);
  Value isNan = mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::UNO, x, x);
  Value number = lanes::select(b, isNan, zero, x);
  Value cut = lanes::minimum(b, lanes::maximum(b, number, lanes::constant(b, floats, -end)),
                             lanes::constant(b, floats, lastBelow));
  Value truncated = mlir::arith::FPToSIOp::create(b, ints, cut);
  Value tooGreat = mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OGE, number,
                                               lanes::constant(b, floats, end));
  int64_t greatest =
      bits == 32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  return lanes::select(b, tooGreat, lanes::intConstant(b, ints, greatest), truncated);
}

Value toInt(Builder &b, Value x, mlir::Type element) {
  if (lanes::isFloat(x))
    return floatToInt(b, x, element);
  mlir::Type type = lanes::withElement(x.getType(), element);
  if (type == x.getType())
    return x;
  if (lanes::isBool(x))
    return mlir::arith::ExtUIOp::create(b, type, x);
  if (mlir::getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth() >
      element.getIntOrFloatBitWidth())
    return mlir::arith::TruncIOp::create(b, type, x);
  return mlir::arith::ExtSIOp::create(b, type, x);
}

Value toBool(Builder &b, Value x) {
  if (lanes::isBool(x))
    return x;
  return lanes::compare(b, mlir::arith::CmpFPredicate::UNE, mlir::arith::CmpIPredicate::ne, x,
                        lanes::constant(b, x.getType(), 0));
}

Value castLanes(Builder &b, Value x, DType to) {
  switch (to) {
  case DType::F32:
    return toF32(b, x);
  case DType::BF16:
    return throughNarrow(b, x, b.getBF16Type());
  case DType::F16:
    return throughNarrow(b, x, b.getF16Type());
  case DType::I32:
    return toInt(b, x, b.getI32Type());
  case DType::I64:
    return toInt(b, x, b.getI64Type());
  case DType::Bool:
    return toBool(b, x);
  }
  return x;
}

} // namespace

void addCasts(std::vector<Op> &ops) {
  for (DType to : {DType::F32, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool}) {
    Op op;
    op.name = std::string(dtypeName(to));
    op.summary = "the elements converted to " + op.name;
    op.params = {{"x", ParamKind::Tensor}};
    op.shape = [to](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
      return castShape(to, operands);
    };
    op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                      std::span<RefTensor> results) {
      return castReference(operands, arithmetic, results[0]);
    };
    op.batch = Elementwise{[to](Builder &b, ValueRange x) { return castLanes(b, x[0], to); }};
    if (!isFloat(to))
      op.decision = {.distance =
                         [to](const RefTensors &operands, const Attrs &, const RefTensor &,
                              size_t at, double value) {
                           return isFloat(operands[0].dtype)
                                      ? castDistance(operands[0].data[at], to, value)
                                      : std::numeric_limits<double>::infinity();
                         },
                     .range = [to](const RefTensors &, const Attrs &, const RefTensor &result,
                                   size_t at) -> std::pair<double, double> {
                       if (to == DType::Bool)
                         return {0, 1};
                       return {result.data[at] - 1, result.data[at] + 1};
                     }};
    ops.push_back(std::move(op));
  }
}

} // namespace sheaf::ops

//===- Constants.cpp - Tensors from host values ---------------------------===//
//
// For kernels: full (attribute `value`, extents by the result type with an i64 operand for each
// `?`), iota (attribute or operand `size`), scalar (a host int, float or bool as a rank-0 i64, f32
// or bool tensor). zeros, ones and full make f32.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Lanes.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

std::vector<Value> expandFilled(ExpandBuilder &b, ir::ApplyOp op, double value) {
  return {applyOne(b, "full", {}, {{"value", value}, {"dims", resultExtents(b, op, 0)}})};
}

void addFilled(std::vector<Op> &ops, const std::string &name, const std::string &summary,
               std::optional<double> value) {
  Op op;
  op.name = name;
  op.summary = summary;
  if (!value)
    op.params.push_back({"value", ParamKind::Number});
  op.params.push_back({"dims", ParamKind::Extents});
  op.shape = [name](std::span<const OperandType>, const Attrs &attrs, const DimOracle &oracle) {
    return filledShape(name, attrs, oracle);
  };
  op.reference = [value](const RefTensors &, const Attrs &attrs, const Arithmetic &arithmetic,
                         std::span<RefTensor> results) {
    double x = arithmetic.round(value ? *value : numberAttr(attrs, "value", 0));
    std::fill(results[0].data.begin(), results[0].data.end(), x);
    return std::string();
  };
  if (value)
    op.batch = expand(
        [x = *value](ExpandBuilder &b, ir::ApplyOp apply) { return expandFilled(b, apply, x); });
  else
    op.batch = Fill{Fill::Constant};
  ops.push_back(std::move(op));
}

void addIota(std::vector<Op> &ops) {
  Op op;
  op.name = "iota";
  op.summary = "the ints 0, 1, 2, ... as i32[size]";
  op.params = {{"size", ParamKind::Extent}};
  op.shape = [](std::span<const OperandType>, const Attrs &attrs, const DimOracle &oracle) {
    Dim size = dimAttr(attrs, "size");
    if (oracle.value(size).value_or(0) < 0)
      return ShapeResult::fail("cannot make " + withValue(size, oracle) + " ints with 'iota'");
    return ShapeResult::ok({DType::I32, {size}, {}});
  };
  op.reference = [](const RefTensors &, const Attrs &, const Arithmetic &,
                    std::span<RefTensor> results) {
    for (size_t i = 0; i < results[0].data.size(); ++i)
      results[0].data[i] = static_cast<double>(i);
    return std::string();
  };
  op.batch = Fill{Fill::Iota};
  ops.push_back(std::move(op));
}

void addScalar(std::vector<Op> &ops) {
  Op op;
  op.name = "scalar";
  op.summary = "a host int, float or bool as a rank-0 tensor";
  op.params = {{"x", ParamKind::Tensor}};
  op.internal = true;
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
    const HostKind *host = operands[0].host();
    if (!host || operands[0].isList || *host == HostKind::Token)
      return ShapeResult::fail(
          "cannot make a tensor of " + describe(operands[0]) + " with 'scalar'", 0);
    return ShapeResult::ok({*host == HostKind::Float ? DType::F32
                            : *host == HostKind::Int ? DType::I64
                                                     : DType::Bool,
                            {},
                            {}});
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    double x = operands[0].data[0];
    results[0].data[0] = isFloat(results[0].dtype) ? arithmetic.round(x) : x;
    return std::string();
  };
  op.batch = Elementwise{[](lanes::Builder &b, mlir::ValueRange x) -> Value {
    if (!mlir::getElementTypeOrSelf(x[0].getType()).isF64())
      return x[0];
    mlir::Type type = lanes::withElement(x[0].getType(), b.getF32Type());
    return mlir::arith::TruncFOp::create(b, type, x[0]);
  }};
  ops.push_back(std::move(op));
}

void addTokenTensor(std::vector<Op> &ops) {
  Op op;
  op.name = "token_tensor";
  op.summary = "a host token as a rank-0 tensor";
  op.params = {{"x", ParamKind::Index}};
  op.internal = true;
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
    const HostKind *host = operands[0].host();
    if (!host || operands[0].isList || *host != HostKind::Token)
      return ShapeResult::fail(
          "cannot make a tensor of " + describe(operands[0]) + " with 'token_tensor'", 0);
    return ShapeResult::ok({DType::I32, {}, operands[0].vocab});
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                    std::span<RefTensor> results) {
    results[0].data[0] = operands[0].data[0];
    return std::string();
  };
  op.batch = Elementwise{[](lanes::Builder &b, mlir::ValueRange x) -> Value {
    mlir::Type type = lanes::withElement(x[0].getType(), b.getI32Type());
    return mlir::arith::TruncIOp::create(b, type, x[0]);
  }};
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// one_hot
//===----------------------------------------------------------------------===//

ShapeResult oneHotShape(std::span<const OperandType> operands, const Attrs &attrs,
                        const DimOracle &oracle) {
  TensorType result{DType::F32, {}, {}};
  const TensorType *tensor = operands[0].tensor();
  const HostKind *host = operands[0].host();
  if (tensor && !operands[0].isList && (tensor->dtype == DType::I32 || tensor->dtype == DType::I64))
    result.dims = tensor->dims;
  else if (!host || operands[0].isList || *host == HostKind::Float || *host == HostKind::Bool)
    return ShapeResult::fail("cannot make 'one_hot' of " + describe(operands[0]) +
                                 ": the index is an int, a token or a tensor of ints",
                             0);
  Dim size = dimAttr(attrs, "size");
  if (oracle.value(size).value_or(0) < 0)
    return ShapeResult::fail("cannot make 'one_hot' with an extent of " + withValue(size, oracle));
  result.dims.push_back(size);
  return ShapeResult::ok(std::move(result));
}

std::vector<Value> expandOneHot(ExpandBuilder &b, ir::ApplyOp op) {
  Value index = op.getOperands()[0];
  Extent size;
  if (auto attr = op.getAttrs().getAs<mlir::IntegerAttr>("size"))
    size = attr;
  else
    size = Value(op.getOperands()[1]);
  Value places = applyOne(b, "iota", {}, {{"size", size}});
  Value wanted;
  if (mlir::isa<mlir::RankedTensorType>(index.getType())) {
    // Far away ints of 64 bits must not wrap into range.
    wanted = applyOne(b, "i64", index);
    wanted = insertAxis(b, wanted, rankOf(wanted));
  } else {
    wanted = promote(b, indexValue(b, index), DType::I64);
  }
  return {applyOne(b, "f32", applyOne(b, "eq", {applyOne(b, "i64", places), wanted}))};
}

void addOneHot(std::vector<Op> &ops) {
  Op op;
  op.name = "one_hot";
  op.summary = "1 at the index and 0 elsewhere, along a new last axis; all 0 for an index outside";
  op.params = {{"index", ParamKind::Index}, {"size", ParamKind::Extent}};
  op.shape = oneHotShape;
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                    std::span<RefTensor> results) {
    int64_t size = results[0].shape.back();
    for (int64_t n = 0; n < results[0].size(); ++n)
      results[0].data[n] = operands[0].data[n / size] == static_cast<double>(n % size);
    return std::string();
  };
  op.batch = expand(expandOneHot);
  ops.push_back(std::move(op));
}

} // namespace

void addConstants(std::vector<Op> &ops) {
  addFilled(ops, "zeros", "a tensor of zeros with the given extents, f32", 0.0);
  addFilled(ops, "ones", "a tensor of ones with the given extents, f32", 1.0);
  addFilled(ops, "full", "a tensor of one number with the given extents, f32", std::nullopt);
  addIota(ops);
  addScalar(ops);
  addTokenTensor(ops);
  addOneHot(ops);
}

} // namespace sheaf::ops

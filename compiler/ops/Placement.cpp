//===- Placement.cpp - Turning around, filling up, triangles --------------===//
//
// flip (x, axis = 0), pad (x, before, after, axis = 0, value = 0), tril and triu (x, k = 0).
// Kernels know flip alone, a movement.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

AxisView viewAlong(const RefTensor &x, const Attrs &attrs) {
  return {x.shape, axisIn(attrs, "axis", 0, x.shape.size())};
}

void addFlip(std::vector<Op> &ops) {
  Op op;
  op.name = "flip";
  op.summary = "the parts along an axis, the first by default, from last to first";
  op.params = {{"x", ParamKind::Tensor}, {"axis", ParamKind::Static, Attr(int64_t(0))}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &) {
    return shapeAlongAxis(tensorOperand(operands, 0, "turn around"), attrs);
  };
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                    std::span<RefTensor> results) {
    AxisView view = viewAlong(operands[0], attrs);
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.extent; ++i)
        for (int64_t n = 0; n < view.inner; ++n)
          results[0].data[view.at(o, i, n)] = operands[0].data[view.at(o, view.extent - 1 - i, n)];
    return std::string();
  };
  op.batch = Movement{Movement::Flip};
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

ShapeResult padShape(std::span<const OperandType> operands, const Attrs &attrs,
                     const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "pad");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (type.vocab)
    return ShapeResult::fail("cannot pad " + type.str() + ": a number is no token", 0,
                             "convert the tokens with i32(...)");
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  Dim before = dimAttr(attrs, "before"), after = dimAttr(attrs, "after");
  for (const Dim &dim : {before, after})
    if (oracle.value(dim).value_or(0) < 0)
      return ShapeResult::fail("cannot pad " + type.str() + " with " + withValue(dim, oracle) +
                               " elements");
  Dim &extent = type.dims[std::get<size_t>(at)];
  extent = extent + before + after;
  return ShapeResult::ok(std::move(type));
}

std::string padReference(const RefTensor &x, const Attrs &attrs, const Arithmetic &arithmetic,
                         RefTensor &result) {
  Dim before = attrs.contains("before") ? dimAttr(attrs, "before") : Dim(0);
  if (!before.isConstant())
    return "how many elements to pad with is not known";
  if (before.constant() < 0 || dimAttr(attrs, "after").constant() < 0)
    return "a tensor is padded with no fewer than 0 elements";
  double value = numberAttr(attrs, "value", 0);
  value = isFloat(x.dtype)         ? arithmetic.round(value)
          : x.dtype == DType::Bool ? value != 0
                                   : std::trunc(value);
  std::fill(result.data.begin(), result.data.end(), value);
  AxisView from = viewAlong(x, attrs), to = viewAlong(result, attrs);
  for (int64_t o = 0; o < from.outer; ++o)
    for (int64_t i = 0; i < from.extent; ++i)
      for (int64_t n = 0; n < from.inner; ++n)
        result.data[to.at(o, before.constant() + i, n)] = x.data[from.at(o, i, n)];
  return {};
}

std::vector<Value> expandPad(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperand(0);
  int64_t axis = intAttr(op, "axis");
  size_t next = 1;
  mlir::SmallVector<Value> parts;
  auto fill = [&](llvm::StringRef name) {
    Extent size;
    if (auto attr = op.getAttrs().getAs<mlir::IntegerAttr>(name)) {
      size = attr;
    } else {
      Value count = op.getOperand(next++);
      Value isCount = mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::sge, count,
                                                  extentValue(b, b.getI64IntegerAttr(0)));
      ir::CheckOp::create(b, isCount, "a tensor is padded with no fewer than 0 elements, not {0}",
                          count);
      size = count;
    }
    if (mlir::getConstantIntValue(size) == 0)
      return;
    std::vector<Extent> dims = extentsOf(b, x);
    dims[axis] = size;
    Value value = number(b, numberAttr(op, "value"), dtypeOf(x));
    parts.push_back(applyOne(b, "broadcast_to", value, {{"dims", dims}}));
  };
  fill("before");
  parts.push_back(x);
  fill("after");
  return {parts.size() == 1 ? x : applyOne(b, "concat", parts, {{"axis", axis}})};
}

void addPad(std::vector<Op> &ops) {
  Op op;
  op.name = "pad";
  op.summary = "x with so many parts of one number before it and after it along an axis, the first "
               "by default";
  op.params = {{"x", ParamKind::Tensor},
               {"before", ParamKind::Extent},
               {"after", ParamKind::Extent},
               {"axis", ParamKind::Static, Attr(int64_t(0))},
               {"value", ParamKind::Number, Attr(0.0)}};
  op.shape = padShape;
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    return padReference(operands[0], attrs, arithmetic, results[0]);
  };
  op.batch = expand(expandPad);
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// tril, triu
//===----------------------------------------------------------------------===//

void addTriangle(std::vector<Op> &ops, const std::string &name, const std::string &summary,
                 bool lower) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor}, {"k", ParamKind::Static, Attr(int64_t(0))}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &,
                const DimOracle &) -> ShapeResult {
    auto operand = tensorOperand(operands, 0, "take a triangle of");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    const TensorType &type = std::get<TensorType>(operand);
    std::string what = "cannot take a triangle of " + type.str() + ": ";
    if (type.dims.size() < 2)
      return ShapeResult::fail(what + "it is no matrix", 0);
    if (type.vocab)
      return ShapeResult::fail(what + "a number is no token", 0,
                               "convert the tokens with i32(...)");
    return ShapeResult::ok(type);
  };
  op.reference = [lower](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                         std::span<RefTensor> results) {
    const RefTensor &x = operands[0];
    int64_t columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
    int64_t k = intAttr(attrs, "k", 0);
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t row = i / columns % rows, column = i % columns;
      bool inside = lower ? column <= row + k : column >= row + k;
      results[0].data[static_cast<size_t>(i)] = inside ? x.data[static_cast<size_t>(i)] : 0;
    }
    return std::string();
  };
  op.batch = expand([lower](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value x = apply.getOperand(0);
    auto places = [&](int64_t axis) {
      return applyOne(b, "i64", applyOne(b, "iota", {}, {{"size", extentOf(b, x, axis)}}));
    };
    int64_t last = rankOf(x) - 1;
    Value k = number(b, static_cast<double>(intAttr(apply, "k")), DType::I64);
    Value rows = insertAxis(b, applyOne(b, "add", {places(last - 1), k}), 1);
    Value inside = applyOne(b, lower ? "le" : "ge", {places(last), rows});
    return {applyOne(b, "where", {inside, x, number(b, 0, dtypeOf(x))})};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addPlacement(std::vector<Op> &ops) {
  addFlip(ops);
  addPad(ops);
  addTriangle(ops, "tril", "matrices with 0 above their diagonal, or above the k-th one over it",
              true);
  addTriangle(ops, "triu", "matrices with 0 below their diagonal, or below the k-th one over it",
              false);
}

} // namespace sheaf::ops

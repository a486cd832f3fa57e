//===- Filters.cpp - Logits from which samples are drawn ------------------===//
//
// In source: top_k_filter (logits, k) and top_p_filter (logits, p), along the last axis. What is
// left out is -inf, so softmax gives it 0 and `sample` never draws it. Kernels know none of them:
// each finds the least element that stays, so equals of it stay too, whatever their order.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <functional>

namespace sheaf::ops {
namespace {

using mlir::Value;

const double kLeftOut = -std::numeric_limits<double>::infinity();

Expected<TensorType> logitsOf(std::span<const OperandType> operands) {
  auto operand = floatTensor(operands, 0, "filter");
  if (auto *type = std::get_if<TensorType>(&operand); type && type->dims.empty())
    return ShapeError{"cannot filter " + type->str() + ": it has no axes", 0};
  return operand;
}

/// `leastOf` is given a row from the greatest to the least, NaN first.
std::string filterReference(const RefTensor &logits, RefTensor &result,
                            const std::function<double(std::span<const double>)> &leastOf) {
  auto classes = static_cast<size_t>(logits.shape.back());
  for (size_t begin = 0; begin < logits.data.size(); begin += classes) {
    std::span<const double> row = std::span(logits.data).subspan(begin, classes);
    std::vector<double> sorted(row.begin(), row.end());
    std::sort(sorted.begin(), sorted.end(),
              [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; });
    double least = leastOf(sorted);
    for (size_t i = 0; i < classes; ++i)
      result.data[begin + i] = row[i] < least ? kLeftOut : row[i];
  }
  return {};
}

/// x, and -inf where it is below `least`.
Value keepFrom(ExpandBuilder &b, Value x, Value least) {
  Value below = applyOne(b, "lt", {x, least});
  return applyOne(b, "where", {below, number(b, kLeftOut, dtypeOf(x)), x});
}

Value sorted(ExpandBuilder &b, Value x) {
  return apply(b, "sort", x, {{"axis", rankOf(x) - 1}, {"descending", int64_t(1)}})[0];
}

//===----------------------------------------------------------------------===//
// top_k_filter
//===----------------------------------------------------------------------===//

ShapeResult topKShape(std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
  auto operand = logitsOf(operands);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  Dim k = dimAttr(attrs, "k");
  if (oracle.value(k).value_or(1) < 1)
    return ShapeResult::fail("'top_k_filter' keeps at least 1 element, not " +
                             withValue(k, oracle));
  return ShapeResult::ok(std::get<TensorType>(operand));
}

std::string topKReference(const RefTensors &operands, const Attrs &attrs, RefTensor &result) {
  Dim k = dimAttr(attrs, "k");
  if (!k.isConstant() || k.constant() < 1)
    return "at least 1 element is kept, not " + k.str();
  return filterReference(operands[0], result, [&](std::span<const double> row) {
    return row[std::min(static_cast<size_t>(k.constant()), row.size()) - 1];
  });
}

std::vector<Value> expandTopK(ExpandBuilder &b, ir::ApplyOp op) {
  using mlir::arith::CmpIPredicate;
  Value x = op.getOperand(0);
  int64_t last = rankOf(x) - 1;
  Extent classes = extentOf(b, x, last);
  auto constant = [&](int64_t value) { return extentValue(b, b.getI64IntegerAttr(value)); };
  auto attr = op.getAttrs().getAs<mlir::IntegerAttr>("k");
  auto known = mlir::getConstantIntValue(classes);
  if (attr && known) {
    if (attr.getInt() >= *known)
      return {x};
    Value places = applyOne(b, "top_places", x, {{"k", attr.getInt()}});
    Value kth = applyOne(b, "window", places,
                         {{"start", attr.getInt() - 1}, {"size", int64_t(1)}, {"axis", last}});
    return {keepFrom(b, x, applyOne(b, "take_along", {x, kth}, {{"axis", last}}))};
  }
  Value k = attr ? constant(attr.getInt()) : Value(op.getOperand(1));
  if (!attr) {
    Value enough = mlir::arith::CmpIOp::create(b, CmpIPredicate::sge, k, constant(1));
    ir::CheckOp::create(b, enough, "'top_k_filter' keeps at least 1 element, not {0}", k);
  }
  if (known == 0)
    return {x};
  Value count = extentValue(b, classes), row = sorted(b, x);
  if (!known) { // of a row without elements there is one to pick, too
    count = mlir::arith::MaxSIOp::create(b, count, constant(1));
    row = applyOne(b, "pad", row,
                   {{"before", int64_t(0)}, {"after", int64_t(1)}, {"axis", last}, {"value", 0.0}});
  }
  Value place = mlir::arith::SubIOp::create(
      b, mlir::arith::MinSIOp::create(b, k, count).getResult(), constant(1));
  Value kth = applyOne(b, "pick", {row, place}, {{"axis", last}});
  return {keepFrom(b, x, insertAxis(b, kth, last))};
}

//===----------------------------------------------------------------------===//
// top_p_filter
//===----------------------------------------------------------------------===//

ShapeResult topPShape(std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
  auto operand = logitsOf(operands);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  const TensorType &logits = std::get<TensorType>(operand);
  if (const HostKind *host = operands[1].host()) {
    if (*host == HostKind::Token || *host == HostKind::Bool)
      return ShapeResult::fail(
          "the share that 'top_p_filter' keeps is a float, not " + describe(operands[1]), 1);
    return ShapeResult::ok(logits);
  }
  const TensorType *p = operands[1].isList ? nullptr : operands[1].tensor();
  if (!p || !isFloat(p->dtype) || !p->dims.empty())
    return ShapeResult::fail(
        "the share that 'top_p_filter' keeps is a float, not " + describe(operands[1]), 1);
  return ShapeResult::ok(logits);
}

std::string topPReference(const RefTensors &operands, const Arithmetic &arithmetic,
                          RefTensor &result) {
  auto round = [&](double x) { return arithmetic.round(x); };
  double p = operands[1].data[0];
  return filterReference(operands[0], result, [&](std::span<const double> row) {
    double shift = std::isinf(row[0]) ? 0 : row[0], sum = 0, before = 0;
    std::vector<double> powers;
    for (double x : row) {
      powers.push_back(round(std::exp(round(x - shift))));
      sum = round(sum + powers.back());
    }
    double least = row[0];
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0 && before < p)
        least = row[i];
      before = round(before + round(powers[i] / sum));
    }
    return least;
  });
}

std::vector<Value> expandTopP(ExpandBuilder &b, ir::ApplyOp op) {
  DType dtype = dtypeOf(op.getOperand(0));
  Value x = op.getOperand(0), p = widen(b, op.getOperand(1));
  int64_t last = rankOf(x) - 1;
  Value row = widen(b, sorted(b, x));
  Value shares = applyOne(b, "softmax", row, {{"axis", last}});
  Value upTo = applyOne(b, "cumsum", shares, {{"axis", last}});
  // How much those before it have; the first always stays.
  Value before = applyOne(b, "sub", {upTo, shares});
  Value places = applyOne(b, "iota", {}, {{"size", extentOf(b, row, last)}});
  Value isFirst = applyOne(b, "eq", {places, number(b, 0, DType::I32)});
  Value stays = applyOne(b, "or", {applyOne(b, "lt", {before, p}), isFirst});
  Value kept = applyOne(b, "where", {stays, row, number(b, -kLeftOut, DType::F32)});
  Value least = applyOne(b, "stop_gradient", reduceAxis(b, "reduce_min", kept, last, true));
  return {keepFrom(b, x, narrow(b, least, dtype))};
}

} // namespace

void addFilters(std::vector<Op> &ops) {
  Op topK;
  topK.name = "top_k_filter";
  topK.summary = "logits with -inf for all but the k greatest along the last axis; equals of the "
                 "least of them stay";
  topK.params = {{"logits", ParamKind::Tensor}, {"k", ParamKind::Extent}};
  topK.shape = topKShape;
  topK.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                      std::span<RefTensor> results) {
    return topKReference(operands, attrs, results[0]);
  };
  topK.batch = expand(expandTopK);
  ops.push_back(std::move(topK));

  Op topP;
  topP.name = "top_p_filter";
  topP.summary = "logits with -inf for all but the greatest along the last axis whose "
                 "probabilities make up p together; the greatest, and equals of the least of them, "
                 "stay";
  topP.params = {{"logits", ParamKind::Tensor}, {"p", ParamKind::Tensor}};
  topP.shape = topPShape;
  topP.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                      std::span<RefTensor> results) {
    return topPReference(operands, arithmetic, results[0]);
  };
  topP.batch = expand(expandTopP);
  ops.push_back(std::move(topP));
}

} // namespace sheaf::ops

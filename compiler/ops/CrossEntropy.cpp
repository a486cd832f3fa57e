//===- CrossEntropy.cpp - Losses of labels --------------------------------===//
//
// In source: cross_entropy (logits, label, label_smoothing = 0), weighted_cross_entropy (logits,
// label, weight, label_smoothing = 0), log_prob (logits, index). Classes are the last axis. Kernels
// know none of them.
// With smoothing s the label has the share 1 - s and every class s / classes, as in PyTorch; there
// and here a weight is that of the class whose logarithm it stands by.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

constexpr const char *kSmoothing = "label_smoothing";

/// One label for each row of logits.
ShapeResult labelledShape(std::span<const OperandType> operands, const DimOracle &oracle) {
  auto operand = floatTensor(operands, 0, "take the cross entropy of");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType logits = std::get<TensorType>(operand);
  std::string what =
      "cannot take the cross entropy of " + logits.str() + " and " + describe(operands[1]) + ": ";
  if (logits.dims.empty())
    return ShapeResult::fail(what + "the logits have no axes", 0);
  TensorType result = logits;
  result.dims.pop_back();
  const TensorType *label = operands[1].isList ? nullptr : operands[1].tensor();
  const HostKind *host = operands[1].isList ? nullptr : operands[1].host();
  if (host && (*host == HostKind::Int || *host == HostKind::Token)) {
    if (!result.dims.empty())
      return ShapeResult::fail(what + "one label goes with one row of logits", 1);
    auto classes = oracle.value(logits.dims.back());
    if (auto known = operands[1].number; known && (*known < 0 || (classes && *known >= *classes)))
      return ShapeResult::fail("label " + std::to_string(*known) + " is out of range for " +
                                   (classes ? std::to_string(*classes) : logits.dims.back().str()) +
                                   " classes",
                               1);
    return ShapeResult::ok(std::move(result));
  }
  if (!label || (label->dtype != DType::I32 && label->dtype != DType::I64))
    return ShapeResult::fail(what + "the label is an int, a token or a tensor of ints", 1);
  if (label->dims.size() != result.dims.size())
    return ShapeResult::fail(what + "there must be one label for each row of logits", 1);
  for (size_t i = 0; i < label->dims.size(); ++i)
    if (!oracle.same(label->dims[i], result.dims[i]))
      return ShapeResult::fail(what + "the extents of axis " + std::to_string(i) + " differ (" +
                                   withValue(result.dims[i], oracle) + ", " +
                                   withValue(label->dims[i], oracle) + ")",
                               1);
  return ShapeResult::ok(std::move(result));
}

ShapeResult crossEntropyShape(std::span<const OperandType> operands, const Attrs &attrs,
                              bool weighted, const DimOracle &oracle) {
  ShapeResult result = labelledShape(operands, oracle);
  if (!result.error.empty())
    return result;
  if (double smoothing = numberAttr(attrs, kSmoothing, 0); !(smoothing >= 0 && smoothing <= 1))
    return ShapeResult::fail("the label smoothing of a cross entropy is from 0 to 1");
  if (!weighted)
    return result;
  auto operand = floatTensor(operands, 2, "weight classes by");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  const TensorType &weight = std::get<TensorType>(operand), &logits = *operands[0].tensor();
  std::string what = "cannot weight the classes of " + logits.str() + " by " + weight.str() + ": ";
  if (weight.dtype != logits.dtype)
    return ShapeResult::fail(what + "the element types differ", 2);
  if (weight.dims.size() != 1)
    return ShapeResult::fail(what + "it is not a vector", 2);
  if (!oracle.same(weight.dims[0], logits.dims.back()))
    return ShapeResult::fail(what + "the extents differ (" + withValue(logits.dims.back(), oracle) +
                                 ", " + withValue(weight.dims[0], oracle) + ")",
                             2);
  return result;
}

double logSumExp(std::span<const double> row, const Arithmetic &arithmetic) {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double x : row)
    greatest = maximumOf(greatest, x);
  double shift = std::isinf(greatest) ? 0 : greatest;
  for (double x : row)
    sum = arithmetic.round(sum + arithmetic.round(std::exp(arithmetic.round(x - shift))));
  return arithmetic.round(arithmetic.round(std::log(sum)) + shift);
}

/// `weight`: null when all classes have 1.
std::string crossEntropyReference(const RefTensor &logits, const RefTensor &labels,
                                  const RefTensor *weight, double smoothing,
                                  const Arithmetic &arithmetic, RefTensor &result) {
  auto round = [&](double x) { return arithmetic.round(x); };
  auto classes = static_cast<size_t>(logits.shape.back());
  auto weightOf = [&](size_t i) { return weight ? weight->data[i] : 1; };
  for (size_t n = 0; n < result.data.size(); ++n) {
    double label = labels.data[n];
    if (label < 0 || label >= static_cast<double>(classes)) {
      if (labels.host)
        return "label " + std::to_string(static_cast<int64_t>(label)) + " is out of range for " +
               std::to_string(classes) + " classes";
      result.data[n] = outside(result.dtype);
      continue;
    }
    std::span<const double> row = std::span(logits.data).subspan(n * classes, classes);
    auto at = static_cast<size_t>(label);
    double logSum = logSumExp(row, arithmetic);
    double loss = round(weightOf(at) * round(logSum - row[at]));
    if (smoothing != 0) {
      double all = 0;
      for (size_t i = 0; i < classes; ++i)
        all = round(all + round(weightOf(i) * round(logSum - row[i])));
      double share = round(smoothing / static_cast<double>(classes));
      loss = round(round(round(1 - smoothing) * loss) + round(share * all));
    }
    result.data[n] = loss;
  }
  return {};
}

/// Elements of the last axis of x at the labels: of logits one for each row, of a vector one for
/// each label.
Value atLabels(ExpandBuilder &b, Value x, Value label) {
  int64_t axis = rankOf(x) - 1;
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(label.getType());
  if (!type)
    return applyOne(b, "pick", {x, indexValue(b, label)}, {{"axis", axis}});
  Extent classes = extentOf(b, x, axis);
  Value places = applyOne(b, "i64", applyOne(b, "iota", {}, {{"size", classes}}));
  Value isLabel =
      applyOne(b, "eq", {places, insertAxis(b, applyOne(b, "i64", label), type.getRank())});
  // Not a product with 0 and 1: a logit of -inf elsewhere must not make NaN.
  Value only = applyOne(b, "where", {isLabel, x, number(b, 0, DType::F32)});
  return applyOne(b, "where",
                  {isInside(b, label, classes),
                   reduceAxis(b, "reduce_sum", only, type.getRank(), false),
                   number(b, outside(DType::F32), DType::F32)});
}

std::vector<Value> expandCrossEntropy(ExpandBuilder &b, ir::ApplyOp op, bool weighted) {
  DType dtype = dtypeOf(op.getOperand(0));
  Value logits = widen(b, op.getOperand(0)), label = op.getOperand(1);
  Value weight = weighted ? widen(b, op.getOperand(2)) : Value();
  double smoothing = numberAttr(op, kSmoothing);
  int64_t axis = rankOf(logits) - 1;
  auto constant = [&](double value) { return number(b, value, DType::F32); };
  Value logSum = applyOne(b, "logsumexp", logits, {{"axis", axis}});
  if (!mlir::isa<mlir::RankedTensorType>(label.getType()))
    checkLabel(b, indexValue(b, label), logits, axis);
  Value loss = applyOne(b, "sub", {logSum, atLabels(b, logits, label)});
  if (weighted)
    loss = applyOne(b, "mul", {atLabels(b, weight, label), loss});
  if (smoothing != 0) {
    Value terms = applyOne(b, "sub", {insertAxis(b, logSum, axis), logits});
    if (weighted)
      terms = applyOne(b, "mul", {weight, terms});
    Value all = reduceAxis(b, "reduce_sum", terms, axis, false);
    Value classes = promote(b, extentValue(b, extentOf(b, logits, axis)), DType::F32);
    Value share = applyOne(b, "div", {constant(smoothing), classes});
    loss = applyOne(
        b, "add",
        {applyOne(b, "mul", {constant(1 - smoothing), loss}), applyOne(b, "mul", {share, all})});
  }
  return {narrow(b, loss, dtype)};
}

void addCrossEntropyOf(std::vector<Op> &ops, const std::string &name, const std::string &summary,
                       bool weighted) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"logits", ParamKind::Tensor}, {"label", ParamKind::Index}};
  if (weighted)
    op.params.push_back({"weight", ParamKind::Tensor});
  op.params.push_back({kSmoothing, ParamKind::Number, Attr(0.0)});
  op.shape = [weighted](std::span<const OperandType> operands, const Attrs &attrs,
                        const DimOracle &oracle) {
    return crossEntropyShape(operands, attrs, weighted, oracle);
  };
  op.reference = [weighted](const RefTensors &operands, const Attrs &attrs,
                            const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return crossEntropyReference(operands[0], operands[1], weighted ? &operands[2] : nullptr,
                                 numberAttr(attrs, kSmoothing, 0), arithmetic, results[0]);
  };
  op.batch = expand([weighted](ExpandBuilder &b, ir::ApplyOp apply) {
    return expandCrossEntropy(b, apply, weighted);
  });
  ops.push_back(std::move(op));
}

/// The logarithm of a probability is the negative of its cross entropy.
void addLogProb(std::vector<Op> &ops) {
  Op op;
  op.name = "log_prob";
  op.summary = "log(softmax(logits)[index]) for each row of logits";
  op.params = {{"logits", ParamKind::Tensor}, {"index", ParamKind::Index}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &oracle) {
    return labelledShape(operands, oracle);
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    std::string error =
        crossEntropyReference(operands[0], operands[1], nullptr, 0, arithmetic, results[0]);
    for (double &value : results[0].data)
      value = -value;
    return error;
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    return {applyOne(b, "neg", applyOne(b, "cross_entropy", apply.getOperands()))};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addCrossEntropy(std::vector<Op> &ops) {
  addCrossEntropyOf(ops, "cross_entropy",
                    "-log(softmax(logits)[label]) for each row of logits; smoothed, a share of "
                    "the label goes to all classes alike",
                    false);
  addCrossEntropyOf(ops, "weighted_cross_entropy",
                    "cross_entropy with every -log(softmax(logits)[i]) times the weight of class i",
                    true);
  addLogProb(ops);
}

} // namespace sheaf::ops

//===- Normalise.cpp - Softmax and norms ----------------------------------===//
//
// In source: softmax and log_softmax (x, axis = -1), layer_norm (x, gain, bias, eps) and rms_norm
// (x, gain, eps) along the last axis. Kernels know none of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

//===----------------------------------------------------------------------===//
// softmax, log_softmax
//===----------------------------------------------------------------------===//

ShapeResult softmaxShape(const std::string &name, std::span<const OperandType> operands,
                         const Attrs &attrs) {
  auto operand = floatTensor(operands, 0, "take the " + name + " of");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  auto at = axisAttr(intAttr(attrs, "axis", -1), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  return ShapeResult::ok(std::move(type));
}

void softmaxRow(std::vector<double> &row, bool log, const Arithmetic &arithmetic) {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double x : row)
    greatest = maximumOf(greatest, x);
  // Finite logits beside an infinite one have no probability; that of the infinite one is NaN.
  double shift = std::isinf(greatest) ? 0 : greatest;
  std::vector<double> powers;
  for (double &x : row) {
    x = arithmetic.round(x - shift);
    powers.push_back(arithmetic.round(std::exp(x)));
    sum = arithmetic.round(sum + powers.back());
  }
  double logOfSum = arithmetic.round(std::log(sum));
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = arithmetic.round(log ? row[i] - logOfSum : powers[i] / sum);
}

std::string softmaxReference(const RefTensor &x, const Attrs &attrs, bool log,
                             const Arithmetic &arithmetic, RefTensor &result) {
  AxisView view(x.shape, axisIn(attrs, "axis", -1, x.shape.size()));
  std::vector<double> row(static_cast<size_t>(view.extent));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      for (int64_t i = 0; i < view.extent; ++i)
        row[i] = x.data[view.at(o, i, n)];
      softmaxRow(row, log, arithmetic);
      for (int64_t i = 0; i < view.extent; ++i)
        result.data[view.at(o, i, n)] = row[i];
    }
  return {};
}

std::vector<Value> expandSoftmax(ExpandBuilder &b, ir::ApplyOp op, bool log) {
  DType dtype = dtypeOf(op.getOperands()[0]);
  Value x = widen(b, op.getOperands()[0]);
  int64_t axis = intAttr(op, "axis");
  // The result does not depend on what is subtracted.
  Value greatest = applyOne(b, "stop_gradient", reduceAxis(b, "reduce_max", x, axis, true));
  Value shift = applyOne(b, "where", {isInfinite(b, greatest), number(b, 0, DType::F32), greatest});
  Value shifted = applyOne(b, "sub", {x, shift});
  Value powers = applyOne(b, "exp", shifted);
  Value sum = reduceAxis(b, "reduce_sum", powers, axis, true);
  if (log)
    return {narrow(b, applyOne(b, "sub", {shifted, applyOne(b, "log", sum)}), dtype)};
  // One division a row: the sum is between 1 and the number of elements.
  Value share = applyOne(b, "div", {number(b, 1, DType::F32), sum});
  return {narrow(b, applyOne(b, "mul", {powers, share}), dtype)};
}

void addSoftmax(std::vector<Op> &ops, const std::string &name, const std::string &summary,
                bool log) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor}, {"axis", ParamKind::Static, Attr(int64_t(-1))}};
  op.shape = [name](std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &) {
    return softmaxShape(name, operands, attrs);
  };
  op.reference = [log](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                       std::span<RefTensor> results) {
    return softmaxReference(operands[0], attrs, log, arithmetic, results[0]);
  };
  op.batch =
      expand([log](ExpandBuilder &b, ir::ApplyOp apply) { return expandSoftmax(b, apply, log); });
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// layer_norm, rms_norm
//===----------------------------------------------------------------------===//

/// x, then one vector for each further operand, all of x's element type and last extent.
ShapeResult normShape(const std::string &name, std::span<const OperandType> operands,
                      const DimOracle &oracle) {
  auto operand = floatTensor(operands, 0, "normalise");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType x = std::get<TensorType>(operand);
  if (x.dims.empty())
    return ShapeResult::fail("cannot normalise " + x.str() + ": it has no axes", 0);
  for (size_t i = 1; i < operands.size(); ++i) {
    auto vector = floatTensor(operands, i, "scale or shift in '" + name + "' by");
    if (auto *error = std::get_if<ShapeError>(&vector))
      return *error;
    const TensorType &type = std::get<TensorType>(vector);
    std::string what = std::string("cannot ") + (i == 1 ? "scale" : "shift") + " " + x.str() +
                       " by " + type.str() + " in '" + name + "': ";
    int blame = static_cast<int>(i);
    if (type.dtype != x.dtype)
      return ShapeResult::fail(what + "the element types differ", blame);
    if (type.dims.size() != 1)
      return ShapeResult::fail(what + "it is not a vector", blame);
    if (!oracle.same(type.dims[0], x.dims.back()))
      return ShapeResult::fail(what + "the last extents differ (" +
                                   withValue(x.dims.back(), oracle) + ", " +
                                   withValue(type.dims[0], oracle) + ")",
                               blame);
  }
  return ShapeResult::ok(std::move(x));
}

std::string normReference(const RefTensors &operands, double eps, bool centre,
                          const Arithmetic &arithmetic, RefTensor &result) {
  const RefTensor &x = operands[0];
  auto round = [&](double v) { return arithmetic.round(v); };
  int64_t n = x.shape.back();
  for (size_t begin = 0; begin < x.data.size(); begin += static_cast<size_t>(n)) {
    double mean = 0, squares = 0;
    if (centre) {
      for (int64_t i = 0; i < n; ++i)
        mean = round(mean + x.data[begin + i]);
      mean = round(mean / static_cast<double>(n));
    }
    for (int64_t i = 0; i < n; ++i) {
      double deviation = round(x.data[begin + i] - mean);
      squares = round(squares + round(deviation * deviation));
    }
    double scale = round(1 / std::sqrt(round(squares / static_cast<double>(n)) + eps));
    for (int64_t i = 0; i < n; ++i) {
      double value = round(round(round(x.data[begin + i] - mean) * scale) * operands[1].data[i]);
      result.data[begin + i] = centre ? round(value + operands[2].data[i]) : value;
    }
  }
  return {};
}

std::vector<Value> expandNorm(ExpandBuilder &b, ir::ApplyOp op, bool centre) {
  DType dtype = dtypeOf(op.getOperands()[0]);
  Value x = widen(b, op.getOperands()[0]);
  int64_t axis = rankOf(x) - 1;
  auto mean = [&](Value v) {
    return applyOne(b, "mean", v, {{"axis", axis}, {"keepdims", int64_t(1)}});
  };
  Value deviation = centre ? applyOne(b, "sub", {x, mean(x)}) : x;
  Value variance = mean(applyOne(b, "square", deviation));
  Value eps = number(b, numberAttr(op, "eps"), DType::F32);
  Value scale = applyOne(b, "rsqrt", applyOne(b, "add", {variance, eps}));
  Value result = applyOne(b, "mul", {deviation, scale});
  result = applyOne(b, "mul", {result, widen(b, op.getOperands()[1])});
  if (centre)
    result = applyOne(b, "add", {result, widen(b, op.getOperands()[2])});
  return {narrow(b, result, dtype)};
}

void addNorm(std::vector<Op> &ops, const std::string &name, const std::string &summary, bool centre,
             double defaultEps) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor}, {"gain", ParamKind::Tensor}};
  if (centre)
    op.params.push_back({"bias", ParamKind::Tensor});
  op.params.push_back({"eps", ParamKind::Number, Attr(defaultEps)});
  op.shape = [name](std::span<const OperandType> operands, const Attrs &, const DimOracle &oracle) {
    return normShape(name, operands, oracle);
  };
  op.reference = [=](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                     std::span<RefTensor> results) {
    return normReference(operands, numberAttr(attrs, "eps", defaultEps), centre, arithmetic,
                         results[0]);
  };
  op.batch = expand(
      [centre](ExpandBuilder &b, ir::ApplyOp apply) { return expandNorm(b, apply, centre); });
  ops.push_back(std::move(op));
}

} // namespace

void addNormalise(std::vector<Op> &ops) {
  addSoftmax(ops, "softmax", "exp(x) over its sum along an axis, the last by default", false);
  addSoftmax(ops, "log_softmax", "the logarithm of softmax, without underflow", true);
  addNorm(ops, "layer_norm",
          "x less its mean, over its standard deviation along the last axis, times gain plus bias",
          true, 1e-5);
  addNorm(ops, "rms_norm", "x over its root mean square along the last axis, times gain", false,
          1e-6);
}

} // namespace sheaf::ops

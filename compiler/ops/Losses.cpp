//===- Losses.cpp - Losses and measures of distributions ------------------===//
//
// mse (x, target), huber (x, target, delta = 1), entropy (p, axis = -1), kl_div (p, q, axis = -1).
// Kernels know none of them. cross_entropy is in CrossEntropy.cpp, bce_with_logits in
// Functions.cpp.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Elementwise.h"
#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

//===----------------------------------------------------------------------===//
// Of the difference of two tensors
//===----------------------------------------------------------------------===//

void addHuber(std::vector<Op> &ops) {
  constexpr double kDelta = 1;
  ElementwiseSpec spec{
      "huber",
      "half the square of x - target, from delta on its magnitude times delta less "
      "delta^2 / 2, for each element",
      {"x", "target"},
      Elements::Floats,
      "take the Huber loss of {0} and {1}",
      {},
      {}};
  Op op = elementwiseOp(spec);
  op.params.push_back({"delta", ParamKind::Number, Attr(kDelta)});
  ShapeRule shape = op.shape;
  op.shape = [=](std::span<const OperandType> operands, const Attrs &attrs,
                 const DimOracle &oracle) {
    if (double delta = numberAttr(attrs, "delta", kDelta); !(delta > 0))
      return ShapeResult::fail("delta of 'huber' is greater than 0");
    return shape(operands, attrs, oracle);
  };
  op.reference = [spec](const RefTensors &operands, const Attrs &attrs,
                        const Arithmetic &arithmetic, std::span<RefTensor> results) {
    double delta = numberAttr(attrs, "delta", kDelta);
    ElementwiseSpec withDelta = spec;
    withDelta.eval = [&](std::span<const double> x) {
      double d = std::fabs(arithmetic.round(x[0] - x[1]));
      return d <= delta ? arithmetic.round(0.5 * d) * d
                        : arithmetic.round(delta) * arithmetic.round(d - delta / 2);
    };
    return elementwiseReference(withDelta, operands, arithmetic, results[0]);
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    DType dtype = dtypeOf(apply.getResult(0));
    auto constant = [&](double value) { return number(b, value, DType::F32); };
    double delta = numberAttr(apply, "delta");
    Value difference =
        applyOne(b, "sub", {widen(b, apply.getOperand(0)), widen(b, apply.getOperand(1))});
    Value d = applyOne(b, "abs", difference);
    Value inside = applyOne(b, "mul", {applyOne(b, "mul", {constant(0.5), d}), d});
    Value outside =
        applyOne(b, "mul", {constant(delta), applyOne(b, "sub", {d, constant(delta / 2)})});
    Value isInside = applyOne(b, "le", {d, constant(delta)});
    return {narrow(b, applyOne(b, "where", {isInside, inside, outside}), dtype)};
  });
  ops.push_back(std::move(op));
}

void addMeanSquare(std::vector<Op> &ops) {
  ElementwiseSpec spec{"mse",
                       "the mean of the squares of x - target, of all elements",
                       {"x", "target"},
                       Elements::Floats,
                       "take the mean squared error of {0} and {1}",
                       [](auto x) { return x[0] - x[1]; },
                       {}};
  Op op = elementwiseOp(spec);
  ShapeRule shape = op.shape;
  op.shape = [shape](std::span<const OperandType> operands, const Attrs &attrs,
                     const DimOracle &oracle) {
    ShapeResult result = shape(operands, attrs, oracle);
    for (TensorType &type : result.types)
      type.dims.clear();
    return result;
  };
  op.reference = [spec](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                        std::span<RefTensor> results) -> std::string {
    RefTensor differences = results[0];
    // As NumPy broadcasts.
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::vector<int64_t> &shape = operands[i].shape;
      if (shape.size() > differences.shape.size())
        differences.shape.insert(differences.shape.begin(), shape.size() - differences.shape.size(),
                                 1);
      size_t first = differences.shape.size() - shape.size();
      for (size_t axis = 0; axis < shape.size(); ++axis)
        if (differences.shape[first + axis] == 1)
          differences.shape[first + axis] = shape[axis];
    }
    differences.data.resize(static_cast<size_t>(differences.size()));
    elementwiseReference(spec, operands, arithmetic, differences);
    double sum = 0;
    for (double d : differences.data)
      sum = arithmetic.round(sum + arithmetic.round(d * d));
    results[0].data[0] = arithmetic.round(sum / static_cast<double>(differences.data.size()));
    return {};
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value difference =
        applyOne(b, "sub", {widen(b, apply.getOperand(0)), widen(b, apply.getOperand(1))});
    Value mean = applyOne(b, "mean", applyOne(b, "square", difference));
    return {narrow(b, mean, dtypeOf(apply.getResult(0)))};
  });
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// Of distributions along an axis
//===----------------------------------------------------------------------===//

/// All operands are tensors of one type; the axis is gone from the result.
ShapeResult distributionShape(const std::string &action, std::span<const OperandType> operands,
                              const Attrs &attrs, const DimOracle &oracle) {
  TensorType first;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = floatTensor(operands, i, action);
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    const TensorType &type = std::get<TensorType>(operand);
    if (i == 0) {
      first = type;
      continue;
    }
    std::string what = "cannot " + action + " " + first.str() + " and " + type.str() + ": ";
    int blame = static_cast<int>(i);
    if (type.dtype != first.dtype)
      return ShapeResult::fail(what + "the element types differ", blame);
    if (type.dims.size() != first.dims.size())
      return ShapeResult::fail(what + "the numbers of axes differ", blame);
    for (size_t axis = 0; axis < type.dims.size(); ++axis) {
      if (!oracle.same(type.dims[axis], first.dims[axis]))
        return ShapeResult::fail(what + "the extents of axis " + std::to_string(axis) +
                                     " differ (" + withValue(first.dims[axis], oracle) + ", " +
                                     withValue(type.dims[axis], oracle) + ")",
                                 blame);
      first.dims[axis] = better(first.dims[axis], type.dims[axis], oracle);
    }
  }
  auto at = axisAttr(intAttr(attrs, "axis", -1), first, first.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  first.dims.erase(first.dims.begin() + static_cast<int64_t>(std::get<size_t>(at)));
  return ShapeResult::ok(std::move(first));
}

/// `term` of the elements of all operands at a place, summed along the axis.
using Term = std::function<double(std::span<const double>, const Arithmetic &)>;

std::string distributionReference(const Term &term, const RefTensors &operands, const Attrs &attrs,
                                  const Arithmetic &arithmetic, RefTensor &result) {
  const std::vector<int64_t> &shape = operands[0].shape;
  AxisView view(shape, axisIn(attrs, "axis", -1, shape.size()));
  std::vector<double> values(operands.size());
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      double sum = 0;
      for (int64_t i = 0; i < view.extent; ++i) {
        for (size_t which = 0; which < values.size(); ++which)
          values[which] = operands[which].data[view.at(o, i, n)];
        sum = arithmetic.round(sum + term(values, arithmetic));
      }
      result.data[o * view.inner + n] = sum;
    }
  return {};
}

double timesLog(double x, double y, const Arithmetic &arithmetic) {
  return x == 0 && !std::isnan(y) ? 0 : arithmetic.round(x * arithmetic.round(std::log(y)));
}

void addOfDistributions(std::vector<Op> &ops, const std::string &name, const std::string &summary,
                        const std::string &action, std::vector<std::string> params, Term term,
                        std::function<Value(ExpandBuilder &, mlir::ArrayRef<Value>)> rewrite) {
  Op op;
  op.name = name;
  op.summary = summary;
  for (const std::string &param : params)
    op.params.push_back({param, ParamKind::Tensor});
  op.params.push_back({"axis", ParamKind::Static, Attr(int64_t(-1))});
  op.shape = [action](std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
    return distributionShape(action, operands, attrs, oracle);
  };
  op.reference = [term](const RefTensors &operands, const Attrs &attrs,
                        const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return distributionReference(term, operands, attrs, arithmetic, results[0]);
  };
  op.batch = expand([rewrite](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    mlir::SmallVector<Value> wide;
    for (Value operand : apply.getOperands())
      wide.push_back(widen(b, operand));
    Value sum = reduceAxis(b, "reduce_sum", rewrite(b, wide), intAttr(apply, "axis"), false);
    return {narrow(b, sum, dtypeOf(apply.getResult(0)))};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addLosses(std::vector<Op> &ops) {
  addHuber(ops);
  addMeanSquare(ops);
  addOfDistributions(
      ops, "entropy",
      "-sum(p * log(p)) of probabilities along an axis, the last by default; a term is 0 where p "
      "is",
      "take the entropy of", {"p"},
      [](auto x, const Arithmetic &arithmetic) { return -timesLog(x[0], x[0], arithmetic); },
      [](ExpandBuilder &b, mlir::ArrayRef<Value> x) {
        return applyOne(b, "neg", applyOne(b, "xlogy", {x[0], x[0]}));
      });
  addOfDistributions(
      ops, "kl_div",
      "sum(p * log(p / q)) of probabilities along an axis, the last by default; a term is 0 where "
      "p "
      "is",
      "take the divergence of", {"p", "q"},
      [](auto x, const Arithmetic &arithmetic) {
        return arithmetic.round(timesLog(x[0], x[0], arithmetic) -
                                timesLog(x[0], x[1], arithmetic));
      },
      [](ExpandBuilder &b, mlir::ArrayRef<Value> x) {
        return applyOne(b, "sub",
                        {applyOne(b, "xlogy", {x[0], x[0]}), applyOne(b, "xlogy", {x[0], x[1]})});
      });
}

} // namespace sheaf::ops

//===- Reductions.cpp - Sums, greatest and least along axes ---------------===//
//
// In source: sum mean max min logsumexp norm (x, axis, keepdims = 0); without `axis` over the whole
// tensor. Attribute `axis` may be absent in these.
// For kernels: reduce_sum reduce_max reduce_min argmax, with attributes `axis` and `keepdims` (0 or
// 1), both always there. The sum of nothing is 0, the greatest of nothing the least value of the
// element type (-inf), argmax of nothing is 0. NaN is greater and less than every number, so max,
// min and argmax find it. argmax gives the first place, as i32.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

struct ReductionSpec {
  std::string name;
  std::string summary;
  bool floatsOnly = false;
  bool toIndex = false;
};

ShapeResult reduceShape(const ReductionSpec &spec, std::span<const OperandType> operands,
                        const Attrs &attrs, std::optional<int64_t> axis) {
  std::string action = "take the " + spec.name + " of";
  auto operand =
      spec.floatsOnly ? floatTensor(operands, 0, action) : tensorOperand(operands, 0, action);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (type.vocab || type.dtype == DType::Bool)
    return ShapeResult::fail("cannot " + action + " " + type.str() +
                                 ": its elements are not numbers",
                             0, type.vocab ? "" : "convert it with f32(...)");
  int64_t keep = intAttr(attrs, "keepdims", 0);
  if (keep != 0 && keep != 1)
    return ShapeResult::fail("keepdims is 0 or 1, not " + std::to_string(keep));
  auto reduce = [&](size_t at) {
    if (keep)
      type.dims[at] = Dim(1);
    else
      type.dims.erase(type.dims.begin() + static_cast<int64_t>(at));
  };
  if (axis) {
    auto at = axisAttr(*axis, type, type.dims.size());
    if (auto *error = std::get_if<ShapeError>(&at))
      return *error;
    size_t which = std::get<size_t>(at);
    reduce(which);
  } else {
    for (size_t i = type.dims.size(); i-- > 0;)
      reduce(i);
  }
  if (spec.toIndex)
    type.dtype = DType::I32;
  return ShapeResult::ok(std::move(type));
}

/// One reduced row: its values in order.
using RowReference = std::function<double(std::span<const double>, DType, const Arithmetic &)>;

double sumOf(std::span<const double> row, DType dtype, const Arithmetic &arithmetic) {
  double sum = 0;
  uint64_t exact = 0;
  for (double x : row) {
    sum = arithmetic.round(sum + x);
    if (!isFloat(dtype))
      exact += static_cast<uint64_t>(truncateToInt(x, DType::I64));
  }
  return isFloat(dtype) ? sum : wrapInt(static_cast<int64_t>(exact), dtype);
}

double lowest(DType dtype) {
  return isFloat(dtype)        ? -std::numeric_limits<double>::infinity()
         : dtype == DType::I32 ? std::numeric_limits<int32_t>::min()
                               : static_cast<double>(std::numeric_limits<int64_t>::min());
}
double highest(DType dtype) {
  return isFloat(dtype)        ? std::numeric_limits<double>::infinity()
         : dtype == DType::I32 ? std::numeric_limits<int32_t>::max()
                               : static_cast<double>(std::numeric_limits<int64_t>::max());
}

double maxOf(std::span<const double> row, DType dtype, const Arithmetic &) {
  double best = lowest(dtype);
  for (double x : row)
    best = maximumOf(best, x);
  return best;
}

double minOf(std::span<const double> row, DType dtype, const Arithmetic &) {
  double best = highest(dtype);
  for (double x : row)
    best = minimumOf(best, x);
  return best;
}

double argmaxOf(std::span<const double> row, DType, const Arithmetic &) {
  size_t best = 0;
  for (size_t i = 1; i < row.size() && !std::isnan(row[best]); ++i)
    if (row[i] > row[best] || std::isnan(row[i]))
      best = i;
  return static_cast<double>(best);
}

double meanOf(std::span<const double> row, DType dtype, const Arithmetic &arithmetic) {
  return arithmetic.round(sumOf(row, dtype, arithmetic) / static_cast<double>(row.size()));
}

double logSumExpOf(std::span<const double> row, DType dtype, const Arithmetic &arithmetic) {
  double greatest = maxOf(row, dtype, arithmetic), sum = 0;
  // Without this, a row of -inf (everything masked out) would give NaN.
  double shift = std::isinf(greatest) ? 0 : greatest;
  for (double x : row)
    sum = arithmetic.round(sum + arithmetic.round(std::exp(arithmetic.round(x - shift))));
  return arithmetic.round(arithmetic.round(std::log(sum)) + shift);
}

double normOf(std::span<const double> row, DType, const Arithmetic &arithmetic) {
  double sum = 0;
  for (double x : row)
    sum = arithmetic.round(sum + arithmetic.round(x * x));
  return arithmetic.round(std::sqrt(sum));
}

std::string reduceReference(const RowReference &rule, const RefTensor &x, const Attrs &attrs,
                            const Arithmetic &arithmetic, RefTensor &result) {
  auto axis = optionalInt(attrs, "axis");
  if (!axis) {
    result.data[0] = rule(x.data, x.dtype, arithmetic);
    return {};
  }
  int64_t rank = static_cast<int64_t>(x.shape.size());
  AxisView view(x.shape, static_cast<size_t>(*axis < 0 ? *axis + rank : *axis));
  std::vector<double> row(view.extent);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      for (int64_t i = 0; i < view.extent; ++i)
        row[i] = x.data[view.at(o, i, n)];
      result.data[o * view.inner + n] = rule(row, x.dtype, arithmetic);
    }
  return {};
}

AxisView axisOf(const RefTensor &x, const Attrs &attrs) {
  return {x.shape, axisIn(attrs, "axis", -1, x.shape.size())};
}

/// Another place is the greatest's once the two are equal.
double argmaxDistance(const RefTensor &x, const Attrs &attrs, const RefTensor &result, size_t at,
                      double value) {
  AxisView view = axisOf(x, attrs);
  if (!isFloat(x.dtype) || !isPlace(value, view.extent))
    return std::numeric_limits<double>::infinity();
  auto outer = static_cast<int64_t>(at) / view.inner, inner = static_cast<int64_t>(at) % view.inner;
  auto score = [&](double place) {
    return x.data[view.at(outer, static_cast<int64_t>(place), inner)];
  };
  return distanceToMeet(score(result.data[at]), score(value));
}

/// One of the operators that kernels know.
void addKernelReduction(std::vector<Op> &ops, ReductionSpec spec, Reduction::Kind kind,
                        RowReference rule) {
  Op op;
  bool isPublic = kind == Reduction::ArgMax;
  op.name = isPublic ? spec.name : "reduce_" + spec.name;
  op.summary = spec.summary;
  op.internal = !isPublic;
  op.params = {{"x", ParamKind::Tensor},
               {"axis", ParamKind::Static, Attr(int64_t(-1))},
               {"keepdims", ParamKind::Static, Attr(int64_t(0))}};
  op.batch = Reduction{kind};
  op.shape = [spec](std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &) {
    return reduceShape(spec, operands, attrs, intAttr(attrs, "axis", -1));
  };
  op.reference = [rule](const RefTensors &operands, const Attrs &attrs,
                        const Arithmetic &arithmetic, std::span<RefTensor> results) {
    Attrs withAxis = attrs;
    withAxis.try_emplace("axis", int64_t(-1));
    return reduceReference(rule, operands[0], withAxis, arithmetic, results[0]);
  };
  if (kind == Reduction::ArgMax)
    op.decision = {
        .distance =
            [](const RefTensors &operands, const Attrs &attrs, const RefTensor &result, size_t at,
               double value) { return argmaxDistance(operands[0], attrs, result, at, value); },
        .range = [](const RefTensors &operands, const Attrs &attrs, const RefTensor &,
                    size_t) { return placeRange(axisOf(operands[0], attrs).extent); }};
  ops.push_back(std::move(op));
}

/// Reduces one axis of x: what a public reduction is made of.
using AxisRule = std::function<Value(ExpandBuilder &, Value x, int64_t axis, bool keepdims)>;

std::vector<Value> expandReduction(ExpandBuilder &b, ir::ApplyOp op, const AxisRule &rule,
                                   const std::string &ofScalar) {
  DType dtype = dtypeOf(op.getOperands()[0]);
  Value x = widen(b, op.getOperands()[0]);
  if (rankOf(x) == 0 && !ofScalar.empty())
    return {narrow(b, applyOne(b, ofScalar, x), dtype)};
  bool keepdims = intAttr(op, "keepdims") != 0;
  if (op.getAttrs().contains("axis"))
    return {narrow(b, rule(b, x, intAttr(op, "axis"), keepdims), dtype)};
  // Every reduction here gives the same, to rounding, in one step or axis by axis; a mean of means
  // because all rows are equally long.
  for (int64_t axis = rankOf(x); axis-- > 0;)
    x = rule(b, x, axis, keepdims);
  return {narrow(b, x, dtype)};
}

/// `ofScalar`: the operator that it is of a tensor without axes; none, if that stays as it is.
void addReduction(std::vector<Op> &ops, ReductionSpec spec, RowReference reference, AxisRule rule,
                  std::string ofScalar = {}) {
  Op op;
  op.name = spec.name;
  op.summary = spec.summary;
  op.params = {{"x", ParamKind::Tensor},
               {"axis", ParamKind::Static, {}, true},
               {"keepdims", ParamKind::Static, Attr(int64_t(0))}};
  op.batch = expand([rule, ofScalar](ExpandBuilder &b, ir::ApplyOp apply) {
    return expandReduction(b, apply, rule, ofScalar);
  });
  op.shape = [spec](std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &) {
    return reduceShape(spec, operands, attrs, optionalInt(attrs, "axis"));
  };
  op.reference = [reference](const RefTensors &operands, const Attrs &attrs,
                             const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return reduceReference(reference, operands[0], attrs, arithmetic, results[0]);
  };
  ops.push_back(std::move(op));
}

AxisRule byKernel(std::string op) {
  return [op](ExpandBuilder &b, Value x, int64_t axis, bool keepdims) {
    return reduceAxis(b, op, x, axis, keepdims);
  };
}

Value meanAxis(ExpandBuilder &b, Value x, int64_t axis, bool keepdims) {
  Value sum = reduceAxis(b, "reduce_sum", x, axis, keepdims);
  Value count = promote(b, extentValue(b, extentOf(b, x, axis)), dtypeOf(x));
  return applyOne(b, "div", {sum, count});
}

/// No gradient goes to a row of zeros.
Value normAxis(ExpandBuilder &b, Value x, int64_t axis, bool keepdims) {
  Value sum = reduceAxis(b, "reduce_sum", applyOne(b, "square", x), axis, keepdims);
  Value isZero = applyOne(b, "eq", {sum, number(b, 0, dtypeOf(x))});
  return applyOne(b, "where", {isZero, sum, applyOne(b, "sqrt", sum)});
}

Value logSumExpAxis(ExpandBuilder &b, Value x, int64_t axis, bool keepdims) {
  // The result does not depend on what is subtracted.
  Value greatest = applyOne(b, "stop_gradient", reduceAxis(b, "reduce_max", x, axis, true));
  Value powers = applyOne(b, "exp", applyOne(b, "sub", {x, greatest}));
  Value sum = reduceAxis(b, "reduce_sum", powers, axis, true);
  Value result = applyOne(b, "add", {applyOne(b, "log", sum), greatest});
  // An infinity stands for all: what is subtracted of it is no number. No gradient goes to a row
  // that is all minus infinity, from whose sum no small change leads away.
  result = applyOne(b, "where", {isInfinite(b, greatest), greatest, result});
  return keepdims ? result : dropAxis(b, result, axis);
}

} // namespace

void addReductions(std::vector<Op> &ops) {
  addKernelReduction(ops, {"sum", "the sum along one axis"}, Reduction::Sum, sumOf);
  addKernelReduction(ops, {"max", "the greatest element along one axis"}, Reduction::Max, maxOf);
  addKernelReduction(ops, {"min", "the least element along one axis"}, Reduction::Min, minOf);
  addKernelReduction(ops,
                     {"argmax",
                      "the place of the greatest element along an axis, the last by "
                      "default, as i32; the first of equals, 0 if there is none",
                      false, true},
                     Reduction::ArgMax, argmaxOf);
  addReduction(ops, {"sum", "the sum along an axis, or of all elements"}, sumOf,
               byKernel("reduce_sum"));
  addReduction(ops, {"max", "the greatest element along an axis, or of all; see also maximum"},
               maxOf, byKernel("reduce_max"));
  addReduction(ops, {"min", "the least element along an axis, or of all; see also minimum"}, minOf,
               byKernel("reduce_min"));
  addReduction(ops, {"mean", "the mean along an axis, or of all elements", true}, meanOf, meanAxis);
  addReduction(ops,
               {"logsumexp", "log(sum(exp(x))) along an axis, or of all, without overflow", true},
               logSumExpOf, logSumExpAxis);
  addReduction(
      ops,
      {"norm",
       "the square root of the sum of squares along an axis, or of all; its gradient is 0 at 0",
       true},
      normOf, normAxis, "abs");
}

} // namespace sheaf::ops

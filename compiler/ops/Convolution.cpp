//===- Convolution.cpp - Convolution and pooling along a sequence ---------===//
//
// In source: conv1d (x, weight, stride = 1, padding = 0, dilation = 1, groups = 1), max_pool1d and
// avg_pool1d (x, size, stride = size, padding = 0). The places are the last axis but one of x, the
// channels the last. Kernels know none of them: a window is seen as one view of x for each tap, and
// a convolution is one product, whose sums go over the taps and in each over the channels.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

const double kLowest = -std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// How windows lie on a sequence: the first begins `padding` places before it, and they have
/// `dilation` places from one tap to the next.
struct Steps {
  int64_t stride = 1, padding = 0, dilation = 1;

  /// From the first place of a window to its last.
  template <typename Number> Number reach(const Number &taps) const {
    return (taps - Number(1)) * Number(dilation);
  }
};

/// Why steps are none; empty if they do.
std::string stepsMistake(const std::string &name, const Steps &steps) {
  auto least = [&](const char *what, int64_t value, int64_t most) -> std::string {
    if (value >= most)
      return {};
    return std::string("the ") + what + " of '" + name + "' is at least " + std::to_string(most) +
           ", not " + std::to_string(value);
  };
  std::string mistake = least("stride", steps.stride, 1);
  if (mistake.empty())
    mistake = least("padding", steps.padding, 0);
  if (mistake.empty())
    mistake = least("dilation", steps.dilation, 1);
  constexpr int64_t greatest = int64_t{1} << 31;
  if (mistake.empty() && std::max({steps.stride, steps.padding, steps.dilation}) >= greatest)
    mistake = "the steps of '" + name + "' are below 2^31";
  return mistake;
}

/// The number of windows of so many taps, and the least number of places that it takes.
Expected<Dim> windowsOf(const std::string &what, const TensorType &x, const Dim &taps,
                        const Steps &steps, const DimOracle &oracle) {
  const Dim &places = x.dims[x.dims.size() - 2];
  Dim rest = places + Dim(2 * steps.padding) - steps.reach(taps);
  if (oracle.value(rest).value_or(0) < 0)
    return ShapeError{what + "a window of " + withValue(steps.reach(taps) + Dim(1), oracle) +
                          " does not fit into a sequence of " + withValue(places, oracle) +
                          " with " + std::to_string(steps.padding) + " before and after it",
                      0};
  if (steps.stride == 1)
    return rest;
  return oracle.floorQuotient(rest + Dim(steps.stride - 1), steps.stride);
}

/// The windows over a tensor, seen tap by tap.
class Windows {
public:
  /// `filling` stands for what is before and after the sequence.
  Windows(ExpandBuilder &b, Value x, int64_t taps, const Steps &steps, double filling)
      : b_(b), steps_(steps), axis_(rankOf(x) - 2) {
    int64_t reach = steps.reach(taps);
    count_ = countOf(x, reach);
    // In front of tap 0 of the last window and after it are full strides.
    int64_t after = (steps.stride - (reach + 1) % steps.stride) % steps.stride;
    if (steps.padding + after > 0)
      x = applyOne(b, "pad", x,
                   {{"before", steps.padding},
                    {"after", steps.padding + after},
                    {"axis", axis_},
                    {"value", filling}});
    if (steps.stride > 1)
      x = inStrides(x, reach / steps.stride);
    x_ = x;
  }

  /// Tap j of all windows: as x, with windows instead of places.
  Value tap(int64_t j) const {
    int64_t place = j * steps_.dilation;
    Value x = x_;
    if (steps_.stride > 1)
      x = applyOne(b_, "pick", {x, extentValue(b_, b_.getI64IntegerAttr(place % steps_.stride))},
                   {{"axis", axis_ + 1}});
    return applyOne(b_, "window", x,
                    {{"start", place / steps_.stride}, {"size", count_}, {"axis", axis_}});
  }

private:
  Extent countOf(Value x, int64_t reach) {
    Extent places = extentOf(b_, x, axis_);
    int64_t more = 2 * steps_.padding - reach;
    if (auto known = mlir::getConstantIntValue(places)) {
      int64_t rest = *known + more;
      return b_.getI64IntegerAttr(steps_.stride == 1 ? rest
                                                     : (rest + steps_.stride - 1) / steps_.stride);
    }
    auto constant = [&](int64_t value) { return extentValue(b_, b_.getI64IntegerAttr(value)); };
    Value n = extentValue(b_, places);
    Value rest = mlir::arith::AddIOp::create(b_, n, constant(more));
    Value fits =
        mlir::arith::CmpIOp::create(b_, mlir::arith::CmpIPredicate::sge, rest, constant(0));
    ir::CheckOp::create(b_, fits,
                        "a window of " + std::to_string(reach + 1) +
                            " does not fit into a sequence of {0} with " +
                            std::to_string(steps_.padding) + " before and after it",
                        n);
    if (steps_.stride == 1)
      return rest;
    Value whole = mlir::arith::AddIOp::create(b_, rest, constant(steps_.stride - 1));
    return Value(ir::DivOp::create(b_, whole, constant(steps_.stride)));
  }

  /// x with the places of a stride on an axis of their own, as far as windows reach.
  Value inStrides(Value x, int64_t further) {
    Extent strides;
    if (auto known = mlir::getConstantIntValue(count_))
      strides = b_.getI64IntegerAttr(*known + further);
    else
      strides = Value(mlir::arith::AddIOp::create(b_, extentValue(b_, count_),
                                                  extentValue(b_, b_.getI64IntegerAttr(further))));
    Extent places;
    if (auto known = mlir::getConstantIntValue(strides))
      places = b_.getI64IntegerAttr(*known * steps_.stride);
    else
      places = Value(mlir::arith::MulIOp::create(
          b_, extentValue(b_, strides), extentValue(b_, b_.getI64IntegerAttr(steps_.stride))));
    x = applyOne(b_, "window", x, {{"start", int64_t(0)}, {"size", places}, {"axis", axis_}});
    std::vector<Extent> dims = extentsOf(b_, x);
    dims[axis_] = strides;
    dims.insert(dims.begin() + axis_ + 1, Extent(b_.getI64IntegerAttr(steps_.stride)));
    return applyOne(b_, "reshape", x, {{"dims", dims}});
  }

  ExpandBuilder &b_;
  Steps steps_;
  int64_t axis_;
  Extent count_;
  Value x_;
};

/// The references' view: calls `visit` with the number of a window, a tap and the place that it is
/// on, which may be before or after the sequence, for each of so many sequences.
template <typename Visit>
void forEachTap(int64_t windows, int64_t taps, const Steps &steps, Visit visit) {
  for (int64_t window = 0; window < windows; ++window)
    for (int64_t tap = 0; tap < taps; ++tap)
      visit(window, tap, window * steps.stride - steps.padding + tap * steps.dilation);
}

//===----------------------------------------------------------------------===//
// conv1d
//===----------------------------------------------------------------------===//

Steps stepsOf(const Attrs &attrs) {
  return {intAttr(attrs, "stride", 1), intAttr(attrs, "padding", 0), intAttr(attrs, "dilation", 1)};
}

/// A sequence of channels, perhaps several.
Expected<TensorType> sequence(std::span<const OperandType> operands, const std::string &action) {
  auto operand = floatTensor(operands, 0, action);
  if (auto *type = std::get_if<TensorType>(&operand); type && type->dims.size() < 2)
    return ShapeError{"cannot " + action + " " + type->str() + ": it has " +
                          counted(static_cast<int64_t>(type->dims.size()), "axis", "axes") +
                          ", and places and channels are needed",
                      0};
  return operand;
}

ShapeResult convShape(std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
  auto operand = sequence(operands, "convolve");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  auto second = floatTensor(operands, 1, "convolve with");
  if (auto *error = std::get_if<ShapeError>(&second))
    return *error;
  TensorType x = std::get<TensorType>(operand);
  const TensorType &weight = std::get<TensorType>(second);
  std::string what = "cannot convolve " + x.str() + " with " + weight.str() + ": ";
  if (weight.dtype != x.dtype)
    return ShapeResult::fail(what + "the element types differ", 1);
  if (weight.dims.size() != 3)
    return ShapeResult::fail(what + "a weight is [taps, channels of a group that come in, channels "
                                    "that come out]",
                             1);
  Steps steps = stepsOf(attrs);
  int64_t groups = intAttr(attrs, "groups", 1);
  if (std::string mistake = stepsMistake("conv1d", steps); !mistake.empty())
    return ShapeResult::fail(mistake);
  if (groups < 1 || groups >= int64_t{1} << 31)
    return ShapeResult::fail("'conv1d' has at least 1 group, not " + std::to_string(groups));
  const Dim &taps = weight.dims[0], &in = weight.dims[1], &out = weight.dims[2];
  if (!oracle.same(x.dims.back(), in * Dim(groups)))
    return ShapeResult::fail(what + "there are " + withValue(x.dims.back(), oracle) +
                                 " channels, and the weight is for " +
                                 (groups > 1 ? std::to_string(groups) + " groups of " : "") +
                                 withValue(in, oracle),
                             1,
                             oracle.same(x.dims[x.dims.size() - 2], in * Dim(groups))
                                 ? "channels are the last axis: transpose the sequence"
                                 : "");
  if (groups > 1 && !oracle.quotient(out, Dim(groups)))
    return ShapeResult::fail(what + withValue(out, oracle) + " channels do not come out of " +
                                 std::to_string(groups) + " groups alike",
                             1);
  auto known = oracle.value(taps);
  if (!known)
    return ShapeResult::fail(what + "the number of taps, the weight's first extent, must be known "
                                    "when the model is compiled",
                             1);
  if (*known < 1)
    return ShapeResult::fail(what + "there are no taps", 1);
  auto windows = windowsOf(what, x, taps, steps, oracle);
  if (auto *error = std::get_if<ShapeError>(&windows))
    return *error;
  x.dims[x.dims.size() - 2] = std::get<Dim>(windows);
  x.dims.back() = out;
  return ShapeResult::ok(std::move(x));
}

std::string convReference(const RefTensors &operands, const Attrs &attrs,
                          const Arithmetic &arithmetic, RefTensor &result) {
  const RefTensor &x = operands[0], &weight = operands[1];
  int64_t channels = x.shape.back(), places = x.shape[x.shape.size() - 2];
  int64_t taps = weight.shape[0], in = weight.shape[1], out = weight.shape[2];
  int64_t windows = result.shape[result.shape.size() - 2];
  int64_t perGroup = out / intAttr(attrs, "groups", 1);
  int64_t sequences = windows * out == 0 ? 0 : result.size() / (windows * out);
  for (int64_t s = 0; s < sequences; ++s)
    forEachTap(windows, taps, stepsOf(attrs), [&](int64_t window, int64_t tap, int64_t place) {
      double *sums = result.data.data() + (s * windows + window) * out;
      bool inside = place >= 0 && place < places;
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < in; ++i) {
          int64_t channel = o / perGroup * in + i;
          double value = inside ? x.data[(s * places + place) * channels + channel] : 0;
          sums[o] = arithmetic.round(sums[o] + value * weight.data[(tap * in + i) * out + o]);
        }
    });
  return {};
}

Extent quotientBy(ExpandBuilder &b, Extent extent, int64_t divisor) {
  if (auto known = mlir::getConstantIntValue(extent))
    return b.getI64IntegerAttr(*known / divisor);
  return Value(
      ir::DivOp::create(b, extentValue(b, extent), extentValue(b, b.getI64IntegerAttr(divisor))));
}

Extent times(ExpandBuilder &b, Extent extent, int64_t factor) {
  if (auto known = mlir::getConstantIntValue(extent))
    return b.getI64IntegerAttr(*known * factor);
  return Value(mlir::arith::MulIOp::create(b, extentValue(b, extent),
                                           extentValue(b, b.getI64IntegerAttr(factor))));
}

Value transposed(ExpandBuilder &b, Value x, int64_t axis1, int64_t axis2) {
  return applyOne(b, "transpose", x, {{"axis1", axis1}, {"axis2", axis2}});
}

/// Every channel by itself: the sum of the taps, each times a vector.
Value convolveChannels(ExpandBuilder &b, const Windows &windows, Value weight, int64_t taps) {
  Value byTap = dropAxis(b, weight, 1);
  Value sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value factor = applyOne(b, "pick", {byTap, extentValue(b, b.getI64IntegerAttr(tap))},
                            {{"axis", int64_t(0)}});
    Value term = applyOne(b, "mul", {windows.tap(tap), factor});
    sum = sum ? applyOne(b, "add", {sum, term}) : term;
  }
  return sum;
}

/// Groups of channels are a batch axis before the places.
Value convolveGroups(ExpandBuilder &b, const Windows &windows, Value weight, int64_t taps,
                     int64_t groups) {
  std::vector<Extent> extents = extentsOf(b, weight);
  Extent in = extents[1], out = extents[2], count = b.getI64IntegerAttr(groups);
  Extent perGroup = quotientBy(b, out, groups);
  mlir::SmallVector<Value> factors;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value x = windows.tap(tap);
    std::vector<Extent> dims = extentsOf(b, x);
    dims.back() = count;
    dims.push_back(in);
    x = applyOne(b, "reshape", x, {{"dims", dims}});
    factors.push_back(transposed(b, x, rankOf(x) - 3, rankOf(x) - 2));
  }
  Value left = factors.size() == 1
                   ? factors[0]
                   : applyOne(b, "concat", factors, {{"axis", rankOf(factors[0]) - 1}});
  Value right = applyOne(b, "reshape", weight,
                         {{"dims", std::vector<Extent>{times(b, in, taps), count, perGroup}}});
  right = transposed(b, right, 0, 1);
  Value product = applyOne(b, "matmul", {left, right});
  product = transposed(b, product, rankOf(product) - 3, rankOf(product) - 2);
  std::vector<Extent> dims = extentsOf(b, product);
  dims.pop_back();
  dims.back() = out;
  return applyOne(b, "reshape", product, {{"dims", dims}});
}

Value convolveAll(ExpandBuilder &b, const Windows &windows, Value weight, int64_t taps) {
  std::vector<Extent> extents = extentsOf(b, weight);
  mlir::SmallVector<Value> factors;
  for (int64_t tap = 0; tap < taps; ++tap)
    factors.push_back(windows.tap(tap));
  Value left =
      taps == 1 ? factors[0] : applyOne(b, "concat", factors, {{"axis", rankOf(factors[0]) - 1}});
  Value right = applyOne(b, "reshape", weight,
                         {{"dims", std::vector<Extent>{times(b, extents[1], taps), extents[2]}}});
  return applyOne(b, "matmul", {left, right});
}

std::vector<Value> expandConv(ExpandBuilder &b, ir::ApplyOp op) {
  DType dtype = dtypeOf(op.getOperand(0));
  Value x = widen(b, op.getOperand(0)), weight = widen(b, op.getOperand(1));
  Steps steps{intAttr(op, "stride"), intAttr(op, "padding"), intAttr(op, "dilation")};
  int64_t groups = intAttr(op, "groups");
  auto shape = mlir::cast<mlir::RankedTensorType>(weight.getType()).getShape();
  int64_t taps = shape[0];
  Windows windows(b, x, taps, steps, 0);
  Value result = groups == 1 ? convolveAll(b, windows, weight, taps)
                 : shape[2] == groups && shape[1] == 1
                     ? convolveChannels(b, windows, weight, taps)
                     : convolveGroups(b, windows, weight, taps, groups);
  return {narrow(b, result, dtype)};
}

void addConv(std::vector<Op> &ops) {
  Op op;
  op.name = "conv1d";
  op.summary = "the convolution of a sequence, [places, channels], with a weight, [taps, "
               "channels in / groups, channels out], over zeros before and after it";
  op.params = {{"x", ParamKind::Tensor},
               {"weight", ParamKind::Tensor},
               {"stride", ParamKind::Static, Attr(int64_t(1))},
               {"padding", ParamKind::Static, Attr(int64_t(0))},
               {"dilation", ParamKind::Static, Attr(int64_t(1))},
               {"groups", ParamKind::Static, Attr(int64_t(1))}};
  op.shape = convShape;
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    return convReference(operands, attrs, arithmetic, results[0]);
  };
  op.batch = expand(expandConv);
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// max_pool1d, avg_pool1d
//===----------------------------------------------------------------------===//

Steps poolSteps(const Attrs &attrs, int64_t size) {
  return {intAttr(attrs, "stride", size), intAttr(attrs, "padding", 0), 1};
}

ShapeResult poolShape(const std::string &name, std::span<const OperandType> operands,
                      const Attrs &attrs, const DimOracle &oracle) {
  auto operand = sequence(operands, "pool");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType x = std::get<TensorType>(operand);
  int64_t size = intAttr(attrs, "size", 1);
  if (size < 1 || size > 4096)
    return ShapeResult::fail("the size of '" + name + "' is from 1 to 4096, not " +
                             std::to_string(size));
  Steps steps = poolSteps(attrs, size);
  if (std::string mistake = stepsMistake(name, steps); !mistake.empty())
    return ShapeResult::fail(mistake);
  // A window of nothing but padding would have no greatest element.
  if (2 * steps.padding > size)
    return ShapeResult::fail("the padding of '" + name + "' is at most half its size, not " +
                             std::to_string(steps.padding) + " of " + std::to_string(size));
  auto windows = windowsOf("cannot pool " + x.str() + ": ", x, Dim(size), steps, oracle);
  if (auto *error = std::get_if<ShapeError>(&windows))
    return *error;
  x.dims[x.dims.size() - 2] = std::get<Dim>(windows);
  return ShapeResult::ok(std::move(x));
}

std::string poolReference(const RefTensor &x, const Attrs &attrs, bool greatest,
                          const Arithmetic &arithmetic, RefTensor &result) {
  int64_t size = intAttr(attrs, "size", 1), channels = x.shape.back();
  int64_t places = x.shape[x.shape.size() - 2], windows = result.shape[result.shape.size() - 2];
  int64_t sequences = result.data.empty() ? 0 : result.size() / (windows * channels);
  std::fill(result.data.begin(), result.data.end(), greatest ? kLowest : 0);
  for (int64_t s = 0; s < sequences; ++s)
    forEachTap(windows, size, poolSteps(attrs, size), [&](int64_t window, int64_t, int64_t place) {
      if (place < 0 || place >= places)
        return;
      for (int64_t c = 0; c < channels; ++c) {
        double &y = result.data[(s * windows + window) * channels + c];
        double value = x.data[(s * places + place) * channels + c];
        y = greatest ? maximumOf(y, value) : arithmetic.round(y + value);
      }
    });
  if (!greatest)
    for (double &y : result.data)
      y = arithmetic.round(y / static_cast<double>(size));
  return {};
}

/// The taps are an axis before the channels, which is reduced.
std::vector<Value> expandPool(ExpandBuilder &b, ir::ApplyOp op, bool greatest) {
  DType dtype = dtypeOf(op.getOperand(0));
  Value x = widen(b, op.getOperand(0));
  int64_t size = intAttr(op, "size"), taps = rankOf(x) - 1;
  auto stride = op.getAttrs().getAs<mlir::IntegerAttr>("stride");
  Steps steps{stride ? stride.getInt() : size, intAttr(op, "padding"), 1};
  Windows windows(b, x, size, steps, greatest ? kLowest : 0);
  mlir::SmallVector<Value> parts;
  for (int64_t tap = 0; tap < size; ++tap)
    parts.push_back(insertAxis(b, windows.tap(tap), taps));
  Value all = size == 1 ? parts[0] : applyOne(b, "concat", parts, {{"axis", taps}});
  Value result = reduceAxis(b, greatest ? "reduce_max" : "reduce_sum", all, taps, false);
  if (!greatest)
    result = applyOne(b, "div", {result, number(b, static_cast<double>(size), DType::F32)});
  return {narrow(b, result, dtype)};
}

void addPool(std::vector<Op> &ops, const std::string &name, const std::string &summary,
             bool greatest) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor},
               {"size", ParamKind::Static},
               {"stride", ParamKind::Static, {}, true, "size"},
               {"padding", ParamKind::Static, Attr(int64_t(0))}};
  op.shape = [name](std::span<const OperandType> operands, const Attrs &attrs,
                    const DimOracle &oracle) { return poolShape(name, operands, attrs, oracle); };
  op.reference = [greatest](const RefTensors &operands, const Attrs &attrs,
                            const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return poolReference(operands[0], attrs, greatest, arithmetic, results[0]);
  };
  op.batch = expand(
      [greatest](ExpandBuilder &b, ir::ApplyOp apply) { return expandPool(b, apply, greatest); });
  ops.push_back(std::move(op));
}

} // namespace

void addConvolution(std::vector<Op> &ops) {
  addConv(ops);
  addPool(ops, "max_pool1d",
          "the greatest of each window of so many places of a sequence, [places, channels]", true);
  addPool(ops, "avg_pool1d",
          "the mean of each window of so many places of a sequence, [places, channels], zeros "
          "before and after it included",
          false);
}

} // namespace sheaf::ops

//===- Attention.cpp - Attention and rotary positions ---------------------===//
//
// In source: attention (q, k, v, causal = 0, scale), masked_attention (q, k, v, mask, causal = 0,
// scale), rope (x, start = 0, base = 10000). Kernels know none of them; rope_sin and rope_cos
// (Elementwise.cpp) give the angles.
// A query sees no key when all are masked out or there are none: then the result is 0. With
// `causal`, the last query sees all keys, the one before it all but the last, and so on. Of a key
// that a query does not see neither key nor value is read: a bool mask is false there, a float one
// minus infinity. Nor is a value whose weight is 0.
// rope turns the pairs (x[j], x[j + d/2]).
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

const double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// attention, masked_attention
//===----------------------------------------------------------------------===//

/// Whether so many heads of queries share those of keys: neither as many nor one for all.
bool areShared(int64_t heads, int64_t ofKeys) {
  return ofKeys > 1 && ofKeys < heads && heads % ofKeys == 0;
}

/// What is common to the shapes of queries, keys and values.
struct AttentionDims {
  TensorType q, k, v;
  std::vector<Dim> scores; ///< of each query with each key
};

std::vector<Dim> batchOf(const TensorType &type, size_t matrixAxes) {
  return {type.dims.begin(), type.dims.end() - static_cast<int64_t>(matrixAxes)};
}

Expected<AttentionDims> attentionDims(std::span<const OperandType> operands,
                                      const DimOracle &oracle) {
  std::string what = "cannot attend with " + describe(operands[0]) + " to " +
                     describe(operands[1]) + " and " + describe(operands[2]) + ": ";
  const char *names[] = {"queries", "keys", "values"};
  std::vector<TensorType> types;
  for (size_t i = 0; i < 3; ++i) {
    auto operand = floatTensor(operands, i, "attend with");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    types.push_back(std::get<TensorType>(operand));
    int blame = static_cast<int>(i);
    if (types[i].dtype != types[0].dtype)
      return ShapeError{what + "the element types differ", blame};
    size_t least = i == 0 ? 1 : 2;
    if (types[i].dims.size() < least)
      return ShapeError{what + "the " + names[i] + " have " +
                            counted(static_cast<int64_t>(types[i].dims.size()), "axis", "axes") +
                            ", and at least " + std::to_string(least) + " are needed",
                        blame};
  }
  const TensorType &q = types[0], &k = types[1], &v = types[2];
  if (!oracle.same(q.dims.back(), k.dims.back()))
    return ShapeError{what + "the last extents of queries and keys differ (" +
                          withValue(q.dims.back(), oracle) + ", " +
                          withValue(k.dims.back(), oracle) + ")",
                      1};
  const Dim &keys = k.dims[k.dims.size() - 2], &values = v.dims[v.dims.size() - 2];
  if (!oracle.same(keys, values))
    return ShapeError{what + "there must be one value for each key (" + withValue(keys, oracle) +
                          ", " + withValue(values, oracle) + ")",
                      2};
  size_t queryAxes = std::min<size_t>(q.dims.size(), 2);
  std::vector<Dim> batch = batchOf(q, queryAxes);
  // The heads of keys that several of queries share count as many.
  auto headsOf = [&](const TensorType &type) {
    return type.dims.size() < 3 ? std::nullopt : oracle.value(type.dims[type.dims.size() - 3]);
  };
  std::optional<int64_t> heads = queryAxes == 2 ? headsOf(q) : std::nullopt;
  auto shares = [&](const TensorType &type) {
    std::optional<int64_t> own = headsOf(type);
    return heads && own && areShared(*heads, *own);
  };
  for (size_t i = 1; i < 3; ++i) {
    BroadcastMismatch mismatch;
    std::vector<Dim> own = batchOf(types[i], 2);
    if (shares(types[i])) {
      if (!shares(types[3 - i]) || headsOf(k) != headsOf(v))
        return ShapeError{what + "keys and values have different numbers of heads (" +
                              describe(operands[1]) + ", " + describe(operands[2]) + ")",
                          2};
      own.back() = batch.back();
    }
    auto joined = broadcastDims(batch, own, oracle, mismatch);
    if (!joined)
      return ShapeError{what + "the batch extents differ (" + withValue(mismatch.a, oracle) + ", " +
                            withValue(mismatch.b, oracle) + ")",
                        static_cast<int>(i)};
    batch = std::move(*joined);
  }
  AttentionDims dims{q, k, v, std::move(batch)};
  if (queryAxes == 2)
    dims.scores.push_back(q.dims[q.dims.size() - 2]);
  dims.scores.push_back(better(keys, values, oracle));
  return dims;
}

ShapeResult attentionShape(std::span<const OperandType> operands, const Attrs &attrs, bool masked,
                           const DimOracle &oracle) {
  auto found = attentionDims(operands, oracle);
  if (auto *error = std::get_if<ShapeError>(&found))
    return *error;
  auto &dims = std::get<AttentionDims>(found);
  if (int64_t causal = intAttr(attrs, "causal", 0); causal != 0 && causal != 1)
    return ShapeResult::fail("causal is 0 or 1, not " + std::to_string(causal));
  else if (causal && dims.q.dims.size() == 1)
    return ShapeResult::fail("cannot attend causally with " + dims.q.str() +
                                 ": a single query has no place among the keys",
                             0);
  if (masked) {
    auto operand = tensorOperand(operands, 3, "mask with");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    const TensorType &mask = std::get<TensorType>(operand);
    TensorType scores{dims.q.dtype, dims.scores, {}};
    std::string what = "cannot mask scores " + scores.str() + " with " + mask.str() + ": ";
    if (mask.dtype != DType::Bool && mask.dtype != scores.dtype)
      return ShapeResult::fail(what + "a mask is of bools (whether a query sees a key) or of " +
                                   std::string(dtypeName(scores.dtype)) + " (added to the scores)",
                               3);
    BroadcastMismatch mismatch;
    auto joined = broadcastDims(dims.scores, mask.dims, oracle, mismatch);
    if (!joined)
      return ShapeResult::fail(
          what + describeMismatch(mismatch, dims.scores.size(), mask.dims.size(), oracle), 3);
    bool grows = joined->size() != dims.scores.size();
    for (size_t i = 0; !grows && i < joined->size(); ++i)
      grows = isOne(dims.scores[i], oracle) && !isOne((*joined)[i], oracle);
    if (grows)
      return ShapeResult::fail(what + "the mask has more elements than there are scores", 3);
  }
  TensorType result{dims.q.dtype, dims.scores, {}};
  result.dims.back() = dims.v.dims.back();
  return ShapeResult::ok(std::move(result));
}

std::string attentionReference(const RefTensors &operands, const Attrs &attrs, bool masked,
                               const Arithmetic &arithmetic, RefTensor &result) {
  const RefTensor &q = operands[0], &k = operands[1], &v = operands[2];
  auto round = [&](double x) { return arithmetic.round(x); };
  bool single = q.shape.size() == 1, causal = intAttr(attrs, "causal", 0) != 0;
  int64_t d = q.shape.back(), n = single ? 1 : q.shape[q.shape.size() - 2];
  int64_t m = k.shape[k.shape.size() - 2], e = v.shape.back();
  double scale = numberAttr(attrs, "scale", 1 / std::sqrt(static_cast<double>(d)));
  auto batchShape = [](const RefTensor &x, int64_t axes) {
    return std::vector<int64_t>(x.shape.begin(), x.shape.end() - axes);
  };
  std::vector<int64_t> batch = batchShape(result, single ? 1 : 2);
  int64_t shared = 1; // queries' heads for one of keys
  if (!single && q.shape.size() > 2 && k.shape.size() > 2)
    if (int64_t h = q.shape[q.shape.size() - 3], g = k.shape[k.shape.size() - 3]; areShared(h, g))
      shared = h / g;
  double *out = result.data.data();
  forEachIndex(batch, [&](const std::vector<int64_t> &at) {
    std::vector<int64_t> ofKeys = at;
    if (shared > 1)
      ofKeys.back() /= shared;
    const double *queries =
        q.data.data() + broadcastOffset(batchShape(q, single ? 1 : 2), at) * n * d;
    const double *keys = k.data.data() + broadcastOffset(batchShape(k, 2), ofKeys) * m * d;
    const double *values = v.data.data() + broadcastOffset(batchShape(v, 2), ofKeys) * m * e;
    for (int64_t i = 0; i < n; ++i, out += e) {
      std::vector<double> scores(static_cast<size_t>(m));
      double greatest = -kInfinity, sum = 0;
      for (int64_t j = 0; j < m; ++j) {
        double &score = scores[j], mask = 0;
        bool sees = !causal || j <= i + m - n;
        if (masked) {
          std::vector<int64_t> place = at;
          if (!single)
            place.push_back(i);
          place.push_back(j);
          mask = broadcastAt(operands[3], place);
          bool isBool = operands[3].dtype == DType::Bool;
          sees &= isBool ? mask != 0 : mask != -kInfinity;
          mask = isBool ? 0 : mask;
        }
        if (!sees) {
          score = -kInfinity;
          continue;
        }
        for (int64_t c = 0; c < d; ++c)
          score = round(score + queries[i * d + c] * keys[j * d + c]);
        score = round(round(score * scale) + mask);
        greatest = maximumOf(greatest, score);
      }
      for (double &score : scores) {
        score = greatest == -kInfinity ? 0 : round(std::exp(round(score - greatest)));
        sum = round(sum + score);
      }
      for (int64_t c = 0; c < e; ++c) {
        out[c] = 0;
        for (int64_t j = 0; j < m; ++j)
          if (scores[j] != 0)
            out[c] = round(out[c] + scores[j] * values[j * e + c]);
        out[c] = sum == 0 ? 0 : round(out[c] / sum);
      }
    }
  });
  return {};
}

/// Whether key j comes no later than query i: bool[n, m].
Value causalMask(ExpandBuilder &b, Value q, Value k) {
  Extent n = extentOf(b, q, rankOf(q) - 2), m = extentOf(b, k, rankOf(k) - 2);
  Value before = mlir::arith::SubIOp::create(b, extentValue(b, m), extentValue(b, n));
  Value places = applyOne(b, "iota", {}, {{"size", n}});
  places = applyOne(b, "add", {places, promote(b, before, DType::I32)});
  return applyOne(b, "le", {applyOne(b, "iota", {}, {{"size", m}}), insertAxis(b, places, 1)});
}

/// The axis `axis` of x, from the end, as one of `outer` places and one of the others.
Value splitAxis(ExpandBuilder &b, Value x, int64_t axis, int64_t outer) {
  std::vector<Extent> dims = extentsOf(b, x);
  auto place = dims.end() - axis;
  int64_t extent = mlir::cast<mlir::RankedTensorType>(x.getType()).getShape().end()[-axis];
  *place = Extent(b.getI64IntegerAttr(extent / outer));
  dims.insert(place, Extent(b.getI64IntegerAttr(outer)));
  return applyOne(b, "reshape", x, {{"dims", dims}});
}

std::vector<Value> expandAttention(ExpandBuilder &b, ir::ApplyOp op, bool masked) {
  DType dtype = dtypeOf(op.getOperands()[0]);
  Value q = widen(b, op.getOperands()[0]), k = widen(b, op.getOperands()[1]),
        v = widen(b, op.getOperands()[2]);
  bool single = rankOf(q) == 1;
  if (single)
    q = insertAxis(b, q, 0);
  auto constant = [&](double value) { return number(b, value, DType::F32); };
  Value mask = masked ? widen(b, op.getOperands()[3]) : Value();
  if (single && mask && rankOf(mask) > 1)
    mask = insertAxis(b, mask, rankOf(mask) - 1);
  auto headsOf = [](Value x) -> int64_t {
    return rankOf(x) < 3 ? 1 : mlir::cast<mlir::RankedTensorType>(x.getType()).getShape().end()[-3];
  };
  int64_t heads = headsOf(q), ofKeys = headsOf(k);
  bool shared = !single && areShared(heads, ofKeys);
  if (shared) {
    // Keys and values broadcast along an axis of the queries' heads that share them.
    q = splitAxis(b, q, 3, ofKeys);
    k = insertAxis(b, k, rankOf(k) - 2);
    v = insertAxis(b, v, rankOf(v) - 2);
    if (mask && rankOf(mask) > 2)
      mask = headsOf(mask) == 1 ? insertAxis(b, mask, rankOf(mask) - 2)
                                : splitAxis(b, mask, 3, ofKeys);
  }

  Value scale;
  auto type = mlir::cast<mlir::RankedTensorType>(q.getType());
  if (op.getAttrs().contains("scale"))
    scale = constant(numberAttr(op, "scale"));
  else if (int64_t d = type.getShape().back(); !mlir::ShapedType::isDynamic(d))
    scale = constant(1 / std::sqrt(static_cast<double>(d)));
  else
    scale = applyOne(b, "rsqrt",
                     promote(b, extentValue(b, extentOf(b, q, type.getRank() - 1)), DType::F32));
  Value scores =
      applyOne(b, "mul", {applyOne(b, "matmul_scores", {q, applyOne(b, "transpose", k)}), scale});
  Value least = constant(-kInfinity);
  if (masked) {
    Value sees = mask;
    if (dtypeOf(mask) != DType::Bool) {
      sees = applyOne(b, "ne", {mask, least});
      scores = applyOne(b, "add", {scores, mask});
    }
    scores = applyOne(b, "where", {sees, scores, least});
  }
  if (intAttr(op, "causal"))
    scores = applyOne(b, "where", {causalMask(b, q, k), scores, least});

  int64_t axis = rankOf(scores) - 1;
  // The result does not depend on what is subtracted.
  Value greatest = applyOne(b, "stop_gradient", reduceAxis(b, "reduce_max", scores, axis, true));
  Value none = applyOne(b, "eq", {greatest, constant(-kInfinity)});
  Value shift = applyOne(b, "where", {none, constant(0), greatest});
  Value powers = applyOne(b, "exp", applyOne(b, "sub", {scores, shift}));
  Value sum = reduceAxis(b, "reduce_sum", powers, axis, true);
  Value whole = applyOne(b, "where", {none, constant(1), sum});
  // Divided last: there are fewer results than weights, and the product's epilogue does it.
  Value result = applyOne(b, "div", {applyOne(b, "matmul_seen", {powers, v}), whole});
  if (single)
    result = dropAxis(b, result, rankOf(result) - 2);
  if (shared) {
    std::vector<Extent> dims = extentsOf(b, result);
    dims.erase(dims.end() - 4);
    *(dims.end() - 3) = Extent(b.getI64IntegerAttr(heads));
    result = applyOne(b, "reshape", result, {{"dims", dims}});
  }
  return {narrow(b, result, dtype)};
}

void addAttention(std::vector<Op> &ops, const std::string &name, const std::string &summary,
                  bool masked) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"q", ParamKind::Tensor}, {"k", ParamKind::Tensor}, {"v", ParamKind::Tensor}};
  if (masked)
    op.params.push_back({"mask", ParamKind::Tensor});
  op.params.push_back({"causal", ParamKind::Static, Attr(int64_t(0))});
  op.params.push_back({"scale", ParamKind::Number, {}, true, "1/sqrt(d)"});
  op.shape = [masked](std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
    return attentionShape(operands, attrs, masked, oracle);
  };
  op.reference = [masked](const RefTensors &operands, const Attrs &attrs,
                          const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return attentionReference(operands, attrs, masked, arithmetic, results[0]);
  };
  op.batch = expand(
      [masked](ExpandBuilder &b, ir::ApplyOp apply) { return expandAttention(b, apply, masked); });
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

constexpr double kBase = 10000;

ShapeResult ropeShape(std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
  auto operand = floatTensor(operands, 0, "rotate");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType x = std::get<TensorType>(operand);
  std::string what = "cannot rotate " + x.str() + ": ";
  if (x.dims.empty())
    return ShapeResult::fail(what + "it has no axes", 0);
  auto extent = oracle.value(x.dims.back());
  if (!extent)
    return ShapeResult::fail(what + "the last extent must be known when the model is compiled", 0,
                             "a dim of the file or of the layer around is known then; a dim that a "
                             "call's arguments bring is not");
  if (*extent % 2 != 0)
    return ShapeResult::fail(
        what + "the last extent " + withValue(x.dims.back(), oracle) + " is not even", 0);
  // Frequencies are computed by a series that reaches down to 2^-32.
  if (double base = numberAttr(attrs, "base", kBase); !(base >= 1 && base <= 0x1p32))
    return ShapeResult::fail("the base of 'rope' is from 1 to 2^32");
  return ShapeResult::ok(std::move(x));
}

std::string ropeReference(const RefTensor &x, const Attrs &attrs, const Arithmetic &arithmetic,
                          RefTensor &result) {
  auto round = [&](double value) { return arithmetic.round(value); };
  int64_t d = x.shape.back(), half = d / 2;
  int64_t n = x.shape.size() > 1 ? x.shape[x.shape.size() - 2] : 1;
  Dim start = attrs.contains("start") ? dimAttr(attrs, "start") : Dim(0);
  if (!start.isConstant())
    return "the start is not known";
  double base = numberAttr(attrs, "base", kBase);
  for (int64_t row = 0; d && row < x.size() / d; ++row)
    for (int64_t j = 0; j < half; ++j) {
      double angle = static_cast<double>(row % n + start.constant()) *
                     std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(d));
      double sine = round(std::sin(angle)), cosine = round(std::cos(angle));
      double first = x.data[row * d + j], second = x.data[row * d + half + j];
      result.data[row * d + j] = round(round(first * cosine) - round(second * sine));
      result.data[row * d + half + j] = round(round(first * sine) + round(second * cosine));
    }
  return {};
}

std::vector<Value> expandRope(ExpandBuilder &b, ir::ApplyOp op) {
  DType dtype = dtypeOf(op.getOperands()[0]);
  Value x = widen(b, op.getOperands()[0]);
  bool single = rankOf(x) == 1;
  if (single)
    x = insertAxis(b, x, 0);
  int64_t last = rankOf(x) - 1;
  int64_t d = mlir::cast<mlir::RankedTensorType>(op.getResult(0).getType()).getShape().back();
  Extent start = b.getI64IntegerAttr(0);
  if (auto attr = op.getAttrs().getAs<mlir::IntegerAttr>("start"))
    start = attr;
  else if (op.getOperands().size() > 1)
    start = Value(op.getOperands()[1]);

  auto float32 = [&](Value v) { return applyOne(b, "f32", v); };
  Value places = applyOne(b, "iota", {}, {{"size", extentOf(b, x, last - 1)}});
  places = applyOne(b, "add", {places, promote(b, extentValue(b, start), DType::I32)});
  places = insertAxis(b, float32(places), 1);
  Value pairs = float32(applyOne(b, "iota", {}, {{"size", d / 2}}));
  // The logarithm of the ratio of two neighbouring frequencies, in two parts: 48 bits of it.
  double ratio = d ? 2 * std::log(numberAttr(op, "base")) / static_cast<double>(d) : 0;
  auto high = static_cast<double>(static_cast<float>(ratio));
  mlir::SmallVector<Value> angle = {places, pairs, number(b, high, DType::F32),
                                    number(b, ratio - high, DType::F32)};
  Value sine = applyOne(b, "rope_sin", angle), cosine = applyOne(b, "rope_cos", angle);
  auto halves = apply(b, "split", x, {{"parts", int64_t(2)}, {"axis", last}});
  auto mul = [&](Value u, Value v) { return applyOne(b, "mul", {u, v}); };
  Value first = applyOne(b, "sub", {mul(halves[0], cosine), mul(halves[1], sine)});
  Value second = applyOne(b, "add", {mul(halves[0], sine), mul(halves[1], cosine)});
  Value result = applyOne(b, "concat", {first, second}, {{"axis", last}});
  if (single)
    result = dropAxis(b, result, 0);
  return {narrow(b, result, dtype)};
}

void addRope(std::vector<Op> &ops) {
  Op op;
  op.name = "rope";
  op.summary =
      "rotary positions (Su and others 2021): the pairs (x[j], x[j + d/2]) of row i turned by "
      "(start + i) * base^(-2j/d)";
  op.params = {{"x", ParamKind::Tensor},
               {"start", ParamKind::Extent, Attr(int64_t(0))},
               {"base", ParamKind::Number, Attr(kBase)}};
  op.shape = ropeShape;
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    return ropeReference(operands[0], attrs, arithmetic, results[0]);
  };
  op.batch = expand(expandRope);
  ops.push_back(std::move(op));
}

} // namespace

void addAttention(std::vector<Op> &ops) {
  addAttention(ops, "attention",
               "softmax(q @ transpose(k) * scale) @ v: what queries find among keys with values",
               false);
  addAttention(ops, "masked_attention",
               "attention where a mask says which keys a query sees (bools), or is added to the "
               "scores (floats)",
               true);
  addRope(ops);
}

} // namespace sheaf::ops

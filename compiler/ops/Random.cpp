//===- Random.cpp - Random tensors ----------------------------------------===//
//
// In source: random, random_normal, dropout, sample. The key, an i64, is the last operand before
// extents. For kernels: uniform_first and uniform_second (low, high, key), the first and the second
// word of Philox at each number of two words as a number in [0, 1), and number_above, from which
// the upper words come. An element follows from the key and its row-major number alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Elementwise.h"
#include "compiler/ops/Expand.h"
#include "compiler/ops/Lanes.h"
#include "compiler/ops/Philox.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace sheaf::ops {
namespace {

using mlir::Value;
namespace arith = mlir::arith;

/// A word gives its upper 24 bits: an f32 holds them exactly.
constexpr int kBits = 24;
constexpr double kUnit = 1.0 / (1 << kBits);

//===----------------------------------------------------------------------===//
// Uniform numbers
//===----------------------------------------------------------------------===//

double uniform(int64_t key, int64_t index, size_t word) {
  auto bits = static_cast<uint64_t>(key);
  auto number = static_cast<uint64_t>(index);
  PhiloxWords words =
      philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0},
             {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
  return (words[word] >> (32 - kBits)) * kUnit;
}

Value emitUniform(lanes::Builder &b, Value index, Value above, Value key, size_t word) {
  mlir::Type type = index.getType();
  auto constant = [&](uint32_t value) {
    return lanes::intConstant(b, type, static_cast<int32_t>(value));
  };
  auto exclusive = [&](Value x, Value y) { return arith::XOrIOp::create(b, x, y).getResult(); };
  Value shift = lanes::intConstant(b, key.getType(), 32);
  Value low = arith::TruncIOp::create(b, type, key);
  Value high = arith::TruncIOp::create(b, type, arith::ShRUIOp::create(b, key, shift).getResult());
  std::array<Value, 4> counter = {index, above, constant(0), constant(0)};
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    auto a = arith::MulUIExtendedOp::create(b, counter[0], constant(kPhiloxFactors[0]));
    auto c = arith::MulUIExtendedOp::create(b, counter[2], constant(kPhiloxFactors[1]));
    Value keys[] = {lanes::add(b, low, constant(round * kPhiloxIncrements[0])),
                    lanes::add(b, high, constant(round * kPhiloxIncrements[1]))};
    counter = {exclusive(exclusive(c.getHigh(), counter[1]), keys[0]), c.getLow(),
               exclusive(exclusive(a.getHigh(), counter[3]), keys[1]), a.getLow()};
  }
  Value bits = arith::ShRUIOp::create(b, counter[word], constant(32 - kBits));
  Value number = arith::SIToFPOp::create(b, lanes::withElement(type, b.getF32Type()), bits);
  return lanes::mul(b, number, lanes::constant(b, number.getType(), kUnit));
}

void addUniform(std::vector<Op> &ops, const std::string &name, size_t word) {
  Op op;
  op.name = name;
  op.summary = "a random number in [0, 1) for each number of two words";
  op.params = {{"low", ParamKind::Tensor}, {"high", ParamKind::Tensor}, {"key", ParamKind::Key}};
  op.internal = true;
  op.shape = [name](std::span<const OperandType> operands, const Attrs &, const DimOracle &oracle) {
    const TensorType *low = operands[0].tensor(), *high = operands[1].tensor();
    BroadcastMismatch mismatch;
    std::optional<std::vector<Dim>> dims;
    if (low && high && low->dtype == DType::I32 && high->dtype == DType::I32)
      dims = broadcastDims(low->dims, high->dims, oracle, mismatch);
    if (!dims)
      return ShapeResult::fail("cannot apply '" + name + "' to " + describe(operands[0]) + " and " +
                                   describe(operands[1]),
                               0);
    return ShapeResult::ok({DType::F32, *dims, {}});
  };
  op.reference = [word](const RefTensors &operands, const Attrs &, const Arithmetic &,
                        std::span<RefTensor> results) {
    size_t next = 0;
    forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) {
      auto wordOf = [&](const RefTensor &of) {
        return static_cast<uint32_t>(static_cast<int64_t>(broadcastAt(of, index)));
      };
      uint64_t number = static_cast<uint64_t>(wordOf(operands[1])) << 32 | wordOf(operands[0]);
      results[0].data[next++] = uniform(operands[2].key, static_cast<int64_t>(number), word);
    });
    return std::string();
  };
  op.batch = Elementwise{[word](lanes::Builder &b, mlir::ValueRange x) -> Value {
    return emitUniform(b, x[0], x[1], x[2], word);
  }};
  ops.push_back(std::move(op));
}

/// The upper word of `number * extent + inner`, of a number of two words.
void addNumberAbove(std::vector<Op> &ops) {
  ElementwiseSpec spec;
  spec.name = "number_above";
  spec.summary = "the upper word of a row-major number: of high and low times an extent, and inner";
  spec.params = {"high", "low", "extent", "inner"};
  spec.accepts = Elements::Numbers;
  spec.evalInt = [](std::span<const uint64_t> x) {
    auto word = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint32_t>(x[i])); };
    return ((word(1) * word(2) + word(3)) >> 32) + word(0) * word(2);
  };
  spec.emit = [](lanes::Builder &b, mlir::ValueRange x) -> Value {
    auto product = arith::MulUIExtendedOp::create(b, x[1], x[2]);
    auto sum = arith::AddUIExtendedOp::create(b, product.getLow(), x[3]);
    Value carry = arith::ExtUIOp::create(b, x[0].getType(), sum.getOverflow());
    Value above = lanes::add(b, lanes::mul(b, x[0], x[2]), product.getHigh());
    return lanes::add(b, above, carry);
  };
  Op op = elementwiseOp(std::move(spec));
  op.internal = true;
  op.shape = [broadcast = std::move(op.shape)](std::span<const OperandType> operands,
                                               const Attrs &attrs, const DimOracle &oracle) {
    for (const OperandType &operand : operands)
      if (!operand.tensor() || operand.tensor()->dtype != DType::I32)
        return ShapeResult::fail("cannot apply 'number_above' to " + describe(operand));
    return broadcast(operands, attrs, oracle);
  };
  ops.push_back(std::move(op));
}

/// The lower and the upper words of the row-major numbers of the elements of a tensor with these
/// extents.
std::pair<Value, Value> numbers(ExpandBuilder &b, const std::vector<Extent> &dims) {
  Value low = number(b, 0, DType::I32), high = low;
  int64_t most = 1; // elements so far; -1: it is not known that they are no more than a word counts
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    Value inner = applyOne(b, "iota", {}, {{"size", dims[axis]}});
    std::optional<int64_t> known = mlir::getConstantIntValue(dims[axis]);
    most = known && most >= 0 && *known <= (int64_t{1} << 32) / std::max<int64_t>(most, 1)
               ? most * *known
               : -1;
    if (axis == 0) {
      low = inner; // an extent counts to 2^31
      continue;
    }
    Value outer = insertAxis(b, low, static_cast<int64_t>(axis));
    Value extent = promote(b, extentValue(b, dims[axis]), DType::I32);
    if (most < 0) {
      Value above = rankOf(high) ? insertAxis(b, high, static_cast<int64_t>(axis)) : high;
      high = applyOne(b, "number_above", {above, outer, extent, inner});
    }
    low = applyOne(b, "add", {applyOne(b, "mul", {outer, extent}), inner});
  }
  return {low, high};
}

Value uniformNumbers(ExpandBuilder &b, const std::vector<Extent> &dims, Value key) {
  auto [low, high] = numbers(b, dims);
  return applyOne(b, "uniform_first", {low, high, key});
}

//===----------------------------------------------------------------------===//
// random, random_normal
//===----------------------------------------------------------------------===//

/// Box and Muller's: the length of a normally distributed pair times the cosine of its angle.
double normal(int64_t key, int64_t index, const Arithmetic &arithmetic) {
  auto round = [&](double x) { return arithmetic.round(x); };
  double length = round(std::sqrt(round(-2 * round(std::log(round(1 - uniform(key, index, 0)))))));
  double angle = round(round(2 * M_PI) * uniform(key, index, 1));
  return round(length * round(std::cos(angle)));
}

std::vector<Value> expandNormal(ExpandBuilder &b, ir::ApplyOp op) {
  auto [low, high] = numbers(b, resultExtents(b, op, 1));
  Value key = op.getOperands()[0];
  auto constant = [&](double value) { return number(b, value, DType::F32); };
  // 1 - u is never 0.
  Value u = applyOne(b, "uniform_first", {low, high, key});
  Value logarithm = applyOne(b, "log", applyOne(b, "sub", {constant(1), u}));
  Value length = applyOne(b, "sqrt", applyOne(b, "mul", {constant(-2), logarithm}));
  Value v = applyOne(b, "uniform_second", {low, high, key});
  Value angle = applyOne(b, "mul", {constant(2 * M_PI), v});
  return {applyOne(b, "mul", {length, applyOne(b, "cos", angle)})};
}

void addDrawn(std::vector<Op> &ops, const std::string &name, const std::string &summary,
              double (*element)(int64_t, int64_t, const Arithmetic &), ExpandRule rewrite) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"dims", ParamKind::Extents}, {"key", ParamKind::Key}};
  op.shape = [name](std::span<const OperandType>, const Attrs &attrs, const DimOracle &oracle) {
    return filledShape(name, attrs, oracle);
  };
  op.reference = [element](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                           std::span<RefTensor> results) {
    for (size_t i = 0; i < results[0].data.size(); ++i)
      results[0].data[i] = element(operands[0].key, static_cast<int64_t>(i), arithmetic);
    return std::string();
  };
  op.batch = Expand{std::move(rewrite)};
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// dropout
//===----------------------------------------------------------------------===//

/// The least of the numbers drawn for which an element stays: an f32 holds it exactly.
double leastKept(double p) { return std::ceil(p / kUnit) * kUnit; }

void addDropout(std::vector<Op> &ops) {
  Op op;
  op.name = "dropout";
  op.summary = "x with each element 0 with probability p, the others over 1 - p; x without "
               "`--dropout`";
  op.params = {{"x", ParamKind::Tensor}, {"p", ParamKind::Number}, {"key", ParamKind::Key}};
  op.trainingOnly = true;
  op.shape = [](std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &) {
    auto operand = floatTensor(operands, 0, "apply 'dropout' to");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return ShapeResult(*error);
    double p = numberAttr(attrs, "p", 0);
    if (!(p >= 0 && p < 1))
      return ShapeResult::fail("the probability 'p' of 'dropout' must be at least 0 and below 1");
    return ShapeResult::ok(std::get<TensorType>(operand));
  };
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    double p = numberAttr(attrs, "p", 0), scale = arithmetic.round(1 / (1 - p));
    for (size_t i = 0; i < results[0].data.size(); ++i) {
      bool kept = uniform(operands[1].key, static_cast<int64_t>(i), 0) >= leastKept(p);
      results[0].data[i] = kept ? arithmetic.round(operands[0].data[i] * scale) : 0;
    }
    return std::string();
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value x = apply.getOperands()[0];
    double p = numberAttr(apply, "p");
    if (p == 0)
      return {x};
    auto constant = [&](double value) { return number(b, value, DType::F32); };
    Value drawn = uniformNumbers(b, extentsOf(b, x), apply.getOperands()[1]);
    Value kept = applyOne(b, "ge", {drawn, constant(leastKept(p))});
    Value scaled = applyOne(b, "mul", {widen(b, x), constant(1 / (1 - p))});
    return {narrow(b, applyOne(b, "where", {kept, scaled, constant(0)}), dtypeOf(x))};
  });
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// sample
//===----------------------------------------------------------------------===//

/// Instead of 0, whose logarithm is no number.
constexpr double kLeastDrawn = kUnit / 2;

/// -log(-log(u)) of a uniform number, not rounded.
double gumbelNoise(int64_t key, int64_t index) {
  return -std::log(-std::log(std::max(uniform(key, index, 0), kLeastDrawn)));
}

void addSample(std::vector<Op> &ops) {
  Op op;
  op.name = "sample";
  op.summary = "a place along the last axis drawn with the probabilities softmax(logits), as i32";
  op.params = {{"logits", ParamKind::Tensor}, {"key", ParamKind::Key}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &oracle) {
    auto operand = floatTensor(operands, 0, "sample from");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return ShapeResult(*error);
    TensorType type = std::get<TensorType>(operand);
    if (type.dims.empty())
      return ShapeResult::fail("cannot sample from " + type.str() + ": it has no axes", 0);
    if (oracle.value(type.dims.back()) == 0)
      return ShapeResult::fail("cannot sample from " + type.str() + ": it has no elements", 0);
    type.dims.pop_back();
    return ShapeResult::ok({DType::I32, std::move(type.dims), {}});
  };
  // Gumbel's trick: the greatest of logits[k] - log(-log(u[k])) is at k with probability
  // softmax(logits)[k].
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    auto round = [&](double x) { return arithmetic.round(x); };
    const RefTensor &logits = operands[0];
    int64_t size = logits.shape.back();
    for (int64_t row = 0; row < results[0].size(); ++row) {
      double best = 0;
      for (int64_t k = 0; k < size; ++k) {
        int64_t i = row * size + k;
        double u = std::max(uniform(operands[1].key, i, 0), kLeastDrawn);
        double x = round(logits.data[i] - round(std::log(-round(std::log(u)))));
        if (k == 0 || x > best || (std::isnan(x) && !std::isnan(best))) {
          best = x;
          results[0].data[row] = static_cast<double>(k);
        }
      }
    }
    return std::string();
  };
  op.decision = {.distance =
                     [](const RefTensors &operands, const Attrs &, const RefTensor &result,
                        size_t at, double value) {
                       const RefTensor &logits = operands[0];
                       int64_t size = logits.shape.back();
                       if (!isPlace(value, size))
                         return std::numeric_limits<double>::infinity();
                       auto score = [&](double place) {
                         int64_t i = static_cast<int64_t>(at) * size + static_cast<int64_t>(place);
                         return logits.data[i] + gumbelNoise(operands[1].key, i);
                       };
                       return distanceToMeet(score(result.data[at]), score(value));
                     },
                 .range = [](const RefTensors &operands, const Attrs &, const RefTensor &,
                             size_t) { return placeRange(operands[0].shape.back()); }};
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value logits = widen(b, apply.getOperands()[0]);
    Value u = uniformNumbers(b, extentsOf(b, logits), apply.getOperands()[1]);
    u = applyOne(b, "maximum", {u, number(b, kLeastDrawn, DType::F32)});
    Value noise = applyOne(b, "log", applyOne(b, "neg", applyOne(b, "log", u)));
    Value all = applyOne(b, "sub", {logits, noise});
    return {reduceAxis(b, "argmax", all, rankOf(all) - 1, false)};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addRandom(std::vector<Op> &ops) {
  addNumberAbove(ops);
  addUniform(ops, "uniform_first", 0);
  addUniform(ops, "uniform_second", 1);
  addDrawn(
      ops, "random", "random numbers from 0 to 1, 1 left out, with the given extents, f32",
      [](int64_t key, int64_t index, const Arithmetic &) { return uniform(key, index, 0); },
      expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
        return {uniformNumbers(b, resultExtents(b, op, 1), op.getOperands()[0])};
      }).rewrite);
  addDrawn(ops, "random_normal",
           "random numbers of mean 0 and standard deviation 1 with the given extents, f32", normal,
           expand(expandNormal).rewrite);
  addDropout(ops);
  addSample(ops);
}

} // namespace sheaf::ops

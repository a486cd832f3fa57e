//===- Elementwise.cpp - Operators on each element, with broadcasting -----===//
//
// How their records are made, arithmetic, comparisons and choices. No attributes.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Elementwise.h"
#include "compiler/ops/Lanes.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using lanes::Builder;
using mlir::Value;
using mlir::ValueRange;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

std::string fill(std::string phrase, std::span<const OperandType> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string hole = "{" + std::to_string(i) + "}";
    if (size_t at = phrase.find(hole); at != std::string::npos)
      phrase.replace(at, hole.size(), describe(operands[i]));
  }
  return "cannot " + phrase;
}

std::string listOf(size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += (i == 0 ? "" : i + 1 == n ? " and " : ", ") + ("{" + std::to_string(i) + "}");
  return text;
}

bool accepts(Elements kind, const TensorType &type) {
  switch (kind) {
  case Elements::Floats:
    return isFloat(type.dtype);
  case Elements::Numbers:
    return type.dtype != DType::Bool && !type.vocab;
  case Elements::Bools:
    return type.dtype == DType::Bool;
  case Elements::Any:
    return true;
  }
  return false;
}

std::string_view acceptsWhat(Elements kind) {
  return kind == Elements::Floats ? "floats" : kind == Elements::Bools ? "bools" : "numbers";
}

/// A host scalar as the rank-0 tensor that it is promoted to, or why it cannot be.
Expected<TensorType> promotedHost(HostKind host, DType to) {
  bool fits = host == HostKind::Int     ? to != DType::Bool
              : host == HostKind::Float ? isFloat(to)
              : host == HostKind::Bool  ? to == DType::Bool
                                        : false;
  if (fits)
    return TensorType{to, {}, {}};
  if (host == HostKind::Token)
    return ShapeError{"a token is not a number", -1, "convert it with int(...)"};
  if (host == HostKind::Float && to != DType::Bool)
    return ShapeError{"the tensor's elements are ints", -1,
                      "convert the tensor with f32(...), or the float with int(...)"};
  return ShapeError{"the element types differ", -1};
}

/// The operands as tensors, host scalars promoted, all of kinds that the operator accepts.
Expected<std::vector<TensorType>> tensorsOf(const Op &op, const ElementwiseSpec &spec,
                                            std::span<const OperandType> operands) {
  std::vector<TensorType> tensors;
  for (size_t i = 0; i < operands.size(); ++i) {
    int blame = static_cast<int>(i);
    if (operands[i].isList)
      return ShapeError{fill(spec.phrase, operands) + ": a list is not a tensor", blame};
    if (const TensorType *tensor = operands[i].tensor()) {
      tensors.push_back(*tensor);
    } else {
      HostKind host = *operands[i].host();
      DType to = op.promoted(operands, i);
      auto promoted = promotedHost(host, to);
      if (auto *error = std::get_if<ShapeError>(&promoted))
        return ShapeError{fill(spec.phrase, operands) + ": " + error->message, blame, error->help};
      tensors.push_back(std::get<TensorType>(promoted));
    }
    bool isCondition = spec.rule.selects && i == 0;
    if (!(isCondition ? tensors[i].dtype == DType::Bool : accepts(spec.accepts, tensors[i])))
      return ShapeError{
          fill(spec.phrase, operands) + ": '" + spec.name + "' takes " +
              (isCondition ? "a bool condition" : std::string(acceptsWhat(spec.accepts))) +
              (operands.size() > 1 && !isCondition ? ", not " + tensors[i].str() : ""),
          blame,
          tensors[i].vocab || isCondition || spec.accepts == Elements::Bools
              ? ""
              : "convert it with f32(...)"};
  }
  return tensors;
}

ShapeResult elementwiseShape(const Op &op, const ElementwiseSpec &spec,
                             std::span<const OperandType> operands, const DimOracle &oracle) {
  auto converted = tensorsOf(op, spec, operands);
  if (auto *error = std::get_if<ShapeError>(&converted))
    return *error;
  auto &tensors = std::get<std::vector<TensorType>>(converted);
  size_t first = spec.rule.selects ? 1 : 0;
  TensorType result = tensors[first];
  for (size_t i = first + 1; i < tensors.size(); ++i) {
    if (tensors[i].dtype != result.dtype)
      return ShapeResult::fail(
          fill(spec.phrase, operands) + ": the element types differ", static_cast<int>(i),
          tensors[i].vocab || result.vocab
              ? ""
              : "convert one of them with " + std::string(dtypeName(result.dtype)) + "(...) or " +
                    std::string(dtypeName(tensors[i].dtype)) + "(...)");
    if (tensors[i].vocab != result.vocab) {
      bool bothTokens = tensors[i].vocab && result.vocab;
      return ShapeResult::fail(
          fill(spec.phrase, operands) +
              (bothTokens ? ": the vocabularies differ" : ": tokens are not numbers"),
          static_cast<int>(i), bothTokens ? "" : "convert the tokens with i32(...)");
    }
  }
  std::vector<Dim> dims = tensors[0].dims;
  for (size_t i = 1; i < tensors.size(); ++i) {
    BroadcastMismatch mismatch;
    auto merged = broadcastDims(dims, tensors[i].dims, oracle, mismatch);
    if (!merged) {
      auto refused = ShapeResult::fail(
          fill(spec.phrase, operands) + ": " +
              describeMismatch(mismatch, dims.size(), tensors[i].dims.size(), oracle),
          static_cast<int>(i));
      refused.unproven = {mismatch.a, mismatch.b};
      return refused;
    }
    dims = std::move(*merged);
  }
  result.dims = std::move(dims);
  if (spec.toBool) {
    result.dtype = DType::Bool;
    result.vocab.reset();
  }
  return ShapeResult::ok(std::move(result));
}

DType whereBranch(std::span<const OperandType> operands, size_t operand) {
  if (operand == 0)
    return DType::Bool;
  return Op().promoted(operands.subspan(1), operand - 1);
}

/// `exp(2)`: ints without a tensor become floats where only floats are accepted.
DType floatPromotion(std::span<const OperandType> operands, size_t operand) {
  for (const OperandType &other : operands)
    if (other.tensor())
      return Op().promoted(operands, operand);
  return DType::F32;
}

} // namespace

std::string elementwiseReference(const ElementwiseSpec &spec, const RefTensors &operands,
                                 const Arithmetic &arithmetic, RefTensor &result) {
  std::vector<double> values(operands.size());
  std::vector<uint64_t> ints(operands.size());
  bool exact = spec.evalInt && !isFloat(operands[0].dtype);
  // Along the last axis an operand goes on from element to element, or stands still.
  std::vector<int64_t> outer = result.shape, steps;
  int64_t width = 1, n = 0;
  if (!outer.empty()) {
    width = outer.back();
    outer.pop_back();
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<int64_t> &shape = operands[i].shape;
    steps.push_back(shape.empty() || shape.back() == 1 ? 0 : 1);
  }
  std::vector<const double *> from(operands.size());
  forEachIndex(outer, [&](std::vector<int64_t> first) {
    first.resize(result.shape.size(), 0);
    for (size_t i = 0; i < operands.size(); ++i)
      from[i] = operands[i].data.data() + broadcastOffset(operands[i].shape, first);
    for (int64_t column = 0; column < width; ++column) {
      for (size_t i = 0; i < operands.size(); ++i)
        values[i] = from[i][column * steps[i]];
      double value;
      if (exact) {
        for (size_t i = 0; i < values.size(); ++i)
          ints[i] = static_cast<uint64_t>(truncateToInt(values[i], DType::I64));
        value = wrapInt(static_cast<int64_t>(spec.evalInt(ints)), result.dtype);
      } else {
        value = spec.eval(values);
        if (isFloat(result.dtype))
          value = arithmetic.round(value);
      }
      result.data[n++] = value;
    }
  });
  return {};
}

Op elementwiseOp(ElementwiseSpec spec) {
  if (spec.phrase.empty())
    spec.phrase = "apply '" + spec.name + "' to " + listOf(spec.params.size());
  Op op;
  op.name = spec.name;
  op.summary = spec.summary;
  for (const std::string &param : spec.params)
    op.params.push_back({param, ParamKind::Tensor});
  Elementwise rule = spec.rule;
  rule.emit = spec.emit;
  op.batch = std::move(rule);
  if (spec.accepts == Elements::Bools)
    op.promotion = [](auto, size_t) { return DType::Bool; };
  if (spec.accepts == Elements::Floats)
    op.promotion = floatPromotion;
  if (spec.rule.selects)
    op.promotion = whereBranch;
  Op signature = op;
  op.shape = [signature, spec](std::span<const OperandType> operands, const Attrs &,
                               const DimOracle &oracle) {
    return elementwiseShape(signature, spec, operands, oracle);
  };
  op.reference = [spec](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                        std::span<RefTensor> results) {
    return elementwiseReference(spec, operands, arithmetic, results[0]);
  };
  return op;
}

namespace {

void add(std::vector<Op> &ops, ElementwiseSpec spec) {
  ops.push_back(elementwiseOp(std::move(spec)));
}

void addArithmetic(std::vector<Op> &ops) {
  add(ops, {"add",
            "the sum of two tensors; also written `a + b`",
            {"a", "b"},
            Elements::Numbers,
            "add {0} and {1}",
            [](auto x) { return x[0] + x[1]; },
            [](Builder &b, ValueRange x) { return lanes::add(b, x[0], x[1]); },
            false,
            [](auto x) { return x[0] + x[1]; },
            {.addition = true}});
  add(ops, {"sub",
            "the difference of two tensors; also written `a - b`",
            {"a", "b"},
            Elements::Numbers,
            "subtract {1} from {0}",
            [](auto x) { return x[0] - x[1]; },
            [](Builder &b, ValueRange x) { return lanes::sub(b, x[0], x[1]); },
            false,
            [](auto x) { return x[0] - x[1]; },
            {.subtraction = true}});
  add(ops, {"mul",
            "the product element by element; also written `a * b`",
            {"a", "b"},
            Elements::Numbers,
            "multiply {0} and {1} element by element",
            [](auto x) { return x[0] * x[1]; },
            [](Builder &b, ValueRange x) { return lanes::mul(b, x[0], x[1]); },
            false,
            [](auto x) { return x[0] * x[1]; }});
  add(ops, {"div",
            "the quotient element by element; also written `a / b`",
            {"a", "b"},
            Elements::Floats,
            "divide {0} by {1}",
            [](auto x) { return x[0] / x[1]; },
            [](Builder &b, ValueRange x) { return lanes::div(b, x[0], x[1]); }});
  add(ops, {"pow",
            "a raised to the power b",
            {"a", "b"},
            Elements::Floats,
            "raise {0} to {1}",
            [](auto x) { return std::pow(x[0], x[1]); },
            [](Builder &b, ValueRange x) -> Value {
              return mlir::math::PowFOp::create(b, x[0], x[1]);
            }});
  // It loses the digits of its exponent times a logarithm.
  ops.back().ulps = 16;
  add(ops, {"maximum",
            "the greater of two elements; NaN if one is NaN",
            {"a", "b"},
            Elements::Numbers,
            "",
            [](auto x) { return maximumOf(x[0], x[1]); },
            [](Builder &b, ValueRange x) { return lanes::maximum(b, x[0], x[1]); }});
  add(ops, {"minimum",
            "the lesser of two elements; NaN if one is NaN",
            {"a", "b"},
            Elements::Numbers,
            "",
            [](auto x) { return minimumOf(x[0], x[1]); },
            [](Builder &b, ValueRange x) { return lanes::minimum(b, x[0], x[1]); }});
  add(ops, {"clamp",
            "x held between lo and hi",
            {"x", "lo", "hi"},
            Elements::Numbers,
            "",
            [](auto x) { return minimumOf(maximumOf(x[0], x[1]), x[2]); },
            [](Builder &b, ValueRange x) {
              return lanes::minimum(b, lanes::maximum(b, x[0], x[1]), x[2]);
            }});
  add(ops, {"neg",
            "the negative; also written `-x`",
            {"x"},
            Elements::Numbers,
            "negate {0}",
            [](auto x) { return -x[0]; },
            [](Builder &b, ValueRange x) -> Value {
              if (lanes::isFloat(x[0]))
                return mlir::arith::NegFOp::create(b, x[0]);
              return lanes::sub(b, lanes::constant(b, x[0].getType(), 0), x[0]);
            },
            false,
            [](auto x) { return -x[0]; }});
  add(ops, {"abs",
            "the absolute value",
            {"x"},
            Elements::Numbers,
            "",
            [](auto x) { return std::fabs(x[0]); },
            [](Builder &b, ValueRange x) -> Value {
              if (lanes::isFloat(x[0]))
                return mlir::math::AbsFOp::create(b, x[0]);
              return mlir::math::AbsIOp::create(b, x[0]);
            },
            false,
            [](auto x) { return static_cast<int64_t>(x[0]) < 0 ? -x[0] : x[0]; },
            {.magnitude = true}});
  add(ops, {"square",
            "x times x",
            {"x"},
            Elements::Numbers,
            "",
            [](auto x) { return x[0] * x[0]; },
            [](Builder &b, ValueRange x) { return lanes::mul(b, x[0], x[0]); },
            false,
            [](auto x) { return x[0] * x[0]; }});
  add(ops, {"sign",
            "-1, 0 or 1 by the sign of x; NaN stays NaN",
            {"x"},
            Elements::Numbers,
            "",
            [](auto x) { return x[0] > 0   ? 1
                                : x[0] < 0 ? -1
                                           : x[0]; },
            [](Builder &b, ValueRange x) {
              Value zero = lanes::constant(b, x[0].getType(), 0);
              Value one = lanes::constant(b, x[0].getType(), 1);
              Value minusOne = lanes::constant(b, x[0].getType(), -1);
              Value above = lanes::compare(b, CmpFPredicate::OGT, CmpIPredicate::sgt, x[0], zero);
              Value below = lanes::compare(b, CmpFPredicate::OLT, CmpIPredicate::slt, x[0], zero);
              return lanes::select(b, above, one, lanes::select(b, below, minusOne, x[0]));
            }});
}

/// A comparison turns around where its sides are equal. A host scalar stays what it is.
double comparisonDistance(const RefTensors &operands, const RefTensor &result, size_t at,
                          double value) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!isFloat(operands[0].dtype) && !isFloat(operands[1].dtype))
    return never;
  std::vector<int64_t> index(result.shape.size());
  for (size_t axis = index.size(); axis-- > 0; at /= static_cast<size_t>(result.shape[axis]))
    index[axis] = static_cast<int64_t>(at) % result.shape[axis];
  double distance =
      distanceToMeet(broadcastAt(operands[0], index), broadcastAt(operands[1], index));
  if (value != 0 && value != 1)
    return never;
  return operands[0].host || operands[1].host ? 2 * distance : distance;
}

void addComparison(std::vector<Op> &ops, const std::string &name, const std::string &sign,
                   const std::string &summary, Elements kind,
                   std::function<bool(double, double)> holds, CmpFPredicate ofFloats,
                   CmpIPredicate ofInts, Elementwise::Comparison comparison) {
  add(ops,
      {name,
       summary + "; also written `a " + sign + " b`",
       {"a", "b"},
       kind,
       "compare {0} with {1}",
       [holds](auto x) { return holds(x[0], x[1]); },
       [=](Builder &b, ValueRange x) { return lanes::compare(b, ofFloats, ofInts, x[0], x[1]); },
       true,
       {},
       {.comparison = comparison}});
  ops.back().decision = {
      .distance = [](const RefTensors &operands, const Attrs &, const RefTensor &result, size_t at,
                     double value) { return comparisonDistance(operands, result, at, value); },
      .range = [](const RefTensors &, const Attrs &, const RefTensor &,
                  size_t) { return std::pair(0.0, 1.0); }};
}

void addLogic(std::vector<Op> &ops) {
  using Comparison = Elementwise::Comparison;
  addComparison(ops, "eq", "==", "whether two elements are equal", Elements::Any, std::equal_to<>(),
                CmpFPredicate::OEQ, CmpIPredicate::eq, Comparison::Equal);
  addComparison(ops, "ne", "!=", "whether two elements differ", Elements::Any,
                std::not_equal_to<>(), CmpFPredicate::UNE, CmpIPredicate::ne, Comparison::Unequal);
  addComparison(ops, "lt", "<", "whether a is less than b", Elements::Numbers, std::less<>(),
                CmpFPredicate::OLT, CmpIPredicate::slt, Comparison::Less);
  addComparison(ops, "le", "<=", "whether a is at most b", Elements::Numbers, std::less_equal<>(),
                CmpFPredicate::OLE, CmpIPredicate::sle, Comparison::AtMost);
  addComparison(ops, "gt", ">", "whether a is greater than b", Elements::Numbers, std::greater<>(),
                CmpFPredicate::OGT, CmpIPredicate::sgt, Comparison::Greater);
  addComparison(ops, "ge", ">=", "whether a is at least b", Elements::Numbers,
                std::greater_equal<>(), CmpFPredicate::OGE, CmpIPredicate::sge,
                Comparison::AtLeast);
  add(ops, {"and",
            "whether both bools hold; also written `a && b`",
            {"a", "b"},
            Elements::Bools,
            "",
            [](auto x) { return x[0] != 0 && x[1] != 0; },
            [](Builder &b, ValueRange x) -> Value {
              return mlir::arith::AndIOp::create(b, x[0], x[1]);
            }});
  add(ops, {"or",
            "whether one of two bools holds; also written `a || b`",
            {"a", "b"},
            Elements::Bools,
            "",
            [](auto x) { return x[0] != 0 || x[1] != 0; },
            [](Builder &b, ValueRange x) -> Value {
              return mlir::arith::OrIOp::create(b, x[0], x[1]);
            }});
  add(ops, {"not",
            "whether a bool does not hold; also written `!x`",
            {"x"},
            Elements::Bools,
            "",
            [](auto x) { return x[0] == 0; },
            [](Builder &b, ValueRange x) -> Value {
              return mlir::arith::XOrIOp::create(b, x[0], lanes::constant(b, x[0].getType(), 1));
            }});
  add(ops, {"where",
            "a where the condition holds, b elsewhere",
            {"condition", "a", "b"},
            Elements::Any,
            "",
            [](auto x) { return x[0] != 0 ? x[1] : x[2]; },
            [](Builder &b, ValueRange x) { return lanes::select(b, x[0], x[1], x[2]); },
            false,
            {},
            {.selects = true}});
}

/// What gradients are passed on by: where nothing arrives, nothing goes on, whatever the
/// derivative.
void addExactZero(std::vector<Op> &ops) {
  add(ops, {"unless_zero",
            "a value that follows from a gradient, 0 where the gradient is 0",
            {"gradient", "value"},
            Elements::Floats,
            "",
            [](auto x) { return x[0] == 0 ? 0 : x[1]; },
            [](Builder &b, ValueRange x) {
              Value zero = lanes::constant(b, x[0].getType(), 0);
              Value isZero = mlir::arith::CmpFOp::create(b, CmpFPredicate::OEQ, x[0], zero);
              return lanes::select(b, isZero, zero, x[1]);
            }});
  ops.back().internal = true;
}

} // namespace

void addElementwise(std::vector<Op> &ops) {
  addArithmetic(ops);
  addLogic(ops);
  addExactZero(ops);
}

} // namespace sheaf::ops

//===- GradientsElementwise.cpp - Gradients element by element ------------===//
//
// Where a function has a kink, the gradient is that of one side: relu and abs have 0 at 0, of two
// equal operands maximum and minimum choose the first, clamp counts its ends as inside.
//
// A gradient that is exactly 0 where it arrives gives exactly 0 to the operands, whatever the
// derivative: 0 times NaN or infinity is 0 here (Terms::times, Terms::over, Terms::unlessZero).
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Gradient.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

namespace sheaf::ops {
namespace {

using mlir::Value;
using Values = std::vector<Value>;

/// The number that all elements of a tensor are, when that is known.
std::optional<double> constantOf(Value value) {
  while (auto apply = value.getDefiningOp<ir::ApplyOp>()) {
    const Op *op = OpTable::get().find(apply.getOp().str());
    if (auto *fill = std::get_if<Fill>(&op->batch)) {
      auto number = apply.getAttrs().getAs<mlir::FloatAttr>("value");
      if (fill->kind != Fill::Constant || !number)
        return std::nullopt;
      return number.getValueAsDouble();
    }
    if (apply->getNumOperands() == 0 || !isFloat(dtypeOf(value)))
      return std::nullopt;
    llvm::StringRef name = apply.getOp();
    value = apply.getOperand(0);
    if (name == "scalar") {
      mlir::FloatAttr number;
      mlir::IntegerAttr count;
      if (mlir::matchPattern(value, mlir::m_Constant(&number)))
        return number.getValueAsDouble();
      if (mlir::matchPattern(value, mlir::m_Constant(&count)))
        return static_cast<double>(count.getInt());
      return std::nullopt;
    }
    if (name != "f32" && name != "broadcast_to" && name != "reshape")
      return std::nullopt;
  }
  return std::nullopt;
}

/// Whether a tensor has neither infinity nor NaN, whatever the block is given: 0 times it is 0 as
/// it is. Of what comes in nothing is known, so few are.
bool isFinite(Value tensor) {
  constexpr size_t kMost = 32;
  llvm::SmallVector<Value> work{tensor};
  for (size_t i = 0; i < work.size(); ++i) {
    Value value = work[i];
    if (auto number = constantOf(value)) {
      if (!std::isfinite(static_cast<float>(*number)))
        return false;
      continue;
    }
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    if (!apply || i == kMost)
      return false;
    llvm::StringRef name = apply.getOp();
    bool ofOperands =
        llvm::is_contained({"broadcast_to", "reshape", "transpose", "window", "concat", "split",
                            "where", "neg", "rope_sin", "rope_cos"},
                           name);
    if (name == "f32" && !isFloat(dtypeOf(apply.getOperand(0))))
      continue;
    if (!ofOperands)
      return false;
    for (Value operand : apply.getOperands().drop_front(name == "where"))
      if (mlir::isa<mlir::RankedTensorType>(operand.getType()))
        work.push_back(operand);
  }
  return true;
}

/// Arithmetic on tensors of one element type, numbers included.
class Terms {
public:
  Terms(ExpandBuilder &b, DType dtype) : b_(b), dtype_(dtype) {}

  Value operator()(double value) { return number(b_, value, dtype_); }
  Value add(Value a, Value c) { return applyOne(b_, "add", {a, c}); }
  Value sub(Value a, Value c) { return applyOne(b_, "sub", {a, c}); }
  Value mul(Value a, Value c) { return applyOne(b_, "mul", {a, c}); }
  Value div(Value a, Value c) { return applyOne(b_, "div", {a, c}); }
  Value of(llvm::StringRef name, Value a) { return applyOne(b_, name, a); }
  Value of(llvm::StringRef name, Value a, Value c) { return applyOne(b_, name, {a, c}); }
  Value where(Value condition, Value a, Value c) {
    return applyOne(b_, "where", {condition, a, c});
  }
  /// `value`, which follows from the gradient dy, but 0 where dy is 0.
  Value unlessZero(Value dy, Value value) { return applyOne(b_, "unless_zero", {dy, value}); }
  /// dy times a derivative.
  Value times(Value dy, Value derivative) {
    Value product = mul(dy, derivative);
    return isFinite(derivative) ? product : unlessZero(dy, product);
  }
  /// dy over x.
  Value over(Value dy, Value x) {
    std::optional<double> number = constantOf(x);
    Value quotient = div(dy, x);
    return number && *number != 0 && !std::isnan(*number) ? quotient : unlessZero(dy, quotient);
  }
  /// a where the condition holds, else 0.
  Value only(Value condition, Value a) { return where(condition, a, (*this)(0)); }

private:
  ExpandBuilder &b_;
  DType dtype_;
};

/// Makes a rule of a function that gives gradients of the result's shape, one for each operand that
/// is wanted.
template <typename Make> Gradient elementwise(Make make) {
  return {Gradient::Rule, [make](ExpandBuilder &b, const GradientCall &call) {
            Terms terms(b, dtypeOf(call.y()));
            Values gradients = make(terms, call);
            for (size_t i = 0; i < gradients.size(); ++i)
              gradients[i] = call.wanted[i] && gradients[i]
                                 ? sumToShapeOf(b, gradients[i], call.x(i))
                                 : Value();
            return gradients;
          }};
}

/// A function of one operand by its derivative.
template <typename Derivative> Gradient unary(Derivative derivative) {
  return elementwise([derivative](Terms &t, const GradientCall &call) -> Values {
    return {t.times(call.dy(), derivative(t, call.x(0), call.y()))};
  });
}

/// The gradient goes to `first` where the comparison of the operands holds, else to the other.
Gradient choice(llvm::StringRef comparison) {
  return elementwise([comparison](Terms &t, const GradientCall &call) -> Values {
    Value isFirst = t.of(comparison, call.x(0), call.x(1));
    return {t.only(isFirst, call.dy()), t.where(isFirst, t(0), call.dy())};
  });
}

void addArithmetic(GradientRules &rules) {
  rules["add"] = elementwise(
      [](Terms &, const GradientCall &call) -> Values { return {call.dy(), call.dy()}; });
  rules["sub"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    return {call.dy(), call.wanted[1] ? t.of("neg", call.dy()) : Value()};
  });
  rules["mul"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    return {call.wanted[0] ? t.times(call.dy(), call.x(1)) : Value(),
            call.wanted[1] ? t.times(call.dy(), call.x(0)) : Value()};
  });
  rules["div"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    Value dy = call.dy(), dividend = t.over(dy, call.x(1)), divisor;
    if (call.wanted[1])
      divisor = t.of("neg", t.unlessZero(dy, t.mul(dividend, call.y())));
    return {dividend, divisor};
  });
  rules["pow"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    Value a = call.x(0), c = call.x(1), base, exponent;
    if (call.wanted[0])
      base = t.where(t.of("eq", c, t(0)), t(0),
                     t.times(call.dy(), t.mul(c, t.of("pow", a, t.sub(c, t(1))))));
    // The power of 0 is constant in the exponent, and its logarithm is no number.
    if (call.wanted[1]) {
      Value positive = t.of("gt", a, t(0));
      Value logarithm = t.of("log", t.where(positive, a, t(1)));
      exponent = t.times(call.dy(), t.mul(call.y(), logarithm));
    }
    return {base, exponent};
  });
  rules["maximum"] = choice("ge");
  rules["minimum"] = choice("le");
  rules["clamp"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    Value x = call.x(0), lo = call.x(1), hi = call.x(2);
    Value below = t.of("lt", x, lo), held = t.of("maximum", x, lo);
    Value above = t.of("gt", held, hi);
    Value free = t.of("not", t.of("or", below, above));
    Value atLow = t.of("and", below, t.of("not", above));
    return {t.only(free, call.dy()), t.only(atLow, call.dy()), t.only(above, call.dy())};
  });
  rules["neg"] = elementwise(
      [](Terms &t, const GradientCall &call) -> Values { return {t.of("neg", call.dy())}; });
  rules["abs"] = unary([](Terms &t, Value x, Value) { return t.of("sign", x); });
  rules["square"] = unary([](Terms &t, Value x, Value) { return t.mul(t(2), x); });
  rules["where"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    return {{}, t.only(call.x(0), call.dy()), t.where(call.x(0), t(0), call.dy())};
  });
}

void addFunctions(GradientRules &rules) {
  rules["exp"] = unary([](Terms &, Value, Value y) { return y; });
  rules["log"] = elementwise(
      [](Terms &t, const GradientCall &call) -> Values { return {t.over(call.dy(), call.x(0))}; });
  rules["log1p"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    return {t.over(call.dy(), t.add(t(1), call.x(0)))};
  });
  rules["expm1"] = unary([](Terms &t, Value, Value y) { return t.add(y, t(1)); });
  // Where x is 0 the term counts for nothing, whatever y is.
  rules["xlogy"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    Value dy = call.dy(), x = call.x(0), y = call.x(1), first, second;
    Value isNothing = t.of("eq", x, t(0));
    if (call.wanted[0]) {
      Value isOut = t.of("and", isNothing, t.of("le", y, t(0)));
      first = t.where(isOut, t(0), t.times(dy, t.of("log", y)));
    }
    if (call.wanted[1])
      second = t.where(isNothing, t(0), t.unlessZero(dy, t.div(t.mul(dy, x), y)));
    return {first, second};
  });
  rules["sqrt"] = unary([](Terms &t, Value, Value y) { return t.div(t(0.5), y); });
  rules["rsqrt"] =
      unary([](Terms &t, Value, Value y) { return t.mul(t(-0.5), t.mul(y, t.of("square", y))); });
  rules["sin"] = unary([](Terms &t, Value x, Value) { return t.of("cos", x); });
  rules["cos"] = unary([](Terms &t, Value x, Value) { return t.of("neg", t.of("sin", x)); });
  rules["erf"] = unary([](Terms &t, Value x, Value) {
    return t.mul(t(M_2_SQRTPI), t.of("exp", t.of("neg", t.of("square", x))));
  });
  rules["tanh"] = unary([](Terms &t, Value, Value y) { return t.sub(t(1), t.of("square", y)); });
}

void addNonlinearities(GradientRules &rules) {
  rules["sigmoid"] = unary([](Terms &t, Value, Value y) { return t.mul(y, t.sub(t(1), y)); });
  rules["log_sigmoid"] =
      unary([](Terms &t, Value x, Value) { return t.of("sigmoid", t.of("neg", x)); });
  rules["bce_with_logits"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    Value x = call.x(0), target = call.x(1);
    return {t.times(call.dy(), t.sub(t.of("sigmoid", x), target)),
            call.wanted[1] ? t.times(call.dy(), t.of("neg", x)) : Value()};
  });
  rules["relu"] = elementwise([](Terms &t, const GradientCall &call) -> Values {
    return {t.only(t.of("gt", call.y(), t(0)), call.dy())};
  });
  rules["silu"] = unary([](Terms &t, Value x, Value y) {
    Value s = t.of("sigmoid", x);
    return t.add(s, t.mul(y, t.sub(t(1), s)));
  });
  rules["gelu"] = unary([](Terms &t, Value x, Value) {
    Value below = t.mul(t(0.5), t.add(t(1), t.of("erf", t.mul(x, t(M_SQRT1_2)))));
    Value power = t.of("exp", t.mul(t(-0.5), t.of("square", x)));
    return t.add(below, t.mul(x, t.mul(t(0.5 * M_2_SQRTPI * M_SQRT1_2), power)));
  });
  rules["gelu_tanh"] = unary([](Terms &t, Value x, Value) {
    double slope = std::sqrt(2 / M_PI), cubic = 0.044715;
    Value square = t.of("square", x);
    Value inner = t.mul(t(slope), t.mul(x, t.add(t(1), t.mul(t(cubic), square))));
    Value y = t.of("tanh", inner);
    Value ofInner = t.mul(t(slope), t.add(t(1), t.mul(t(3 * cubic), square)));
    Value change = t.mul(t.mul(t(0.5), x), t.mul(t.sub(t(1), t.of("square", y)), ofInner));
    return t.add(t.mul(t(0.5), t.add(t(1), y)), change);
  });
  rules["softplus"] = unary([](Terms &t, Value x, Value) { return t.of("sigmoid", x); });
}

void addCasts(GradientRules &rules) {
  for (DType to : {DType::F32, DType::BF16, DType::F16})
    rules[dtypeName(to)] = {Gradient::Rule,
                            [](ExpandBuilder &b, const GradientCall &call) -> Values {
                              DType from = dtypeOf(call.x(0));
                              if (!isFloat(from))
                                return {Value()};
                              return {applyOne(b, dtypeName(from), call.dy())};
                            }};
}

} // namespace

void addElementwiseGradients(GradientRules &rules) {
  addArithmetic(rules);
  addFunctions(rules);
  addNonlinearities(rules);
  addCasts(rules);
  for (llvm::StringRef name : {"floor",
                               "ceil",
                               "sign",
                               "eq",
                               "ne",
                               "lt",
                               "le",
                               "gt",
                               "ge",
                               "and",
                               "or",
                               "not",
                               "i32",
                               "i64",
                               "bool",
                               "tokens",
                               "scalar",
                               "token_tensor",
                               "rope_sin",
                               "rope_cos",
                               "uniform_first",
                               "uniform_second",
                               "detach",
                               "unless_zero"})
    rules[name] = {Gradient::None};
}

} // namespace sheaf::ops

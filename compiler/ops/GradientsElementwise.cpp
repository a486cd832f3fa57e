//===- GradientsElementwise.cpp - Gradients element by element ------------===//
//
// Of arithmetic, choices and casts; functions have theirs beside them (Functions.cpp). Where one
// has a kink, the gradient is that of one side: abs has 0 at 0, of two equal operands maximum and
// minimum choose the first, clamp counts its ends as inside.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Terms.h"

namespace sheaf::ops {
namespace {

using mlir::Value;
using Values = std::vector<Value>;

/// The gradient goes to `first` where the comparison of the operands holds, else to the other.
Gradient choice(llvm::StringRef comparison) {
  return gradientOf([comparison](Terms &t, const GradientCall &call) -> Values {
    Value isFirst = t.of(comparison, call.x(0), call.x(1));
    return {t.only(isFirst, call.dy()), t.where(isFirst, t(0), call.dy())};
  });
}

void addArithmetic(GradientRules &rules) {
  rules["add"] = gradientOf(
      [](Terms &, const GradientCall &call) -> Values { return {call.dy(), call.dy()}; });
  rules["sub"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
    return {call.dy(), call.wanted[1] ? t.of("neg", call.dy()) : Value()};
  });
  rules["mul"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
    return {call.wanted[0] ? t.times(call.dy(), call.x(1)) : Value(),
            call.wanted[1] ? t.times(call.dy(), call.x(0)) : Value()};
  });
  rules["div"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
    Value dy = call.dy(), dividend = t.over(dy, call.x(1)), divisor;
    if (call.wanted[1])
      divisor = t.of("neg", t.unlessZero(dy, t.mul(dividend, call.y())));
    return {dividend, divisor};
  });
  rules["pow"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
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
  rules["clamp"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
    Value x = call.x(0), lo = call.x(1), hi = call.x(2);
    Value below = t.of("lt", x, lo), held = t.of("maximum", x, lo);
    Value above = t.of("gt", held, hi);
    Value free = t.of("not", t.of("or", below, above));
    Value atLow = t.of("and", below, t.of("not", above));
    return {t.only(free, call.dy()), t.only(atLow, call.dy()), t.only(above, call.dy())};
  });
  rules["neg"] = gradientOf(
      [](Terms &t, const GradientCall &call) -> Values { return {t.of("neg", call.dy())}; });
  rules["abs"] = byDerivative([](Terms &t, Value x, Value) { return t.of("sign", x); });
  rules["square"] = byDerivative([](Terms &t, Value x, Value) { return t.mul(t(2), x); });
  rules["where"] = gradientOf([](Terms &t, const GradientCall &call) -> Values {
    return {{}, t.only(call.x(0), call.dy()), t.where(call.x(0), t(0), call.dy())};
  });
}

void addCasts(GradientRules &rules) {
  rules["round_factor"] = {Gradient::Rule, [](ExpandBuilder &, const GradientCall &call) -> Values {
                             return {call.dy()};
                           }};
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
  addCasts(rules);
  for (llvm::StringRef name : {"sign",
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
                               "number_above",
                               "uniform_first",
                               "uniform_second",
                               "detach",
                               "unless_zero"})
    rules[name] = {Gradient::None};
}

} // namespace sheaf::ops

//===- Functions.cpp - Functions of each element --------------------------===//
//
// Roots, powers of e, logarithms, trigonometry, what neurons do. No attributes. Each with its
// derivative: that of relu is 0 at 0.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Elementwise.h"
#include "compiler/ops/Lanes.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"
#include "compiler/ops/Terms.h"

namespace sheaf::ops {
namespace {

using lanes::Builder;
using mlir::Value;
using mlir::ValueRange;
using mlir::arith::CmpFOp;
using mlir::arith::CmpFPredicate;

/// `ulps`: of Op, where processors without fused multiply-adds are the worst (docs/numerics.md).
void addFunction(std::vector<Op> &ops, ElementwiseSpec spec, Gradient gradient, double ulps = 1) {
  Op &op = ops.emplace_back(elementwiseOp(std::move(spec)));
  op.gradient = std::move(gradient);
  op.ulps = ulps;
}

template <typename MathOp> Value unary(Builder &b, ValueRange x) { return MathOp::create(b, x[0]); }

/// log(1 + exp(-|x|)): exp is at most 1, so nothing overflows.
Value logOfTail(Builder &b, Value x) {
  Value magnitude = mlir::math::AbsFOp::create(b, x);
  return lanes::log1p(b, lanes::exp(b, mlir::arith::NegFOp::create(b, magnitude)));
}

void addPlainFunctions(std::vector<Op> &ops) {
  addFunction(ops,
              {"exp",
               "e to the power x",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::exp(x[0]); },
               unary<mlir::math::ExpOp>,
               false,
               {},
               {.exponential = true}},
              byDerivative([](Terms &, Value, Value y) { return y; }), 1.2);
  addFunction(ops,
              {"log",
               "the natural logarithm",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::log(x[0]); },
               unary<mlir::math::LogOp>},
              gradientOf([](Terms &t, const GradientCall &call) -> std::vector<Value> {
                return {t.over(call.dy(), call.x(0))};
              }),
              1.1);
  addFunction(ops,
              {"sqrt",
               "the square root",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::sqrt(x[0]); },
               unary<mlir::math::SqrtOp>},
              byDerivative([](Terms &t, Value, Value y) { return t.div(t(0.5), y); }));
  addFunction(ops,
              {"rsqrt",
               "1 / sqrt(x)",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return 1 / std::sqrt(x[0]); },
               [](Builder &b, ValueRange x) {
                 return lanes::div(b, lanes::constant(b, x[0].getType(), 1),
                                   mlir::math::SqrtOp::create(b, x[0]));
               }},
              byDerivative([](Terms &t, Value, Value y) {
                return t.mul(t(-0.5), t.mul(y, t.of("square", y)));
              }),
              1.5);
  addFunction(ops,
              {"sin",
               "the sine",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::sin(x[0]); },
               [](Builder &b, ValueRange x) { return lanes::sin(b, x[0]); }},
              byDerivative([](Terms &t, Value x, Value) { return t.of("cos", x); }));
  addFunction(ops,
              {"cos",
               "the cosine",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::cos(x[0]); },
               [](Builder &b, ValueRange x) { return lanes::cos(b, x[0]); }},
              byDerivative([](Terms &t, Value x, Value) { return t.of("neg", t.of("sin", x)); }));
  addFunction(ops,
              {"erf",
               "the error function",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::erf(x[0]); },
               unary<mlir::math::ErfOp>},
              byDerivative([](Terms &t, Value x, Value) {
                return t.mul(t(M_2_SQRTPI), t.of("exp", t.of("neg", t.of("square", x))));
              }),
              6.4);
  addFunction(ops,
              {"tanh",
               "the hyperbolic tangent",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::tanh(x[0]); },
               unary<mlir::math::TanhOp>},
              byDerivative([](Terms &t, Value, Value y) { return t.sub(t(1), t.of("square", y)); }),
              5.1);
  addFunction(ops,
              {"floor",
               "the greatest integer not above x",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::floor(x[0]); },
               unary<mlir::math::FloorOp>},
              {Gradient::None});
  addFunction(ops,
              {"ceil",
               "the least integer not below x",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::ceil(x[0]); },
               unary<mlir::math::CeilOp>},
              {Gradient::None});
}

void addNonlinearities(std::vector<Op> &ops) {
  constexpr double kGeluSlope = 0.79788456080286536, kGeluCubic = 0.044715;
  addFunction(ops,
              {"sigmoid",
               "1 / (1 + exp(-x))",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return 1 / (1 + std::exp(-x[0])); },
               [](Builder &b, ValueRange x) { return lanes::sigmoid(b, x[0]); }},
              byDerivative([](Terms &t, Value, Value y) { return t.mul(y, t.sub(t(1), y)); }), 2.4);
  addFunction(ops,
              {"relu",
               "x where it is positive, else 0",
               {"x"},
               Elements::Numbers,
               "",
               [](auto x) { return x[0] < 0 ? 0 : x[0]; },
               [](Builder &b, ValueRange x) {
                 return lanes::maximum(b, lanes::constant(b, x[0].getType(), 0), x[0]);
               }},
              gradientOf([](Terms &t, const GradientCall &call) -> std::vector<Value> {
                return {t.only(t.of("gt", call.y(), t(0)), call.dy())};
              }));
  addFunction(
      ops,
      {"silu",
       "x * sigmoid(x)",
       {"x"},
       Elements::Floats,
       "",
       [](auto x) { return x[0] * (1 / (1 + std::exp(-x[0]))); },
       [](Builder &b, ValueRange x) { return lanes::mul(b, x[0], lanes::sigmoid(b, x[0])); }},
      byDerivative([](Terms &t, Value x, Value y) {
        Value s = t.of("sigmoid", x);
        return t.add(s, t.mul(y, t.sub(t(1), s)));
      }),
      2.6);
  addFunction(ops,
              {"gelu",
               "x times the normal distribution function of x (exact, by erf)",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return 0.5 * x[0] * (1 + std::erf(x[0] * M_SQRT1_2)); },
               [](Builder &b, ValueRange x) {
                 auto number = [&](double v) { return lanes::constant(b, x[0].getType(), v); };
                 Value erf = mlir::math::ErfOp::create(b, lanes::mul(b, x[0], number(M_SQRT1_2)));
                 return lanes::mul(b, lanes::mul(b, number(0.5), x[0]),
                                   lanes::add(b, number(1), erf));
               }},
              byDerivative([](Terms &t, Value x, Value) {
                Value below = t.mul(t(0.5), t.add(t(1), t.of("erf", t.mul(x, t(M_SQRT1_2)))));
                Value power = t.of("exp", t.mul(t(-0.5), t.of("square", x)));
                return t.add(below, t.mul(x, t.mul(t(0.5 * M_2_SQRTPI * M_SQRT1_2), power)));
              }),
              7.8);
  addFunction(
      ops,
      {"gelu_tanh",
       "the approximation of gelu by tanh: "
       "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))",
       {"x"},
       Elements::Floats,
       "",
       [](auto x) {
         double inner = kGeluSlope * (x[0] + kGeluCubic * x[0] * x[0] * x[0]);
         return 0.5 * x[0] * (1 + std::tanh(inner));
       },
       [](Builder &b, ValueRange x) {
         auto number = [&](double v) { return lanes::constant(b, x[0].getType(), v); };
         Value square = lanes::mul(b, x[0], x[0]);
         Value factor = lanes::add(b, number(1), lanes::mul(b, number(kGeluCubic), square));
         Value inner = lanes::mul(b, number(kGeluSlope), lanes::mul(b, x[0], factor));
         Value tanh = mlir::math::TanhOp::create(b, inner);
         return lanes::mul(b, lanes::mul(b, number(0.5), x[0]), lanes::add(b, number(1), tanh));
       }},
      byDerivative([](Terms &t, Value x, Value) {
        double slope = std::sqrt(2 / M_PI), cubic = 0.044715;
        Value square = t.of("square", x);
        Value inner = t.mul(t(slope), t.mul(x, t.add(t(1), t.mul(t(cubic), square))));
        Value y = t.of("tanh", inner);
        Value ofInner = t.mul(t(slope), t.add(t(1), t.mul(t(3 * cubic), square)));
        Value change = t.mul(t.mul(t(0.5), x), t.mul(t.sub(t(1), t.of("square", y)), ofInner));
        return t.add(t.mul(t(0.5), t.add(t(1), y)), change);
      }),
      6.8);
  addFunction(ops,
              {"softplus",
               "log(1 + exp(x)), without overflow",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return maximumOf(x[0], 0) + std::log1p(std::exp(-std::fabs(x[0]))); },
               [](Builder &b, ValueRange x) {
                 Value zero = lanes::constant(b, x[0].getType(), 0);
                 return lanes::add(b, lanes::maximum(b, x[0], zero), logOfTail(b, x[0]));
               }},
              byDerivative([](Terms &t, Value x, Value) { return t.of("sigmoid", x); }), 2.8);
}

/// Logarithms and powers near 0, and products with them.
void addLogarithms(std::vector<Op> &ops) {
  addFunction(ops,
              {"log1p",
               "log(1 + x), exact near 0",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::log1p(x[0]); },
               [](Builder &b, ValueRange x) {
                 Value infinity =
                     lanes::constant(b, x[0].getType(), std::numeric_limits<double>::infinity());
                 Value isInfinite = CmpFOp::create(b, CmpFPredicate::OEQ, x[0], infinity);
                 return lanes::select(b, isInfinite, infinity, lanes::log1p(b, x[0]));
               }},
              gradientOf([](Terms &t, const GradientCall &call) -> std::vector<Value> {
                return {t.over(call.dy(), t.add(t(1), call.x(0)))};
              }),
              2.5);
  addFunction(ops,
              {"expm1",
               "e to the power x, less 1, exact near 0",
               {"x"},
               Elements::Floats,
               "",
               [](auto x) { return std::expm1(x[0]); },
               [](Builder &b, ValueRange x) {
                 auto number = [&](double v) { return lanes::constant(b, x[0].getType(), v); };
                 // Below 1/2 the series, of which nine terms are enough.
                 Value series = number(1.0 / 362880);
                 for (double factorial : {40320, 5040, 720, 120, 24, 6, 2})
                   series = lanes::add(b, number(1 / factorial), lanes::mul(b, series, x[0]));
                 Value square = lanes::mul(b, x[0], x[0]);
                 series = lanes::add(b, x[0], lanes::mul(b, square, series));
                 Value isNear = CmpFOp::create(b, CmpFPredicate::OLT,
                                               mlir::math::AbsFOp::create(b, x[0]), number(0.5));
                 Value power = lanes::sub(b, lanes::exp(b, x[0]), number(1));
                 return lanes::select(b, isNear, series, power);
               }},
              byDerivative([](Terms &t, Value, Value y) { return t.add(y, t(1)); }), 2.5);
  addFunction(ops,
              {"xlogy",
               "x * log(y), and 0 where x is 0, whatever number y is; its gradient is 0 there too",
               {"x", "y"},
               Elements::Floats,
               "",
               [](auto x) { return x[0] == 0 && !std::isnan(x[1]) ? 0 : x[0] * std::log(x[1]); },
               [](Builder &b, ValueRange x) {
                 Value zero = lanes::constant(b, x[0].getType(), 0);
                 Value isZero = CmpFOp::create(b, CmpFPredicate::OEQ, x[0], zero);
                 Value isNumber = CmpFOp::create(b, CmpFPredicate::ORD, x[1], x[1]);
                 Value product = lanes::mul(b, x[0], mlir::math::LogOp::create(b, x[1]));
                 return lanes::select(b, mlir::arith::AndIOp::create(b, isZero, isNumber), zero,
                                      product);
               }},
              // Where x is 0 the term counts for nothing, whatever y is.
              gradientOf([](Terms &t, const GradientCall &call) -> std::vector<Value> {
                Value dy = call.dy(), x = call.x(0), y = call.x(1), first, second;
                Value isNothing = t.of("eq", x, t(0));
                if (call.wanted[0]) {
                  Value isOut = t.of("and", isNothing, t.of("le", y, t(0)));
                  first = t.where(isOut, t(0), t.times(dy, t.of("log", y)));
                }
                if (call.wanted[1])
                  second = t.where(isNothing, t(0), t.unlessZero(dy, t.div(t.mul(dy, x), y)));
                return {first, second};
              }),
              2.1);
  addFunction(
      ops,
      {"log_sigmoid",
       "log(sigmoid(x)), without overflow",
       {"x"},
       Elements::Floats,
       "",
       [](auto x) { return minimumOf(x[0], 0) - std::log1p(std::exp(-std::fabs(x[0]))); },
       [](Builder &b, ValueRange x) {
         Value zero = lanes::constant(b, x[0].getType(), 0);
         return lanes::sub(b, lanes::minimum(b, x[0], zero), logOfTail(b, x[0]));
       }},
      byDerivative([](Terms &t, Value x, Value) { return t.of("sigmoid", t.of("neg", x)); }), 3);
  addFunction(ops,
              {"bce_with_logits",
               "the binary cross entropy of sigmoid(x) and a target from 0 to 1, for each "
               "element, without overflow",
               {"x", "target"},
               Elements::Floats,
               "take the binary cross entropy of {0} and {1}",
               [](auto x) {
                 return maximumOf(x[0], 0) - x[0] * x[1] + std::log1p(std::exp(-std::fabs(x[0])));
               },
               [](Builder &b, ValueRange x) {
                 Value zero = lanes::constant(b, x[0].getType(), 0);
                 Value linear =
                     lanes::sub(b, lanes::maximum(b, x[0], zero), lanes::mul(b, x[0], x[1]));
                 return lanes::add(b, linear, logOfTail(b, x[0]));
               }},
              gradientOf([](Terms &t, const GradientCall &call) -> std::vector<Value> {
                Value x = call.x(0), target = call.x(1);
                return {t.times(call.dy(), t.sub(t.of("sigmoid", x), target)),
                        call.wanted[1] ? t.times(call.dy(), t.of("neg", x)) : Value()};
              }),
              4);
}

/// The sine and cosine of place * exp(-pair * (high + low)): an angle in f32 would lose the digits
/// that a far place needs.
void addRotary(std::vector<Op> &ops) {
  auto angle = [](auto x) { return x[0] * std::exp(-x[1] * (x[2] + x[3])); };
  std::vector<std::string> params = {"place", "pair", "high", "low"};
  for (int64_t quarters : {0, 1}) {
    addFunction(ops,
                {quarters ? "rope_cos" : "rope_sin",
                 quarters ? "the cosine of a rotary angle" : "the sine of a rotary angle", params,
                 Elements::Floats, "",
                 [=](auto x) { return quarters ? std::cos(angle(x)) : std::sin(angle(x)); },
                 [quarters](Builder &b, ValueRange x) {
                   return lanes::sineOfAngle(b, lanes::rotaryAngle(b, x), quarters);
                 }},
                {Gradient::None});
    ops.back().internal = true;
  }
}

} // namespace

void addFunctions(std::vector<Op> &ops) {
  addPlainFunctions(ops);
  addLogarithms(ops);
  addNonlinearities(ops);
  addRotary(ops);
}

} // namespace sheaf::ops

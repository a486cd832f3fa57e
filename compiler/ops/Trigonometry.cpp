//===- Trigonometry.cpp - Sine and cosine of lanes, rotary angles ---------===//
//
// The argument's remainder by pi/2 is taken in double precision, where it keeps all the digits that
// an f32 result can show for arguments up to 10^7; two polynomials (Cephes') give the rest.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Lanes.h"

#include <cmath>

namespace sheaf::ops::lanes {
namespace {

using mlir::Value;

/// c0 + z * (c1 + z * (c2 + ...))
Value polynomial(Builder &b, Value z, std::initializer_list<double> coefficients) {
  Value sum;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
    Value constantTerm = constant(b, z.getType(), *c);
    sum = sum ? add(b, constantTerm, mul(b, z, sum)) : constantTerm;
  }
  return sum;
}

Value widened(Builder &b, Value x) {
  return mlir::arith::ExtFOp::create(b, withElement(x.getType(), b.getF64Type()), x);
}

} // namespace

Value sineOfAngle(Builder &b, Value wide, int64_t quarters) {
  mlir::Type doubles = wide.getType(), floats = withElement(doubles, b.getF32Type());
  auto number = [&](double v) { return constant(b, doubles, v); };
  // Added to a double of less than 2^51 and taken away again, this leaves the nearest integer.
  auto nearest = [&](Value v) { return sub(b, add(b, v, number(0x1.8p52)), number(0x1.8p52)); };

  Value turns = nearest(mul(b, wide, number(M_2_PI)));
  Value rest = sub(b, wide, mul(b, turns, number(M_PI_2)));
  Value all = add(b, turns, number(static_cast<double>(quarters)));
  // 0, 1, 2 or 3: the nearest integer of k - 3/8, k - 1/8, k + 1/8 and k + 3/8 is k.
  Value whole = nearest(sub(b, mul(b, all, number(0.25)), number(0.375)));
  Value quadrant = sub(b, all, mul(b, whole, number(4)));

  // What an argument beyond all digits leaves must not make the polynomials infinite.
  Value r = mlir::arith::TruncFOp::create(b, floats, rest);
  r = minimum(b, maximum(b, r, constant(b, floats, -1)), constant(b, floats, 1));
  Value z = mul(b, r, r);
  Value sine = add(b, r,
                   mul(b, mul(b, r, z),
                       polynomial(b, z, {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4})));
  Value cosine = add(
      b, sub(b, constant(b, floats, 1), mul(b, z, constant(b, floats, 0.5))),
      mul(b, mul(b, z, z),
          polynomial(b, z, {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5})));
  auto is = [&](double which) {
    return mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OEQ, quadrant, number(which));
  };
  Value turned = mlir::arith::NegFOp::create(b, select(b, is(2), sine, cosine));
  Value straight = select(b, is(1), cosine, sine);
  return select(b, mlir::arith::OrIOp::create(b, is(2), is(3)), turned, straight);
}

Value rotaryAngle(Builder &b, mlir::ValueRange x) {
  Value place = widened(b, x[0]), pair = widened(b, x[1]);
  Value ratio = add(b, widened(b, x[2]), widened(b, x[3]));
  mlir::Type doubles = place.getType();
  // exp(y) is exp(y/32), for which the series is short, squared five times.
  Value exponent = mul(b, mul(b, pair, ratio), constant(b, doubles, -1.0 / 32));
  exponent = minimum(b, maximum(b, exponent, constant(b, doubles, -1)), constant(b, doubles, 0));
  Value power = polynomial(b, exponent,
                           {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                            1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
                            1.0 / 479001600, 1.0 / 6227020800});
  for (int i = 0; i < 5; ++i)
    power = mul(b, power, power);
  return mul(b, place, power);
}

Value sin(Builder &b, Value x) { return sineOfAngle(b, widened(b, x), 0); }
Value cos(Builder &b, Value x) { return sineOfAngle(b, widened(b, x), 1); }

} // namespace sheaf::ops::lanes

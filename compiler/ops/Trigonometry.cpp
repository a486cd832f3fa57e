//===- Trigonometry.cpp - Sine and cosine of lanes ------------------------===//
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

/// The sine of x + quarters * pi/2.
Value sineOf(Builder &b, Value x, int64_t quarters) {
  mlir::Type floats = x.getType();
  mlir::Type doubles = withElement(floats, b.getF64Type());
  mlir::Type longs = withElement(floats, b.getI64Type());

  // Added to a double of less than 2^51, this leaves the nearest integer in the lowest bits. Larger
  // doubles and those that are not finite leave anything there, but no undefined value.
  Value magic = constant(b, doubles, 0x1.8p52);
  Value wide = mlir::arith::ExtFOp::create(b, doubles, x);
  Value shifted = add(b, mul(b, wide, constant(b, doubles, M_2_PI)), magic);
  Value rest = sub(b, wide, mul(b, sub(b, shifted, magic), constant(b, doubles, M_PI_2)));
  Value quadrant =
      add(b, mlir::arith::BitcastOp::create(b, longs, shifted), intConstant(b, longs, quarters));

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
  auto hasBit = [&](int64_t bit) {
    Value masked = mlir::arith::AndIOp::create(b, quadrant, intConstant(b, longs, bit));
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::ne, masked,
                                       intConstant(b, longs, 0));
  };
  Value result = select(b, hasBit(1), cosine, sine);
  return select(b, hasBit(2), mlir::arith::NegFOp::create(b, result), result);
}

} // namespace

Value sin(Builder &b, Value x) { return sineOf(b, x, 0); }
Value cos(Builder &b, Value x) { return sineOf(b, x, 1); }

} // namespace sheaf::ops::lanes

//===- Functions.cpp - exp, log, tanh and erf -----------------------------===//
//
// Few instructions, since they are most of what follows the products of a cell. How far each is
// from exact stands in docs/numerics.md. Polynomials and quotients are minimax fits; that of log is
// Cephes', that of tanh Eigen's (ptanh_float).
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Functions.h"

#include "compiler/ops/Lanes.h"

#include <cmath>
#include <limits>

namespace sheaf::kernels::cpu {
namespace {

using mlir::Value;
using namespace ops::lanes;

Value multiplyAdd(Builder &b, Value x, Value y, Value z) {
  return mlir::math::FmaOp::create(b, x, y, z);
}

/// c0 + z * (c1 + z * (c2 + ...)), in multiply-adds.
Value polynomial(Builder &b, Value z, std::initializer_list<double> coefficients) {
  Value sum;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
    Value term = constant(b, z.getType(), *c);
    sum = sum ? multiplyAdd(b, sum, z, term) : term;
  }
  return sum;
}

/// x between two bounds; NaN stays.
Value held(Builder &b, Value x, double least, double most) {
  x = minimum(b, constant(b, x.getType(), most), x);
  return maximum(b, constant(b, x.getType(), least), x);
}

/// x * p(x^2) over q(x^2), polynomials that are 1 or more, held between -1 and 1: at the bound,
/// where x is held before, the quotient is a little more, so that what is far from zero gives 1
/// exactly.
Value oddQuotient(Builder &b, Value x, double bound, std::initializer_list<double> numerator,
                  std::initializer_list<double> denominator) {
  x = held(b, x, -bound, bound);
  Value square = mul(b, x, x);
  Value above = mul(b, x, polynomial(b, square, numerator));
  Value quotient = div(b, above, polynomial(b, square, denominator));
  return held(b, quotient, -1, 1);
}

Value exponential(Builder &b, Value x) {
  mlir::Type type = x.getType(), bits = withElement(type, b.getI32Type());
  auto number = [&](double v) { return constant(b, type, v); };
  // With n the nearest integer of x / log 2, exp(x) = 2^(n-1) * 2 exp(r). Below, n is -126 and what
  // stands for 2^-127 is zero.
  x = held(b, x, -87.33, 89);
  // In the last bits of a number of this size stands its integer part: n plus the exponent's bias.
  constexpr double kShift = 0x1.8p23 + 126;
  Value shifted = multiplyAdd(b, x, number(M_LOG2E), number(kShift));
  Value n = sub(b, shifted, number(kShift));
  // log 2 in two parts, the first with so few digits that its product with n is exact (Cephes).
  Value r = multiplyAdd(b, n, number(-0.693359375), x);
  r = multiplyAdd(b, n, number(2.12194440e-4), r);
  Value twice =
      polynomial(b, r,
                 {2, 2, 2 * 0.4999999403953552, 2 * 0.1666652113199234, 2 * 0.04166838899254799,
                  2 * 0.008368716575205326, 2 * 0.001381459878757596});
  Value exponent = mlir::arith::ShLIOp::create(b, mlir::arith::BitcastOp::create(b, bits, shifted),
                                               intConstant(b, bits, 23));
  return mul(b, twice, mlir::arith::BitcastOp::create(b, type, exponent));
}

Value logarithm(Builder &b, Value x) {
  using mlir::arith::CmpFOp, mlir::arith::CmpFPredicate;
  mlir::Type type = x.getType(), bits = withElement(type, b.getI32Type());
  auto number = [&](double v) { return constant(b, type, v); };
  Value zero = number(0);
  // x = fraction * 2^exponent, the fraction from 1/2 to 1. Subnormal numbers are made normal.
  Value isTiny = CmpFOp::create(b, CmpFPredicate::OLT, x, number(0x1p-126));
  Value normal = select(b, isTiny, mul(b, x, number(0x1p23)), x);
  Value pattern = mlir::arith::BitcastOp::create(b, bits, normal);
  Value exponent = mlir::arith::SIToFPOp::create(
      b, type, mlir::arith::ShRUIOp::create(b, pattern, intConstant(b, bits, 23)));
  exponent = sub(b, exponent, select(b, isTiny, number(126 + 23), number(126)));
  Value fraction = mlir::arith::AndIOp::create(b, pattern, intConstant(b, bits, 0x007fffff));
  fraction = mlir::arith::OrIOp::create(b, fraction, intConstant(b, bits, 0x3f000000));
  fraction = mlir::arith::BitcastOp::create(b, type, fraction);
  // From the square root of 1/2 to that of 2, less 1.
  Value isLow = CmpFOp::create(b, CmpFPredicate::OLT, fraction, number(M_SQRT1_2));
  exponent = sub(b, exponent, select(b, isLow, number(1), zero));
  Value r = add(b, sub(b, fraction, number(1)), select(b, isLow, fraction, zero));
  // log(1 + r) = r - r^2 / 2 + r^3 * p(r), and p in three parts.
  Value square = mul(b, r, r), cube = mul(b, square, r);
  Value high = polynomial(b, r, {1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2});
  Value middle = polynomial(b, r, {-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1});
  Value low = polynomial(b, r, {3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1});
  Value rest = multiplyAdd(b, multiplyAdd(b, high, cube, middle), cube, low);
  rest = multiplyAdd(b, number(-0.5), square, mul(b, rest, cube));
  Value result = multiplyAdd(b, exponent, number(M_LN2), add(b, r, rest));
  Value infinity = number(std::numeric_limits<double>::infinity());
  result = select(b, CmpFOp::create(b, CmpFPredicate::OEQ, x, infinity), infinity, result);
  result = select(b, CmpFOp::create(b, CmpFPredicate::ULT, x, zero),
                  number(std::numeric_limits<double>::quiet_NaN()), result);
  return select(b, CmpFOp::create(b, CmpFPredicate::OEQ, x, zero),
                number(-std::numeric_limits<double>::infinity()), result);
}

Value hyperbolicTangent(Builder &b, Value x) {
  return oddQuotient(b, x, 9, {1, 1.340216100e-1, 3.520756727e-3, 2.102733560e-5, 1.394553628e-8},
                     {1, 4.673548340e-1, 2.597254514e-2, 3.326951409e-4, 8.015776984e-7});
}

Value errorFunction(Builder &b, Value x) {
  return oddQuotient(
      b, x, 4,
      {1.1283791065216064, 0.20147645473480225, 0.05079405754804611, 0.0037683462724089622,
       0.00014351820573210716, -1.967656316992361e-6, 1.9980083365567225e-8},
      {1, 0.511885404586792, 0.11565311253070831, 0.014491792768239975, 0.0009722309187054634});
}

using Expansion = Value (*)(Builder &b, Value x);

/// Of f32, what else there is being left.
template <typename Op, Expansion expansion> struct Expand : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    if (!mlir::getElementTypeOrSelf(op.getType()).isF32())
      return mlir::failure();
    Builder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, expansion(b, op.getOperand()));
    return mlir::success();
  }
};

} // namespace

void populateFunctionPatterns(mlir::RewritePatternSet &patterns) {
  namespace math = mlir::math;
  patterns.add<Expand<math::ExpOp, exponential>, Expand<math::LogOp, logarithm>,
               Expand<math::TanhOp, hyperbolicTangent>, Expand<math::ErfOp, errorFunction>>(
      patterns.getContext());
}

} // namespace sheaf::kernels::cpu

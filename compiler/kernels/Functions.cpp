//===- Functions.cpp - exp, tanh and erf ----------------------------------===//
//
// Few instructions, since they are most of what follows the products of a cell. How far each is
// from exact stands in docs/numerics.md. Polynomials and quotients are minimax fits; that of tanh
// is Eigen's (ptanh_float).
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/Functions.h"

#include "compiler/ops/Lanes.h"

#include <cmath>

namespace sheaf::kernels {
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
  patterns.add<Expand<math::ExpOp, exponential>, Expand<math::TanhOp, hyperbolicTangent>,
               Expand<math::ErfOp, errorFunction>>(patterns.getContext());
}

} // namespace sheaf::kernels

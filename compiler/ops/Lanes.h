//===- Lanes.h - What elementwise emitters share ----------------*- C++ -*-===//
//
// For the operator families and the kernels' reductions only: arith and math operations on lanes,
// that is on vectors (or scalars) of a compute type.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_LANES_H
#define SHEAF_COMPILER_OPS_LANES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace sheaf::ops::lanes {

using Builder = mlir::ImplicitLocOpBuilder;

inline bool isFloat(mlir::Value v) {
  return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(v.getType()));
}
inline bool isBool(mlir::Value v) { return mlir::getElementTypeOrSelf(v.getType()).isInteger(1); }

/// `type` with another element type.
inline mlir::Type withElement(mlir::Type type, mlir::Type element) {
  auto shaped = mlir::dyn_cast<mlir::ShapedType>(type);
  return shaped ? shaped.clone(element) : element;
}

/// All lanes of this type equal to `value`.
inline mlir::Value constant(Builder &b, mlir::Type type, double value) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  mlir::TypedAttr attr;
  if (mlir::isa<mlir::FloatType>(element))
    attr = b.getFloatAttr(element, value);
  else
    attr = b.getIntegerAttr(element, static_cast<int64_t>(value));
  if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
    attr = mlir::DenseElementsAttr::get(shaped, mlir::Attribute(attr));
  return mlir::arith::ConstantOp::create(b, attr);
}

inline mlir::Value intConstant(Builder &b, mlir::Type type, int64_t value) {
  mlir::TypedAttr attr = b.getIntegerAttr(mlir::getElementTypeOrSelf(type), value);
  if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
    attr = mlir::DenseElementsAttr::get(shaped, mlir::Attribute(attr));
  return mlir::arith::ConstantOp::create(b, attr);
}

inline mlir::Value add(Builder &b, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? mlir::Value(mlir::arith::AddFOp::create(b, x, y))
                    : mlir::Value(mlir::arith::AddIOp::create(b, x, y));
}
inline mlir::Value sub(Builder &b, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? mlir::Value(mlir::arith::SubFOp::create(b, x, y))
                    : mlir::Value(mlir::arith::SubIOp::create(b, x, y));
}
inline mlir::Value mul(Builder &b, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? mlir::Value(mlir::arith::MulFOp::create(b, x, y))
                    : mlir::Value(mlir::arith::MulIOp::create(b, x, y));
}
inline mlir::Value div(Builder &b, mlir::Value x, mlir::Value y) {
  return mlir::arith::DivFOp::create(b, x, y);
}

inline mlir::Value compare(Builder &b, mlir::arith::CmpFPredicate ofFloats,
                           mlir::arith::CmpIPredicate ofInts, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? mlir::Value(mlir::arith::CmpFOp::create(b, ofFloats, x, y))
                    : mlir::Value(mlir::arith::CmpIOp::create(b, ofInts, x, y));
}
inline mlir::Value select(Builder &b, mlir::Value c, mlir::Value x, mlir::Value y) {
  return mlir::arith::SelectOp::create(b, c, x, y);
}

/// Of floats: x if it is NaN or `wins` over y, else y.
inline mlir::Value winner(Builder &b, mlir::arith::CmpFPredicate wins, mlir::Value x,
                          mlir::Value y) {
  using mlir::arith::CmpFOp, mlir::arith::CmpFPredicate;
  mlir::Value better = select(b, CmpFOp::create(b, wins, x, y), x, y);
  return select(b, CmpFOp::create(b, CmpFPredicate::UNO, x, x), x, better);
}
/// As the references have them, the sign of zero included: if neither wins, y.
inline mlir::Value maximum(Builder &b, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? winner(b, mlir::arith::CmpFPredicate::OGT, x, y)
                    : mlir::Value(mlir::arith::MaxSIOp::create(b, x, y));
}
inline mlir::Value minimum(Builder &b, mlir::Value x, mlir::Value y) {
  return isFloat(x) ? winner(b, mlir::arith::CmpFPredicate::OLT, x, y)
                    : mlir::Value(mlir::arith::MinSIOp::create(b, x, y));
}

inline mlir::Value exp(Builder &b, mlir::Value x) { return mlir::math::ExpOp::create(b, x); }

/// 1 / (1 + exp(-x))
inline mlir::Value sigmoid(Builder &b, mlir::Value x) {
  mlir::Value one = constant(b, x.getType(), 1);
  return div(b, one, add(b, one, exp(b, mlir::arith::NegFOp::create(b, x))));
}

/// log(1 + x) for x from 0 to 1. Where x is below half a unit of 1 the result is x; elsewhere the
/// logarithm of the rounded sum is scaled by what rounding took from x (Goldberg 1991, theorem 4).
inline mlir::Value log1p(Builder &b, mlir::Value x) {
  mlir::Value one = constant(b, x.getType(), 1);
  mlir::Value sum = add(b, one, x);
  mlir::Value rounded = sub(b, sum, one);
  mlir::Value scaled = mul(b, mlir::math::LogOp::create(b, sum), div(b, x, rounded));
  mlir::Value isLost = compare(b, mlir::arith::CmpFPredicate::OEQ, mlir::arith::CmpIPredicate::eq,
                               rounded, constant(b, x.getType(), 0));
  return select(b, isLost, x, scaled);
}

/// To 2 ulp for arguments up to 10^7 (Trigonometry.cpp).
mlir::Value sin(Builder &b, mlir::Value x);
mlir::Value cos(Builder &b, mlir::Value x);
/// The sine of an angle in doubles, up to 10^7, plus `quarters` right angles, as f32.
mlir::Value sineOfAngle(Builder &b, mlir::Value angle, int64_t quarters);
/// place * exp(-pair * (high + low)) in doubles; the power is from exp(-32) to 1.
mlir::Value rotaryAngle(Builder &b, mlir::ValueRange placePairHighLow);

} // namespace sheaf::ops::lanes

#endif // SHEAF_COMPILER_OPS_LANES_H

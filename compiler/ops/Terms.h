//===- Terms.h - Derivatives as formulas ------------------------*- C++ -*-===//
//
// What rules of functions of each element are written with: `byDerivative` of the derivative of a
// function of one operand, `gradientOf` of any other.
//
// A gradient that is exactly 0 where it arrives gives exactly 0 to the operands, whatever the
// derivative: 0 times NaN or infinity is 0 here (Terms::times, Terms::over, Terms::unlessZero).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_TERMS_H
#define SHEAF_COMPILER_OPS_TERMS_H

#include "compiler/ops/Gradient.h"

namespace sheaf::ops {

/// Arithmetic on tensors of one element type, numbers included.
class Terms {
public:
  Terms(ExpandBuilder &b, DType dtype) : b_(b), dtype_(dtype) {}

  mlir::Value operator()(double value) { return number(b_, value, dtype_); }
  mlir::Value add(mlir::Value a, mlir::Value c) { return applyOne(b_, "add", {a, c}); }
  mlir::Value sub(mlir::Value a, mlir::Value c) { return applyOne(b_, "sub", {a, c}); }
  mlir::Value mul(mlir::Value a, mlir::Value c) { return applyOne(b_, "mul", {a, c}); }
  mlir::Value div(mlir::Value a, mlir::Value c) { return applyOne(b_, "div", {a, c}); }
  mlir::Value of(llvm::StringRef name, mlir::Value a) { return applyOne(b_, name, a); }
  mlir::Value of(llvm::StringRef name, mlir::Value a, mlir::Value c) {
    return applyOne(b_, name, {a, c});
  }
  mlir::Value where(mlir::Value condition, mlir::Value a, mlir::Value c) {
    return applyOne(b_, "where", {condition, a, c});
  }
  /// `value`, which follows from the gradient dy, but 0 where dy is 0.
  mlir::Value unlessZero(mlir::Value dy, mlir::Value value) {
    return applyOne(b_, "unless_zero", {dy, value});
  }
  /// dy times a derivative.
  mlir::Value times(mlir::Value dy, mlir::Value derivative);
  /// dy over x.
  mlir::Value over(mlir::Value dy, mlir::Value x);
  /// a where the condition holds, else 0.
  mlir::Value only(mlir::Value condition, mlir::Value a) { return where(condition, a, (*this)(0)); }

private:
  ExpandBuilder &b_;
  DType dtype_;
};

/// Makes a rule of a function that gives gradients of the result's shape, one for each operand that
/// is wanted.
template <typename Make> Gradient gradientOf(Make make) {
  return {Gradient::Rule, [make](ExpandBuilder &b, const GradientCall &call) {
            Terms terms(b, dtypeOf(call.y()));
            std::vector<mlir::Value> gradients = make(terms, call);
            for (size_t i = 0; i < gradients.size(); ++i)
              gradients[i] = call.wanted[i] && gradients[i]
                                 ? sumToShapeOf(b, gradients[i], call.x(i))
                                 : mlir::Value();
            return gradients;
          }};
}

/// A function of one operand by its derivative.
template <typename Derivative> Gradient byDerivative(Derivative derivative) {
  return gradientOf([derivative](Terms &t, const GradientCall &call) -> std::vector<mlir::Value> {
    return {t.times(call.dy(), derivative(t, call.x(0), call.y()))};
  });
}

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_TERMS_H

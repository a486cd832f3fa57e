//===- Perturbed.h - Roundings that go either way ---------------*- C++ -*-===//
//
// How much a program's rounding matters shows in what becomes of it when roundings come out
// otherwise (Monte Carlo arithmetic: Parker, 1997; Vignes' CESTAC). Each result that is no f32 goes
// to the f32 above or below it. Which of them follows from what is rounded and from the operator
// that rounds: equal computations stay equal, so that a number less itself is nothing, and what is
// exact, counts and places among it, stays exact.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ORACLE_PERTURBED_H
#define SHEAF_COMPILER_ORACLE_PERTURBED_H

#include "compiler/oracle/Code.h"
#include "compiler/oracle/Oracle.h"

namespace sheaf::oracle {

/// Of one application of an operator.
class PerturbedArithmetic final : public ops::Arithmetic {
public:
  PerturbedArithmetic(uint64_t seed, const ops::Op &op, const ops::RefTensors &operands,
                      Precision precision);

  double round(double x) const override;
  void roundAll(std::span<double> values) const override;
  double roundFactor(double x) const override;
  /// A number as it is stored in a tensor of narrow floats. What is near the greatest is rounded to
  /// the nearest: only what is too large becomes infinite.
  double roundStored(double x, ops::DType dtype) const;

private:
  uint64_t bitsFor(double x) const;

  uint64_t salt_;
  enum class Zeros { None, All, Some } zeros_; ///< what becomes of next to nothing, by the seed
  double ulps_;
  bool roundsFactors_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_PERTURBED_H

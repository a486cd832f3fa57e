//===- Compare.h - Agreement of two values ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_COMPARE_H
#define SHEAF_COMPILER_ORACLE_COMPARE_H

#include "compiler/oracle/Value.h"

#include <span>
#include <string>
#include <vector>

namespace sheaf::oracle {

/// How far one float tensor (or host float) is from what was expected.
struct TensorError {
  double maxAbs = 0;   ///< the greatest |expected|, finite elements only
  double maxError = 0; ///< the greatest |expected - actual|; infinite where one is not finite
  /// maxError in units of max(1, maxAbs): what a tolerance is compared with.
  double relative() const { return maxError / (maxAbs > 1 ? maxAbs : 1); }
};

struct Comparison {
  bool ok = true;
  /// The first mismatch: where (`.1[3]`: element 3 of field 1), and both sides.
  std::string message;
  /// Float tensors and host floats in order: depth first, left to right. Up to the first difference
  /// in structure.
  std::vector<TensorError> tensors;
  /// The greatest `relative()`.
  double worst() const;
};

/// Whether `actual` agrees with `expected`: |a - b| <= tolerance * max(1, max |b| of that tensor);
/// shapes, element types, ints, bools, constructors and lengths are the same; any NaN equals any
/// NaN.
Comparison compare(const Value &expected, const Value &actual, double tolerance = 1e-5);

/// The numbers of the float tensors and host floats of a value, in the order of
/// `Comparison::tensors`.
std::vector<std::vector<double>> floatsOf(const Value &value);

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_COMPARE_H

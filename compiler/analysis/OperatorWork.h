//===- OperatorWork.h - About how much an operator computes -----*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_OPERATORWORK_H
#define SHEAF_COMPILER_ANALYSIS_OPERATORWORK_H

#include "compiler/ir/Program.h"

#include "llvm/ADT/StringMap.h"

namespace sheaf::passes {

/// What stands beside operators when passes weigh them: about what recording, ordering and running
/// one more record costs beside its operators (100 to 200 ns), in the unit of `OperatorWork`.
constexpr double kRecordWork = 8192;

/// Estimates of what operators compute, in lanes of multiply-adds: x @ w of f32[k] and f32[k, n] is
/// k * n. A core does about 50 in a nanosecond.
class OperatorWork {
public:
  /// Of one application of a `sheaf.apply`. Extents that are not known count as one.
  double of(mlir::Operation *apply);
  /// Of one element of an operator that computes each by itself.
  double ofElement(mlir::Operation *apply);

private:
  llvm::StringMap<double> perElement_; ///< by name of the operator
};

/// Whether an operand or a result has an extent that the program does not know.
bool hasUnknownExtents(mlir::Operation *op);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_OPERATORWORK_H

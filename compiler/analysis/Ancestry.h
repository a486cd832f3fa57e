//===- Ancestry.h - Which tensor others are made of -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_ANCESTRY_H
#define SHEAF_COMPILER_ANALYSIS_ANCESTRY_H

#include "compiler/analysis/Grouping.h"

#include <set>

namespace sheaf::passes {

/// Proves that records of a tensor's group are among those that others are made of. Then whoever
/// waits for the others waits no longer for it, and where the others are memoised (equal records
/// run once), so is it. Where a proof takes too many steps, there is none.
class Ancestry {
public:
  Ancestry(mlir::ModuleOp module, Groups &groups);

  /// Whether `value` is among what the group takes, or comes from what a tensor that it takes is
  /// made of. Where the group stands in a loop that `value` is outside of: at each of the loop's
  /// elements.
  bool isAncestor(mlir::Value value, const Group &group);

private:
  /// Whether `first` comes from the record of `second`, or from what that is made of.
  bool prove(mlir::Value first, mlir::Value second);
  bool proveByMaker(mlir::Value first, mlir::Value second);
  bool proveAny(mlir::Value first, const Group &group);
  /// The same of these fields of every tuple of the type.
  bool proveFields(mlir::TupleType type, unsigned first, unsigned second);
  /// Of a part of what the fold carries, where `first` is outside of it. Field 0 of a tensor is the
  /// tensor.
  bool proveCarried(mlir::Value first, ir::FoldOp fold, unsigned field);

  Groups &groups_;
  llvm::DenseMap<mlir::Type, llvm::SmallVector<ir::TupleOp>> tuples_; ///< the places that make some
  llvm::DenseSet<mlir::Type> zipped_;                                 ///< types that `zip` makes
  /// What is being proven. That it is so may be taken as given where the proof comes to it again:
  /// that is then about an earlier element of a loop, or a tuple made before.
  std::set<std::tuple<const void *, const void *, unsigned, unsigned>> open_;
  unsigned steps_ = 0;
};

/// Field `field` of a tuple that is made on the spot, or the tensor itself; null when it is
/// neither.
mlir::Value partOf(mlir::Value carried, unsigned field);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_ANCESTRY_H

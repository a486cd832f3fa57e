//===- Views.h - Roles of operators, tensors as they are addressed -*- C++ -*-===//
//
// Operators that only move data are no work: whoever reads their results reads their operands at
// other places. Which places these are is a view.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_PLAN_VIEWS_H
#define SHEAF_COMPILER_KERNELS_PLAN_VIEWS_H

#include "compiler/kernels/plan/BlockShapes.h"

#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sheaf::kernels {

/// Whether a tensor is rounded factors of products in bf16, wherever these lie.
bool isOfFactors(mlir::Value value);
/// Whether the operator that makes a tensor rounds to such factors.
bool isRounding(mlir::Value value);
ops::DType dtypeOf(mlir::Value tensor);
inline bool isUnit(const Dim &dim) { return dim.isConstant() && dim.constant() == 1; }

/// A host scalar of the block as a position: it counts as the nearest of [0, last]. Blocks also run
/// for instances that fail, and whether a position was in range is for a check to say.
struct HostPosition {
  mlir::Value number;
  Dim last;
  bool operator==(const HostPosition &) const = default;
};

/// How one axis of a tensor is addressed from an iteration space.
struct AxisMap {
  int axis = -1;                           ///< iteration axis added, or -1
  Dim offset = 0;                          ///< added
  llvm::SmallVector<HostPosition, 1> host; ///< added
  mlir::Value index; ///< a tensor of indices: its element (at `indexView`) is added
  std::shared_ptr<std::vector<AxisMap>> indexView;
  Dim indexed = 0; ///< the extent that the index is one of
  /// The index is no tensor's: it counts from the last place to the first with the only map of
  /// `indexView`. `index` is the tensor that is turned around.
  bool mirrored = false;
  bool operator==(const AxisMap &) const;
};

/// One AxisMap for every axis of the tensor.
using View = std::vector<AxisMap>;

/// Whether what a view finds moves with an iteration axis.
bool dependsOn(const View &view, int axis);

/// The view with axis i on iteration axis i.
View identityView(size_t rank);

/// An axis attribute of an operator on a tensor of this rank; negative ones count from the end.
size_t axisOf(ir::ApplyOp apply, llvm::StringRef name, int64_t otherwise, size_t rank);

/// What an operator does in an expression. Assemble is a concatenation.
enum class Role {
  Argument,
  Weight,
  Elementwise,
  Fold,
  View,
  Assemble,
  Product,
  Dot,
  Reduction,
  Fill
};
Role roleOf(mlir::Value value);

/// How the kernel generator treats an operator that is not an argument or weight.
const ops::BatchRule &batchRuleOf(mlir::Value value);
/// Of a tensor of role View or Assemble.
ops::Movement::Kind movementOf(mlir::Value value);
/// Whether a tensor of role View is found by a tensor of indices.
bool isByIndices(mlir::Value value);
/// The kind of a reduction.
ops::Reduction::Kind reductionOf(mlir::Value value);
/// Whether operator `value`, when it is computed, reads this operand whole, in any order: places
/// that are chosen among elements, and those that rows go to.
bool readsWhole(mlir::Value value, unsigned operand);

/// The operand and view that a View-role operator's result stands for.
std::pair<mlir::Value, View> throughView(mlir::Value value, const View &view,
                                         const BlockShapes &shapes);
/// The view of an elementwise operand, by broadcasting.
View throughBroadcast(mlir::Value result, mlir::Value operand, const View &view,
                      const BlockShapes &shapes);
/// How many elements every record's tensor of this shape has, unless that differs.
std::optional<int64_t> knownElements(llvm::ArrayRef<Dim> shape);

/// Axes of a tensor and of what it is reshaped to that hold the same elements, in the same order.
struct Regrouping {
  size_t fromBegin, fromEnd, toBegin, toEnd;
};

/// All axes of both shapes, in order, as few at a time as extents show.
std::vector<Regrouping> regroupings(llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to);

/// Whether elements of a padded tensor of one shape lie evenly along each axis of the other: no
/// axes are joined that rows stand between.
bool liesEvenly(llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to);

/// Whether a reshape only adds or removes extents of 1 (then it is a plain view).
bool isPlainReshape(mlir::Value value, const BlockShapes &shapes);

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PLAN_VIEWS_H

//===- OpQueries.h - What passes ask about operations -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_OPQUERIES_H
#define SHEAF_COMPILER_ANALYSIS_OPQUERIES_H

#include "compiler/ir/Program.h"
#include "compiler/ops/Op.h"

namespace sheaf::passes {

/// The operator's record of a `sheaf.apply` (its verifier has found it), else null.
inline const ops::Op *operatorOf(mlir::Operation *op) {
  auto apply = mlir::dyn_cast_or_null<ir::ApplyOp>(op);
  return apply ? ops::OpTable::get().find(apply.getOp()) : nullptr;
}

/// The operator's batch rule when it is a `Rule`, else null.
template <typename Rule> const Rule *batchRule(mlir::Operation *op) {
  const ops::Op *record = operatorOf(op);
  return record ? std::get_if<Rule>(&record->batch) : nullptr;
}

/// A constant tensor: cheaper to make where it is used than to read.
inline bool isFill(mlir::Operation *op) { return batchRule<ops::Fill>(op) != nullptr; }

/// Whether an operator moves data in this way.
inline bool moves(mlir::Operation *op, ops::Movement::Kind kind) {
  auto *movement = batchRule<ops::Movement>(op);
  return movement && movement->kind == kind;
}

/// An operator that lays the elements of a host list one after the other (`stack`): as many
/// records as the list has elements, made by the host code.
inline bool takesList(mlir::Operation *op) { return moves(op, ops::Movement::Stack); }

/// An operator that copies rows after those of a tensor that grows.
inline bool appendsRows(mlir::Operation *op) { return batchRule<ops::AppendRows>(op) != nullptr; }

/// An operator for which host code makes records, each of which copies rows to their place.
inline bool copiesRows(mlir::Operation *op) { return takesList(op) || appendsRows(op); }

/// An operator with this attribute is in one block with those of the same number only.
inline constexpr llvm::StringLiteral kApartAttr = "sheaf.apart";

/// Tensor code that belongs into a block.
inline bool isTensorCode(mlir::Operation *op) {
  return mlir::isa_and_nonnull<ir::ApplyOp>(op) && !batchRule<ops::HostAddress>(op) &&
         !copiesRows(op);
}

/// A loop whose body takes, before the element of the list, what it carries from step to step.
inline bool carriesState(mlir::Operation *loop) { return mlir::isa<ir::FoldOp, ir::ScanOp>(loop); }

/// Whether a slice of a list reaches to its end, as the rest after some elements does.
inline bool reachesEnd(ir::ListSliceOp slice) {
  auto len = slice.getHi().getDefiningOp<ir::LenOp>();
  return len && len.getList() == slice.getList();
}

/// Whether lists that are built from the front, or twice from one, are left in pieces.
inline bool chainsLists(mlir::ModuleOp program) {
  auto builds = [](mlir::Operation *op) {
    return mlir::isa<ir::ConsOp, ir::AppendOp>(op) ? mlir::WalkResult::interrupt()
                                                   : mlir::WalkResult::advance();
  };
  return program->walk(builds).wasInterrupted();
}

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_OPQUERIES_H

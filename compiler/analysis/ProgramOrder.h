//===- ProgramOrder.h - What stays in the order of the program --*- C++ -*-===//
//
// Tensor code is pure, so it may run wherever what it needs is there. What may end the instance,
// wait for a tensor, or call something that does, has an order: the error of an instance is the
// first in the order of the program, a check comes before what it guards, a tail call is the last.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_PROGRAMORDER_H
#define SHEAF_COMPILER_ANALYSIS_PROGRAMORDER_H

#include "compiler/analysis/Grouping.h"
#include "compiler/analysis/Guards.h"

namespace sheaf::passes {

/// Whether an operation stays in the order of the program with all others of this kind.
bool isOrdered(mlir::Operation *op);

/// The operations of its block that an operation needs, also with what stands in its regions.
llvm::SmallVector<mlir::Operation *> needsOf(mlir::Operation *op);

/// Cuts those groups of a region block that could not run as one without changing the order: what
/// one operator makes is needed ahead of something that another comes after. The pieces stand
/// where their group stood.
void cutForOrder(mlir::Block &block, std::vector<Group> &groups, const Guards &guards);

/// Puts everything after what it needs and what guards it, and what is ordered after what comes
/// before it in the order of the program; all else stays where it is as far as that allows. Fails
/// when operations need each other.
mlir::LogicalResult restoreOrder(mlir::Block &block, const Guards &guards);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_PROGRAMORDER_H

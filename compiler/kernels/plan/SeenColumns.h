//===- SeenColumns.h - Columns of a row that nothing depends on -*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_PLAN_SEENCOLUMNS_H
#define SHEAF_COMPILER_KERNELS_PLAN_SEENCOLUMNS_H

#include "compiler/kernels/plan/Plan.h"

#include "llvm/ADT/SetVector.h"

namespace sheaf::kernels {

/// Stages that will be a row block, before they are put together.
struct RowsTogether {
  llvm::ArrayRef<Dim> axes;
  llvm::ArrayRef<unsigned> stages;              ///< their numbers
  llvm::ArrayRef<const Buffer *> tensors;       ///< that are there for the block's rows only
  llvm::ArrayRef<std::vector<Access>> accesses; ///< of all stages of the plan, to whole tensors
};

/// Finds the bounds of a row block, and which of its stages they are for (Stage::seen).
void findSeenColumns(Plan &plan, const RowsTogether &rows, RowBlock &block);

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PLAN_SEENCOLUMNS_H

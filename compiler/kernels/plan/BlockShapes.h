//===- BlockShapes.h - Extents in a block -----------------------*- C++ -*-===//
#ifndef SHEAF_KERNELS_PLAN_BLOCKSHAPES_H
#define SHEAF_KERNELS_PLAN_BLOCKSHAPES_H

#include "compiler/ir/Program.h"
#include "compiler/ops/Op.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace sheaf::kernels {

/// Extents of every tensor in a block, as polynomials over its arguments: `?` on axis d of block
/// argument a is the symbol "a.d", an i64 argument a that gives an extent is the symbol "a".
class BlockShapes {
public:
  explicit BlockShapes(ir::BlockOp block);
  const std::vector<Dim> &of(mlir::Value value) const { return shapes_.find(value)->second; }

private:
  llvm::DenseMap<mlir::Value, std::vector<Dim>> shapes_;
};

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_PLAN_BLOCKSHAPES_H

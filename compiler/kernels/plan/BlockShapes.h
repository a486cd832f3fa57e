//===- BlockShapes.h - Extents in a block -----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_PLAN_BLOCKSHAPES_H
#define SHEAF_COMPILER_KERNELS_PLAN_BLOCKSHAPES_H

#include "compiler/ir/Program.h"
#include "compiler/ops/Op.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <string>
#include <vector>

namespace sheaf::kernels {

/// Extents of every tensor in a block, as polynomials over its arguments: `?` on axis d of block
/// argument a is the symbol "a.d", an i64 argument a that gives an extent is the symbol "a". Where
/// operators need extents to be equal, one stands for the other: each has one form.
class BlockShapes {
public:
  explicit BlockShapes(ir::BlockOp block);
  const std::vector<Dim> &of(mlir::Value value) const { return shapes_.find(value)->second; }
  bool contains(mlir::Value value) const { return shapes_.contains(value); }

private:
  Dim symbol(const std::string &name) const;
  bool tie(const Dim &a, const Dim &b);
  void inferAll(ir::BlockOp block, std::vector<std::pair<Dim, Dim>> &equalities);

  std::map<std::string, Dim> tied_; ///< what symbols are equal to, in terms of those that are not
  llvm::DenseMap<mlir::Value, std::vector<Dim>> shapes_;
};

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PLAN_BLOCKSHAPES_H

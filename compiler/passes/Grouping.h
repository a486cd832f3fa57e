//===- Grouping.h - Which tensor code becomes one block ---------*- C++ -*-===//
#ifndef SHEAF_PASSES_GROUPING_H
#define SHEAF_PASSES_GROUPING_H

#include "compiler/ir/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace sheaf::passes {

/// Which operations may record something when they run: a level begins behind each of them.
class Recorders {
public:
  explicit Recorders(mlir::ModuleOp module);

  bool records(mlir::Operation *op) const;

private:
  bool bodyRecords(mlir::Operation *root) const;

  mlir::SymbolTable symbols_;
  llvm::DenseSet<mlir::Operation *> recording_;
};

using Group = llvm::SmallVector<mlir::Operation *>;

struct Grouping {
  std::vector<Group> groups; ///< each becomes one block; in the order of the program inside
  unsigned sunk = 0;         ///< light groups that run inside the one that uses them
  unsigned cuts = 0;         ///< places at which long groups were cut
};

/// The tensor code of one region block. `oneByOne`: every operator is a group. `split`: long groups
/// are cut where one tensor goes on.
Grouping groupTensorCode(mlir::Block &block, const Recorders &recorders, bool oneByOne, bool split);

} // namespace sheaf::passes

#endif // SHEAF_PASSES_GROUPING_H

//===- Grouping.h - Which tensor code becomes one block ---------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_GROUPING_H
#define SHEAF_COMPILER_ANALYSIS_GROUPING_H

#include "compiler/analysis/Guards.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <memory>
#include <vector>

namespace sheaf::passes {

/// Which operations may record something when they run: a level begins after each of them.
class Recorders {
public:
  explicit Recorders(mlir::ModuleOp module);

  /// `apart`: of what is in it, these count for nothing.
  bool records(mlir::Operation *op, const llvm::DenseSet<mlir::Operation *> &apart = {}) const;

private:
  bool bodyRecords(mlir::Operation *root, const llvm::DenseSet<mlir::Operation *> &apart) const;

  mlir::SymbolTable symbols_;
  llvm::DenseSet<mlir::Operation *> recording_;
};

using Group = llvm::SmallVector<mlir::Operation *>;

/// A group of more operators is cut.
inline constexpr unsigned kLongGroup = 72;

struct Grouping {
  std::vector<Group> groups; ///< each becomes one block; in the order of the program inside
  unsigned sunk = 0;         ///< light groups that run inside the one that uses them
  unsigned cuts = 0;         ///< places at which long groups were cut
  /// Of every value that the region block makes: the number of recording host operations on the
  /// longest way to it. Only tensor code of one level is grouped together.
  llvm::DenseMap<mlir::Value, unsigned> levels;
  Guards guards; ///< of single operators
};

/// The tensor code of one region block. `oneByOne`: every operator is a group. `split`: long groups
/// are cut (SplitGroup.h).
Grouping groupTensorCode(mlir::Block &block, const Recorders &recorders, bool oneByOne, bool split);

/// A weight, a constant that each block makes for itself, a host scalar: does not tie its users
/// together.
bool isSharedOperand(mlir::Value value);

/// A parameter, a number, or a tensor of one number: the same for every instance, and there before
/// anything runs.
bool isConstant(mlir::Operation *op);

/// The groups of a module as they were when first asked for; uncut.
class Groups {
public:
  explicit Groups(mlir::ModuleOp module) : recorders_(module) {}

  const Grouping &of(mlir::Block &block);
  /// The group of an operation; null when it has none.
  const Group *of(mlir::Operation *op);
  const Group *making(mlir::Value value) { return of(value.getDefiningOp()); }
  /// The level of a value in the block; 0 for what comes from outside.
  unsigned level(mlir::Value value, mlir::Block &block);
  /// How many groups the block has as it is now, if these operations of it recorded nothing.
  unsigned countWithout(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> quiet) const;
  const Recorders &recorders() const { return recorders_; }

private:
  Recorders recorders_;
  std::map<mlir::Block *, std::unique_ptr<Grouping>> groupings_;
  llvm::DenseMap<mlir::Operation *, const Group *> groupOf_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_GROUPING_H

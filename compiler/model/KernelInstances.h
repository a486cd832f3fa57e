//===- KernelInstances.h - Blocks with their weights ------------*- C++ -*-===//
//
// The runtime's kernel number k is a block together with a tuple of weights and a phase. The host
// code puts the numbers into records; the model lists the kernels by them. Both take them from
// here.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_MODEL_KERNELINSTANCES_H
#define SHEAF_COMPILER_MODEL_KERNELINSTANCES_H

#include "compiler/ir/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <utility>
#include <vector>

namespace sheaf::host {

/// A block with the parameters that a record gives it as weights, in the block's order.
struct KernelInstance {
  ir::BlockOp block;
  std::vector<mlir::FlatSymbolRefAttr> weights;
  uint32_t phase = 0;
  /// Recorded in place of others where rows are short (ir::JoinedOp).
  bool joined = false;
  unsigned family = 0; ///< the first instance with this block and these weights, itself or another
  /// What records it, or, of a backward one, records the forward one: `sheaf.record`s,
  /// and operators over lists.
  std::vector<mlir::Operation *> sites;
};

/// Every distinct instance of a module with blocks, in order of first appearance in the functions;
/// after them the backward ones (passes::deriveGradientsPass).
class KernelInstances {
public:
  explicit KernelInstances(mlir::ModuleOp module);

  const std::vector<KernelInstance> &all() const { return instances_; }

  /// How many of them host code records.
  size_t recorded() const { return recorded_; }
  /// The number of the instance through which the gradients of a recorded one go back.
  std::optional<unsigned> backwardOf(unsigned instance) const;

  /// The number of what a `sheaf.record` records.
  unsigned of(ir::RecordOp record) const;
  /// The number of what a `sheaf.joined` records in its place.
  unsigned of(ir::JoinedOp joined) const;
  /// The number of a block without weights that host code records by itself for an operator over a
  /// list; `role` is `sheaf.copy` or `sheaf.arrange`.
  unsigned of(mlir::Operation *op, llvm::StringRef role) const;
  /// How many phases there are: one more than the highest.
  uint32_t phases() const { return phases_; }

private:
  /// Block name and weights, and the phase.
  using Family = std::pair<mlir::Attribute, mlir::Attribute>;
  using Key = std::pair<Family, unsigned>;
  static Key keyOf(ir::RecordOp record);
  static Key keyOf(ir::JoinedOp joined);
  static Key keyOf(mlir::Operation *op, llvm::StringRef role);
  static std::optional<Key> keyOfBackward(const KernelInstance &forward);
  /// The number of the instance, which is made if there is none.
  unsigned add(Key key);

  mlir::ModuleOp module_;
  std::vector<KernelInstance> instances_;
  llvm::DenseMap<Key, unsigned> numbers_;
  llvm::DenseMap<Family, unsigned> families_;
  uint32_t phases_ = 1;
  size_t recorded_ = 0;
};

} // namespace sheaf::host

#endif // SHEAF_COMPILER_MODEL_KERNELINSTANCES_H

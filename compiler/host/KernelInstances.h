//===- KernelInstances.h - Blocks with their weights ------------*- C++ -*-===//
//
// The runtime's kernel number k is a block together with a tuple of weights and a phase. The host
// code puts the numbers into records; the model lists the kernels by them. Both take them from
// here.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_HOST_KERNELINSTANCES_H
#define SHEAF_HOST_KERNELINSTANCES_H

#include "compiler/ir/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseMap.h"

#include <utility>
#include <vector>

namespace sheaf::host {

/// A block with the parameters that a record gives it as weights, in the block's order.
struct KernelInstance {
  ir::BlockOp block;
  std::vector<mlir::FlatSymbolRefAttr> weights;
  uint32_t phase = 0;
  unsigned family = 0; ///< the first instance with this block and these weights, itself or another
};

/// Every distinct instance of a module with blocks, in order of first appearance in the functions.
class KernelInstances {
public:
  explicit KernelInstances(mlir::ModuleOp module);

  const std::vector<KernelInstance> &all() const { return instances_; }

  /// The number of what a `sheaf.record` records.
  unsigned of(ir::RecordOp record) const;
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
  static Key keyOf(mlir::Operation *op, llvm::StringRef role);
  void add(Key key);

  mlir::ModuleOp module_;
  std::vector<KernelInstance> instances_;
  llvm::DenseMap<Key, unsigned> numbers_;
  llvm::DenseMap<Family, unsigned> families_;
  uint32_t phases_ = 1;
};

} // namespace sheaf::host

#endif // SHEAF_HOST_KERNELINSTANCES_H

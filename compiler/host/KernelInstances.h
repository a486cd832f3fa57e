//===- KernelInstances.h - Blocks with their weights ------------*- C++ -*-===//
//
// The runtime's kernel number k is a block together with a tuple of weights. The host code puts
// the numbers into records; the model lists the kernels by them. Both take them from here.
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
};

/// Every distinct instance of a module with blocks, in order of first appearance in the functions.
class KernelInstances {
public:
  explicit KernelInstances(mlir::ModuleOp module);

  const std::vector<KernelInstance> &all() const { return instances_; }

  /// The number of what a `sheaf.record` records.
  unsigned of(ir::RecordOp record) const;
  /// The number of a block without weights that host code records by itself (`sheaf.copy` and
  /// `sheaf.arrange` of an operator over a list).
  unsigned of(mlir::FlatSymbolRefAttr block) const;

private:
  /// Block name and weights.
  using Key = std::pair<mlir::Attribute, mlir::Attribute>;
  void add(Key key);

  mlir::ModuleOp module_;
  std::vector<KernelInstance> instances_;
  llvm::DenseMap<Key, unsigned> numbers_;
};

} // namespace sheaf::host

#endif // SHEAF_HOST_KERNELINSTANCES_H

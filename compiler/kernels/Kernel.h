//===- Kernel.h - A block as a back end is going to compute it --*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_KERNEL_H
#define SHEAF_COMPILER_KERNELS_KERNEL_H

#include "compiler/ir/Switch.h"
#include "compiler/kernels/NumericClass.h"
#include "compiler/kernels/ProductForm.h"
#include "compiler/kernels/Tuning.h"
#include "compiler/kernels/plan/Plan.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::kernels {

/// What the implementations said of a product of a block.
struct ProductDispatch {
  mlir::Location where;
  std::string what; ///< operator and extents
  std::vector<Verdict> verdicts;
};

/// What a back end keeps of a kernel that it planned, for itself.
struct BackendPlan {
  virtual ~BackendPlan() = default;
};

/// A planned block: its records, and what its back end says of it.
struct Kernel : RecordPlan {
  ir::BlockOp block;
  std::string symbol; ///< name of the function

  // For reports.
  std::optional<ProductForm> productForm; ///< with products
  std::vector<ProductDispatch> dispatch;  ///< of each of the block's products
  std::vector<std::string> remarks;       ///< what was fused, tiled, packed; slow paths and why
  Tuning tuning;                          ///< what it was planned with
  /// What that came to: `6 x 4`, rows by vectors of the register tile of each stage of products,
  /// and how many rows or records go on together. Where it is equal for a block, so is the code.
  std::string tiling;

  std::shared_ptr<const BackendPlan> plan;
};

using ir::Switch;

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_KERNEL_H

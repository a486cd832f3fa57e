//===- Extents.h - Per-instance extents from shape rules --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_EXTENTS_H
#define SHEAF_COMPILER_ANALYSIS_EXTENTS_H

#include "compiler/ir/Program.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <utility>

namespace sheaf::passes {

/// Emits host arithmetic for extent `axis` of a result of `apply`, from the extents of its
/// operands alone. Null when the shape rule does not determine it.
mlir::Value materialiseExtent(mlir::OpBuilder &builder, ir::ApplyOp apply, unsigned result,
                              unsigned axis);

/// The operand of `apply`, and the axis if it is a tensor, whose extent (or value) is that of axis
/// `axis` of a result, if there is a single one.
struct ExtentSource {
  unsigned operand;
  std::optional<unsigned> axis;
};
std::optional<ExtentSource> extentSource(ir::ApplyOp apply, unsigned result, unsigned axis);

/// Goes back to where extents come from, at once: one operator at a time each would go through
/// every layer of a stack that stands before it.
class ExtentChains {
public:
  /// Replaces a dim by that of the first tensor which has its extent, or by the host int that it
  /// is, and gives what it is now. Dims must come in the order of the program, and may only be
  /// replaced while they are the last that came.
  mlir::Value shorten(ir::DimOp dim);

private:
  /// An axis of a tensor, or a host int with none.
  struct Place {
    mlir::Value value;
    std::optional<unsigned> axis;
  };

  static std::optional<Place> stepBack(mlir::Value tensor, unsigned axis);

  /// Of tensors, whose makers stay where they are, so that values keep their addresses.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, Place> ends_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_EXTENTS_H

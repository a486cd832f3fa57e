//===- Extents.h - Per-instance extents from shape rules --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_EXTENTS_H
#define SHEAF_COMPILER_ANALYSIS_EXTENTS_H

#include "compiler/ir/Program.h"

#include <optional>

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

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_EXTENTS_H

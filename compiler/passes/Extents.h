//===- Extents.h - Per-instance extents from shape rules --------*- C++ -*-===//
#ifndef SHEAF_PASSES_EXTENTS_H
#define SHEAF_PASSES_EXTENTS_H

#include "compiler/ir/Program.h"

namespace sheaf::passes {

/// Emits host arithmetic for extent `axis` of a result of `apply`, from the extents of its
/// operands alone. Null when the shape rule does not determine it.
mlir::Value materialiseExtent(mlir::OpBuilder &builder, ir::ApplyOp apply, unsigned result,
                              unsigned axis);

} // namespace sheaf::passes

#endif // SHEAF_PASSES_EXTENTS_H

//===- WeightFolder.h - What depends on weights alone -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_WEIGHTFOLDER_H
#define SHEAF_COMPILER_PASSES_WEIGHTFOLDER_H

#include "compiler/passes/Pass.h"

namespace sheaf::passes {

/// Which tensors that depend on weights alone: what functions are given, or all that are worth it.
enum class Folded { Arguments, All };

/// Makes synthetic parameters of them, computed by the function folded_weights (ir::kFoldedAttr),
/// which takes over what it has.
void foldWeights(mlir::ModuleOp module, PassContext &context, Folded which);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_WEIGHTFOLDER_H

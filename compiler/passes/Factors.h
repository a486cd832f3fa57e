//===- Factors.h - Tensors as factors of products in bf16 -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_FACTORS_H
#define SHEAF_COMPILER_PASSES_FACTORS_H

#include "compiler/ir/Program.h"

#include "llvm/ADT/DenseMap.h"

namespace sheaf::passes {

/// The type of an f32 tensor's factors.
mlir::RankedTensorType typeOfFactors(mlir::Value value);

/// Makes beside an operator that moves data the same movement of factors. `factors`: by tensors,
/// those of what is moved, and then of what comes of it.
void moveFactors(mlir::Operation *op, llvm::DenseMap<mlir::Value, mlir::Value> &factors);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_FACTORS_H

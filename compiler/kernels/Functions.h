//===- Functions.h - exp, log, tanh and erf ---------------------*- C++ -*-===//
#ifndef SHEAF_KERNELS_FUNCTIONS_H
#define SHEAF_KERNELS_FUNCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace sheaf::kernels {

/// math.exp, math.log, math.tanh and math.erf of f32 become arithmetic: the same bits on every
/// processor with fused multiply-adds.
void populateFunctionPatterns(mlir::RewritePatternSet &patterns);

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_FUNCTIONS_H

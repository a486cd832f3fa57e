//===- Functions.h - exp, log, tanh and erf ---------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_FUNCTIONS_H
#define SHEAF_COMPILER_KERNELS_CPU_FUNCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace sheaf::kernels::cpu {

/// math.exp, math.log, math.tanh and math.erf of f32 become arithmetic: the same bits on every
/// processor with fused multiply-adds.
void populateFunctionPatterns(mlir::RewritePatternSet &patterns);

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_FUNCTIONS_H

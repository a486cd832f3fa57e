//===- NarrowFloats.h - Conversions of 16-bit floats ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_NARROWFLOATS_H
#define SHEAF_COMPILER_KERNELS_CPU_NARROWFLOATS_H

#include "compiler/kernels/cpu/Cpu.h"

#include "mlir/IR/PatternMatch.h"

namespace sheaf::kernels::cpu {

/// Conversions between f32 and 16-bit floats as integer arithmetic: of bf16 on every target, since
/// the processors' own instructions lose denormals, and of f16 on targets that have none.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, const rt::Target &target);

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_NARROWFLOATS_H

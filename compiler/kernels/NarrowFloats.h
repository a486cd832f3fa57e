//===- NarrowFloats.h - Conversions of 16-bit floats ------------*- C++ -*-===//
#ifndef SHEAF_KERNELS_NARROWFLOATS_H
#define SHEAF_KERNELS_NARROWFLOATS_H

#include "compiler/kernels/Kernels.h"

#include "mlir/IR/PatternMatch.h"

namespace sheaf::kernels {

/// Conversions between f32 and 16-bit floats as integer arithmetic: of bf16 on every target, since
/// the processors' own instructions lose denormals, and of f16 on targets that have none.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, const rt::Target &target);

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_NARROWFLOATS_H

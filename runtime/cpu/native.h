//===- native.h - Kernels of backward passes not generated -----*- C++ -*-===//
//
// They run as buckets like all kernels, after the compiled ones in Model::kernels: threads share
// them by records, and every element of a result has one order of summation.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_NATIVE_H
#define SHEAF_RUNTIME_CPU_NATIVE_H

#include "runtime/cpu/kernel_code.h"
#include "runtime/device/gradient_records.h"

namespace sheaf::rt {

/// Floats of a granule.
constexpr int64_t kGranuleFloats = kGranuleBytes / 4;

/// Adds them to a model. `fma`: whether the model's code has fused multiply-adds. `serpentine`:
/// whether they may walk gradients there and back.
void addNativeKernels(Model &model, bool fma, bool serpentine);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_NATIVE_H

//===- Gradients.h - Backward blocks as the runtime sees them ---*- C++ -*-===//
#ifndef SHEAF_COMPILER_MODEL_GRADIENTS_H
#define SHEAF_COMPILER_MODEL_GRADIENTS_H

#include "compiler/kernels/Kernel.h"

namespace sheaf::host {

/// What a record of a kernel makes, as KernelDesc::results.
std::vector<rt::RecordTensor> recordResults(const kernels::Kernel &kernel);

/// Which rows each of them follows from, as KernelDesc::resultRows.
std::vector<std::vector<uint32_t>> recordResultRows(const kernels::Kernel &kernel);

/// How gradients go back through a kernel, but for `KernelGradient::kernel`; `backward` is the
/// planned block that `forward`'s names. `params`: the parameters that are the block's weights.
rt::KernelGradient describeGradient(const kernels::Kernel &forward, const kernels::Kernel &backward,
                                    llvm::ArrayRef<uint32_t> params);

} // namespace sheaf::host

#endif // SHEAF_COMPILER_MODEL_GRADIENTS_H

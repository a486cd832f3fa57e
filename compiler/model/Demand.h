//===- Demand.h - Which kernels a read may depend on ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_MODEL_DEMAND_H
#define SHEAF_COMPILER_MODEL_DEMAND_H

#include "compiler/model/KernelInstances.h"

namespace sheaf::host {

/// For each kernel instance: whether a `sheaf.read` may depend on what it computes. Such kernels
/// run when instances wait for a read; the others wait until the end, to run in larger buckets.
/// What a demanded kernel takes is demanded too, so a demanded record never depends on a deferred
/// one.
std::vector<bool> demandedKernels(mlir::ModuleOp program, const KernelInstances &instances);

} // namespace sheaf::host

#endif // SHEAF_COMPILER_MODEL_DEMAND_H

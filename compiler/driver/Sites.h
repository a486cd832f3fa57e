//===- Sites.h - What happens at each place of a program --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_SITES_H
#define SHEAF_COMPILER_DRIVER_SITES_H

#include "compiler/driver/Compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace sheaf::driver {

/// The places of a program with blocks that record, read, or call what does, function by function,
/// in their order. `blocks` are the model's kernels.
std::vector<FunctionInfo> describeSites(mlir::ModuleOp program,
                                        const std::vector<BlockInfo> &blocks);

/// `line 3`, or where that is not in the program's own file `line 3 of FILE`.
std::string lineText(const std::string &place, mlir::ModuleOp program);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_SITES_H

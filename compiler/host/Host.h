//===- Host.h - Programs with blocks to native host code --------*- C++ -*-===//
//
// Everything of a Program that is not tensor code becomes LLVM IR: code that walks one instance,
// branches on its data, loops over its lists, and appends a record for each run of a block.
//
// Values are kept in registers, one for each slot of their type (runtime/model/layout.h). Functions
// use the `tailcc` convention; calls in tail position take no stack. Functions that may call
// themselves compare their frame with Context::stackTaken.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_HOST_HOST_H
#define SHEAF_COMPILER_HOST_HOST_H

#include "compiler/kernels/Kernel.h"
#include "compiler/model/Describe.h"
#include "runtime/model/model.h"

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace sheaf::host {

struct HostInput {
  mlir::ModuleOp program; ///< with blocks (passes::Level::Blocks)
  std::string entry;      ///< name of the function that an instance calls
  const KernelInstances &instances;
  /// The planned blocks, which say what a record reserves. Every block of `instances`.
  llvm::ArrayRef<kernels::Kernel> kernels;
  llvm::ArrayRef<rt::ParamDesc> params; ///< with their ids
};

struct HostCode : HostFacts {
  std::string entrySymbol; ///< an rt::EntryFn
  std::string foldSymbol;  ///< rt::Model::foldWeights, empty without
};

/// Adds the host code to a module, which needs no target yet. The IR is valid but plain: it wants
/// the O1 passes. Throws InternalError when the program holds what no pass should have left.
HostCode emitHost(const HostInput &input, llvm::Module &module);

} // namespace sheaf::host

#endif // SHEAF_COMPILER_HOST_HOST_H

//===- Attribution.h - Whose work a kernel does -----------------*- C++ -*-===//
//
// Divides the work of a kernel among layers and ways of calls, and gives it a name that a person
// knows it by. Operators remember the calls by whose inlining they came where they are, records
// those of the operators of their block, which others may share.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_DRIVER_ATTRIBUTION_H
#define SHEAF_COMPILER_DRIVER_ATTRIBUTION_H

#include "compiler/driver/Compiler.h"
#include "compiler/kernels/Kernel.h"
#include "compiler/model/KernelInstances.h"

#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/StringMap.h"

#include <set>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

class Attribution {
public:
  /// Of a program with blocks.
  Attribution(mlir::ModuleOp program, const std::string &entry);

  /// The largest first. They sum up to 1.
  std::vector<PartShare> partsOf(const host::KernelInstance &instance,
                                 const kernels::Kernel &kernel);

  /// `encoder.layer.1.output.dense`; where no layer has most of its work, `encode(node_w)` of a
  /// function and the weights of its products, or `encode(softmax)`. No two have the same name.
  std::string nameOf(const host::KernelInstance &instance, const kernels::Kernel &kernel,
                     std::span<const PartShare> parts);

private:
  using Path = std::vector<std::string>;

  std::string layerOfParam(llvm::StringRef param) const;
  std::string layerOfCalls(const Path &calls) const;
  /// The parameter that an operator takes, as it is or in a view; empty: none.
  std::string weightOf(const host::KernelInstance &instance, mlir::Operation *op) const;
  /// The functions from the entry to the one that an operation stands in, it included.
  Path wayTo(mlir::Operation *site) const;

  mlir::SymbolTable symbols_;
  std::set<std::string> layers_; ///< those that have parameters, and those around them
  std::set<std::string> synthetic_;
  llvm::StringMap<Path> ways_;  ///< by the symbol of the function
  std::set<std::string> taken_; ///< names of kernels
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_ATTRIBUTION_H

//===- Describe.h - A program with blocks as rt::Model ----------*- C++ -*-===//
//
// Fills in what the run time knows of a model, but for its code (rt::Model): from the program, from
// kernels as their back end plans them, and from what host code says of itself.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_MODEL_DESCRIBE_H
#define SHEAF_COMPILER_MODEL_DESCRIBE_H

#include "compiler/kernels/Kernel.h"
#include "compiler/model/KernelInstances.h"
#include "compiler/model/ModelTypes.h"

#include <string>
#include <vector>

namespace sheaf::kernels {
class Generator;
} // namespace sheaf::kernels

namespace sheaf::host {

/// What a description is made of.
struct DescribedProgram {
  mlir::ModuleOp blocks; ///< after the passes
  std::string entry;     ///< name of the function that an instance calls
  const KernelInstances &instances;
  llvm::ArrayRef<kernels::Kernel> kernels; ///< every block of `instances`, planned
  const kernels::Generator &generator;     ///< that planned them
  bool training = false;
};

/// Fills in types, entry, parameters, kernels and gradients. Names of the model and its kernels,
/// and their places in the source, are left to whoever knows them. Gives for each of the model's
/// kernels its number in `kernels`. Throws UserError when parameters need more rows than there are.
std::vector<size_t> describeProgram(const DescribedProgram &program, rt::Model &model);

/// What host code says of itself.
struct HostFacts {
  std::vector<std::string> messages;    ///< rt::Model::messages
  std::vector<int64_t> messageColumns;  ///< rt::Model::messageColumns
  bool chainedLists = false;            ///< rt::Model::chainedLists
  bool reads = false;                   ///< rt::Model::reads
  std::vector<std::string> readPlaces;  ///< rt::Model::readPlaces
  std::vector<std::string> readPaths;   ///< of the same reads: ir::pathText
  std::vector<std::vector<Root>> roots; ///< rt::Model::roots
};

/// Fills in that, and what follows from it for a model that describeProgram() described: where
/// instances wait for reads, what they hold then, and which kernels these depend on.
void describeHost(const DescribedProgram &program, const HostFacts &facts, rt::Model &model);

} // namespace sheaf::host

#endif // SHEAF_COMPILER_MODEL_DESCRIBE_H

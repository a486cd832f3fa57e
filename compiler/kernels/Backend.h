//===- Backend.h - Who makes kernels for a kind of machine ------*- C++ -*-===//
//
// A back end turns blocks into code for one kind of machine. The driver knows none by name: it
// finds them in the table of compiler/backends.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_BACKEND_H
#define SHEAF_COMPILER_KERNELS_BACKEND_H

#include "compiler/codegen/Jit.h"
#include "compiler/kernels/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace sheaf::kernels {

/// What a compilation wants of its back end. What is referred to outlives the generator.
struct BackendOptions {
  const rt::Target &processor; ///< that host code is made for
  const std::set<std::string> &without;
  NumericClass numericClass = NumericClass::Exact;
};

/// A back end at work for one compilation: blocks to plans, plans to code. Used by one thread.
class Generator {
public:
  virtual ~Generator() = default;

  /// What the code of a block's kernel follows from, but for its tuning and the version of the
  /// compiler: equal texts with equal tunings have equal code, which the store keeps by them. Names
  /// are left out.
  virtual std::string describeCode(ir::BlockOp block) const = 0;
  /// A tuning is fulfilled as far as it fits; no bit follows from it in the exact numeric class.
  virtual Kernel plan(ir::BlockOp block, const Tuning &tuning) const = 0;

  /// Describes the code of a kernel, which `desc` describes otherwise, to the run time: `desc` is
  /// going to be the next of the model's kernels. `param` gives the number of the model's parameter
  /// by that of the block's weight.
  virtual void describe(const Kernel &kernel, llvm::function_ref<uint32_t(uint32_t)> param,
                        rt::Model &model, rt::KernelDesc &desc) const = 0;
  /// Says where the code of one of the model's kernels is.
  virtual void setCode(rt::Model &model, size_t kernel, const void *address) const = 0;
  /// What describe() says, in words, for people.
  virtual std::string describeLayout(const Kernel &kernel) const = 0;
  /// How products add up, as artefacts tell it (docs/numerics.md): machines with equal texts have
  /// equal bits. The kernels of `model` are described.
  virtual std::string numerics(const rt::Model &model, bool bf16) const = 0;
  /// Adds the kernels of a backward pass that no compiler makes, with the addresses of their code.
  virtual void addRuntimeKernels(rt::Model &model) const = 0;

  /// The kernels as one MLIR module of functions named by their symbols.
  virtual mlir::OwningOpRef<mlir::ModuleOp> emit(llvm::ArrayRef<Kernel> kernels,
                                                 mlir::MLIRContext &context) const = 0;
  /// What emit() gave, which is used up, as LLVM IR with who compiles it to an object. Objects of
  /// kernels are linked with that of host code.
  virtual driver::CodeModule lower(mlir::ModuleOp kernels) const = 0;

  /// Throws UserError, with the reason, when this machine cannot run the code.
  virtual void checkRunsHere() const = 0;
};

/// What there is one of for each kind of machine. Immutable.
class Backend {
public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;        ///< `--target NAME`
  virtual std::string_view description() const = 0; ///< a sentence
  /// What of it this machine has, or why nothing.
  virtual std::string onThisMachine() const = 0;
  /// What can be left out of its plans.
  virtual llvm::ArrayRef<Switch> switches() const = 0;
  virtual std::unique_ptr<Generator> begin(const BackendOptions &options) const = 0;
};

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_BACKEND_H

//===- Pipeline.h - The compiler's stages in order --------------*- C++ -*-===//
//
// Internal to compiler/driver: what Compiler.h hides.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_DRIVER_PIPELINE_H
#define SHEAF_COMPILER_DRIVER_PIPELINE_H

#include "compiler/driver/Compiler.h"
#include "compiler/driver/StoredCode.h"
#include "compiler/frontend/Parser.h"
#include "compiler/kernels/Backend.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::host {
class KernelInstances;
} // namespace sheaf::host

namespace sheaf::driver {

/// Name of the optimisation that takes what the tuner chose.
inline constexpr const char *kTunedSwitch = "tuned";

/// How far a compilation goes.
enum class Until {
  Parsed,  ///< the syntax tree
  Checked, ///< types and shapes
  Entry,   ///< a program that has the entry's type and no bodies
  Program, ///< the program for one instance
  Blocks,  ///< all passes have run
  Code,    ///< LLVM IR, not yet compiled
  Linked   ///< code in memory
};

/// A compilation in progress: everything that the stages made so far.
struct Compilation {
  Compilation(const SourceFile &source, const CompileOptions &options, Diagnostics &diags);
  ~Compilation();

  /// Runs the stages up to `until`. False when `diags` has errors.
  bool run(Until until);

  // In the order of being made.
  std::shared_ptr<const Syntax> syntax; ///< of the source
  Module ast;                           ///< with what weights bring
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> program; ///< for one instance, as the front end made it
  mlir::OwningOpRef<mlir::ModuleOp> rounded; ///< with products in bf16; null when all are in f32
  mlir::OwningOpRef<mlir::ModuleOp> blocks;  ///< after the passes
  Precision precision = Precision::F32;
  rt::Target target; ///< of host code
  std::unique_ptr<kernels::Generator> generator;
  std::vector<kernels::Kernel> kernels;                         ///< one a block
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> kernelModules; ///< empty when lowered
  std::vector<CodeModule> code; ///< the host code first, then the kernels; empty when compiled
  std::unique_ptr<Jit> jit;     ///< objects in the order of the host code, then `kernels`
  rt::Model model;
  std::set<std::string> vocabularies; ///< that dims and types of a source file name
  std::vector<std::string> readPaths; ///< of Model::readPlaces
  store::Use storeUse;

  std::vector<Remark> remarks;
  std::vector<BlockInfo> blockInfos;
  std::vector<PhaseTime> times;

  /// See CompiledModel.
  std::string tilingWith(size_t kernel, const kernels::Tuning &tuning) const;
  MemoryFormula memoryFormula(const std::map<std::string, double> &most) const;

  /// Kernels stay as MLIR in `kernelModules`: they are to be shown, not compiled.
  bool keepKernels = false;

private:
  /// Throws Stopped when that is asked for.
  void checkStop() const;
  /// Dims that the options give but the file does not declare are the user's mistake.
  void checkDimNames() const;
  bool check(Until until);
  void makeContext();
  /// The source is a Program as text.
  bool runFromProgram(Until until);
  /// The stages after the front end.
  void runFrom(Until until);
  /// After this `program` is what the program means.
  void prepare();
  void runPasses();
  /// Throws UserError for a name that is none.
  void chooseTarget();
  /// Times and remarks of a pass.
  void note(passes::PassReport &report);
  void planKernels();
  void emitHost();
  /// Fills in `blockInfos`: of kernels that are described, and of those that no compiler makes.
  void describeBlocks(const host::KernelInstances &instances);
  void describeRuntimeKernels();
  /// All in one module, to be shown.
  void emitKernels();
  /// Code in memory: of the store, as far as it is there (StoredCode.cpp).
  void makeCode();
  void setAddresses();

  template <typename Stage> auto timed(const char *name, Stage stage);

  const SourceFile &source_;
  const CompileOptions options_;
  Diagnostics &diags_;
  std::string entrySymbol_, foldSymbol_;
  std::unique_ptr<StoredCode> stored_;
  std::vector<std::string> descriptions_; ///< of the code of `kernels`, but for their tunings
  std::vector<size_t> kernelNumbers_;     ///< by index in the model's kernels: that in `kernels`
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_PIPELINE_H

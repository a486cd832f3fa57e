//===- Pipeline.h - From a Program to a Program with blocks -----*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_PIPELINE_H
#define SHEAF_COMPILER_PASSES_PIPELINE_H

#include "compiler/passes/Pass.h"

#include <functional>
#include <span>

namespace sheaf::passes {

/// Every pass, each once, in the order of its first run.
std::span<const PassRecord> allPasses();

/// Names that `without` may hold: the passes that can be switched off, and the switches.
std::vector<Switch> allSwitches();

struct PipelineOptions {
  /// The function that is called from outside: all others become private and may be dropped or
  /// changed. Empty: the public functions stay as they are.
  std::string entry;
  std::set<std::string> without;
  /// Blocks get others that go back (derive-gradients). A module that has the attribute
  /// `sheaf.training` is made for training anyway.
  bool training = false;
  /// In training the entry's arguments have gradients, too, as those of a module that has the
  /// attribute `sheaf.input_gradients`.
  bool inputGradients = false;
  /// Products of weights and attention compute in bf16 (autocast). So do those of a module that has
  /// the attribute `sheaf.bf16`.
  bool bf16 = false;
  /// Told of every pass that ran, and of the module after it. May be empty.
  std::function<void(std::string_view pass, mlir::ModuleOp module)> afterPass = {};
};

/// Makes `entry` the one public function, and leaves out what it does not need (drop-unneeded).
/// What remains is what the program means: to the oracle as to the pipeline.
mlir::LogicalResult prepareProgram(mlir::ModuleOp module, const std::string &entry,
                                   PassReport &report);

/// Runs the pipeline. On failure diagnostics have been emitted through the context; `reports` has
/// an entry for each pass that was begun.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options,
                                std::vector<PassReport> &reports);

/// Registers every pass, and the pipeline as `sheaf-pipeline`, for sheaf-opt.
void registerMlirPasses();

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_PIPELINE_H

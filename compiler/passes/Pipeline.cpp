//===- Pipeline.cpp - The order of the passes -----------------------------===//

#include "compiler/passes/Pipeline.h"

#include "compiler/ops/Expand.h"
#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

using namespace mlir;

namespace sheaf::passes {
namespace {

std::vector<PassRecord> pipeline() {
  return {
      // First, so that all later passes see across what were function boundaries, and specialise
      // has fewer functions to clone.
      inlinePass(),
      // Before anything asks whether an operand is a weight: only now is that known everywhere.
      specialisePass(),
      // Inlining leaves tuples and matches on values made on the spot, specialising leaves
      // parameters passed for nothing: fewer operators come to the expansions.
      simplifyPass(),
      // Behind the first simplification, which may drop whole operators, and before the second,
      // which joins what two expansions have in common.
      expandOperatorsPass(),
      // Behind the expansions, whose products count too; before the simplification, which finds the
      // views that equal products leave.
      weightsRightPass(),
      simplifyPass(),
      // Behind the expansions, whose products count too, and where weights are known; before
      // anything is made of the operators that it changes.
      autocastPass(),
      // Behind the expansions, whose parts may depend on weights alone; before blocks.
      foldWeightsPass(),
      // Behind the expansions, which leave positions in range; before whatever moves reads.
      readElementsPass(),
      // Before reduce-folds, which then finds folds of what is there already.
      spreadLoopsPass(),
      // Where what a fold does for an element is known, and before constants: what it begins with
      // is part of its block.
      reduceFoldsPass(),
      // Behind what makes products one (fold-weights) and what brings operators together that are
      // in one block then (reduce-folds).
      orderSumsPass(),
      // Where sums are in order, it changes no bit.
      hoistProductsPass(),
      // Behind the last pass that makes constant tensors; before blocks, which would record them.
      foldConstantsPass(),
      // Before form-blocks, whose groups it looks at.
      codeMotionPass(),
      // Its blocks are what the kernel generator takes, its records what the host code makes.
      formBlocksPass(),
      // Marks records, so it comes when there are some.
      identicalRecordsPass(),
      // Only now is it known how many records stand in a branch.
      alignBranchesPass(),
      // Behind the last pass that makes or drops a record.
      assignPhasesPass(),
      // Last: forks are host code's business, and calls are where they stay.
      forkCallsPass(),
      // Behind all that looks at which records there are; what it makes needs only what these need.
      keepJoinedPass(),
      // Behind everything that looks at blocks: those that go back are not recorded by host code.
      deriveGradientsPass(),
  };
}

} // namespace

std::span<const PassRecord> allPasses() {
  static const std::array passes = {
      dropUnneededPass(),     inlinePass(),         specialisePass(),   simplifyPass(),
      expandOperatorsPass(),  weightsRightPass(),   autocastPass(),     foldWeightsPass(),
      readElementsPass(),     spreadLoopsPass(),    reduceFoldsPass(),  orderSumsPass(),
      hoistProductsPass(),    foldConstantsPass(),  codeMotionPass(),   formBlocksPass(),
      identicalRecordsPass(), alignBranchesPass(),  assignPhasesPass(), forkCallsPass(),
      keepJoinedPass(),       deriveGradientsPass()};
  return passes;
}

std::vector<Switch> allSwitches() {
  std::vector<Switch> switches;
  for (const PassRecord &pass : allPasses()) {
    if (!pass.required)
      switches.push_back({pass.name, pass.description});
    switches.insert(switches.end(), pass.switches.begin(), pass.switches.end());
  }
  return switches;
}

LogicalResult prepareProgram(ModuleOp module, const std::string &entry, PassReport &report) {
  if (!module.lookupSymbol<func::FuncOp>(entry))
    return success(); // found out where the entry is looked for
  for (auto func : module.getOps<func::FuncOp>())
    func.setVisibility(func.getName() == entry ? SymbolTable::Visibility::Public
                                               : SymbolTable::Visibility::Private);
  return runPass(dropUnneededPass(), module, {}, report);
}

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options,
                          std::vector<PassReport> &reports) {
  if (!options.entry.empty())
    for (auto func : module.getOps<func::FuncOp>())
      func.setVisibility(func.getName() == options.entry ? SymbolTable::Visibility::Public
                                                         : SymbolTable::Visibility::Private);
  if (options.training)
    module->setAttr(ops::kTrainingAttr, UnitAttr::get(module.getContext()));
  if (options.bf16)
    module->setAttr(ops::kBf16Attr, UnitAttr::get(module.getContext()));
  for (const PassRecord &pass : pipeline()) {
    reports.emplace_back();
    if (failed(runPass(pass, module, options.without, reports.back())))
      return failure();
    if (options.afterPass && !reports.back().skipped)
      options.afterPass(pass.name, module);
  }
  return success();
}

} // namespace sheaf::passes

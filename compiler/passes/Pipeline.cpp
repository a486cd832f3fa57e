//===- Pipeline.cpp - The order of the passes -----------------------------===//

#include "compiler/passes/Pipeline.h"

#include "compiler/ops/Expand.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace sheaf::passes {

/// The record that a function gives. The function stands in the file named after its pass.
#define PASS(function)                                                                             \
  [] {                                                                                             \
    extern PassRecord function();                                                                  \
    return function();                                                                             \
  }()

/// What runs before the pipeline, and for the oracle, too.
static const PassRecord &preparation() {
  static const PassRecord pass = PASS(dropUnneededPass);
  return pass;
}

static const std::vector<PassRecord> &pipeline() {
  static const std::vector<PassRecord> passes = {
      // First, so that all later passes see across what were function boundaries, and specialise
      // has fewer functions to clone.
      PASS(inlinePass),
      // Only functions that call themselves are left; before specialise, which looks at what they
      // are given.
      PASS(foldArgumentsPass),
      // Before anything asks whether an operand is a weight: only now is that known everywhere.
      PASS(specialisePass),
      // Inlining leaves tuples and matches on values made on the spot, specialising leaves
      // parameters passed for nothing: fewer operators come to the expansions.
      PASS(simplifyPass),
      // After the first simplification, which may drop whole operators, and before the second,
      // which joins what two expansions have in common.
      PASS(expandOperatorsPass),
      // After the expansions, whose products count too; before weights-right, which makes weights
      // of
      // the matrices that a known number picks.
      PASS(branchWeightsPass),
      // After the expansions, whose products count too; before the simplification, which finds the
      // views that equal products leave.
      PASS(weightsRightPass),
      // After the expansions, which check what indices are; before the simplification, which finds
      // what they have in common.
      PASS(byDistancePass),
      PASS(simplifyPass),
      // After the expansions, whose products count too, and where weights are known; before
      // anything is made of the operators that it changes.
      PASS(autocastPass),
      // After the expansions, whose parts may depend on weights alone; before blocks.
      PASS(foldWeightsPass),
      // After the expansions, which leave positions in range; before whatever moves reads.
      PASS(readElementsPass),
      // Before reduce-folds, which then finds folds of what is there already.
      PASS(spreadLoopsPass),
      // Where what a fold does for an element is known, and before constants: what it begins with
      // is part of its block.
      PASS(reduceFoldsPass),
      // After what makes products one (fold-weights) and what brings operators together that are
      // in one block then (reduce-folds).
      PASS(orderSumsPass),
      // Where sums are in order, it changes no bit.
      PASS(hoistInvariantsPass),
      // Likewise; of products that are left in loops.
      PASS(hoistProductsPass),
      // After what moves out of loops, which it could no more from inside of a branch.
      PASS(sinkIntoBranchesPass),
      // After the last pass that makes constant tensors; before blocks, which would record them.
      PASS(foldConstantsPass),
      // After what joins and moves tensor code; from here on these joins stand between blocks.
      PASS(appendInPlacePass),
      // Before form-blocks, whose groups it looks at.
      PASS(codeMotionPass),
      // Its blocks are what the kernel generator takes, its records what the host code makes.
      PASS(formBlocksPass),
      // Marks records, so it comes when there are some.
      PASS(memoiseRecordsPass),
      // Only now is it known how many records stand in a branch.
      PASS(ghostsPass),
      // After the last pass that makes or drops a record.
      PASS(phasesPass),
      // Last: forks are host code's business, and calls are where they stay.
      PASS(forkCallsPass),
      // After all that looks at which records there are; what it makes needs only what these need.
      PASS(keepJoinedPass),
      // After everything that looks at blocks: those that go back are not recorded by host code.
      PASS(deriveGradientsPass),
      // After the gradients, whose products take the same factors.
      PASS(roundFactorsPass),
      // After the last pass that makes factors.
      PASS(keepFactorsPass),
  };
  return passes;
}
#undef PASS

std::span<const PassRecord> allPasses() {
  static const std::vector<PassRecord> passes = [] {
    std::vector<PassRecord> each = {preparation()};
    for (const PassRecord &pass : pipeline())
      if (llvm::none_of(each, [&](const PassRecord &other) { return other.name == pass.name; }))
        each.push_back(pass);
    return each;
  }();
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
  return runPass(preparation(), module, {}, report);
}

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options,
                          std::vector<PassReport> &reports) {
  if (!options.entry.empty())
    for (auto func : module.getOps<func::FuncOp>())
      func.setVisibility(func.getName() == options.entry ? SymbolTable::Visibility::Public
                                                         : SymbolTable::Visibility::Private);
  if (options.training)
    module->setAttr(ops::kTrainingAttr, UnitAttr::get(module.getContext()));
  if (options.inputGradients)
    module->setAttr(ops::kInputGradientsAttr, UnitAttr::get(module.getContext()));
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

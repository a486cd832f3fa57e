//===- FoldArguments.cpp - Functions that are given what weights make -----===//

#include "compiler/ops/Expand.h"
#include "compiler/passes/WeightFolder.h"

using namespace mlir;

namespace sheaf::passes {

static LogicalResult foldArguments(ModuleOp module, PassContext &context) {
  // With bf16 the oracle interprets what autocast leaves, and that computes nothing beforehand.
  if (!context.isOff("fold-weights") && !module->hasAttr(ops::kBf16Attr))
    foldWeights(module, context, Folded::Arguments);
  return success();
}

PassRecord foldArgumentsPass() {
  return {.name = "fold-arguments",
          .description =
              "Tensor code that depends on weights alone and is passed to a function becomes a "
              "synthetic parameter, as by fold-weights, so that specialise knows the argument for "
              "a weight.",
          .run = foldArguments};
}

} // namespace sheaf::passes

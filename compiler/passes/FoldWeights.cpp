//===- FoldWeights.cpp - What depends on weights alone is computed once ---===//

#include "compiler/passes/WeightFolder.h"

using namespace mlir;

namespace sheaf::passes {

static LogicalResult foldAll(ModuleOp module, PassContext &context) {
  foldWeights(module, context, Folded::All);
  return success();
}

PassRecord foldWeightsPass() {
  return {.name = "fold-weights",
          .description =
              "Tensor code that depends on weights and constants alone becomes a synthetic "
              "parameter, computed by the function folded_weights whenever weights are loaded, in "
              "training before each mini-batch. Views that packing a weight follows anyway stay.",
          .run = foldAll};
}

} // namespace sheaf::passes

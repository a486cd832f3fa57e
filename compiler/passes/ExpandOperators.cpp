//===- ExpandOperators.cpp - Operators made of simpler ones ---------------===//

#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

LogicalResult expandOperators(ModuleOp module, PassContext &context) {
  llvm::MapVector<StringRef, int64_t> counts;
  if (failed(ops::expandAll(module, [&](const ops::Op &op) { ++counts[op.name]; })))
    return failure();
  for (auto [name, count] : counts)
    context.remark(module.getLoc(), Twine(count) + " times " + name + " expanded");
  return success();
}

} // namespace

PassRecord expandOperatorsPass() {
  return {.name = "expand-operators",
          .description = "Rewrites operators whose record has an Expand rule (softmax, layer_norm, "
                         "cross_entropy, ...) into operators that kernels know.",
          .run = expandOperators,
          .required = true,
          .after = Level::Plain};
}

} // namespace sheaf::passes

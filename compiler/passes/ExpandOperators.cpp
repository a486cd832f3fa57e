//===- ExpandOperators.cpp - Operators made of simpler ones ---------------===//

#include "compiler/passes/OpQueries.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// An operator may expand into operators that expand; a longer chain is a cycle in the records.
constexpr int kMaxRounds = 32;

LogicalResult run(ModuleOp module, PassContext &context) {
  llvm::MapVector<StringRef, int64_t> counts;
  for (int round = 0;; ++round) {
    SmallVector<ir::ApplyOp> work;
    module.walk([&](ir::ApplyOp apply) {
      if (batchRule<ops::Expand>(apply))
        work.push_back(apply);
    });
    if (work.empty())
      break;
    if (round == kMaxRounds)
      return work.front().emitOpError("expands without end");
    for (ir::ApplyOp apply : work) {
      ++counts[operatorOf(apply)->name];
      ImplicitLocOpBuilder builder(apply.getLoc(), apply);
      std::vector<Value> values = batchRule<ops::Expand>(apply)->rewrite(builder, apply);
      if (values.size() != apply.getNumResults())
        return apply.emitOpError("expands into the wrong number of values");
      for (auto [result, value] : llvm::zip(apply.getResults(), values))
        if (result.getType() != value.getType())
          return apply.emitOpError() << "expands into " << value.getType() << " where "
                                     << result.getType() << " is expected";
      apply->replaceAllUsesWith(values);
      apply.erase();
    }
  }
  for (auto [name, count] : counts)
    context.remark(module.getLoc(), Twine(count) + " times " + name + " expanded");
  return success();
}

} // namespace

PassRecord expandOperatorsPass() {
  return {.name = "expand-operators",
          .description = "Rewrites operators whose record has an Expand rule (softmax, layer_norm, "
                         "cross_entropy, ...) into operators that kernels know.",
          .run = run,
          .required = true,
          .after = Level::Plain};
}

} // namespace sheaf::passes

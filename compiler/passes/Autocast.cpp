//===- Autocast.cpp - Products of factors rounded to bf16 -----------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/SharedTensors.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

LogicalResult autocast(ModuleOp module, PassContext &context) {
  if (!module->hasAttr(ops::kBf16Attr))
    return success();
  SharedTensors shared(!module->hasAttr(ops::kTrainingAttr) || !context.isOff("fold-weights"));
  SmallVector<ir::ApplyOp> work;
  module.walk([&](ir::ApplyOp apply) {
    const ops::Op *record = operatorOf(apply);
    if (record && !record->bf16Form.empty())
      work.push_back(apply);
  });
  for (ir::ApplyOp apply : work) {
    Value right = apply.getOperand(1);
    if (cast<RankedTensorType>(right.getType()).getRank() < 2) {
      context.remark(apply.getLoc(), apply.getOp() + " with a vector is a row reduction: f32");
    } else if (!shared.contains(right)) {
      context.remark(apply.getLoc(), apply.getOp() + " by a matrix of the record: f32");
    } else {
      context.remark(apply.getLoc(), apply.getOp() + " by a weight: bf16");
      apply.setOp(operatorOf(apply)->bf16Form);
    }
  }
  return success();
}

} // namespace

PassRecord autocastPass() {
  return {.name = "autocast",
          .description =
              "With --precision bf16: operators whose record names a bf16 form (products) "
              "take it where the right operand is a weight. All others stay f32.",
          .run = autocast,
          .required = true,
          .after = Level::Plain};
}

} // namespace sheaf::passes

//===- VerifyLevel.cpp - What may stand in a module at each level ---------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

LogicalResult verifyStructure(func::FuncOp func) {
  if (!func.isExternal() && !func.getBody().hasOneBlock())
    return func.emitOpError("is not structured: it has more than one block");
  return success();
}

/// Why `op`, in a function, must not stand at a level; empty when it may.
std::string objection(Operation *op, Level level) {
  if (level >= Level::Plain && batchRule<ops::Expand>(op))
    return "should have been expanded";
  if (level < Level::Blocks)
    return isa<ir::RecordOp>(op) ? "stands before blocks are formed" : "";
  if (isTensorCode(op))
    return "stands outside of a block";
  if (copiesRows(op) && !op->hasAttr("sheaf.copy"))
    return "names no block that copies rows";
  return "";
}

LogicalResult verifyBody(Operation *root, Level level) {
  WalkResult result = root->walk([&](Operation *op) {
    std::string why = objection(op, level);
    if (why.empty())
      return WalkResult::advance();
    op->emitOpError(why);
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult verifyBlock(ir::BlockOp block, Level level) {
  if (level < Level::Blocks)
    return block.emitOpError("stands before blocks are formed");
  for (Operation &op : block.getBody().front().without_terminator())
    if (isa<ir::ApplyOp>(op) && (!isTensorCode(&op) || batchRule<ops::Expand>(&op)))
      return op.emitOpError("cannot run in a kernel");
  return success();
}

} // namespace

LogicalResult verifyLevel(ModuleOp module, Level level) {
  for (Operation &op : *module.getBody()) {
    if (auto func = dyn_cast<func::FuncOp>(op)) {
      if (failed(verifyStructure(func)) || failed(verifyBody(func, level)))
        return failure();
    } else if (auto block = dyn_cast<ir::BlockOp>(op)) {
      if (failed(verifyBlock(block, level)))
        return failure();
    } else if (!isa<ir::DataOp, ir::ParamOp>(op)) {
      return op.emitOpError("cannot stand in a Program");
    }
  }
  return success();
}

} // namespace sheaf::passes

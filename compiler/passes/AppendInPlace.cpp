//===- AppendInPlace.cpp - Tensors that grow step by step -----------------===//
//
// A decoder's keys and values get a row a step: concat(keys, row). As part of a block that would
// copy all of them each time, n * n rows for n steps. Host code appends the row instead, in place
// where there is room (runtime/walk/grown.h), and blocks read what has grown. That takes a record
// more, so it is done only for what is handed on from step to step.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Whether code runs again with what it made: a recursive function, or the step of a loop.
bool isRepeated(Operation *op, const CallGraph &calls) {
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp()) {
    if (carriesState(parent))
      return true;
    if (auto func = dyn_cast<func::FuncOp>(parent))
      return calls.isRecursive(func);
  }
  return false;
}

/// Whether a tensor was there before: what a function or a step is given, or a part of that, or
/// what has grown by one part already.
bool isGiven(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (appendsRows(def))
      return true;
    if (!isa<ir::GetOp, ir::ListGetOp>(def))
      return false;
    value = def->getOperand(0);
  }
  return true;
}

/// Whether a tensor goes on to other functions, steps or values.
bool isHandedOn(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return !isTensorCode(user) && !isa<ir::DimOp, ir::ReadOp>(user);
  });
}

bool grows(ir::ApplyOp concat, const CallGraph &calls) {
  if (!moves(concat, ops::Movement::Concat) || concat->getNumOperands() < 2)
    return false;
  auto axis = concat.getAttrs().getAs<IntegerAttr>("axis");
  auto whole = cast<RankedTensorType>(concat.getOperand(0).getType());
  return (!axis || axis.getInt() == 0) && whole.getRank() > 1 && whole.isDynamicDim(0) &&
         isGiven(concat.getOperand(0)) && isHandedOn(concat.getResult(0)) &&
         isRepeated(concat, calls);
}

LogicalResult appendInPlace(ModuleOp module, PassContext &context) {
  // All versions stay in training, and the backward pass finds what a record made by its place.
  if (module->hasAttr(ops::kTrainingAttr))
    return success();
  CallGraph calls(module);
  SmallVector<ir::ApplyOp> all;
  module.walk([&](ir::ApplyOp apply) { all.push_back(apply); });
  for (ir::ApplyOp concat : all) {
    if (!grows(concat, calls))
      continue;
    ImplicitLocOpBuilder b(concat.getLoc(), concat);
    ValueRange rows = concat.getOperands().drop_front();
    Value more = rows.size() == 1 ? rows.front() : ops::makeJoined(b, rows, 0);
    Value grown = ops::makeAppended(b, concat.getOperand(0), more);
    grown.setType(concat.getResult(0).getType());
    concat.getResult(0).replaceAllUsesWith(grown);
    concat->erase();
    context.remark(grown.getLoc(), "rows are appended in place, where there is room");
  }
  return success();
}

} // namespace

PassRecord appendInPlacePass() {
  return {.name = "append-in-place",
          .description =
              "Rows that a step of a loop joins to a tensor that it was given, and hands "
              "on, are appended where the tensor lies, with room for more behind it.",
          .run = appendInPlace};
}

} // namespace sheaf::passes

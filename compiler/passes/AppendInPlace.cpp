//===- AppendInPlace.cpp - Tensors that grow step by step -----------------===//
//
// A decoder's keys and values get a row a step: concat(keys, row). As part of a block that would
// copy all of them each time, n * n rows for n steps. Host code appends the row instead, in place
// where there is room (runtime/walk/grown.h), and blocks read what has grown. That takes a record
// more, so it is done only for what is handed on from step to step; or from run to run, of an entry
// that gives what it was given, longer: an engine may keep that, and other instances go on from it.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

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

/// Whether it is among the results of the function that is called, alone or as a part.
bool isResult(Value value) {
  SmallVector<Value> pending{value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (Operation *user : next.getUsers()) {
      if (isa<func::ReturnOp>(user))
        return cast<func::FuncOp>(user->getParentOp()).isPublic();
      Operation *to = user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user;
      if (!isTensorCode(user) && !isa<func::CallOp, ir::DimOp, ir::ReadOp>(user))
        pending.append(to->result_begin(), to->result_end());
    }
  }
  return false;
}

/// Whether an operation takes some rows of a tensor with more than one axis.
bool isRows(Operation *op) {
  if (!moves(op, ops::Movement::Slice))
    return false;
  auto axis = cast<ir::ApplyOp>(op).getAttrs().getAs<IntegerAttr>("axis");
  auto whole = cast<RankedTensorType>(op->getOperand(0).getType());
  return (!axis || axis.getInt() == 0) && whole.getRank() > 1;
}

/// Whether a tensor was there before: what a function or a step is given, or a part of that, or
/// what has grown by one part already; in one branch at least.
bool isGiven(Value value) {
  SmallVector<Value> pending{value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *def = next.getDefiningOp();
    if (!def || appendsRows(def))
      return true;
    if (!seen.insert(next).second)
      continue;
    if (isa<ir::GetOp, ir::ListGetOp>(def))
      pending.push_back(def->getOperand(0));
    else if (isa<scf::IfOp, scf::IndexSwitchOp, ir::MatchOp>(def))
      for (Region &branch : def->getRegions())
        if (!branch.empty())
          pending.push_back(
              branch.front().getTerminator()->getOperand(cast<OpResult>(next).getResultNumber()));
  }
  return false;
}

/// Whether an operation hands a tensor on to other functions, steps or values.
bool handsOn(Operation *user) { return !isTensorCode(user) && !isa<ir::DimOp, ir::ReadOp>(user); }

bool grows(ir::ApplyOp concat, const CallGraph &calls) {
  if (!moves(concat, ops::Movement::Concat) || concat->getNumOperands() < 2)
    return false;
  auto axis = concat.getAttrs().getAs<IntegerAttr>("axis");
  auto whole = cast<RankedTensorType>(concat.getOperand(0).getType());
  return (!axis || axis.getInt() == 0) && whole.getRank() > 1 && whole.isDynamicDim(0) &&
         isGiven(concat.getOperand(0)) && llvm::any_of(concat->getUsers(), handsOn) &&
         (isRepeated(concat, calls) || isResult(concat.getResult(0)));
}

/// Gives rows by their address to what hands them on, or goes on from them; blocks see them through
/// the tensor.
void handOnByAddress(ir::ApplyOp window) {
  if (llvm::none_of(window->getUsers(), handsOn))
    return;
  ImplicitLocOpBuilder b(window.getLoc(), window);
  Value part = ops::makeByAddress(b, window);
  window.getResult(0).replaceUsesWithIf(part,
                                        [](OpOperand &use) { return handsOn(use.getOwner()); });
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
  // Some rows of what was there are there already, as where a recursion takes halves.
  module.walk([&](ir::ApplyOp window) {
    if (isRows(window) && isGiven(window.getOperand(0)) && isRepeated(window, calls))
      handOnByAddress(window);
  });
  return success();
}

} // namespace

PassRecord appendInPlacePass() {
  return {.name = "append-in-place",
          .description =
              "Rows that a step of a loop joins to a tensor that it was given, and hands "
              "on, are appended where the tensor lies, with room for more after it; or that an "
              "entry joins to its argument, and gives. Some rows of a tensor that it was given, "
              "which it hands on, are not copied.",
          .run = appendInPlace};
}

} // namespace sheaf::passes

//===- ForkCalls.cpp - Independent calls that may wait, side by side ------===//

#include "compiler/passes/Forks.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/Readers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The call that a body is, and nothing else; or null.
func::CallOp onlyCall(Block &body) {
  auto call = dyn_cast<func::CallOp>(body.front());
  return call && call->getNextNode() == body.getTerminator() &&
                 call.getResults() == body.getTerminator()->getOperands()
             ? call
             : func::CallOp();
}

/// Makes a body, if it is more than a call, a function of its arguments and of what it uses. Gives
/// the call that is left.
func::CallOp outlineBody(Block &body, StringRef suffix, SymbolTable &symbols) {
  if (func::CallOp call = onlyCall(body))
    return call;
  Location where = body.getParentOp()->getLoc();
  auto parent = body.getParentOp()->getParentOfType<func::FuncOp>();
  Operation *yield = body.getTerminator();
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(*body.getParent(), used);
  SmallVector<Value> captured, made;
  for (Value value : used)
    (isa_and_nonnull<arith::ConstantOp, ir::ParamRefOp>(value.getDefiningOp()) ? made : captured)
        .push_back(value);

  SmallVector<Type> inputs(body.getArgumentTypes());
  llvm::append_range(inputs, ValueRange(captured).getTypes());
  OpBuilder builder(parent);
  auto function = func::FuncOp::create(builder, where, (parent.getName() + suffix).str(),
                                       builder.getFunctionType(inputs, yield->getOperandTypes()));
  function.setPrivate();
  symbols.insert(function);
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  IRMapping mapping;
  for (Value value : made)
    mapping.map(value, builder.clone(*value.getDefiningOp())->getResult(0));
  SmallVector<Value> arguments(body.getArguments());
  arguments.append(captured);
  mapping.map(arguments, entry->getArguments());
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value value : yield->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  func::ReturnOp::create(builder, yield->getLoc(), results);

  yield->setOperands({});
  while (Operation *last = yield->getPrevNode())
    last->erase();
  builder.setInsertionPoint(yield);
  auto call = func::CallOp::create(builder, where, function, arguments);
  yield->setOperands(call.getResults());
  return call;
}

void fork(func::CallOp call) { call->setAttr(ir::kForkAttr, UnitAttr::get(call.getContext())); }

void forkMaps(ModuleOp module, SymbolTable &symbols, PassContext &context) {
  Readers readers(module);
  SmallVector<ir::MapOp> maps;
  module.walk([&](ir::MapOp map) {
    if (readers.reads(map))
      maps.push_back(map);
  });
  for (ir::MapOp map : maps) {
    fork(outlineBody(map.getBody().front(), ".map", symbols));
    context.remark(map.getLoc(), "the calls of this map may read and run side by side");
  }
}

void forkCall(func::CallOp call, const Readers &readers, PassContext &context) {
  if (isForked(call) || !readers.reads(call) ||
      !readsBeside(call, [&](Operation *next) { return readers.reads(next); }))
    return;
  fork(call);
  context.remark(call.getLoc(),
                 "the call of " + call.getCallee() + " may read and runs beside what follows");
}

/// An `if` or a `match` cannot run beside what follows, but its branches that call can: which one
/// is taken is decided first. A branch that reads without a call has recorded what it reads when
/// it waits, and what follows is seldom worth a task.
void forkBranches(Operation *op, const Readers &readers, SymbolTable &symbols,
                  PassContext &context) {
  if (op->getNumResults() == 0 || !readers.callsReader(op) ||
      !readsBeside(op, [&](Operation *next) { return readers.callsReader(next); }))
    return;
  for (Region &region : op->getRegions())
    if (!region.empty() && readers.callsReader(region.front()))
      fork(outlineBody(region.front(), ".branch", symbols));
  op->setAttr(ir::kForkAttr, UnitAttr::get(op->getContext()));
  context.remark(op->getLoc(), "the calls of this branch may read and run beside what follows");
}

LogicalResult forkIndependentCalls(ModuleOp module, PassContext &context) {
  if (!Readers(module).any())
    return success();
  SymbolTable symbols(module);
  forkMaps(module, symbols, context);
  Readers readers(module);
  SmallVector<Operation *> ops;
  // Whether an operation waits for one before it follows from whether it is forked itself: so the
  // last come first. Inner ones come before outer ones, so that none is outlined away before its
  // turn.
  module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isa<func::CallOp, scf::IfOp, ir::MatchOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto call = dyn_cast<func::CallOp>(op))
      forkCall(call, readers, context);
    else
      forkBranches(op, readers, symbols, context);
  }
  return success();
}

} // namespace

PassRecord forkCallsPass() {
  return {.name = "fork-calls",
          .description = "Calls that may read and do not need each other (the children of a node, "
                         "the elements of a map, calls in branches) run side by side, so that "
                         "their reads wait together.",
          .run = forkIndependentCalls,
          .after = Level::Blocks};
}

} // namespace sheaf::passes

//===- ForkCalls.cpp - Independent calls that may wait, side by side ------===//

#include "compiler/analysis/Forks.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/analysis/Readers.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Parameters and constants: made wherever they are wanted.
bool isMadeAnywhere(Operation *op) {
  return isa_and_nonnull<arith::ConstantOp, ir::ParamRefOp>(op);
}

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
    (isMadeAnywhere(value.getDefiningOp()) ? made : captured).push_back(value);

  SmallVector<Type> inputs(body.getArgumentTypes());
  llvm::append_range(inputs, ValueRange(captured).getTypes());
  OpBuilder builder(parent);
  auto function = func::FuncOp::create(builder, where, (parent.getName() + suffix).str(),
                                       builder.getFunctionType(inputs, yield->getOperandTypes()));
  function.setPrivate();
  function->setAttr(ir::kOutlinedAttr, builder.getUnitAttr());
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

/// Whether a body may record something and then wait. If not, all that its turns read has been
/// recorded before the first of them, and is there when that has waited.
bool waitsForItsOwn(Block &body, const Readers &readers, const Recorders &recorders) {
  bool recorded = false;
  return body
      .walk<WalkOrder::PreOrder>([&](Operation *op) {
        bool isWhole = isa<func::CallOp, ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op);
        if (!isWhole && op->getNumRegions() > 0)
          return WalkResult::advance();
        bool reads = readers.reads(op), records = recorders.records(op);
        if (reads && (records || recorded))
          return WalkResult::interrupt();
        recorded |= records;
        return WalkResult::skip();
      })
      .wasInterrupted();
}

void forkMaps(ModuleOp module, SymbolTable &symbols, PassContext &context) {
  Readers readers(module);
  Recorders recorders(module);
  SmallVector<ir::MapOp> maps;
  module.walk([&](ir::MapOp map) {
    if (!readers.reads(map))
      return;
    if (readers.emits(map)) {
      context.remark(map.getLoc(), "the calls of this map emit: one after the other");
      return;
    }
    if (waitsForItsOwn(map.getBody().front(), readers, recorders))
      maps.push_back(map);
    else
      context.remark(map.getLoc(), "what this map reads is recorded before it: its first read "
                                   "waits for all of them");
  });
  for (ir::MapOp map : maps) {
    fork(outlineBody(map.getBody().front(), ".map", symbols));
    context.remark(map.getLoc(), "the calls of this map may read and run side by side");
  }
}

/// Whether an operation is of a kind that can be forked, and may read.
bool callsReader(Operation *op, const Readers &readers) {
  return isa<func::CallOp, scf::IfOp, ir::MatchOp>(op) && readers.callsReader(op);
}

/// Whether an operation may end the instance, although it has no effect: a range that is too long,
/// a tensor whose extents are none, a list of too many rows.
bool mayBeTooLarge(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool may =
            isa<ir::RangeOp, ir::ApplyOp>(inner) ||
            (isa<ir::RecordOp>(inner) && llvm::any_of(inner->getOperandTypes(), [](Type type) {
               return type.isInteger(64) || isa<ir::ListType>(type);
             }));
        return may ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What makes arguments of a call of what other calls give that may read, and is needed for nothing
/// else, in order. Not what may fail, which has a place in the order of the program.
SmallVector<Operation *> preparationOf(func::CallOp call, const Readers &readers) {
  llvm::SmallPtrSet<Operation *, 8> taken{call};
  SmallVector<Operation *> open = needsOf(call), found;
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    bool only = isMemoryEffectFree(op) && !mayBeTooLarge(op) && !isMadeAnywhere(op) &&
                !taken.contains(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
                  return taken.contains(call->getBlock()->findAncestorOpInBlock(*user));
                });
    if (!only)
      continue;
    taken.insert(op);
    found.push_back(op);
    open.append(needsOf(op));
  }
  llvm::sort(found, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::SmallPtrSet<Operation *, 8> later;
  llvm::erase_if(found, [&](Operation *op) {
    bool waits = llvm::any_of(needsOf(op), [&](Operation *need) {
      return later.contains(need) || callsReader(need, readers);
    });
    if (waits)
      later.insert(op);
    return !waits;
  });
  return found;
}

/// Makes a call and what stands before it one function; gives the call of that.
func::CallOp outlineWith(func::CallOp call, ArrayRef<Operation *> before, SymbolTable &symbols) {
  OpBuilder builder(call);
  auto whole = scf::ExecuteRegionOp::create(builder, call.getLoc(), call.getResultTypes());
  call.replaceAllUsesWith(whole.getResults());
  Block &body = whole.getRegion().emplaceBlock();
  for (Operation *op : before)
    op->moveBefore(&body, body.end());
  call->moveBefore(&body, body.end());
  builder.setInsertionPointToEnd(&body);
  scf::YieldOp::create(builder, call.getLoc(), call.getResults());
  func::CallOp outlined = outlineBody(body, ".then", symbols);
  outlined->moveBefore(whole);
  whole.replaceAllUsesWith(outlined.getResults());
  whole.erase();
  return outlined;
}

void forkCall(func::CallOp call, const Readers &readers, SymbolTable &symbols,
              PassContext &context) {
  auto reads = [&](Operation *next) { return readers.reads(next); };
  if (isForked(call) || !readsBeside(call, reads))
    return;
  context.remark(call.getLoc(),
                 "the call of " + call.getCallee() + " may read and runs beside what follows");
  // What stands between two calls goes into the second, if so the first need not be waited for.
  SmallVector<Operation *> before = preparationOf(call, readers);
  llvm::SmallPtrSet<Operation *, 8> with(before.begin(), before.end());
  bool helps = llvm::any_of(before, [&](Operation *op) {
    return !isa<ir::GetOp>(op) && llvm::any_of(needsOf(op), [&](Operation *need) {
      while (isa<ir::GetOp>(need) && with.contains(need))
        need = need->getOperand(0).getDefiningOp();
      return callsReader(need, readers) && readsBeside(need, reads, with, call);
    });
  });
  fork(helps ? outlineWith(call, before, symbols) : call);
}

/// Whether what an arm uses is something that would be waited for before the arm is chosen, and
/// need not be if the arm was a fork.
bool holdsUp(Block &arm, const Readers &readers, llvm::function_ref<bool(Operation *)> reads) {
  Operation *op = arm.getParentOp();
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(*arm.getParent(), used);
  return llvm::any_of(used, [&](Value value) {
    while (auto get = value.getDefiningOp<ir::GetOp>())
      value = get.getTuple();
    Operation *need = value.getDefiningOp();
    return need && need->getBlock() == op->getBlock() && callsReader(need, readers) &&
           llvm::none_of(op->getOperands(),
                         [&](Value operand) {
                           return llvm::is_contained(partsOf(need), operand.getDefiningOp());
                         }) &&
           readsBeside(need, reads, /*with=*/{}, op);
  });
}

/// An `if` or a `match` cannot run beside what follows, but its branches that call can: which one
/// is taken is decided first. A branch that reads without a call has recorded what it reads when
/// it waits, and what follows is seldom worth a task.
void forkBranches(Operation *op, const Readers &readers, SymbolTable &symbols,
                  PassContext &context) {
  auto reads = [&](Operation *next) { return readers.callsReader(next); };
  if (op->getNumResults() == 0 || !readsBeside(op, reads))
    return;
  SmallVector<Block *> forked;
  for (Region &region : op->getRegions())
    if (!region.empty() &&
        (readers.callsReader(region.front()) || holdsUp(region.front(), readers, reads)))
      forked.push_back(&region.front());
  for (Block *arm : forked)
    fork(outlineBody(*arm, ".branch", symbols));
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
    // What emits keeps its place in the order of the program.
    if (callsReader(op, readers) && !readers.emits(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto call = dyn_cast<func::CallOp>(op))
      forkCall(call, readers, symbols, context);
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

//===- ForkCalls.cpp - Independent calls that may wait, side by side ------===//

#include "compiler/ir/Program.h"
#include "compiler/passes/CallGraph.h"
#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

constexpr const char *kForkAttr = "sheaf.fork";

/// Which operations may wait for a tensor when they run.
class Readers {
public:
  explicit Readers(ModuleOp module) : symbols_(module) {
    CallGraph graph(module);
    for (bool changed = true; changed;) {
      changed = false;
      for (func::FuncOp func : graph.bottomUp())
        if (!reading_.contains(func) && reads(func)) {
          reading_.insert(func);
          changed = true;
        }
    }
  }

  bool any() const { return !reading_.empty(); }

  bool reads(Operation *root) const {
    return root
        ->walk([&](Operation *op) {
          auto call = dyn_cast<func::CallOp>(op);
          bool found =
              isa<ir::ReadOp>(op) || (call && reading_.contains(symbols_.lookup(call.getCallee())));
          return found ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

private:
  SymbolTable symbols_;
  llvm::DenseSet<Operation *> reading_;
};

/// The call that the body of a `map` is, and nothing else; or null.
func::CallOp onlyCall(ir::MapOp map) {
  Block &body = map.getBody().front();
  auto call = dyn_cast<func::CallOp>(body.front());
  return call && call->getNextNode() == body.getTerminator() &&
                 call.getResults() == body.getTerminator()->getOperands()
             ? call
             : func::CallOp();
}

/// Makes the body of a `map` a function: its elements can then run side by side.
func::CallOp outlineBody(ir::MapOp map, SymbolTable &symbols) {
  auto parent = map->getParentOfType<func::FuncOp>();
  Block &body = map.getBody().front();
  Operation *yield = body.getTerminator();
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(map.getBody(), used);
  SmallVector<Value> captured, made;
  for (Value value : used)
    (isa_and_nonnull<arith::ConstantOp, ir::ParamRefOp>(value.getDefiningOp()) ? made : captured)
        .push_back(value);

  SmallVector<Type> inputs(body.getArgumentTypes());
  llvm::append_range(inputs, ValueRange(captured).getTypes());
  OpBuilder builder(parent);
  auto function = func::FuncOp::create(builder, map.getLoc(), (parent.getName() + ".map").str(),
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
  auto call = func::CallOp::create(builder, map.getLoc(), function, arguments);
  yield->setOperands(call.getResults());
  return call;
}

/// The operation of `block` in which `value` is used first, or its terminator.
Operation *firstUser(Operation *op) {
  Operation *first = op->getBlock()->getTerminator();
  for (Operation *user : op->getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && here->isBeforeInBlock(first))
      first = here;
  }
  return first;
}

LogicalResult run(ModuleOp module, PassContext &context) {
  Readers readers(module);
  if (!readers.any())
    return success();
  SymbolTable symbols(module);
  Builder builder(module.getContext());

  SmallVector<ir::MapOp> maps;
  module.walk([&](ir::MapOp map) {
    if (readers.reads(map))
      maps.push_back(map);
  });
  for (ir::MapOp map : maps) {
    func::CallOp call = onlyCall(map);
    if (!call)
      call = outlineBody(map, symbols);
    call->setAttr(kForkAttr, builder.getUnitAttr());
    context.remark(map.getLoc(), "the calls of this map may read and run side by side");
  }

  Readers all(module);
  module.walk([&](func::CallOp call) {
    if (call->hasAttr(kForkAttr) || !all.reads(call))
      return;
    Operation *end = firstUser(call);
    for (Operation *op = call->getNextNode(); op && op != end; op = op->getNextNode())
      if (all.reads(op)) {
        call->setAttr(kForkAttr, builder.getUnitAttr());
        context.remark(call.getLoc(), "the call of " + call.getCallee() +
                                          " may read and runs beside what follows");
        return;
      }
  });
  return success();
}

} // namespace

PassRecord forkCallsPass() {
  return {.name = "fork-calls",
          .description = "Calls that may read and do not need each other (the children of a node, "
                         "the elements of a map) run side by side, so that their reads wait "
                         "together.",
          .run = run,
          .after = Level::Blocks};
}

} // namespace sheaf::passes

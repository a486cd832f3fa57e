//===- SpreadLoops.cpp - Calls that may read, out of loops that carry -----===//
//
// fold(|s, x| s + think(x), init, xs) becomes fold(|s, y| s + y, init, map(think, xs)), and
// filter(f, xs) takes out of map(|x| (x, f(x)), xs): the calls of a map that may read run side by
// side, those of a loop that carries a state one after the other. Only where nothing that stands in
// the order of the program needs what is carried, so that all of it, in that order, is in the map.
//
// map(|x| read(f(x)), xs) becomes map(|y| read(y), map(f, xs)): all that is computed before the
// first read is recorded for all elements, and waited for once, without a fork. Only what stands
// ahead of everything else that has an order.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/analysis/Readers.h"
#include "compiler/ir/Program.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Parameters, constants and what else takes nothing: made wherever they are wanted.
bool hasNoNeeds(Operation *op) { return op->getNumOperands() == 0 && isPure(op); }

/// What of a loop's body goes into the map: what is ordered, and what that needs. Nothing when it
/// needs what is carried.
std::optional<llvm::DenseSet<Operation *>> partBefore(Block &body, Value carried) {
  llvm::DenseSet<Value> later{carried}; // what follows from what is carried
  llvm::DenseSet<Operation *> before;
  for (Operation &op : body.without_terminator()) {
    bool needs = op.walk([&](Operation *inner) {
                     return llvm::any_of(inner->getOperands(),
                                         [&](Value value) { return later.contains(value); })
                                ? WalkResult::interrupt()
                                : WalkResult::advance();
                   }).wasInterrupted();
    if (needs && isOrdered(&op))
      return std::nullopt;
    if (needs)
      later.insert(op.result_begin(), op.result_end());
    else if (isOrdered(&op))
      before.insert(&op);
  }
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (before.contains(&op))
      for (Operation *need : needsOf(&op))
        if (!hasNoNeeds(need))
          before.insert(need);
  return before;
}

/// A map over the loop's list that gives `values` of the loop's body, of which it runs the
/// operations `moved`. One value as it is, several as a tuple.
ir::MapOp makeMap(OpBuilder &builder, Operation *loop, Value list, Block &body, Value element,
                  llvm::function_ref<bool(Operation *)> moved, ValueRange values) {
  MLIRContext *context = builder.getContext();
  Type type = values.size() == 1 ? values[0].getType() : TupleType::get(context, values.getTypes());
  auto map = ir::MapOp::create(builder, loop->getLoc(), ir::ListType::get(context, type), list);
  Block &inner = map.getBody().emplaceBlock();
  IRMapping mapping;
  size_t first = cast<BlockArgument>(element).getArgNumber();
  for (BlockArgument argument : body.getArguments().drop_front(first))
    mapping.map(argument, inner.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&inner);
  for (Operation &op : body.without_terminator())
    if (moved(&op))
      builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value value : values)
    results.push_back(mapping.lookupOrDefault(value));
  Value result = values.size() == 1
                     ? results[0]
                     : ir::TupleOp::create(builder, loop->getLoc(), type, results).getResult();
  ir::YieldOp::create(builder, loop->getLoc(), result);
  return map;
}

/// The values that makeMap()'s element is made of.
SmallVector<Value> takeApart(OpBuilder &builder, Location loc, Value element, TypeRange types) {
  if (types.size() == 1)
    return {element};
  SmallVector<Value> values;
  for (auto [i, type] : llvm::enumerate(types))
    values.push_back(ir::GetOp::create(builder, loc, type, element,
                                       builder.getI64IntegerAttr(static_cast<int64_t>(i))));
  return values;
}

/// Takes operations of a loop's body into a map before it, and the loop goes over what that gives.
template <typename LoopOp> void moveBefore(LoopOp loop, const llvm::DenseSet<Operation *> &before) {
  Block &body = loop.getBody().front();
  unsigned first = carriesState(loop) ? 1 : 0;
  // What the rest takes of the map's part, and of the list itself.
  llvm::SetVector<Value> taken;
  for (Operation &op : body) {
    if (before.contains(&op))
      continue;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand == body.getArgument(first) || before.contains(operand.getDefiningOp()))
          taken.insert(operand);
    });
  }
  // A list of nothing: its elements still count.
  if (taken.empty())
    taken.insert(body.getArgument(first));
  OpBuilder builder(loop);
  ir::MapOp map = makeMap(
      builder, loop, loop.getList(), body, body.getArgument(first),
      [&](Operation *op) { return before.contains(op) || hasNoNeeds(op); }, taken.getArrayRef());
  loop.getListMutable().assign(map.getResult());
  BlockArgument old = body.getArgument(first);
  BlockArgument element = body.insertArgument(
      first + 1, cast<ir::ListType>(map.getResult().getType()).getElement(), old.getLoc());
  builder.setInsertionPointToStart(&body);
  SmallVector<Value> parts =
      takeApart(builder, loop.getLoc(), element, ValueRange(taken.getArrayRef()).getTypes());
  for (auto [value, part] : llvm::zip(llvm::to_vector(taken.getArrayRef()), parts))
    value.replaceUsesWithIf(part, [&](OpOperand &use) {
      Operation *user = body.findAncestorOpInBlock(*use.getOwner());
      return user && !before.contains(user) && user != part.getDefiningOp();
    });
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (before.contains(&op))
      op.erase();
  body.eraseArgument(first);
}

/// A fold or a scan.
template <typename LoopOp> bool spread(LoopOp loop, const Readers &readers) {
  Block &body = loop.getBody().front();
  auto before = partBefore(body, body.getArgument(0));
  if (!before || !llvm::any_of(*before, [&](Operation *op) { return readers.reads(op); }))
    return false;
  moveBefore(loop, *before);
  return true;
}

/// What of a map's body is computed before its first read, if the read needs it, and nothing that
/// may end the instance or wait elsewhere comes before.
llvm::DenseSet<Operation *> partBeforeReads(Block &body) {
  llvm::DenseSet<Operation *> behind; // what follows from a read
  SmallVector<Operation *> open;
  SmallVector<ir::ReadOp> reads;
  for (Operation &op : body.without_terminator()) {
    if (auto read = dyn_cast<ir::ReadOp>(op))
      reads.push_back(read);
    else if (isOrdered(&op))
      break;
    bool needs = isa<ir::ReadOp>(op) ||
                 llvm::any_of(needsOf(&op), [&](Operation *need) { return behind.contains(need); });
    if (needs)
      behind.insert(&op);
    else if (isTensorCode(&op) && !hasNoNeeds(&op))
      open.push_back(&op);
  }
  llvm::DenseSet<Operation *> before;
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!hasNoNeeds(op) && before.insert(op).second)
      open.append(needsOf(op));
  }
  bool helps = llvm::any_of(
      reads, [&](ir::ReadOp read) { return before.contains(read.getTensor().getDefiningOp()); });
  return helps ? before : llvm::DenseSet<Operation *>();
}

bool spread(ir::MapOp map) {
  llvm::DenseSet<Operation *> before = partBeforeReads(map.getBody().front());
  if (before.empty())
    return false;
  moveBefore(map, before);
  return true;
}

bool spread(ir::FilterOp filter, const Readers &readers) {
  Block &body = filter.getBody().front();
  if (!readers.reads(body))
    return false;
  OpBuilder builder(filter);
  Location loc = filter.getLoc();
  Value element = body.getArgument(0);
  SmallVector<Value> values = {element, body.getTerminator()->getOperand(0)};
  ir::MapOp map = makeMap(
      builder, filter, filter.getList(), body, element, [](Operation *) { return true; }, values);
  Type pair = cast<ir::ListType>(map.getResult().getType()).getElement();
  SmallVector<Type> types(ValueRange(values).getTypes());
  auto kept = ir::FilterOp::create(builder, loc, map.getResult().getType(), map.getResult());
  Block &test = kept.getBody().emplaceBlock();
  test.addArgument(pair, loc);
  auto unpack = ir::MapOp::create(builder, loc, filter.getType(), kept.getResult());
  Block &first = unpack.getBody().emplaceBlock();
  first.addArgument(pair, loc);
  builder.setInsertionPointToEnd(&test);
  ir::YieldOp::create(builder, loc, takeApart(builder, loc, test.getArgument(0), types)[1]);
  builder.setInsertionPointToEnd(&first);
  ir::YieldOp::create(builder, loc, takeApart(builder, loc, first.getArgument(0), types)[0]);
  filter.replaceAllUsesWith(unpack.getResult());
  filter.erase();
  return true;
}

LogicalResult spreadLoops(ModuleOp module, PassContext &context) {
  Readers readers(module);
  if (!readers.any())
    return success();
  // Inner loops first: what they are made of is then seen in the outer ones.
  SmallVector<Operation *> loops;
  module.walk([&](Operation *op) {
    if (isa<ir::FoldOp, ir::ScanOp, ir::FilterOp>(op))
      loops.push_back(op);
  });
  for (Operation *op : loops) {
    Location where = op->getLoc();
    bool done = false;
    if (auto fold = dyn_cast<ir::FoldOp>(op))
      done = spread(fold, readers);
    else if (auto scan = dyn_cast<ir::ScanOp>(op))
      done = spread(scan, readers);
    else
      done = spread(cast<ir::FilterOp>(op), readers);
    if (done)
      context.remark(where, "what of this loop may read does not need what it carries: a "
                            "map does it before");
  }
  // With those that this has made.
  SmallVector<ir::MapOp> maps;
  module.walk([&](ir::MapOp map) { maps.push_back(map); });
  for (ir::MapOp map : maps)
    if (spread(map))
      context.remark(map.getLoc(), "what this map computes before its first read a map of its own "
                                   "does for all elements");
  return success();
}

} // namespace

PassRecord spreadLoopsPass() {
  return {.name = "spread-loops",
          .description =
              "What in folds, scans and filters may read and does not need what the loop "
              "carries becomes a map before it, and so does what a map computes before its first "
              "read, so that reads wait together.",
          .run = spreadLoops};
}

} // namespace sheaf::passes

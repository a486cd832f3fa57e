//===- LoopTails.cpp - Light code after a fold, into its body -------------===//
//
// fold(init, xs) { y } and then k = tail(its result) becomes one fold that carries (y, tail(y)):
// tail runs in the last block of the body, at every element, and is not a record after the last
// one. Only where the list cannot be empty, so that any tensor of the type will do as the first,
// and where it is little beside what every element takes: the body, and the map that makes the
// list.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/CodeMotion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// A list that has as many elements, as near to its beginning as can be told.
Value sameLength(Value list) {
  while (Operation *op = list.getDefiningOp()) {
    if (!isa<ir::ZipOp, ir::MapOp, ir::ScanOp, ir::ReverseOp>(op))
      break;
    list = op->getOperands().back();
  }
  return list;
}

/// Whether an operation stands in an arm that is taken only when the list has elements.
bool isNotEmptyAt(Value list, Operation *op) {
  list = sameLength(list);
  for (Operation *inner = op; auto parent = inner->getParentOp(); inner = parent) {
    auto branch = dyn_cast<scf::IfOp>(parent);
    if (!branch)
      continue;
    auto compare = branch.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || !matchPattern(compare.getRhs(), m_Zero()))
      continue;
    auto len = compare.getLhs().getDefiningOp<ir::LenOp>();
    if (!len || sameLength(len.getList()) != list)
      continue;
    bool inThen = inner->getParentRegion() == &branch.getThenRegion();
    using Predicate = arith::CmpIPredicate;
    if (inThen ? llvm::is_contained({Predicate::ne, Predicate::sgt, Predicate::ugt},
                                    compare.getPredicate())
               : llvm::is_contained({Predicate::eq, Predicate::sle, Predicate::ule},
                                    compare.getPredicate()))
      return true;
  }
  return false;
}

/// Of what runs for every element of a loop, so much may be in vain.
constexpr double kShareOfElement = 1.0 / 16;

/// The parts of what a fold carries: the fields of a tuple, or the one tensor.
SmallVector<Value> partsOf(Value carried) {
  auto tuple = dyn_cast<TupleType>(carried.getType());
  SmallVector<Value> parts;
  for (unsigned i = 0; i < (tuple ? tuple.size() : 1); ++i)
    parts.push_back(partOf(carried, i));
  return llvm::is_contained(parts, Value()) ? SmallVector<Value>() : parts;
}

bool isOnlyTakenApart(Value value) {
  return isa<RankedTensorType>(value.getType()) ||
         llvm::all_of(value.getUsers(), llvm::IsaPred<ir::GetOp>);
}

} // namespace

bool CodeMotion::sinkLoopTail(const Group &group, Block &block) {
  if (isTouched(group) || !mayMove(group))
    return false;
  Moved tail;
  auto foldOf = [](Operation *maker) {
    auto get = dyn_cast<ir::GetOp>(maker);
    return dyn_cast_or_null<ir::FoldOp>(get ? get.getTuple().getDefiningOp() : maker);
  };
  ir::FoldOp fold; // the last one
  SmallVector<Operation *> makers = makersOf(group, block, tail);
  for (Operation *maker : makers)
    if (ir::FoldOp found = foldOf(maker);
        found && found->getBlock() == &block && (!fold || fold->isBeforeInBlock(found)))
      fold = found;
  llvm::erase_if(makers, [&](Operation *maker) { return foldOf(maker) == fold; });
  return fold && !isTouched(fold.getOperation()) && mayBecomeResults(tail, makers, fold) &&
         !isTouched(tail.before) && sinkLoopTail(tail, fold);
}

/// What runs for every element of the fold's list, beside what may be in vain: the maps that make
/// it for this loop alone, as far as they take tensors. What they make of rows of parameters may be
/// there already.
double CodeMotion::workOfElement(ir::FoldOp fold) {
  double work = 0;
  SmallVector<Value> lists{fold.getList()};
  for (size_t i = 0; i < lists.size() && i < 16; ++i) {
    Operation *maker = lists[i].getDefiningOp();
    if (!isa_and_nonnull<ir::MapOp, ir::ZipOp, ir::ReverseOp>(maker) ||
        maker->getBlock() != fold->getBlock() || !maker->hasOneUse() || isTouched(maker))
      continue;
    llvm::append_range(lists, maker->getOperands());
    if (auto map = dyn_cast<ir::MapOp>(maker))
      for (const Group &group : now_->groups.of(map.getBody().front()).groups)
        if (llvm::any_of(group, [&](Operation *op) {
              return llvm::any_of(op->getOperands(), [&](Value operand) {
                Operation *made = operand.getDefiningOp();
                return !isSharedOperand(operand) && !batchRule<ops::HostAddress>(made) &&
                       !llvm::is_contained(group, made);
              });
            }))
          work += kRecordWork + ownWork(group);
  }
  return work;
}

bool CodeMotion::sinkLoopTail(const Moved &tail, ir::FoldOp fold) {
  Block &body = fold.getBody().front();
  BlockArgument carried = body.getArgument(0);
  Operation *end = body.getTerminator();
  SmallVector<Value> inits = partsOf(fold.getInit()), nexts = partsOf(end->getOperand(0));
  if (inits.empty() || nexts.empty() || !isOnlyTakenApart(carried) ||
      !isOnlyTakenApart(fold.getResult()))
    return false;

  IRMapping inBody; // parts of the result, to those that the body gives
  const Group *host = nullptr;
  SmallVector<OpResult> made;
  SmallVector<Value> firsts; // of what is made
  for (Operation *op : tail.group) {
    for (Value operand : op->getOperands()) {
      auto get = operand.getDefiningOp<ir::GetOp>();
      if (get ? get.getTuple() != fold.getResult() : operand != fold.getResult())
        continue;
      Value next = nexts[get ? static_cast<unsigned>(get.getIndex()) : 0];
      inBody.map(operand, next);
      if (!host && next.getParentBlock() == &body)
        host = now_->groups.making(next);
    }
    for (OpResult result : tail.usedByOthers(op->getResults())) {
      made.push_back(result);
      auto *same =
          llvm::find_if(inits, [&](Value init) { return init.getType() == result.getType(); });
      if (same != inits.end())
        firsts.push_back(*same);
    }
  }
  if (firsts.size() != made.size() || !isNotEmptyAt(fold.getList(), fold) || !host ||
      isTouched(*host) || runsOutside(*host, fold))
    return false;
  auto decline = [&](const Twine &why) {
    stays(tail.group.front(), namesOf(tail.group) + " stays after its loop: " + why);
    return false;
  };
  if (const char *why = obstacle(tail.group, inBody, body, *host))
    return decline(Twine("at the end of its body ") + why);
  if (shiftsLevels(*fold->getBlock(), tail.group, 1))
    return decline("what follows might be other blocks");
  if (workOf(tail.group) + vainWork(*host) >
      kShareOfElement * (kRecordWork + ownWork(*host) + workOfElement(fold)))
    return decline("it is too much to compute at every element");
  if (!takeRoom(static_cast<int64_t>(tail.group.size())))
    return false;
  report(tail, fold, "after the loop becomes part of the last block of its body");
  touch(*host);

  for (Operation *op : tail.before)
    op->moveBefore(fold);
  OpBuilder before(fold), atEnd(end);
  for (Operation *op : tail.constants)
    atEnd.clone(*op, inBody);
  for (Operation *op : tail.group) {
    Operation *guest = atEnd.clone(*op, inBody);
    guests_.insert(guest);
    touch(guest);
  }
  auto joined = [&](OpBuilder &at, ArrayRef<Value> parts, ArrayRef<Value> more) -> Value {
    SmallVector<Value> fields(parts);
    llvm::append_range(fields, more);
    auto type = TupleType::get(at.getContext(), llvm::to_vector(ValueRange(fields).getTypes()));
    return ir::TupleOp::create(at, fold.getLoc(), type, fields);
  };
  Value init = joined(before, inits, firsts);
  end->setOperand(0, joined(atEnd, nexts, llvm::map_to_vector(made, [&](OpResult result) {
                              return inBody.lookup(result);
                            })));

  auto field = [](OpBuilder &at, Location where, Value whole, unsigned index) -> Value {
    Type type = cast<TupleType>(whole.getType()).getType(index);
    return ir::GetOp::create(at, where, type, whole, at.getI64IntegerAttr(index));
  };
  bool isTuple = isa<TupleType>(carried.getType());
  carried.setType(init.getType());
  if (!isTuple) {
    OpBuilder atBegin = OpBuilder::atBlockBegin(&body);
    Value same = field(atBegin, fold.getLoc(), carried, 0);
    carried.replaceAllUsesExcept(same, same.getDefiningOp());
  }
  auto fresh = ir::FoldOp::create(before, fold.getLoc(), init.getType(), init, fold.getList());
  fresh.getBody().takeBody(fold.getBody());
  touch(fresh.getOperation());
  for (auto [i, result] : llvm::enumerate(made)) {
    Value value = field(before, result.getLoc(), fresh.getResult(), inits.size() + i);
    result.replaceUsesWithIf(value, [&](OpOperand &use) { return !tail.contains(use.getOwner()); });
  }
  for (Operation *op : llvm::reverse(tail.group))
    bury(op);
  Value whole = fresh.getResult();
  if (!isTuple && !fold.getResult().use_empty())
    whole = field(before, fold.getLoc(), whole, 0);
  fold.getResult().replaceAllUsesWith(whole);
  bury(fold);
  return true;
}

} // namespace sheaf::passes

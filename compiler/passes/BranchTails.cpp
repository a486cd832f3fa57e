//===- BranchTails.cpp - Light code after a branch, into its arms ---------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/CodeMotion.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The same branch with the arms of `branch` and results of these types.
Operation *withResults(Operation *branch, TypeRange types) {
  OpBuilder builder(branch);
  Operation *fresh;
  if (auto match = dyn_cast<ir::MatchOp>(branch))
    fresh = ir::MatchOp::create(builder, match.getLoc(), types, match.getScrutinee(),
                                match.getCasesAttr(), match.getArms().size());
  else
    fresh = scf::IfOp::create(builder, branch->getLoc(), types,
                              cast<scf::IfOp>(branch).getCondition(), false, false);
  for (auto [from, to] : llvm::zip(branch->getRegions(), fresh->getRegions()))
    to.takeBody(from);
  return fresh;
}

} // namespace

bool CodeMotion::sinkTail(const Group &group, Block &block) {
  if (isTouched(group) || !mayMove(group))
    return false;
  Moved tail;
  SmallVector<Operation *> makers = makersOf(group, block, tail);
  Operation *branch = nullptr; // the last one
  for (Operation *maker : makers)
    if (isa<scf::IfOp, ir::MatchOp>(maker) && (!branch || branch->isBeforeInBlock(maker)))
      branch = maker;
  llvm::erase(makers, branch);
  if (!branch || isTouched(branch) || !mayBecomeResults(tail, makers, branch) ||
      isTouched(tail.before))
    return false;
  if (hasEqual(group, branch)) {
    stays(group.front(),
          namesOf(group) + " stays after the branch: its kernel runs elsewhere, too");
    return false;
  }
  SmallVector<Arm> arms;
  if (!findArms(tail, branch, arms))
    return false;
  auto joined = llvm::count_if(arms, [](const Arm &arm) { return arm.host; });
  auto copies = static_cast<int64_t>(arms.size());
  if (joined == 0)
    return false;
  // Of what those give, one may be a row and another a parameter: a kernel each.
  if (copies - joined > 1) {
    stays(group.front(),
          namesOf(group) + " stays after the branch: in several arms it would be a record as here");
    return false;
  }
  if (shiftsLevels(block, group, 1)) {
    stays(group.front(),
          namesOf(group) + " stays after the branch: what follows might be other blocks");
    return false;
  }
  if (!takeRoom((copies - 1) * static_cast<int64_t>(group.size())))
    return false;
  report(tail, branch,
         "after the branch becomes part of the last block of " +
             (joined == copies ? Twine("each arm") : Twine(joined) + " of its arms"));
  for (const Arm &arm : arms)
    if (arm.host)
      touch(*arm.host);
  sinkTail(tail, branch);
  return true;
}

/// The arms at whose ends the tail would stand, those of branches that an arm ends with in its
/// place. False where it had better stay.
bool CodeMotion::findArms(const Moved &tail, Operation *branch, SmallVector<Arm> &arms) {
  SmallVector<std::pair<Operation *, IRMapping>> work{{branch, {}}};
  SmallVector<Value> taken;
  for (OpResult result : branch->getResults())
    if (llvm::any_of(result.getUsers(), [&](Operation *user) { return tail.contains(user); }))
      taken.push_back(result);
  auto decline = [&](const Twine &why) {
    stays(tail.group.front(), namesOf(tail.group) + " stays after the branch: " + why);
    return false;
  };
  for (size_t i = 0; i < work.size(); ++i) {
    auto [from, results] = work[i];
    for (Region &region : from->getRegions()) {
      Block &block = region.front();
      Arm arm{&block, {}, nullptr};
      Operation *inner = nullptr; // a branch that it ends with
      unsigned level = 0;
      for (Value result : taken) {
        Value here = results.lookupOrDefault(result);
        Value value =
            here.getDefiningOp() == from
                ? block.getTerminator()->getOperand(cast<OpResult>(here).getResultNumber())
                : here;
        arm.results.map(result, value);
        Operation *maker = value.getDefiningOp();
        if (auto get = dyn_cast_or_null<ir::GetOp>(maker))
          maker = get.getTuple().getDefiningOp();
        if (!maker || maker->getBlock() != &block)
          continue;
        // After a call it would be a record there, as it is here, and take the call's last place.
        if (isa<func::CallOp>(maker))
          return decline("an arm ends with a call");
        if (isa<scf::IfOp, ir::MatchOp>(maker) && (!inner || inner->isBeforeInBlock(maker)))
          inner = maker;
        unsigned at = now_->groups.level(value, block);
        if (const Group *group = now_->groups.making(value); group && (!arm.host || at > level)) {
          arm.host = group;
          level = at;
        }
      }
      if (arm.host) {
        if (isTouched(*arm.host))
          return false;
        if (const char *why = obstacle(tail.group, arm.results, block, *arm.host))
          return decline(Twine("at the end of an arm ") + why);
        if (runsOutside(*arm.host, branch))
          return decline("the kernel at the end of an arm runs elsewhere, too");
      } else if (inner && !isTouched(inner)) {
        work.push_back({inner, arm.results});
        continue;
      } else if (llvm::any_of(tail.group, [&](Operation *op) {
                   return llvm::any_of(op->getOperands(), [&](Value operand) {
                     Value value = arm.results.lookupOrDefault(operand);
                     return !isSharedOperand(value) &&
                            isReadBesides(value, block, now_->groups.level(value, block), nullptr);
                   });
                 })) {
        return decline("at the end of an arm it would join what reads the same");
      }
      arms.push_back(std::move(arm));
    }
  }
  return true;
}

void CodeMotion::sinkTail(const Moved &tail, Operation *branch) {
  SmallVector<OpResult> left = tail.usedByOthers(branch->getResults()), made;
  for (Operation *op : tail.before)
    op->moveBefore(branch);
  for (Operation *op : tail.group)
    llvm::append_range(made, tail.usedByOthers(op->getResults()));
  for (Region &region : branch->getRegions()) {
    Operation *end = region.front().getTerminator();
    OpBuilder builder(end);
    IRMapping map;
    map.map(branch->getResults(), end->getOperands());
    for (Operation *op : tail.constants)
      builder.clone(*op, map);
    for (Operation *op : tail.group) {
      Operation *copy = builder.clone(*op, map);
      copies_.insert(copy);
      touch(copy);
    }
    SmallVector<Value> yielded;
    for (OpResult result : left)
      yielded.push_back(end->getOperand(result.getResultNumber()));
    for (OpResult result : made)
      yielded.push_back(map.lookup(result));
    end->setOperands(yielded);
  }
  SmallVector<Type> types;
  for (OpResult result : llvm::concat<OpResult>(left, made))
    types.push_back(result.getType());
  Operation *fresh = withResults(branch, types);
  touch(fresh);
  for (auto [old, result] : llvm::zip(llvm::concat<OpResult>(left, made), fresh->getResults()))
    old.replaceUsesWithIf(result, [&](OpOperand &use) { return !tail.contains(use.getOwner()); });
  for (Operation *op : llvm::reverse(tail.group))
    bury(op);
  bury(branch);
}

} // namespace sheaf::passes

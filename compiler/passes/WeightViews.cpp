//===- WeightViews.cpp - Views of weights where they are taken ------------===//

#include "compiler/passes/WeightViews.h"

#include "compiler/analysis/OpQueries.h"

using namespace mlir;

namespace sheaf::passes {

/// What an operator shows in another way; null for others.
static Value viewedBy(Operation *op) {
  bool isView = batchRule<ops::Movement>(op) && !takesList(op) && op->getNumOperands() == 1;
  return isView ? op->getOperand(0) : Value();
}

bool isViewOfWeight(Value value) {
  Value viewed = viewedBy(value.getDefiningOp());
  if (!viewed)
    return false;
  while (Value further = viewedBy(viewed.getDefiningOp()))
    viewed = further;
  return isa_and_nonnull<ir::ParamRefOp>(viewed.getDefiningOp());
}

Value OwnViews::of(Value view, Operation *place, SmallVectorImpl<Operation *> &made) {
  SmallVector<OpResult> chain;
  for (Value next = view; next && viewedBy(next.getDefiningOp()) && !copies_.contains(next);
       next = viewedBy(next.getDefiningOp()))
    chain.push_back(cast<OpResult>(next));
  for (OpResult next : llvm::reverse(chain)) {
    OpBuilder builder(place ? place : next.getOwner());
    if (!place)
      builder.setInsertionPointAfter(next.getOwner());
    Operation *copy = builder.clone(*next.getOwner());
    if (Value known = copies_.lookup(copy->getOperand(0)))
      copy->setOperand(0, known);
    for (auto [old, now] : llvm::zip(next.getOwner()->getResults(), copy->getResults()))
      copies_[old] = now;
    made.push_back(copy);
  }
  return copies_.lookup(view);
}

void copyViewsIntoRegions(func::FuncOp func) {
  llvm::DenseMap<Block *, OwnViews> own;
  SmallVector<Operation *> made;
  func.walk([&](ir::ApplyOp apply) {
    if (!isTensorCode(apply))
      return;
    for (OpOperand &operand : apply->getOpOperands())
      if (isViewOfWeight(operand.get()) && operand.get().getParentBlock() != apply->getBlock())
        operand.set(own[apply->getBlock()].of(operand.get(), apply, made));
  });
}

void copyViewsIntoGroups(std::vector<Group> &groups) {
  llvm::DenseMap<Operation *, const Group *> groupOf;
  for (const Group &group : groups)
    for (Operation *op : group)
      groupOf[op] = &group;
  for (Group &group : groups) {
    OwnViews own;
    Group whole;
    for (Operation *op : group) {
      for (OpOperand &operand : op->getOpOperands()) {
        auto it = groupOf.find(operand.get().getDefiningOp());
        if (it != groupOf.end() && it->second != &group && isViewOfWeight(operand.get()))
          operand.set(own.of(operand.get(), op, whole));
      }
      whole.push_back(op);
    }
    group = std::move(whole);
  }
}

} // namespace sheaf::passes

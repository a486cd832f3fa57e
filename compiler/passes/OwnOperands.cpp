//===- OwnOperands.cpp - Operands that each block makes itself ------------===//

#include "compiler/passes/OwnOperands.h"

#include "compiler/analysis/OpQueries.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// What takes more operators, such as random bits, is computed once.
constexpr size_t kFewOperators = 16;

bool isMovement(Operation *op) { return batchRule<ops::Movement>(op) && !takesList(op); }

/// What an operator shows in another way; null for others.
Value viewedBy(Operation *op) {
  return isMovement(op) && op->getNumOperands() == 1 ? op->getOperand(0) : Value();
}

bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// Whether an operand is made by an operator that is copied with what takes it; a constant tensor
/// is brought to each block anyway.
bool isMadeAnew(Value operand) {
  Operation *op = operand.getDefiningOp();
  return op && isTensor(operand) && !isFill(op) &&
         (isMovement(op) || batchRule<ops::Elementwise>(op));
}

/// Whether an operator is as cheap to make as its result is to read: of ints and bools, a choice,
/// or a number of the host.
bool isCheap(Operation *op) {
  return isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))) ||
         llvm::none_of(op->getOperands(), isTensor) || batchRule<ops::Elementwise>(op)->selects;
}

/// Whether a tensor is computed of places (`iota`), constants and numbers of the host alone, by few
/// operators that are cheap.
bool isIndexTensor(Value value) {
  if (!isMadeAnew(value))
    return false;
  llvm::SmallDenseSet<Operation *> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!isTensor(next) || isFill(next.getDefiningOp()))
      continue;
    if (!isMadeAnew(next) || !(isMovement(next.getDefiningOp()) || isCheap(next.getDefiningOp())))
      return false;
    if (!seen.insert(next.getDefiningOp()).second)
      continue;
    if (seen.size() > kFewOperators)
      return false;
    llvm::append_range(work, next.getDefiningOp()->getOperands());
  }
  return true;
}

bool isOwn(Value operand) { return isViewOfWeight(operand) || isIndexTensor(operand); }

} // namespace

bool isViewOfWeight(Value value) {
  Value viewed = viewedBy(value.getDefiningOp());
  if (!viewed)
    return false;
  while (Value further = viewedBy(viewed.getDefiningOp()))
    viewed = further;
  return isa_and_nonnull<ir::ParamRefOp>(viewed.getDefiningOp());
}

Value OwnOperands::of(Value operand, Operation *place, SmallVectorImpl<Operation *> &made) {
  // What an operator takes comes before it.
  SmallVector<std::pair<Operation *, bool>> work{{operand.getDefiningOp(), false}};
  while (!work.empty()) {
    auto [op, isNext] = work.pop_back_val();
    if (copies_.contains(op->getResult(0)))
      continue;
    if (!isNext) {
      work.emplace_back(op, true);
      for (Value taken : op->getOperands())
        if (isMadeAnew(taken))
          work.emplace_back(taken.getDefiningOp(), false);
      continue;
    }
    OpBuilder builder(place ? place : op);
    if (!place)
      builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op);
    for (OpOperand &taken : copy->getOpOperands())
      if (Value known = copies_.lookup(taken.get()))
        taken.set(known);
    for (auto [old, now] : llvm::zip(op->getResults(), copy->getResults()))
      copies_[old] = now;
    made.push_back(copy);
  }
  return copies_.lookup(operand);
}

void copyIntoRegions(func::FuncOp func) {
  llvm::DenseMap<Block *, OwnOperands> own;
  SmallVector<Operation *> made;
  func.walk([&](ir::ApplyOp apply) {
    if (!isTensorCode(apply))
      return;
    for (OpOperand &operand : apply->getOpOperands())
      if (operand.get().getParentBlock() != apply->getBlock() && isOwn(operand.get()))
        operand.set(own[apply->getBlock()].of(operand.get(), apply, made));
  });
}

void copyIntoGroups(std::vector<Group> &groups) {
  llvm::DenseMap<Operation *, const Group *> groupOf;
  for (const Group &group : groups)
    for (Operation *op : group)
      groupOf[op] = &group;
  for (Group &group : groups) {
    OwnOperands own;
    Group whole;
    for (Operation *op : group) {
      for (OpOperand &operand : op->getOpOperands()) {
        auto it = groupOf.find(operand.get().getDefiningOp());
        if (it != groupOf.end() && it->second != &group && isOwn(operand.get()))
          operand.set(own.of(operand.get(), op, whole));
      }
      whole.push_back(op);
    }
    group = std::move(whole);
  }
}

} // namespace sheaf::passes

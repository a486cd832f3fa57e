//===- Ancestry.cpp - Which tensor others are made of ---------------------===//

#include "compiler/analysis/Ancestry.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Of one proof, all questions together; and of questions inside of each other.
constexpr unsigned kMostSteps = 64, kDeepest = 32;

} // namespace

Value partOf(Value carried, unsigned field) {
  if (auto tuple = carried.getDefiningOp<ir::TupleOp>())
    return tuple.getFields()[field];
  return isa<RankedTensorType>(carried.getType()) ? carried : Value();
}

Ancestry::Ancestry(ModuleOp module, Groups &groups) : groups_(groups) {
  module.walk([&](Operation *op) {
    if (auto tuple = dyn_cast<ir::TupleOp>(op))
      tuples_[tuple.getType()].push_back(tuple);
    else if (auto zip = dyn_cast<ir::ZipOp>(op))
      zipped_.insert(cast<ir::ListType>(zip.getType()).getElement());
  });
}

bool Ancestry::isAncestor(Value value, const Group &group) {
  steps_ = 0;
  return proveAny(value, group);
}

bool Ancestry::proveAny(Value first, const Group &group) {
  for (Operation *op : group)
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(group, operand.getDefiningOp()) && prove(first, operand))
        return true;
  return false;
}

bool Ancestry::prove(Value first, Value second) {
  if (first == second || isConstant(first.getDefiningOp()))
    return true;
  if (isSharedOperand(first) || isSharedOperand(second) || ++steps_ > kMostSteps ||
      open_.size() > kDeepest)
    return false;
  auto [open, isNew] =
      open_.insert({first.getAsOpaquePointer(), second.getAsOpaquePointer(), 0, 0});
  if (!isNew)
    return true;
  llvm::scope_exit close([&, open = open] { open_.erase(open); });
  return proveByMaker(first, second);
}

bool Ancestry::proveByMaker(Value first, Value second) {
  Operation *maker = second.getDefiningOp();
  if (const Group *group = groups_.making(second))
    return groups_.making(first) == group || proveAny(first, *group);
  if (isa_and_nonnull<scf::IfOp, ir::MatchOp>(maker)) {
    unsigned number = cast<OpResult>(second).getResultNumber();
    return llvm::all_of(maker->getRegions(), [&](Region &region) {
      Operation *end = region.front().getTerminator();
      Value other = first.getDefiningOp() == maker
                        ? end->getOperand(cast<OpResult>(first).getResultNumber())
                        : first;
      return prove(other, end->getOperand(number));
    });
  }
  auto get = dyn_cast_or_null<ir::GetOp>(maker);
  Value whole = get ? get.getTuple() : second;
  unsigned field = get ? static_cast<unsigned>(get.getIndex()) : 0;
  if (auto other = first.getDefiningOp<ir::GetOp>(); other && get && other.getTuple() == whole)
    return proveFields(cast<TupleType>(whole.getType()), static_cast<unsigned>(other.getIndex()),
                       field);
  if (auto fold = whole.getDefiningOp<ir::FoldOp>())
    return proveCarried(first, fold, field);
  if (auto argument = dyn_cast<BlockArgument>(whole); argument && argument.getArgNumber() == 0)
    if (auto fold = dyn_cast<ir::FoldOp>(argument.getOwner()->getParentOp());
        fold && !fold.getBody().isAncestor(first.getParentRegion()))
      return proveCarried(first, fold, field);
  return false;
}

bool Ancestry::proveCarried(Value first, ir::FoldOp fold, unsigned field) {
  Value init = partOf(fold.getInit(), field);
  Value next = partOf(fold.getBody().front().getTerminator()->getOperand(0), field);
  return init && next && prove(first, init) && prove(first, next);
}

bool Ancestry::proveFields(TupleType type, unsigned first, unsigned second) {
  if (zipped_.contains(type) || ++steps_ > kMostSteps || open_.size() > kDeepest)
    return false;
  auto [open, isNew] = open_.insert({type.getAsOpaquePointer(), nullptr, first, second});
  if (!isNew)
    return true;
  llvm::scope_exit close([&, open = open] { open_.erase(open); });
  return llvm::all_of(tuples_.lookup(type), [&](ir::TupleOp tuple) {
    return prove(tuple.getFields()[first], tuple.getFields()[second]);
  });
}

} // namespace sheaf::passes

//===- Growth.cpp - What grows step by step -------------------------------===//

#include "compiler/analysis/Growth.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The loop whose body an operation stands in, with branches in between alone; or null.
Operation *loopAround(Operation *op) {
  Operation *parent = op->getParentOp();
  while (isa_and_nonnull<scf::IfOp, ir::MatchOp>(parent))
    parent = parent->getParentOp();
  return parent && carriesState(parent) ? parent : nullptr;
}

bool grows(Operation *op) { return isa<ir::AppendOp>(op) || appendsRows(op); }

/// Whether only one of both runs.
bool areApart(Operation *a, Operation *b) {
  for (Region *region = a->getParentRegion(); region; region = region->getParentRegion()) {
    if (!region->getParentOp()->isProperAncestor(b))
      continue;
    return !region->isAncestor(b->getParentRegion()) &&
           isa<scf::IfOp, ir::MatchOp>(region->getParentOp());
  }
  return false;
}

/// Whether a use makes nothing that the list or tensor is a part of.
bool onlyReads(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<ir::LenOp, ir::ListGetOp, ir::DimOp, ir::RecordOp, ir::JoinedOp, ir::ReadOp>(op))
    return !isa<ir::JoinedOp>(op) || use.getOperandNumber() >= op->getNumResults();
  if (isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op))
    return use.getOperandNumber() + 1 == op->getNumOperands();
  return takesList(op);
}

/// Versions of what a loop carries, in one field of it.
class Versions {
public:
  Versions(Operation *loop, std::optional<unsigned> field) : loop_(loop), field_(field) {}

  bool add(Value value) {
    versions_.insert(value);
    for (size_t i = 0; i < versions_.size(); ++i)
      if (!addUses(versions_[i]))
        return false;
    return true;
  }

  bool has(Value value) const { return versions_.contains(value); }

private:
  bool addUses(Value version) {
    for (OpOperand &use : version.getUses()) {
      Operation *op = use.getOwner();
      if (onlyReads(use))
        continue;
      if (grows(op) && use.getOperandNumber() == 0) {
        // Once for each element at most: then nothing has the place after it already.
        if (loopAround(op) != loop_ || llvm::any_of(growing_, [&](Operation *other) {
              return op != other && !areApart(op, other);
            }))
          return false;
        growing_.insert(op);
        versions_.insert(op->getResult(0));
      } else if (!isHandedOn(use)) {
        return false;
      }
    }
    return true;
  }

  bool isHandedOn(OpOperand &use) {
    Operation *op = use.getOwner();
    if (isa<ir::YieldOp, scf::YieldOp>(op)) {
      Operation *parent = op->getParentOp();
      if (parent == loop_)
        return !field_;
      if (!isa<scf::IfOp, ir::MatchOp>(parent))
        return false;
      versions_.insert(parent->getResult(use.getOperandNumber()));
      return true;
    }
    // What goes on to the next element, or a cast (Casts.h).
    auto tuple = dyn_cast<ir::TupleOp>(op);
    if (!tuple)
      return false;
    for (Operation *user : tuple->getUsers()) {
      auto get = dyn_cast<ir::GetOp>(user);
      if (get && get.getIndex() == use.getOperandNumber())
        versions_.insert(get.getResult());
      else if (!get && !(isa<ir::YieldOp>(user) && user->getParentOp() == loop_ &&
                         field_ == use.getOperandNumber()))
        return false;
    }
    return true;
  }

  Operation *loop_;
  std::optional<unsigned> field_;
  llvm::SetVector<Value> versions_;
  llvm::SmallSetVector<Operation *, 2> growing_;
};

} // namespace

bool growsInPlace(Operation *op) {
  Operation *loop = grows(op) ? loopAround(op) : nullptr;
  if (!loop)
    return false;
  BlockArgument carried = loop->getRegion(0).front().getArgument(0);
  Value grown = op->getOperand(0);
  // Through casts and versions that a branch chose, back to what the loop carries.
  for (unsigned field = 0;; ++field) {
    auto tuple = dyn_cast<TupleType>(carried.getType());
    if (tuple ? field == tuple.size() : field > 0)
      return false;
    Versions versions(loop, tuple ? std::optional(field) : std::nullopt);
    bool isSafe = true;
    if (!tuple) {
      isSafe = versions.add(carried);
    } else {
      if (tuple.getType(field) != grown.getType() && !isa<RankedTensorType>(tuple.getType(field)))
        continue;
      for (Operation *user : carried.getUsers()) {
        auto get = dyn_cast<ir::GetOp>(user);
        if (!get)
          return false;
        if (get.getIndex() == field)
          isSafe = isSafe && versions.add(get.getResult());
      }
    }
    if (isSafe && versions.has(grown))
      return true;
  }
}

} // namespace sheaf::passes

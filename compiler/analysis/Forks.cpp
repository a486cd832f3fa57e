//===- Forks.cpp - Who waits for what was forked --------------------------===//

#include "compiler/analysis/Forks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sheaf::passes {

namespace {

/// What a use of what a fork of this block leaves does.
enum class UseKind { HandsOn, TakesApart, Waits };

/// Calls in loops hand nothing on: what they need of outside is there when the first begins.
bool isArgumentOfFork(OpOperand &use, Block *block) {
  auto call = dyn_cast<func::CallOp>(use.getOwner());
  if (!call || !isForked(call))
    return false;
  Operation *around = call->getParentOp();
  return call->getBlock() == block ||
         (isa<scf::IfOp, ir::MatchOp>(around) && isForked(around) && around->getBlock() == block);
}

UseKind kindOf(OpOperand &use, Block *block) {
  if (isArgumentOfFork(use, block))
    return UseKind::HandsOn;
  Operation *user = use.getOwner();
  return isa<ir::GetOp>(user) && user->getBlock() == block ? UseKind::TakesApart : UseKind::Waits;
}

/// Whether any use of what a fork leaves, inside of `op`, is of this kind.
bool anyUse(Operation *fork, Operation *op, UseKind kind) {
  return llvm::any_of(partsOf(fork), [&](Operation *part) {
    return llvm::any_of(part->getUses(), [&](OpOperand &use) {
      return op->isAncestor(use.getOwner()) && kindOf(use, fork->getBlock()) == kind;
    });
  });
}

} // namespace

SmallVector<Operation *> partsOf(Operation *fork) {
  SmallVector<Operation *> parts{fork};
  // Tuples may be in tuples.
  for (size_t i = 0; i < parts.size(); ++i)
    for (Operation *user : parts[i]->getUsers())
      if (isa<ir::GetOp>(user) && user->getBlock() == fork->getBlock())
        parts.push_back(user);
  return parts;
}

bool isHandedTo(Operation *fork, Operation *op) { return anyUse(fork, op, UseKind::HandsOn); }

bool waitsFor(Operation *op, Operation *fork) { return anyUse(fork, op, UseKind::Waits); }

bool isUsedBehind(Operation *fork, Operation *op) {
  return llvm::any_of(partsOf(fork), [&](Operation *part) {
    return llvm::any_of(part->getUsers(), [&](Operation *user) {
      return op->isBeforeInBlock(op->getBlock()->findAncestorOpInBlock(*user));
    });
  });
}

Operation *readsBeside(Operation *op, llvm::function_ref<bool(Operation *)> reads,
                       const llvm::SmallPtrSet<Operation *, 8> &with, Operation *whole) {
  // Who waits for `op`, and for the forks that wait for it, each of which is waited for in turn.
  llvm::SmallPtrSet<Operation *, 8> waiting, handed;
  auto addUses = [&](Operation *fork) {
    for (Operation *part : partsOf(fork))
      for (OpOperand &use : part->getUses()) {
        Operation *user = fork->getBlock()->findAncestorOpInBlock(*use.getOwner());
        UseKind kind = kindOf(use, fork->getBlock());
        if (kind != UseKind::TakesApart)
          (kind == UseKind::HandsOn ? handed : waiting).insert(user);
      }
  };
  addUses(op);
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (next == whole) {
      addUses(next);
      continue;
    }
    if (with.contains(next))
      continue;
    if (waiting.contains(next))
      return nullptr;
    if (handed.contains(next))
      addUses(next);
    else if (reads(next))
      return next;
  }
  return nullptr;
}

} // namespace sheaf::passes

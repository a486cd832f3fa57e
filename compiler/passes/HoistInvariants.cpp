//===- HoistInvariants.cpp - What a loop does not change runs before it ---===//
//
// map(|x| x @ w + tanh(s @ u), xs) computes tanh(s @ u) for every element, and could do so once.
// So what is made of values from outside of a loop alone (Invariants.h) moves before it; where a
// list may be empty and there is much to compute, it runs only if the list has elements.
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Program.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Invariants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Moves what was found in one function.
class HoistInvariants {
public:
  void run(ArrayRef<InvariantBatch> batches) {
    for (const InvariantBatch &batch : batches)
      move(batch);
    dropCopied();
  }

private:
  /// Copies what is free and not there yet, before `place`, and has `op` take that.
  void bring(Operation *op, Operation *place, IRMapping &copies,
             SmallVectorImpl<Operation *> &made) {
    auto isThere = [&](Value value) {
      return value.getParentRegion()->isAncestor(place->getParentRegion());
    };
    op->walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands()) {
        if (op->isAncestor(use.get().getParentBlock()->getParentOp()) || isThere(use.get()))
          continue;
        SmallVector<Operation *> work{use.get().getDefiningOp()};
        while (!work.empty()) {
          Operation *def = work.back();
          size_t before = work.size();
          for (Value operand : def->getOperands())
            if (!isThere(operand) && !copies.contains(operand))
              work.push_back(operand.getDefiningOp());
          if (work.size() > before)
            continue;
          work.pop_back();
          if (copies.contains(def->getResult(0)))
            continue;
          made.push_back(OpBuilder(place).clone(*def, copies));
          copied_.insert(def);
        }
        use.set(copies.lookup(use.get()));
      }
    });
  }

  void move(const InvariantBatch &batch) {
    auto moveAll = [&](ArrayRef<Operation *> ops) {
      IRMapping copies;
      SmallVector<Operation *> moved;
      for (Operation *op : ops) {
        // What it stands in may have moved by now, too.
        Operation *place = batch.loop->getBlock()->findAncestorOpInBlock(*op);
        bring(op, place, copies, moved);
        op->moveBefore(place);
        moved.push_back(op);
      }
      llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      return moved;
    };
    moveAll(batch.ops);
    if (batch.guarded.empty())
      return;
    SmallVector<Operation *> guarded = moveAll(batch.guarded);
    dropCopied(); // else the branch would give what only the originals take
    guard(batch.loop, guarded);
  }

  /// Has operations that stand before a loop run only if its list has elements.
  void guard(Operation *loop, ArrayRef<Operation *> ops) {
    Location loc = ops.front()->getLoc();
    ImplicitLocOpBuilder builder(loc, loop);
    llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
    auto isInside = [&](Operation *user) {
      for (; user && !isa<func::FuncOp>(user); user = user->getParentOp())
        if (inside.contains(user))
          return true;
      return false;
    };
    SmallVector<Value> taken;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (!llvm::all_of(result.getUsers(), isInside))
          taken.push_back(result);
    // What no value can be made up for is computed for an empty list, too.
    if (taken.empty() || !llvm::all_of(taken, [](Value value) { return hasAny(value.getType()); }))
      return;
    Value length = ir::LenOp::create(builder, loop->getOperands().back());
    Value zero = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(0));
    Value any = arith::CmpIOp::create(builder, arith::CmpIPredicate::sgt, length, zero);
    auto branch = scf::IfOp::create(builder, TypeRange(ValueRange(taken)), any, true);
    for (auto [value, result] : llvm::zip(taken, branch.getResults()))
      value.replaceUsesWithIf(result, [&](OpOperand &use) { return !isInside(use.getOwner()); });
    for (Operation *op : ops)
      op->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
    builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(builder, taken);
    builder.setInsertionPointToEnd(branch.elseBlock());
    SmallVector<Value> others;
    for (Value value : taken)
      others.push_back(anyOf(builder, value.getType()));
    scf::YieldOp::create(builder, others);
  }

  static bool hasAny(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return isa<ir::ListType>(type) || (tensor && tensor.getElementType().isF32());
  }

  /// A value that nothing will look at, of a type that has one (hasAny).
  static Value anyOf(ImplicitLocOpBuilder &builder, Type type) {
    if (isa<ir::ListType>(type))
      return ir::ListMakeOp::create(builder, type, ValueRange());
    // Of one where the extent is not known.
    auto tensor = cast<RankedTensorType>(type);
    int64_t unknown = tensor.getNumDynamicDims();
    Value one;
    if (unknown)
      one = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(1));
    SmallVector<Value> extents(static_cast<size_t>(unknown), one);
    return ops::makeFilled(builder, 0, tensor, extents);
  }

  /// What was copied, where nothing takes it any more.
  void dropCopied() {
    SmallVector<Operation *> work(copied_.begin(), copied_.end());
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!copied_.contains(op) || !op->use_empty())
        continue;
      copied_.remove(op);
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          work.push_back(def);
      op->erase();
    }
    copied_.clear();
  }

  llvm::SetVector<Operation *> copied_;
};

LogicalResult hoistInvariants(ModuleOp module, PassContext &context) {
  Invariants invariants(module, context);
  for (auto func : module.getOps<func::FuncOp>())
    if (!func->hasAttr(ir::kFoldedAttr) && !func.isExternal())
      HoistInvariants().run(invariants.find(func));
  return success();
}

} // namespace

PassRecord hoistInvariantsPass() {
  return {.name = "hoist-invariants",
          .description =
              "Runs once, before a loop, what the loop does not change. Of a map, fold, scan or "
              "filter that is what it makes of values from outside of it alone and without a "
              "chance to fail, if that is worth a record; where it is much and the list may be "
              "empty, it runs if the list has elements.",
          .run = hoistInvariants};
}

} // namespace sheaf::passes

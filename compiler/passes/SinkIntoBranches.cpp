//===- SinkIntoBranches.cpp - What one arm takes is computed there --------===//
//
//   let keys = transpose(cache)
//   if first { encode(x) } else { softmax(x @ keys) @ cache }
//
// `keys` is computed where the second arm is taken, and is part of its block. What is worth that
// goes, with all that takes it: what costs more than a record, such as products of extents that the
// program does not know. Light code goes along only where it becomes part of a block of the arm and
// leaves no operand behind that would be stored for it.
//
// An arm that goes on with a recursion which another arm ends is taken nearly always, so what it
// takes stays before the branch, in a block with what is computed in any case.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/Grouping.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/OperatorWork.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

class Sinking {
public:
  Sinking(ModuleOp module, PassContext &context)
      : context_(context), calls_(module), symbols_(module) {}

  void run(func::FuncOp func) {
    // Blocks before those inside of them: what comes into an arm may go on into one of its own.
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          sinkFrom(block);
    });
  }

private:
  /// Of operations of one block, the arm that takes all their results.
  using Targets = llvm::MapVector<Operation *, Region *>;

  void sinkFrom(Block &block) {
    Targets targets = findTargets(block);
    if (targets.empty())
      return;
    llvm::DenseSet<Operation *> moved = choose(targets);
    // Those that are last in the block stand first in `targets`, and come before what is there.
    llvm::MapVector<Region *, SmallVector<Operation *>> byArm;
    for (auto [op, arm] : targets)
      if (moved.contains(op)) {
        op->moveBefore(&arm->front(), arm->front().begin());
        byArm[arm].push_back(op);
      }
    for (auto &[arm, ops] : byArm) {
      std::string names;
      for (Operation *op : llvm::reverse(ops))
        if (op->getNumRegions() > 0 || (isTensorCode(op) && !isSharedOperand(op->getResult(0))))
          names += (names.empty() ? "" : ", ") + nameOf(op);
      if (!names.empty())
        context_.remark(ops.back()->getLoc(), names + ": computed in the one branch that takes it");
    }
  }

  Targets findTargets(Block &block) {
    Targets targets;
    for (Operation &op : llvm::reverse(block)) {
      if (!isMovable(&op) || op.use_empty())
        continue;
      Region *arm = nullptr;
      for (Operation *user : op.getUsers()) {
        Region *taker = armOf(user, block, targets);
        if (!taker || (arm && taker != arm)) {
          arm = nullptr;
          break;
        }
        arm = taker;
      }
      if (arm && mayTake(*arm))
        targets.insert({&op, arm});
    }
    return targets;
  }

  /// The arm that a user of a value of the block stands in, or that all takes what it gives.
  static Region *armOf(Operation *user, Block &block, const Targets &targets) {
    Operation *above = block.findAncestorOpInBlock(*user);
    if (above == user || !isa<scf::IfOp, ir::MatchOp>(above))
      return targets.lookup(above);
    Region *arm = user->getParentRegion();
    while (arm->getParentOp() != above)
      arm = arm->getParentOp()->getParentRegion();
    return arm;
  }

  static bool isMovable(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>() || op->hasAttr(kApartAttr) || !isPure(op))
      return false;
    auto stays = [](Operation *inner) {
      const ops::Op *record = operatorOf(inner);
      return record && (record->draws() || appendsRows(inner) || inner->hasAttr(kApartAttr))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    return !op->walk(stays).wasInterrupted();
  }

  bool mayTake(Region &arm) {
    if (!goesOn(arm))
      return true;
    return llvm::all_of(arm.getParentOp()->getRegions(), [&](Region &other) {
      return &other == &arm || other.empty() || goesOn(other);
    });
  }

  /// Whether the recursion that the code is part of goes on inside.
  bool goesOn(Region &region) {
    auto known = goesOn_.find(&region);
    if (known != goesOn_.end())
      return known->second;
    auto func = region.getParentOfType<func::FuncOp>();
    bool found = calls_.isRecursive(func) &&
                 region
                     .walk([&](func::CallOp call) {
                       auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
                       return callee && calls_.sameCycle(func, callee) ? WalkResult::interrupt()
                                                                       : WalkResult::advance();
                     })
                     .wasInterrupted();
    return goesOn_[&region] = found;
  }

  llvm::DenseSet<Operation *> choose(const Targets &targets) {
    llvm::DenseSet<Operation *> moved;
    auto isMoved = [&](Operation *op) { return moved.contains(op); };
    // In the order of the program: what takes something that moves has to follow it.
    for (auto [op, arm] : llvm::reverse(targets)) {
      bool follows = false;
      op->walk([&](Operation *inner) {
        follows |= llvm::any_of(inner->getOperands(),
                                [&](Value operand) { return isMoved(operand.getDefiningOp()); });
      });
      if (follows || isWorthIt(op))
        moved.insert(op);
    }
    // What only tensor code of the arm takes becomes part of that: all that there is of it, less
    // what would have operands stored for it, and what that takes in turn.
    SmallVector<Operation *> light;
    for (auto [op, arm] : targets)
      if (!isMoved(op) && isTensorCode(op) && llvm::all_of(op->getUsers(), isTensorCode)) {
        light.push_back(op);
        moved.insert(op);
      }
    auto stays = [&](Operation *op) {
      return !leavesNothing(op, moved) || llvm::any_of(op->getUsers(), [&](Operation *user) {
        return user->getBlock() == op->getBlock() && !isMoved(user);
      });
    };
    bool changed = true;
    auto visit = [&](Operation *op) { changed |= isMoved(op) && stays(op) && moved.erase(op); };
    while (changed) {
      changed = false;
      llvm::for_each(light, visit);
      llvm::for_each(llvm::reverse(light), visit);
    }
    return moved;
  }

  /// Whether it takes no tensor that the code before the branch computes and, but for it, keeps to
  /// itself.
  static bool leavesNothing(Operation *op, const llvm::DenseSet<Operation *> &moved) {
    return llvm::none_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return isTensorCode(def) && def->getBlock() == op->getBlock() && !isSharedOperand(operand) &&
             !moved.contains(def);
    });
  }

  /// Whether it costs more than a record of its own would: products and the like of extents that
  /// the program does not know, too.
  bool isWorthIt(Operation *op) {
    auto visit = [&](Operation *inner) {
      if (!isa<ir::ApplyOp>(inner))
        return WalkResult::advance();
      bool isLight = batchRule<ops::Elementwise>(inner) || batchRule<ops::Movement>(inner);
      bool isWorth = work_.of(inner) > kRecordWork || (!isLight && hasUnknownExtents(inner));
      return isWorth ? WalkResult::interrupt() : WalkResult::advance();
    };
    return op->walk(visit).wasInterrupted();
  }

  static std::string nameOf(Operation *op) {
    if (auto apply = dyn_cast<ir::ApplyOp>(op))
      return apply.getOp().str();
    return op->getName().stripDialect().str();
  }

  PassContext &context_;
  CallGraph calls_;
  SymbolTable symbols_;
  OperatorWork work_;
  llvm::DenseMap<Region *, bool> goesOn_; ///< calls never move
};

LogicalResult sinkIntoBranches(ModuleOp module, PassContext &context) {
  Sinking sinking(module, context);
  for (auto func : module.getOps<func::FuncOp>())
    if (!func->hasAttr(ir::kFoldedAttr))
      sinking.run(func);
  return success();
}

} // namespace

PassRecord sinkIntoBranchesPass() {
  return {.name = "sink-into-branches",
          .description =
              "What only one arm of a branch takes is computed in that arm, if it costs more than "
              "a record: products, loops, and what has extents of the instance. What an arm takes "
              "that goes on with a recursion stays before the branch if another arm ends it.",
          .run = sinkIntoBranches};
}

} // namespace sheaf::passes

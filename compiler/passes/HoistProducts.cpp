//===- HoistProducts.cpp - Products that need no state stand apart --------===//
//
// What does not depend on what a recursion carries waits for nothing: as a block of its own it runs
// for all elements of a list, or nodes of a tree, at once. What follows from the row that a token
// names can be memoised, too, for whenever the token comes again. So products of such
// tensors, and what is made of them before the state comes in, are marked: form-blocks keeps them
// apart. What is the same at every step of a loop runs once, before it. Sums are in order
// (order-sums), so it changes no bit.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Precedence.h"
#include "compiler/passes/WeightViews.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

class HoistProducts {
public:
  HoistProducts(ModuleOp module, PassContext &context)
      : module_(module), context_(context), precedence_(module),
        findsAgain_(!context.isOff("identical-records")), takesRows_(!context.isOff("hoist-rows")) {
  }

  void run() {
    moveOutOfLoops();
    module_.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->hasAttr(ir::kFoldedAttr))
        return WalkResult::skip();
      visit(op);
      return WalkResult::advance();
    });
    mark();
  }

private:
  /// Whether an operator makes what is the same outside of a loop around it.
  bool canMove(Operation *op) {
    return isa<ir::ParamRefOp>(op) ||
           (isTensorCode(op) &&
            precedence_.home(op->getResult(0)) < Precedence::loopsAround(op->getBlock()));
  }

  /// Whether a sum that stays takes up an operand's chain as well when that is made elsewhere.
  bool goesOnFrom(Operation *sum, Value value) {
    Value other = sum->getOperand(sum->getOperand(0) == value ? 1 : 0);
    Operation *def = other.getDefiningOp();
    if (sum->hasAttr(ops::kStartAttr))
      return sum->getOperand(0) == value;
    return precedence_.rank(other, sum) != Precedence::kShared &&
           !(def && (precedence_.isChain(def) || Precedence::isSum(def)));
  }

  /// Products that are the same at every step of a loop, and what is made of them, in order.
  SmallVector<Operation *> sameAtEveryStep() {
    llvm::SetVector<Operation *> found;
    module_.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->hasAttr(ir::kFoldedAttr))
        return WalkResult::skip();
      if (isTensorCode(op) && precedence_.rank(op) != Precedence::kShared && canMove(op) &&
          loopBefore(op) &&
          (precedence_.isProduct(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
             return found.contains(operand.getDefiningOp());
           })))
        found.insert(op);
      return WalkResult::advance();
    });
    llvm::DenseSet<Operation *> stay;
    auto moves = [&](Operation *op) { return found.contains(op) && !stay.contains(op); };
    auto mustStay = [&](Operation *op) {
      // What takes what stays, and what a sum that stays would no longer be one chain with.
      return llvm::any_of(op->getOperands(),
                          [&](Value operand) { return stay.contains(operand.getDefiningOp()); }) ||
             ((precedence_.isChain(op) || Precedence::isSum(op)) &&
              llvm::any_of(op->getUsers(), [&](Operation *user) {
                return !(moves(user) && loopBefore(user) == loopBefore(op)) &&
                       Precedence::isSum(user) && !goesOnFrom(user, op->getResult(0));
              }));
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *op : llvm::reverse(found))
        if (!stay.contains(op) && mustStay(op))
          changed |= stay.insert(op).second;
    }
    found.remove_if([&](Operation *op) { return stay.contains(op); });
    return found.takeVector();
  }

  void moveOutOfLoops() {
    llvm::DenseSet<Operation *> done;
    for (Operation *last : sameAtEveryStep()) {
      // What it needs comes before it.
      SmallVector<Operation *> work{last};
      while (!work.empty()) {
        Operation *op = work.back();
        size_t before = work.size();
        for (Value operand : op->getOperands())
          if (Operation *def = operand.getDefiningOp();
              def && !done.contains(def) && canMove(def) && loopBefore(def))
            work.push_back(def);
        if (work.size() > before)
          continue;
        work.pop_back();
        if (!done.insert(op).second)
          continue;
        if (batchRule<ops::Product>(op))
          context_.remark(op->getLoc(), "this product is the same at every step of the loop: it "
                                        "runs once, before it");
        op->moveBefore(loopBefore(op));
      }
    }
  }

  /// The outermost loop around it before which it would be the same, if loops are all that is
  /// between.
  Operation *loopBefore(Operation *op) {
    Operation *loop = nullptr;
    Block *block = op->getBlock();
    unsigned home = precedence_.home(op->getResult(0));
    for (unsigned loops = Precedence::loopsAround(block);
         loops > home && isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(block->getParentOp());
         --loops) {
      loop = block->getParentOp();
      block = loop->getBlock();
    }
    return loop;
  }

  /// Where nothing is memoised, what follows from tokens is like all that is there early.
  unsigned rank(Operation *op) {
    unsigned rank = precedence_.rank(op);
    return rank == Precedence::kToken && !findsAgain_ ? Precedence::kInstance : rank;
  }

  /// Notes what comes from products.
  void visit(Operation *op) {
    if (!isTensorCode(op) || precedence_.rank(op) == Precedence::kShared)
      return;
    if (precedence_.isProduct(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *def = operand.getDefiningOp();
          return def && fromProducts_.contains(def) && rank(def) == rank(op);
        }))
      fromProducts_.insert(op);
  }

  /// Whether something else of the region takes it that is not there as early.
  bool isTakenLater(Operation *op) {
    unsigned own = rank(op);
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      if (user->getBlock() != op->getBlock() || !isTensorCode(user))
        return false;
      unsigned later = rank(user);
      // Where the recursion waits for tensors, each step is recorded when it comes.
      return later > own &&
             (own == Precedence::kToken || (takesRows_ && !precedence_.reads(user, later)));
    });
  }

  void mark() {
    // By rank, so that what earlier ones need is theirs.
    llvm::MapVector<unsigned, SmallVector<Operation *>> byRank;
    unsigned last = 0;
    module_.walk([&](ir::ApplyOp apply) {
      if (fromProducts_.contains(apply) && isTakenLater(apply)) {
        byRank[rank(apply)].push_back(apply);
        last = std::max(last, rank(apply));
      }
    });
    for (unsigned rank = 0; rank <= last; ++rank)
      standApart(rank, byRank.lookup(rank));
  }

  /// Marks the operators, and what is made for these alone.
  void standApart(unsigned rank, SmallVector<Operation *> work) {
    llvm::DenseMap<Block *, OwnViews> views;
    auto markApart = [&](Operation *op) {
      op->setAttr(kApartAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 64), rank));
    };
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (op->hasAttr(kApartAttr))
        continue;
      markApart(op);
      if (batchRule<ops::Product>(op))
        context_.remark(op->getLoc(),
                        rank == Precedence::kToken
                            ? "this product of a token's row stands apart from what else takes "
                              "it: its records are found again"
                            : "this product does not depend on what the recursion carries: it "
                              "stands apart, and runs for all elements at once");
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (!def || !isTensorCode(def) || isFill(def) || def->getBlock() != op->getBlock())
          continue;
        // Others may take a view of a weight, too, or what is made of weights: they must not wait
        // for each other.
        if (isViewOfWeight(operand.get()) && !def->hasOneUse()) {
          SmallVector<Operation *> made;
          operand.set(views[op->getBlock()].of(operand.get(), nullptr, made));
          llvm::for_each(made, markApart);
          continue;
        }
        if (precedence_.rank(operand.get(), op) == Precedence::kShared && !def->hasOneUse()) {
          def = OpBuilder(op).clone(*def);
          def->removeAttr(kApartAttr);
          operand.set(def->getResult(cast<OpResult>(operand.get()).getResultNumber()));
        }
        work.push_back(def);
      }
    }
  }

  ModuleOp module_;
  PassContext &context_;
  Precedence precedence_;
  bool findsAgain_, takesRows_;
  llvm::DenseSet<Operation *> fromProducts_;
};

LogicalResult hoistProducts(ModuleOp module, PassContext &context) {
  HoistProducts(module, context).run();
  return success();
}

} // namespace

PassRecord hoistProductsPass() {
  return {.name = "hoist-products",
          .description =
              "Products of what no recursion around them carries stand in blocks of their own, "
              "also where the program multiplies it together with a state: they run for all "
              "elements at once. Those of a row that a token names do so wherever something else "
              "takes them, and not again for a token that was seen before (identical-records). "
              "Those that are the same at every step of a loop run once, before it.",
          .run = hoistProducts,
          .switches = {{"hoist-rows", "not only products of tokens' rows are hoisted, but also "
                                      "those of an instance's own tensors, which takes a row for "
                                      "each"}}};
}

} // namespace sheaf::passes

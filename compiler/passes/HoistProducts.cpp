//===- HoistProducts.cpp - Products that need no state stand apart --------===//
//
// What does not depend on what a recursion carries waits for nothing: as a block of its own it runs
// for all elements of a list, or nodes of a tree, at once. What follows from the row that a token
// names can be memoised, too, for whenever the token comes again. So products of such
// tensors, and what is made of them before the state comes in, are marked: form-blocks keeps them
// apart. Sums are in order (order-sums), so it changes no bit.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/OwnOperands.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Precedence.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Of a matrix with more rows, a product in the recursion takes each weight for all of them, and
/// one by itself saves no time: it writes and reads the rows of its sums.
constexpr int64_t kMostRows = 2;

class HoistProducts {
public:
  HoistProducts(ModuleOp module, PassContext &context)
      : module_(module), context_(context), precedence_(module),
        findsAgain_(!context.isOff("memoise-records")), takesRows_(!context.isOff("hoist-rows")) {}

  void run() {
    module_.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->hasAttr(ir::kFoldedAttr))
        return WalkResult::skip();
      visit(op);
      return WalkResult::advance();
    });
    mark();
  }

private:
  /// Where nothing is memoised, what follows from tokens is like all that is there early.
  unsigned rank(Operation *op) {
    unsigned rank = precedence_.rank(op);
    return rank == Precedence::kToken && !findsAgain_ ? Precedence::kInstance : rank;
  }

  /// Notes what comes from products.
  void visit(Operation *op) {
    if (!isTensorCode(op) || precedence_.rank(op) == Precedence::kShared)
      return;
    auto comesFrom = [&](const llvm::DenseSet<Operation *> &those) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *def = operand.getDefiningOp();
        return def && those.contains(def) && rank(def) == rank(op);
      });
    };
    bool isProduct = precedence_.isProduct(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    bool hasManyRows = isProduct && type.getRank() == 2 && type.getDimSize(0) > kMostRows;
    if ((isProduct && !hasManyRows) || comesFrom(fromProducts_))
      fromProducts_.insert(op);
    else if (hasManyRows || comesFrom(fromMany_))
      fromMany_.insert(op);
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
      } else if (fromMany_.contains(apply) && isTakenLater(apply)) {
        context_.remark(apply.getLoc(), "this product does not depend on what the recursion "
                                        "carries, but has rows enough to run well inside: it "
                                        "stays");
      }
    });
    for (unsigned rank = 0; rank <= last; ++rank)
      standApart(rank, byRank.lookup(rank));
  }

  /// Marks the operators, and what is made for these alone.
  void standApart(unsigned rank, SmallVector<Operation *> work) {
    llvm::DenseMap<Block *, OwnOperands> views;
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
  llvm::DenseSet<Operation *> fromMany_; ///< from products of matrices with many rows
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
              "takes them, and not again for a token that was seen before (memoise-records).",
          .run = hoistProducts,
          .switches = {{"hoist-rows", "not only products of tokens' rows are hoisted, but also "
                                      "those of an instance's own tensors, which takes a row for "
                                      "each"}}};
}

} // namespace sheaf::passes

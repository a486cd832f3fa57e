//===- TokenProducts.cpp - Products of tokens' rows stand apart -----------===//
//
// A cell multiplies its input and its state. What follows from the row that a token names can be
// found again whenever the token comes again (identical records), and it waits for nothing, so it
// runs for all tokens at once: but only as a block of its own. So a product of concat(row, state)
// becomes the sum of two products, sums are put in order, and what follows from tokens' rows alone
// is marked: form-blocks keeps it apart.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/passes/OpQueries.h"
#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// A record, with what looks for it, costs about as much time as so many multiply-adds.
constexpr int64_t kLeastWork = 1024;

class TokenProducts {
public:
  TokenProducts(ModuleOp module, PassContext &context) : module_(module), context_(context) {}

  void run() {
    findTokens();
    for (ir::ApplyOp product : productsOfBoth())
      divide(product);
    findTokens();
    for (ir::ApplyOp sum : sumsOfBoth())
      order(sum);
    findTokens();
    mark();
  }

private:
  //===--- What follows from tokens ------------------------------------------===//

  /// Finds what follows from parameters' rows, constants and weights alone, and what of it comes
  /// from a product.
  void findTokens() {
    shared_.clear();
    tokens_.clear();
    products_.clear();
    module_.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->hasAttr(ir::kFoldedAttr))
        return WalkResult::skip();
      visit(op);
      return WalkResult::advance();
    });
  }

  void visit(Operation *op) {
    if (auto apply = dyn_cast<ir::ApplyOp>(op))
      return visitOperator(apply);
    if (isa<ir::ParamRefOp>(op))
      shared_.insert(op->getResult(0));
    // Lists of parameters' rows.
    else if (isa<ir::ReverseOp, ir::ListSliceOp, ir::ListGetOp, ir::FilterOp>(op))
      noteIf(tokens_.contains(op->getOperand(0)), op->getResult(0));
    if (isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op))
      noteIf(tokens_.contains(op->getOperands().back()),
             op->getRegion(0).getArgument(isa<ir::FoldOp, ir::ScanOp>(op) ? 1 : 0));
    else if (isa<ir::YieldOp>(op) && isa<ir::MapOp>(op->getParentOp()))
      noteIf(isRow(op->getOperand(0)), op->getParentOp()->getResult(0));
  }

  void noteIf(bool isToken, Value value) {
    if (isToken)
      tokens_.insert(value);
  }

  bool isRow(Value value) const {
    return tokens_.contains(value) && !isTensorCode(value.getDefiningOp());
  }

  void visitOperator(ir::ApplyOp apply) {
    if (auto *address = batchRule<ops::HostAddress>(apply))
      return noteIf(address->kind == ops::HostAddress::Row && shared_.contains(apply.getOperand(0)),
                    apply.getResult(0));
    // What a fold gives comes again only when all of its list does.
    if (!isTensorCode(apply) || operatorOf(apply)->draws() || batchRule<ops::Fold>(apply))
      return;
    bool isToken = false, isProductOf = isProduct(apply);
    for (Value operand : apply->getOperands()) {
      isToken |= tokens_.contains(operand);
      isProductOf |= products_.contains(operand);
      if (!tokens_.contains(operand) && !shared_.contains(operand) &&
          !isa_and_nonnull<arith::ConstantOp>(operand.getDefiningOp()))
        return;
    }
    (isToken ? tokens_ : shared_).insert_range(apply->getResults());
    if (isToken && isProductOf)
      products_.insert_range(apply->getResults());
  }

  /// Of numbers that are not rounded when they are stored.
  static bool isExact(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().isF32();
  }

  /// A row by a weight, of some size.
  bool isProduct(ir::ApplyOp apply) const {
    if (!batchRule<ops::Product>(apply) || !shared_.contains(apply.getOperand(1)))
      return false;
    auto row = cast<RankedTensorType>(apply.getOperand(0).getType());
    auto weight = cast<RankedTensorType>(apply.getOperand(1).getType());
    return isExact(apply.getResult(0)) && row.getRank() == 1 && weight.getRank() == 2 &&
           row.hasStaticShape() && weight.hasStaticShape() && weight.getNumElements() >= kLeastWork;
  }

  /// Others may get its address.
  void erase(Operation *op) {
    for (Value result : op->getResults()) {
      shared_.erase(result);
      tokens_.erase(result);
      products_.erase(result);
    }
    op->erase();
  }

  //===--- Products of both --------------------------------------------------===//

  /// Pieces of a concatenation, one behind the other, that follow from tokens, or do not.
  struct Run {
    size_t begin, end;
    int64_t size; ///< elements
    bool isToken;
  };

  /// The longest runs; one of tokens that is too short for a product of its own counts as none.
  SmallVector<Run> runsOf(ir::ApplyOp concat, ir::ApplyOp product) const {
    int64_t columns = cast<RankedTensorType>(product.getResult(0).getType()).getNumElements();
    SmallVector<Run> runs;
    auto add = [&](Run run) {
      if (runs.empty() || runs.back().isToken != run.isToken)
        return runs.push_back(run);
      runs.back().end = run.end;
      runs.back().size += run.size;
    };
    for (auto [i, piece] : llvm::enumerate(concat.getOperands()))
      add({i, i + 1, cast<RankedTensorType>(piece.getType()).getNumElements(),
           tokens_.contains(piece)});
    for (Run run : std::exchange(runs, {})) {
      run.isToken &= run.size * columns >= kLeastWork;
      add(run);
    }
    return runs;
  }

  SmallVector<ir::ApplyOp> productsOfBoth() {
    SmallVector<ir::ApplyOp> found;
    module_.walk([&](ir::ApplyOp apply) {
      if (!isProduct(apply))
        return;
      auto concat = apply.getOperand(0).getDefiningOp<ir::ApplyOp>();
      auto *movement = batchRule<ops::Movement>(concat);
      if (!movement || movement->kind != ops::Movement::Concat)
        return;
      if (runsOf(concat, apply).size() > 1)
        found.push_back(apply);
    });
    return found;
  }

  /// A product for each run of pieces that do, or do not, follow from tokens alone.
  void divide(ir::ApplyOp product) {
    auto concat = product.getOperand(0).getDefiningOp<ir::ApplyOp>();
    ImplicitLocOpBuilder builder(product.getLoc(), product);
    SmallVector<Value> pieces(concat.getOperands()), terms;
    int64_t begin = 0;
    for (const Run &run : runsOf(concat, product)) {
      ValueRange joined = ArrayRef(pieces).slice(run.begin, run.end - run.begin);
      Value left = joined.size() == 1
                       ? joined[0]
                       : ops::applyOne(builder, concat.getOp(), joined, {{"axis", int64_t(0)}});
      Value right = ops::applyOne(builder, "window", product.getOperand(1),
                                  {{"start", begin}, {"size", run.size}, {"axis", int64_t(0)}});
      terms.push_back(ops::applyOne(builder, product.getOp(), {left, right}));
      begin += run.size;
    }
    Value sum = terms.front();
    for (Value term : ArrayRef(terms).drop_front())
      sum = ops::applyOne(builder, "add", {sum, term});
    product.getResult(0).replaceAllUsesWith(sum);
    erase(product);
    if (concat->use_empty())
      erase(concat);
  }

  //===--- Sums of both ------------------------------------------------------===//

  static bool isSum(Operation *op) {
    auto apply = dyn_cast_or_null<ir::ApplyOp>(op);
    return apply && apply.getOp() == "add" && isExact(apply.getResult(0)) &&
           llvm::all_of(apply.getOperandTypes(),
                        [&](Type type) { return type == apply.getResult(0).getType(); });
  }

  /// Whether a sum is a term of another, and nothing else.
  static bool isPart(Operation *op) {
    return isSum(op) && op->hasOneUse() && isSum(*op->user_begin()) &&
           op->getBlock() == (*op->user_begin())->getBlock();
  }

  static SmallVector<Value> termsOf(ir::ApplyOp sum) {
    SmallVector<Value> terms, work{sum.getOperand(1), sum.getOperand(0)};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (Operation *op = value.getDefiningOp(); op && isPart(op))
        work.append({op->getOperand(1), op->getOperand(0)});
      else
        terms.push_back(value);
    }
    return terms;
  }

  SmallVector<ir::ApplyOp> sumsOfBoth() {
    SmallVector<ir::ApplyOp> found;
    module_.walk([&](ir::ApplyOp apply) {
      if (!isSum(apply) || isPart(apply) || tokens_.contains(apply.getResult(0)))
        return;
      SmallVector<Value> terms = termsOf(apply);
      if (terms.size() > 2 &&
          llvm::any_of(terms, [&](Value term) { return products_.contains(term); }))
        found.push_back(apply);
    });
    return found;
  }

  /// What follows from tokens and constants is summed for itself.
  void order(ir::ApplyOp sum) {
    ImplicitLocOpBuilder builder(sum.getLoc(), sum);
    Value own, others;
    for (Value term : termsOf(sum)) {
      Value &to = tokens_.contains(term) || shared_.contains(term) ? own : others;
      to = to ? ops::applyOne(builder, "add", {to, term}) : term;
    }
    SmallVector<Operation *> old{sum};
    sum.getResult(0).replaceAllUsesWith(ops::applyOne(builder, "add", {others, own}));
    while (!old.empty()) {
      Operation *op = old.pop_back_val();
      SmallVector<Operation *> parts;
      for (Value operand : op->getOperands())
        if (Operation *part = operand.getDefiningOp(); part && isPart(part))
          parts.push_back(part);
      erase(op);
      old.append(parts);
    }
  }

  //===--- What stands apart -------------------------------------------------===//

  /// Marks what comes from products of tokens' rows, and what is made for these alone, where
  /// something else of the region takes it.
  void mark() {
    llvm::SetVector<Operation *> apart;
    module_.walk([&](ir::ApplyOp apply) {
      if (products_.contains(apply.getResult(0)) && isTakenByOthers(apply))
        apart.insert(apply);
    });
    for (size_t i = 0; i < apart.size(); ++i) {
      Operation *op = apart[i];
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (!def || !isTensorCode(def) || isFill(def) || def->getBlock() != op->getBlock())
          continue;
        // Others may take a view of a weight, too: they must not wait for each other.
        if (!tokens_.contains(operand.get()) && !def->hasOneUse()) {
          def = OpBuilder(op).clone(*def);
          operand.set(def->getResult(cast<OpResult>(operand.get()).getResultNumber()));
        }
        apart.insert(def);
      }
    }
    for (Operation *op : apart) {
      op->setAttr(kApartAttr, UnitAttr::get(op->getContext()));
      if (batchRule<ops::Product>(op))
        context_.remark(op->getLoc(), "this product of a token's row stands apart from what else "
                                      "takes it: its records are found again");
    }
  }

  bool isTakenByOthers(ir::ApplyOp apply) const {
    return llvm::any_of(apply->getUsers(), [&](Operation *user) {
      return user->getBlock() == apply->getBlock() && isTensorCode(user) &&
             !tokens_.contains(user->getResult(0));
    });
  }

  ModuleOp module_;
  PassContext &context_;
  /// What is the same for all instances; what follows from tokens, and lists of it; what of that
  /// comes from a product.
  llvm::DenseSet<Value> shared_, tokens_, products_;
};

LogicalResult divideTokenProducts(ModuleOp module, PassContext &context) {
  if (context.isOff("identical-records")) {
    context.remark(module.getLoc(), "identical-records is off: there are no records to find again");
    return success();
  }
  TokenProducts(module, context).run();
  return success();
}

} // namespace

PassRecord tokenProductsPass() {
  return {.name = "token-products",
          .description =
              "Products of a row that a token names stand in blocks of their own, also where the "
              "program multiplies the row together with a state: they run for all tokens at once, "
              "and not again for a token that was seen before (identical-records).",
          .run = divideTokenProducts};
}

} // namespace sheaf::passes

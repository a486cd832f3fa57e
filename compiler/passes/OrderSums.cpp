//===- OrderSums.cpp - Sums begin with what is there first ----------------===//
//
// A cell multiplies its input and its state, and what it adds up is one chain of multiply-adds. The
// chain runs first over what is there first: over what follows from tokens, then over what depends
// on no recursion around it, last over what its own recursion carries; of what is there as early,
// first over what is the same at every step of a loop. So the first part may as
// well have been computed before, in a block of its own (hoist-products), where the second chain
// begins: no bit shows whether it was. For this a product of concat(state, row) becomes two, the
// terms of sums are put in order, and the sums that go on with a chain are marked.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Precedence.h"

#include <numeric>

using namespace mlir;

namespace sheaf::passes {
namespace {

//===--- Products of both ----------------------------------------------------===//

/// What of a product is there first, in the order of numbers: by its rank, and by the loops around
/// what it is made of.
constexpr unsigned kLoops = 64;
unsigned placeOf(Value value, Operation *at, Precedence &precedence) {
  unsigned rank = precedence.rank(value, at);
  return rank == Precedence::kShared ? Precedence::kShared
                                     : rank * kLoops + std::min(precedence.home(value), kLoops - 1);
}

/// Pieces of a concatenation, one after the other, of one rank.
struct Run {
  size_t begin, end;
  int64_t size; ///< elements of a row
  unsigned rank;
};

/// A product of a concatenation, and its runs.
struct Division {
  ir::ApplyOp product;
  SmallVector<Run> runs;
};

ir::ApplyOp concatOf(ir::ApplyOp product) {
  auto concat = product.getOperand(0).getDefiningOp<ir::ApplyOp>();
  auto *movement = batchRule<ops::Movement>(concat);
  return movement && movement->kind == ops::Movement::Concat &&
                 ops::intAttr(concat, "axis") + 1 == ops::rankOf(concat.getResult(0))
             ? concat
             : ir::ApplyOp();
}

int64_t columnsOf(Value rows) { return cast<RankedTensorType>(rows.getType()).getShape().back(); }

/// The longest runs; one that is too short for a product of its own is as late as the latest.
SmallVector<Run> runsOf(ir::ApplyOp concat, ir::ApplyOp product, Precedence &precedence) {
  int64_t columns = columnsOf(product.getResult(0));
  unsigned latest = 0;
  SmallVector<Run> runs;
  auto add = [&](Run run) {
    if (runs.empty() || runs.back().rank != run.rank)
      return runs.push_back(run);
    runs.back().end = run.end;
    runs.back().size += run.size;
  };
  for (auto [i, piece] : llvm::enumerate(concat.getOperands())) {
    unsigned rank = placeOf(piece, product, precedence);
    latest = std::max(latest, rank);
    add({i, i + 1, columnsOf(piece), rank});
  }
  for (Run run : std::exchange(runs, {})) {
    if (run.size * columns < kLeastProduct)
      run.rank = latest;
    add(run);
  }
  return runs;
}

/// A product for each run.
void divide(const Division &division) {
  ir::ApplyOp product = division.product, concat = concatOf(product);
  ImplicitLocOpBuilder builder(product.getLoc(), product);
  SmallVector<Value> pieces(concat.getOperands()), terms;
  int64_t begin = 0, axis = ops::rankOf(product.getOperand(0)) - 1;
  for (const Run &run : division.runs) {
    ValueRange joined = ArrayRef(pieces).slice(run.begin, run.end - run.begin);
    Value left = joined.size() == 1 ? joined[0] : ops::makeJoined(builder, joined, axis);
    Value right = ops::makePart(builder, product.getOperand(1), begin, run.size, 0);
    terms.push_back(ops::applyOne(builder, product.getOp(), {left, right}));
    begin += run.size;
  }
  Value sum = terms.front();
  for (Value term : ArrayRef(terms).drop_front())
    sum = ops::makeSum(builder, sum, term);
  product.getResult(0).replaceAllUsesWith(sum);
  product.erase();
  if (concat->use_empty())
    concat.erase();
}

//===--- Sums ----------------------------------------------------------------===//

/// Whether a sum is a term of another, and nothing else.
bool isPart(Operation *op) {
  return Precedence::isSum(op) && op->hasOneUse() && Precedence::isSum(*op->user_begin()) &&
         op->getBlock() == (*op->user_begin())->getBlock();
}

SmallVector<Value> termsOf(ir::ApplyOp sum) {
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

/// Of each term its rank, and its place among those of one rank: products, then constants and
/// weights, then others.
struct Term {
  unsigned rank;
  unsigned kind;
  bool chains; ///< a product, if only a little one
};

/// A sum, and of its terms, in the order of the program, what they are.
struct Ordering {
  ir::ApplyOp sum;
  SmallVector<Term> terms;
};

/// What the terms are where one is a product that is there before another term.
std::optional<Ordering> orderingOf(ir::ApplyOp sum, Precedence &precedence) {
  Ordering ordering{sum, {}};
  SmallVector<Value> values = termsOf(sum);
  unsigned first = ~0u, last = 0, firstProduct = ~0u;
  for (Value value : values) {
    Operation *def = value.getDefiningOp();
    bool isHere = def && def->getBlock() == sum->getBlock();
    bool isProduct = isHere && precedence.isProduct(def);
    Term term{placeOf(value, sum, precedence), isProduct ? 0u : 2u,
              isHere && precedence.isChain(def)};
    if (isProduct)
      firstProduct = std::min(firstProduct, term.rank);
    last = std::max(last, term.chains ? term.rank : term.rank / kLoops * kLoops);
    // What is no product comes after all that are of its rank.
    if (!isProduct && term.rank != Precedence::kShared)
      term.rank = (term.rank / kLoops + 1) * kLoops - 1;
    if (term.rank != Precedence::kShared)
      first = std::min(first, term.rank);
    ordering.terms.push_back(term);
  }
  if (firstProduct >= last)
    return std::nullopt;
  // Constants and weights are added to the first product.
  for (Term &term : ordering.terms)
    if (term.rank == Precedence::kShared)
      term = {first, 1, false};
  return ordering;
}

void order(const Ordering &ordering) {
  ir::ApplyOp sum = ordering.sum;
  ImplicitLocOpBuilder builder(sum.getLoc(), sum);
  SmallVector<Value> values = termsOf(sum);
  std::vector<size_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  llvm::sort(places, [&](size_t a, size_t b) {
    const Term &x = ordering.terms[a], &y = ordering.terms[b];
    return std::tuple(x.rank, x.kind, a) < std::tuple(y.rank, y.kind, b);
  });
  Value all = values[places.front()];
  unsigned rank = ordering.terms[places.front()].rank;
  for (size_t place : ArrayRef(places).drop_front()) {
    const Term &term = ordering.terms[place];
    all = ops::makeSum(builder, all, values[place]);
    if (term.rank != rank && term.chains)
      all.getDefiningOp()->setAttr(ops::kStartAttr, builder.getUnitAttr());
    rank = term.rank;
  }
  SmallVector<Operation *> old{sum};
  sum.getResult(0).replaceAllUsesWith(all);
  while (!old.empty()) {
    Operation *op = old.pop_back_val();
    SmallVector<Operation *> parts;
    for (Value operand : op->getOperands())
      if (Operation *part = operand.getDefiningOp(); part && isPart(part))
        parts.push_back(part);
    op->erase();
    old.append(parts);
  }
}

//===--- The pass --------------------------------------------------------------===//

LogicalResult orderSums(ModuleOp module, PassContext &) {
  // Ranks are those of the program before it changes.
  SmallVector<Division> divisions;
  {
    Precedence precedence(module);
    module.walk([&](ir::ApplyOp apply) {
      if (!precedence.isProduct(apply))
        return;
      if (ir::ApplyOp concat = concatOf(apply))
        if (SmallVector<Run> runs = runsOf(concat, apply, precedence); runs.size() > 1)
          divisions.push_back({apply, std::move(runs)});
    });
  }
  llvm::for_each(divisions, divide);

  SmallVector<Ordering> orderings;
  {
    Precedence precedence(module);
    module.walk([&](ir::ApplyOp apply) {
      if (Precedence::isSum(apply) && !isPart(apply))
        if (std::optional<Ordering> ordering = orderingOf(apply, precedence))
          orderings.push_back(std::move(*ordering));
    });
  }
  llvm::for_each(orderings, order);
  return success();
}

} // namespace

PassRecord orderSumsPass() {
  return {.name = "order-sums",
          .description =
              "Sums of products run first over what is there first: what follows from tokens, what "
              "no recursion around them carries (before all what is the same at every step of a "
              "loop), then the state. So it changes no bit whether the "
              "first part is computed before (hoist-products).",
          .run = orderSums,
          .required = true};
}

} // namespace sheaf::passes

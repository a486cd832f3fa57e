//===- RoundFactors.cpp - Factors of the record's own are rounded once ----===//
//
// A product in bf16 whose operands are the record's own rounds each factor where it multiplies it:
// keys and values again for every few queries. Where there are several rows, each operand becomes a
// tensor of bf16 first, half as large, which all products that take it share. What is rounded twice
// is rounded once, so no bit tells.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/BlockTable.h"
#include "compiler/passes/Factors.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {

RankedTensorType typeOfFactors(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(BFloat16Type::get(type.getContext()));
}

void moveFactors(Operation *op, llvm::DenseMap<Value, Value> &factors) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  IRMapping map;
  for (Value operand : op->getOperands())
    if (Value moved = factors.lookup(operand))
      map.map(operand, moved);
  Operation *copy = builder.clone(*op, map);
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults())) {
    to.setType(typeOfFactors(from));
    factors[from] = to;
  }
}

namespace {

class FactorRounding {
public:
  explicit FactorRounding(ir::BlockOp block)
      : block_(block), builder_(block.getLoc(), block.getContext()) {}

  /// How many products take rounded factors.
  unsigned run() {
    SmallVector<ir::ApplyOp> products;
    for (Operation &op : block_.getBody().front())
      if (auto *rule = batchRule<ops::Product>(&op);
          rule && rule->bf16 && takesRounded(cast<ir::ApplyOp>(&op)))
        products.push_back(cast<ir::ApplyOp>(&op));
    for (ir::ApplyOp product : products) {
      Value left = factorsOf(product.getOperand(0)), right = factorsOf(product.getOperand(1));
      builder_.setInsertionPoint(product);
      builder_.setLoc(product.getLoc());
      Value sums = ops::applyOne(builder_, operatorOf(product)->ofFactors, {left, right});
      sums.setType(product.getResult(0).getType());
      product.getResult(0).replaceAllUsesWith(sums);
      product->erase();
    }
    eraseUnused(block_);
    return static_cast<unsigned>(products.size());
  }

private:
  /// Whether the operands are the record's own, and rounding them pays: with one row each factor is
  /// taken once, but a right operand that is turned is laid out anew in any case.
  bool takesRounded(ir::ApplyOp product) {
    auto left = cast<RankedTensorType>(product.getOperand(0).getType());
    bool isNarrow = llvm::any_of(product.getOperands(), [](Value operand) {
      return ops::dtypeOf(operand) != ops::DType::F32;
    });
    return !operatorOf(product)->ofFactors.empty() && !isNarrow && left.getRank() >= 2 &&
           (left.getShape().end()[-2] != 1 || isTurned(product.getOperand(1))) &&
           llvm::none_of(product.getOperands(), [&](Value v) { return isOfWeight(v); });
  }

  static bool isTurned(Value right) {
    auto transpose = right.getDefiningOp<ir::ApplyOp>();
    int64_t rank = ops::rankOf(right);
    if (!transpose || !moves(transpose, ops::Movement::Transpose))
      return false;
    int64_t first = ops::axisOf(transpose, "axis1", -2, rank),
            second = ops::axisOf(transpose, "axis2", -1, rank);
    return first != second && std::max(first, second) == rank - 1;
  }

  /// Whether a tensor is a part of weights: these are packed.
  bool isOfWeight(Value value) {
    while (batchRule<ops::Movement>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() >= static_cast<unsigned>(block_.getNumArgs());
  }

  /// Whether a tensor is what others, of which one at least is computed here, lie like elsewhere:
  /// these are rounded then, where they are made.
  bool movesComputed(Value value) {
    Operation *op = value.getDefiningOp();
    bool isComputed = false;
    return batchRule<ops::Movement>(op) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) {
                          isComputed |=
                              operand.getDefiningOp() && isa<RankedTensorType>(operand.getType());
                          return !isa<TensorType>(operand.getType()) ||
                                 ops::dtypeOf(operand) == ops::DType::F32;
                        }) &&
           isComputed;
  }

  /// The tensor in bf16.
  Value factorsOf(Value value) {
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.back();
      if (factors_.contains(next)) {
        work.pop_back();
        continue;
      }
      if (!movesComputed(next)) {
        round(next);
        continue;
      }
      size_t before = work.size();
      Operation *op = next.getDefiningOp();
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()) && !factors_.contains(operand))
          work.push_back(operand);
      if (work.size() == before)
        move(op);
    }
    return factors_.lookup(value);
  }

  void move(Operation *op) {
    moveFactors(op, factors_);
    // So that nothing may be left that takes it as it was.
    for (Value from : op->getResults())
      from.replaceUsesWithIf(factors_.lookup(from),
                             [](OpOperand &use) { return isa<ir::DimOp>(use.getOwner()); });
  }

  /// What was rounded to f32 is read from the factors.
  void round(Value value) {
    if (value.getDefiningOp())
      builder_.setInsertionPointAfterValue(value);
    else
      builder_.setInsertionPointToStart(&block_.getBody().front());
    builder_.setLoc(value.getLoc());
    auto *rule = batchRule<ops::Elementwise>(value.getDefiningOp());
    bool isRounded = rule && rule->factor;
    Value factors =
        ops::makeFactors(builder_, isRounded ? value.getDefiningOp()->getOperand(0) : value);
    factors.setType(typeOfFactors(value));
    factors_[value] = factors;
    if (isRounded) {
      Value read = ops::widen(builder_, factors);
      read.setType(value.getType());
      value.replaceAllUsesWith(read);
      factors_[read] = factors;
    }
  }

  ir::BlockOp block_;
  ImplicitLocOpBuilder builder_;
  llvm::DenseMap<Value, Value> factors_;
};

LogicalResult roundFactors(ModuleOp module, PassContext &context) {
  for (auto block : module.getOps<ir::BlockOp>())
    if (unsigned products = FactorRounding(block).run())
      context.remark(block.getLoc(), "block " + block.getSymName() + ": " + Twine(products) +
                                         (products == 1 ? " product takes" : " products take") +
                                         " factors that were rounded before");
  return success();
}

} // namespace

PassRecord roundFactorsPass() {
  return {.name = "round-factors",
          .description = "The factors of products in bf16 of the record's own matrices are rounded "
                         "once, to tensors of bf16 that all products which take them share.",
          .run = roundFactors,
          .after = Level::Blocks};
}

} // namespace sheaf::passes

//===- BranchWeights.cpp - Products with one of several weights -----------===//
//
// `x @ experts[k]`: which weight it is, data say. As an operand it is a matrix of each record,
// which nothing shares, and its gradient a matrix for each. With the product in the branches, each
// has the records that chose its weight.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Products.h"
#include "compiler/passes/SharedTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// With more weights each has few records, and is read in place as well.
constexpr int64_t kMostWeights = 16;
/// Elements of a matrix for which launches of its own are worth it.
constexpr int64_t kLeastElements = 4096;

class BranchWeights {
public:
  BranchWeights(ModuleOp module, PassContext &context)
      : module_(module), context_(context),
        shared_(!module->hasAttr(ops::kTrainingAttr) || !context.isOff("fold-weights")) {}

  void run() {
    for (ir::ApplyOp product : productsIn(module_))
      for (unsigned side : {1U, 0U})
        if (!shared_.contains(product.getOperand(1 - side)) && branch(product, side))
          break;
  }

private:
  static bool isLarge(Value matrix) {
    RankedTensorType type = tensorTypeOf(matrix);
    return type.getRank() == 2 && type.hasStaticShape() && type.getNumElements() >= kLeastElements;
  }

  bool branch(ir::ApplyOp product, unsigned side) {
    Value operand = product.getOperand(side), source = transposedBy(operand);
    Value matrix = source ? source : operand;
    if (!isLarge(matrix))
      return false;
    // The same product with another matrix.
    auto with = [&](OpBuilder &builder, Value weight) -> Value {
      ops::ExpandBuilder b(product.getLoc(), product);
      b.setInsertionPoint(builder.getInsertionBlock(), builder.getInsertionPoint());
      if (source)
        weight = ops::makeTransposed(b, weight, 0, 1);
      SmallVector<Value> operands(product.getOperands());
      operands[side] = weight;
      auto one = ir::ApplyOp::create(b, product.getResultTypes(), product.getOp(), operands,
                                     product.getAttrs());
      return one.getResult(0);
    };
    OpBuilder builder(product);
    Value all;
    if (auto chosen = matrix.getDefiningOp<scf::IfOp>()) {
      unsigned number = cast<OpResult>(matrix).getResultNumber();
      if (weightsIn(chosen, number) > kMostWeights)
        return false;
      IRMapping mapping;
      all = inBranches(builder, chosen, number, mapping, product, with);
    } else if (auto pick = matrix.getDefiningOp<ir::ApplyOp>(); isPickOfWeights(pick)) {
      int64_t count = tensorTypeOf(pick.getOperand(0)).getDimSize(0);
      all = byIndex(builder, pick, 0, count, product, with);
    } else {
      return false;
    }
    context_.remark(product.getLoc(), "a product for each weight that may be chosen");
    product.getResult(0).replaceAllUsesWith(all);
    product.erase();
    return true;
  }

  /// A matrix of a parameter with an axis of them, by a number that is not known.
  bool isPickOfWeights(ir::ApplyOp pick) {
    if (!pick || !isPickByHost(pick.getResult(0)) || !shared_.isOfWeights(pick.getOperand(0)))
      return false;
    RankedTensorType batch = tensorTypeOf(pick.getOperand(0));
    return batch.hasStaticShape() && batch.getDimSize(0) > 1 &&
           batch.getDimSize(0) <= kMostWeights && !getConstantIntValue(pick.getOperand(1));
  }

  /// Whether nothing takes what a branch gives but the one around it.
  static bool isGivenOn(scf::IfOp branch) {
    return llvm::all_of(branch->getUsers(),
                        [](Operation *user) { return isa<scf::YieldOp>(user); });
  }

  /// How many weights a branch chooses from; more than there may be, where something else may come
  /// out, or something happens in it.
  int64_t weightsIn(scf::IfOp branch, unsigned result) {
    int64_t count = 0;
    for (Region &region : branch->getRegions()) {
      if (region.empty())
        return kMostWeights + 1;
      Value yielded = region.front().getTerminator()->getOperand(result);
      auto inner = yielded.getDefiningOp<scf::IfOp>();
      if (inner && inner->getParentRegion() != &region)
        inner = nullptr;
      for (Operation &op : region.front().without_terminator())
        if (inner == &op ? !isGivenOn(inner) : !isMemoryEffectFree(&op))
          return kMostWeights + 1;
      if (inner)
        count += weightsIn(inner, cast<OpResult>(yielded).getResultNumber());
      else
        count += shared_.isOfWeights(yielded) ? 1 : kMostWeights + 1;
      if (count > kMostWeights)
        break;
    }
    return count;
  }

  using With = llvm::function_ref<Value(OpBuilder &, Value)>;

  /// The branch once more, with what `with` makes of the weight in each arm.
  Value inBranches(OpBuilder &builder, scf::IfOp branch, unsigned result, IRMapping &mapping,
                   ir::ApplyOp product, With with) {
    auto copy = scf::IfOp::create(builder, product.getLoc(), product.getResultTypes(),
                                  mapping.lookupOrDefault(branch.getCondition()),
                                  /*addElseBlock=*/true);
    for (auto [from, to] : llvm::zip(branch->getRegions(), copy->getRegions())) {
      Block &block = to.front();
      OpBuilder inside = OpBuilder::atBlockEnd(&block);
      Value yielded = from.front().getTerminator()->getOperand(result), made;
      for (Operation &op : from.front().without_terminator()) {
        if (yielded.getDefiningOp() == &op && isa<scf::IfOp>(op))
          made = inBranches(inside, cast<scf::IfOp>(op), cast<OpResult>(yielded).getResultNumber(),
                            mapping, product, with);
        else
          inside.clone(op, mapping);
      }
      if (!made)
        made = with(inside, mapping.lookupOrDefault(yielded));
      scf::YieldOp::create(inside, product.getLoc(), made);
    }
    return copy.getResult(0);
  }

  /// The matrices from `begin` to `end`, by halves: a check has said that the index is one of all.
  Value byIndex(OpBuilder &builder, ir::ApplyOp pick, int64_t begin, int64_t end,
                ir::ApplyOp product, With with) {
    Location where = product.getLoc();
    auto number = [&](int64_t value) {
      return arith::ConstantOp::create(builder, where, builder.getI64IntegerAttr(value));
    };
    if (end - begin == 1) {
      IRMapping known;
      known.map(pick.getOperand(1), number(begin));
      return with(builder, builder.clone(*pick, known)->getResult(0));
    }
    int64_t middle = begin + (end - begin) / 2;
    Value isBelow = arith::CmpIOp::create(builder, where, arith::CmpIPredicate::slt,
                                          pick.getOperand(1), number(middle));
    auto branch = scf::IfOp::create(builder, where, product.getResultTypes(), isBelow,
                                    /*addElseBlock=*/true);
    for (bool below : {true, false}) {
      Block &block = (below ? branch.getThenRegion() : branch.getElseRegion()).front();
      OpBuilder inside = OpBuilder::atBlockEnd(&block);
      Value made =
          byIndex(inside, pick, below ? begin : middle, below ? middle : end, product, with);
      scf::YieldOp::create(inside, where, made);
    }
    return branch.getResult(0);
  }

  ModuleOp module_;
  PassContext &context_;
  SharedTensors shared_;
};

LogicalResult branchWeights(ModuleOp module, PassContext &context) {
  BranchWeights(module, context).run();
  return success();
}

} // namespace

PassRecord branchWeightsPass() {
  return {.name = "branch-weights",
          .description =
              "A product with one of up to 16 weights that an index or a branch chooses "
              "(x @ experts[k]) stands in a branch for each of them, where it is a product with a "
              "weight: the records that chose it are one launch, and so are their gradients. Small "
              "matrices, and those of larger tables, are read in place.",
          .run = branchWeights,
          .after = Level::Plain};
}

} // namespace sheaf::passes

//===- Autocast.cpp - Products of factors rounded to bf16 -----------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/SharedTensors.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

constexpr std::string_view kAttentionSwitch = "bf16-attention";

/// Products of the record's own matrices that are attention by their form: scores, and what their
/// exponentials are multiplied by.
class Attention {
public:
  explicit Attention(SharedTensors &shared) : shared_(shared) {}

  /// Takes the product if it is one by what follows element by element from exponentials of
  /// scores, and these scores.
  void tryFrom(ir::ApplyOp product) {
    if (!isOwn(product))
      return;
    bool isOfScores = false;
    walkBack(product.getOperand(0), [&](ir::ApplyOp apply) {
      auto *rule = batchRule<ops::Elementwise>(apply);
      if (rule && rule->exponential) {
        isOfScores |= followsFromScores(apply);
        return false;
      }
      return rule || batchRule<ops::Movement>(apply);
    });
    if (isOfScores)
      products_.insert(product);
  }

  /// Whether an exponential follows from products of the record's own matrices: scores, which are
  /// taken then.
  bool followsFromScores(ir::ApplyOp exponential) {
    if (auto known = ofScores_.find(exponential); known != ofScores_.end())
      return known->second;
    bool follows = false;
    walkBack(exponential.getOperand(0), [&](ir::ApplyOp apply) {
      if (isOwn(apply)) {
        products_.insert(apply);
        follows = true;
      }
      return batchRule<ops::Elementwise>(apply) || batchRule<ops::Movement>(apply) ||
             batchRule<ops::Reduction>(apply);
    });
    return ofScores_[exponential] = follows;
  }

  ArrayRef<ir::ApplyOp> products() const { return products_.getArrayRef(); }

private:
  /// Whether an operator is a product of matrices of the record that has a form in bf16.
  bool isOwn(ir::ApplyOp apply) {
    const ops::Op *record = operatorOf(apply);
    if (!record || record->bf16OwnForm.empty())
      return false;
    Value left = apply.getOperand(0), right = apply.getOperand(1);
    return cast<RankedTensorType>(right.getType()).getRank() >= 2 &&
           ops::dtypeOf(right) == ops::DType::F32 && !shared_.contains(left) &&
           !shared_.contains(right);
  }

  /// Visits what a tensor follows from, beyond each operator for which `visit` says so.
  static void walkBack(Value from, llvm::function_ref<bool(ir::ApplyOp)> visit) {
    SmallVector<Value> work{from};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!work.empty()) {
      auto apply = work.pop_back_val().getDefiningOp<ir::ApplyOp>();
      if (!apply || !isTensorCode(apply) || !seen.insert(apply).second || !visit(apply))
        continue;
      for (Value operand : apply.getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
    }
  }

  SharedTensors &shared_;
  llvm::SetVector<ir::ApplyOp> products_;
  llvm::DenseMap<Operation *, bool> ofScores_; ///< by exponential
};

/// Rounds the exponentials of scores that a product takes as they are for the sums of their rows,
/// too.
void roundSums(ir::ApplyOp product, Attention &attention) {
  auto exponential = product.getOperand(0).getDefiningOp<ir::ApplyOp>();
  auto *rule = batchRule<ops::Elementwise>(exponential);
  if (!rule || !rule->exponential || !attention.followsFromScores(exponential))
    return;
  int64_t rank = ops::rankOf(exponential.getResult(0));
  auto sumsRow = [&](Operation *user) {
    auto *reduction = batchRule<ops::Reduction>(user);
    return reduction && reduction->kind == ops::Reduction::Sum &&
           ops::axisOf(cast<ir::ApplyOp>(user), "axis", -1, rank) == rank - 1;
  };
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : exponential.getResult(0).getUses())
    if (use.getOwner() == product || sumsRow(use.getOwner()))
      uses.push_back(&use);
  ImplicitLocOpBuilder b(exponential.getLoc(), exponential->getContext());
  b.setInsertionPointAfter(exponential);
  Value rounded = ops::makeRoundedFactors(b, exponential.getResult(0));
  rounded.setType(exponential.getResult(0).getType());
  for (OpOperand *use : uses)
    use->set(rounded);
}

LogicalResult autocast(ModuleOp module, PassContext &context) {
  if (!module->hasAttr(ops::kBf16Attr))
    return success();
  SharedTensors shared(!module->hasAttr(ops::kTrainingAttr) || !context.isOff("fold-weights"));
  SmallVector<ir::ApplyOp> work;
  Attention attention(shared);
  module.walk([&](ir::ApplyOp apply) {
    const ops::Op *record = operatorOf(apply);
    if (record && !record->bf16Form.empty())
      work.push_back(apply);
    if (!context.isOff(kAttentionSwitch))
      attention.tryFrom(apply);
  });
  for (ir::ApplyOp product : attention.products()) {
    context.remark(product.getLoc(), product.getOp() + " of attention: bf16");
    product.setOp(operatorOf(product)->bf16OwnForm);
  }
  for (ir::ApplyOp product : attention.products())
    roundSums(product, attention);
  for (ir::ApplyOp apply : work) {
    if (batchRule<ops::Product>(apply)->bf16)
      continue;
    Value right = apply.getOperand(1);
    if (cast<RankedTensorType>(right.getType()).getRank() < 2) {
      context.remark(apply.getLoc(), apply.getOp() + " with a vector is a row reduction: f32");
    } else if (!shared.contains(right)) {
      context.remark(apply.getLoc(), apply.getOp() + " by a matrix of the record: f32");
    } else {
      context.remark(apply.getLoc(), apply.getOp() + " by a weight: bf16");
      apply.setOp(operatorOf(apply)->bf16Form);
    }
  }
  return success();
}

} // namespace

PassRecord autocastPass() {
  return {
      .name = "autocast",
      .description = "With --precision bf16: operators whose record names a bf16 form (products) "
                     "take it where the right operand is a weight, and in attention: scores whose "
                     "exponentials another product takes, and that product. All others stay f32.",
      .run = autocast,
      .required = true,
      .after = Level::Plain,
      .switches = {{kAttentionSwitch, "attention computes in bf16 where products of weights do"}}};
}

} // namespace sheaf::passes

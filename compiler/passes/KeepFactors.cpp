//===- KeepFactors.cpp - What goes back as factors is kept as factors -----===//
//
// Of queries, keys and values a backward block with products in bf16 may take nothing but rounded
// factors. Then the forward block keeps these: half the bytes, and the same bits, since the
// backward block would round to them.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/GradientBlock.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/BlockTable.h"
#include "compiler/passes/Factors.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

using Source = GradientBlock::Source;

/// What a block takes of a tensor as factors: operators that round it, or what lies in it.
class FactorUses {
public:
  explicit FactorUses(Value tensor) : tensor_(tensor) {
    SmallVector<Value> work{tensor};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        auto *rule = batchRule<ops::Elementwise>(user);
        if (rule && rule->factor)
          roundings_.insert(user);
        else if (auto dim = dyn_cast<ir::DimOp>(user))
          extents_.push_back(dim);
        else if (movesOnly(user) && use.getOperandNumber() == 0)
          llvm::append_range(work, user->getResults());
        else
          areAll_ = false;
      }
    }
  }

  /// Whether it takes nothing else.
  bool areAll() const { return areAll_ && !roundings_.empty(); }

  /// Lets it read the tensor's factors instead.
  void readFrom(Value factors) {
    moved_[tensor_] = factors;
    for (Operation *rounding : roundings_) {
      Value read = move(rounding->getOperand(0)), result = rounding->getResult(0);
      ImplicitLocOpBuilder builder(rounding->getLoc(), rounding);
      if (ops::dtypeOf(result) == ops::DType::F32)
        read = ops::widen(builder, read);
      read.setType(result.getType());
      result.replaceAllUsesWith(read);
    }
    for (ir::DimOp dim : extents_)
      dim->setOperand(0, move(dim.getTensor()));
  }

private:
  /// Whether an operator gives elements of its first operand, and of no other tensor.
  static bool movesOnly(Operation *op) {
    auto *movement = batchRule<ops::Movement>(op);
    return movement && movement->kind != ops::Movement::Concat &&
           movement->kind != ops::Movement::Stack;
  }

  /// Of a value that lies in the tensor, what lies so in its factors.
  Value move(Value value) {
    SmallVector<Operation *> chain;
    for (Value from = value; !moved_.contains(from); from = chain.back()->getOperand(0))
      chain.push_back(from.getDefiningOp());
    for (Operation *op : llvm::reverse(chain))
      moveFactors(op, moved_);
    return moved_.lookup(value);
  }

  Value tensor_;
  bool areAll_ = true;
  llvm::SetVector<Operation *> roundings_;
  SmallVector<ir::DimOp> extents_; ///< of it, or of what lies in it
  llvm::DenseMap<Value, Value> moved_;
};

/// A forward block and the one that goes back.
class KeptResults {
public:
  KeptResults(ir::BlockOp forward, ir::BlockOp backward, ArrayRef<ir::RecordOp> records)
      : forward_(forward), backward_(backward), records_(records),
        gradient_(GradientBlock::fromAttribute(backward->getAttr(kBackwardAttr))) {}

  /// How many of them are factors now.
  unsigned run() {
    unsigned count = 0;
    for (unsigned number = 0; number < gradient_.arguments.size(); ++number)
      count += keepFactors(number);
    if (count)
      eraseUnused(forward_);
    return count;
  }

private:
  bool keepFactors(unsigned number) {
    Source source = gradient_.arguments[number];
    BlockArgument argument = backward_.getBody().getArgument(number);
    if (source.kind != Source::Result || !isForThisAlone(source.index) ||
        ops::dtypeOf(argument) != ops::DType::F32)
      return false;
    FactorUses uses(argument);
    if (!uses.areAll())
      return false;
    Operation *yield = forward_.getBody().front().getTerminator();
    auto result = static_cast<unsigned>(source.index);
    Value factors = factorsOf(yield->getOperand(result));
    yield->setOperand(result, factors);
    for (ir::RecordOp record : records_)
      record->getResult(result).setType(factors.getType());
    BlockArgument kept =
        backward_.getBody().front().insertArgument(number, factors.getType(), argument.getLoc());
    uses.readFrom(kept);
    eraseUnused(backward_);
    backward_.getBody().front().eraseArgument(number + 1);
    return true;
  }

  /// Whether a result is kept for one argument of the backward block and nothing else.
  bool isForThisAlone(int64_t result) const {
    auto isIt = [&](const Source &source) {
      return source.kind == Source::Result && source.index == result;
    };
    auto isGradientOfIt = [&](const Source &source) {
      return source.kind == Source::Gradient && source.index == result;
    };
    return llvm::count_if(gradient_.arguments, isIt) == 1 &&
           llvm::none_of(gradient_.arguments, isGradientOfIt) &&
           llvm::none_of(gradient_.ofWeights,
                         [&](const GradientBlock::OfWeight &weight) {
                           return isIt(weight.left) || isIt(weight.right);
                         }) &&
           llvm::none_of(gradient_.ofArguments,
                         [&](const GradientBlock::OfArgument &argument) {
                           return isIt(argument.gradient);
                         }) &&
           llvm::all_of(records_, [&](ir::RecordOp record) {
             return record->getResult(static_cast<unsigned>(result)).use_empty();
           });
  }

  /// The factors of a tensor of the forward block, which reads them itself where it takes any.
  Value factorsOf(Value tensor) {
    ImplicitLocOpBuilder builder(tensor.getLoc(), forward_);
    FactorUses uses(tensor);
    if (tensor.getDefiningOp())
      builder.setInsertionPointAfterValue(tensor);
    else
      builder.setInsertionPointToStart(&forward_.getBody().front());
    Value factors = ops::makeFactors(builder, tensor);
    factors.setType(typeOfFactors(tensor));
    uses.readFrom(factors);
    return factors;
  }

  ir::BlockOp forward_, backward_;
  ArrayRef<ir::RecordOp> records_;
  GradientBlock gradient_;
};

LogicalResult keepFactors(ModuleOp module, PassContext &context) {
  if (!module->hasAttr(ops::kTrainingAttr) || !module->hasAttr(ops::kBf16Attr))
    return success();
  SymbolTable symbols(module);
  llvm::StringMap<SmallVector<ir::RecordOp>> records;
  module.walk([&](ir::RecordOp record) { records[record.getBlock()].push_back(record); });
  for (auto forward : module.getOps<ir::BlockOp>()) {
    auto backward = forward->getAttrOfType<FlatSymbolRefAttr>(kGradientAttr);
    if (!backward)
      continue;
    KeptResults kept(forward, symbols.lookup<ir::BlockOp>(backward.getAttr()),
                     records[forward.getSymName()]);
    if (unsigned count = kept.run())
      context.remark(forward.getLoc(), "block " + forward.getSymName() + " keeps " + Twine(count) +
                                           (count == 1 ? " tensor" : " tensors") +
                                           " as factors in bf16");
  }
  return success();
}

} // namespace

PassRecord keepFactorsPass() {
  return {.name = "keep-factors",
          .description = "In training with --precision bf16, what a block keeps for the backward "
                         "pass and that one takes only as rounded factors, is kept as bf16.",
          .run = keepFactors,
          .after = Level::Blocks};
}

} // namespace sheaf::passes

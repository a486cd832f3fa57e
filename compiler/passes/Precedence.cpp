//===- Precedence.cpp -----------------------------------------------------===//

#include "compiler/passes/Precedence.h"

#include "compiler/analysis/OpQueries.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace sheaf::passes {

Precedence::Precedence(ModuleOp module) : recurrences_(module) {
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->hasAttr(ir::kFoldedAttr))
      return WalkResult::skip();
    visit(op);
    return WalkResult::advance();
  });
}

unsigned Precedence::loopsAround(Block *block) {
  unsigned loops = 0;
  for (Operation *op = block->getParentOp(); op && !isa<func::FuncOp>(op); op = op->getParentOp())
    loops += isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op);
  return loops;
}

unsigned Precedence::home(Value value) {
  if (isa_and_nonnull<ir::ParamRefOp, arith::ConstantOp>(value.getDefiningOp()))
    return 0;
  auto known = homes_.find(value);
  return known == homes_.end() ? loopsAround(value.getParentBlock()) : known->second;
}

/// Tensor code that nothing can go wrong with.
void Precedence::findHome(ir::ApplyOp apply) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  unsigned around = loopsAround(apply->getBlock()), made = 0;
  if (around == 0 || operatorOf(apply)->draws() || !llvm::all_of(apply->getResultTypes(), isStatic))
    return;
  for (Value operand : apply->getOperands())
    made = std::max(made, isStatic(operand.getType()) ? home(operand) : around);
  if (made < around)
    for (Value result : apply->getResults())
      homes_[result] = made;
}

void Precedence::visit(Operation *op) {
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
    // What a map computes has rows of its own.
    noteIf(tokens_.contains(op->getOperand(0)) && !isTensorCode(op->getOperand(0).getDefiningOp()),
           op->getParentOp()->getResult(0));
}

void Precedence::noteIf(bool isToken, Value value) {
  if (isToken)
    tokens_.insert(value);
}

void Precedence::visitOperator(ir::ApplyOp apply) {
  if (auto *address = batchRule<ops::HostAddress>(apply))
    return noteIf(address->kind == ops::HostAddress::Row && shared_.contains(apply.getOperand(0)),
                  apply.getResult(0));
  if (isTensorCode(apply))
    findHome(apply);
  // What a fold gives comes again only when all of its list does.
  if (!isTensorCode(apply) || operatorOf(apply)->draws() || batchRule<ops::Fold>(apply))
    return;
  bool isToken = false;
  for (Value operand : apply->getOperands()) {
    isToken |= tokens_.contains(operand);
    if (!tokens_.contains(operand) && !shared_.contains(operand) &&
        !isa_and_nonnull<arith::ConstantOp>(operand.getDefiningOp()))
      return;
  }
  (isToken ? tokens_ : shared_).insert_range(apply->getResults());
}

unsigned Precedence::rank(Value value, Operation *at) {
  if (shared_.contains(value) || isa_and_nonnull<arith::ConstantOp>(value.getDefiningOp()))
    return kShared;
  if (tokens_.contains(value))
    return kToken;
  return kInstance + recurrences_.depth(value, at);
}

unsigned Precedence::rank(Operation *op) { return rank(op->getResult(0), op); }

bool Precedence::reads(Operation *at, unsigned rank) {
  return rank > kInstance && recurrences_.reads(at, rank - kInstance);
}

static bool isExact(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType().isF32();
}

bool Precedence::isProduct(Operation *op) const {
  return isChain(op) &&
         cast<RankedTensorType>(op->getOperand(1).getType()).getNumElements() >= kLeastProduct;
}

bool Precedence::isChain(Operation *op) const {
  if (!batchRule<ops::Product>(op) || !shared_.contains(op->getOperand(1)))
    return false;
  auto row = cast<RankedTensorType>(op->getOperand(0).getType());
  auto weight = cast<RankedTensorType>(op->getOperand(1).getType());
  return isExact(op->getResult(0)) && (row.getRank() == 1 || row.getRank() == 2) &&
         weight.getRank() == 2 && row.hasStaticShape() && weight.hasStaticShape();
}

bool Precedence::isSum(Operation *op) {
  auto *rule = batchRule<ops::Elementwise>(op);
  if (!rule || !rule->addition || !isExact(op->getResult(0)))
    return false;
  auto sum = cast<RankedTensorType>(op->getResult(0).getType());
  auto isTerm = [&](Type type) {
    auto term = cast<RankedTensorType>(type);
    // A bias of a known number of rows.
    bool isRow = sum.getRank() == 2 && sum.hasStaticShape() && term.getRank() == 1 &&
                 term.getElementType() == sum.getElementType() &&
                 term.getShape().back() == sum.getShape().back();
    return term == sum || isRow;
  };
  return llvm::all_of(op->getOperandTypes(), isTerm);
}

} // namespace sheaf::passes

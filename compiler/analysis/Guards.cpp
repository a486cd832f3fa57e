//===- Guards.cpp - Which checks an operator comes after ------------------===//

#include "compiler/analysis/Guards.h"
#include "compiler/analysis/Extents.h"
#include "compiler/analysis/OpQueries.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// An axis of a tensor, or a host value with no axis.
using Quantity = std::pair<Value, unsigned>;
constexpr unsigned kNoAxis = ~0u;

class GuardFinder {
public:
  explicit GuardFinder(Block &block) {
    for (Operation &op : block) {
      if (isa<ir::CheckOp>(op))
        note(&op);
      else if (isTensorCode(&op) && !isFill(&op))
        guard(cast<ir::ApplyOp>(op));
    }
  }

  Guards take() { return std::move(guards_); }

private:
  /// Where an extent is from.
  Quantity extent(Value tensor, unsigned axis) {
    SmallVector<Quantity> way;
    Quantity at{tensor, axis};
    for (;;) {
      if (auto known = sources_.find(at); known != sources_.end()) {
        at = known->second;
        break;
      }
      way.push_back(at);
      auto apply = at.first.getDefiningOp<ir::ApplyOp>();
      auto source = apply
                        ? extentSource(apply, cast<OpResult>(at.first).getResultNumber(), at.second)
                        : std::nullopt;
      if (!source)
        break;
      Value operand = apply.getOperand(source->operand);
      if (source->axis)
        at = {operand, *source->axis};
      else if (auto dim = operand.getDefiningOp<ir::DimOp>())
        at = {dim.getTensor(), static_cast<unsigned>(dim.getAxis())};
      else {
        at = {operand, kNoAxis};
        break;
      }
    }
    for (const Quantity &each : way)
      sources_[each] = at;
    return at;
  }

  Quantity quantity(Value host) {
    if (auto dim = host.getDefiningOp<ir::DimOp>())
      return extent(dim.getTensor(), static_cast<unsigned>(dim.getAxis()));
    return {host, kNoAxis};
  }

  /// The check is about all that its condition is computed from.
  void note(Operation *check) {
    llvm::SetVector<Value> work;
    work.insert(check->getOperand(0));
    for (size_t i = 0; i < work.size(); ++i) {
      Value value = work[i];
      Operation *def = value.getDefiningOp();
      if (isa<RankedTensorType>(value.getType()))
        continue;
      checks_[quantity(value)] = check;
      if (!def || def->getBlock() != check->getBlock() || isa<ir::DimOp>(def))
        continue;
      def->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          work.insert(operand);
      });
    }
  }

  void guard(ir::ApplyOp apply) {
    if (checks_.empty())
      return;
    llvm::SmallSetVector<Quantity, 4> quantities;
    addQuantities(apply, quantities);
    if (!mayDisagree(apply, quantities.size()))
      return;
    Operation *last = nullptr;
    for (const Quantity &each : quantities)
      if (Operation *check = checks_.lookup(each); check && (!last || last->isBeforeInBlock(check)))
        last = check;
    if (last)
      guards_[apply] = last;
  }

  void addQuantities(Operation *op, llvm::SmallSetVector<Quantity, 4> &quantities) {
    for (Value operand : op->getOperands()) {
      auto tensor = dyn_cast<RankedTensorType>(operand.getType());
      if (tensor && isFill(operand.getDefiningOp())) {
        addQuantities(operand.getDefiningOp(), quantities);
      } else if (tensor) {
        for (unsigned axis = 0; axis < tensor.getRank(); ++axis)
          if (tensor.isDynamicDim(axis))
            quantities.insert(extent(operand, axis));
      } else if (isa<ir::ListType>(operand.getType()) ||
                 (operand.getType().isInteger(64) && !operand.getDefiningOp<arith::ConstantOp>())) {
        quantities.insert(quantity(operand));
      }
    }
  }

  static bool mayDisagree(ir::ApplyOp apply, size_t quantities) {
    auto isDynamic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && !tensor.hasStaticShape();
    };
    if (auto *reduction = batchRule<ops::Reduction>(apply))
      return reduction->kind == ops::Reduction::Top ? quantities > 0 : quantities > 1;
    auto *movement = batchRule<ops::Movement>(apply);
    if (!movement)
      return quantities > 1;
    switch (movement->kind) {
    case ops::Movement::Gather:
    case ops::Movement::TakeAlong:
    case ops::Movement::Transpose:
    case ops::Movement::Flip:
      return false;
    case ops::Movement::Element:
      return isDynamic(apply.getOperand(0).getType()) &&
             apply.getOperand(1).getDefiningOp<arith::ConstantOp>();
    case ops::Movement::Slice:
      return isDynamic(apply.getOperand(0).getType()) || isDynamic(apply.getResult(0).getType());
    default:
      return quantities > 0;
    }
  }

  llvm::DenseMap<Quantity, Quantity> sources_;
  llvm::DenseMap<Quantity, Operation *> checks_;
  Guards guards_;
};

} // namespace

Guards guardsIn(Block &block) { return GuardFinder(block).take(); }

} // namespace sheaf::passes

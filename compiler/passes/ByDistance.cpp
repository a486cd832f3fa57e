//===- ByDistance.cpp - What follows from distances is computed once each -===//
//
//   let distance = reshape(iota(m), 1, m) - reshape(iota(n), n, 1)
//   let bias = table[bucket(distance)]
//
// Of n rows and m columns there are n + m - 1 distances. Where much is computed of nothing but the
// distance of a row and a column, such as T5's buckets with their logarithm, it is computed of each
// distance, and looked up for each row and column: no tensor of n times m elements is kept for it.
// Every element is computed as before, so no bit tells.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/OperatorWork.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// What is computed of a distance is worth a look-up from so much work for an element on
/// (OperatorWork.h).
constexpr double kLookUpWork = 25;
/// And is no longer than this.
constexpr size_t kMostOperators = 64;

/// Numbers along one axis of a tensor less those along another.
struct Distance {
  int64_t plus, minus;
};

class Distances {
public:
  explicit Distances(PassContext &context) : context_(context) {}

  void run(ModuleOp module) {
    module.walk<WalkOrder::PreOrder>([&](ir::ApplyOp apply) { visit(apply); });
    for (auto &[value, root] : of_)
      if (value != root && stillFollows(value, root) && isTakenElsewhere(value))
        tryToLookUp(value, root);
  }

private:
  /// Notes distances and what follows from one of them alone, element by element.
  void visit(ir::ApplyOp apply) {
    auto *rule = batchRule<ops::Elementwise>(apply);
    if (!rule || !hasUnknownExtents(apply))
      return;
    Value result = apply.getResult(0);
    if (std::optional<Distance> distance = asDistance(apply)) {
      distances_[result] = *distance;
      of_[result] = result;
      return;
    }
    Value root;
    for (Value operand : apply.getOperands()) {
      Value own = of_.lookup(operand);
      if (!own && isOneNumber(operand))
        continue;
      if (!own || (root && own != root))
        return;
      root = own;
    }
    if (root && ops::rankOf(result) == ops::rankOf(root))
      of_[result] = root;
  }

  /// Of which axis a tensor counts the places, all others being of extent 1: among the axes of one
  /// of `rank` that it is broadcast to.
  static std::optional<int64_t> countedAxis(Value value, int64_t rank) {
    auto type = cast<RankedTensorType>(value.getType());
    std::optional<int64_t> axis;
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (type.getDimSize(i) != 1) {
        if (axis)
          return std::nullopt;
        axis = rank - type.getRank() + i;
      }
    while (auto apply = value.getDefiningOp<ir::ApplyOp>()) {
      if (auto *fill = batchRule<ops::Fill>(apply))
        return fill->kind == ops::Fill::Iota ? axis : std::nullopt;
      if (!moves(apply, ops::Movement::Reshape))
        break;
      value = apply.getOperand(0);
    }
    return std::nullopt;
  }

  static std::optional<Distance> asDistance(ir::ApplyOp apply) {
    if (!batchRule<ops::Elementwise>(apply)->subtraction)
      return std::nullopt;
    int64_t rank = ops::rankOf(apply.getResult(0));
    std::optional<int64_t> plus = countedAxis(apply.getOperand(0), rank),
                           minus = countedAxis(apply.getOperand(1), rank);
    if (!plus || !minus || *plus == *minus)
      return std::nullopt;
    return Distance{*plus, *minus};
  }

  /// Whether it is a host value, or a number that is the same for all elements.
  static bool isOneNumber(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() > 0)
      return !type;
    SmallVector<Value> work{value};
    for (size_t taken = 0; !work.empty(); ++taken) {
      auto apply = work.pop_back_val().getDefiningOp<ir::ApplyOp>();
      if (taken == kMostOperators || (!isFill(apply) && !batchRule<ops::Elementwise>(apply)))
        return false;
      for (Value operand : apply.getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
    }
    return true;
  }

  /// Whether none of its operands has been looked up in the meantime.
  bool stillFollows(Value value, Value root) {
    bool follows = llvm::all_of(value.getDefiningOp()->getOperands(), [&](Value operand) {
      return of_.lookup(operand) == root || isOneNumber(operand);
    });
    if (!follows)
      of_[value] = Value();
    return follows;
  }

  bool isTakenElsewhere(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user->getNumResults() == 0 || !of_.lookup(user->getResult(0));
    });
  }

  void tryToLookUp(Value value, Value root) {
    // A mask is compared where it is used, and may tell which columns a row sees.
    if (ops::dtypeOf(value) == ops::DType::Bool)
      return;
    llvm::SetVector<Operation *> chain;
    SmallVector<Value> work{value};
    double total = 0;
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (next == root || !of_.lookup(next) || !chain.insert(next.getDefiningOp()))
        continue;
      if (chain.size() > kMostOperators)
        return;
      total += work_.ofElement(next.getDefiningOp());
      llvm::append_range(work, next.getDefiningOp()->getOperands());
    }
    if (total >= kLookUpWork)
      lookUp(value, root, chain.takeVector());
  }

  void lookUp(Value value, Value root, SmallVector<Operation *> chain) {
    const Distance &distance = distances_[root];
    ImplicitLocOpBuilder b(value.getLoc(), value.getDefiningOp());
    Value plus = ops::extentValue(b, ops::extentOf(b, root, distance.plus)),
          minus = ops::extentValue(b, ops::extentOf(b, root, distance.minus));
    auto constant = [&](int64_t number) {
      return arith::ConstantOp::create(b, b.getI64IntegerAttr(number));
    };
    // The least distance is that of the last place along `minus` and the first along `plus`.
    Value last = arith::SubIOp::create(b, minus, constant(1));
    Value count = arith::MaxSIOp::create(b, arith::AddIOp::create(b, plus, last), constant(0));
    Value each = ops::makeNumbers(b, count);
    Value shift = ops::promote(b, last, ops::DType::I32);
    IRMapping map;
    map.map(root, ops::makeDifference(b, each, shift));
    auto type = RankedTensorType::get({ShapedType::kDynamic}, b.getI32Type());
    llvm::sort(chain, [&](Operation *a, Operation *c) { return order(a) < order(c); });
    for (Operation *op : chain) {
      Operation *copy = b.clone(*op, map);
      copy->getResult(0).setType(type.clone(getElementTypeOrSelf(op->getResult(0).getType())));
    }
    Value places = ops::makeSum(b, root, shift);
    Value found = ops::makeTaken(b, map.lookup(value), places);
    found.setType(value.getType());
    context_.remark(value.getLoc(),
                    "computed of each distance, and looked up for each row and column");
    value.replaceAllUsesWith(found);
    of_[value] = Value();
  }

  /// In the program.
  size_t order(Operation *op) const {
    return static_cast<size_t>(of_.find(op->getResult(0)) - of_.begin());
  }

  PassContext &context_;
  OperatorWork work_;
  llvm::MapVector<Value, Value> of_; ///< what follows from a distance, and which
  llvm::DenseMap<Value, Distance> distances_;
};

LogicalResult byDistance(ModuleOp module, PassContext &context) {
  Distances(context).run(module);
  return success();
}

} // namespace

PassRecord byDistancePass() {
  return {.name = "by-distance",
          .description = "What takes much work and follows from the distance of a row and a column "
                         "alone, such as buckets of distances, is computed for each distance, and "
                         "looked up for each row and column.",
          .run = byDistance,
          .after = Level::Plain};
}

} // namespace sheaf::passes

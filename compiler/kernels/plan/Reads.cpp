//===- Reads.cpp - What an expression reads -------------------------------===//

#include "compiler/kernels/plan/Planner.h"

using namespace mlir;

namespace sheaf::kernels {

Planner::Reads Planner::read(Value root, bool computed) {
  Reads reads;
  llvm::SmallVector<std::pair<Value, View>> work;
  llvm::DenseMap<Value, llvm::SmallVector<View, 1>> seen;
  auto visit = [&](Value value, View view) {
    auto &views = seen[value];
    if (llvm::is_contained(views, view))
      return;
    views.push_back(view);
    work.push_back({value, std::move(view)});
  };
  auto readWhole = [&](Value value) {
    keep(value);
    reads.whole.push_back(value);
  };
  visit(root, identityView(shape(root).size()));
  for (bool isRoot = true; !work.empty(); isRoot = false) {
    auto [value, view] = work.pop_back_val();
    bool compute = isRoot && computed;
    Role role = roleOf(value);
    if (role == Role::Argument || role == Role::Weight || (!compute && isKept(value))) {
      reads.kept.push_back({value, std::move(view)});
      continue;
    }
    if (const Product *product = plan_->productOf.lookup(value)) {
      reads.products.push_back({product, std::move(view)});
      continue;
    }
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    switch (role) {
    case Role::Elementwise:
      if (!llvm::is_contained(reads.elementwise, value))
        reads.elementwise.push_back(value);
      // The last one pushed is visited first.
      for (Value operand : llvm::reverse(apply.getOperands()))
        if (isa<RankedTensorType>(operand.getType()))
          visit(operand, throughBroadcast(value, operand, view, *plan_->shapes));
      break;
    case Role::Fold:
      // It takes as long as the list, so it is computed once: by the stage that needs each of its
      // elements once, or by one of its own.
      if (!compute && (shape(value) != shape(root) || view != identityView(shape(value).size()))) {
        keep(value);
        reads.kept.push_back({value, std::move(view)});
        break;
      }
      if (!llvm::is_contained(reads.elementwise, value))
        reads.elementwise.push_back(value);
      for (Value operand : llvm::reverse(apply.getOperands()))
        visit(operand, view);
      break;
    case Role::View: {
      if (regroupedPart(value)) {
        keep(value);
        reads.kept.push_back({value, std::move(view)});
      } else if (isRegrouping(value)) {
        keep(apply.getOperand(0));
        reads.reshapes.push_back({value, std::move(view)});
      } else if (isByIndices(value)) {
        readWhole(apply.getOperand(0));
        if (Value index = apply.getOperand(1); !isPlacesOnTheWay(index))
          readWhole(index);
        else
          for (const AxisMap &map : throughView(value, view, *plan_->shapes).second)
            if (map.index == index)
              visit(index, *map.indexView);
      } else {
        auto [source, through] = throughView(value, view, *plan_->shapes);
        visit(source, std::move(through));
      }
      break;
    }
    case Role::Dot:
    case Role::Reduction:
      if (compute) {
        for (OpOperand &operand : llvm::reverse(apply->getOpOperands()))
          if (!isa<RankedTensorType>(operand.get().getType()))
            continue; // an extent
          else if (readsWhole(value, operand.getOperandNumber()))
            readWhole(operand.get());
          else
            visit(operand.get(), identityView(shape(operand.get()).size()));
        break;
      }
      [[fallthrough]];
    case Role::Assemble:
      keep(value);
      reads.kept.push_back({value, std::move(view)});
      break;
    default:
      break;
    }
  }
  return reads;
}

bool Planner::isOfFewerAxes(Value value) const {
  if (Role role = roleOf(value); role != Role::Elementwise && role != Role::View)
    return false;
  // More would be read at ever more places.
  constexpr unsigned kMostLookUps = 2, kMostOperators = 64;
  llvm::SmallVector<Value> work{value};
  llvm::SmallPtrSet<Value, 16> seen;
  unsigned lookUps = 0;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!isa<RankedTensorType>(next.getType()) || !seen.insert(next).second)
      continue;
    if (seen.size() > kMostOperators)
      return false;
    Role role = roleOf(next);
    bool isLookedUp = role == Role::View && isByIndices(next);
    bool isMade = role == Role::Elementwise || role == Role::Fill ||
                  (role == Role::View && !isLookedUp && !isRegrouping(next) &&
                   movementOf(next) != ops::Movement::Flip);
    auto isFewer = [&](Value v) {
      return roleOf(v) != Role::Product && shape(v).size() < shape(value).size();
    };
    if (next != value && isKept(next)) {
      if (!isFewer(next))
        return false;
    } else if (isMade) {
      llvm::append_range(work, next.getDefiningOp()->getOperands());
    } else if (isLookedUp) {
      if (++lookUps > kMostLookUps || !isFewer(next.getDefiningOp()->getOperand(0)))
        return false;
      work.push_back(next.getDefiningOp()->getOperand(1));
    } else if (!isFewer(next)) {
      return false;
    }
  }
  return true;
}

/// Whether a tensor of indices is computed where they are used: as buckets of the distances of rows
/// and columns are, which may be many more than what is read or made.
bool Planner::isPlacesOnTheWay(Value index) const {
  return options_.fuse && !isKept(index) && shape(index).size() >= 2 && isOfFewerAxes(index);
}

} // namespace sheaf::kernels

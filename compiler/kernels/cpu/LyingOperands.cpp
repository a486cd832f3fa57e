//===- LyingOperands.cpp - Right operands read where they lie -------------===//
//
// Keys are laid out with rows for columns before queries are multiplied by them; in bf16 values
// are rounded before weights are. That pays where several rows read what was made. For one row, as
// in a step of a decoder, it is as much work as the product, and as much again to write and read:
// so one row reads keys and values where they lie, turns keys round in registers (EmitTurned.cpp)
// and rounds on the way. How many rows there are may be known only when the kernel runs, so both
// ways are in the code.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

static_assert(Blocking::kLeastTiles > 1, "of one row no right operand is packed, laid out or not");

namespace {

/// The tensor in memory that a value is made of, by views of axes and, if `rounded`, rounding, and
/// where its places are.
std::optional<std::pair<Value, View>> madeOf(const Plan &plan, Value value, bool rounded) {
  View view = identityView(plan.shapes->of(value).size());
  do {
    if (rounded && isRounding(value)) {
      value = value.getDefiningOp()->getOperand(0);
      continue;
    }
    if (roleOf(value) != Role::View || isByIndices(value))
      return std::nullopt;
    ops::Movement::Kind kind = movementOf(value);
    if (kind != ops::Movement::Transpose &&
        !(kind == ops::Movement::Reshape && isPlainReshape(value, *plan.shapes)))
      return std::nullopt;
    std::tie(value, view) = throughView(value, view, *plan.shapes);
  } while (!plan.bufferOf.contains(value));
  return std::pair(value, std::move(view));
}

/// The view of a tensor from where `through` finds places of it.
std::optional<View> compose(const View &view, const View &through) {
  View composed = view;
  for (AxisMap &map : composed) {
    if (map.axis < 0)
      continue;
    const AxisMap &outer = through[static_cast<size_t>(map.axis)];
    if (map.index || !map.host.empty() || outer.index || !outer.host.empty() ||
        outer.offset != Dim(0))
      return std::nullopt;
    map.axis = outer.axis;
  }
  return composed;
}

/// Whether nothing reads a tensor, which is no result, but a product as its right operand: no other
/// stage, nothing that follows the product, and nothing that says which columns rows see.
bool isRightOperandAlone(const Plan &plan, const Buffer &buffer, const kernels::Stage &stage,
                         const ProductSegment &segment) {
  if (!buffer.isTemporary())
    return false;
  auto isIt = [&](const Buffer *other) { return &other->whole() == &buffer; };
  if (isIt(plan.bufferOf.lookup(segment.lhs)))
    return false;
  for (const RowBlock &block : plan.rowBlocks)
    if (llvm::any_of(block.limitsRead, isIt))
      return false;
  return llvm::all_of(plan.stages, [&](const kernels::Stage &other) {
    return llvm::all_of(other.reads, [&](const Access &read) {
      // Only the product's view has k among its axes.
      return !isIt(read.buffer) || (&other == &stage && read.view == segment.rhsView);
    });
  });
}

/// Whether one row of each of several matrices reads the same right operand: that would be turned
/// round, or rounded, for each.
bool isShared(const Stage &stage, const View &right) {
  for (int axis = 0; axis + 1 < static_cast<int>(stage.shape.size()); ++axis)
    if (axis != stage.rowAxis && !isUnit(stage.shape[static_cast<size_t>(axis)]) &&
        !dependsOn(right, axis))
      return true;
  return false;
}

} // namespace

std::optional<Stage::Lying> LayoutPlanner::lyingOperandOf(const Stage &stage) const {
  bool arePairs = stage.sums == Sums::Pairs;
  Dim rows = stage.ownRows();
  if (stage.kind != Stage::Products || (stage.sums != Sums::Chain && !arePairs) ||
      stage.rowsAreRecords || stage.rowsOfAllRecords || stage.sumsRows || stage.takesTurns ||
      stage.accumulators.size() != 1 || stage.accumulators.front().column != 0 ||
      (rows.isConstant() && rows != Dim(1)))
    return std::nullopt;
  const Product &product = *stage.accumulators.front().product;
  if (product.ofWeights || product.start || product.segments.size() != 1)
    return std::nullopt;
  const ProductSegment &segment = product.segments.front();
  int k = static_cast<int>(stage.shape.size());
  if (segment.rhsView.back().axis != k - 1 || roleOf(segment.rhs) == Role::Argument ||
      roleOf(segment.rhs) == Role::Weight)
    return std::nullopt;
  auto lying = madeOf(plan_, segment.rhs, arePairs);
  std::optional<View> view = lying ? compose(lying->second, segment.rhsView) : std::nullopt;
  if (!view || isShared(stage, *view) || view->back().offset != Dim(0))
    return std::nullopt;
  // Temporaries may be gone by then.
  const Buffer &buffer = *plan_.bufferOf.lookup(lying->first);
  bool isWide = buffer.dtype == ops::DType::F32, isTurned = view->back().axis == k;
  if (buffer.whole().kind != Buffer::Argument ||
      !(isWide || (arePairs && isTurned && buffer.dtype == ops::DType::BF16)))
    return std::nullopt;
  int64_t together = stage.lanes * (isWide ? 1 : 2);
  bool isWhole = segment.extent.isConstant() && segment.extent.constant() % together == 0;
  if (isTurned ? !isWhole || product.leavesOutZeros : view->back().axis != k - 1)
    return std::nullopt;
  return Stage::Lying{lying->first, std::move(*view), isTurned};
}

void LayoutPlanner::findLyingOperands() {
  if (!readsLying_)
    return;
  for (auto [number, stage] : llvm::enumerate(layout_->stages)) {
    std::optional<Stage::Lying> lying = lyingOperandOf(stage);
    if (!lying)
      continue;
    const ProductSegment &segment = stage.accumulators.front().product->segments.front();
    const Buffer *made = plan_.bufferOf.lookup(segment.rhs);
    auto maker = llvm::find_if(layout_->stages, [&](const Stage &other) {
      return other.kind == Stage::Loop && other.rowBlock < 0 && other.roots.size() == 1 &&
             other.roots.front().buffer == made;
    });
    if (maker == layout_->stages.end() ||
        !isRightOperandAlone(plan_, *made, plan_.stages[number], segment))
      continue;
    stage.lying = std::move(lying);
    maker->laysOutFor = static_cast<int>(number);
  }
}

} // namespace sheaf::kernels::cpu

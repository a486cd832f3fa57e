//===- Products.cpp - Finds the products of a block and joins them --------===//

#include "compiler/kernels/plan/Planner.h"
#include "compiler/ops/Expand.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// The source and view behind views that can be read by address alone, as far as `accepts` goes.
/// Of a gather the index is one of the row: it stays the same along k and columns.
std::pair<Value, View> strip(Value value, View view, const BlockShapes &shapes,
                             llvm::function_ref<bool(Value)> isKept,
                             llvm::function_ref<bool(const View &)> accepts) {
  while (!isKept(value) && roleOf(value) == Role::View) {
    ops::Movement::Kind kind = movementOf(value);
    if (kind == ops::Movement::TakeAlong || kind == ops::Movement::Flip ||
        (kind == ops::Movement::Reshape && !isPlainReshape(value, shapes)))
      break;
    auto [source, through] = throughView(value, view, shapes);
    if (!accepts(through))
      break;
    value = source;
    view = std::move(through);
  }
  return {value, view};
}

/// Whether neighbours along an index axis are neighbours in memory.
bool isContiguous(const View &view, int axis) {
  for (const AxisMap &map : view)
    if ((map.axis == axis) != (&map == &view.back()) ||
        (map.index && dependsOn(*map.indexView, axis)))
      return false;
  return !view.empty();
}

/// Whether the places of an index do not change along any axis from `axis` on.
bool picksBefore(const View &view, int axis) {
  return llvm::all_of(view, [&](const AxisMap &map) {
    return !map.index || llvm::all_of(*map.indexView, [&](const AxisMap &at) {
      return at.axis < axis && !at.index;
    });
  });
}

/// A concatenation whose pieces can stand for runs of the contracted axis.
ir::ApplyOp concatAlong(Value value, size_t axis, llvm::function_ref<bool(Value)> isKept) {
  if (isKept(value) || roleOf(value) != Role::Assemble)
    return {};
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  size_t rank = cast<RankedTensorType>(value.getType()).getRank();
  return axisOf(apply, "axis", 0, rank) == axis ? apply : ir::ApplyOp();
}

/// A weight whose rows a reshape takes for those of one matrix, else the value itself: WeightRun
/// sees weights so.
Value weightOfMatrix(Value value, const BlockShapes &shapes) {
  if (roleOf(value) != Role::View || movementOf(value) != ops::Movement::Reshape)
    return value;
  Value source = value.getDefiningOp()->getOperand(0);
  const std::vector<Dim> &from = shapes.of(source), &to = shapes.of(value);
  bool isMatrix = to.size() == 2 && from.size() > 2 && from.back() == to.back();
  return isMatrix && roleOf(source) == Role::Weight ? source : value;
}

} // namespace

/// `rhsInVectors`: the right operand is loaded in vectors along the columns.
void Planner::addSegments(Product &product, Value lhs, Value rhs, bool rhsInVectors) {
  const BlockShapes &shapes = *plan_->shapes;
  int64_t rank = static_cast<int64_t>(shape(product.value).size()), k = rank;
  int64_t lhsRank = shape(lhs).size(), rhsRank = shape(rhs).size();
  auto kept = [&](Value v) { return isKept(v); };

  // Views of the whole operands; batch axes align at the right, as in broadcasting.
  View lhsView(lhsRank), rhsView(rhsRank);
  int64_t matrixAxes = lhsRank >= 2 ? 2 : 1; // m and n, or n alone, at the end of the result
  auto alignBatch = [&](View &view, Value operand) {
    int64_t batch = static_cast<int64_t>(view.size()) - 2;
    for (int64_t axis = 0; axis < batch; ++axis) {
      int64_t to = rank - matrixAxes - batch + axis;
      if (!isUnit(shape(operand)[axis]) || isUnit(shape(product.value)[to]))
        view[axis].axis = static_cast<int>(to);
    }
  };
  lhsView[lhsRank - 1].axis = static_cast<int>(k);
  if (lhsRank >= 2) {
    lhsView[lhsRank - 2].axis = static_cast<int>(rank - 2);
    alignBatch(lhsView, lhs);
  }
  rhsView[rhsRank - 1].axis = static_cast<int>(rank - 1);
  rhsView[rhsRank - 2].axis = static_cast<int>(k);
  alignBatch(rhsView, rhs);

  auto add = [&](Value a, const View &aView, Value b, const View &bView, const Dim &extent) {
    ProductSegment segment;
    // Rows may be picked by an index, but not elements of them.
    std::tie(segment.lhs, segment.lhsView) = strip(a, aView, shapes, kept, [&](const View &view) {
      return picksBefore(view, static_cast<int>(rank - 1));
    });
    std::tie(segment.rhs, segment.rhsView) = strip(b, bView, shapes, kept, [&](const View &view) {
      return (!rhsInVectors || isContiguous(view, static_cast<int>(rank - 1))) &&
             picksBefore(view, static_cast<int>(rank - 1));
    });
    segment.extent = extent;
    product.segments.push_back(std::move(segment));
  };

  if (auto concat = concatAlong(lhs, lhsRank - 1, kept)) {
    Dim begin = 0;
    for (Value piece : concat.getOperands()) {
      View shifted = rhsView;
      shifted[rhsRank - 2].offset = shifted[rhsRank - 2].offset + begin;
      Dim extent = shape(piece)[lhsRank - 1];
      add(piece, lhsView, rhs, shifted, extent);
      begin = begin + extent;
    }
    return;
  }
  if (auto concat = concatAlong(rhs, rhsRank - 2, kept)) {
    Dim begin = 0;
    for (Value piece : concat.getOperands()) {
      View shifted = lhsView;
      shifted[lhsRank - 1].offset = shifted[lhsRank - 1].offset + begin;
      Dim extent = shape(piece)[rhsRank - 2];
      add(lhs, shifted, piece, rhsView, extent);
      begin = begin + extent;
    }
    return;
  }
  add(lhs, lhsView, rhs, rhsView, shape(lhs)[lhsRank - 1]);
}

/// Whether the right operand is made of weights: says of which rows and columns.
bool Planner::findWeights(Product &product) {
  int k = static_cast<int>(shape(product.value).size());
  int n = k - 1;
  if (!shape(product.value).back().isConstant())
    return false;
  for (ProductSegment &segment : product.segments) {
    const View &view = segment.rhsView;
    segment.rhs = weightOfMatrix(segment.rhs, *plan_->shapes);
    // Chains multiply weights in f32 by rows of any type; products of narrow tensors are computed
    // where these lie.
    if (roleOf(segment.rhs) != Role::Weight || view.size() < 2 || !segment.extent.isConstant() ||
        (!product.bf16 && dtypeOf(segment.rhs) != ops::DType::F32))
      return false;
    for (const AxisMap &map : view)
      if (!map.host.empty() || map.index || !map.offset.isConstant())
        return false;
    const AxisMap &rows = view[view.size() - 2], &columns = view.back();
    bool straight = rows.axis == k && columns.axis == n;
    bool transposed = rows.axis == n && columns.axis == k;
    if (!straight && !transposed)
      return false;
    // Of a batch of matrices this is one; their rows lie one after the other.
    int64_t row = 0;
    for (size_t axis = 0; axis + 1 < view.size(); ++axis) {
      if (axis + 2 < view.size() && view[axis].axis >= 0)
        return false;
      row = (axis ? row * shape(segment.rhs)[axis].constant() : 0) + view[axis].offset.constant();
    }
    int64_t column = columns.offset.constant();
    WeightRun run;
    run.weight = plan_->weightNumber(segment.rhs);
    run.begin = straight ? row : column;
    run.end = run.begin + segment.extent.constant();
    run.column = straight ? column : row;
    run.transposed = transposed;
    product.weights.push_back(run);
  }
  return llvm::all_equal(
      llvm::map_range(product.weights, [](const WeightRun &run) { return run.column; }));
}

Product Planner::makeProduct(ir::ApplyOp apply) {
  Product product;
  product.value = apply->getResult(0);
  const auto &rule = std::get<ops::Product>(batchRuleOf(product.value));
  product.bf16 = rule.bf16;
  product.leavesOutZeros = rule.leavesOutZeros;
  addSegments(product, apply.getOperand(0), apply.getOperand(1), false);
  if (options_.knowWeights && !rule.leavesOutZeros && findWeights(product)) {
    product.ofWeights = true;
    product.rowsAreRecords = shape(product.value).size() == 1;
  } else {
    // A right operand with its columns elsewhere, such as a transposed one, is rearranged first.
    Product other;
    other.value = product.value;
    other.bf16 = product.bf16;
    other.leavesOutZeros = product.leavesOutZeros;
    addSegments(other, apply.getOperand(0), apply.getOperand(1), true);
    product = std::move(other);
  }
  product.method = options_.method(product, *plan_->shapes);
  return product;
}

/// The product of a term that nothing but the sum takes.
Product *Planner::joinable(Value term, Value sum) {
  auto *product = const_cast<Product *>(plan_->productOf.lookup(term));
  return product && term.hasOneUse() && shape(term) == shape(sum) && !isKept(term) ? product
                                                                                   : nullptr;
}

/// Whether the chains of a product can start at this weight.
bool Planner::startsAt(Value start, const Product &product) const {
  return !product.start && product.ofWeights && roleOf(start) == Role::Weight &&
         dtypeOf(start) == ops::DType::F32 && shape(start).size() == 1 &&
         shape(start)[0] == shape(product.value).back();
}

/// x @ w + h @ u is one accumulator that runs over both, and x @ w + b is one that starts at b: a
/// change of the order of sums that depends on the program alone. Where the program says that the
/// second term's chain goes on from the first (ops::kStartAttr), it does so from memory, too.
bool Planner::joinSum(ir::ApplyOp add) {
  Value result = add->getResult(0);
  const auto *rule = std::get_if<ops::Elementwise>(&batchRuleOf(result));
  if (!rule || !rule->addition || add.getNumOperands() != 2)
    return false;
  auto become = [&](Product *product, Value left, Value right) {
    plan_->productOf.erase(left);
    plan_->productOf.erase(right);
    product->value = result;
    plan_->productOf[result] = product;
    return true;
  };
  for (int side = 0; side < 2; ++side) {
    Value left = add.getOperand(side), right = add.getOperand(1 - side);
    Product *p = joinable(left, result);
    if (!p)
      continue;
    if (Product *q = side == 0 ? joinable(right, result) : nullptr;
        q && !(p->start && q->start) && p->ofWeights && q->ofWeights && p->method == q->method &&
        p->rowsAreRecords == q->rowsAreRecords &&
        p->weights.front().column == q->weights.front().column) {
      if (q->start)
        p->start = q->start;
      p->segments.insert(p->segments.end(), q->segments.begin(), q->segments.end());
      p->weights.insert(p->weights.end(), q->weights.begin(), q->weights.end());
      q->value = {};
      return become(p, left, right);
    }
    if (startsAt(right, *p)) {
      p->start = right;
      return become(p, left, right);
    }
  }
  Value start = add.getOperand(0), term = add.getOperand(1);
  Product *product = add->hasAttr(ops::kStartAttr) ? joinable(term, result) : nullptr;
  if (!product || product->start || !product->ofWeights || shape(start) != shape(result) ||
      roleOf(start) == Role::Weight || dtypeOf(start) != ops::DType::F32)
    return false;
  product->start = start;
  plan_->productOf.erase(term);
  product->value = result;
  plan_->productOf[result] = product;
  return true;
}

void Planner::findProducts() {
  plan_->products.clear();
  plan_->productOf.clear();
  for (Operation &op : block_.getBody().front().without_terminator()) {
    auto apply = dyn_cast<ir::ApplyOp>(op);
    if (!apply)
      continue;
    if (roleOf(apply->getResult(0)) == Role::Product) {
      plan_->products.push_back(makeProduct(apply));
      plan_->productOf[apply->getResult(0)] = &plan_->products.back();
    } else if (options_.fuse && options_.merge) {
      joinSum(apply);
    }
  }
}

} // namespace sheaf::kernels

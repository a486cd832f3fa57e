//===- Views.cpp - Data movement as addressing ----------------------------===//
#include "compiler/kernels/plan/Views.h"

#include "compiler/ops/Verify.h"
#include "runtime/model/error.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

int64_t intAttr(ir::ApplyOp apply, StringRef name, int64_t otherwise = 0) {
  auto attr = apply.getAttrs().getAs<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

/// Axes of the two shapes that correspond when extents of 1 are left out, for shapes with equally
/// many elements; nullopt when others have been regrouped.
std::optional<std::vector<std::pair<size_t, size_t>>> matchUnits(const std::vector<Dim> &from,
                                                                 const std::vector<Dim> &to) {
  auto others = [](const std::vector<Dim> &dims) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < dims.size(); ++i)
      if (!isUnit(dims[i]))
        axes.push_back(i);
    return axes;
  };
  std::vector<size_t> a = others(from), b = others(to);
  if (a.size() != b.size())
    return std::nullopt;
  std::vector<std::pair<size_t, size_t>> pairs;
  size_t different = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    different += from[a[i]] != to[b[i]];
    pairs.push_back({a[i], b[i]});
  }
  // One pair that looks different is equal, because all the others are.
  if (different > 1)
    return std::nullopt;
  return pairs;
}

void addHost(AxisMap &map, Value index, const Dim &last) {
  if (auto constant = index.getDefiningOp<arith::ConstantOp>())
    if (auto number = dyn_cast<IntegerAttr>(constant.getValue())) {
      map.offset = map.offset + Dim(number.getInt());
      return;
    }
  map.host.push_back({index, last});
}

} // namespace

bool AxisMap::operator==(const AxisMap &other) const {
  if (axis != other.axis || offset != other.offset || host != other.host || index != other.index)
    return false;
  return !index ||
         (mirrored == other.mirrored && indexed == other.indexed && *indexView == *other.indexView);
}

size_t axisOf(ir::ApplyOp apply, StringRef name, int64_t otherwise, size_t rank) {
  int64_t axis = intAttr(apply, name, otherwise);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

bool dependsOn(const View &view, int axis) {
  return llvm::any_of(view, [&](const AxisMap &map) {
    return map.axis == axis || (map.index && dependsOn(*map.indexView, axis));
  });
}

View identityView(size_t rank) {
  View view(rank);
  for (size_t i = 0; i < rank; ++i)
    view[i].axis = static_cast<int>(i);
  return view;
}

bool isPlainReshape(Value value, const BlockShapes &shapes) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  return matchUnits(shapes.of(apply.getOperand(0)), shapes.of(value)).has_value();
}

std::optional<int64_t> knownElements(ArrayRef<Dim> shape) {
  int64_t count = 1;
  for (const Dim &dim : shape) {
    if (!dim.isConstant())
      return std::nullopt;
    count *= dim.constant();
  }
  return count;
}

std::vector<Regrouping> regroupings(ArrayRef<Dim> from, ArrayRef<Dim> to) {
  std::vector<Regrouping> before, behind;
  size_t begin = 0, ends = 0, least = std::min(from.size(), to.size());
  while (begin < least && from[begin] == to[begin]) {
    before.push_back({begin, begin + 1, begin, begin + 1});
    ++begin;
  }
  while (begin + ends < least && from[from.size() - ends - 1] == to[to.size() - ends - 1]) {
    ++ends;
    behind.push_back(
        {from.size() - ends, from.size() - ends + 1, to.size() - ends, to.size() - ends + 1});
  }
  Regrouping rest{begin, from.size() - ends, begin, to.size() - ends};
  // As few axes at a time as have equally many elements: the first end in one shape that has one in
  // the other. (Beside an extent of 0 there may be any.)
  auto isEmpty = [](const Dim &dim) { return dim.isConstant() && dim.constant() == 0; };
  auto firstGroup = [&]() -> std::optional<Regrouping> {
    Dim have = 1;
    for (size_t i = rest.fromBegin; i < rest.fromEnd; ++i) {
      have = have * from[i];
      Dim want = 1;
      for (size_t j = rest.toBegin; j < rest.toEnd; ++j)
        if (want = want * to[j]; want == have)
          return Regrouping{rest.fromBegin, i + 1, rest.toBegin, j + 1};
    }
    return std::nullopt;
  };
  if (llvm::none_of(from, isEmpty) && llvm::none_of(to, isEmpty))
    while (auto group = firstGroup()) {
      before.push_back(*group);
      rest.fromBegin = group->fromEnd;
      rest.toBegin = group->toEnd;
    }
  before.push_back(rest);
  before.insert(before.end(), behind.rbegin(), behind.rend());
  return before;
}

bool liesEvenly(ArrayRef<Dim> from, ArrayRef<Dim> to) {
  return llvm::all_of(regroupings(from, to), [&](const Regrouping &group) {
    bool isLast = group.toEnd == to.size() && group.toBegin < to.size();
    size_t axes = group.fromEnd - group.fromBegin;
    return axes == 0 || (axes == 1 && (!isLast || group.fromEnd == from.size()));
  });
}

bool isOfFactors(Value value) {
  while (roleOf(value) == Role::View || roleOf(value) == Role::Assemble)
    value = value.getDefiningOp()->getOperand(0);
  return isRounding(value);
}

bool isRounding(Value value) {
  return roleOf(value) == Role::Elementwise &&
         std::get<ops::Elementwise>(batchRuleOf(value)).factor;
}

ops::DType dtypeOf(Value tensor) { return ops::operandType(tensor.getType()).tensor()->dtype; }

const ops::BatchRule &batchRuleOf(Value value) {
  return ops::OpTable::get().find(value.getDefiningOp<ir::ApplyOp>().getOp())->batch;
}

ops::Movement::Kind movementOf(Value value) {
  if (auto *movement = std::get_if<ops::Movement>(&batchRuleOf(value)))
    return movement->kind;
  throw InternalError("operator " + value.getDefiningOp<ir::ApplyOp>().getOp().str() +
                      " cannot stand in a block");
}

bool isByIndices(Value value) {
  ops::Movement::Kind kind = movementOf(value);
  return kind == ops::Movement::Gather || kind == ops::Movement::TakeAlong;
}

ops::Reduction::Kind reductionOf(Value value) {
  return std::get<ops::Reduction>(batchRuleOf(value)).kind;
}

bool readsWhole(Value value, unsigned operand) {
  const auto *rule = std::get_if<ops::Reduction>(&batchRuleOf(value));
  return rule && (rule->kind == ops::Reduction::Top || rule->kind == ops::Reduction::Sort ||
                  (rule->kind == ops::Reduction::AddRows && operand == 1));
}

Role roleOf(Value value) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  if (!apply) {
    auto arg = cast<BlockArgument>(value);
    auto block = cast<ir::BlockOp>(arg.getOwner()->getParentOp());
    return arg.getArgNumber() < block.getNumArgs() ? Role::Argument : Role::Weight;
  }
  const ops::BatchRule &rule = batchRuleOf(value);
  if (std::holds_alternative<ops::Elementwise>(rule))
    return Role::Elementwise;
  if (std::holds_alternative<ops::Fold>(rule))
    return Role::Fold;
  if (std::holds_alternative<ops::Reduction>(rule))
    return Role::Reduction;
  if (std::holds_alternative<ops::Fill>(rule))
    return Role::Fill;
  if (std::holds_alternative<ops::Product>(rule))
    // A vector on the right is contracted along its only axis: a row reduction.
    return cast<RankedTensorType>(apply.getOperand(1).getType()).getRank() == 1 ? Role::Dot
                                                                                : Role::Product;
  return movementOf(value) == ops::Movement::Concat ? Role::Assemble : Role::View;
}

View throughBroadcast(Value result, Value operand, const View &view, const BlockShapes &shapes) {
  const std::vector<Dim> &to = shapes.of(result), &from = shapes.of(operand);
  View out(from.size());
  for (size_t axis = 0; axis < from.size(); ++axis) {
    size_t toAxis = axis + to.size() - from.size();
    if (isUnit(from[axis]) && !isUnit(to[toAxis]))
      continue; // stays at element 0
    out[axis] = view[toAxis];
  }
  return out;
}

std::pair<Value, View> throughView(Value value, const View &view, const BlockShapes &shapes) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  Value source = apply.getOperand(0);
  const std::vector<Dim> &from = shapes.of(source);
  int64_t rank = static_cast<int64_t>(from.size());
  switch (movementOf(value)) {
  case ops::Movement::Split: {
    View out = view;
    size_t axis = axisOf(apply, "axis", 0, view.size());
    int64_t number = static_cast<int64_t>(cast<OpResult>(value).getResultNumber());
    out[axis].offset = out[axis].offset + Dim(number) * shapes.of(value)[axis];
    return {source, out};
  }
  case ops::Movement::Slice: {
    View out = view;
    size_t axis = axisOf(apply, "axis", 0, view.size());
    AxisMap &map = out[axis];
    if (apply.getAttrs().contains("start"))
      map.offset = map.offset + Dim(intAttr(apply, "start"));
    else
      addHost(map, apply.getOperand(1), from[axis] - shapes.of(value)[axis]);
    return {source, out};
  }
  case ops::Movement::Broadcast:
    return {source, throughBroadcast(value, source, view, shapes)};
  case ops::Movement::Transpose: {
    View out = view;
    std::swap(out[axisOf(apply, "axis1", -2, rank)], out[axisOf(apply, "axis2", -1, rank)]);
    return {source, out};
  }
  case ops::Movement::Element: {
    // One axis is indexed by the host; the others stay.
    View out = view;
    size_t axis = axisOf(apply, "axis", 0, rank);
    auto at = out.insert(out.begin() + axis, AxisMap());
    addHost(*at, apply.getOperand(1), from[axis] - Dim(1));
    return {source, out};
  }
  case ops::Movement::Gather: {
    // result[i..., rest...] = source[index[i...], rest...]
    Value index = apply.getOperand(1);
    size_t indexRank = shapes.of(index).size();
    View out(rank);
    out[0].index = index;
    out[0].indexed = from[0];
    out[0].indexView = std::make_shared<View>(view.begin(), view.begin() + indexRank);
    for (int64_t axis = 1; axis < rank; ++axis)
      out[axis] = view[indexRank + axis - 1];
    return {source, out};
  }
  case ops::Movement::TakeAlong: {
    // The place along the axis is the index's element at this very place.
    View out = view;
    size_t axis = axisOf(apply, "axis", -1, rank);
    AxisMap &map = out[axis] = AxisMap();
    map.index = apply.getOperand(1);
    map.indexed = from[axis];
    map.indexView = std::make_shared<View>(view);
    return {source, out};
  }
  case ops::Movement::Flip: {
    View out = view;
    AxisMap map;
    size_t axis = axisOf(apply, "axis", 0, rank);
    map.index = source;
    map.indexView = std::make_shared<View>(View{view[axis]});
    map.indexed = from[axis];
    map.mirrored = true;
    out[axis] = std::move(map);
    return {source, out};
  }
  case ops::Movement::Reshape: {
    View out(rank);
    auto pairs = matchUnits(from, shapes.of(value));
    for (auto [fromAxis, toAxis] : *pairs)
      out[fromAxis] = view[toAxis];
    return {source, out};
  }
  case ops::Movement::Concat:
  case ops::Movement::Stack:
    break;
  }
  llvm_unreachable("not a view");
}

} // namespace sheaf::kernels

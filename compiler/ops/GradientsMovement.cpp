//===- GradientsMovement.cpp - Gradients of movements and reductions ------===//

#include "compiler/ops/Gradient.h"
#include "compiler/ops/Make.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::ops {
namespace {

using mlir::Value;
using Values = std::vector<Value>;

Extent sum(ExpandBuilder &b, Extent a, Extent c) {
  auto x = mlir::getConstantIntValue(a), y = mlir::getConstantIntValue(c);
  if (x && y)
    return b.getI64IntegerAttr(*x + *y);
  return Value(mlir::arith::AddIOp::create(b, extentValue(b, a), extentValue(b, c)));
}

Extent difference(ExpandBuilder &b, Extent a, Extent c) {
  auto x = mlir::getConstantIntValue(a), y = mlir::getConstantIntValue(c);
  if (x && y)
    return b.getI64IntegerAttr(*x - *y);
  return Value(mlir::arith::SubIOp::create(b, extentValue(b, a), extentValue(b, c)));
}

/// Zeros like x, but with another extent on one axis.
Value zeros(ExpandBuilder &b, Value x, int64_t axis, Extent size) {
  std::vector<Extent> dims = extentsOf(b, x);
  dims[axis] = size;
  return narrow(b, applyOne(b, "full", {}, {{"value", 0.0}, {"dims", dims}}), dtypeOf(x));
}

Values ofConcat(ExpandBuilder &b, const GradientCall &call) {
  int64_t axis = axisOf(call.apply, "axis", 0, rankOf(call.y()));
  Extent start = b.getI64IntegerAttr(0);
  Values gradients;
  for (auto [i, piece] : llvm::enumerate(call.apply.getOperands())) {
    Extent size = extentOf(b, piece, axis);
    gradients.push_back(call.wanted[i] ? makePart(b, call.dy(), start, size, axis) : Value());
    start = sum(b, start, size);
  }
  return gradients;
}

Values ofSplit(ExpandBuilder &b, const GradientCall &call) {
  Values parts;
  for (auto [i, result] : llvm::enumerate(call.apply.getResults()))
    parts.push_back(call.dy(i) ? call.dy(i) : zerosLike(b, result));
  return {
      applyOne(b, "concat", parts, {{"axis", axisOf(call.apply, "axis", 0, rankOf(call.x(0)))}})};
}

Values ofWindow(ExpandBuilder &b, const GradientCall &call) {
  Value x = call.x(0);
  int64_t axis = axisOf(call.apply, "axis", 0, rankOf(x));
  size_t next = 1;
  Extent start = call.apply.getAttrs().contains("start")
                     ? Extent(call.apply.getAttrs().getAs<mlir::IntegerAttr>("start"))
                     : Extent(call.x(next++));
  Extent size = extentOf(b, call.y(), axis);
  Extent rest = difference(b, difference(b, extentOf(b, x, axis), start), size);
  Values parts;
  auto isZero = [](Extent extent) { return mlir::getConstantIntValue(extent) == 0; };
  if (!isZero(start))
    parts.push_back(zeros(b, call.dy(), axis, start));
  parts.push_back(call.dy());
  if (!isZero(rest))
    parts.push_back(zeros(b, call.dy(), axis, rest));
  return {parts.size() == 1 ? parts[0] : applyOne(b, "concat", parts, {{"axis", axis}})};
}

Values ofFlip(ExpandBuilder &b, const GradientCall &call) {
  return {
      applyOne(b, "flip", call.dy(), {{"axis", axisOf(call.apply, "axis", 0, rankOf(call.y()))}})};
}

Values ofTranspose(ExpandBuilder &b, const GradientCall &call) {
  int64_t rank = rankOf(call.y());
  return {applyOne(b, "transpose", call.dy(),
                   {{"axis1", axisOf(call.apply, "axis1", -2, rank)},
                    {"axis2", axisOf(call.apply, "axis2", -1, rank)}})};
}

Values ofReshape(ExpandBuilder &b, const GradientCall &call) {
  return {applyOne(b, "reshape", call.dy(), {{"dims", extentsOf(b, call.x(0))}})};
}

Values ofBroadcast(ExpandBuilder &b, const GradientCall &call) {
  return {sumToShapeOf(b, call.dy(), call.x(0))};
}

/// Where the places of an axis are `index`, of rank `rank` with this axis: bools that broadcast.
Value isHere(ExpandBuilder &b, Value index, Extent size, int64_t axis, int64_t rank) {
  std::vector<Extent> dims(rank, Extent(b.getI64IntegerAttr(1)));
  dims[axis] = size;
  Value places = applyOne(b, "i64", applyOne(b, "iota", {}, {{"size", size}}));
  places = applyOne(b, "reshape", places, {{"dims", dims}});
  return applyOne(b, "eq", {places, index});
}

Value only(ExpandBuilder &b, Value condition, Value x) {
  return applyOne(b, "where", {condition, x, number(b, 0, dtypeOf(x))});
}

/// Ints held between 0 and the last place.
Value heldInside(ExpandBuilder &b, Value index, Extent extent) {
  Value last =
      promote(b, extentValue(b, difference(b, extent, b.getI64IntegerAttr(1))), DType::I64);
  return applyOne(b, "clamp", {index, number(b, 0, DType::I64), last});
}

Values ofPick(ExpandBuilder &b, const GradientCall &call) {
  Value x = call.x(0);
  int64_t rank = rankOf(x), axis = axisOf(call.apply, "axis", 0, rank);
  Value index = promote(b, indexValue(b, call.x(1)), DType::I64);
  Value here = isHere(b, index, extentOf(b, x, axis), axis, rank);
  return {only(b, here, insertAxis(b, call.dy(), axis))};
}

/// A part of x gets the sum over all indices that name it, and those out of range name the ends.
Values ofTake(ExpandBuilder &b, const GradientCall &call) {
  Value x = call.x(0), index = applyOne(b, "i64", call.x(1)), dy = widen(b, call.dy());
  Extent extent = extentOf(b, x, 0);
  index = heldInside(b, index, extent);
  if (rankOf(index) != 1) {
    index = makeFlat(b, index);
    std::vector<Extent> dims = extentsOf(b, x);
    dims[0] = extentOf(b, index, 0);
    dy = makeReshaped(b, dy, dims);
  }
  return {narrow(b, addRows(b, dy, index, extent), dtypeOf(x))};
}

/// Every row gets the gradient of the sum that it is a part of.
Values ofAddRows(ExpandBuilder &b, const GradientCall &call) {
  Value index = applyOne(b, "i64", call.x(1));
  Extent extent = extentOf(b, call.y(), 0);
  Value rows = applyOne(b, "take", {call.dy(), heldInside(b, index, extent)});
  std::vector<Extent> dims(rankOf(rows), Extent(b.getI64IntegerAttr(1)));
  dims[0] = extentOf(b, index, 0);
  Value inside = applyOne(b, "reshape", isInside(b, index, extent), {{"dims", dims}});
  return {only(b, inside, rows)};
}

Values ofScan(ExpandBuilder &b, const GradientCall &call) {
  return {applyOne(b, "scan_sum", call.dy(),
                   {{"axis", intAttr(call.apply, "axis")},
                    {"reverse", int64_t(intAttr(call.apply, "reverse") == 0)}})};
}

Values ofTakeAlong(ExpandBuilder &b, const GradientCall &call) {
  Value x = call.x(0);
  int64_t rank = rankOf(x), axis = axisOf(call.apply, "axis", -1, rank);
  Extent extent = extentOf(b, x, axis);
  Value index = heldInside(b, applyOne(b, "i64", call.x(1)), extent);
  Value here = isHere(b, insertAxis(b, index, axis), extent, axis, rank + 1);
  Value all = only(b, here, insertAxis(b, call.dy(), axis));
  return {reduceAxis(b, "reduce_sum", all, axis + 1, false)};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The gradient of a reduction's result with the reduced axis, of extent 1.
Value withAxis(ExpandBuilder &b, const GradientCall &call, int64_t axis) {
  return rankOf(call.dy()) == rankOf(call.x(0)) ? call.dy() : insertAxis(b, call.dy(), axis);
}

Values ofSum(ExpandBuilder &b, const GradientCall &call) {
  int64_t axis = axisOf(call.apply, "axis", -1, rankOf(call.x(0)));
  return {
      applyOne(b, "broadcast_to", withAxis(b, call, axis), {{"dims", extentsOf(b, call.x(0))}})};
}

/// The first of the greatest (or least) elements has made the result.
Gradient ofExtreme(bool least) {
  return {Gradient::Rule, [least](ExpandBuilder &b, const GradientCall &call) -> Values {
            Value x = call.x(0);
            int64_t rank = rankOf(x), axis = axisOf(call.apply, "axis", -1, rank);
            Value place = reduceAxis(b, "argmax", least ? applyOne(b, "neg", x) : x, axis, true);
            Value here = isHere(b, applyOne(b, "i64", place), extentOf(b, x, axis), axis, rank);
            return {only(b, here, withAxis(b, call, axis))};
          }};
}

} // namespace

void addMovementGradients(GradientRules &rules) {
  rules["concat"] = {Gradient::Rule, ofConcat};
  rules["split"] = {Gradient::Rule, ofSplit};
  rules["window"] = {Gradient::Rule, ofWindow};
  rules["flip"] = {Gradient::Rule, ofFlip};
  rules["transpose"] = {Gradient::Rule, ofTranspose};
  rules["reshape"] = {Gradient::Rule, ofReshape};
  rules["broadcast_to"] = {Gradient::Rule, ofBroadcast};
  rules["pick"] = {Gradient::Rule, ofPick};
  rules["take"] = {Gradient::Rule, ofTake};
  rules["take_along"] = {Gradient::Rule, ofTakeAlong};
  rules["add_rows"] = {Gradient::Rule, ofAddRows};
  rules["scan_sum"] = {Gradient::Rule, ofScan};
  rules["stack"] = {Gradient::Rows};
  rules["reduce_sum"] = {Gradient::Rule, ofSum};
  rules["reduce_max"] = ofExtreme(false);
  rules["reduce_min"] = ofExtreme(true);
  for (llvm::StringRef name : {"argmax", "top_places", "sort_places", "full", "iota"})
    rules[name] = {Gradient::None};
}

} // namespace sheaf::ops

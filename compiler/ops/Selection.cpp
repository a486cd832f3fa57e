//===- Selection.cpp - The greatest elements and their places -------------===//
//
// In source: top_k (x, k, axis = -1), sort and argsort (x, axis = -1, descending = 0), take_along
// (x, indices, axis = -1).
// For kernels: top_places (x, k: along the last axis, whose extent is k at least) and sort_places
// (x, descending) as i32, and take_along. Of equal elements the first comes first; NaN is greater
// than every number, as in argmax. An index is held between the ends.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

namespace sheaf::ops {
namespace {

using mlir::Value;

//===----------------------------------------------------------------------===//
// top_k
//===----------------------------------------------------------------------===//

/// The result's places; its values have the element type of x.
ShapeResult topShape(std::span<const OperandType> operands, const Attrs &attrs,
                     const DimOracle &oracle, bool withValues) {
  int64_t k = intAttr(attrs, "k", 1);
  std::string action = "take the " + std::to_string(k) + " greatest of";
  auto operand = tensorOperand(operands, 0, action);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  std::string what = "cannot " + action + " " + type.str() + ": ";
  if (type.vocab || type.dtype == DType::Bool)
    return ShapeResult::fail(what + "its elements are not numbers", 0,
                             type.vocab ? "" : "convert it with f32(...)");
  if (k < 1)
    return ShapeResult::fail(what + "at least 1 must be taken");
  auto at = axisAttr(intAttr(attrs, "axis", -1), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  Dim &extent = type.dims[std::get<size_t>(at)];
  if (auto known = oracle.value(extent); known && *known < k)
    return ShapeResult::fail(what + "axis " + std::to_string(std::get<size_t>(at)) + " has " +
                                 withValue(extent, oracle),
                             0);
  extent = Dim(k);
  ShapeResult result;
  if (withValues)
    result.types.push_back(type);
  type.dtype = DType::I32;
  result.types.push_back(std::move(type));
  return result;
}

/// Calls `visit` with the place in x and in the results of every element that is taken.
template <typename Visit>
std::string topReference(const RefTensor &x, const Attrs &attrs, RefTensor &places, Visit visit,
                         bool ascending) {
  size_t axis = axisIn(attrs, "axis", -1, x.shape.size());
  AxisView from(x.shape, axis), to(places.shape, axis);
  if (from.extent < to.extent)
    return "top_k takes " + std::to_string(to.extent) + " elements of an axis that has " +
           std::to_string(from.extent);
  std::vector<int64_t> order(static_cast<size_t>(from.extent));
  for (int64_t o = 0; o < from.outer; ++o)
    for (int64_t n = 0; n < from.inner; ++n) {
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        double a = x.data[from.at(o, i, n)], b = x.data[from.at(o, j, n)];
        bool isEqual = a == b || (std::isnan(a) && std::isnan(b));
        if (ascending)
          std::swap(a, b);
        return isEqual ? i < j : std::isnan(a) || a > b;
      });
      for (int64_t i = 0; i < to.extent; ++i) {
        places.data[to.at(o, i, n)] = static_cast<double>(order[i]);
        visit(from.at(o, order[i], n), to.at(o, i, n));
      }
    }
  return {};
}

std::vector<Value> expandTop(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0];
  int64_t axis = intAttr(op, "axis"), last = rankOf(x) - 1, k = intAttr(op, "k");
  Extent extent = extentOf(b, x, axis);
  if (!mlir::getConstantIntValue(extent)) {
    Value wanted = extentValue(b, b.getI64IntegerAttr(k));
    Value enough = mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::sle, wanted,
                                               extentValue(b, extent));
    ir::CheckOp::create(b, enough,
                        "top_k takes " + std::to_string(k) + " elements of axis " +
                            std::to_string(axis) + ", which has fewer");
  }
  auto turned = [&](Value v) {
    return axis == last ? v : applyOne(b, "transpose", v, {{"axis1", axis}, {"axis2", last}});
  };
  x = turned(x);
  Value places = applyOne(b, "top_places", x, {{"k", k}});
  Value values = applyOne(b, "take_along", {x, places}, {{"axis", last}});
  return {turned(values), turned(places)};
}

/// Where an element of the places stands in its row of them.
struct TopPlace {
  AxisView to;
  int64_t outer, rank, inner;
  TopPlace(const RefTensor &places, const Attrs &attrs, size_t at)
      : to(places.shape, axisIn(attrs, "axis", -1, places.shape.size())),
        outer(static_cast<int64_t>(at) / (to.extent * to.inner)),
        rank(static_cast<int64_t>(at) / to.inner % to.extent),
        inner(static_cast<int64_t>(at) % to.inner) {}
};

/// Whoever stands at a rank gives it up to one that is equal.
double topDistance(const RefTensor &x, const Attrs &attrs, const RefTensor &places, size_t at,
                   double value) {
  AxisView from(x.shape, axisIn(attrs, "axis", -1, x.shape.size()));
  TopPlace place(places, attrs, at);
  if (!isFloat(x.dtype) || !isPlace(value, from.extent))
    return std::numeric_limits<double>::infinity();
  auto score = [&](double i) {
    return x.data[from.at(place.outer, static_cast<int64_t>(i), place.inner)];
  };
  return distanceToMeet(score(places.data[at]), score(value));
}

/// Those after it move on, up to where it stood; else the last one goes. One that stood before
/// changes with it.
void takeTop(const Attrs &attrs, RefTensor &places, size_t at, double value) {
  TopPlace place(places, attrs, at);
  auto rank = [&](int64_t i) -> double & {
    return places.data[place.to.at(place.outer, i, place.inner)];
  };
  for (int64_t i = 0; i < place.rank; ++i)
    if (rank(i) == value) {
      std::swap(rank(i), rank(place.rank));
      return;
    }
  double next = value;
  for (int64_t i = place.rank; i < place.to.extent; ++i) {
    std::swap(rank(i), next);
    if (next == value)
      break;
  }
}

/// `result`: which one holds the places. One before it holds the values.
Decision topDecision(size_t result) {
  return {
      .result = result,
      .distance = [](const RefTensors &operands, const Attrs &attrs, const RefTensor &places,
                     size_t at,
                     double value) { return topDistance(operands[0], attrs, places, at, value); },
      .range =
          [](const RefTensors &operands, const Attrs &attrs, const RefTensor &, size_t) {
            const std::vector<int64_t> &shape = operands[0].shape;
            return placeRange(shape[axisIn(attrs, "axis", -1, shape.size())]);
          },
      .take =
          [result](const RefTensors &operands, const Attrs &attrs,
                   std::span<RefTensor *const> results, size_t at, double value) {
            const RefTensor &x = operands[0];
            RefTensor &places = *results[result];
            takeTop(attrs, places, at, value);
            if (result == 0)
              return;
            AxisView from(x.shape, axisIn(attrs, "axis", -1, x.shape.size()));
            for (size_t i = 0; i < places.data.size(); ++i) {
              TopPlace place(places, attrs, i);
              results[0]->data[i] =
                  x.data[from.at(place.outer, static_cast<int64_t>(places.data[i]), place.inner)];
            }
          }};
}

/// What differs between the selections: `op` gives the elements and their places; for kernels,
/// `placesOp` gives the places along the last axis alone.
struct Selecting {
  ShapeResult (*shape)(std::span<const OperandType> operands, const Attrs &attrs,
                       const DimOracle &oracle, bool withValues);
  bool (*ascending)(const Attrs &attrs);
  std::vector<Value> (*expansion)(ExpandBuilder &b, ir::ApplyOp op);
  Reduction::Kind kind;
};

void addSelection(std::vector<Op> &ops, Op op, Op placesOp, const Selecting &how) {
  op.shape = [how](std::span<const OperandType> operands, const Attrs &attrs,
                   const DimOracle &oracle) { return how.shape(operands, attrs, oracle, true); };
  op.reference = [how](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                       std::span<RefTensor> results) {
    return topReference(
        operands[0], attrs, results[1],
        [&](int64_t from, int64_t to) { results[0].data[to] = operands[0].data[from]; },
        how.ascending(attrs));
  };
  op.batch = expand(how.expansion);
  op.decision = topDecision(1);
  ops.push_back(std::move(op));

  placesOp.internal = true;
  placesOp.shape = [how](std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
    return how.shape(operands, attrs, oracle, false);
  };
  placesOp.reference = [how](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                             std::span<RefTensor> results) {
    return topReference(
        operands[0], attrs, results[0], [](int64_t, int64_t) {}, how.ascending(attrs));
  };
  placesOp.batch = Reduction{how.kind};
  placesOp.decision = topDecision(0);
  ops.push_back(std::move(placesOp));
}

void addTop(std::vector<Op> &ops) {
  Op op;
  op.name = "top_k";
  op.summary = "the k greatest elements along an axis, the last by default, in descending order, "
               "and their places as i32; the first of equals first";
  op.params = {{"x", ParamKind::Tensor},
               {"k", ParamKind::Static},
               {"axis", ParamKind::Static, Attr(int64_t(-1))}};
  Op places;
  places.name = "top_places";
  places.summary = "the places of the k greatest elements along the last axis";
  places.params = {{"x", ParamKind::Tensor}, {"k", ParamKind::Static}};
  addSelection(ops, std::move(op), std::move(places),
               {topShape, [](const Attrs &) { return false; }, expandTop, Reduction::Top});
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

ShapeResult sortShape(std::span<const OperandType> operands, const Attrs &attrs, const DimOracle &,
                      bool withValues) {
  auto operand = tensorOperand(operands, 0, "sort");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (type.vocab || type.dtype == DType::Bool)
    return ShapeResult::fail("cannot sort " + type.str() + ": its elements are not numbers", 0,
                             type.vocab ? "" : "convert it with f32(...)");
  auto at = axisAttr(intAttr(attrs, "axis", -1), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  if (int64_t way = intAttr(attrs, "descending", 0); way != 0 && way != 1)
    return ShapeResult::fail("descending is 0 or 1, not " + std::to_string(way));
  ShapeResult result;
  if (withValues)
    result.types.push_back(type);
  type.dtype = DType::I32;
  result.types.push_back(std::move(type));
  return result;
}

std::vector<Value> expandSort(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0];
  int64_t axis = intAttr(op, "axis"), last = rankOf(x) - 1;
  auto turned = [&](Value v) {
    return axis == last ? v : applyOne(b, "transpose", v, {{"axis1", axis}, {"axis2", last}});
  };
  x = turned(x);
  Value places = applyOne(b, "sort_places", x, {{"descending", intAttr(op, "descending")}});
  Value values = applyOne(b, "take_along", {x, places}, {{"axis", last}});
  return {turned(values), turned(places)};
}

void addSort(std::vector<Op> &ops) {
  Op op;
  op.name = "sort";
  op.summary = "the elements along an axis, the last by default, from least to greatest, or with "
               "descending=1 the other way, and their places as i32; the first of equals first";
  op.params = {{"x", ParamKind::Tensor},
               {"axis", ParamKind::Static, Attr(int64_t(-1))},
               {"descending", ParamKind::Static, Attr(int64_t(0))}};
  Op places;
  places.name = "sort_places";
  places.summary = "the places of the elements along the last axis in order";
  places.params = {{"x", ParamKind::Tensor}, {"descending", ParamKind::Static, Attr(int64_t(0))}};
  addSelection(ops, std::move(op), std::move(places),
               {sortShape, [](const Attrs &attrs) { return intAttr(attrs, "descending", 0) == 0; },
                expandSort, Reduction::Sort});
}

void addArgsort(std::vector<Op> &ops) {
  Op op;
  op.name = "argsort";
  op.summary =
      "the places of the elements along an axis, the last by default, from the least to "
      "the greatest, or with descending=1 the other way, as i32; the first of equals first";
  op.params = {{"x", ParamKind::Tensor},
               {"axis", ParamKind::Static, Attr(int64_t(-1))},
               {"descending", ParamKind::Static, Attr(int64_t(0))}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &attrs,
                const DimOracle &oracle) { return sortShape(operands, attrs, oracle, false); };
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                    std::span<RefTensor> results) {
    return topReference(
        operands[0], attrs, results[0], [](int64_t, int64_t) {},
        intAttr(attrs, "descending", 0) == 0);
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    return {ops::apply(
        b, "sort", apply.getOperands(),
        {{"axis", intAttr(apply, "axis")}, {"descending", intAttr(apply, "descending")}})[1]};
  });
  op.decision = topDecision(0);
  ops.push_back(std::move(op));
}

//===----------------------------------------------------------------------===//
// take_along
//===----------------------------------------------------------------------===//

ShapeResult takeShape(std::span<const OperandType> operands, const Attrs &attrs,
                      const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "take elements of");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  std::string what =
      "cannot take elements of " + type.str() + " at " + describe(operands[1]) + ": ";
  const TensorType *indices = operands[1].isList ? nullptr : operands[1].tensor();
  if (!indices || indices->vocab || (indices->dtype != DType::I32 && indices->dtype != DType::I64))
    return ShapeResult::fail(what + "the places are a tensor of ints", 1);
  auto at = axisAttr(intAttr(attrs, "axis", -1), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  size_t axis = std::get<size_t>(at);
  if (indices->dims.size() != type.dims.size())
    return ShapeResult::fail(what + "the numbers of axes differ", 1);
  for (size_t i = 0; i < type.dims.size(); ++i)
    if (i != axis && !oracle.same(type.dims[i], indices->dims[i]))
      return ShapeResult::fail(what + "the extents of axis " + std::to_string(i) + " differ (" +
                                   withValue(type.dims[i], oracle) + ", " +
                                   withValue(indices->dims[i], oracle) + ")",
                               1);
  type.dims[axis] = indices->dims[axis];
  return ShapeResult::ok(std::move(type));
}

void addTake(std::vector<Op> &ops) {
  Op op;
  op.name = "take_along";
  op.summary = "the elements of x at places along an axis, the last by default; the other axes of "
               "x and of the places go together; a place out of range is held between the ends";
  op.params = {{"x", ParamKind::Tensor},
               {"indices", ParamKind::Index},
               {"axis", ParamKind::Static, Attr(int64_t(-1))}};
  op.shape = takeShape;
  op.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                    std::span<RefTensor> results) -> std::string {
    const RefTensor &x = operands[0];
    size_t axis = axisIn(attrs, "axis", -1, x.shape.size());
    AxisView from(x.shape, axis), to(results[0].shape, axis);
    if (from.extent == 0 && !results[0].data.empty())
      return "cannot take elements of an axis that has none";
    for (int64_t o = 0; o < to.outer; ++o)
      for (int64_t i = 0; i < to.extent; ++i)
        for (int64_t n = 0; n < to.inner; ++n) {
          double place = std::clamp(operands[1].data[to.at(o, i, n)], 0.0,
                                    static_cast<double>(from.extent - 1));
          results[0].data[to.at(o, i, n)] = x.data[from.at(o, static_cast<int64_t>(place), n)];
        }
    return {};
  };
  op.batch = Movement{Movement::TakeAlong};
  ops.push_back(std::move(op));
}

} // namespace

void addSelection(std::vector<Op> &ops) {
  addTop(ops);
  addSort(ops);
  addArgsort(ops);
  addTake(ops);
}

} // namespace sheaf::ops

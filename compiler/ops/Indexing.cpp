//===- Indexing.cpp - Parts of a tensor by position -----------------------===//
//
// In source: index(x, i), which `x[i]` and embedding(x, i) are; element, slice, gather, rows.
// For kernels and the host: row (x, index: by address), pick (x, index, axis), window (x, axis,
// start, size: each an attribute when constant, else an operand, start first), take (x, indices
// along axis 0). A host index out of range ends the instance; the public operators check it, so
// row, pick and window are always in range. An index out of a tensor is known only when a kernel
// runs: the public operators give what Expand.h's outside() says where it is out of range. take
// holds it between the ends, so that nothing foreign is read.
// rows gives a list: its shape rule tells the type of an element, its reference fills one result
// for each row, and the Program says it with sheaf.rows.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"
#include "compiler/ops/Verify.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

bool isIndexTensor(const OperandType &operand) {
  const TensorType *tensor = operand.tensor();
  return tensor && !operand.isList && (tensor->dtype == DType::I32 || tensor->dtype == DType::I64);
}
bool isHostIndex(const OperandType &operand) {
  const HostKind *host = operand.host();
  return host && !operand.isList && (*host == HostKind::Int || *host == HostKind::Token);
}

ShapeError badIndex(const TensorType &x, const OperandType &index, bool hostOnly) {
  std::string wanted = hostOnly ? "an int or a token" : "an int, a token or a tensor of ints";
  return {"cannot index " + x.str() + " with " + describe(index) + ": the index is " + wanted, 1};
}

/// The indexed tensor, of rank 1 at least.
Expected<TensorType> indexed(std::span<const OperandType> operands) {
  auto operand = tensorOperand(operands, 0, "index");
  if (auto *type = std::get_if<TensorType>(&operand); type && type->dims.empty())
    return ShapeError{"cannot index " + type->str() + ": it has no axes", 0};
  return operand;
}

/// Why a known index does not go with an axis; empty if it does or is not known.
std::string indexMistake(const TensorType &x, const OperandType &index, size_t axis,
                         const DimOracle &oracle) {
  auto extent = oracle.value(x.dims[axis]);
  if (!index.number || (*index.number >= 0 && (!extent || *index.number < *extent)))
    return {};
  return "index " + std::to_string(*index.number) + " is out of range for axis " +
         std::to_string(axis) + " of " + x.str() +
         (extent && !x.dims[axis].isConstant() ? " (" + withValue(x.dims[axis], oracle) + ")" : "");
}

ShapeResult indexShape(std::span<const OperandType> operands, const Attrs &,
                       const DimOracle &oracle) {
  auto operand = indexed(operands);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (std::string mistake = indexMistake(type, operands[1], 0, oracle); !mistake.empty())
    return ShapeResult::fail(mistake, 1);
  type.dims.erase(type.dims.begin());
  if (isHostIndex(operands[1]))
    return ShapeResult::ok(std::move(type));
  if (!isIndexTensor(operands[1]))
    return badIndex(std::get<TensorType>(operand), operands[1], false);
  const auto &outer = operands[1].tensor()->dims;
  type.dims.insert(type.dims.begin(), outer.begin(), outer.end());
  return ShapeResult::ok(std::move(type));
}

ShapeResult gatherShape(std::span<const OperandType> operands, const Attrs &attrs,
                        const DimOracle &oracle) {
  if (!isIndexTensor(operands[1]))
    return ShapeResult::fail("cannot gather with " + describe(operands[1]) +
                                 ": the indices are a tensor of ints or tokens",
                             1);
  return indexShape(operands, attrs, oracle);
}

ShapeResult elementShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
  auto operand = indexed(operands);
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (!isHostIndex(operands[1]))
    return badIndex(type, operands[1], true);
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  if (std::string mistake = indexMistake(type, operands[1], std::get<size_t>(at), oracle);
      !mistake.empty())
    return ShapeResult::fail(mistake, 1);
  type.dims.erase(type.dims.begin() + static_cast<int64_t>(std::get<size_t>(at)));
  return ShapeResult::ok(std::move(type));
}

ShapeResult rowShape(std::span<const OperandType> operands, const Attrs &attrs,
                     const DimOracle &oracle) {
  if (const TensorType *type = operands[0].tensor(); type && type->dims.size() < 2)
    return ShapeResult::fail("cannot take a row of " + type->str(), 0);
  return elementShape(operands, attrs, oracle);
}

ShapeResult rowsShape(std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
  auto operand = tensorOperand(operands, 0, "take the rows of");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (type.dims.size() < 2)
    return ShapeResult::fail("cannot take the rows of " + type.str() + ": it has " +
                                 counted(type.dims.size(), "axis", "axes") +
                                 ", and at least 2 are needed",
                             0);
  type.dims.erase(type.dims.begin());
  return ShapeResult::ok(std::move(type));
}

ShapeResult sliceShape(std::span<const OperandType> operands, const Attrs &attrs,
                       const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "slice");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  size_t axis = std::get<size_t>(at);
  Dim start = dimAttr(attrs, "start"), size = dimAttr(attrs, "size");
  const Dim &extent = type.dims[axis];
  auto outside = [&](const std::string &why) {
    return ShapeResult::fail(
        "cannot slice axis " + std::to_string(axis) + " of " + type.str() + ": " + why, 0);
  };
  if (oracle.value(start).value_or(0) < 0)
    return outside("the start is " + withValue(start, oracle));
  if (oracle.value(size).value_or(0) < 0)
    return outside("the size is " + withValue(size, oracle));
  auto slack = oracle.value(extent - (start + size));
  if (slack && *slack < 0)
    return outside("the end " + withValue(start + size, oracle) + " is beyond its extent " +
                   withValue(extent, oracle));
  type.dims[axis] = size;
  return ShapeResult::ok(std::move(type));
}

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

std::string outOfRange(double index, int64_t extent) {
  return "index " + std::to_string(static_cast<int64_t>(index)) +
         " is out of range for an extent of " + std::to_string(extent);
}

/// `held`: an index out of range is that of the nearest end, as in take.
std::string gatherReference(const RefTensor &x, const RefTensor &indices, bool held,
                            RefTensor &result) {
  int64_t extent = x.shape[0], inner = 1;
  for (size_t i = 1; i < x.shape.size(); ++i)
    inner *= x.shape[i];
  int64_t n = 0;
  for (double index : indices.data) {
    if (held)
      index = std::max(0.0, std::min(index, static_cast<double>(extent - 1)));
    bool inside = index >= 0 && index < static_cast<double>(extent);
    int64_t row = inside ? static_cast<int64_t>(index) : 0;
    for (int64_t i = 0; i < inner; ++i)
      result.data[n++] = inside ? x.data[row * inner + i] : outside(result.dtype);
  }
  return {};
}

std::string elementReference(const RefTensor &x, const RefTensor &index, size_t axis,
                             RefTensor &result) {
  AxisView view(x.shape, axis);
  double at = index.data[0];
  if (at < 0 || at >= static_cast<double>(view.extent))
    return outOfRange(at, view.extent);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n)
      result.data[o * view.inner + n] = x.data[view.at(o, static_cast<int64_t>(at), n)];
  return {};
}

Reference elementRule() {
  return [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
            std::span<RefTensor> results) {
    return elementReference(operands[0], operands[1],
                            axisIn(attrs, "axis", 0, operands[0].shape.size()), results[0]);
  };
}

Reference gatherRule(bool held) {
  return [held](const RefTensors &operands, const Attrs &, const Arithmetic &,
                std::span<RefTensor> results) {
    return gatherReference(operands[0], operands[1], held, results[0]);
  };
}

Reference indexRule() {
  return [](const RefTensors &operands, const Attrs &, const Arithmetic &,
            std::span<RefTensor> results) {
    if (operands[1].host)
      return elementReference(operands[0], operands[1], 0, results[0]);
    return gatherReference(operands[0], operands[1], false, results[0]);
  };
}

std::string sliceReference(const RefTensor &x, const Attrs &attrs, RefTensor &result) {
  size_t axis = axisIn(attrs, "axis", 0, x.shape.size());
  AxisView whole(x.shape, axis), part(result.shape, axis);
  Dim start = dimAttr(attrs, "start");
  if (!start.isConstant())
    return "the start is not known";
  int64_t begin = start.constant();
  // No sum that may overflow.
  if (begin < 0 || begin > whole.extent || part.extent > whole.extent - begin)
    return "the slice of " + std::to_string(part.extent) + " from " + std::to_string(begin) +
           " on is out of range for an extent of " + std::to_string(whole.extent);
  for (int64_t o = 0; o < part.outer; ++o)
    for (int64_t i = 0; i < part.extent; ++i)
      for (int64_t n = 0; n < part.inner; ++n)
        result.data[part.at(o, i, n)] = x.data[whole.at(o, begin + i, n)];
  return {};
}

//===----------------------------------------------------------------------===//
// Expansions
//===----------------------------------------------------------------------===//

std::vector<Value> expandGather(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0], index = op.getOperands()[1];
  DType dtype = dtypeOf(x);
  Value nothing = number(b, outside(dtype), dtype);
  std::vector<Extent> dims = extentsOf(b, index), rest = extentsOf(b, x);
  size_t outer = dims.size();
  dims.insert(dims.end(), rest.begin() + 1, rest.end());
  bool tokens = operandType(x.getType()).tensor()->vocab.has_value();
  if (mlir::getConstantIntValue(rest[0]) == 0 && !tokens)
    return {applyOne(b, "broadcast_to", nothing, {{"dims", dims}})};
  Value taken = applyOne(b, "take", {x, index});
  Value inside = isInside(b, index, rest[0]);
  if (rankOf(x) > 1) {
    std::fill(dims.begin() + static_cast<ptrdiff_t>(outer), dims.end(),
              Extent(b.getI64IntegerAttr(1)));
    inside = applyOne(b, "reshape", inside, {{"dims", dims}});
  }
  if (!tokens)
    return {applyOne(b, "where", {inside, taken, nothing})};
  // Where chooses among tokens or among numbers, and what stands for nothing is no token.
  Value numbers = applyOne(b, "where", {inside, applyOne(b, "i32", taken), nothing});
  return {applyOne(b, "tokens", {numbers, taken})};
}

std::vector<Value> expandIndex(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0], index = op.getOperands()[1];
  if (mlir::isa<mlir::RankedTensorType>(index.getType()))
    return expandGather(b, op);
  Value position = indexValue(b, index);
  checkIndex(b, position, x, 0);
  if (rankOf(x) >= 2)
    return {applyOne(b, "row", {x, position})};
  return {applyOne(b, "pick", {x, position}, {{"axis", int64_t(0)}})};
}

std::vector<Value> expandElement(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0];
  Value position = indexValue(b, op.getOperands()[1]);
  int64_t axis = intAttr(op, "axis");
  checkIndex(b, position, x, axis);
  if (axis == 0 && rankOf(x) >= 2)
    return {applyOne(b, "row", {x, position})};
  return {applyOne(b, "pick", {x, position}, {{"axis", axis}})};
}

std::vector<Value> expandSlice(ExpandBuilder &b, ir::ApplyOp op) {
  Value x = op.getOperands()[0];
  size_t next = 1;
  auto extent = [&](llvm::StringRef name) -> Extent {
    if (auto attr = op.getAttrs().getAs<mlir::IntegerAttr>(name))
      return attr;
    return Value(op.getOperands()[next++]);
  };
  Extent start = extent("start"), size = extent("size");
  int64_t axis = intAttr(op, "axis");
  checkWindow(b, start, size, x, axis);
  return {applyOne(b, "window", x, {{"start", start}, {"size", size}, {"axis", axis}})};
}

} // namespace

void addIndexing(std::vector<Op> &ops) {
  auto add = [&](std::string name, std::string summary, std::vector<Param> params, ShapeRule shape,
                 Reference reference, BatchRule batch, bool internal) {
    Op op;
    op.name = std::move(name);
    op.summary = std::move(summary);
    op.params = std::move(params);
    op.shape = std::move(shape);
    op.reference = std::move(reference);
    op.batch = std::move(batch);
    op.internal = internal;
    ops.push_back(std::move(op));
  };
  Reference slice = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                       std::span<RefTensor> results) {
    return sliceReference(operands[0], attrs, results[0]);
  };
  Reference rows = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                      std::span<RefTensor> results) -> std::string {
    size_t n = 0;
    for (RefTensor &result : results)
      for (double &value : result.data)
        value = operands[0].data[n++];
    return {};
  };
  Param x{"x", ParamKind::Tensor}, index{"index", ParamKind::Index};
  Param axis{"axis", ParamKind::Static, Attr(int64_t(0))};
  std::vector<Param> window = {x, {"start", ParamKind::Extent}, {"size", ParamKind::Extent}, axis};

  add("index", "the part of x at a position along its first axis; also written `x[index]`",
      {x, index}, indexShape, indexRule(), expand(expandIndex), false);
  add("embedding", "the rows of a table that an int, a token or a tensor of them names",
      {{"table", ParamKind::Tensor}, index}, indexShape, indexRule(), expand(expandIndex), false);
  add("gather", "the parts of x at the positions that a tensor of ints or tokens names",
      {x, {"indices", ParamKind::Index}}, gatherShape, gatherRule(false), expand(expandGather),
      false);
  add("element", "the part of x at a position along an axis, the first by default",
      {x, index, axis}, elementShape, elementRule(), expand(expandElement), false);
  add("slice", "`size` positions of x from `start` along an axis, the first by default", window,
      sliceShape, slice, expand(expandSlice), false);
  add("rows", "the rows of a tensor as a list", {x}, rowsShape, rows,
      HostAddress{HostAddress::Rows}, false);
  add("row", "a part along the first axis, by address", {x, index}, rowShape, elementRule(),
      HostAddress{HostAddress::Row}, true);
  add("part", "some rows of x, by address", {x, window[1], window[2]}, sliceShape, slice,
      HostAddress{HostAddress::Part}, true);
  ops.back().gradient = {Gradient::Untrained};
  add("take", "gather with indices held between the first and the last position",
      {x, {"indices", ParamKind::Index}}, gatherShape, gatherRule(true), Movement{Movement::Gather},
      true);
  add(
      "tokens", "the ints of x as tokens of the vocabulary of a tensor of the same shape",
      {x, {"like", ParamKind::Tensor}},
      [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
        TensorType type = *operands[0].tensor();
        type.vocab = operands[1].tensor()->vocab;
        return ShapeResult::ok(std::move(type));
      },
      [](const RefTensors &operands, const Attrs &, const Arithmetic &,
         std::span<RefTensor> results) -> std::string {
        results[0].data = operands[0].data;
        return {};
      },
      Elementwise{[](ExpandBuilder &, mlir::ValueRange x) { return x[0]; }}, true);
  add("pick", "the part of x at a position that is in range", {x, index, axis}, elementShape,
      elementRule(), Movement{Movement::Element}, true);
  add("window", "a slice that is in range", window, sliceShape, slice, Movement{Movement::Slice},
      true);
}

} // namespace sheaf::ops

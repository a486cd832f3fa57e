//===- Movement.cpp - Rearranging and joining tensors ---------------------===//
//
// For kernels: concat (axis), split (parts, axis), transpose (axis1, axis2), reshape and
// broadcast_to (extents by the result type, an i64 operand for each `?`), stack (a list). Others
// are rewritten into these. append_rows (x, rows) is a concat that the host does. Joining and
// splitting are along axis 0 unless told otherwise.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

Param staticParam(std::string name, int64_t value) {
  return {std::move(name), ParamKind::Static, Attr(value)};
}

/// References of movements: fills each result element from where it was.
std::string copyAll(const RefTensor &x, std::span<RefTensor> results) {
  results[0].data = x.data;
  return {};
}

//===----------------------------------------------------------------------===//
// concat, split, stack
//===----------------------------------------------------------------------===//

ShapeResult concatShape(std::span<const OperandType> operands, const Attrs &attrs,
                        const DimOracle &oracle) {
  if (operands.empty())
    return ShapeResult::fail("'concat' needs at least one tensor");
  TensorType result;
  size_t axis = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = tensorOperand(operands, i, "join");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    const TensorType &type = std::get<TensorType>(operand);
    if (i == 0) {
      auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
      if (auto *error = std::get_if<ShapeError>(&at))
        return *error;
      axis = std::get<size_t>(at);
      result = type;
      continue;
    }
    int blame = static_cast<int>(i);
    std::string both = "cannot join " + operands[0].str() + " and " + type.str() + " along axis " +
                       std::to_string(axis) + ": ";
    if (type.dtype != result.dtype || type.vocab != result.vocab)
      return ShapeResult::fail(both + "the element types differ", blame);
    if (type.dims.size() != result.dims.size())
      return ShapeResult::fail(both + "the numbers of axes differ", blame);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (d == axis)
        result.dims[d] = result.dims[d] + type.dims[d];
      else if (oracle.same(result.dims[d], type.dims[d]))
        result.dims[d] = better(result.dims[d], type.dims[d], oracle);
      else
        return ShapeResult::fail(both + "the extents of axis " + std::to_string(d) + " differ (" +
                                     withValue(result.dims[d], oracle) + ", " +
                                     withValue(type.dims[d], oracle) + ")",
                                 blame,
                                 axis == 0 && d == 1 && type.dims.size() == 2 &&
                                         oracle.same(operands[0].tensor()->dims[0], type.dims[0])
                                     ? "to join them along the last axis write axis=-1"
                                     : "");
    }
  }
  return ShapeResult::ok(std::move(result));
}

ShapeResult appendShape(std::span<const OperandType> operands, const Attrs &,
                        const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "append to");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand), part;
  if (const HostKind *host = operands[1].host();
      host && *host != HostKind::Token && !operands[1].isList) {
    part.dtype = Op().promoted(operands, 1);
  } else {
    auto second = tensorOperand(operands, 1, "append");
    if (auto *error = std::get_if<ShapeError>(&second))
      return *error;
    part = std::get<TensorType>(second);
  }
  std::string what = "cannot append " + part.str() + " to " + type.str() + ": ";
  if (type.dims.empty())
    return ShapeResult::fail(what + "it has no axes", 0);
  if (type.dtype != part.dtype || type.vocab != part.vocab)
    return ShapeResult::fail(what + "the element types differ", 1);
  if (part.dims.size() + 1 != type.dims.size())
    return ShapeResult::fail(
        what + "a part of it has " +
            counted(static_cast<int64_t>(type.dims.size()) - 1, "axis", "axes"),
        1,
        part.dims.size() == type.dims.size() ? "concat joins tensors with equally many axes" : "");
  for (size_t axis = 0; axis < part.dims.size(); ++axis)
    if (!oracle.same(type.dims[axis + 1], part.dims[axis]))
      return ShapeResult::fail(what + "the extents of axis " + std::to_string(axis) +
                                   " of the part differ (" +
                                   withValue(type.dims[axis + 1], oracle) + ", " +
                                   withValue(part.dims[axis], oracle) + ")",
                               1);
  type.dims[0] = type.dims[0] + Dim(1);
  return ShapeResult::ok(std::move(type));
}

std::string concatReference(const RefTensors &operands, const Attrs &attrs, RefTensor &result) {
  size_t axis = axisIn(attrs, "axis", 0, result.shape.size());
  AxisView whole(result.shape, axis);
  int64_t begin = 0;
  for (size_t which = 0; which < operands.size(); ++which) {
    const RefTensor &x = operands[which];
    AxisView part(x.shape, axis);
    for (int64_t o = 0; o < part.outer; ++o)
      for (int64_t i = 0; i < part.extent; ++i)
        for (int64_t n = 0; n < part.inner; ++n)
          result.data[whole.at(o, begin + i, n)] = x.data[part.at(o, i, n)];
    begin += part.extent;
  }
  return {};
}

ShapeResult splitShape(std::span<const OperandType> operands, const Attrs &attrs,
                       const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "split");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  int64_t parts = intAttr(attrs, "parts", 0);
  if (parts < 1)
    return ShapeResult::fail("cannot split " + type.str() + " into " +
                             counted(parts, "part", "parts"));
  if (parts > 4096)
    return ShapeResult::fail("cannot split " + type.str() + " into " + std::to_string(parts) +
                             " parts: at most 4096 are possible");
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  size_t axis = std::get<size_t>(at);
  auto part = oracle.quotient(type.dims[axis], Dim(parts));
  if (!part) {
    bool lastDivides =
        axis + 1 < type.dims.size() && axis == 0 && oracle.quotient(type.dims.back(), Dim(parts));
    bool known = oracle.value(type.dims[axis]).has_value();
    return ShapeResult::fail(
        "cannot split axis " + std::to_string(axis) + " of " + type.str() + " into " +
            std::to_string(parts) + " equal parts: " + withValue(type.dims[axis], oracle) +
            (known ? " is not a multiple of " : " is not known to be a multiple of ") +
            std::to_string(parts),
        0,
        lastDivides ? "for the last axis write axis=-1"
        : known     ? ""
                    : "slice(x, start, size) takes parts whose extents are checked at run time");
  }
  type.dims[axis] = *part;
  ShapeResult result;
  result.types.assign(static_cast<size_t>(parts), type);
  return result;
}

std::string splitReference(const RefTensor &x, const Attrs &attrs, std::span<RefTensor> results) {
  size_t axis = axisIn(attrs, "axis", 0, x.shape.size());
  AxisView whole(x.shape, axis);
  if (whole.extent % static_cast<int64_t>(results.size()) != 0)
    return "an extent of " + std::to_string(whole.extent) + " does not split into " +
           std::to_string(results.size()) + " equal parts";
  int64_t begin = 0;
  for (RefTensor &result : results) {
    AxisView part(result.shape, axis);
    for (int64_t o = 0; o < part.outer; ++o)
      for (int64_t i = 0; i < part.extent; ++i)
        for (int64_t n = 0; n < part.inner; ++n)
          result.data[part.at(o, i, n)] = x.data[whole.at(o, begin + i, n)];
    begin += part.extent;
  }
  return {};
}

ShapeResult stackShape(std::span<const OperandType> operands, const Attrs &attrs,
                       const DimOracle &) {
  if (!operands[0].isList || !operands[0].tensor())
    return ShapeResult::fail("cannot stack " + describe(operands[0]) +
                                 ": 'stack' takes a list of tensors",
                             0, operands[0].tensor() ? "write stack([a, b])" : "");
  TensorType type = *operands[0].tensor();
  if (!operands[0].uniform)
    return ShapeResult::fail("cannot stack " + operands[0].str() +
                                 ": the elements' extents may differ",
                             0, "give the elements a type without '?'");
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size() + 1);
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  type.dims.insert(type.dims.begin() + static_cast<int64_t>(std::get<size_t>(at)),
                   operands[0].length.value_or(Dim::fresh()));
  return ShapeResult::ok(std::move(type));
}

std::string stackReference(const RefTensors &operands, const Attrs &attrs, RefTensor &result) {
  size_t axis = axisIn(attrs, "axis", 0, result.shape.size());
  AxisView whole(result.shape, axis);
  for (int64_t i = 0; i < whole.extent; ++i)
    for (int64_t o = 0; o < whole.outer; ++o)
      for (int64_t n = 0; n < whole.inner; ++n)
        result.data[whole.at(o, i, n)] = operands[i].data[o * whole.inner + n];
  return {};
}

void addJoins(std::vector<Op> &ops) {
  Op concat;
  concat.name = "concat";
  concat.summary = "tensors one after the other along an axis, the first by default";
  concat.params = {{"tensors", ParamKind::Tensors}, staticParam("axis", 0)};
  concat.shape = concatShape;
  concat.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                        std::span<RefTensor> results) {
    return concatReference(operands, attrs, results[0]);
  };
  concat.batch = Movement{Movement::Concat};
  ops.push_back(std::move(concat));

  Op one;
  one.name = "append";
  one.summary = "x with one part more after the others along its first axis";
  one.params = {{"x", ParamKind::Tensor}, {"part", ParamKind::Tensor}};
  one.shape = appendShape;
  one.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                     std::span<RefTensor> results) {
    results[0].data = operands[0].data;
    results[0].data.insert(results[0].data.end(), operands[1].data.begin(), operands[1].data.end());
    return std::string();
  };
  one.batch = expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
    return {applyOne(b, "concat", {op.getOperand(0), insertAxis(b, op.getOperand(1), 0)},
                     {{"axis", int64_t(0)}})};
  });
  ops.push_back(std::move(one));

  Op append;
  append.name = "append_rows";
  append.summary = "the rows of x, then more of them, along the first axis";
  append.params = {{"x", ParamKind::Tensor}, {"rows", ParamKind::Tensor}};
  append.internal = true;
  append.shape = concatShape;
  append.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                        std::span<RefTensor> results) {
    return concatReference(operands, attrs, results[0]);
  };
  append.batch = AppendRows{};
  append.gradient = {Gradient::Untrained};
  ops.push_back(std::move(append));

  Op split;
  split.name = "split";
  split.summary = "a tensor cut into equal parts along an axis, the first by default";
  split.params = {{"x", ParamKind::Tensor}, {"parts", ParamKind::Static}, staticParam("axis", 0)};
  split.shape = splitShape;
  split.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                       std::span<RefTensor> results) {
    return splitReference(operands[0], attrs, results);
  };
  split.batch = Movement{Movement::Split};
  ops.push_back(std::move(split));

  Op stack;
  stack.name = "stack";
  stack.summary = "the tensors of a list along a new axis, the first by default";
  stack.params = {{"list", ParamKind::List}, staticParam("axis", 0)};
  stack.axisOfResult = true;
  stack.shape = stackShape;
  stack.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                       std::span<RefTensor> results) {
    return stackReference(operands, attrs, results[0]);
  };
  stack.batch = Movement{Movement::Stack};
  ops.push_back(std::move(stack));
}

//===----------------------------------------------------------------------===//
// transpose, reshape, broadcast_to, expand_dims, squeeze
//===----------------------------------------------------------------------===//

ShapeResult transposeShape(std::span<const OperandType> operands, const Attrs &attrs,
                           const DimOracle &) {
  auto operand = tensorOperand(operands, 0, "transpose");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  if (type.dims.size() < 2)
    return ShapeResult::fail("cannot transpose " + type.str() + ": it has " +
                                 counted(type.dims.size(), "axis", "axes") +
                                 ", and at least 2 are needed",
                             0);
  auto first = axisAttr(intAttr(attrs, "axis1", -2), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&first))
    return *error;
  auto second = axisAttr(intAttr(attrs, "axis2", -1), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&second))
    return *error;
  std::swap(type.dims[std::get<size_t>(first)], type.dims[std::get<size_t>(second)]);
  return ShapeResult::ok(std::move(type));
}

std::string transposeReference(const RefTensor &x, const Attrs &attrs, RefTensor &result) {
  size_t first = axisIn(attrs, "axis1", -2, x.shape.size());
  size_t second = axisIn(attrs, "axis2", -1, x.shape.size());
  std::vector<int64_t> from;
  int64_t n = 0;
  forEachIndex(result.shape, [&](const std::vector<int64_t> &index) {
    from = index;
    std::swap(from[first], from[second]);
    result.data[n++] = x.data[offsetOf(x.shape, from)];
  });
  return {};
}

ShapeResult reshapeShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "reshape");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  Dim before = product(type.dims);
  TensorType result = type;
  result.dims = dimsAttr(attrs, "dims");
  Dim after = product(result.dims);
  if (!oracle.same(before, after))
    return ShapeResult::fail("cannot reshape " + type.str() + " to " + result.str() +
                                 ": the numbers of elements differ (" + withValue(before, oracle) +
                                 ", " + withValue(after, oracle) + ")",
                             0);
  return ShapeResult::ok(std::move(result));
}

ShapeResult broadcastShape(std::span<const OperandType> operands, const Attrs &attrs,
                           const DimOracle &oracle) {
  TensorType type;
  if (const HostKind *host = operands[0].host(); host && *host != HostKind::Token)
    type.dtype = Op().promoted(operands, 0);
  else {
    auto operand = tensorOperand(operands, 0, "broadcast");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    type = std::get<TensorType>(operand);
  }
  TensorType result = type;
  result.dims = dimsAttr(attrs, "dims");
  std::string both = "cannot broadcast " + type.str() + " to " + result.str() + ": ";
  if (type.dims.size() > result.dims.size())
    return ShapeResult::fail(both + "it has more axes", 0);
  BroadcastMismatch mismatch;
  auto merged = broadcastDims(type.dims, result.dims, oracle, mismatch);
  size_t skip = result.dims.size() - type.dims.size();
  if (merged)
    for (size_t i = 0; i < type.dims.size(); ++i)
      if (isOne(result.dims[i + skip], oracle) && !isOne(type.dims[i], oracle) &&
          !oracle.same(type.dims[i], result.dims[i + skip])) {
        mismatch = {type.dims[i], result.dims[i + skip],
                    static_cast<int64_t>(type.dims.size() - i)};
        merged.reset();
        break;
      }
  if (!merged)
    return ShapeResult::fail(
        both + describeMismatch(mismatch, type.dims.size(), result.dims.size(), oracle), 0);
  return ShapeResult::ok(std::move(result));
}

std::string broadcastReference(const RefTensor &x, RefTensor &result) {
  for (size_t i = 1; i <= x.shape.size(); ++i) {
    int64_t from = x.shape[x.shape.size() - i], to = result.shape[result.shape.size() - i];
    if (from != 1 && from != to)
      return "an extent of " + std::to_string(from) + " cannot be broadcast to " +
             std::to_string(to);
  }
  int64_t n = 0;
  forEachIndex(result.shape, [&](const std::vector<int64_t> &index) {
    result.data[n++] = broadcastAt(x, index);
  });
  return {};
}

ShapeResult expandDimsShape(std::span<const OperandType> operands, const Attrs &attrs,
                            const DimOracle &) {
  auto operand = tensorOperand(operands, 0, "expand");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size() + 1);
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  type.dims.insert(type.dims.begin() + static_cast<int64_t>(std::get<size_t>(at)), Dim(1));
  return ShapeResult::ok(std::move(type));
}

ShapeResult squeezeShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
  auto operand = tensorOperand(operands, 0, "squeeze");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType type = std::get<TensorType>(operand);
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  size_t axis = std::get<size_t>(at);
  if (!oracle.same(type.dims[axis], Dim(1)))
    return ShapeResult::fail("cannot squeeze axis " + std::to_string(axis) + " of " + type.str() +
                                 ": its extent is " + withValue(type.dims[axis], oracle) +
                                 ", not 1",
                             0);
  type.dims.erase(type.dims.begin() + static_cast<int64_t>(axis));
  return ShapeResult::ok(std::move(type));
}

void addShapes(std::vector<Op> &ops) {
  Op transpose;
  transpose.name = "transpose";
  transpose.summary = "a tensor with two axes exchanged, the last two by default";
  transpose.params = {{"x", ParamKind::Tensor}, staticParam("axis1", -2), staticParam("axis2", -1)};
  transpose.shape = transposeShape;
  transpose.reference = [](const RefTensors &operands, const Attrs &attrs, const Arithmetic &,
                           std::span<RefTensor> results) {
    return transposeReference(operands[0], attrs, results[0]);
  };
  transpose.batch = Movement{Movement::Transpose};
  ops.push_back(std::move(transpose));

  Op reshape;
  reshape.name = "reshape";
  reshape.summary = "the same elements in the same order with other extents";
  reshape.params = {{"x", ParamKind::Tensor}, {"dims", ParamKind::Extents}};
  reshape.shape = reshapeShape;
  reshape.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                         std::span<RefTensor> results) -> std::string {
    if (operands[0].data.size() != results[0].data.size())
      return std::to_string(operands[0].data.size()) + " elements cannot be reshaped to " +
             std::to_string(results[0].data.size());
    return copyAll(operands[0], results);
  };
  reshape.batch = Movement{Movement::Reshape};
  ops.push_back(std::move(reshape));

  Op broadcast;
  broadcast.name = "broadcast_to";
  broadcast.summary = "a tensor repeated to the given extents, as NumPy broadcasts";
  broadcast.params = {{"x", ParamKind::Tensor}, {"dims", ParamKind::Extents}};
  broadcast.shape = broadcastShape;
  broadcast.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                           std::span<RefTensor> results) {
    return broadcastReference(operands[0], results[0]);
  };
  broadcast.batch = Movement{Movement::Broadcast};
  ops.push_back(std::move(broadcast));

  auto copy = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                 std::span<RefTensor> results) { return copyAll(operands[0], results); };
  Op expandDims;
  expandDims.name = "expand_dims";
  expandDims.summary = "a tensor with a new axis of extent 1, the first by default";
  expandDims.params = {{"x", ParamKind::Tensor}, staticParam("axis", 0)};
  expandDims.axisOfResult = true;
  expandDims.shape = expandDimsShape;
  expandDims.reference = copy;
  expandDims.batch = expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
    return {insertAxis(b, op.getOperands()[0], intAttr(op, "axis"))};
  });
  ops.push_back(std::move(expandDims));

  Op squeeze;
  squeeze.name = "squeeze";
  squeeze.summary = "a tensor without an axis of extent 1, the first by default";
  squeeze.params = {{"x", ParamKind::Tensor}, staticParam("axis", 0)};
  squeeze.shape = squeezeShape;
  squeeze.reference = copy;
  squeeze.batch = expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
    return {dropAxis(b, op.getOperands()[0], intAttr(op, "axis"))};
  });
  ops.push_back(std::move(squeeze));
}

} // namespace

void addMovement(std::vector<Op> &ops) {
  addJoins(ops);
  addShapes(ops);
}

} // namespace sheaf::ops

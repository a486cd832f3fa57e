//===- Scans.cpp - Running sums, and sums of rows by number ---------------===//
//
// In source: cumsum (x, axis = 0), segment_sum (x, segments, size), scatter_add (x, indices, rows).
// For kernels: scan_sum (x, axis, reverse: not along the last axis, backwards if reverse is 1) and
// add_rows (x, indices, size: tensors of two axes or more), whose sums begin at 0 and take what
// they take in order.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::ops {

using mlir::Value;

Value addRows(ExpandBuilder &b, Value x, Value indices, Extent size) {
  if (rankOf(x) > 1)
    return applyOne(b, "add_rows", {x, indices}, {{"size", size}});
  return dropAxis(b, applyOne(b, "add_rows", {insertAxis(b, x, 1), indices}, {{"size", size}}), 1);
}

namespace {

/// One step of a sum; ints wrap.
double addUp(double sum, double x, DType dtype, const Arithmetic &arithmetic) {
  if (isFloat(dtype))
    return arithmetic.round(sum + x);
  uint64_t exact = static_cast<uint64_t>(truncateToInt(sum, DType::I64)) +
                   static_cast<uint64_t>(truncateToInt(x, DType::I64));
  return wrapInt(static_cast<int64_t>(exact), dtype);
}

Expected<TensorType> numbersOperand(std::span<const OperandType> operands, size_t i,
                                    const std::string &action) {
  auto operand = tensorOperand(operands, i, action);
  if (auto *type = std::get_if<TensorType>(&operand);
      type && (type->vocab || type->dtype == DType::Bool))
    return ShapeError{"cannot " + action + " " + type->str() + ": its elements are not numbers",
                      static_cast<int>(i), type->vocab ? "" : "convert it with f32(...)"};
  return operand;
}

//===----------------------------------------------------------------------===//
// cumsum
//===----------------------------------------------------------------------===//

ShapeResult runningShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &) {
  return shapeAlongAxis(numbersOperand(operands, 0, "take running sums of"), attrs);
}

std::string runningReference(const RefTensor &x, const Attrs &attrs, const Arithmetic &arithmetic,
                             RefTensor &result) {
  bool reverse = intAttr(attrs, "reverse", 0) != 0;
  AxisView view(x.shape, axisIn(attrs, "axis", 0, x.shape.size()));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      double sum = 0;
      for (int64_t step = 0; step < view.extent; ++step) {
        int64_t at = view.at(o, reverse ? view.extent - 1 - step : step, n);
        result.data[at] = sum = addUp(sum, x.data[at], x.dtype, arithmetic);
      }
    }
  return {};
}

std::vector<Value> expandCumsum(ExpandBuilder &b, ir::ApplyOp op) {
  DType dtype = dtypeOf(op.getOperand(0));
  Value x = widen(b, op.getOperand(0));
  int64_t axis = intAttr(op, "axis"), last = rankOf(x) - 1;
  auto scan = [&](Value v, int64_t along) { return applyOne(b, "scan_sum", v, {{"axis", along}}); };
  auto turned = [&](Value v) {
    return applyOne(b, "transpose", v, {{"axis1", last - 1}, {"axis2", last}});
  };
  // Lanes are neighbours on the last axis, so sums run along another.
  Value sums = axis < last ? scan(x, axis)
               : last == 0 ? dropAxis(b, scan(insertAxis(b, x, 1), 0), 1)
                           : turned(scan(turned(x), last - 1));
  return {narrow(b, sums, dtype)};
}

//===----------------------------------------------------------------------===//
// segment_sum, scatter_add
//===----------------------------------------------------------------------===//

/// Rows x and a number for each of them: the type of the rows.
Expected<TensorType> numberedRows(std::span<const OperandType> operands, size_t rows,
                                  size_t numbers, const DimOracle &oracle) {
  auto operand = numbersOperand(operands, rows, "add up rows of");
  if (std::holds_alternative<ShapeError>(operand))
    return operand;
  const TensorType &type = std::get<TensorType>(operand);
  if (type.dims.empty())
    return ShapeError{"cannot add up rows of " + type.str() + ": it has no axes",
                      static_cast<int>(rows)};
  std::string what =
      "cannot add up rows of " + type.str() + " by " + describe(operands[numbers]) + ": ";
  const TensorType *indices = operands[numbers].isList ? nullptr : operands[numbers].tensor();
  int blame = static_cast<int>(numbers);
  if (!indices || (indices->dtype != DType::I32 && indices->dtype != DType::I64) ||
      indices->dims.size() != 1)
    return ShapeError{what + "their numbers are a vector of ints or tokens", blame};
  if (!oracle.same(indices->dims[0], type.dims[0]))
    return ShapeError{what + "there must be one number for each row (" +
                          withValue(type.dims[0], oracle) + ", " +
                          withValue(indices->dims[0], oracle) + ")",
                      blame};
  return operand;
}

ShapeResult segmentShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
  auto found = numberedRows(operands, 0, 1, oracle);
  if (auto *error = std::get_if<ShapeError>(&found))
    return *error;
  TensorType type = std::get<TensorType>(found);
  type.dims[0] = dimAttr(attrs, "size");
  if (auto size = oracle.value(type.dims[0]); size && *size < 0)
    return ShapeResult::fail("cannot make " + std::to_string(*size) + " sums");
  return ShapeResult::ok(std::move(type));
}

/// Adds rows to `result`, one after the other; those whose number is none of its rows are left out.
void addUpRows(const RefTensor &rows, const RefTensor &numbers, const Arithmetic &arithmetic,
               RefTensor &result) {
  int64_t count = result.shape[0], width = rows.shape[0] ? rows.size() / rows.shape[0] : 0;
  for (size_t k = 0; k < numbers.data.size(); ++k) {
    if (numbers.data[k] < 0 || numbers.data[k] >= static_cast<double>(count))
      continue;
    auto to = static_cast<size_t>(static_cast<int64_t>(numbers.data[k]) * width);
    for (size_t i = 0; i < static_cast<size_t>(width); ++i)
      result.data[to + i] =
          addUp(result.data[to + i], rows.data[k * static_cast<size_t>(width) + i], rows.dtype,
                arithmetic);
  }
}

Op segmentSum(bool internal) {
  Op op;
  op.name = internal ? "add_rows" : "segment_sum";
  op.summary = "the sums of the rows of x that have each number from 0 to size, without size; "
               "segments has a number for each row, and rows with other numbers are left out";
  op.params = {{"x", ParamKind::Tensor},
               {internal ? "indices" : "segments", ParamKind::Index},
               {"size", ParamKind::Extent}};
  op.internal = internal;
  op.shape = segmentShape;
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    std::fill(results[0].data.begin(), results[0].data.end(), 0);
    addUpRows(operands[0], operands[1], arithmetic, results[0]);
    return std::string();
  };
  return op;
}

void addScatter(std::vector<Op> &ops) {
  Op op;
  op.name = "scatter_add";
  op.summary = "x and, added to its parts along the first axis that a vector of ints or tokens "
               "names, the rows of another tensor; rows for other places are left out";
  op.params = {
      {"x", ParamKind::Tensor}, {"indices", ParamKind::Index}, {"rows", ParamKind::Tensor}};
  op.shape = [](std::span<const OperandType> operands, const Attrs &,
                const DimOracle &oracle) -> ShapeResult {
    auto operand = numbersOperand(operands, 0, "add rows to");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return *error;
    const TensorType &type = std::get<TensorType>(operand);
    auto found = numberedRows(operands, 2, 1, oracle);
    if (auto *error = std::get_if<ShapeError>(&found))
      return *error;
    const TensorType &rows = std::get<TensorType>(found);
    std::string what = "cannot add rows of " + rows.str() + " to " + type.str() + ": ";
    if (rows.dtype != type.dtype)
      return ShapeResult::fail(what + "the element types differ", 2);
    if (rows.dims.size() != type.dims.size())
      return ShapeResult::fail(what + "the numbers of axes differ", 2);
    for (size_t axis = 1; axis < rows.dims.size(); ++axis)
      if (!oracle.same(type.dims[axis], rows.dims[axis]))
        return ShapeResult::fail(what + "the extents of axis " + std::to_string(axis) +
                                     " differ (" + withValue(type.dims[axis], oracle) + ", " +
                                     withValue(rows.dims[axis], oracle) + ")",
                                 2);
    return ShapeResult::ok(type);
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                    std::span<RefTensor> results) {
    RefTensor sums = results[0];
    std::fill(sums.data.begin(), sums.data.end(), 0);
    addUpRows(operands[2], operands[1], arithmetic, sums);
    for (size_t i = 0; i < sums.data.size(); ++i)
      results[0].data[i] = addUp(operands[0].data[i], sums.data[i], sums.dtype, arithmetic);
    return std::string();
  };
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value x = widen(b, apply.getOperand(0)), rows = widen(b, apply.getOperand(2));
    Value sums = addRows(b, rows, apply.getOperand(1), extentOf(b, x, 0));
    return {narrow(b, applyOne(b, "add", {x, sums}), dtypeOf(apply.getResult(0)))};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addScans(std::vector<Op> &ops) {
  Op cumsum;
  cumsum.name = "cumsum";
  cumsum.summary = "the sums of the elements up to each along an axis, the first by default";
  cumsum.params = {{"x", ParamKind::Tensor}, {"axis", ParamKind::Static, Attr(int64_t(0))}};
  cumsum.shape = runningShape;
  cumsum.reference = [](const RefTensors &operands, const Attrs &attrs,
                        const Arithmetic &arithmetic, std::span<RefTensor> results) {
    return runningReference(operands[0], attrs, arithmetic, results[0]);
  };
  Op scan = cumsum;
  scan.name = "scan_sum";
  scan.internal = true;
  scan.params.push_back({"reverse", ParamKind::Static, Attr(int64_t(0))});
  scan.batch = Reduction{Reduction::Scan};
  cumsum.batch = expand(expandCumsum);
  ops.push_back(std::move(cumsum));
  ops.push_back(std::move(scan));

  Op segments = segmentSum(false), rows = segmentSum(true);
  segments.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Extent size;
    if (auto attr = apply.getAttrs().getAs<mlir::IntegerAttr>("size"))
      size = attr;
    else
      size = Value(apply.getOperand(2));
    Value sums = addRows(b, widen(b, apply.getOperand(0)), apply.getOperand(1), size);
    return {narrow(b, sums, dtypeOf(apply.getResult(0)))};
  });
  rows.batch = Reduction{Reduction::AddRows};
  ops.push_back(std::move(segments));
  ops.push_back(std::move(rows));
  addScatter(ops);
}

} // namespace sheaf::ops

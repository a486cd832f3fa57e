//===- Expand.cpp - What expansions share ---------------------------------===//

#include "compiler/ops/Expand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

namespace sheaf::ops {

using mlir::Value;

/// An operator may expand into operators that expand; a longer chain is a cycle in the records.
constexpr int kMaxRounds = 32;

mlir::LogicalResult expandAll(mlir::ModuleOp module,
                              const std::function<void(const Op &)> &expanded) {
  auto recordOf = [](ir::ApplyOp apply) { return OpTable::get().find(apply.getOp()); };
  for (int round = 0;; ++round) {
    llvm::SmallVector<ir::ApplyOp> work;
    module.walk([&](ir::ApplyOp apply) {
      if (const Op *op = recordOf(apply); op && std::holds_alternative<Expand>(op->batch))
        work.push_back(apply);
    });
    if (work.empty())
      return mlir::success();
    if (round == kMaxRounds)
      return work.front().emitOpError("expands without end");
    for (ir::ApplyOp apply : work) {
      const Op &op = *recordOf(apply);
      if (expanded)
        expanded(op);
      ExpandBuilder builder(apply.getLoc(), apply);
      std::vector<Value> values = std::get<Expand>(op.batch).rewrite(builder, apply);
      if (values.size() != apply.getNumResults())
        return apply.emitOpError("expands into the wrong number of values");
      for (auto [result, value] : llvm::zip(apply.getResults(), values))
        if (result.getType() != value.getType())
          return apply.emitOpError() << "expands into " << value.getType() << " where "
                                     << result.getType() << " is expected";
      apply->replaceAllUsesWith(values);
      apply.erase();
    }
  }
}

void matchTypes(ExpandBuilder &b, mlir::ResultRange results, std::vector<Value> &values) {
  for (auto [result, value] : llvm::zip(results, values)) {
    if (result.getType() == value.getType())
      continue;
    // Casting to its own element type changes nothing, and takes any compatible type.
    auto copy = applyOne(b, llvm::StringRef(dtypeName(dtypeOf(value))), value);
    copy.setType(result.getType());
    value = copy;
  }
}

std::vector<Extent> resultExtents(ExpandBuilder &b, ir::ApplyOp op, size_t first) {
  std::vector<Extent> dims;
  for (int64_t extent : mlir::cast<mlir::RankedTensorType>(op.getResult(0).getType()).getShape())
    dims.push_back(mlir::ShapedType::isDynamic(extent) ? Extent(Value(op.getOperands()[first++]))
                                                       : Extent(b.getI64IntegerAttr(extent)));
  return dims;
}

Value dropAxis(ExpandBuilder &b, Value x, int64_t axis) {
  std::vector<Extent> dims = extentsOf(b, x);
  dims.erase(dims.begin() + axis);
  return applyOne(b, "reshape", x, {{"dims", dims}});
}

Value insertAxis(ExpandBuilder &b, Value x, int64_t axis) {
  std::vector<Extent> dims = extentsOf(b, x);
  dims.insert(dims.begin() + axis, Extent(b.getI64IntegerAttr(1)));
  return applyOne(b, "reshape", x, {{"dims", dims}});
}

Value widen(ExpandBuilder &b, Value x) {
  DType dtype = dtypeOf(x);
  return isFloat(dtype) && dtype != DType::F32 ? applyOne(b, "f32", x) : x;
}

Value narrow(ExpandBuilder &b, Value x, DType dtype) {
  return dtypeOf(x) == dtype || !isFloat(dtype) ? x
                                                : applyOne(b, llvm::StringRef(dtypeName(dtype)), x);
}

Value indexValue(ExpandBuilder &b, Value index) {
  if (mlir::isa<ir::TokenType>(index.getType()))
    return ir::ConvertOp::create(b, b.getI64Type(), index);
  return index;
}

double outside(DType dtype) {
  switch (dtype) {
  case DType::I32:
    return std::numeric_limits<int32_t>::min();
  case DType::I64:
    return static_cast<double>(std::numeric_limits<int64_t>::min());
  case DType::Bool:
    return 0;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

Value isInfinite(ExpandBuilder &b, Value x) {
  Value infinity = number(b, std::numeric_limits<double>::infinity(), dtypeOf(x));
  return applyOne(b, "eq", {applyOne(b, "abs", x), infinity});
}

Value isInside(ExpandBuilder &b, Value index, Extent extent) {
  // An i64 holds every extent; an i32 need not.
  Value wide = applyOne(b, "i64", index);
  Value end = promote(b, extentValue(b, extent), DType::I64);
  Value begin = number(b, 0, DType::I64);
  return applyOne(b, "and", {applyOne(b, "ge", {wide, begin}), applyOne(b, "lt", {wide, end})});
}

namespace {

std::string describeAxis(Value tensor, int64_t axis) {
  auto type = mlir::cast<mlir::RankedTensorType>(tensor.getType());
  std::string text = "axis " + std::to_string(axis) + " of a tensor";
  if (!type.isDynamicDim(axis))
    text += ", whose extent is " + std::to_string(type.getDimSize(axis));
  return text;
}

} // namespace

/// `message` is about the index, {0}, and the extent, {1}.
static void checkBelow(ExpandBuilder &b, Value index, Value tensor, int64_t axis,
                       const std::string &message) {
  Extent extent = extentOf(b, tensor, axis);
  auto known = mlir::getConstantIntValue(index);
  auto size = mlir::getConstantIntValue(extent);
  if (known && size && *known >= 0 && *known < *size)
    return;
  // As unsigned numbers, negative indices are beyond every extent.
  Value holds = mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::ult, index,
                                            extentValue(b, extent));
  ir::CheckOp::create(b, holds, message, {index, extentValue(b, extent)});
}

void checkIndex(ExpandBuilder &b, Value index, Value tensor, int64_t axis) {
  checkBelow(b, index, tensor, axis,
             "index {0} is out of range for axis " + std::to_string(axis) +
                 " of a tensor, whose extent is {1}");
}

void checkLabel(ExpandBuilder &b, Value label, Value logits, int64_t axis) {
  checkBelow(b, label, logits, axis, "label {0} is out of range for {1} classes");
}

void checkWindow(ExpandBuilder &b, Extent start, Extent size, Value tensor, int64_t axis) {
  using mlir::arith::AndIOp;
  using mlir::arith::CmpIOp;
  using mlir::arith::CmpIPredicate;
  Extent extent = extentOf(b, tensor, axis);
  if (mlir::getConstantIntValue(start) && mlir::getConstantIntValue(size) &&
      mlir::getConstantIntValue(extent))
    return; // the shape rule has seen it
  Value begin = extentValue(b, start), length = extentValue(b, size);
  Value whole = extentValue(b, extent);
  // start <= extent and size <= extent - start as unsigned numbers: no sum that may overflow.
  Value beginsInside = CmpIOp::create(b, CmpIPredicate::ule, begin, whole);
  Value rest = mlir::arith::SubIOp::create(b, whole, begin);
  Value endsInside = CmpIOp::create(b, CmpIPredicate::ule, length, rest);
  ir::CheckOp::create(b, AndIOp::create(b, beginsInside, endsInside),
                      "a slice of {1} from {0} on is out of range for " +
                          describeAxis(tensor, axis),
                      {begin, length});
}

} // namespace sheaf::ops

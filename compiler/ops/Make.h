//===- Make.h - The operators that passes make ------------------*- C++ -*-===//
//
// By what they do, so that no pass names an operator.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_MAKE_H
#define SHEAF_COMPILER_OPS_MAKE_H

#include "compiler/ops/Expand.h"

namespace sheaf::ops {

inline mlir::Value makeSum(ExpandBuilder &b, mlir::Value x, mlir::Value y) {
  return applyOne(b, "add", {x, y});
}
inline mlir::Value makeDifference(ExpandBuilder &b, mlir::Value x, mlir::Value y) {
  return applyOne(b, "sub", {x, y});
}
inline mlir::Value makeElementwiseProduct(ExpandBuilder &b, mlir::Value x, mlir::Value y) {
  return applyOne(b, "mul", {x, y});
}
inline mlir::Value makeSumAlong(ExpandBuilder &b, mlir::Value x, int64_t axis, bool keepdims) {
  return reduceAxis(b, "reduce_sum", x, axis, keepdims);
}
/// Each element of `x` where the condition holds, else that of `y`.
inline mlir::Value makeChoice(ExpandBuilder &b, mlir::Value condition, mlir::Value x,
                              mlir::Value y) {
  return applyOne(b, "where", {condition, x, y});
}
/// An f32 tensor of one number.
inline mlir::Value makeFilled(ExpandBuilder &b, double value, std::vector<Extent> dims) {
  return applyOne(b, "full", {}, {{"value", value}, {"dims", std::move(dims)}});
}
/// The same with a type, and its dynamic extents.
inline mlir::Value makeFilled(ExpandBuilder &b, double value, mlir::RankedTensorType type,
                              mlir::ValueRange dims) {
  mlir::NamedAttribute number = b.getNamedAttr("value", b.getF64FloatAttr(value));
  return ir::ApplyOp::create(b, type, "full", dims, b.getDictionaryAttr(number)).getResult(0);
}
/// The ints from 0 on, so many, as i32.
inline mlir::Value makeNumbers(ExpandBuilder &b, Extent count) {
  return applyOne(b, "iota", {}, {{"size", count}});
}
/// The parts of x along its first axis at these places, which are there.
inline mlir::Value makeTaken(ExpandBuilder &b, mlir::Value x, mlir::Value places) {
  return applyOne(b, "take", {x, places});
}
inline mlir::Value makeReshaped(ExpandBuilder &b, mlir::Value x, std::vector<Extent> dims) {
  return applyOne(b, "reshape", x, {{"dims", std::move(dims)}});
}
/// As factors of products in bf16: in f32, or as a tensor of them.
inline mlir::Value makeRoundedFactors(ExpandBuilder &b, mlir::Value x) {
  return applyOne(b, "round_factor", x);
}
inline mlir::Value makeFactors(ExpandBuilder &b, mlir::Value x) { return applyOne(b, "factor", x); }
/// All elements along one axis.
mlir::Value makeFlat(ExpandBuilder &b, mlir::Value x);
/// The same with a type that may say more of the extents than `dims` do; these are the dynamic
/// ones.
inline mlir::Value makeReshaped(ExpandBuilder &b, mlir::Value x, mlir::RankedTensorType type,
                                mlir::ValueRange dims) {
  llvm::SmallVector<mlir::Value> operands{x};
  operands.append(dims.begin(), dims.end());
  return ir::ApplyOp::create(b, type, "reshape", operands, b.getDictionaryAttr({})).getResult(0);
}
inline mlir::Value makeTransposed(ExpandBuilder &b, mlir::Value x, int64_t axis, int64_t other) {
  return applyOne(b, "transpose", x, {{"axis1", axis}, {"axis2", other}});
}
/// `size` positions along an axis, which are there.
inline mlir::Value makePart(ExpandBuilder &b, mlir::Value x, int64_t start, int64_t size,
                            int64_t axis) {
  return applyOne(b, "window", x, {{"start", start}, {"size", size}, {"axis", axis}});
}
inline mlir::Value makePart(ExpandBuilder &b, mlir::Value x, Extent start, Extent size,
                            int64_t axis) {
  return applyOne(b, "window", x, {{"start", start}, {"size", size}, {"axis", axis}});
}
inline mlir::Value makeJoined(ExpandBuilder &b, mlir::ValueRange pieces, int64_t axis) {
  return applyOne(b, "concat", pieces, {{"axis", axis}});
}
/// The rows of x and after them others, by the host.
inline mlir::Value makeAppended(ExpandBuilder &b, mlir::Value x, mlir::Value rows) {
  return applyOne(b, "append_rows", {x, rows});
}
/// What a window of rows shows, by the host.
inline mlir::Value makeByAddress(ExpandBuilder &b, ir::ApplyOp window) {
  mlir::NamedAttrList extents(window.getAttrs());
  extents.erase("axis");
  return ir::ApplyOp::create(b, window->getResultTypes(), "part", window->getOperands(),
                             extents.getDictionary(b.getContext()))
      .getResult(0);
}
/// The elements of a list along a new first axis.
inline mlir::Value makeStack(ExpandBuilder &b, mlir::Value list) {
  return applyOne(b, "stack", list, {{"axis", int64_t(0)}});
}

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_MAKE_H

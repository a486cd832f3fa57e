//===- Expand.h - What expansions share -------------------------*- C++ -*-===//
//
// For the operator families, but for expandAll.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_EXPAND_H
#define SHEAF_COMPILER_OPS_EXPAND_H

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"

#include "mlir/IR/BuiltinOps.h"

namespace sheaf::ops {

using ExpandBuilder = mlir::ImplicitLocOpBuilder;

/// An attribute of modules that are compiled for training.
constexpr llvm::StringLiteral kTrainingAttr = "sheaf.training";
/// Beside it: the arguments of the entry have gradients, too.
constexpr llvm::StringLiteral kInputGradientsAttr = "sheaf.input_gradients";
/// An attribute of modules whose products compute in bf16.
constexpr llvm::StringLiteral kBf16Attr = "sheaf.bf16";
/// An attribute of additions: the sums of the product that is the second term begin at the first.
constexpr llvm::StringLiteral kStartAttr = "sheaf.start";

/// Gives replacements the types of the results that they replace: inference may know more or fewer
/// extents than the apply that is expanded.
void matchTypes(ExpandBuilder &b, mlir::ResultRange results, std::vector<mlir::Value> &values);

/// Rewrites every application of a module whose record has an Expand rule, until there is none;
/// `expanded` is told of each. Fails, with an error at the application, when a record is wrong.
mlir::LogicalResult expandAll(mlir::ModuleOp module,
                              const std::function<void(const Op &)> &expanded = {});

/// Makes the rule from a function that sees the apply.
template <typename Rewrite> Expand expand(Rewrite rewrite) {
  return Expand{[rewrite](ExpandBuilder &b, mlir::Operation *op) {
    std::vector<mlir::Value> values = rewrite(b, mlir::cast<ir::ApplyOp>(op));
    matchTypes(b, op->getResults(), values);
    return values;
  }};
}

inline int64_t intAttr(ir::ApplyOp op, llvm::StringRef name) {
  return op.getAttrs().getAs<mlir::IntegerAttr>(name).getInt();
}
inline double numberAttr(ir::ApplyOp op, llvm::StringRef name) {
  return op.getAttrs().getAs<mlir::FloatAttr>(name).getValueAsDouble();
}
/// An axis attribute counted from the front; `otherwise` when it was left out.
inline int64_t axisOf(ir::ApplyOp op, llvm::StringRef name, int64_t otherwise, int64_t rank) {
  auto attr = op.getAttrs().getAs<mlir::IntegerAttr>(name);
  int64_t axis = attr ? attr.getInt() : otherwise;
  return axis < 0 ? axis + rank : axis;
}
inline int64_t rankOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getRank();
}

inline mlir::Value reduceAxis(ExpandBuilder &b, llvm::StringRef op, mlir::Value x, int64_t axis,
                              bool keepdims) {
  return applyOne(b, op, x, {{"axis", axis}, {"keepdims", int64_t(keepdims)}});
}

/// The extents of the result, as Build.h has them: those that are not constants are the operands
/// from `first` on.
std::vector<Extent> resultExtents(ExpandBuilder &b, ir::ApplyOp op, size_t first);

/// Without the axis, whose extent is 1.
mlir::Value dropAxis(ExpandBuilder &b, mlir::Value x, int64_t axis);
/// With an axis of extent 1 more.
mlir::Value insertAxis(ExpandBuilder &b, mlir::Value x, int64_t axis);

/// A narrow float tensor in f32, where composite operators compute; other tensors as they are.
mlir::Value widen(ExpandBuilder &b, mlir::Value x);
/// Back to the element type `dtype`.
mlir::Value narrow(ExpandBuilder &b, mlir::Value x, DType dtype);

/// A number that cannot pass for a result: NaN, the least int of the type, or false.
double outside(DType dtype);
/// The sums of the rows of x by their numbers, from 0 to size (add_rows).
mlir::Value addRows(ExpandBuilder &b, mlir::Value x, mlir::Value indices, Extent size);

/// Where a tensor of floats is infinite.
mlir::Value isInfinite(ExpandBuilder &b, mlir::Value x);
/// Where 0 <= index < extent, for a tensor of ints.
mlir::Value isInside(ExpandBuilder &b, mlir::Value index, Extent extent);

/// Ends the instance unless 0 <= index < extent; nothing when that is known. `index` is an i64.
void checkIndex(ExpandBuilder &b, mlir::Value index, mlir::Value tensor, int64_t axis);
/// The same of a label: one of the classes along the axis.
void checkLabel(ExpandBuilder &b, mlir::Value label, mlir::Value logits, int64_t axis);
/// Ends the instance unless start and size are not negative and start + size <= extent.
void checkWindow(ExpandBuilder &b, Extent start, Extent size, mlir::Value tensor, int64_t axis);
/// An index operand as an i64.
mlir::Value indexValue(ExpandBuilder &b, mlir::Value index);

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_EXPAND_H

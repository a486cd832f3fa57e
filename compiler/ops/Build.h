//===- Build.h - Making sheaf.apply -----------------------------*- C++ -*-===//
//
// How a call of an operator looks in the Program:
//   - operands of kinds Tensor, Index, Tensors and List come first, in the record's order; host
//     scalars for Tensor parameters have been promoted (`promote`), those for Index stay i64 or
//     !sheaf.token; the key of a draw, an i64, is the last of them;
//   - Static and Number parameters are I64Attr and F64Attr by name, defaults filled in, axes
//     counted from the front; an optional one that was left out is absent;
//   - an Extent parameter is an I64Attr by name when it is a constant, else an i64 operand after
//     the tensors, in the record's order;
//   - the constants among Extents are visible in the result type only; for every `?` of the result
//     comes an i64 operand, in order.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_BUILD_H
#define SHEAF_COMPILER_OPS_BUILD_H

#include "compiler/ops/Op.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

namespace sheaf::ops {

/// A number (an IntegerAttr) or an i64 value.
using Extent = mlir::OpFoldResult;

/// The compile-time arguments and extents of a call, by parameter name. An Extent parameter may be
/// given as an int or as an Extent.
using CallArgs = std::map<std::string, std::variant<int64_t, double, Extent, std::vector<Extent>>>;

/// What is wrong with such a call, by the operator's shape rule; empty when nothing is.
std::string misfit(llvm::StringRef op, mlir::ValueRange operands, const CallArgs &args);

/// Makes a `sheaf.apply` whose result types follow from the shape rule; defaults are filled in. The
/// call must be right: a failing shape rule is an internal error.
mlir::SmallVector<mlir::Value> apply(mlir::ImplicitLocOpBuilder &b, llvm::StringRef op,
                                     mlir::ValueRange operands, const CallArgs &args = {});
/// The same for operators with one result.
mlir::Value applyOne(mlir::ImplicitLocOpBuilder &b, llvm::StringRef op, mlir::ValueRange operands,
                     const CallArgs &args = {});

/// A host scalar (i64, f64 or i1) as a rank-0 tensor of this element type, by `scalar` and a cast
/// where needed.
mlir::Value promote(mlir::ImplicitLocOpBuilder &b, mlir::Value host, DType dtype);
/// A number as a rank-0 tensor.
mlir::Value number(mlir::ImplicitLocOpBuilder &b, double value, DType dtype);

/// An extent of a tensor: a constant, or a `sheaf.dim`.
Extent extentOf(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor, int64_t axis);
std::vector<Extent> extentsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor);
/// An extent as an i64 value.
mlir::Value extentValue(mlir::ImplicitLocOpBuilder &b, Extent extent);

/// The builtin tensor type; extents that are not constants become `?`.
mlir::RankedTensorType tensorType(mlir::MLIRContext *context, const TensorType &type);
mlir::Type elementType(mlir::MLIRContext *context, DType dtype);
/// nullopt for element types that the language does not have.
std::optional<DType> dtypeOf(mlir::Type element);
DType dtypeOf(mlir::Value tensor);

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_BUILD_H

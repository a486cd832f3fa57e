//===- Casts.h - Changing what a type says of extents -----------*- C++ -*-===//
//
// A tensor whose type says more or less of its extents than is asked for passes through the field
// of a tuple: `get(tuple(x))[0]`. Host code does that for nothing.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_CASTS_H
#define SHEAF_COMPILER_ANALYSIS_CASTS_H

#include "compiler/ir/Program.h"

namespace sheaf::passes {

/// The tensor that was passed through tuples to become `value`; `value` itself if none was.
inline mlir::Value castSource(mlir::Value value) {
  while (auto get = value.getDefiningOp<ir::GetOp>()) {
    auto tuple = get.getTuple().getDefiningOp<ir::TupleOp>();
    if (!tuple || !mlir::isa<mlir::RankedTensorType>(tuple.getFields()[get.getIndex()].getType()))
      break;
    value = tuple.getFields()[get.getIndex()];
  }
  return value;
}

/// `tensor` as a value of `type`.
inline mlir::Value makeCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                            mlir::Type type) {
  if (tensor.getType() == type)
    return tensor;
  mlir::Value tuple =
      ir::TupleOp::create(builder, loc, mlir::TupleType::get(builder.getContext(), {type}), tensor);
  return ir::GetOp::create(builder, loc, type, tuple, builder.getI64IntegerAttr(0));
}

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_CASTS_H

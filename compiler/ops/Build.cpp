//===- Build.cpp - Making sheaf.apply -------------------------------------===//

#include "compiler/ops/Build.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Make.h"
#include "compiler/ops/Verify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/ErrorHandling.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

/// The Dim of an extent, and its operand when it is not a constant.
Dim useExtent(Extent extent, mlir::SmallVectorImpl<Value> &operands) {
  if (auto constant = mlir::getConstantIntValue(extent))
    return Dim(*constant);
  operands.push_back(mlir::cast<Value>(extent));
  return Dim::fresh();
}

/// A call as the shape rule sees it.
struct Call {
  const Op &op;
  mlir::SmallVector<Value> operands; ///< the extents that are host values last
  Attrs attrs;
  ShapeResult shape;
};

Call resolve(llvm::StringRef name, mlir::ValueRange operands, const CallArgs &args) {
  const Op *op = OpTable::get().find(name);
  if (!op)
    llvm::reportFatalInternalError(llvm::Twine("no operator named ") + name);

  std::vector<OperandType> types;
  for (Value operand : operands)
    types.push_back(operandType(operand.getType()));
  Call call{*op, mlir::SmallVector<Value>(operands), {}, {}};
  for (const Param &param : op->params) {
    auto it = args.find(param.name);
    if (it == args.end())
      continue;
    if (auto *value = std::get_if<int64_t>(&it->second))
      call.attrs[param.name] = *value;
    else if (auto *value = std::get_if<double>(&it->second))
      call.attrs[param.name] = *value;
    else if (auto *extent = std::get_if<Extent>(&it->second)) {
      Dim dim = useExtent(*extent, call.operands);
      if (dim.isConstant())
        call.attrs[param.name] = dim.constant();
      else
        call.attrs[param.name] = dim;
    } else {
      std::vector<Dim> dims;
      for (Extent extent : std::get<std::vector<Extent>>(it->second))
        dims.push_back(useExtent(extent, call.operands));
      call.attrs[param.name] = dims;
    }
  }
  call.attrs = canonicalAttrs(*op, types, std::move(call.attrs));
  call.shape = op->shape(types, call.attrs, LenientOracle());
  return call;
}

} // namespace

std::string misfit(llvm::StringRef op, mlir::ValueRange operands, const CallArgs &args) {
  return resolve(op, operands, args).shape.error;
}

mlir::SmallVector<Value> apply(mlir::ImplicitLocOpBuilder &b, llvm::StringRef name,
                               mlir::ValueRange operands, const CallArgs &args) {
  Call call = resolve(name, operands, args);
  if (!call.shape.error.empty())
    llvm::reportFatalInternalError(llvm::Twine("operator ") + name + ": " + call.shape.error);

  mlir::SmallVector<mlir::NamedAttribute> kept;
  for (const auto &[key, value] : call.attrs) {
    if (auto *number = std::get_if<int64_t>(&value))
      kept.push_back(b.getNamedAttr(key, b.getI64IntegerAttr(*number)));
    else if (auto *number = std::get_if<double>(&value))
      kept.push_back(b.getNamedAttr(key, b.getF64FloatAttr(*number)));
  }
  mlir::SmallVector<mlir::Type> results;
  for (const TensorType &type : call.shape.types)
    results.push_back(tensorType(b.getContext(), type));
  auto apply = ir::ApplyOp::create(b, results, b.getStringAttr(name), call.operands,
                                   b.getDictionaryAttr(kept));
  return mlir::SmallVector<Value>(apply.getResults());
}

Value applyOne(mlir::ImplicitLocOpBuilder &b, llvm::StringRef op, mlir::ValueRange operands,
               const CallArgs &args) {
  return apply(b, op, operands, args).front();
}

Value promote(mlir::ImplicitLocOpBuilder &b, Value host, DType dtype) {
  if (isFloat(dtype) && host.getType().isInteger(64)) {
    llvm::APInt constant;
    if (mlir::matchPattern(host, mlir::m_ConstantInt(&constant)))
      host = mlir::arith::ConstantOp::create(
          b, b.getF64FloatAttr(static_cast<double>(constant.getSExtValue())));
    else
      host = ir::ConvertOp::create(b, b.getF64Type(), host);
  }
  Value tensor = applyOne(b, "scalar", host);
  if (dtypeOf(tensor) == dtype)
    return tensor;
  return applyOne(b, llvm::StringRef(dtypeName(dtype)), tensor);
}

Value number(mlir::ImplicitLocOpBuilder &b, double value, DType dtype) {
  if (isFloat(dtype))
    return promote(b, mlir::arith::ConstantOp::create(b, b.getF64FloatAttr(value)), dtype);
  auto integer = b.getI64IntegerAttr(static_cast<int64_t>(value));
  return promote(b, mlir::arith::ConstantOp::create(b, integer), dtype);
}

Extent extentOf(mlir::ImplicitLocOpBuilder &b, Value tensor, int64_t axis) {
  auto type = mlir::cast<mlir::RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(axis))
    return b.getI64IntegerAttr(type.getDimSize(axis));
  return Value(ir::DimOp::create(b, b.getI64Type(), tensor, axis));
}

std::vector<Extent> extentsOf(mlir::ImplicitLocOpBuilder &b, Value tensor) {
  std::vector<Extent> extents;
  for (int64_t axis = 0; axis < mlir::cast<mlir::RankedTensorType>(tensor.getType()).getRank();
       ++axis)
    extents.push_back(extentOf(b, tensor, axis));
  return extents;
}

Value extentValue(mlir::ImplicitLocOpBuilder &b, Extent extent) {
  if (auto attr = mlir::dyn_cast<mlir::Attribute>(extent))
    return mlir::arith::ConstantOp::create(b, mlir::cast<mlir::IntegerAttr>(attr));
  return mlir::cast<Value>(extent);
}

Value makeFlat(ExpandBuilder &b, Value x) {
  Extent count = b.getI64IntegerAttr(1);
  for (Extent each : extentsOf(b, x)) {
    auto known = mlir::getConstantIntValue(count), factor = mlir::getConstantIntValue(each);
    if (known && factor)
      count = b.getI64IntegerAttr(*known * *factor);
    else
      count = Value(mlir::arith::MulIOp::create(b, extentValue(b, count), extentValue(b, each)));
  }
  return makeReshaped(b, x, {count});
}

mlir::Type elementType(mlir::MLIRContext *context, DType dtype) {
  const rt::DTypeInfo &info = rt::infoOf(dtype);
  if (info.kind != rt::DTypeKind::Float)
    return mlir::IntegerType::get(context, info.bits);
  if (info.bits == 32)
    return mlir::Float32Type::get(context);
  if (dtype == DType::BF16)
    return mlir::BFloat16Type::get(context);
  return mlir::Float16Type::get(context);
}

std::optional<DType> dtypeOf(mlir::Type element) {
  for (const rt::DTypeInfo &info : rt::kDTypes)
    if (element == elementType(element.getContext(), info.dtype))
      return info.dtype;
  return std::nullopt;
}

DType dtypeOf(Value tensor) {
  return *dtypeOf(mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType());
}

mlir::RankedTensorType tensorType(mlir::MLIRContext *context, const TensorType &type) {
  mlir::SmallVector<int64_t> shape;
  for (const Dim &dim : type.dims)
    shape.push_back(dim.isConstant() ? dim.constant() : mlir::ShapedType::kDynamic);
  mlir::Attribute encoding;
  if (type.vocab)
    encoding = mlir::StringAttr::get(context, *type.vocab);
  return mlir::RankedTensorType::get(shape, elementType(context, type.dtype), encoding);
}

} // namespace sheaf::ops

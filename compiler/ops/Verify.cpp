//===- Verify.cpp - Operator records and MLIR types -----------------------===//

#include "compiler/ops/Verify.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sheaf::ops {
namespace {

std::optional<HostKind> hostKind(mlir::Type type) {
  if (type.isInteger(64))
    return HostKind::Int;
  if (type.isF64())
    return HostKind::Float;
  if (type.isInteger(1))
    return HostKind::Bool;
  if (mlir::isa<ir::TokenType>(type))
    return HostKind::Token;
  return std::nullopt;
}

/// Takes the operands of one apply, one after the other.
class Taker {
public:
  Taker(const Op &op, mlir::TypeRange operands, mlir::DictionaryAttr attrs, mlir::TypeRange results)
      : op_(op), operands_(operands), attrs_(attrs), results_(results) {}

  std::variant<ApplyParts, std::string> run() {
    for (const Param &param : op_.params)
      if (std::string error = takeOperand(param); !error.empty())
        return error;
    for (const Param &param : op_.params)
      if (std::string error = takeArgument(param); !error.empty())
        return error;
    if (next_ != operands_.size())
      return "has " + std::to_string(operands_.size()) + " operands, " + std::to_string(next_) +
             " of them used";
    for (mlir::NamedAttribute attr : attrs_)
      if (!parts_.attrs.contains(attr.getName().str()))
        return "has no parameter '" + attr.getName().str() + "'";
    return std::move(parts_);
  }

private:
  bool atTensor() const {
    return next_ < operands_.size() && mlir::isa<mlir::RankedTensorType>(operands_[next_]);
  }

  std::string takeOperand(const Param &param) {
    switch (param.kind) {
    case ParamKind::Tensors:
      while (atTensor())
        if (std::string error = take(); !error.empty())
          return error;
      return {};
    case ParamKind::Tensor:
      if (!atTensor() && !(op_.name == "scalar" && next_ < operands_.size()))
        return "operand '" + param.name + "' is not a tensor";
      return take();
    case ParamKind::List:
      if (next_ >= operands_.size() || !mlir::isa<ir::ListType>(operands_[next_]))
        return "operand '" + param.name + "' is not a list";
      return take();
    case ParamKind::Index:
      if (next_ >= operands_.size())
        return "operand '" + param.name + "' is missing";
      return take();
    case ParamKind::Key:
      if (next_ >= operands_.size() || !operands_[next_].isInteger(64))
        return "operand '" + param.name + "' is not an i64";
      return take();
    default:
      return {};
    }
  }

  std::string take() {
    if (!isOperandType(operands_[next_]))
      return "operand " + std::to_string(next_) + " is neither a tensor nor a host scalar";
    parts_.operands.push_back(operandType(operands_[next_++]));
    return {};
  }

  std::string takeArgument(const Param &param) {
    auto attr = attrs_.get(param.name);
    switch (param.kind) {
    case ParamKind::Static:
      if (auto value = mlir::dyn_cast_or_null<mlir::IntegerAttr>(attr)) {
        if (param.name.starts_with("axis") && value.getInt() < 0)
          return "attribute '" + param.name + "' is negative";
        parts_.attrs[param.name] = value.getInt();
      } else if (attr || !param.optional) {
        return "attribute '" + param.name + "' is not an int";
      }
      return {};
    case ParamKind::Number:
      if (auto value = mlir::dyn_cast_or_null<mlir::FloatAttr>(attr))
        parts_.attrs[param.name] = value.getValueAsDouble();
      else if (attr || !param.optional)
        return "attribute '" + param.name + "' is not a float";
      return {};
    case ParamKind::Extent:
      if (auto value = mlir::dyn_cast_or_null<mlir::IntegerAttr>(attr))
        parts_.attrs[param.name] = value.getInt();
      else if (attr)
        return "attribute '" + param.name + "' is not an int";
      else {
        parts_.attrs[param.name] = Dim::fresh();
        return takeExtent(param.name, std::nullopt);
      }
      return {};
    case ParamKind::Extents:
      return takeExtents(param);
    default:
      return {};
    }
  }

  std::string takeExtent(const std::string &name, std::optional<size_t> position) {
    if (next_ >= operands_.size() || !operands_[next_].isInteger(64))
      return "the operand for extent '" + name + "' is missing or not an i64";
    parts_.extents.push_back({name, position, next_++});
    return {};
  }

  std::string takeExtents(const Param &param) {
    auto type = results_.empty() ? mlir::RankedTensorType()
                                 : mlir::dyn_cast<mlir::RankedTensorType>(results_[0]);
    if (!type)
      return "has no tensor result";
    std::vector<Dim> dims;
    for (auto [i, extent] : llvm::enumerate(type.getShape())) {
      if (!mlir::ShapedType::isDynamic(extent)) {
        dims.push_back(Dim(extent));
        continue;
      }
      dims.push_back(Dim::fresh());
      if (std::string error = takeExtent(param.name, i); !error.empty())
        return error;
    }
    parts_.attrs[param.name] = dims;
    return {};
  }

  const Op &op_;
  mlir::TypeRange operands_;
  mlir::DictionaryAttr attrs_;
  mlir::TypeRange results_;
  ApplyParts parts_;
  size_t next_ = 0;
};

std::string print(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool matches(mlir::Type result, const TensorType &expected) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(result);
  if (!type || !dtypeOf(type.getElementType()))
    return false;
  TensorType actual = tensorType(type);
  if (actual.dtype != expected.dtype || actual.vocab != expected.vocab ||
      actual.dims.size() != expected.dims.size())
    return false;
  for (size_t i = 0; i < actual.dims.size(); ++i)
    if (!LenientOracle().same(actual.dims[i], expected.dims[i]))
      return false;
  return true;
}

} // namespace

bool isOperandType(mlir::Type type) {
  if (auto list = mlir::dyn_cast<ir::ListType>(type))
    type = list.getElement();
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
    return dtypeOf(tensor.getElementType()).has_value();
  return hostKind(type).has_value();
}

TensorType tensorType(mlir::RankedTensorType type) {
  TensorType result;
  result.dtype = *dtypeOf(type.getElementType());
  for (int64_t extent : type.getShape())
    result.dims.push_back(mlir::ShapedType::isDynamic(extent) ? Dim::fresh() : Dim(extent));
  if (auto vocab = mlir::dyn_cast_or_null<mlir::StringAttr>(type.getEncoding()))
    result.vocab = vocab.str();
  return result;
}

OperandType operandType(mlir::Type type) {
  OperandType result;
  if (auto list = mlir::dyn_cast<ir::ListType>(type)) {
    result.isList = true;
    type = list.getElement();
  }
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
    result.type = tensorType(tensor);
  else
    result.type = *hostKind(type);
  if (auto token = mlir::dyn_cast<ir::TokenType>(type))
    result.vocab = token.getVocab().str();
  return result;
}

std::variant<ApplyParts, std::string> takeApart(const Op &op, mlir::TypeRange operands,
                                                mlir::DictionaryAttr attrs,
                                                mlir::TypeRange results) {
  return Taker(op, operands, attrs, results).run();
}

std::string verifyApply(llvm::StringRef name, mlir::TypeRange operands, mlir::DictionaryAttr attrs,
                        mlir::TypeRange results) {
  const Op *op = OpTable::get().find(std::string_view(name));
  if (!op)
    return "is not an operator";
  if (auto *address = std::get_if<HostAddress>(&op->batch);
      address && address->kind == HostAddress::Rows)
    return "is made by sheaf.rows";
  auto taken = takeApart(*op, operands, attrs, results);
  if (auto *error = std::get_if<std::string>(&taken))
    return *error;
  const ApplyParts &parts = std::get<ApplyParts>(taken);
  ShapeResult shape = op->shape(parts.operands, parts.attrs, LenientOracle());
  if (!shape.error.empty())
    return shape.error;
  if (shape.types.size() != results.size())
    return "has " + std::to_string(results.size()) + " results, not " +
           std::to_string(shape.types.size());
  for (auto [i, result] : llvm::enumerate(results))
    if (!matches(result, shape.types[i]))
      return "result " + std::to_string(i) + " is " + print(result) + ", not " +
             print(tensorType(result.getContext(), shape.types[i]));
  return {};
}

namespace {

struct Rules final : ir::ApplyRules {
  explicit Rules(mlir::Dialect *dialect) : ir::ApplyRules(dialect) {}
  std::string errorOf(ir::ApplyOp apply) const override {
    return verifyApply(apply.getOp(), apply.getOperandTypes(), apply.getAttrs(),
                       apply->getResultTypes());
  }
};

} // namespace

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<ir::SheafDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::scf::SCFDialect, mlir::math::MathDialect, mlir::vector::VectorDialect,
                  mlir::LLVM::LLVMDialect>();
  registry.addExtension(
      +[](mlir::MLIRContext *, ir::SheafDialect *dialect) { dialect->addInterfaces<Rules>(); });
}

bool LenientOracle::same(const Dim &a, const Dim &b) const {
  Dim difference = a - b;
  return !difference.isConstant() || difference.constant() == 0;
}

std::optional<int64_t> LenientOracle::value(const Dim &d) const {
  if (d.isConstant())
    return d.constant();
  return std::nullopt;
}

std::optional<Dim> LenientOracle::quotient(const Dim &a, const Dim &b) const {
  if (auto exact = a.dividedBy(b))
    return exact;
  if (a.isConstant() && b.isConstant())
    return std::nullopt;
  return Dim::fresh();
}

} // namespace sheaf::ops

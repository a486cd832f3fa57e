//===- Apply.cpp - Operators by their references --------------------------===//

#include "compiler/oracle/Compute.h"
#include "compiler/oracle/Perturbed.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/APFloat.h"

namespace sheaf::oracle {
namespace {

/// Answers for extents that are all numbers; a symbol equals nothing but itself.
class NumberOracle : public ops::DimOracle {
public:
  bool same(const Dim &a, const Dim &b) const override { return a == b; }
  std::optional<int64_t> value(const Dim &d) const override {
    return d.isConstant() ? std::optional<int64_t>(d.constant()) : std::nullopt;
  }
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override { return a.dividedBy(b); }
};

ops::TensorType typeOf(const ops::RefTensor &tensor, const ops::TensorType &declared) {
  return {tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, declared.vocab};
}

/// The operands of one application: their types with all extents known, and their numbers.
struct Operands {
  std::vector<ops::OperandType> types;
  std::vector<const ops::RefTensor *> tensors;
  std::vector<TensorPtr> owned;
  std::optional<int64_t> listLength;

  void addTensor(const Value &value, const ops::TensorType &declared) {
    const TensorPtr &ptr = std::get<TensorPtr>(value);
    types.push_back({typeOf(*ptr, declared), false});
    tensors.push_back(ptr.get());
  }

  void addList(const Value &value, const ops::TensorType &declared) {
    std::vector<Value> all = elements(value);
    listLength = static_cast<int64_t>(all.size());
    ops::TensorType type = declared;
    for (size_t i = 0; i < all.size(); ++i) {
      ops::TensorType next = typeOf(tensor(all[i]), declared);
      if (i > 0 && next != type)
        throw Failure{"a list of " + type.str() + " and " + next.str() + " cannot be stacked"};
      type = std::move(next);
      owned.push_back(std::get<TensorPtr>(all[i]));
      tensors.push_back(owned.back().get());
    }
    types.push_back({std::move(type), true});
  }

  void addHost(const Value &value, ops::HostKind kind) {
    ops::RefTensor scalar;
    scalar.host = true;
    scalar.dtype = kind == ops::HostKind::Float  ? ops::DType::F32
                   : kind == ops::HostKind::Bool ? ops::DType::Bool
                                                 : ops::DType::I64;
    const double *number = std::get_if<double>(&value);
    scalar.data = {number ? *number : static_cast<double>(toInt(value))};
    scalar.key = number ? 0 : toInt(value);
    types.push_back({kind, false});
    owned.push_back(std::make_shared<const ops::RefTensor>(std::move(scalar)));
    tensors.push_back(owned.back().get());
  }
};

void roundTo(const llvm::fltSemantics &semantics, std::vector<double> &data) {
  for (double &x : data) {
    llvm::APFloat value(x);
    bool losesInfo;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    x = value.convertToDouble();
  }
}

/// A result of the shapes that the rule gives; the extent that only a list's length determines is
/// the one that is left open.
ops::RefTensor emptyResult(const ops::TensorType &type, std::optional<int64_t> listLength) {
  ops::RefTensor result;
  result.dtype = type.dtype;
  double elements = 1;
  for (const Dim &dim : type.dims) {
    if (!dim.isConstant() && !listLength)
      throw Failure{"an extent of " + type.str() + " is not known"};
    result.shape.push_back(dim.isConstant() ? dim.constant() : *listLength);
    if (result.shape.back() < 0)
      throw Failure{"an extent of " + type.str() + " is negative"};
    elements *= static_cast<double>(result.shape.back());
  }
  if (elements > 1e9)
    throw Failure{type.str() + " is too large"};
  result.data.assign(static_cast<size_t>(result.size()), 0);
  return result;
}

void checkDeclared(const ops::RefTensor &result, mlir::Type declared) {
  auto shape = mlir::cast<mlir::RankedTensorType>(declared).getShape();
  for (size_t i = 0; i < shape.size(); ++i)
    if (!mlir::ShapedType::isDynamic(shape[i]) && shape[i] != result.shape[i])
      throw Failure{"axis " + std::to_string(i) + " of a result has extent " +
                    std::to_string(result.shape[i]) + ", not " + std::to_string(shape[i])};
}

Operands operandsOf(const Step &step, llvm::ArrayRef<Value> values) {
  Operands operands;
  for (auto [type, value] : llvm::zip(step.parts.operands, values)) {
    if (type.isList)
      operands.addList(value, *type.tensor());
    else if (const ops::TensorType *tensor = type.tensor())
      operands.addTensor(value, *tensor);
    else
      operands.addHost(value, *type.host());
  }
  return operands;
}

ops::Attrs attrsOf(const Step &step, llvm::ArrayRef<Value> values) {
  ops::Attrs attrs = step.parts.attrs;
  for (const auto &extent : step.parts.extents) {
    Dim number(toInt(values[extent.operand]));
    if (extent.position)
      std::get<std::vector<Dim>>(attrs[extent.param])[*extent.position] = number;
    else
      attrs[extent.param] = number;
  }
  return attrs;
}

} // namespace

Deciding decidingOf(const Step &step, llvm::ArrayRef<Value> values) {
  Operands operands = operandsOf(step, values);
  return {*step.record->decision, std::move(operands.tensors), attrsOf(step, values),
          std::move(operands.owned)};
}

Values applyOperator(const Step &step, llvm::ArrayRef<Value> values, const Context &context) {
  Operands operands = operandsOf(step, values);
  ops::Attrs attrs = attrsOf(step, values);
  ops::ShapeResult shape = step.record->shape(operands.types, attrs, NumberOracle());
  if (!shape.error.empty())
    throw Failure{shape.error};
  std::vector<ops::RefTensor> results;
  for (auto [type, declared] : llvm::zip(shape.types, step.op->getResultTypes())) {
    results.push_back(emptyResult(type, operands.listLength));
    checkDeclared(results.back(), declared);
  }
  std::optional<PerturbedArithmetic> perturbed;
  if (context.options.perturbation && context.precision != Precision::F64)
    perturbed.emplace(*context.options.perturbation, *step.record, operands.tensors,
                      context.precision);
  std::string error = step.record->reference(operands.tensors, attrs,
                                             perturbed ? *perturbed : context.arithmetic, results);
  if (!error.empty())
    throw Failure{error};

  Values out;
  for (ops::RefTensor &result : results) {
    if (perturbed)
      for (double &x : result.data)
        x = perturbed->roundStored(x, result.dtype);
    else if (context.precision == Precision::Bf16 && result.dtype == ops::DType::BF16)
      roundTo(llvm::APFloat::BFloat(), result.data);
    else if (context.precision == Precision::Bf16 && result.dtype == ops::DType::F16)
      roundTo(llvm::APFloat::IEEEhalf(), result.data);
    out.push_back(makeTensor(std::move(result)));
  }
  return out;
}

} // namespace sheaf::oracle

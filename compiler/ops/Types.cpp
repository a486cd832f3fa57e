//===- Types.cpp - Types as shape rules see them --------------------------===//

#include "compiler/ops/Op.h"

namespace sheaf::ops {

std::string TensorType::str() const {
  std::string text(dtypeName(dtype));
  if (vocab)
    text = vocab->empty() ? "token" : "token<" + *vocab + ">";
  // Bare `bool` and `token` are host types.
  if (dims.empty())
    return vocab || dtype == DType::Bool ? text + "[]" : text;
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "[") + dims[i].str();
  return text + "]";
}

std::string OperandType::str() const {
  std::string text;
  if (const TensorType *t = tensor())
    text = t->str();
  else
    switch (*host()) {
    case HostKind::Int:
      text = "int";
      break;
    case HostKind::Float:
      text = "float";
      break;
    case HostKind::Bool:
      text = "bool";
      break;
    case HostKind::Token:
      text = "token";
      break;
    }
  return isList ? "list<" + text + ">" : text;
}

int64_t RefTensor::size() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

DType Op::promoted(std::span<const OperandType> operands, size_t operand) const {
  if (promotion)
    return promotion(operands, operand);
  for (const OperandType &other : operands)
    if (const TensorType *tensor = other.tensor())
      return tensor->dtype;
  // All are host scalars: they meet in the widest kind.
  auto has = [&](HostKind kind) {
    for (const OperandType &other : operands)
      if (const HostKind *host = other.host(); host && *host == kind)
        return true;
    return false;
  };
  return has(HostKind::Float) ? DType::F32 : has(HostKind::Int) ? DType::I64 : DType::Bool;
}

} // namespace sheaf::ops

//===- Shape.cpp - What shape rules share ---------------------------------===//

#include "compiler/ops/Shape.h"

namespace sheaf::ops {

std::string withValue(const Dim &dim, const DimOracle &oracle) {
  std::string text = dim.str();
  if (!dim.isConstant())
    if (auto value = oracle.value(dim))
      text += " = " + std::to_string(*value);
  return text;
}

std::string describe(const OperandType &operand) {
  if (operand.isList || operand.tensor())
    return operand.str();
  return (*operand.host() == HostKind::Int ? "an " : "a ") + operand.str();
}

std::string counted(int64_t n, std::string_view one, std::string_view many) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

std::optional<int64_t> optionalInt(const Attrs &attrs, const std::string &name) {
  auto it = attrs.find(name);
  if (it == attrs.end())
    return std::nullopt;
  if (auto *value = std::get_if<int64_t>(&it->second))
    return *value;
  if (auto *dim = std::get_if<Dim>(&it->second))
    if (dim->isConstant())
      return dim->constant();
  return std::nullopt;
}

int64_t intAttr(const Attrs &attrs, const std::string &name, int64_t otherwise) {
  return optionalInt(attrs, name).value_or(otherwise);
}

double numberAttr(const Attrs &attrs, const std::string &name, double otherwise) {
  auto it = attrs.find(name);
  if (it == attrs.end())
    return otherwise;
  if (auto *value = std::get_if<double>(&it->second))
    return *value;
  if (auto *value = std::get_if<int64_t>(&it->second))
    return static_cast<double>(*value);
  return otherwise;
}

Dim dimAttr(const Attrs &attrs, const std::string &name) {
  auto it = attrs.find(name);
  if (it == attrs.end())
    return Dim::fresh();
  if (auto *value = std::get_if<int64_t>(&it->second))
    return Dim(*value);
  if (auto *dim = std::get_if<Dim>(&it->second))
    return *dim;
  return Dim::fresh();
}

std::vector<Dim> dimsAttr(const Attrs &attrs, const std::string &name) {
  auto it = attrs.find(name);
  if (it == attrs.end())
    return {};
  if (auto *dims = std::get_if<std::vector<Dim>>(&it->second))
    return *dims;
  return {dimAttr(attrs, name)};
}

ShapeResult filledShape(const std::string &name, const Attrs &attrs, const DimOracle &oracle) {
  TensorType result{DType::F32, dimsAttr(attrs, "dims"), {}};
  for (const Dim &dim : result.dims)
    if (oracle.value(dim).value_or(0) < 0)
      return ShapeResult::fail("cannot make " + result.str() + " with '" + name +
                               "': an extent is " + withValue(dim, oracle));
  return ShapeResult::ok(std::move(result));
}

Expected<size_t> axisAttr(int64_t axis, const TensorType &type, size_t rank) {
  int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    std::string what = "axis " + std::to_string(axis) + " is out of range for ";
    if (rank > type.dims.size())
      return ShapeError{what + "a new axis of " + type.str() + ": it is at most " +
                        std::to_string(n - 1)};
    return ShapeError{what + type.str() + ", which has " +
                      counted(type.dims.size(), "axis", "axes")};
  }
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

size_t axisIn(const Attrs &attrs, const std::string &name, int64_t otherwise, size_t rank) {
  int64_t axis = intAttr(attrs, name, otherwise);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

ShapeResult shapeAlongAxis(const Expected<TensorType> &operand, const Attrs &attrs) {
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  const TensorType &type = std::get<TensorType>(operand);
  auto at = axisAttr(intAttr(attrs, "axis", 0), type, type.dims.size());
  if (auto *error = std::get_if<ShapeError>(&at))
    return *error;
  return ShapeResult::ok(type);
}

Expected<TensorType> tensorOperand(std::span<const OperandType> operands, size_t i,
                                   const std::string &action) {
  const TensorType *type = operands[i].tensor();
  if (!type || operands[i].isList)
    return ShapeError{"cannot " + action + " " + describe(operands[i]) + ": it is not a tensor",
                      static_cast<int>(i)};
  return *type;
}

Expected<TensorType> floatTensor(std::span<const OperandType> operands, size_t i,
                                 const std::string &action) {
  auto type = tensorOperand(operands, i, action);
  if (auto *tensor = std::get_if<TensorType>(&type); tensor && !isFloat(tensor->dtype))
    return ShapeError{"cannot " + action + " " + tensor->str() + ": its elements are not floats",
                      static_cast<int>(i), tensor->vocab ? "" : "convert it with f32(...)"};
  return type;
}

bool isOne(const Dim &dim, const DimOracle &oracle) { return oracle.value(dim) == 1; }

const Dim &better(const Dim &a, const Dim &b, const DimOracle &oracle) {
  bool knowB = oracle.value(b).has_value() && !oracle.value(a).has_value();
  return knowB || (a.isFresh() && !b.isFresh()) ? b : a;
}

std::optional<std::vector<Dim>> broadcastDims(const std::vector<Dim> &a, const std::vector<Dim> &b,
                                              const DimOracle &oracle,
                                              BroadcastMismatch &mismatch) {
  const auto &longer = a.size() >= b.size() ? a : b;
  std::vector<Dim> result = longer;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    Dim &out = result[result.size() - i];
    bool oneX = isOne(x, oracle), oneY = isOne(y, oracle);
    // An unknown extent against 1 broadcasts, so this comes before the question of equality.
    if (oneX && !oneY)
      out = y;
    else if (oneY && !oneX)
      out = x;
    else if (oracle.same(x, y))
      out = better(x, y, oracle);
    else {
      mismatch = {x, y, static_cast<int64_t>(i)};
      return std::nullopt;
    }
  }
  return result;
}

std::string describeMismatch(const BroadcastMismatch &mismatch, size_t rankA, size_t rankB,
                             const DimOracle &oracle) {
  std::string where =
      rankA == rankB ? "the extents of axis " + std::to_string(rankA - mismatch.fromEnd)
      : mismatch.fromEnd == 1
          ? "the last extents"
          : "the extents of axis " + std::to_string(-mismatch.fromEnd) + " (from the end)";
  return where + " differ (" + withValue(mismatch.a, oracle) + ", " +
         withValue(mismatch.b, oracle) + ")";
}

Dim product(std::span<const Dim> dims) {
  Dim result(1);
  for (const Dim &dim : dims)
    result = result * dim;
  return result;
}

} // namespace sheaf::ops

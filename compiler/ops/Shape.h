//===- Shape.h - What shape rules share -------------------------*- C++ -*-===//
//
// For the operator families only.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_SHAPE_H
#define SHEAF_COMPILER_OPS_SHAPE_H

#include "compiler/ops/Op.h"

namespace sheaf::ops {

/// Why an operand or a pair of them does not do: becomes a ShapeResult.
struct ShapeError {
  std::string message;
  int operand = -1;
  std::string help = {};
  operator ShapeResult() const { return ShapeResult::fail(message, operand, help); }
};

template <typename T> using Expected = std::variant<T, ShapeError>;

/// `hidden = 256`, `256`, or `n` when no number is known.
std::string withValue(const Dim &dim, const DimOracle &oracle);
/// The operand in running text: `f32[n]`, `a float`, `list<f32[n]>`.
std::string describe(const OperandType &operand);
/// `1 axis`, `2 axes`.
std::string counted(int64_t n, std::string_view one, std::string_view many);

int64_t intAttr(const Attrs &attrs, const std::string &name, int64_t otherwise);
std::optional<int64_t> optionalInt(const Attrs &attrs, const std::string &name);
double numberAttr(const Attrs &attrs, const std::string &name, double otherwise);
/// An extent that may have been given as an int.
Dim dimAttr(const Attrs &attrs, const std::string &name);
std::vector<Dim> dimsAttr(const Attrs &attrs, const std::string &name);

/// The shape rule of what makes an f32 tensor of the extents `dims`.
ShapeResult filledShape(const std::string &name, const Attrs &attrs, const DimOracle &oracle);

/// An axis attribute counted from the front, in [0, rank).
Expected<size_t> axisAttr(int64_t axis, const TensorType &type, size_t rank);

/// The axis that a call gives, counted from the front, where its shape rule has passed it.
size_t axisIn(const Attrs &attrs, const std::string &name, int64_t otherwise, size_t rank);

/// The shape rule of what works along an axis, the first by default, and keeps its operand's type.
ShapeResult shapeAlongAxis(const Expected<TensorType> &operand, const Attrs &attrs);

/// Operand i as a tensor; anything else is refused in the words "cannot `action` a float".
Expected<TensorType> tensorOperand(std::span<const OperandType> operands, size_t i,
                                   const std::string &action);
Expected<TensorType> floatTensor(std::span<const OperandType> operands, size_t i,
                                 const std::string &action);

/// NumPy's broadcasting of two shapes; nullopt and the extents that differ in `a` and `b` when
/// they do not go together. Of two equal extents the one whose number is known is kept.
struct BroadcastMismatch {
  Dim a, b;
  int64_t fromEnd = 0; ///< axis -fromEnd of both
};
std::optional<std::vector<Dim>> broadcastDims(const std::vector<Dim> &a, const std::vector<Dim> &b,
                                              const DimOracle &oracle, BroadcastMismatch &mismatch);
/// `the extents of axis 0 differ (n, m)`.
std::string describeMismatch(const BroadcastMismatch &mismatch, size_t rankA, size_t rankB,
                             const DimOracle &oracle);

bool isOne(const Dim &dim, const DimOracle &oracle);
/// The more telling of two equal extents.
const Dim &better(const Dim &a, const Dim &b, const DimOracle &oracle);

Dim product(std::span<const Dim> dims);

/// Says of every operator how it is differentiated. After all families.
void addGradients(std::vector<Op> &ops);

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_SHAPE_H

//===- Elementwise.h - Records of operators on each element -----*- C++ -*-===//
//
// For the operator families only.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_ELEMENTWISE_H
#define SHEAF_COMPILER_OPS_ELEMENTWISE_H

#include "compiler/ops/Op.h"

namespace sheaf::ops {

enum class Elements { Floats, Numbers, Bools, Any };

/// What makes one operator on each element, with broadcasting.
struct ElementwiseSpec {
  std::string name;
  std::string summary;
  std::vector<std::string> params;
  Elements accepts;
  /// "add {0} and {1}": what cannot be done when it is refused; empty: said by the name.
  std::string phrase;
  /// One element of the result; floats are rounded and ints wrapped afterwards.
  std::function<double(std::span<const double>)> eval;
  EmitLanes emit;
  bool toBool = false;
  /// The exact integer result, where doubles would lose it.
  std::function<uint64_t(std::span<const uint64_t>)> evalInt = {};
  /// What passes may know of it, without `emit`. Where it `selects`, the first operand is a bool.
  Elementwise rule = {};
};

/// The record. Element types of all operands are equal, except that a host scalar takes the others'
/// type and the condition of one that selects is bool.
Op elementwiseOp(ElementwiseSpec spec);

/// The elements of a result, by `eval`.
std::string elementwiseReference(const ElementwiseSpec &spec, const RefTensors &operands,
                                 const Arithmetic &arithmetic, RefTensor &result);

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_ELEMENTWISE_H

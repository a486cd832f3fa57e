//===- Convert.h - Oracle values from the runtime's slots -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_CONVERT_H
#define SHEAF_COMPILER_ORACLE_CONVERT_H

#include "compiler/oracle/Oracle.h"
#include "runtime/session/session.h"

namespace sheaf::oracle {

/// A tensor of the runtime with its elements as doubles.
ops::RefTensor fromView(const rt::TensorView &view);

/// A value of an input (runtime/model/value.h): tensors are HostTensors.
Value fromInput(const rt::TypeTable &types, uint32_t type, const rt::Slot *slots);
/// Told of a tensor in the argument of this number before it becomes part of it; may change its
/// elements.
using VisitTensor = std::function<void(size_t argument, ops::RefTensor &tensor)>;
/// The arguments of an instance. `visit` is told of their tensors, depth first and left to right.
std::vector<Value> fromInstance(const rt::TypeTable &types, std::span<const uint32_t> argTypes,
                                const rt::Slot *args, const VisitTensor &visit = {});
/// A value of an outcome, until the session's next run.
Value fromOutcome(const rt::Session &session, uint32_t type, const rt::Slot *slots);
/// All parameters of a session, synthetic ones too.
Weights weightsOf(const rt::Session &session);

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_CONVERT_H

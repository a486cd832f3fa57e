//===- anomaly.h - Where gradients cease to be finite -----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_ANOMALY_H
#define SHEAF_RUNTIME_TRAIN_ANOMALY_H

#include "runtime/session/session.h"

#include <string>

namespace sheaf::rt {

/// Where a NaN or an infinity comes from.
struct Anomaly {
  std::string param;     ///< whose gradient is not finite
  int64_t instance = -1; ///< Instance::index; -1: of none that memory held alone
  bool sums = true;      ///< without an instance: each has finite gradients
  std::string kernel;    ///< the first that made such a value; empty: none did
  std::string source;    ///< its file:line
  bool back = false;     ///< in the backward pass
  double value = 0;      ///< what it made

  std::string message() const;
};

/// Looks for what made a step's gradients NaN or infinite: runs its instances again, forward and
/// backward, one at a time until one has gradients that are not finite. A loss that is not finite
/// is traced to the forward pass, gradients of one that is to the backward pass. Where memory is
/// short no block is told, or no instance. `gradients` may be those of the last run. `weight`: what
/// losses are multiplied with. Nothing when the gradients are finite.
std::optional<Anomaly> findAnomaly(Session &session, std::span<const Instance> instances,
                                   std::span<const ParamGradient> gradients, float weight);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_ANOMALY_H

//===- param_gradient.h - The gradient of a parameter -----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_BACKWARD_PARAM_GRADIENT_H
#define SHEAF_RUNTIME_BACKWARD_PARAM_GRADIENT_H

#include "runtime/device/update.h"

#include <cstdint>
#include <vector>

namespace sheaf::rt {

/// Which order gradients are summed in, by records (backward.h) and by parts of a step
/// (gradient_sum.h). Another number where one of them changes: trainings have it in config.json.
inline constexpr int kOrderOfSums = 3;

/// The gradient of one parameter, until the session's next run.
struct ParamGradient {
  enum Kind : uint8_t {
    None, ///< nothing depends on it: the gradient is zero
    Rows, ///< zero but for the innermost rows `rows`
    Dense
  } kind = None;
  float *data = nullptr; ///< in row layout; of Rows only those rows hold anything
  FloatsAt at; ///< the same, where its device has it; None: `data` is memory of the host alone
  std::vector<uint32_t> rows; ///< ascending

  FloatsAt where() const { return at.kind == FloatsAt::None ? FloatsAt::onHost(data) : at; }
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_BACKWARD_PARAM_GRADIENT_H

//===- GradCheck.h - Gradients against finite differences -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_GRADCHECK_H
#define SHEAF_COMPILER_DRIVER_GRADCHECK_H

#include "compiler/driver/Compiler.h"
#include "runtime/session.h"

#include <functional>
#include <span>
#include <string>

namespace sheaf::driver {

struct GradCheckOptions {
  int64_t samples = 8;     ///< elements of each parameter
  double tolerance = 1e-4; ///< of the greatest gradient of the parameter
  /// Where products round their factors to bf16 and the oracle does not.
  static constexpr double kBf16Tolerance = 5e-2;
  rt::SessionOptions session;
  /// Told how many of how many elements are done. May be empty.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct GradCheckReport {
  bool ok = false;
  std::string text; ///< a line for each parameter; on failure the elements that are wrong
};

/// Throws UserError unless the result of the model's entry is f32 without axes: a loss.
void requireLoss(const rt::Model &model);

/// Compares the gradients of the mean loss of these instances, as the compiled model computes them,
/// with central differences of the oracle in f64, for sampled elements of every parameter; and with
/// themselves, bit by bit, on 1, 2 and 3 threads. `initialise` gives a session its weights.
GradCheckReport checkGradients(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const GradCheckOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_GRADCHECK_H

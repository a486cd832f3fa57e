//===- GradCheck.h - Gradients against finite differences -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_GRADCHECK_H
#define SHEAF_COMPILER_DRIVER_GRADCHECK_H

#include "compiler/driver/Compiler.h"
#include "runtime/session.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

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

/// An element whose gradient is wrong.
struct WrongGradient {
  size_t element = 0; ///< counted row by row
  double gradient = 0, difference = 0;
};

/// What was compared of a parameter.
struct ParamCheck {
  std::string name;
  size_t elements = 0, sampled = 0;
  double greatest = 0; ///< gradient
  double error = 0;    ///< the largest, of `greatest`
  int64_t leftOut = 0; ///< elements with a decision near that turns around
  std::vector<WrongGradient> wrong;
};

struct GradCheckReport {
  bool ok = false;
  std::string model;
  double allowed = 0; ///< ParamCheck::error
  std::vector<ParamCheck> params;
  std::string problem; ///< why nothing could be compared
};

std::string gradCheckText(const GradCheckReport &report);
std::string gradCheckJson(const GradCheckReport &report);

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

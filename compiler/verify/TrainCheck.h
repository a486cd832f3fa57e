//===- TrainCheck.h - Trainings against those in f64 ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_TRAINCHECK_H
#define SHEAF_COMPILER_VERIFY_TRAINCHECK_H

#include "compiler/driver/Compiler.h"
#include "runtime/session/session.h"
#include "runtime/train/trainer.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

struct TrainCheckOptions {
  int64_t steps = 0;
  double tolerance = 1e-3; ///< of the loss of a step
  /// Where the program rounds to 16-bit floats and the oracle does not.
  static constexpr double k16BitTolerance = 5e-2;
  rt::SessionOptions session;
  rt::TrainerOptions trainer;
  std::vector<size_t> frozen;           ///< parameters
  std::vector<rt::ParamUpdate> updates; ///< by parameter; may be empty
  /// Told after every step. May be empty.
  std::function<void()> progress;
};

/// One step as compiled and by the oracle, before it changed the weights.
struct CheckedStep {
  double loss = 0, oracleLoss = 0;
  double norm = 0, oracleNorm = 0; ///< of the gradients
};

struct TrainCheckReport {
  bool ok = false;
  double allowed = 0;
  double error = 0;   ///< the largest |loss - oracleLoss| / |oracleLoss|; infinity for no number
  int64_t failed = 0; ///< instances of all steps, on both sides: they have no part in a step
  std::vector<CheckedStep> steps;
  std::string problem; ///< why it could not go on
};

/// Trains twice from the same weights, `initialise` gives them: as compiled, and in f64 by the
/// oracle (OracleTrainer), and compares the losses.
TrainCheckReport checkTraining(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const TrainCheckOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_TRAINCHECK_H

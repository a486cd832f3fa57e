//===- GradCheck.h - Gradients against finite differences -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_GRADCHECK_H
#define SHEAF_COMPILER_VERIFY_GRADCHECK_H

#include "compiler/verify/TrainCheck.h"
#include "runtime/session/session.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

struct GradCheckOptions {
  int64_t directions = 2;  ///< of each parameter
  double tolerance = 1e-4; ///< of the compiled gradients, of the greatest of the parameter
  /// Where products round their factors to bf16, or tensors are 16-bit floats themselves: the same
  /// numbers summed in another order may be rounded to neighbours, and the oracle rounds factors of
  /// forward products only.
  static constexpr double k16BitTolerance = 2e-2;
  /// Of the oracle's, likewise; what differences of f64 allow.
  static constexpr double kOracleTolerance = 1e-6;
  rt::SessionOptions session;
  /// The gradients of the arguments' tensors of f32 as well, of a model with
  /// CompileOptions::inputGradients: also that an instance has the same bits alone.
  bool inputs = false;
  /// Told how many of how many directions are done. May be empty.
  std::function<void(int64_t done, int64_t total)> progress;
};

/// An element whose gradient is wrong.
struct WrongGradient {
  size_t element = 0; ///< counted row by row
  double gradient = 0, expected = 0;
};

/// What was compared of a parameter, or of an argument (inputName).
struct ParamCheck {
  std::string name;
  size_t elements = 0;
  double greatest = 0; ///< gradient of an element, by the oracle
  /// What errors are told of: `greatest`, or more where that is next to nothing beside the loss or
  /// the gradients of the others.
  double scale = 0;
  /// Of the compiled gradient, against the oracle's: the largest, of `scale`, and the first
  /// elements beyond the tolerance, of `wrongCount`.
  double error = 0;
  std::vector<WrongGradient> wrong;
  size_t wrongCount = 0;
  /// Where an error is beyond the tolerance and yet not wrong: what the program's conditioning
  /// allows (Conditioning.h), of `scale`. Else 0.
  double conditioned = 0;
  /// Of the oracle's gradient, against differences.
  size_t directions = 0;
  double oracleError = 0;
  size_t leftOut = 0; ///< directions with a kink or a decision that turns around at the point
  std::vector<WrongGradient> wrongRule;
  /// Whether any difference says something of the oracle's gradient.
  bool hasDifferences() const { return leftOut < directions; }
};

struct GradCheckReport {
  bool ok = false; ///< of the gradients
  std::string model;
  double allowed = 0; ///< ParamCheck::error
  size_t instances = 0;
  size_t failed = 0;   ///< instances, as compiled and by the oracle: left out
  std::string failure; ///< of the first of them
  std::vector<ParamCheck> params;
  std::string problem; ///< why nothing could be compared
  std::optional<TrainCheckReport> training;
};

std::string gradCheckText(const GradCheckReport &report);
std::string gradCheckJson(const GradCheckReport &report);
/// The first thing that is wrong, without numbers; of a report that is not ok.
std::string whatIsWrong(const GradCheckReport &report);

/// Throws UserError unless the result of the model's entry is f32 without axes: a loss.
void requireLoss(const rt::Model &model);

/// Compares the gradients of the mean loss of these instances, as the compiled model computes them,
/// with those of the oracle in f64, in every element of every parameter, and with themselves, bit
/// by bit, on 1, 2 and 3 threads; and the oracle's with central differences of its losses, along
/// directions in which every element of a parameter changes. Where compiled gradients are farther
/// off than the tolerance, what they may be off is measured, as --verify does (Conditioning.h).
/// Instances that fail, as compiled and by the oracle, are left out. `initialise` gives a session
/// its weights.
GradCheckReport checkGradients(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const GradCheckOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_GRADCHECK_H

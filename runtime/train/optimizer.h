//===- optimizer.h - Updates of parameters ----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_OPTIMIZER_H
#define SHEAF_RUNTIME_TRAIN_OPTIMIZER_H

#include "runtime/device/update.h"
#include "runtime/session/session.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::rt {

struct OptimizerOptions {
  enum Kind : uint8_t { Sgd, Momentum, Adam, AdamW, Adagrad, RmsProp, Lamb } kind = Sgd;
  double momentum = 0.9; ///< of Momentum
  double beta1 = 0.9, beta2 = 0.999;
  double decay = 0.99; ///< of the squares of RmsProp
  double epsilon = 1e-8;
  /// Weight decay: added to the gradient, or (AdamW, LAMB) apart from it.
  double weightDecay = 0;
  double clip = 0; ///< most length of all gradients together; 0: no limit
};

struct OptimizerInfo {
  std::string_view name; ///< on the command line
  std::string_view description;
  std::vector<std::string_view> options; ///< of the command, beside those of all
};

/// In the order of OptimizerOptions::Kind.
std::span<const OptimizerInfo> optimizers();

/// By its name on the command line. Throws UserError for a name that there is not.
OptimizerOptions::Kind optimizerKind(const std::string &name);

struct StepReport {
  double norm = 0;      ///< length of all gradients together, before it was cut
  bool skipped = false; ///< the gradients held NaN or infinity: nothing was changed
  bool changed = false; ///< there was something to change parameters by
};

/// What is one parameter's own.
struct ParamUpdate {
  double rate = 1;             ///< times that of the step
  std::optional<double> decay; ///< instead of OptimizerOptions::weightDecay
};

/// Changes the parameters of a session by gradients. Of a gradient that is zero but for some rows
/// only those rows are changed, and only their part of the state: what a word's row has gathered
/// waits until the word comes again. Every number has one order of computation, on any number of
/// threads.
class Optimizer {
public:
  Optimizer(Session &session, const OptimizerOptions &options);
  ~Optimizer();
  Optimizer(const Optimizer &) = delete;

  /// By parameter; empty: none has its own.
  void setUpdates(std::vector<ParamUpdate> updates);

  /// Takes all memory that steps will need, before a mini-batch takes what there is. Throws
  /// OutOfMemory.
  void reserve();
  /// Changes the parameters by `scale` times these gradients. The session's packed weights follow
  /// row by row, or, where that cannot be, before its next run.
  StepReport step(std::span<const ParamGradient> gradients, double learningRate, double scale = 1);

  /// What is remembered from step to step: a number, and for each parameter up to two tensors of
  /// its shape. Empty until a parameter is changed for the first time, and zero then.
  int64_t steps() const { return steps_; }
  void setSteps(int64_t steps) { steps_ = steps; }
  enum Part : uint8_t {
    Mean, ///< or momentum
    Squares
  };
  /// Which of the two an optimiser of this kind has.
  bool has(Part part) const;
  /// One of them in row layout, as it is now; empty where there is none.
  std::span<const uint8_t> state(size_t param, Part part) const;
  /// Calls `write` with it; false for an optimiser that has none.
  bool setState(size_t param, Part part, const std::function<void(uint8_t *)> &write);

private:
  struct State {
    uint32_t buffers[2] = {}; ///< of the device, by Part; 0: none
  };
  void makeState(size_t param);
  std::vector<ParamPiece> piecesOf(std::span<const ParamGradient> gradients) const;
  UpdateNumbers numbersOf(double rate, double scale, double decay) const;
  double decayOf(size_t param) const {
    return updates_[param].decay.value_or(options_.weightDecay);
  }
  std::vector<double> lambRatios(std::span<const ParamPiece> pieces,
                                 std::span<UpdateOperands> operands, double scale) const;

  Session &session_;
  OptimizerOptions options_;
  std::vector<ParamUpdate> updates_;
  std::vector<State> states_;
  int64_t steps_ = 0;
};

/// The learning rate over the steps of a training.
struct LearningRate {
  enum Schedule : uint8_t { Constant, Linear, Cosine } schedule = Constant;
  double peak = 1e-3;
  int64_t warmup = 0; ///< steps over which it grows from 0 to `peak`
  int64_t total = 0;  ///< steps after which Linear and Cosine have come to 0

  double at(int64_t step) const; ///< of step 0, 1, ...
};
/// constant, linear, cosine. Throws UserError for any other.
LearningRate::Schedule scheduleNamed(const std::string &name);
std::string_view scheduleName(LearningRate::Schedule schedule);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_OPTIMIZER_H

//===- trainer.h - Steps over shuffled mini-batches -------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_TRAINER_H
#define SHEAF_RUNTIME_TRAIN_TRAINER_H

#include "runtime/train/anomaly.h"
#include "runtime/train/average.h"
#include "runtime/train/gradient_sum.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/optimizer.h"

namespace sheaf::rt {

struct TrainerOptions {
  int64_t batch = 64;     ///< instances that run together
  int64_t accumulate = 1; ///< mini-batches whose gradients make one step
  uint64_t seed = 0;      ///< of the order of the instances
  bool sum = false;       ///< the loss of a step is the sum over its instances, not the mean
  LearningRate rate;
  OptimizerOptions optimizer;
  LossScale lossScale{1};
  double averageDecay = -1;   ///< of WeightAverage; negative: no average is made
  bool findAnomalies = false; ///< looks for where gradients that are not finite come from
};

/// The order of the instances in an epoch, from 0.
std::vector<uint32_t> instanceOrder(uint64_t seed, int64_t epoch, size_t count);

/// Those of a step: places in the order of its epoch.
struct StepInstances {
  int64_t epoch;
  size_t begin, end;
};
StepInstances instancesOf(const TrainerOptions &options, int64_t step, size_t count);

/// What became of one step.
struct TrainingStep {
  int64_t number = 0, epoch = 0; ///< from 0
  double loss = 0;               ///< mean over the instances that did not fail; of none: 0
  double rate = 0, norm = 0;
  double lossScale = 1;
  bool skipped = false; ///< gradients that are not finite: no parameter was changed
  bool changed = false; ///< any parameter was
  bool stopped = false; ///< it was given up before it changed anything: the next one is the same
  std::optional<Anomaly> anomaly;
  int64_t instances = 0, failed = 0;
  /// How often memory did not hold a mini-batch, or a part of one, which then went in two: the
  /// gradients' last bits are not those of the whole.
  int64_t halved = 0;
  std::optional<RunError> error; ///< of the first that failed
  double forwardSeconds = 0, backwardSeconds = 0, updateSeconds = 0;
};

/// Trains a session's parameters. All that a step depends on follows from its number, the
/// parameters and the optimiser's state, so that a training that is taken up again goes on with the
/// same bits; but for whether memory holds a mini-batch at once, or it goes in parts, which
/// TrainingStep::halved tells.
class Trainer {
public:
  /// `session`: of a model made for training. All instances must outlive this.
  Trainer(Session &session, std::span<const Instance> instances, const TrainerOptions &options);

  /// When `stop` is asked for, from any thread, before parameters are changed, they are not.
  TrainingStep step(const std::stop_token &stop = {});

  int64_t stepsDone() const { return next_; }
  int64_t stepsPerEpoch() const;
  Optimizer &optimizer() { return optimizer_; }
  LossScale &lossScale() { return options_.lossScale; }
  /// Null unless one is made.
  WeightAverage *average() { return average_ ? &*average_ : nullptr; }
  const WeightAverage *average() const { return average_ ? &*average_ : nullptr; }
  /// Goes on after this many steps; the caller restores parameters and optimiser.
  void resume(int64_t steps) { next_ = steps; }

private:
  /// Gradients of some of the epoch's instances.
  using Gradients = std::span<const ParamGradient>;
  std::optional<Gradients> runAtOnce(size_t begin, size_t end, TrainingStep &step);
  void addBatch(size_t begin, size_t end, TrainingStep &step);
  void addHalves(size_t begin, size_t end, TrainingStep &step);

  Session &session_;
  std::span<const Instance> instances_;
  TrainerOptions options_;
  Optimizer optimizer_;
  GradientSum sum_;
  std::optional<WeightAverage> average_;
  int64_t next_ = 0;
  int64_t shuffled_ = -1; ///< the epoch that `order_` is of
  std::vector<uint32_t> order_;
  std::vector<Instance> batch_;
  std::vector<float> weights_;
  std::stop_token stop_; ///< of the step that is made
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_TRAINER_H

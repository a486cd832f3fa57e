//===- trainer.h - Steps over shuffled mini-batches -------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_TRAINER_H
#define SHEAF_RUNTIME_TRAIN_TRAINER_H

#include "runtime/train/anomaly.h"
#include "runtime/train/average.h"
#include "runtime/train/gradient_sum.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/parts.h"

namespace sheaf::rt {

struct TrainerOptions {
  int64_t batch = 64;     ///< instances a mini-batch
  int64_t accumulate = 1; ///< mini-batches whose gradients make one step
  /// Parts that each mini-batch is divided into. 0: one, or, where the memory limit does not hold
  /// the first step's, so many as it takes.
  int64_t parts = 0;
  uint64_t seed = 0; ///< of the order of the instances
  bool sum = false;  ///< the loss of a step is the sum over its instances, not the mean
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
  int64_t parts = 1; ///< that it was made of, those that were halved counted once
  /// How often memory did not hold a part, which then went in two: the gradients' last bits are not
  /// those of the whole.
  int64_t halved = 0;
  std::optional<RunError> error;     ///< of the first that failed
  std::optional<RunError> nonFinite; ///< of the first whose loss is NaN or infinite
  double forwardSeconds = 0, backwardSeconds = 0, updateSeconds = 0;
};

/// Trains a session's parameters. All that a step depends on follows from its number, the
/// parameters and the optimiser's state, so that a training that is taken up again goes on with the
/// same bits; but for whether memory holds a part at once, or it is halved, which
/// TrainingStep::halved tells.
///
/// The instances of a step run in parts, one after the other: its mini-batches, each divided by
/// cost (parts.h). Their gradients are the sum of a tree (gradient_sum.h), which follows from
/// instances and options alone.
class Trainer {
public:
  /// `session`: of a model made for training. All instances must outlive this.
  Trainer(Session &session, std::span<const Instance> instances, const TrainerOptions &options);

  /// When `stop` is asked for, from any thread, before parameters are changed, they are not.
  TrainingStep step(const std::stop_token &stop = {});

  int64_t stepsDone() const { return next_; }
  /// A mini-batch is divided into so many; known when the first step is done.
  int64_t parts() const { return parts_; }
  int64_t stepsPerEpoch() const;
  Optimizer &optimizer() { return optimizer_; }
  LossScale &lossScale() { return options_.lossScale; }
  /// Null unless one is made.
  WeightAverage *average() { return average_ ? &*average_ : nullptr; }
  const WeightAverage *average() const { return average_ ? &*average_ : nullptr; }
  /// Goes on after this many steps, with so many parts; the caller restores parameters and
  /// optimiser.
  void resume(int64_t steps, int64_t parts) {
    next_ = steps;
    parts_ = parts;
  }

private:
  /// Gradients of some of the epoch's instances.
  using Gradients = std::span<const ParamGradient>;
  std::optional<Gradients> runAtOnce(size_t begin, size_t end, TrainingStep &step);
  void addInPieces(size_t begin, size_t end, TrainingStep &step);
  void addHalves(size_t begin, size_t end, TrainingStep &step);
  std::vector<size_t> cut(size_t begin, size_t end) const;
  std::optional<Gradients> runParts(size_t begin, size_t end, bool mayHalve, TrainingStep &step);
  Gradients runStep(size_t begin, size_t end, TrainingStep &step);
  Gradients runOrHalve(size_t begin, size_t end, TrainingStep &step);
  Gradients runHalving(size_t begin, size_t end, int64_t most, TrainingStep &step);
  void setParts(int64_t parts);

  Session &session_;
  std::span<const Instance> instances_;
  TrainerOptions options_;
  Optimizer optimizer_;
  GradientSum sum_;
  std::optional<WeightAverage> average_;
  InstanceCosts costs_;
  int64_t parts_;
  size_t reserved_ = 1; ///< parts whose sum has memory
  int64_t lost_ = 0;    ///< instances of a step that memory did not hold alone
  int64_t next_ = 0;
  int64_t shuffled_ = -1; ///< the epoch that `order_` is of
  std::vector<uint32_t> order_;
  std::vector<Instance> batch_;
  std::vector<float> weights_;
  std::stop_token stop_; ///< of the step that is made
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_TRAINER_H

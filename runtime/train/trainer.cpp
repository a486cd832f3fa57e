#include "runtime/train/trainer.h"

#include "runtime/keys.h"

#include <chrono>
#include <numeric>
#include <utility>

namespace sheaf::rt {

Trainer::Trainer(Session &session, std::span<const Instance> instances,
                 const TrainerOptions &options)
    : session_(session), instances_(instances), options_(options),
      optimizer_(session, options.optimizer) {}

int64_t Trainer::stepsPerEpoch() const {
  auto count = static_cast<int64_t>(instances_.size());
  return (count + options_.batch - 1) / options_.batch;
}

/// Fisher and Yates', from numbers that follow from seed and epoch alone.
void Trainer::shuffle(int64_t epoch) {
  order_.resize(instances_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  uint64_t key = splitKey(splitKey(0, options_.seed), static_cast<uint64_t>(epoch));
  for (uint64_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[splitKey(key, i) % i]);
  shuffled_ = epoch;
}

TrainingStep Trainer::step() {
  TrainingStep result;
  result.number = next_;
  result.epoch = next_ / stepsPerEpoch();
  if (result.epoch != shuffled_)
    shuffle(result.epoch);
  auto begin = static_cast<size_t>(next_ % stepsPerEpoch() * options_.batch);
  size_t end = std::min(order_.size(), begin + static_cast<size_t>(options_.batch));
  batch_.clear();
  for (size_t i = begin; i < end; ++i)
    batch_.push_back(instances_[order_[i]]);

  // Outside of training draws are those of step 0.
  session_.setStep(static_cast<uint64_t>(next_) + 1);
  auto clock = std::chrono::steady_clock::now();
  auto lap = [&] {
    auto before = std::exchange(clock, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(clock - before).count();
  };
  std::span<const Outcome> outcomes = session_.run(batch_);
  result.forwardSeconds = lap();
  double sum = 0;
  uint32_t type = session_.model().entry.resultType;
  for (const Outcome &outcome : outcomes) {
    if (!outcome.ok()) {
      if (result.failed++ == 0)
        result.error = outcome.error->what();
      continue;
    }
    float loss = 0;
    session_.tensor(type, outcome.slots).copyTo(&loss);
    sum += static_cast<double>(loss);
    ++result.instances;
  }
  auto count = static_cast<double>(std::max<int64_t>(result.instances, 1));
  result.loss = sum / count;
  result.rate = options_.rate.at(next_);
  weights_.assign(outcomes.size(), options_.sum ? 1.0F : static_cast<float>(1 / count));
  std::span<const ParamGradient> gradients = session_.backward(weights_);
  result.backwardSeconds = lap();
  StepReport report = optimizer_.step(gradients, result.rate);
  session_.packWeights();
  result.updateSeconds = lap();
  result.norm = report.norm;
  result.skipped = report.skipped;
  ++next_;
  return result;
}

} // namespace sheaf::rt

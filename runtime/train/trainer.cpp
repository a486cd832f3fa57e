#include "runtime/train/trainer.h"

#include "runtime/model/keys.h"
#include "runtime/session/non_finite.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace sheaf::rt {

namespace {

int64_t stepsAnEpoch(const TrainerOptions &options, size_t count) {
  int64_t each = options.batch * options.accumulate, all = static_cast<int64_t>(count);
  return all / each + (all % each != 0); // `each` may be as great as can be
}

} // namespace

/// Fisher and Yates', from numbers that follow from seed and epoch alone.
std::vector<uint32_t> instanceOrder(uint64_t seed, int64_t epoch, size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  uint64_t key = splitKey(splitKey(0, seed), static_cast<uint64_t>(epoch));
  for (uint64_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[splitKey(key, i) % i]);
  return order;
}

StepInstances instancesOf(const TrainerOptions &options, int64_t step, size_t count) {
  int64_t perEpoch = stepsAnEpoch(options, count);
  auto each = static_cast<size_t>(options.batch * options.accumulate);
  size_t begin = static_cast<size_t>(step % perEpoch) * each;
  return {step / perEpoch, begin, std::min(count, begin + each)};
}

Trainer::Trainer(Session &session, std::span<const Instance> instances,
                 const TrainerOptions &options)
    : session_(session), instances_(instances), options_(options),
      optimizer_(session, options.optimizer), sum_(session),
      costs_(session.model().types, session.model().entry.argTypes),
      parts_(std::max<int64_t>(options.parts, 1)) {
  if (options.averageDecay >= 0)
    average_.emplace(session, options.averageDecay);
}

int64_t Trainer::stepsPerEpoch() const { return stepsAnEpoch(options_, instances_.size()); }

/// Forward and back over some of the epoch's instances; each loss counts with the loss scale.
/// Nothing, and no part in the step, when there are several and memory does not hold them together.
std::optional<Trainer::Gradients> Trainer::runAtOnce(size_t begin, size_t end, TrainingStep &step) {
  auto clock = std::chrono::steady_clock::now();
  auto lap = [&] {
    auto before = std::exchange(clock, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(clock - before).count();
  };
  batch_.clear();
  for (size_t i = begin; i < end; ++i)
    batch_.push_back(instances_[order_[i]]);
  std::span<const Outcome> outcomes;
  std::optional<Gradients> gradients;
  std::optional<std::string> shortOf;
  bool several = end - begin > 1;
  while (!gradients && !shortOf) {
    outcomes = session_.run(batch_, stop_);
    step.forwardSeconds += lap();
    if (stop_.stop_requested())
      return Gradients();
    if (several && std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome &outcome) {
          return !outcome.ok() && outcome.error->outOfMemory();
        }))
      return std::nullopt;
    weights_.assign(outcomes.size(), static_cast<float>(step.lossScale));
    try {
      gradients = session_.tryBackward(weights_);
    } catch (const OutOfMemory &error) {
      shortOf = error.what();
    }
    step.backwardSeconds += lap();
  }
  if (several && shortOf)
    return std::nullopt;
  uint32_t type = session_.model().entry.resultType;
  for (const Outcome &outcome : outcomes) {
    if (!outcome.ok() || shortOf) {
      lost_ += shortOf || outcome.error->outOfMemory();
      if (step.failed++ == 0)
        step.error =
            shortOf ? RunError(batch_[0].index, *shortOf, RunError::Cause::Memory) : *outcome.error;
      continue;
    }
    float loss = 0;
    session_.tensor(type, outcome.slots).copyTo(&loss);
    if (!std::isfinite(loss) && !step.nonFinite)
      step.nonFinite = RunError(batch_[static_cast<size_t>(&outcome - outcomes.data())].index,
                                "the loss is " + nonFiniteName(static_cast<double>(loss)));
    step.loss += static_cast<double>(loss);
    ++step.instances;
  }
  return gradients.value_or(Gradients());
}

/// A part that memory does not hold is summed half by half, and these in turn: only an instance
/// that is too large by itself fails.
void Trainer::addInPieces(size_t begin, size_t end, TrainingStep &step) {
  session_.forget();
  sum_.open();
  sum_.reserve(2);
  addHalves(begin, end, step);
  sum_.close();
}

void Trainer::addHalves(size_t begin, size_t end, TrainingStep &step) {
  ++step.halved;
  size_t middle = begin + (end - begin) / 2;
  for (auto [from, to] : {std::pair(begin, middle), std::pair(middle, end)}) {
    if (stop_.stop_requested())
      return;
    if (std::optional<Gradients> gradients = runAtOnce(from, to, step))
      sum_.add(*gradients);
    else
      addHalves(from, to, step);
  }
}

/// Where the parts of these instances begin, and the end of the last: of each mini-batch so many as
/// it is divided into, or as it has instances.
std::vector<size_t> Trainer::cut(size_t begin, size_t end) const {
  std::vector<size_t> places;
  auto batch = static_cast<size_t>(options_.batch);
  for (size_t first = begin; first < end; first += std::min(batch, end - first)) {
    size_t size = std::min(batch, end - first);
    size_t parts = std::min(size, static_cast<size_t>(parts_));
    if (parts == 1) {
      places.push_back(first);
      continue;
    }
    std::vector<uint64_t> costs;
    for (size_t i = first; i < first + size; ++i)
      costs.push_back(costs_.of(instances_[order_[i]].args));
    for (size_t place : cutByCost(costs, parts))
      if (place < size)
        places.push_back(first + place);
  }
  places.push_back(end);
  return places;
}

/// The gradients of a part that is all of the step as they are, else the sum of the parts'. Nothing
/// when memory does not hold one of them, unless it may be halved.
std::optional<Trainer::Gradients> Trainer::runParts(size_t begin, size_t end, bool mayHalve,
                                                    TrainingStep &step) {
  std::vector<size_t> places = cut(begin, end);
  size_t parts = places.size() - 1;
  step.parts = static_cast<int64_t>(parts);
  sum_.clear();
  sum_.keepOnly(std::max(parts, reserved_)); // halves of an earlier step needed more
  if (parts > reserved_) {
    session_.forget(); // what was tried before has the memory
    sum_.reserve(parts);
    reserved_ = parts;
  }
  for (size_t i = 0; i < parts && !stop_.stop_requested(); ++i) {
    std::optional<Gradients> gradients = runAtOnce(places[i], places[i + 1], step);
    if (!gradients && !mayHalve)
      return std::nullopt;
    if (!gradients)
      addInPieces(places[i], places[i + 1], step);
    else if (parts == 1)
      return gradients;
    else
      sum_.add(*gradients);
  }
  return sum_.gradients();
}

/// Divides mini-batches into so many parts, and gives back what sums of more take.
void Trainer::setParts(int64_t parts) {
  parts_ = parts;
  sum_.clear();
  if (static_cast<size_t>(parts) >= reserved_)
    return;
  reserved_ = static_cast<size_t>(parts);
  sum_.keepOnly(reserved_);
}

/// What no number of parts holds whole is halved. Sums of parts take memory, too, so the fewest
/// instances may be lost with fewer parts than that: with `most`, or half of that, or half again.
Trainer::Gradients Trainer::runHalving(size_t begin, size_t end, int64_t most, TrainingStep &step) {
  session_.allowRecompute(true);
  int64_t best = most, fewest = -1;
  auto run = [&](int64_t parts) {
    setParts(parts);
    TrainingStep tried = step;
    lost_ = 0;
    Gradients gradients = *runParts(begin, end, /*mayHalve=*/true, tried);
    if (fewest < 0 || lost_ < fewest) {
      best = parts;
      fewest = lost_;
    }
    return std::pair(tried, gradients);
  };
  for (int64_t parts = most; parts >= 1; parts /= 2)
    try {
      auto [tried, gradients] = run(parts);
      if (fewest == 0 || stop_.stop_requested() || (parts == 1 && best == 1)) {
        step = tried;
        return gradients;
      }
    } catch (const OutOfMemory &) { // for the sums of so many parts
      if (parts == 1 && fewest < 0)
        throw;
    }
  auto [tried, gradients] = run(best);
  step = tried;
  return gradients;
}

/// The parts of a step, halved where need be; fewer if memory does not hold the sums of so many.
Trainer::Gradients Trainer::runOrHalve(size_t begin, size_t end, TrainingStep &step) {
  session_.allowRecompute(true);
  for (;;) {
    TrainingStep tried = step;
    try {
      Gradients gradients = *runParts(begin, end, /*mayHalve=*/true, tried);
      step = tried;
      return gradients;
    } catch (const OutOfMemory &) {
      if (parts_ == 1 || next_ == 0) // nothing is lost yet
        throw;
      step.forwardSeconds = tried.forwardSeconds;
      step.backwardSeconds = tried.backwardSeconds;
      session_.forget(); // what was tried has the memory
      setParts(parts_ / 2);
    }
  }
}

/// How many parts the memory limit asks for is found out in the first step: from then on it belongs
/// to the training. Parts of enough instances for large launches cost least; then rows are dropped
/// and made again, and then come smaller parts, as many as memory holds sums of.
Trainer::Gradients Trainer::runStep(size_t begin, size_t end, TrainingStep &step) {
  constexpr int64_t kEnough = 16;
  optimizer_.reserve();
  if (options_.parts > 0 || next_ > 0) {
    // How many parts there are belongs to the training, whatever one step has to do without.
    int64_t parts = parts_;
    Gradients gradients = runOrHalve(begin, end, step);
    step.halved += std::exchange(parts_, parts) != parts;
    return gradients;
  }
  auto most = std::min<int64_t>(options_.batch, static_cast<int64_t>(end - begin));
  bool recomputes = most < 2 * kEnough;
  for (;;) {
    if (recomputes && parts_ >= most)
      return runHalving(begin, end, most, step);
    TrainingStep tried = step;
    session_.allowRecompute(recomputes);
    std::optional<Gradients> gradients;
    try {
      gradients = runParts(begin, end, /*mayHalve=*/false, tried);
    } catch (const OutOfMemory &) { // for the sums of so many parts
      if (parts_ == 1)
        throw;
      recomputes = true;
      most = parts_ / 2;
      setParts(most);
      continue;
    }
    session_.allowRecompute(true);
    if (gradients) {
      step = tried;
      return *gradients;
    }
    step.forwardSeconds = tried.forwardSeconds;
    step.backwardSeconds = tried.backwardSeconds;
    if (!recomputes && most / (2 * parts_) < kEnough)
      recomputes = true;
    else
      parts_ = std::min(2 * parts_, most);
  }
}

TrainingStep Trainer::step(const std::stop_token &stop) {
  TrainingStep result;
  stop_ = stop;
  result.number = next_;
  auto [epoch, begin, end] = instancesOf(options_, next_, instances_.size());
  result.epoch = epoch;
  result.lossScale = options_.lossScale.scale();
  if (epoch != std::exchange(shuffled_, epoch))
    order_ = instanceOrder(options_.seed, epoch, instances_.size());
  // Outside of training draws are those of step 0.
  session_.setStep(static_cast<uint64_t>(next_) + 1);
  Gradients gradients = runStep(begin, end, result);
  if (stop.stop_requested()) {
    result.stopped = true;
    return result;
  }
  auto start = std::chrono::steady_clock::now();
  auto count = static_cast<double>(std::max<int64_t>(result.instances, 1));
  result.loss /= count;
  result.rate = options_.rate.at(next_);
  StepReport report;
  if (result.instances > 0) { // without a gradient not even momentum moves weights
    report = optimizer_.step(gradients, result.rate,
                             1 / (result.lossScale * (options_.sum ? 1 : count)));
    if (average_ && !report.skipped)
      average_->update();
    options_.lossScale.update(report.skipped);
  }
  result.updateSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.norm = report.norm;
  result.skipped = report.skipped;
  result.changed = report.changed;
  if (report.skipped && options_.findAnomalies) {
    batch_.clear();
    sum_.show();
    for (size_t i = begin; i < end; ++i)
      batch_.push_back(instances_[order_[i]]);
    result.anomaly = findAnomaly(session_, batch_, gradients, static_cast<float>(result.lossScale));
  }
  ++next_;
  return result;
}

} // namespace sheaf::rt

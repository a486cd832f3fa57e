#include "runtime/fit/training.h"

#include "runtime/fit/checkpoint.h"
#include "runtime/fit/pretrained.h"
#include "runtime/io/weights.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf::fit {

std::optional<Measure> DevMeasure::take(const rt::Session &trained,
                                        const std::function<rt::TensorView(size_t)> &get,
                                        const EvaluateOptions &options) {
  copyParams(trained, get, *session_);
  return evaluate(*session_, data_, metric_, options);
}

std::optional<double> DevMeasure::value(const Measure &measure) const {
  if (!measure.instances)
    return std::nullopt;
  return lessIsBetter_ ? -measure.value : measure.value;
}

std::optional<int64_t> stepsOf(const rt::TrainerOptions &options, int64_t instances,
                               int64_t epochs) {
  int64_t each = 0, steps = 0;
  if (__builtin_mul_overflow(options.batch, options.accumulate, &each))
    return std::nullopt;
  int64_t perEpoch = instances / each + (instances % each != 0);
  if (__builtin_mul_overflow(perEpoch, epochs, &steps))
    return std::nullopt;
  return steps;
}

namespace {

/// The learning rate goes to 0 after the last step.
rt::TrainerOptions untilTheEnd(const TrainingOptions &options, size_t instances) {
  if (instances == 0)
    throw UserError("there are no instances to train on");
  std::optional<int64_t> steps =
      stepsOf(options.trainer, static_cast<int64_t>(instances), options.epochs);
  if (!steps)
    throw UserError("a training of more steps than can be counted");
  rt::TrainerOptions trainer = options.trainer;
  trainer.rate.total = *steps;
  return trainer;
}

} // namespace

Training::Training(rt::Session &session, Data data, const io::Vocabularies &vocabularies,
                   const TrainingOptions &options)
    : session_(session), data_(std::move(data)), vocabularies_(vocabularies), options_(options),
      trainer_(session, data_.instances, untilTheEnd(options, data_.instances.size())),
      total_(trainer_.stepsPerEpoch() * options.epochs) {
  trainer_.optimizer().setUpdates(options.updates);
}

rt::TensorView Training::param(size_t index) const {
  const rt::WeightAverage *average = trainer_.average();
  return average ? average->param(index) : session_.param(index);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void Training::begin() {
  if (!directory_)
    return;
  if (directory_->holds() == Directory::Holds::Checkpoints)
    throw UserError(directory_->path() + " holds a training, which can be resumed");
  if (directory_->holds() == Directory::Holds::Weights)
    throw UserError(directory_->path() + " holds the weights of a training");
  directory_->clear();
  directory_->saveVocabularies(vocabularies_);
}

bool Training::restore(const std::function<void(const std::string &)> &onDamaged) {
  std::optional<rt::Course> before =
      directory_ ? loadCheckpoint(directory_->path(), session_, trainer_, onDamaged) : std::nullopt;
  if (before)
    course_ = *before;
  return before.has_value();
}

std::optional<Directory::Rebuilt> Training::restoreFiles() {
  if (!directory_)
    return std::nullopt;
  directory_->saveVocabularies(vocabularies_);
  std::optional<Directory::Rebuilt> rebuilt;
  if (course_.best)
    rebuilt = directory_->rebuildBest(session_.model(), vocabularies_, *course_.best);
  if (course_.steps && !directory_->has("last.safetensors"))
    keepWeights("last");
  return rebuilt;
}

void Training::keepConfig(TrainConfig config) {
  config_ = std::move(config);
  // Options with which no step can be made are not those to go on with.
  configIsNew_ = course_.steps > 0;
  if (!configIsNew_)
    saveConfig();
}

void Training::saveConfig() const {
  if (directory_ && config_)
    config_->save(directory_->file("config.json"));
}

void Training::keepWeights(const std::string &name) {
  if (directory_)
    directory_->saveWeights(name, session_.model(), vocabularies_,
                            [&](size_t index) { return param(index); });
}

void Training::saveWeights(const std::string &path) const {
  const rt::Model &model = session_.model();
  io::saveWeights(
      path, model, [&](size_t index) { return param(index); },
      io::modelMetadata(model, vocabularies_));
}

void Training::checkpoint() {
  // While it goes on there is one that it can go on from.
  if (directory_)
    saveCheckpoint(directory_->path(), session_, trainer_, course_,
                   io::modelMetadata(session_.model(), vocabularies_),
                   std::max<int64_t>(options_.keep, 1));
}

void Training::finish() {
  if (std::exchange(configIsNew_, false))
    saveConfig();
  if (!directory_ || options_.keep != 0)
    return;
  if (config_ && !config_->ended) {
    config_->ended = true;
    saveConfig();
  }
  keepCheckpoints(directory_->path(), 0);
}

bool Training::restoreBest() {
  for (size_t i = 0; i < best_.size(); ++i)
    session_.setParam(i, best_[i]);
  if (!best_.empty())
    return true;
  if (!course_.best || !directory_ || !directory_->has("best.safetensors"))
    return false;
  setWeights(session_, io::WeightFile::open(directory_->file("best.safetensors")), vocabularies_,
             {});
  return true;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

rt::TrainingStep Training::step(const std::stop_token &stop) {
  rt::FrozenParams frozen(session_, options_.frozen);
  rt::TrainingStep step = trainer_.step(stop);
  if (step.stopped)
    return step;
  course_.add(step);
  if (configIsNew_ && step.instances > 0) {
    saveConfig();
    configIsNew_ = false;
  }
  // How many parts the first step was found to need is part of the training from then on.
  if (step.number == 0 && config_ && config_->parts == "auto" && trainer_.parts() > 1) {
    config_->parts = std::to_string(trainer_.parts());
    saveConfig();
  }
  instances_ += step.instances;
  if (step.failed && failed_ == 0)
    firstFailure_ = data_.failure(*step.error);
  if (step.nonFinite && nonFinite_.empty())
    nonFinite_ = data_.failure(*step.nonFinite);
  failed_ += step.failed;
  halved_ += step.halved > 0;
  course_.unmeasured = course_.steps % stepsPerEpoch() == 0;
  return step;
}

bool Training::checkpointIsDue() const {
  return options_.checkpointEvery && course_.steps % options_.checkpointEvery == 0 &&
         !epochIsOver();
}

std::optional<EpochEnd> Training::measureEpoch(const std::stop_token &stop,
                                               const OnProgress &progress) {
  EpochEnd end;
  end.epoch = course_.steps / stepsPerEpoch() - 1;
  end.loss = course_.loss();
  end.instances = instances_;
  end.failed = failed_;
  end.skipped = course_.skipped;
  end.halved = halved_;
  // A dynamic scale comes down step by step.
  end.nothingChanged = course_.epochChanges == 0 && !trainer_.lossScale().isDynamic();
  end.diverges = course_.diverges();
  end.nonFinite = nonFinite_;
  // A loss is better when it is less.
  if (end.loss)
    end.value = -*end.loss;
  for (DevMeasure &measure : measures_) {
    EvaluateOptions options;
    options.batch = options_.trainer.batch;
    options.stop = stop;
    if (progress)
      options.progress = [&](int64_t instances) { progress(measure, instances); };
    std::optional<Measure> taken =
        measure.take(session_, [&](size_t index) { return param(index); }, options);
    if (!taken)
      return std::nullopt;
    end.value = measure.value(*taken);
    end.measures.push_back(std::move(*taken));
  }
  return end;
}

void Training::keepEpoch(EpochEnd &end) {
  // What follows from no loss at all is nothing to keep: the last checkpoint stays the newest.
  if (!end.loss)
    throw UserError(fmt::format("epoch {}: every instance failed; the first: {}", end.epoch + 1,
                                firstFailure_));
  rt::Course before = course_;
  try {
    // Weights that no step has changed are nobody's best.
    end.isBest = course_.endEpoch(course_.changes ? end.value : std::nullopt);
    if (end.isBest)
      keepBest();
    keepWeights("last");
    checkpoint();
  } catch (...) {
    course_ = before; // it is yet to be kept
    throw;
  }
  instances_ = failed_ = halved_ = 0;
  nonFinite_.clear();
}

void Training::keepBest() {
  keepWeights("best");
  if (!options_.keepBest)
    return;
  std::vector<std::vector<uint8_t>> best(session_.model().params.size());
  for (size_t i = 0; i < best.size(); ++i)
    best[i] = param(i).rowMajor();
  best_ = std::move(best);
}

Training::End Training::ended() const {
  if (course_.unmeasured || course_.steps % stepsPerEpoch() != 0)
    return End::None;
  if (course_.steps >= total_)
    return End::Epochs;
  return options_.patience && course_.epochsSinceBest >= options_.patience ? End::Patience
                                                                           : End::None;
}

Training::Event Training::next(const std::stop_token &stop) {
  Event event;
  if (epochIsOver()) {
    if (std::optional<EpochEnd> end = measureEpoch(stop)) {
      keepEpoch(*end);
      event.kind = Event::Epoch;
      event.epoch = std::move(*end);
      return event;
    }
    event.kind = Event::Stopped;
  } else if (ended() != End::None) {
    finish();
    return event;
  } else {
    event.step = step(stop);
    event.kind = event.step.stopped ? Event::Stopped : Event::Step;
  }
  if (event.kind == Event::Stopped || checkpointIsDue())
    checkpoint();
  return event;
}

} // namespace sheaf::fit

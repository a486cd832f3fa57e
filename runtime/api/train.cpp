// Trainings from their first step to their end.
#include "runtime/api/failure.h"
#include "runtime/api/measure.h"
#include "runtime/api/optimizer.h"
#include "runtime/api/options.h"
#include "runtime/api/train_config.h"
#include "runtime/api/weights.h"

#include "runtime/fit/checkpoint.h"
#include "runtime/io/weights_path.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sheaf;
using namespace sheaf::api;

/// All that a training refers to before it, in the order of being destroyed.
struct sheaf_training {
  /// Other data, and the session of the function that is taken over them.
  struct Dev {
    std::shared_ptr<const ValueStore> data;
    std::shared_ptr<RunningModel> running;
  };
  bool describesMeasures = false; ///< in config.json

  std::shared_ptr<Running> running;
  std::shared_ptr<RunningModel> origin;
  std::shared_ptr<const ValueStore> data;
  std::vector<Dev> dev;
  std::vector<std::shared_ptr<const TakenMeasure>> measures; ///< of the last epoch
  std::string error, anomaly;                                ///< of the last event
  std::optional<FailedInstance> failed;                      ///< that `error` tells of
  std::unique_ptr<fit::Training> training;
};

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

rt::LossScale lossScaleOf(double asked, const rt::Model &model) {
  if (asked < 0 || (asked == 0 && model.f16))
    return rt::LossScale::dynamic();
  if (!std::isfinite(static_cast<float>(asked)))
    throw Invalid("options.loss_scale is not finite");
  return rt::LossScale(asked == 0 ? 1 : asked);
}

std::vector<size_t> frozenWeights(const sheaf_training_options &asked, const LoadedModel &model) {
  std::vector<size_t> frozen;
  for (const char *pattern : array(asked.frozen, asked.frozen_count, "frozen")) {
    std::vector<size_t> named = model.weightsNamed(&given(pattern, "a pattern of options.frozen"));
    frozen.insert(frozen.end(), named.begin(), named.end());
  }
  auto isTrained = [&](size_t weight) {
    return model.model().params[weight].dtype == rt::DType::F32 &&
           std::find(frozen.begin(), frozen.end(), weight) == frozen.end();
  };
  if (!frozen.empty() && std::none_of(model.weights().begin(), model.weights().end(), isTrained))
    throw Invalid("options.frozen leaves no weight that could be trained");
  return frozen;
}

fit::TrainingOptions optionsOf(const sheaf_training_options &asked, const LoadedModel &model) {
  fit::TrainingOptions options;
  rt::TrainerOptions &trainer = options.trainer;
  options.epochs = countOf(asked.epochs, options.epochs);
  options.patience = countOf(asked.patience);
  options.checkpointEvery = countOf(asked.checkpoint_every);
  options.keep = asked.keep ? std::max<int64_t>(asked.keep, 0) : options.keep;
  options.keepBest = asked.keep_best != 0;
  trainer.batch = countOf(asked.batch, trainer.batch);
  trainer.accumulate = countOf(asked.accumulate, trainer.accumulate);
  trainer.parts = countOf(asked.parts, trainer.parts);
  trainer.seed = asked.seed;
  trainer.sum = asked.sum != 0;
  trainer.findAnomalies = asked.find_anomalies != 0;
  trainer.rate = rateOf(asked.learning_rate, asked.schedule, asked.warmup);
  trainer.lossScale = lossScaleOf(asked.loss_scale, model.model());
  double average = fraction(asked.average, 0, "average");
  trainer.averageDecay = average > 0 ? average : -1;
  sheaf_optimizer_options optimizer = known(asked.optimizer, "sheaf_optimizer_options");
  trainer.optimizer = optimizerOptions(optimizer);
  options.updates = paramUpdates(optimizer, model);
  options.frozen = frozenWeights(asked, model);
  return options;
}

void requireLoss(const rt::Model &model) {
  const rt::TypeDesc &type = model.types.types.at(model.entry.resultType);
  if (!model.training)
    throw Invalid("the model was not compiled for training");
  if (type.kind != rt::TypeKind::Tensor || type.dtype != rt::DType::F32 || !type.shape.empty() ||
      model.entry.emits)
    throw Invalid("'" + model.entry.name + "' is no loss: its result is not f32 without axes");
}

/// Where the files of a training stand, and how far it is.
void openDirectory(sheaf_training &of, const sheaf_training_options &asked,
                   const fit::TrainingOptions &options) {
  fit::Training &training = *of.training;
  const std::string directory = asked.directory;
  const LoadedModel &model = *of.origin->model;
  training.keepIn(directory);
  auto keepConfig = [&] {
    of.describesMeasures = true;
    training.keepConfig(configOf(model, *of.data, of.running->options, options));
  };
  if (!asked.resume) {
    training.begin();
    return keepConfig();
  }
  bool found = training.restore();
  if (!found && training.directory()->holds() == fit::Directory::Holds::Weights)
    throw UserError(directory +
                    " holds the weights of a training, and no checkpoint to go on from");
  training.restoreFiles();
  std::string path = training.directory()->file("config.json");
  if (!io::isFile(path))
    return keepConfig();
  fit::TrainConfig config = resumedConfig(path, options, model.model(), training.course().steps);
  config.ownWeights |= !found;
  // One that was given up before it had all measures has none.
  of.describesMeasures = config.dev.empty() && config.metric.empty();
  training.keepConfig(std::move(config));
}

/// The measures have changed.
void keepMeasures(sheaf_training &of) {
  if (!of.describesMeasures || !of.training->config())
    return;
  std::vector<GivenMeasure> given;
  for (size_t i = 0; i < of.dev.size(); ++i)
    given.push_back({of.training->measures()[i], *of.dev[i].running->model, *of.dev[i].data});
  fit::TrainConfig config = *of.training->config();
  describeMeasures(given, config);
  of.training->keepConfig(std::move(config));
}

/// Calls `work` while nobody else uses the session.
template <typename Work> void using_(sheaf_training *training, Work work) {
  std::lock_guard lock(given(training, "training").running->mutex);
  fromArguments([&] { work(*training); });
}

void tellStep(const sheaf_training &training, const rt::TrainingStep &step,
              sheaf_training_event &told) {
  told.epoch = static_cast<uint64_t>(step.epoch) + 1;
  told.loss = step.instances ? step.loss : kNone;
  told.instances = static_cast<uint64_t>(step.instances);
  told.failed = static_cast<uint64_t>(step.failed);
  told.halved = static_cast<uint64_t>(step.halved);
  told.parts = static_cast<uint64_t>(step.parts);
  told.norm = step.norm;
  told.rate = step.rate;
  told.loss_scale = step.lossScale;
  told.forward_seconds = step.forwardSeconds;
  told.backward_seconds = step.backwardSeconds;
  told.update_seconds = step.updateSeconds;
  told.skipped = step.skipped;
  told.changed = step.changed;
  told.error = step.failed ? training.error.c_str() : nullptr;
  told.anomaly = step.anomaly ? training.anomaly.c_str() : nullptr;
}

void tellEpoch(const fit::EpochEnd &end, sheaf_training_event &told) {
  told.epoch = static_cast<uint64_t>(end.epoch) + 1;
  told.loss = end.loss.value_or(kNone);
  told.instances = static_cast<uint64_t>(end.instances);
  told.failed = static_cast<uint64_t>(end.failed);
  told.value = end.value.value_or(kNone);
  told.best = end.isBest;
  told.nothing_changed = end.nothingChanged;
  told.diverges = end.diverges;
  told.skipped_steps = static_cast<uint64_t>(end.skipped);
  told.halved = static_cast<uint64_t>(end.halved);
}

sheaf_training_event tellEvent(sheaf_training &of, fit::Training::Event event) {
  using Event = fit::Training::Event;
  sheaf_training_event told{};
  told.loss = told.value = kNone;
  of.failed.reset();
  if (event.kind == Event::Step) {
    const rt::TrainingStep &step = event.step;
    of.error.clear();
    if (step.failed) {
      fit::Data data = dataOf(*of.data);
      of.error = data.failure(*step.error);
      of.failed.emplace(*step.error, data.nameOf ? data.nameOf(step.error->instance()) : "");
    }
    of.anomaly = step.anomaly ? step.anomaly->message() : "";
    tellStep(of, step, told);
    told.kind = SHEAF_TRAINING_STEP;
  } else if (event.kind == Event::Epoch) {
    of.measures.clear();
    for (fit::Measure &measure : event.epoch.measures)
      of.measures.push_back(std::make_shared<TakenMeasure>(std::move(measure)));
    tellEpoch(event.epoch, told);
    told.kind = SHEAF_TRAINING_EPOCH;
  } else {
    told.kind = event.kind == Event::Ended ? SHEAF_TRAINING_ENDED : SHEAF_TRAINING_STOPPED;
    told.epoch = static_cast<uint64_t>(of.training->course().steps / of.training->stepsPerEpoch());
  }
  told.step = static_cast<uint64_t>(of.training->course().steps);
  told.steps = static_cast<uint64_t>(of.training->totalSteps());
  return told;
}

} // namespace

sheaf_status sheaf_training_create(sheaf_session *session, sheaf_model *model,
                                   const sheaf_values *data, const sheaf_training_options *options,
                                   sheaf_training **training) {
  return guarded([&] {
    auto made = std::make_unique<sheaf_training>();
    made->running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(training, "training");
    made->data = valuesOf(data, of);
    sheaf_training_options asked = known(options, "sheaf_training_options");
    requireLoss(of->model());
    fit::TrainingOptions chosen = optionsOf(asked, *of);
    if (asked.resume && !asked.directory)
      throw Invalid("options.resume is for trainings with a directory");
    std::lock_guard lock(made->running->mutex);
    made->origin = runningFor(*made->running, of).shared_from_this();
    ++made->origin->runs; // a checkpoint gives it other weights
    fromArguments([&] {
      made->training = std::make_unique<fit::Training>(*made->origin->session, dataOf(*made->data),
                                                       of->vocabularies(), chosen);
      if (asked.directory)
        openDirectory(*made, asked, chosen);
    });
    *training = made.release();
  });
}

void sheaf_training_release(sheaf_training *training) { delete training; }

sheaf_status sheaf_training_add_measure(sheaf_training *training, sheaf_model *model,
                                        const sheaf_values *data,
                                        const sheaf_measure_options *options) {
  return guarded([&] {
    using_(training, [&](sheaf_training &of) {
      const std::shared_ptr<const LoadedModel> &measured = given(model, "model").model;
      sheaf_measure_options asked = known(options, "sheaf_measure_options");
      fit::Metric metric = metricOf(asked, *measured);
      sheaf_training::Dev dev{valuesOf(data, measured), nullptr};
      if (measured == of.origin->model)
        throw Invalid("a measure is of a model of its own, compiled without training");
      requireWeights(*of.origin->model, *measured);
      dev.running = runningFor(*of.running, measured).shared_from_this();
      of.dev.push_back(std::move(dev));
      of.training->addMeasure({metric, *of.dev.back().running->session, dataOf(*of.dev.back().data),
                               asked.less_is_better != 0});
      keepMeasures(of);
    });
  });
}

sheaf_status sheaf_training_next(sheaf_training *training, sheaf_stop *stop,
                                 sheaf_training_event *event) {
  return guarded([&] {
    sheaf_training_event told{};
    tell(told, given(event, "event"), "training_event"); // what is wrong with it comes first
    std::stop_token token = tokenOf(stop);
    using_(training, [&](sheaf_training &of) {
      ++of.origin->runs;
      for (const sheaf_training::Dev &dev : of.dev) {
        ++dev.running->runs;
        dev.running->session->setStep(0); // as for whatever is run that trains nothing
      }
      told = tellEvent(of, of.training->next(token));
    });
    tell(told, *event, "training_event");
  });
}

sheaf_status sheaf_training_failure(const sheaf_training *training, sheaf_failure *failure) {
  return guarded([&] {
    const sheaf_training &of = given(training, "training");
    std::lock_guard lock(of.running->mutex);
    tell(failureOf(of.failed), given(failure, "failure"), "failure");
  });
}

size_t sheaf_training_measure_count(const sheaf_training *training) {
  return training ? training->measures.size() : 0;
}

sheaf_status sheaf_training_measure(const sheaf_training *training, size_t number,
                                    sheaf_measure **measure) {
  return guarded([&] {
    const sheaf_training &of = given(training, "training");
    given(measure, "measure");
    std::lock_guard lock(of.running->mutex);
    if (number >= of.measures.size())
      throw Invalid("there is no measure " + std::to_string(number) + " but " +
                    std::to_string(of.measures.size()));
    *measure = new sheaf_measure{of.measures[number]};
  });
}

sheaf_status sheaf_training_checkpoint(sheaf_training *training) {
  return guarded([&] {
    using_(training, [&](sheaf_training &of) {
      if (!of.training->directory())
        throw Invalid("the training has no directory");
      of.training->checkpoint();
    });
  });
}

sheaf_status sheaf_training_save(sheaf_training *training, const char *path) {
  return guarded([&] {
    given(path, "path");
    using_(training, [&](sheaf_training &of) { of.training->saveWeights(path); });
  });
}

sheaf_status sheaf_training_restore_best(sheaf_training *training, int *found) {
  return guarded([&] {
    given(found, "found");
    using_(training, [&](sheaf_training &of) {
      ++of.origin->runs;
      *found = of.training->restoreBest();
    });
  });
}

//===- training.cpp - The course of sheaf train ---------------------------===//
#include "tools/sheaf/training.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/train_report.h"
#include "tools/sheaf/weights.h"

#include "compiler/measure/KernelTable.h"
#include "compiler/verify/GradCheck.h"
#include "runtime/fit/checkpoint.h"
#include "runtime/io/text.h"
#include "runtime/io/weights.h"
#include "runtime/model/error.h"
#include "runtime/session/non_finite.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>

namespace sheaf::tool {

using driver::Json;

namespace {

/// The files that a training depends on, by option.
std::vector<std::pair<std::string, std::string>> filesOf(const TrainOptions &arguments) {
  std::vector<std::pair<std::string, std::string>> files = {
      {"model", arguments.model.model},
      {"--data", arguments.data.data},
      {"--dev", arguments.dev},
      {"--weights", arguments.weights.weights}};
  for (const std::string &file : arguments.weights.initFrom)
    files.emplace_back("--init-from " + file, io::weightsFile(file));
  return files;
}

/// What they hold.
std::map<std::string, std::string> hashesOf(const TrainOptions &arguments, InputFiles &files) {
  std::map<std::string, std::string> hashes;
  for (const auto &[option, path] : filesOf(arguments))
    if (!path.empty() && path != "-") {
      if (option == "--data" || option == "--dev") {
        hashes[option] = files.hash(path);
        continue;
      }
      std::string whole;
      if (option == "model") // what a model uses is part of it
        for (const SourceText &text : files.model(arguments.model).files())
          whole += text.text();
      else
        whole = io::readSource(path).text;
      hashes[option] = io::contentHash(whole);
    }
  return hashes;
}

} // namespace

void Training::compareHashes() {
  // What it began with is not read again.
  std::string weights = std::exchange(arguments_.weights.weights, "");
  std::vector<std::string> initFrom = std::exchange(arguments_.weights.initFrom, {});
  std::map<std::string, std::string> hashes = hashesOf(arguments_, files_);
  for (const auto &[option, path] : filesOf(arguments_))
    if (!path.empty() && !arguments_.hashes.contains(option))
      arguments_.hashes[option] = hashes[option]; // of what nobody told before
    else if (!path.empty() && hashes[option] != arguments_.hashes[option])
      note(path + " has changed since this training began: it does not go on as it would have");
  arguments_.weights.weights = weights;
  arguments_.weights.initFrom = initFrom;
}

void Training::makeTraining() {
  const rt::Model &model = data_.model();
  fit::TrainingOptions options;
  options.trainer = arguments_.trainer(model, static_cast<int64_t>(data_.instances.size()));
  options.epochs = epochs_;
  options.patience = patience_;
  options.checkpointEvery = checkpointEvery_;
  options.keep = keep_;
  for (const rt::ParamDesc &param : model.params)
    if (!param.synthetic && param.dtype != rt::DType::F32)
      note("the elements of '" + param.name + "' are not f32: it stays as it is");
  options.frozen = frozenParams(model, arguments_.update.frozen);
  options.updates = arguments_.update.paramUpdates(model);
  training_.emplace(*session_, dataOf(data_), data_.vocabularies, options);
}

void Training::addMeasure(const fit::Metric &metric, bool isLoss) {
  ModelOptions model = arguments_.model;
  model.entry = metric.function;
  if (!isLoss) {
    model.entryOption = "--metric";
    model.entryGiven = nullptr;
  }
  model.training = model.dropout = false;
  model.vocabs.clear();
  for (const auto &[name, vocabulary] : data_.vocabularies.all())
    if (vocabulary.hasWords())
      model.vocabs.push_back(
          (name.empty() ? "" : name + "=") +
          io::vocabularyBeside(training_->directory()->file("last.safetensors"), name));
  DataOptions data = arguments_.data;
  data.data = arguments_.dev;
  auto dev = std::make_unique<DevRun>();
  dev->run = loadRun(model, data, {}, INT64_MAX, &notes_, &files_);
  for (const auto &[name, vocabulary] : data_.vocabularies.all())
    if (const io::Vocabulary *own = dev->run.vocabularies.find(name);
        own && own->hash() != vocabulary.hash())
      throw UserError(fmt::format("{}: it has words for {}, but {} has numbers: nothing tells "
                                  "which word is which number",
                                  arguments_.dev, io::tokenTypeName(name), arguments_.data.data));
  fit::requireMeasure(dev->run.model(), metric);
  rt::SessionOptions options = options_;
  options.keepBytes.reset();
  dev->session = std::make_unique<rt::Session>(dev->run.model(), options);
  training_->addMeasure({metric, *dev->session, dataOf(dev->run), isLoss});
  dev_.push_back(std::move(dev));
}

void Training::makeMeasures() {
  if (arguments_.dev.empty())
    return notes_.noteIgnored();
  addMeasure({arguments_.model.entry}, /*isLoss=*/true);
  // The first one decides, so it comes last.
  for (auto it = arguments_.metrics.rbegin(); it != arguments_.metrics.rend(); ++it)
    addMeasure(parseMetric(*it), /*isLoss=*/false);
  notes_.noteIgnored();
}

namespace {

/// ", dev NAME 0.5"
std::string measuredText(const fit::DevMeasure &dev, const fit::Measure &measure) {
  const fit::Metric &metric = dev.metric();
  std::string score;
  if (measure.confusion)
    score = " " + (metric.score.empty() ? "f1" : metric.score);
  std::string text = fmt::format(", dev {}{} {}", metric.function, score, valueText(measure, 4));
  if (measure.confusion && metric.score != "accuracy" && measure.instances)
    text += fmt::format(" accuracy {:.4f}", measure.confusion->accuracy());
  if (measure.failed)
    text += fmt::format(" ({} failed, the first: {})", measure.failed, measure.error);
  return text;
}

/// Adds members to a line of the log.
void logMeasure(const LoadedRun &run, const std::string &name, const fit::Measure &measure,
                Json &line) {
  std::string key = "dev_" + name;
  line[key] = valueJson(measure);
  if (!measure.confusion)
    return;
  rt::ClassScores scores = measure.scores();
  line[key + "_accuracy"] = measure.confusion->accuracy();
  line[key + "_precision"] = scores.precision;
  line[key + "_recall"] = scores.recall;
  line[key + "_f1"] = scores.f1;
  Json confusion = Json::array();
  for (const auto &[which, times] : measure.confusion->counts())
    confusion.push_back({fit::className(run.model(), run.vocabularies, which.first),
                         fit::className(run.model(), run.vocabularies, which.second), times});
  line[key + "_confusion"] = confusion;
}

std::string lossText(std::optional<double> loss) {
  return !loss                   ? "none"
         : !std::isfinite(*loss) ? rt::nonFiniteName(*loss)
                                 : fmt::format("{:.4f}", *loss);
}

} // namespace

void Training::logStep(const rt::TrainingStep &step) {
  double seconds = secondsSince(begin_);
  Json line;
  line["step"] = step.number + 1;
  line["epoch"] = step.epoch + 1;
  line["loss"] = step.instances ? Json(step.loss) : Json(nullptr);
  line["lr"] = step.rate;
  line["norm"] = step.norm;
  if (training_->trainer().lossScale().isDynamic())
    line["loss_scale"] = step.lossScale;
  line["forward_ms"] = 1e3 * step.forwardSeconds;
  line["backward_ms"] = 1e3 * step.backwardSeconds;
  line["update_ms"] = 1e3 * step.updateSeconds;
  line["instances_per_second"] =
      static_cast<double>(training_->instances()) / std::max(seconds, 1e-9);
  if (step.failed)
    line["failed"] = step.failed;
  if (step.halved)
    line["halved"] = step.halved;
  if (step.parts > 1)
    line["parts"] = step.parts;
  if (step.skipped)
    line["skipped"] = true;
  log_->write("step", line);
}

void Training::probePeak() {
  peak_ = std::max(peak_, probe_->measure() * static_cast<double>(options_.threads));
}

void Training::beginEpoch() {
  flop_ = session_->counters().flop;
  peak_ = 0;
  probePeak();
  begin_ = std::chrono::steady_clock::now();
}

/// What stands after the bar: how the epoch goes, and when the training will end.
std::string Training::howItGoes() const {
  double seconds = secondsSince(begin_);
  int64_t done = course().steps, total = training_->totalSteps();
  auto left = static_cast<int64_t>((seconds_ + seconds) * static_cast<double>(total - done) /
                                   static_cast<double>(done - before_));
  return fmt::format(", loss {}, {:.0f} instances/s, {}:{:02}:{:02} to go",
                     lossText(course().loss()),
                     static_cast<double>(training_->instances()) / seconds, left / 3600,
                     left / 60 % 60, left % 60);
}

/// What went wrong without an instance having failed.
void Training::warnAbout(const fit::EpochEnd &end) {
  auto warn = [&](const std::string &text) {
    fmt::print(stderr, "warning: epoch {}: {}\n", end.epoch + 1, text);
    failedAny_ = true;
  };
  if (end.nothingChanged)
    warn(end.skipped == training_->stepsPerEpoch()
             ? "no step changed anything: the gradients of each hold NaN or infinity "
               "(--detect-anomaly says where they come from)"
             : "no step changed anything: the gradients or the learning rate are 0");
  if (end.diverges)
    warn(std::isfinite(*end.loss)
             ? fmt::format("the training diverges: the loss is {:.4g}, in the first step it was "
                           "{:.4g}; a smaller --lr or --clip may help",
                           *end.loss, *course().firstLoss)
             : fmt::format("the training diverges: the loss is {}{}", rt::nonFiniteName(*end.loss),
                           end.nonFinite.empty() ? "" : "; the first: " + end.nonFinite));
}

bool Training::endEpoch() {
  bar_.reset(); // measures have their own
  const fit::DevMeasure *measured = nullptr;
  double seconds = std::max(secondsSince(begin_), 1e-9);
  double gflops = (session_->counters().flop - flop_) * 1e-9 / seconds;
  auto threads = static_cast<double>(options_.threads);
  probePeak();
  peak_ = probe_->measureUpTo(gflops / threads, peak_ / threads) * threads;
  bool peakTooLow = peak_ < gflops;
  std::optional<fit::EpochEnd> end = training_->measureEpoch(
      stop_.token(), [&](const fit::DevMeasure &measure, int64_t instances) {
        if (std::exchange(measured, &measure) != &measure) {
          bar_.reset(); // one is shown at a time
          bar_ = std::make_unique<Progress>(measure.metric().function,
                                            static_cast<int64_t>(measure.data().instances.size()));
        }
        bar_->step(instances);
      });
  bar_.reset();
  if (!end)
    return false;
  Json line;
  line["step"] = course().steps;
  line["epoch"] = end->epoch + 1;
  line["train_loss"] = end->loss ? Json(*end->loss) : Json(nullptr);
  std::string text = fmt::format("epoch {}: loss {}", end->epoch + 1, lossText(end->loss));
  for (size_t i = 0; i < end->measures.size(); ++i) {
    const fit::DevMeasure &dev = training_->measures()[i];
    logMeasure(dev_[i]->run, dev.metric().function, end->measures[i], line);
    text += measuredText(dev, end->measures[i]);
    failedAny_ |= end->measures[i].failed > 0;
  }
  seconds_ += seconds;
  line["seconds"] = seconds;
  line["gflops"] = gflops;
  line["share_of_peak"] = gflops / peak_;
  if (peakTooLow)
    line["peak_too_low"] = true;
  rt::MemoryUse memory = session_->memory();
  auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  line["rows_mb"] = megabytes(memory.rows.peak);
  line["records_mb"] = megabytes(memory.records.peak + memory.heap.peak + memory.stack.peak);
  line["scratch_mb"] = megabytes(memory.scratch.peak);
  line["training_mb"] = megabytes(memory.training.peak);
  if (uint64_t bytes = session_->counters().droppedBytes) {
    line["dropped_mb"] = megabytes(bytes);
    line["recomputed"] = session_->counters().recomputed;
  }
  failedAny_ |= end->failed > 0;
  if (end->failed)
    line["failed"] = end->failed;
  if (end->halved)
    line["halved"] = end->halved;
  if (end->skipped)
    line["skipped"] = end->skipped;
  text += fmt::format(", {:.0f} instances/s, {:.0f} % of the peak{}{}{}{}\n",
                      static_cast<double>(end->instances) / seconds, 100 * gflops / peak_,
                      peakTooLow ? driver::kPeakTooLow : "",
                      end->failed ? fmt::format(", {} instances failed", end->failed) : "",
                      end->skipped ? fmt::format(", {} steps skipped", end->skipped) : "",
                      end->halved ? fmt::format(", {} steps halved", end->halved) : "");
  std::string logged = log_->write("epoch", line);
  // What a line tells is there before the checkpoint that it may be taken up after.
  training_->keepEpoch(*end);
  fmt::print("{}", arguments_.format.json() ? logged : text);
  std::fflush(stdout);
  warnAbout(*end);
  return true;
}

void Training::tell(const rt::TrainingStep &step, bool isFirstFailure) {
  if (isFirstFailure)
    note(training_->firstFailure());
  if (step.halved && !std::exchange(toldHalved_, true)) {
    const std::string &limit = arguments_.limits.memoryLimitText;
    note(fmt::format("step {}: {} does not hold {}, which is halved: the last bits are not those "
                     "of the whole; other --parts, more of them mostly, may avoid that",
                     step.number + 1, limit.empty() ? "memory" : "--memory-limit " + limit,
                     step.parts > 1 ? "one of its parts" : "its mini-batch"));
  }
  if (step.number == 0)
    tellParts();
  if (step.anomaly)
    note(fmt::format("step {}: {}", step.number + 1, step.anomaly->message()));
}

/// How many parts the first step was found to need.
void Training::tellParts() {
  const std::string &parts = training_->config()->parts;
  if (arguments_.update.parts != "auto" || parts == "auto")
    return;
  const std::string &limit = arguments_.limits.memoryLimitText;
  note(fmt::format("{} does not hold a mini-batch: each goes in {} parts from the first step on "
                   "(--parts {})",
                   limit.empty() ? "memory" : "--memory-limit " + limit, parts, parts));
}

/// False when a signal came.
bool Training::runEpoch(int64_t epoch) {
  int64_t perEpoch = training_->stepsPerEpoch();
  bar_ = std::make_unique<Progress>(fmt::format("epoch {} of {}", epoch + 1, epochs_), perEpoch);
  bar_->step(course().steps % perEpoch);
  beginEpoch();
  while (!training_->epochIsOver()) {
    int64_t failedBefore = training_->failed();
    rt::TrainingStep step = training_->step(); // a signal lets it end
    times_.add(step);
    tell(step, step.failed && failedBefore == 0);
    bar_->step(1, [&] { return howItGoes(); });
    if (course().steps % logEvery_ == 0)
      logStep(step);
    if (training_->checkpointIsDue())
      training_->checkpoint();
    if (stop_.received() && !training_->epochIsOver())
      return false;
  }
  return !stop_.received() && endEpoch();
}

std::string Training::whyEnded() const {
  const rt::Course &course = this->course();
  int64_t epochs = course.steps / training_->stepsPerEpoch();
  if (course.steps >= training_->totalSteps())
    return fmt::format("after {} of --epochs {}", io::plural(epochs, "epoch"), epochs_);
  return fmt::format("after epoch {}: the last {} no better than one before (--patience {})",
                     epochs,
                     course.epochsSinceBest == 1 ? std::string("was")
                                                 : fmt::format("{} were", course.epochsSinceBest),
                     patience_);
}

/// Where time and memory went, and the page that was asked for.
void Training::report() {
  if (times_.steps) {
    io::AtomicFile file(training_->directory()->file("profile.json"));
    file.write(driver::jsonText(driver::trainProfile(*data_.compiled, *session_, times_)));
    file.commit();
  }
  if (arguments_.html.empty())
    return;
  std::vector<std::string> runs = {arguments_.output};
  runs.insert(runs.end(), arguments_.compared.begin(), arguments_.compared.end());
  writeTrainReport(arguments_.html, runs);
}

/// After a signal.
int Training::stopped() {
  bar_.reset();
  training_->checkpoint();
  report();
  int signal = stop_.received();
  note(fmt::format("{}: stopped after step {} of {}; {} holds it, and 'sheaf train --resume {}' "
                   "goes on",
                   signal == SIGINT    ? "interrupted"
                   : signal == SIGTERM ? "SIGTERM"
                                       : "SIGHUP",
                   course().steps, training_->totalSteps(),
                   fit::checkpointPath(arguments_.output, course().steps), arguments_.output));
  return 128 + signal;
}

int Training::finish() {
  report();
  const std::string best = training_->directory()->file("best.safetensors");
  training_->finish();
  if (course().changes == 0) {
    fmt::print(stderr, "error: no step changed anything: there is no {}\n", best);
    return kFailed;
  }
  if (!course().best)
    note(fmt::format("no epoch had a finite {}: there is no {}",
                     dev_.empty() ? arguments_.model.entry
                                  : "mean of " + training_->measures().back().metric().function +
                                        " over --dev",
                     best));
  return failedAny_ || !course().best ? kFailed : kOk;
}

void Training::load() {
  bool resumes = !arguments_.resume.empty();
  data_ = loadRun(arguments_.model, arguments_.data, resumes ? WeightOptions() : arguments_.weights,
                  INT64_MAX, &notes_, &files_);
  driver::requireLoss(data_.model());
  // With what the weights say, so that what is measured and resumed is of the same dims.
  arguments_.model.dims.clear();
  for (const auto &[name, value] : data_.options.dims)
    arguments_.model.dims.push_back(fmt::format("{}={}", name, value));
  arguments_.model.constants = io::constantsText(data_.model().constants);
  if (data_.instances.empty())
    throw UserError(arguments_.data.data + " has no instances");
  int64_t threads = parseNumber("--threads", arguments_.threads);
  options_ = sessionOptions(arguments_.limits, static_cast<unsigned>(threads), data_.model());
  options_.keepBytes = 0; // results that outlive a mini-batch have no record to go back through
  session_ = std::make_unique<rt::Session>(data_.model(), options_);
  if (resumes && fit::hasCheckpoints(arguments_.output))
    session_->initParams(0); // what it began with need not be there any more
  else if (arguments_.ownWeights)
    throw UserError(arguments_.output + ": no checkpoint yet, and only the program that began this "
                                        "training has the weights that it began with");
  else
    setWeights(*session_, arguments_.weights, data_, /*quiet=*/resumes);
  makeTraining();
}

void Training::begin() {
  using Holds = fit::Directory::Holds;
  Holds holds = training_->directory()->holds();
  if (holds == Holds::Checkpoints)
    throw UserError(arguments_.output + " holds a training; --resume goes on with it");
  if (holds == Holds::Weights)
    throw UserError(arguments_.output + " holds the weights of a training; give another directory");
  training_->begin();
  makeMeasures();
  // Last, so that a directory that has them has all that --resume needs, and nothing is wrong with
  // them.
  arguments_.hashes = hashesOf(arguments_, files_);
  training_->keepConfig(arguments_.config());
}

void Training::goOn() {
  compareHashes();
  makeMeasures();
  training_->restore([](const std::string &why) {
    note(fmt::format("{}; going on from the checkpoint before", why));
  });
  int64_t steps = course().steps;
  if (!arguments_.changes.empty())
    arguments_.history.push_back(
        fmt::format("after step {}: {}", steps, fmt::join(arguments_.changes, ", ")));
  training_->keepConfig(arguments_.config());
  // Who asks for other epochs than it had asks for more of them without a better one, too.
  if (hasEnded() && steps < training_->totalSteps() && arguments_.hasChanged("--epochs")) {
    note(fmt::format("{}: this training had ended, {}; it goes on, and counts such epochs anew",
                     arguments_.output, whyEnded()));
    training_->forgetPatience();
    training_->checkpoint();
  }
  if (std::optional<fit::Directory::Rebuilt> best = training_->restoreFiles())
    note(best->checkpoint.empty()
             ? best->file + " is missing, and no checkpoint of the end of an epoch is left to make "
                            "it of"
             : fmt::format("{} was missing: made again of {}{}", best->file, best->checkpoint,
                           best->isBest ? ""
                                        : ", the best that is left; that of the best epoch is "
                                          "there no more"));
  if (hasEnded())
    note(fmt::format("{}: this training has ended, {}; {} go on", arguments_.output, whyEnded(),
                     steps < training_->totalSteps() ? "other --epochs or another --patience"
                                                     : "more --epochs"));
}

int Training::run() {
  epochs_ = parseNumber("--epochs", arguments_.epochs);
  patience_ = parseCount("--patience", arguments_.patience);
  logEvery_ = parseNumber("--log-every", arguments_.logEvery);
  checkpointEvery_ = parseCount("--checkpoint-every", arguments_.checkpointEvery);
  keep_ = parseCount("--keep", arguments_.keep);
  for (const std::string &metric : arguments_.metrics)
    parseMetric(metric);
  if (!arguments_.metrics.empty() && arguments_.dev.empty())
    throw UsageError("--metric needs --dev, the data that it is taken of");
  arguments_.limits.check(arguments_.model);
  arguments_.decideHoisting();
  arguments_.format.json(); // whether there is such a form
  bool resumes = !arguments_.resume.empty();
  checkOutputs({arguments_.html}, {arguments_.model.model, arguments_.data.data, arguments_.dev});
  if (resumes && arguments_.hasEnded && !fit::hasCheckpoints(arguments_.output)) {
    if (!arguments_.changes.empty())
      throw UserError(arguments_.output + ": this training has ended and kept no checkpoint "
                                          "(--keep 0): it cannot go on");
    note(arguments_.output + ": this training has ended and kept no checkpoint (--keep 0)");
    return kOk;
  }
  load();
  training_->keepIn(arguments_.output);
  if (resumes)
    goOn();
  else
    begin();
  files_ = InputFiles();
  log_.emplace(arguments_.output, course().steps, arguments_.tensorboard);
  probe_.emplace(data_.compiled->target(), data_.compiled->precision());
  before_ = course().steps;
  stop_.begin();
  if (training_->epochIsOver()) {
    beginEpoch();
    if (!endEpoch())
      return stopped();
  }
  bool ended = hasEnded();
  while (!hasEnded())
    if (!runEpoch(course().steps / training_->stepsPerEpoch()))
      return stopped();
  if (!ended && course().steps < training_->totalSteps())
    note("the training ends " + whyEnded());
  return finish();
}

} // namespace sheaf::tool

//===- training.cpp - The course of sheaf train ---------------------------===//
#include "tools/sheaf/training.h"

#include "tools/sheaf/checkpoint.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/train_report.h"
#include "tools/sheaf/weights.h"

#include "compiler/measure/KernelTable.h"
#include "compiler/verify/GradCheck.h"
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

//===----------------------------------------------------------------------===//
// DevMeasure
//===----------------------------------------------------------------------===//

DevMeasure::DevMeasure(const TrainOptions &arguments, const Metric &metric, bool isLoss,
                       const io::Vocabularies &trained, const rt::SessionOptions &options,
                       ReadNotes &notes)
    : metric_(metric), isLoss_(isLoss) {
  ModelOptions model = arguments.model;
  model.entry = metric.function;
  if (!isLoss) {
    model.entryOption = "--metric";
    model.entryGiven = nullptr;
  }
  model.training = model.dropout = false;
  model.vocabs.clear();
  for (const auto &[name, vocabulary] : trained.all())
    if (vocabulary.hasWords())
      model.vocabs.push_back((name.empty() ? "" : name + "=") +
                             vocabularyBeside(arguments.output + "/last.safetensors", name));
  DataOptions data = arguments.data;
  data.data = arguments.dev;
  run_ = loadRun(model, data, {}, INT64_MAX, &notes);
  for (const auto &[name, vocabulary] : trained.all())
    if (const io::Vocabulary *own = run_.vocabularies.find(name);
        own && own->hash() != vocabulary.hash())
      throw UserError(fmt::format("{}: it has words for {}, but {} has numbers: nothing tells "
                                  "which word is which number",
                                  arguments.dev, io::tokenTypeName(name), arguments.data.data));
  requireMeasure(run_.model(), metric);
  session_ = std::make_unique<rt::Session>(run_.model(), options);
}

std::optional<Measure> DevMeasure::with(const rt::Session &trained,
                                        const std::function<rt::TensorView(size_t)> &get,
                                        int64_t batch, const std::function<bool()> &stop) {
  copyParams(trained, get, *session_);
  return evaluate(*session_, run_, metric_, batch, stop);
}

std::string DevMeasure::text(const Measure &measure) const {
  std::string score;
  if (measure.confusion)
    score = " " + (metric_.score.empty() ? "f1" : metric_.score);
  std::string text = fmt::format(", dev {}{} {}", name(), score, measure.text(4));
  if (measure.confusion && metric_.score != "accuracy" && measure.instances)
    text += fmt::format(" accuracy {:.4f}", measure.confusion->accuracy());
  if (measure.failed)
    text += fmt::format(" ({} failed, the first: {})", measure.failed, measure.error);
  return text;
}

void DevMeasure::log(const Measure &measure, Json &line) const {
  std::string key = "dev_" + name();
  line[key] = measure.json();
  if (!measure.confusion)
    return;
  rt::ClassScores scores = measure.scores();
  line[key + "_accuracy"] = measure.confusion->accuracy();
  line[key + "_precision"] = scores.precision;
  line[key + "_recall"] = scores.recall;
  line[key + "_f1"] = scores.f1;
  Json confusion = Json::array();
  for (const auto &[which, times] : measure.confusion->counts())
    confusion.push_back({className(run_, which.first), className(run_, which.second), times});
  line[key + "_confusion"] = confusion;
}

std::optional<double> DevMeasure::value(const Measure &measure) const {
  if (!measure.instances)
    return std::nullopt;
  return isLoss_ ? -measure.value : measure.value;
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

namespace {

/// The files that a training depends on, by option.
std::vector<std::pair<std::string, std::string>> filesOf(const TrainOptions &arguments) {
  std::vector<std::pair<std::string, std::string>> files = {
      {"model", arguments.model.model},
      {"--data", arguments.data.data},
      {"--dev", arguments.dev},
      {"--weights", arguments.weights.weights}};
  for (const std::string &file : arguments.weights.initFrom)
    files.emplace_back("--init-from " + file, weightsFile(file));
  return files;
}

/// What they hold.
std::map<std::string, std::string> hashesOf(const TrainOptions &arguments) {
  std::map<std::string, std::string> hashes;
  for (const auto &[option, path] : filesOf(arguments))
    if (!path.empty() && path != "-") {
      io::SourceText text = io::readSource(path);
      std::string whole = text.text;
      // What a model uses is part of it.
      if (option == "model") {
        SourceFile source = withUsedFiles(std::move(text));
        for (size_t i = 1; i < source.files().size(); ++i)
          whole += source.files()[i].text();
      }
      hashes[option] = io::contentHash(whole);
    }
  return hashes;
}

} // namespace

void Training::compareHashes() {
  // What it began with is not read again.
  std::string weights = std::exchange(arguments_.weights.weights, "");
  std::vector<std::string> initFrom = std::exchange(arguments_.weights.initFrom, {});
  std::map<std::string, std::string> hashes = hashesOf(arguments_);
  for (const auto &[option, path] : filesOf(arguments_))
    if (!path.empty() && hashes[option] != arguments_.hashes[option])
      note(path + " has changed since this training began: it does not go on as it would have");
  arguments_.weights.weights = weights;
  arguments_.weights.initFrom = initFrom;
}

void Training::makeTrainer() {
  rt::TrainerOptions options =
      arguments_.trainer(data_.model(), static_cast<int64_t>(data_.instances.size()));
  trainer_ = std::make_unique<rt::Trainer>(*session_, data_.instances, options);
  for (const rt::ParamDesc &param : data_.model().params)
    if (!param.synthetic && param.dtype != rt::DType::F32)
      note("the elements of '" + param.name + "' are not f32: it stays as it is");
  for (size_t param : frozenParams(data_.model(), arguments_.update.frozen))
    session_->freeze(param);
  trainer_->optimizer().setUpdates(arguments_.update.paramUpdates(data_.model()));
}

void Training::makeMeasures() {
  if (arguments_.dev.empty())
    return notes_.noteIgnored();
  rt::SessionOptions options = options_;
  options.keepBytes.reset();
  auto add = [&](const Metric &metric, bool isLoss) {
    measures_.push_back(std::make_unique<DevMeasure>(arguments_, metric, isLoss, data_.vocabularies,
                                                     options, notes_));
  };
  add({arguments_.model.entry, ""}, /*isLoss=*/true);
  // The first one decides, so it comes last.
  for (auto it = arguments_.metrics.rbegin(); it != arguments_.metrics.rend(); ++it)
    add(Metric::parse(*it), /*isLoss=*/false);
  notes_.noteIgnored();
}

/// A weight as it is measured and saved.
rt::TensorView Training::param(size_t index) const {
  return trainer_->average() ? trainer_->average()->param(index) : session_->param(index);
}

void Training::saveWeights(const std::string &name) {
  directory_->saveWeights(name, data_.model(), data_.vocabularies,
                          [&](size_t index) { return param(index); });
}

void Training::logStep(const rt::TrainingStep &step) {
  double seconds = secondsSince(begin_);
  Json line;
  line["step"] = step.number + 1;
  line["epoch"] = step.epoch + 1;
  line["loss"] = step.instances ? Json(step.loss) : Json(nullptr);
  line["lr"] = step.rate;
  line["norm"] = step.norm;
  if (trainer_->lossScale().isDynamic())
    line["loss_scale"] = step.lossScale;
  line["forward_ms"] = 1e3 * step.forwardSeconds;
  line["backward_ms"] = 1e3 * step.backwardSeconds;
  line["update_ms"] = 1e3 * step.updateSeconds;
  line["instances_per_second"] = static_cast<double>(instances_) / std::max(seconds, 1e-9);
  if (step.failed)
    line["failed"] = step.failed;
  if (step.skipped)
    line["skipped"] = true;
  log_->write("step", line);
}

void Training::probePeak() {
  peak_ = std::max(peak_, probe_->measure() * static_cast<double>(options_.threads));
}

void Training::beginEpoch() {
  instances_ = failed_ = 0;
  flop_ = session_->counters().flop;
  peak_ = 0;
  probePeak();
  begin_ = std::chrono::steady_clock::now();
}

std::string Training::lossText() const {
  std::optional<double> loss = course_.loss();
  return !loss                   ? "none"
         : !std::isfinite(*loss) ? rt::nonFiniteName(*loss)
                                 : fmt::format("{:.4f}", *loss);
}

/// What stands after the bar: how the epoch goes, and when the training will end.
std::string Training::howItGoes() const {
  double seconds = secondsSince(begin_);
  int64_t done = trainer_->stepsDone();
  auto left = static_cast<int64_t>((seconds_ + seconds) * static_cast<double>(total() - done) /
                                   static_cast<double>(done - before_));
  return fmt::format(", loss {}, {:.0f} instances/s, {}:{:02}:{:02} to go", lossText(),
                     static_cast<double>(instances_) / seconds, left / 3600, left / 60 % 60,
                     left % 60);
}

void Training::checkpoint() {
  // While it goes on there is one that it can go on from.
  saveCheckpoint(arguments_.output, *session_, *trainer_, course_,
                 io::modelMetadata(data_.model(), data_.vocabularies), std::max<int64_t>(keep_, 1));
}

/// What went wrong without an instance having failed.
void Training::warnAbout(int64_t epoch, const rt::Course &ended) {
  auto warn = [&](const std::string &text) {
    fmt::print(stderr, "warning: epoch {}: {}\n", epoch + 1, text);
    failedAny_ = true;
  };
  int64_t perEpoch = trainer_->stepsPerEpoch();
  // A dynamic scale comes down step by step.
  if (ended.epochChanges == 0 && !trainer_->lossScale().isDynamic())
    warn(ended.skipped == perEpoch
             ? "no step changed anything: the gradients of each hold NaN or infinity "
               "(--detect-anomaly says where they come from)"
             : "no step changed anything: the gradients or the learning rate are 0");
  if (ended.diverges())
    warn(std::isfinite(*ended.loss())
             ? fmt::format("the training diverges: the loss is {:.4g}, in the first step it was "
                           "{:.4g}; a smaller --lr or --clip may help",
                           *ended.loss(), *ended.firstLoss)
             : fmt::format("the training diverges: the loss is {}",
                           rt::nonFiniteName(*ended.loss())));
}

bool Training::endEpoch(int64_t epoch) {
  bar_.reset(); // measures have their own
  double seconds = std::max(secondsSince(begin_), 1e-9);
  double gflops = (session_->counters().flop - flop_) * 1e-9 / seconds;
  auto threads = static_cast<double>(options_.threads);
  probePeak();
  peak_ = probe_->measureUpTo(gflops / threads, peak_ / threads) * threads;
  bool peakTooLow = peak_ < gflops;
  std::optional<double> loss = course_.loss();
  Json line;
  line["step"] = course_.steps;
  line["epoch"] = epoch + 1;
  line["train_loss"] = loss ? Json(*loss) : Json(nullptr);
  std::string text = fmt::format("epoch {}: loss {}", epoch + 1, lossText());
  int64_t batch = parseNumber("--batch", arguments_.update.batch);
  // A loss is better when it is less.
  std::optional<double> value = loss ? std::optional(-*loss) : std::nullopt;
  for (std::unique_ptr<DevMeasure> &measure : measures_) {
    std::optional<Measure> measured = measure->with(
        *session_, [&](size_t index) { return param(index); }, batch,
        [&] { return stop_.received() != 0; });
    if (!measured)
      return false;
    value = measure->value(*measured);
    measure->log(*measured, line);
    text += measure->text(*measured);
    failedAny_ |= measured->failed > 0;
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
  failedAny_ |= failed_ > 0;
  if (failed_)
    line["failed"] = failed_;
  if (course_.skipped)
    line["skipped"] = course_.skipped;
  text += fmt::format(", {:.0f} instances/s, {:.0f} % of the peak{}{}{}\n",
                      static_cast<double>(instances_) / seconds, 100 * gflops / peak_,
                      peakTooLow ? driver::kPeakTooLow : "",
                      failed_ ? fmt::format(", {} instances failed", failed_) : "",
                      course_.skipped ? fmt::format(", {} steps skipped", course_.skipped) : "");
  std::string logged = log_->write("epoch", line);
  // What follows from no loss at all is nothing to keep: the last checkpoint stays the newest.
  if (!loss)
    throw UserError(
        fmt::format("epoch {}: every instance failed; the first: {}", epoch + 1, firstFailure_));
  fmt::print("{}", arguments_.format.json() ? logged : text);
  std::fflush(stdout);
  warnAbout(epoch, course_);
  // Weights that no step has changed are nobody's best.
  if (course_.endEpoch(course_.changes ? value : std::nullopt))
    saveWeights("best");
  saveWeights("last");
  checkpoint();
  return true;
}

void Training::tell(const rt::TrainingStep &step) {
  if (step.failed && failed_ == 0) {
    firstFailure_ = failureText(data_.data, *step.error);
    note(firstFailure_);
  }
  failed_ += step.failed;
  if (step.anomaly)
    note(fmt::format("step {}: {}", step.number + 1, step.anomaly->message()));
}

/// False when a signal came.
bool Training::runEpoch(int64_t epoch) {
  int64_t perEpoch = trainer_->stepsPerEpoch();
  bar_ =
      std::make_unique<io::Progress>(fmt::format("epoch {} of {}", epoch + 1, epochs_), perEpoch);
  bar_->step(trainer_->stepsDone() % perEpoch);
  beginEpoch();
  do {
    rt::TrainingStep step = trainer_->step();
    course_.add(step);
    instances_ += step.instances;
    times_.add(step);
    tell(step);
    bar_->step(1, [&] { return howItGoes(); });
    bool ends = course_.steps % perEpoch == 0;
    if (course_.steps % logEvery_ == 0)
      logStep(step);
    if (checkpointEvery_ && course_.steps % checkpointEvery_ == 0 && !ends)
      checkpoint();
    if (stop_.received() && !ends)
      return false;
  } while (course_.steps % perEpoch != 0);
  course_.unmeasured = true;
  return !stop_.received() && endEpoch(epoch);
}

bool Training::hasEnded() const {
  if (course_.unmeasured || course_.steps % trainer_->stepsPerEpoch() != 0)
    return false;
  return course_.steps >= total() || (patience_ && course_.epochsSinceBest >= patience_);
}

std::string Training::whyEnded() const {
  int64_t epochs = course_.steps / trainer_->stepsPerEpoch();
  if (course_.steps >= total())
    return fmt::format("after {} of --epochs {}", io::plural(epochs, "epoch"), epochs_);
  return fmt::format("after epoch {}: the last {} no better than one before (--patience {})",
                     epochs,
                     course_.epochsSinceBest == 1 ? std::string("was")
                                                  : fmt::format("{} were", course_.epochsSinceBest),
                     patience_);
}

/// Where time and memory went, and the page that was asked for.
void Training::report() {
  if (times_.steps) {
    io::AtomicFile file(directory_->file("profile.json"));
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
  checkpoint();
  report();
  int signal = stop_.received();
  note(fmt::format("{}: stopped after step {} of {}; {} holds it, and 'sheaf train --resume {}' "
                   "goes on",
                   signal == SIGINT    ? "interrupted"
                   : signal == SIGTERM ? "SIGTERM"
                                       : "SIGHUP",
                   course_.steps, total(), checkpointPath(arguments_.output, course_.steps),
                   arguments_.output));
  return 128 + signal;
}

int Training::finish() {
  report();
  if (keep_ == 0) {
    arguments_.hasEnded = true;
    arguments_.save(directory_->file("config.json"));
    keepCheckpoints(arguments_.output, 0);
  }
  if (course_.changes == 0) {
    fmt::print(stderr, "error: no step changed anything: there is no {}\n",
               directory_->file("best.safetensors"));
    return kFailed;
  }
  if (!course_.best)
    note(fmt::format("no epoch had a finite {}: there is no {}",
                     measures_.empty() ? arguments_.model.entry
                                       : "mean of " + measures_.back()->name() + " over --dev",
                     directory_->file("best.safetensors")));
  return failedAny_ || !course_.best ? kFailed : kOk;
}

void Training::load() {
  bool resumes = !arguments_.resume.empty();
  data_ = loadRun(arguments_.model, arguments_.data, resumes ? WeightOptions() : arguments_.weights,
                  INT64_MAX, &notes_);
  driver::requireLoss(data_.model());
  // With what the weights say, so that what is measured and resumed is of the same dims.
  arguments_.model.dims.clear();
  for (const auto &[name, value] : data_.options.dims)
    arguments_.model.dims.push_back(fmt::format("{}={}", name, value));
  if (data_.instances.empty())
    throw UserError(arguments_.data.data + " has no instances");
  int64_t threads = parseNumber("--threads", arguments_.threads);
  options_ = sessionOptions(arguments_.limits, static_cast<unsigned>(threads), data_.model());
  options_.keepBytes = 0; // results that outlive a mini-batch have no record to go back through
  session_ = std::make_unique<rt::Session>(data_.model(), options_);
  if (resumes && hasCheckpoints(arguments_.output))
    session_->initParams(0); // what it began with need not be there any more
  else
    setWeights(*session_, arguments_.weights, data_, /*quiet=*/resumes);
  makeTrainer();
}

void Training::begin() {
  directory_->claim();
  directory_->saveVocabularies(data_.vocabularies);
  makeMeasures();
  // Last, so that a directory that has them has all that --resume needs, and nothing is wrong with
  // them.
  arguments_.hashes = hashesOf(arguments_);
  arguments_.save(directory_->file("config.json"));
}

void Training::goOn() {
  compareHashes();
  makeMeasures();
  if (std::optional<rt::Course> before = loadCheckpoint(arguments_.output, *session_, *trainer_))
    course_ = *before;
  if (!arguments_.changes.empty()) {
    arguments_.history.push_back(
        fmt::format("after step {}: {}", course_.steps, fmt::join(arguments_.changes, ", ")));
    arguments_.save(directory_->file("config.json"));
  }
  // Who asks for other epochs than it had asks for more of them without a better one, too.
  if (hasEnded() && course_.steps < total() && arguments_.hasChanged("--epochs")) {
    note(fmt::format("{}: this training had ended, {}; it goes on, and counts such epochs anew",
                     arguments_.output, whyEnded()));
    course_.epochsSinceBest = 0;
    checkpoint();
  }
  directory_->saveVocabularies(data_.vocabularies);
  if (course_.best)
    if (std::string done =
            directory_->rebuildBest(data_.model(), data_.vocabularies, *course_.best);
        !done.empty())
      note(done);
  if (hasEnded())
    note(fmt::format("{}: this training has ended, {}; {} go on", arguments_.output, whyEnded(),
                     course_.steps < total() ? "other --epochs or another --patience"
                                             : "more --epochs"));
  if (course_.steps && !directory_->has("last.safetensors"))
    saveWeights("last");
}

int Training::run() {
  epochs_ = parseNumber("--epochs", arguments_.epochs);
  patience_ = parseCount("--patience", arguments_.patience);
  logEvery_ = parseNumber("--log-every", arguments_.logEvery);
  checkpointEvery_ = parseCount("--checkpoint-every", arguments_.checkpointEvery);
  keep_ = parseCount("--keep", arguments_.keep);
  for (const std::string &metric : arguments_.metrics)
    Metric::parse(metric);
  if (!arguments_.metrics.empty() && arguments_.dev.empty())
    throw UsageError("--metric needs --dev, the data that it is taken of");
  arguments_.limits.check(arguments_.model);
  arguments_.format.json(); // whether there is such a form
  bool resumes = !arguments_.resume.empty();
  checkOutputs({arguments_.html}, {arguments_.model.model, arguments_.data.data, arguments_.dev});
  if (resumes && arguments_.hasEnded && !hasCheckpoints(arguments_.output)) {
    if (!arguments_.changes.empty())
      throw UserError(arguments_.output + ": this training has ended and kept no checkpoint "
                                          "(--keep 0): it cannot go on");
    note(arguments_.output + ": this training has ended and kept no checkpoint (--keep 0)");
    return kOk;
  }
  load();
  directory_.emplace(arguments_.output);
  if (resumes)
    goOn();
  else
    begin();
  log_.emplace(arguments_.output, course_.steps, arguments_.tensorboard);
  probe_.emplace(data_.compiled->target(), data_.compiled->precision());
  before_ = trainer_->stepsDone();
  stop_.begin();
  int64_t perEpoch = trainer_->stepsPerEpoch();
  if (course_.unmeasured) {
    beginEpoch();
    if (!endEpoch(course_.steps / perEpoch - 1))
      return stopped();
  }
  bool ended = hasEnded();
  while (!hasEnded())
    if (!runEpoch(trainer_->stepsDone() / perEpoch))
      return stopped();
  if (!ended && course_.steps < total())
    note("the training ends " + whyEnded());
  return finish();
}

} // namespace sheaf::tool

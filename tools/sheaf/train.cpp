//===- train.cpp - sheaf train --------------------------------------------===//
#include "tools/sheaf/checkpoint.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/evaluate.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/train_log.h"
#include "tools/sheaf/train_options.h"
#include "tools/sheaf/weights.h"

#include "compiler/driver/GradCheck.h"
#include "compiler/driver/Peak.h"
#include "runtime/io/progress.h"
#include "runtime/io/text.h"
#include "runtime/io/weights.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/file.h>
#include <unistd.h>

namespace sheaf::tool {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A function whose mean over other data is told after every epoch.
class Evaluation {
public:
  Evaluation(const TrainOptions &arguments, const std::string &function,
             const io::Vocabularies &trained, const rt::SessionOptions &options)
      : name_(function) {
    ModelOptions model = arguments.model;
    model.entry = function;
    if (function == arguments.metric) {
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
    run_ = loadRun(model, data, {});
    for (const auto &[name, vocabulary] : trained.all())
      if (const io::Vocabulary *own = run_.vocabularies.find(name);
          own && own->hash() != vocabulary.hash())
        throw UserError(fmt::format("{}: it has words for {}, but {} has numbers: nothing tells "
                                    "which word is which number",
                                    arguments.dev, io::tokenTypeName(name), arguments.data.data));
    requireNumber(run_.model());
    session_ = std::make_unique<rt::Session>(run_.model(), options);
  }

  Mean with(const rt::Session &trained, const std::function<rt::TensorView(size_t)> &get,
            int64_t batch) {
    copyParams(trained, get, *session_);
    return evaluate(*session_, run_, batch);
  }
  const std::string &name() const { return name_; }

private:
  std::string name_;
  LoadedRun run_;
  std::unique_ptr<rt::Session> session_;
};

/// A directory that no other training writes to at the same time.
class DirectoryLock {
public:
  explicit DirectoryLock(const std::string &path)
      : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd_);
      throw UserError(path + ": another training writes there");
    }
  }
  ~DirectoryLock() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;

private:
  int fd_;
};

class Training {
public:
  explicit Training(TrainOptions &arguments) : arguments_(arguments) {}
  int run();

private:
  void lockDirectory();
  void saveVocabularies();
  void saveOptions();
  void compareHashes();
  void makeTrainer();
  void makeEvaluations();
  rt::TensorView param(size_t index) const;
  void saveWeights(const std::string &name);
  void logStep(const rt::TrainingStep &step);
  void beginEpoch();
  void endEpoch(int64_t epoch);
  void probePeak();
  Mean trainLoss() const;
  std::string howItGoes(int64_t total) const;
  void checkpoint();
  double secondsSince(std::chrono::steady_clock::time_point begin) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  TrainOptions &arguments_;
  LoadedRun data_;
  rt::SessionOptions options_;
  std::unique_ptr<rt::Session> session_;
  std::unique_ptr<rt::Trainer> trainer_;
  std::vector<std::unique_ptr<Evaluation>> evaluations_;
  std::optional<DirectoryLock> lock_;
  Progress progress_;
  int64_t keep_ = 0; ///< checkpoints
  std::optional<TrainLog> log_;
  // The epoch that runs.
  int64_t instances_ = 0, failed_ = 0; ///< since it began or was resumed
  std::string firstFailure_;           ///< of those; told once
  bool failedAny_ = false; ///< whether an instance failed in any epoch, in training or a measure
  std::chrono::steady_clock::time_point begin_;
  // How fast it goes.
  std::optional<driver::PeakProbe> probe_;
  double peak_ = 0, flop_ = 0; ///< GFLOP/s of the threads; of the session when the epoch began
  double seconds_ = 0;         ///< of the epochs that have ended here, without evaluations
  int64_t before_ = 0;         ///< steps done when this process took the training up
};

void Training::lockDirectory() {
  std::error_code error;
  fs::create_directories(arguments_.output, error);
  if (error)
    throw UserError(arguments_.output + ": " + error.message());
  lock_.emplace(arguments_.output);
  io::AtomicFile::removeLeftovers(arguments_.output);
  if (arguments_.resume.empty() &&
      (fs::exists(arguments_.output + "/config.json") || hasCheckpoints(arguments_.output)))
    throw UserError(arguments_.output + " holds a training; --resume goes on with it");
}

/// The files that a training depends on, by option.
std::vector<std::pair<const char *, std::string>> filesOf(const TrainOptions &arguments) {
  return {{"model", arguments.model.model},
          {"--data", arguments.data.data},
          {"--dev", arguments.dev},
          {"--weights", arguments.weights.weights}};
}

/// What they hold.
std::map<std::string, std::string> hashesOf(const TrainOptions &arguments) {
  std::map<std::string, std::string> hashes;
  for (const auto &[option, path] : filesOf(arguments))
    if (!path.empty() && path != "-")
      hashes[option] = io::contentHash(io::readSource(path).text);
  return hashes;
}

/// Beside the weights.
void Training::saveVocabularies() {
  for (const char *weights : {"last", "best"})
    for (const auto &[name, vocabulary] : data_.vocabularies.all())
      if (vocabulary.hasWords())
        vocabulary.save(
            vocabularyBeside(fmt::format("{}/{}.safetensors", arguments_.output, weights), name));
}

/// Last, so that a directory that has them has all that --resume needs, and nothing is wrong with
/// them.
void Training::saveOptions() {
  arguments_.hashes = hashesOf(arguments_);
  io::AtomicFile file(arguments_.output + "/config.json");
  file.write(arguments_.write());
  file.commit();
}

void Training::compareHashes() {
  std::map<std::string, std::string> hashes = hashesOf(arguments_);
  for (const auto &[option, path] : filesOf(arguments_))
    if (hashes[option] != arguments_.hashes[option])
      note(path + " has changed since this training began: it does not go on as it would have");
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
  for (size_t param : paramsOf(data_.model(), "--no-decay", arguments_.update.noDecay))
    trainer_->optimizer().exclude(param);
}

void Training::makeEvaluations() {
  if (arguments_.dev.empty())
    return;
  rt::SessionOptions options = options_;
  options.keepBytes.reset();
  evaluations_.push_back(std::make_unique<Evaluation>(arguments_, arguments_.model.entry,
                                                      data_.vocabularies, options));
  if (!arguments_.metric.empty())
    evaluations_.push_back(
        std::make_unique<Evaluation>(arguments_, arguments_.metric, data_.vocabularies, options));
}

/// A weight as it is measured and saved.
rt::TensorView Training::param(size_t index) const {
  return trainer_->average() ? trainer_->average()->param(index) : session_->param(index);
}

void Training::saveWeights(const std::string &name) {
  io::saveWeights(
      fmt::format("{}/{}.safetensors", arguments_.output, name), data_.model(),
      [&](size_t index) { return param(index); },
      io::modelMetadata(data_.model(), data_.vocabularies));
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

/// Of the epoch so far.
Mean Training::trainLoss() const {
  Mean loss;
  loss.instances = progress_.instances;
  if (loss.instances)
    loss.value = progress_.lossSum / static_cast<double>(loss.instances);
  return loss;
}

/// What stands behind the bar: how the epoch goes, and when the training will end.
std::string Training::howItGoes(int64_t total) const {
  double seconds = secondsSince(begin_);
  int64_t done = trainer_->stepsDone();
  auto left = static_cast<int64_t>((seconds_ + seconds) * static_cast<double>(total - done) /
                                   static_cast<double>(done - before_));
  return fmt::format(", loss {}, {:.0f} instances/s, {}:{:02}:{:02} to go", trainLoss().text(4),
                     static_cast<double>(instances_) / seconds, left / 3600, left / 60 % 60,
                     left % 60);
}

void Training::checkpoint() {
  saveCheckpoint(arguments_.output, *session_, *trainer_, progress_,
                 io::modelMetadata(data_.model(), data_.vocabularies), keep_);
}

void Training::endEpoch(int64_t epoch) {
  double seconds = secondsSince(begin_);
  seconds_ += seconds;
  probePeak();
  double gflops = (session_->counters().flop - flop_) * 1e-9 / seconds;
  Mean loss = trainLoss();
  progress_.lossSum = 0;
  progress_.instances = 0;
  Json line;
  line["step"] = progress_.steps;
  line["epoch"] = epoch + 1;
  line["train_loss"] = loss.json();
  std::string text = fmt::format("epoch {}: loss {}", epoch + 1, loss.text(4));
  int64_t batch = parseNumber("--batch", arguments_.update.batch);
  // The last one decides which weights are the best; a loss is better when it is less.
  std::optional<double> measure = -loss.value;
  for (std::unique_ptr<Evaluation> &evaluation : evaluations_) {
    Mean mean = evaluation->with(*session_, [&](size_t index) { return param(index); }, batch);
    bool isLoss = evaluation->name() == arguments_.model.entry;
    measure.reset();
    if (mean.instances)
      measure = isLoss ? -mean.value : mean.value;
    line["dev_" + evaluation->name()] = mean.json();
    text += fmt::format(", dev {} {}", evaluation->name(), mean.text(4));
    failedAny_ |= mean.failed > 0;
    if (mean.failed)
      text += fmt::format(" ({} failed, the first: {})", mean.failed, mean.error);
  }
  line["seconds"] = seconds;
  line["gflops"] = gflops;
  line["share_of_peak"] = gflops / peak_;
  rt::MemoryUse memory = session_->memory();
  auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  line["rows_mb"] = megabytes(memory.rows.peak);
  line["records_mb"] = megabytes(memory.records.peak + memory.heap.peak + memory.stack.peak);
  line["scratch_mb"] = megabytes(memory.scratch.peak);
  bool best = measure && std::isfinite(*measure) && (!progress_.best || *measure > *progress_.best);
  if (best)
    progress_.best = measure;
  failedAny_ |= failed_ > 0;
  if (failed_)
    line["failed"] = failed_;
  if (progress_.skipped)
    line["skipped"] = progress_.skipped;
  text += fmt::format(
      ", {:.0f} instances/s, {:.0f} % of the peak{}{}\n", static_cast<double>(instances_) / seconds,
      100 * gflops / peak_, failed_ ? fmt::format(", {} instances failed", failed_) : "",
      progress_.skipped ? fmt::format(", {} steps skipped", progress_.skipped) : "");
  progress_.skipped = 0;
  std::string logged = log_->write("epoch", line);
  // What follows from no loss at all is nothing to keep: the last checkpoint stays the newest.
  if (loss.instances == 0)
    throw UserError(
        fmt::format("epoch {}: every instance failed; the first: {}", epoch + 1, firstFailure_));
  fmt::print("{}", arguments_.format.json() ? logged : text);
  std::fflush(stdout);
  if (best)
    saveWeights("best");
  saveWeights("last");
  checkpoint();
}

int Training::run() {
  int64_t epochs = parseNumber("--epochs", arguments_.epochs);
  int64_t threads = parseNumber("--threads", arguments_.threads);
  int64_t logEvery = parseNumber("--log-every", arguments_.logEvery);
  int64_t checkpointEvery = arguments_.checkpointEvery == "0"
                                ? 0
                                : parseNumber("--checkpoint-every", arguments_.checkpointEvery);
  keep_ = parseNumber("--keep", arguments_.keep);
  if (!arguments_.metric.empty() && arguments_.dev.empty())
    throw UsageError("--metric needs --dev, the data that it is taken of");
  arguments_.limits.check();
  arguments_.format.json(); // whether there is such a form

  data_ = loadRun(arguments_.model, arguments_.data, arguments_.weights);
  driver::requireLoss(data_.model());
  // With what the weights say, so that what is measured and resumed is of the same dims.
  arguments_.model.dims.clear();
  for (const auto &[name, value] : data_.options.dims)
    arguments_.model.dims.push_back(fmt::format("{}={}", name, value));
  if (data_.instances.empty())
    throw UserError(arguments_.data.data + " has no instances");
  options_ = sessionOptions(arguments_.limits, static_cast<unsigned>(threads), data_.model());
  options_.keepBytes = 0; // results that outlive a mini-batch have no record to go back through
  session_ = std::make_unique<rt::Session>(data_.model(), options_);
  setWeights(*session_, arguments_.weights, data_, /*quiet=*/!arguments_.resume.empty());
  makeTrainer();
  lockDirectory();
  if (arguments_.resume.empty()) {
    saveVocabularies();
    makeEvaluations();
    saveOptions();
  } else {
    compareHashes();
    makeEvaluations();
    if (std::optional<Progress> before = loadCheckpoint(arguments_.output, *session_, *trainer_))
      progress_ = *before;
  }
  log_.emplace(arguments_.output, progress_.steps, arguments_.tensorboard);
  probe_.emplace(data_.compiled->target(), data_.compiled->precision());

  before_ = trainer_->stepsDone();
  int64_t perEpoch = trainer_->stepsPerEpoch(), total = perEpoch * epochs;
  while (trainer_->stepsDone() < total) {
    int64_t epoch = trainer_->stepsDone() / perEpoch;
    io::Progress bar(fmt::format("epoch {} of {}", epoch + 1, epochs), perEpoch);
    bar.step(trainer_->stepsDone() % perEpoch);
    beginEpoch();
    do {
      rt::TrainingStep step = trainer_->step();
      progress_.lossSum += step.loss * static_cast<double>(step.instances);
      progress_.instances += step.instances;
      instances_ += step.instances;
      if (step.failed && failed_ == 0) {
        firstFailure_ = failureText(data_.data, *step.error);
        note(firstFailure_);
      }
      failed_ += step.failed;
      progress_.skipped += step.skipped;
      if (step.anomaly)
        note(fmt::format("step {}: {}", step.number + 1, step.anomaly->message()));
      progress_.steps = trainer_->stepsDone();
      bar.step(1, [&] { return howItGoes(total); });
      if (progress_.steps % logEvery == 0)
        logStep(step);
      if (checkpointEvery && progress_.steps % checkpointEvery == 0 &&
          progress_.steps % perEpoch != 0)
        checkpoint();
    } while (trainer_->stepsDone() % perEpoch != 0);
    endEpoch(epoch);
  }
  if (!progress_.best)
    note(fmt::format("no epoch had a finite {}: there is no {}/best.safetensors",
                     evaluations_.empty()
                         ? arguments_.model.entry
                         : "mean of " + evaluations_.back()->name() + " over --dev",
                     arguments_.output));
  return failedAny_ || !progress_.best ? kFailed : kOk;
}

int runTrain(CLI::App &app, TrainOptions &arguments) {
  if (arguments.resume.empty()) {
    arguments.check(app);
    return Training(arguments).run();
  }
  constexpr std::array changeNothing = {"--resume", "--threads", "--format", "--store"};
  for (const CLI::Option *option : app.get_options())
    if (option->count() && std::find(changeNothing.begin(), changeNothing.end(),
                                     option->get_name()) == changeNothing.end())
      throw UsageError(option->get_name() +
                       " is given with --resume: a training goes on as it was begun, on any "
                       "number of --threads and with any --store");
  arguments.read();
  return Training(arguments).run();
}

} // namespace

void addTrain(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "train", "trains a model's parameters on data");
  auto arguments = std::make_shared<TrainOptions>();
  arguments->add(*sub);
  sub->callback([arguments, sub, &action] {
    action = [arguments, sub] { return runTrain(*sub, *arguments); };
  });
}

} // namespace sheaf::tool

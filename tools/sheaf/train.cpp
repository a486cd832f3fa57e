//===- train.cpp - sheaf train --------------------------------------------===//
#include "tools/sheaf/checkpoint.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/evaluate.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/driver/GradCheck.h"
#include "runtime/io/progress.h"
#include "runtime/io/text.h"
#include "runtime/io/weights.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>

namespace sheaf::tool {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct TrainArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string dev, metric;
  std::string optimizer = "adam", schedule = "constant", reduction = "mean";
  double rate = 1e-3, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, decay = 0.99, epsilon = 1e-8;
  double weightDecay = 0, clip = 0;
  std::vector<std::string> frozen, noDecay;
  std::string warmup = "0", batch = "64", epochs = "10", threads = "1", logEvery = "10", keep = "2",
              checkpointEvery = "0";
  std::string output, resume;

  /// Everything that the course of a training depends on, to and from its directory.
  template <typename Visit> void visit(Visit field) {
    field("model", model.model);
    field("dims", model.dims);
    field("loss", model.entry);
    field("without", model.without);
    field("target_cpu", model.targetCpu);
    field("precision", model.precision);
    field("dropout", model.dropout);
    field("vocab", model.vocabs);
    field("data", data.data);
    field("data_format", data.format);
    field("strict_vocab", data.strictVocab);
    field("weights", weights.weights);
    field("seed", weights.seed);
    field("sample_seed", limits.sampleSeed);
    field("memory_limit", limits.memoryLimitText);
    field("fold_memory", limits.foldMemoryText);
    field("max_depth", limits.maxDepthText);
    field("max_steps", limits.maxStepsText);
    field("fibers", limits.fibersText);
    field("hostile", limits.hostile);
    field("dev", dev);
    field("metric", metric);
    field("optimizer", optimizer);
    field("schedule", schedule);
    field("reduction", reduction);
    field("lr", rate);
    field("momentum", momentum);
    field("beta1", beta1);
    field("beta2", beta2);
    field("decay", decay);
    field("epsilon", epsilon);
    field("weight_decay", weightDecay);
    field("clip", clip);
    field("freeze", frozen);
    field("no_decay", noDecay);
    field("warmup", warmup);
    field("batch", batch);
    field("epochs", epochs);
    field("log_every", logEvery);
    field("keep", keep);
    field("checkpoint_every", checkpointEvery);
  }
};

/// Whether a name is matched by a pattern in which `*` stands for anything.
bool matches(std::string_view name, std::string_view pattern) {
  size_t n = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

/// Parameters that match; a pattern without any is a mistake.
std::vector<size_t> paramsOf(const rt::Model &model, const std::vector<std::string> &patterns) {
  std::vector<size_t> found;
  for (const std::string &pattern : patterns) {
    size_t before = found.size();
    for (size_t i = 0; i < model.params.size(); ++i)
      if (!model.params[i].synthetic && matches(model.params[i].name, pattern))
        found.push_back(i);
    if (found.size() == before)
      throw UserError("no parameter of the model is called '" + pattern + "'");
  }
  return found;
}

/// A function whose mean over other data is told after every epoch.
class Evaluation {
public:
  Evaluation(const TrainArguments &arguments, const std::string &function,
             const std::vector<std::string> &vocabularies, const rt::SessionOptions &options)
      : name_(function) {
    ModelOptions model = arguments.model;
    model.entry = function;
    model.training = model.dropout = false;
    model.vocabs = vocabularies;
    DataOptions data = arguments.data;
    data.data = arguments.dev;
    run_ = loadRun(model, data, {});
    requireNumber(run_.model());
    session_ = std::make_unique<rt::Session>(run_.model(), options);
  }

  Mean with(const rt::Session &trained, int64_t batch) {
    copyParams(trained, *session_);
    return evaluate(*session_, run_.instances, batch);
  }
  const std::string &name() const { return name_; }

private:
  std::string name_;
  LoadedRun run_;
  std::unique_ptr<rt::Session> session_;
};

class Training {
public:
  explicit Training(TrainArguments &arguments) : arguments_(arguments) {}
  int run();

private:
  void prepareDirectory();
  void makeTrainer();
  void saveWeights(const std::string &name);
  void openLog();
  void log(const Json &line);
  void logStep(const rt::TrainingStep &step);
  void endEpoch(int64_t epoch);
  void checkpoint();
  double secondsSince(std::chrono::steady_clock::time_point begin) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  TrainArguments &arguments_;
  LoadedRun data_;
  rt::SessionOptions options_;
  std::unique_ptr<rt::Session> session_;
  std::unique_ptr<rt::Trainer> trainer_;
  std::vector<std::unique_ptr<Evaluation>> evaluations_;
  Progress progress_;
  int64_t batch_ = 0, epochs_ = 0;
  std::ofstream log_;
  // The epoch that runs.
  int64_t instances_ = 0, failed_ = 0; ///< since it began or was resumed
  std::chrono::steady_clock::time_point begin_;
};

/// Where the words of a training stand: beside its weights.
void Training::prepareDirectory() {
  std::error_code error;
  fs::create_directories(arguments_.output, error);
  if (error)
    throw UserError(arguments_.output + ": " + error.message());
  if (!arguments_.resume.empty())
    return;
  if (fs::exists(arguments_.output + "/config.json"))
    throw UserError(arguments_.output + " holds a training; --resume goes on with it");
  for (const char *weights : {"last", "best"})
    for (const auto &[name, vocabulary] : data_.vocabularies.all())
      vocabulary.save(
          vocabularyBeside(fmt::format("{}/{}.safetensors", arguments_.output, weights), name));
  Json config;
  arguments_.visit([&](const char *key, auto &value) { config[key] = value; });
  io::AtomicFile file(arguments_.output + "/config.json");
  file.write(config.dump(2) + "\n");
  file.commit();
}

void Training::makeTrainer() {
  rt::TrainerOptions options;
  options.batch = batch_;
  options.seed = arguments_.weights.seed;
  options.sum = arguments_.reduction == "sum";
  rt::OptimizerOptions &optimizer = options.optimizer;
  optimizer.kind = rt::optimizerKind(arguments_.optimizer);
  optimizer.momentum = arguments_.momentum;
  optimizer.beta1 = arguments_.beta1;
  optimizer.beta2 = arguments_.beta2;
  optimizer.decay = arguments_.decay;
  optimizer.epsilon = arguments_.epsilon;
  optimizer.weightDecay = arguments_.weightDecay;
  optimizer.clip = arguments_.clip;
  options.rate.schedule = rt::scheduleNamed(arguments_.schedule);
  options.rate.peak = arguments_.rate;
  auto count = static_cast<int64_t>(data_.instances.size());
  options.rate.total = (count + batch_ - 1) / batch_ * epochs_;
  options.rate.warmup = arguments_.warmup == "0" ? 0 : parseNumber("--warmup", arguments_.warmup);
  trainer_ = std::make_unique<rt::Trainer>(*session_, data_.instances, options);
  for (const rt::ParamDesc &param : data_.model().params)
    if (!param.synthetic && param.dtype != rt::DType::F32)
      note("the elements of '" + param.name + "' are not f32: it stays as it is");
  for (size_t param : paramsOf(data_.model(), arguments_.frozen))
    session_->freeze(param);
  for (size_t param : paramsOf(data_.model(), arguments_.noDecay))
    trainer_->optimizer().exclude(param);
}

void Training::saveWeights(const std::string &name) {
  std::map<std::string, std::string> metadata = {{io::kModelKey, data_.model().name}};
  if (!data_.vocabularies.all().empty())
    metadata[io::kVocabKey] = data_.vocabularies.hashes();
  io::saveWeights(
      fmt::format("{}/{}.safetensors", arguments_.output, name), data_.model(),
      [&](size_t index) { return session_->param(index); }, metadata);
}

/// Lines of steps that are made again are dropped.
void Training::openLog() {
  std::string path = arguments_.output + "/log.jsonl", kept;
  if (!arguments_.resume.empty()) {
    std::ifstream before(path);
    for (std::string line; std::getline(before, line);) {
      Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object() && json.value("step", INT64_MAX) <= progress_.steps)
        kept += line + "\n";
    }
  }
  log_.open(path, std::ios::trunc);
  log_ << kept << std::flush;
  if (!log_)
    throw UserError(path + ": cannot be written");
}

void Training::log(const Json &line) {
  log_ << line.dump() << '\n' << std::flush;
  if (!log_)
    throw UserError(arguments_.output + "/log.jsonl: cannot be written");
}

void Training::logStep(const rt::TrainingStep &step) {
  double seconds = secondsSince(begin_);
  Json line;
  line["step"] = step.number + 1;
  line["epoch"] = step.epoch + 1;
  line["loss"] = step.loss;
  line["lr"] = step.rate;
  line["norm"] = step.norm;
  line["forward_ms"] = 1e3 * step.forwardSeconds;
  line["backward_ms"] = 1e3 * step.backwardSeconds;
  line["update_ms"] = 1e3 * step.updateSeconds;
  line["instances_per_second"] = static_cast<double>(instances_) / std::max(seconds, 1e-9);
  if (step.failed)
    line["failed"] = step.failed;
  if (step.skipped)
    line["skipped"] = true;
  log(line);
}

void Training::checkpoint() {
  saveCheckpoint(arguments_.output, *session_, trainer_->optimizer(), progress_,
                 parseNumber("--keep", arguments_.keep));
}

void Training::endEpoch(int64_t epoch) {
  double seconds = secondsSince(begin_);
  double loss = progress_.lossSum / static_cast<double>(progress_.instances); // of none: NaN
  progress_.lossSum = 0;
  progress_.instances = 0;
  Json line;
  line["step"] = progress_.steps;
  line["epoch"] = epoch + 1;
  line["train_loss"] = loss;
  std::string text = fmt::format("epoch {}: loss {:.4f}", epoch + 1, loss);
  // The last one decides which weights are the best; a loss is better when it is less.
  double measure = -loss;
  for (std::unique_ptr<Evaluation> &evaluation : evaluations_) {
    Mean mean = evaluation->with(*session_, batch_);
    bool isLoss = evaluation->name() == arguments_.model.entry;
    measure = isLoss ? -mean.value : mean.value;
    line["dev_" + evaluation->name()] = mean.value;
    text += fmt::format(", dev {} {:.4f}", evaluation->name(), mean.value);
    if (mean.failed)
      text += fmt::format(" ({} failed, the first: {})", mean.failed, mean.error);
  }
  line["seconds"] = seconds;
  bool best = std::isfinite(measure) && (!progress_.best || measure > *progress_.best);
  if (best)
    progress_.best = measure;
  fmt::print("{}, {:.0f} instances/s{}{}\n", text, static_cast<double>(instances_) / seconds,
             failed_ ? fmt::format(", {} instances failed", failed_) : "",
             progress_.skipped ? fmt::format(", {} steps skipped", progress_.skipped) : "");
  std::fflush(stdout);
  log(line);
  if (best)
    saveWeights("best");
  saveWeights("last");
  checkpoint();
}

int Training::run() {
  batch_ = parseNumber("--batch", arguments_.batch);
  epochs_ = parseNumber("--epochs", arguments_.epochs);
  int64_t threads = parseNumber("--threads", arguments_.threads);
  int64_t logEvery = parseNumber("--log-every", arguments_.logEvery);
  int64_t checkpointEvery = arguments_.checkpointEvery == "0"
                                ? 0
                                : parseNumber("--checkpoint-every", arguments_.checkpointEvery);
  if (arguments_.reduction != "mean" && arguments_.reduction != "sum")
    throw UsageError(fmt::format("--reduction takes mean or sum, not '{}'", arguments_.reduction));
  if (!arguments_.metric.empty() && arguments_.dev.empty())
    throw UsageError("--metric needs --dev, the data that it is taken of");
  arguments_.limits.check();

  data_ = loadRun(arguments_.model, arguments_.data, arguments_.weights);
  driver::requireLoss(data_.model());
  if (data_.instances.empty())
    throw UserError(arguments_.data.data + " has no instances");
  prepareDirectory();
  options_ = sessionOptions(arguments_.limits, static_cast<unsigned>(threads), data_.model());
  options_.keepBytes = 0; // results that outlive a mini-batch have no record to go back through
  session_ = std::make_unique<rt::Session>(data_.model(), options_);
  setWeights(*session_, arguments_.weights, data_.vocabularies, /*quiet=*/true);
  makeTrainer();
  if (!arguments_.resume.empty())
    if (std::optional<Progress> before =
            loadCheckpoint(arguments_.output, *session_, trainer_->optimizer())) {
      progress_ = *before;
      trainer_->resume(progress_.steps);
    }
  openLog();
  if (!arguments_.dev.empty()) {
    std::vector<std::string> vocabularies;
    for (const auto &[name, vocabulary] : data_.vocabularies.all())
      vocabularies.push_back((name.empty() ? "" : name + "=") +
                             vocabularyBeside(arguments_.output + "/last.safetensors", name));
    rt::SessionOptions evaluating = options_;
    evaluating.keepBytes.reset();
    evaluations_.push_back(
        std::make_unique<Evaluation>(arguments_, arguments_.model.entry, vocabularies, evaluating));
    if (!arguments_.metric.empty())
      evaluations_.push_back(
          std::make_unique<Evaluation>(arguments_, arguments_.metric, vocabularies, evaluating));
  }

  int64_t perEpoch = trainer_->stepsPerEpoch(), total = perEpoch * epochs_;
  while (trainer_->stepsDone() < total) {
    int64_t epoch = trainer_->stepsDone() / perEpoch;
    io::Progress bar(fmt::format("epoch {} of {}", epoch + 1, epochs_), perEpoch);
    bar.step(trainer_->stepsDone() % perEpoch);
    begin_ = std::chrono::steady_clock::now();
    instances_ = failed_ = 0;
    do {
      rt::TrainingStep step = trainer_->step();
      bar.step();
      progress_.lossSum += step.loss * static_cast<double>(step.instances);
      progress_.instances += step.instances;
      instances_ += step.instances;
      if (step.failed && failed_ == 0)
        note(step.error);
      failed_ += step.failed;
      progress_.skipped += step.skipped;
      progress_.steps = trainer_->stepsDone();
      if (progress_.steps % logEvery == 0)
        logStep(step);
      if (checkpointEvery && progress_.steps % checkpointEvery == 0 &&
          progress_.steps % perEpoch != 0)
        checkpoint();
    } while (trainer_->stepsDone() % perEpoch != 0);
    endEpoch(epoch);
  }
  return kOk;
}

/// The vocabularies of a training, as --vocab takes them.
std::vector<std::string> savedVocabularies(const std::string &directory) {
  constexpr std::string_view prefix = "last", suffix = ".vocab.txt";
  std::vector<std::string> options;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, error)) {
    std::string file = entry.path().filename().string();
    if (file.size() < prefix.size() + suffix.size() || !file.starts_with(prefix) ||
        !file.ends_with(suffix))
      continue;
    std::string name = file.substr(prefix.size(), file.size() - prefix.size() - suffix.size());
    options.push_back((name.empty() ? "" : name.substr(1) + "=") + entry.path().string());
  }
  std::sort(options.begin(), options.end());
  return options;
}

/// The options of the training that a directory holds.
void readConfig(TrainArguments &arguments) {
  std::string path = arguments.resume + "/config.json";
  std::ifstream file(path);
  if (!file)
    throw UserError(path + ": cannot be read; is '" + arguments.resume + "' a training?");
  Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  arguments.visit([&](const char *key, auto &value) {
    try {
      config.at(key).get_to(value);
    } catch (const Json::exception &error) {
      throw UserError(path + ": '" + key + "' is missing or wrong");
    }
  });
  arguments.output = arguments.resume;
  if (arguments.model.vocabs.empty())
    arguments.model.vocabs = savedVocabularies(arguments.output);
}

int runTrain(CLI::App &app, TrainArguments &arguments) {
  if (!arguments.resume.empty()) {
    for (const CLI::Option *option : app.get_options())
      if (option->count() && option->get_name() != "--resume" && option->get_name() != "--threads")
        throw UsageError(option->get_name() +
                         " is given with --resume: a training goes on as it was begun, on any "
                         "number of --threads");
    readConfig(arguments);
  } else {
    for (const char *name : {"model", "--data", "-o"})
      if (app.get_option(name)->count() == 0)
        throw UsageError(fmt::format("{} is required", name));
    arguments.weights.check();
    for (auto [name, value] : {std::pair("--beta1", arguments.beta1),
                               {"--beta2", arguments.beta2},
                               {"--momentum", arguments.momentum},
                               {"--rmsprop-decay", arguments.decay}})
      if (!(value >= 0 && value < 1))
        throw UsageError(fmt::format("{} takes a number from 0 to less than 1", name));
    if (!std::isfinite(arguments.rate))
      throw UsageError("--lr takes a finite number");
  }
  return Training(arguments).run();
}

} // namespace

void addTrain(CLI::App &app, Action &action) {
  CLI::App *sub = app.add_subcommand("train", "trains a model's parameters on data");
  auto a = std::make_shared<TrainArguments>();
  a->model.add(*sub, /*vocabulary=*/true, EntryOption::Loss);
  a->data.add(*sub);
  a->weights.add(*sub);
  a->limits.add(*sub);
  a->model.dropout = true;
  sub->remove_option(sub->get_option("--dropout"));
  // Sums follow the order in which records ran, so there is one.
  sub->remove_option(sub->get_option("--policy"));
  for (const char *name : {"model", "--data"})
    sub->get_option(name)->required(false); // --resume needs none
  auto number = [&](const char *name, auto &value, const std::string &meaning) {
    sub->add_option(name, value, meaning)->type_name("NUMBER");
  };
  sub->add_option("-o", a->output, "the directory of weights, checkpoints and log")
      ->type_name("DIRECTORY");
  sub->add_option("--resume", a->resume, "go on with the training of this directory")
      ->type_name("DIRECTORY");
  sub->add_option("--dev", a->dev, "other data, to measure after each epoch")->type_name("FILE");
  sub->add_option("--metric", a->metric,
                  "the function of the model that says how good it is; its mean over --dev decides "
                  "which weights are the best (default: the loss)")
      ->type_name("NAME");
  sub->add_option("--optimizer", a->optimizer,
                  "sgd, momentum, adam, adamw, adagrad, rmsprop or lamb (default: adam)")
      ->type_name("NAME");
  number("--lr", a->rate, "the learning rate (default: 0.001)");
  sub->add_option("--schedule", a->schedule,
                  "what becomes of it: constant, linear or cosine, to 0 (default: constant)")
      ->type_name("NAME");
  number("--warmup", a->warmup, "steps over which it grows from 0 (default: 0)");
  number("--momentum", a->momentum, "of momentum (default: 0.9)");
  number("--beta1", a->beta1, "of adam, adamw and lamb (default: 0.9)");
  number("--beta2", a->beta2, "of adam, adamw and lamb (default: 0.999)");
  number("--rmsprop-decay", a->decay, "of the squares of rmsprop (default: 0.99)");
  number("--epsilon", a->epsilon, "added to the root of squares (default: 1e-8)");
  number("--weight-decay", a->weightDecay,
         "of all parameters; apart from the gradient with adamw and lamb (default: 0)");
  sub->add_option("--no-decay", a->noDecay,
                  "parameters without weight decay; * stands for anything")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  sub->add_option("--freeze", a->frozen, "parameters that stay as they are; likewise")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  number("--clip", a->clip, "most length of all gradients together (default: no limit)");
  number("--batch", a->batch, "instances a mini-batch (default: 64)");
  number("--epochs", a->epochs, "times through the data (default: 10)");
  sub->add_option("--reduction", a->reduction,
                  "what a mini-batch takes of its losses: mean or sum (default: mean)")
      ->type_name("NAME");
  number("--threads", a->threads, "threads that run kernels; no result depends on it (default: 1)");
  number("--log-every", a->logEvery, "steps from line to line of log.jsonl (default: 10)");
  number("--keep", a->keep, "checkpoints to keep (default: 2)");
  number("--checkpoint-every", a->checkpointEvery,
         "steps from checkpoint to checkpoint, besides those of epochs (default: 0, none)");
  sub->callback([a, sub, &action] { action = [a, sub] { return runTrain(*sub, *a); }; });
}

} // namespace sheaf::tool

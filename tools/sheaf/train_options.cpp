//===- train_options.cpp - The options of sheaf train ---------------------===//
#include "tools/sheaf/train_options.h"

#include "tools/sheaf/command.h"

#include "compiler/report/ReportJson.h"
#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace sheaf::tool {

namespace fs = std::filesystem;
using driver::Json;

void TrainOptions::add(CLI::App &app) {
  model.add(app, /*vocabulary=*/true, EntryOption::Loss);
  model.addStore(app);
  data.add(app);
  weights.add(app);
  weights.addInitFrom(app);
  weights.seedGiven = nullptr; // it orders the instances, too
  limits.add(app);
  model.dropout = true;
  app.remove_option(app.get_option("--dropout"));
  // Sums follow the order in which records ran, so there is one.
  app.remove_option(app.get_option("--policy"));
  for (const char *name : {"model", "--data"})
    app.get_option(name)->required(false); // --resume needs none
  app.get_option("--seed")->description(
      "what the first weights and the order of the instances follow from");
  auto number = [&](const char *name, auto &value, const std::string &meaning) {
    app.add_option(name, value, meaning)->type_name("NUMBER");
  };
  app.add_option("-o", output, "the directory of weights, checkpoints and log")
      ->type_name("DIRECTORY");
  app.add_option("--resume", resume, "go on with the training of this directory")
      ->type_name("DIRECTORY");
  app.add_option("--dev", dev, "other data, to measure after each epoch")->type_name("FILE");
  app.add_option("--metric", metrics,
                 "a function of the model that says how good it is, over --dev: a number, or pairs "
                 "of predicted and actual class, with :SCORE for another than f1; repeatable, the "
                 "first decides which weights are the best (default: the loss)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  update.add(app);
  number("--ema", ema,
         "measure and save not the weights but their moving average, of which a step keeps this "
         "part (default: 0, none)");
  number("--epochs", epochs, "times through the data (default: 10)");
  number("--patience", patience,
         "end after so many epochs without a better one (default: 0, never)");
  app.add_option("--loss-scale", lossScale,
                 "what losses are multiplied with on the way back, so that gradients do not vanish "
                 "in f16: a number, dynamic, or auto: dynamic if the model computes in f16, else 1 "
                 "(default: auto)")
      ->type_name("SCALE");
  app.add_flag("--detect-anomaly", detectAnomaly,
               "say which instance and which block gradients that are not finite come from");
  number("--threads", threads, "threads that run kernels; no result depends on it (default: 1)");
  number("--log-every", logEvery, "steps from line to line of log.jsonl (default: 10)");
  app.add_flag("--tensorboard", tensorboard, "write the log for TensorBoard too");
  app.add_option("--html", html,
                 "write a page with curves, and with time by kernel and layer and memory")
      ->type_name("FILE");
  app.add_option("--compare", compared,
                 "other trainings on the page of --html; without a model the page alone is written")
      ->type_name("DIRECTORY")
      ->expected(1)
      ->take_all();
  format.add(app);
  number("--keep", keep, "checkpoints to keep; 0: none when it has ended (default: 2)");
  number("--checkpoint-every", checkpointEvery,
         "steps from checkpoint to checkpoint, besides those of epochs (default: 0, none)");
}

void TrainOptions::check(const CLI::App &app) {
  if (!compared.empty() && html.empty())
    throw UsageError("--compare needs --html, the page that shows them");
  for (const char *name : {"model", "--data", "-o"})
    if (app.get_option(name)->count() == 0)
      throw UsageError(fmt::format("{} is required", name));
  weights.check();
  update.check();
  requireFraction("--ema", ema);
}

rt::TrainerOptions TrainOptions::trainer(const rt::Model &loss, int64_t instances) const {
  rt::TrainerOptions options = update.trainer(weights.seed);
  int64_t each = 0, times = parseNumber("--epochs", epochs);
  if (__builtin_mul_overflow(options.batch, options.accumulate, &each))
    throw UsageError("--batch times --accumulate is too large a number");
  int64_t perEpoch = instances / each + (instances % each != 0);
  if (__builtin_mul_overflow(perEpoch, times, &options.rate.total))
    throw UsageError("--epochs " + epochs + " are too many steps to count");
  if (lossScale == "dynamic" || (lossScale == "auto" && loss.f16)) {
    options.lossScale = rt::LossScale::dynamic();
  } else if (lossScale != "auto") {
    char *end = nullptr;
    double scale = std::strtod(lossScale.c_str(), &end);
    if (*end || !(scale > 0 && std::isfinite(static_cast<float>(scale))))
      throw UsageError(fmt::format(
          "--loss-scale takes a positive number, dynamic or auto, not '{}'", lossScale));
    options.lossScale = rt::LossScale(scale);
  }
  options.averageDecay = ema > 0 ? ema : -1;
  options.findAnomalies = detectAnomaly;
  return options;
}

template <typename Self, typename Visit> void TrainOptions::visit(Self &self, Visit field) {
  field("model", self.model.model);
  field("dims", self.model.dims);
  field("constants", self.model.constants);
  field("loss", self.model.entry);
  field("without", self.model.without);
  field("target", self.model.target);
  field("target_cpu", self.model.targetCpu);
  field("target_cache", self.model.targetCache);
  field("precision", self.model.precision);
  field("dropout", self.model.dropout);
  field("vocab", self.model.vocabs);
  field("data", self.data.data);
  field("data_format", self.data.format);
  field("strict_vocab", self.data.strictVocab);
  field("strict_data", self.data.strictData);
  field("skip_bad_lines", self.data.skipBadLines);
  field("tokenizer", self.data.tokenizer);
  field("weights", self.weights.weights);
  field("strict_weights", self.weights.strict);
  field("rename", self.weights.renames);
  field("init_from", self.weights.initFrom);
  field("fresh", self.weights.fresh);
  field("seed", self.weights.seed);
  field("sample_seed", self.limits.sampleSeed);
  field("memory_limit", self.limits.memoryLimitText);
  field("fold_memory", self.limits.foldMemoryText);
  field("max_depth", self.limits.maxDepthText);
  field("max_steps", self.limits.maxStepsText);
  field("fibers", self.limits.fibersText);
  field("forks", self.limits.forksText);
  field("hostile", self.limits.hostile);
  field("dev", self.dev);
  field("metric", self.metrics);
  field("optimizer", self.update.optimizer);
  field("schedule", self.update.schedule);
  field("reduction", self.update.reduction);
  field("loss_scale", self.lossScale);
  field("lr", self.update.rate);
  field("momentum", self.update.momentum);
  field("beta1", self.update.beta1);
  field("beta2", self.update.beta2);
  field("decay", self.update.decay);
  field("epsilon", self.update.epsilon);
  field("weight_decay", self.update.weightDecay);
  field("clip", self.update.clip);
  field("ema", self.ema);
  field("freeze", self.update.frozen);
  field("no_decay", self.update.noDecay);
  field("lr_for", self.update.rates);
  field("decay_for", self.update.decays);
  field("warmup", self.update.warmup);
  field("batch", self.update.batch);
  field("accumulate", self.update.accumulate);
  field("parts", self.update.parts);
  field("sums", self.sums);
  field("epochs", self.epochs);
  field("patience", self.patience);
  field("log_every", self.logEvery);
  field("tensorboard", self.tensorboard);
  field("detect_anomaly", self.detectAnomaly);
  field("keep", self.keep);
  field("checkpoint_every", self.checkpointEvery);
  field("hashes", self.hashes);
  field("history", self.history);
  field("ended", self.hasEnded);
}

void TrainOptions::save(const std::string &path) const {
  Json config;
  visit(*this, [&](const char *key, const auto &value) { config[key] = value; });
  io::AtomicFile file(path);
  file.write(driver::jsonText(config));
  file.commit();
}

/// The vocabularies of a training, as --vocab takes them.
static std::vector<std::string> savedVocabularies(const std::string &directory) {
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

namespace {

/// Options that change nothing of what a training is.
constexpr std::array kChangeNothing = {"--resume", "--threads", "--format", "--store",
                                       "--html",   "--compare", "--waves"};
/// Options that may be others where it goes on.
constexpr std::array kMayChange = {"--epochs",       "--lr",
                                   "--schedule",     "--warmup",
                                   "--lr-for",       "--decay-for",
                                   "--weight-decay", "--clip",
                                   "--patience",     "--keep",
                                   "--log-every",    "--tensorboard",
                                   "--max-depth",    "--checkpoint-every",
                                   "--memory-limit", "--max-steps",
                                   "--fold-memory",  "--fibers",
                                   "--forks",        "--detect-anomaly",
                                   "--target-cache"};
/// Members that there were not always: older trainings have their defaults.
constexpr std::array kLater = {
    "precision", "strict_weights", "rename",  "init_from", "fresh",       "lr_for",
    "decay_for", "patience",       "history", "ended",     "strict_data", "skip_bad_lines",
    "forks",     "target_cache",   "target",  "tokenizer", "constants",   "parts"};

template <typename Names> bool isAmong(const Names &names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The option that gives the value of a member of config.json.
std::string optionOf(std::string_view key) {
  std::string option = "--" + std::string(key);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

} // namespace

bool TrainOptions::hasChanged(std::string_view option) const {
  return std::any_of(changes.begin(), changes.end(), [&](const std::string &change) {
    return change.starts_with(std::string(option) + " ");
  });
}

void TrainOptions::read(const CLI::App &app) {
  std::vector<std::string> given;
  for (const CLI::Option *option : app.get_options()) {
    if (!option->count() || isAmong(kChangeNothing, option->get_name()))
      continue;
    if (!isAmong(kMayChange, option->get_name()))
      throw UsageError(option->get_name() +
                       " is given with --resume: a training goes on as it was begun, but for " +
                       fmt::format("{}", fmt::join(kMayChange, ", ")));
    given.push_back(option->get_name());
  }
  std::string path = resume + "/config.json";
  std::ifstream file(path);
  if (!file)
    throw UserError(path + ": cannot be read; is '" + resume + "' a training?");
  Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  visit(*this, [&](const char *key, auto &value) {
    bool isThere = config.is_object() && config.contains(key);
    if (std::string_view(key) == "sums") { // what it goes on with, whatever it was begun with
      Json before = isThere ? config.at(key) : Json(1);
      if (before != Json(sums))
        changes.push_back(
            fmt::format("gradients summed in order {} instead of {}: last bits differ "
                        "from those of a training that goes on as it was begun",
                        sums, before.dump()));
      return;
    }
    if (isAmong(given, optionOf(key))) {
      Json before = isThere ? config.at(key) : Json(nullptr), now = value;
      if (before != now)
        changes.push_back(
            fmt::format("{} {} instead of {}", optionOf(key), now.dump(), before.dump()));
      return;
    }
    if (!isThere && config.is_object() && isAmong(kLater, key))
      return;
    // There was one metric once.
    if (isThere && std::string_view(key) == "metric" && config.at(key).is_string())
      config[key] = config.at(key) == "" ? Json::array() : Json::array({config.at(key)});
    try {
      config.at(key).get_to(value);
    } catch (const Json::exception &error) {
      throw UserError(path + ": '" + key + "' is missing or wrong");
    }
  });
  update.check();
  output = resume;
  if (model.vocabs.empty())
    model.vocabs = savedVocabularies(output);
}

} // namespace sheaf::tool

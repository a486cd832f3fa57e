//===- train_options.cpp - The options of sheaf train ---------------------===//
#include "tools/sheaf/train_options.h"

#include "tools/sheaf/command.h"

#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

namespace sheaf::tool {

namespace fs = std::filesystem;

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
  app.add_option(
         "--loss-scale", lossScale,
         "what losses are multiplied with in the backward pass, so that gradients do not vanish "
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

/// Each option with its place in config.json.
template <typename Self, typename Visit> void TrainOptions::visit(Self &self, Visit field) {
  using Config = fit::TrainConfig;
  field(self.model.model, &Config::model);
  field(self.model.dims, &Config::dims);
  field(self.model.constants, &Config::constants);
  field(self.model.entry, &Config::loss);
  field(self.model.without, &Config::without);
  field(self.model.target, &Config::target);
  field(self.model.targetCpu, &Config::targetCpu);
  field(self.model.targetCache, &Config::targetCache);
  field(self.model.precision, &Config::precision);
  field(self.model.dropout, &Config::dropout);
  field(self.model.vocabs, &Config::vocab);
  field(self.data.data, &Config::data);
  field(self.data.format, &Config::dataFormat);
  field(self.data.strictVocab, &Config::strictVocab);
  field(self.data.strictData, &Config::strictData);
  field(self.data.skipBadLines, &Config::skipBadLines);
  field(self.data.tokenizer, &Config::tokenizer);
  field(self.weights.weights, &Config::weights);
  field(self.weights.strict, &Config::strictWeights);
  field(self.weights.renames, &Config::rename);
  field(self.weights.initFrom, &Config::initFrom);
  field(self.weights.fresh, &Config::fresh);
  field(self.ownWeights, &Config::ownWeights);
  field(self.weights.seed, &Config::seed);
  field(self.limits.sampleSeed, &Config::sampleSeed);
  field(self.limits.memoryLimitText, &Config::memoryLimit);
  field(self.limits.foldMemoryText, &Config::foldMemory);
  field(self.limits.maxDepthText, &Config::maxDepth);
  field(self.limits.maxStepsText, &Config::maxSteps);
  field(self.limits.fibersText, &Config::fibers);
  field(self.limits.forksText, &Config::forks);
  field(self.limits.hostile, &Config::hostile);
  field(self.dev, &Config::dev);
  field(self.metrics, &Config::metric);
  field(self.update.optimizer, &Config::optimizer);
  field(self.update.schedule, &Config::schedule);
  field(self.update.reduction, &Config::reduction);
  field(self.lossScale, &Config::lossScale);
  field(self.update.rate, &Config::rate);
  field(self.update.momentum, &Config::momentum);
  field(self.update.beta1, &Config::beta1);
  field(self.update.beta2, &Config::beta2);
  field(self.update.decay, &Config::decay);
  field(self.update.epsilon, &Config::epsilon);
  field(self.update.weightDecay, &Config::weightDecay);
  field(self.update.clip, &Config::clip);
  field(self.ema, &Config::ema);
  field(self.update.frozen, &Config::freeze);
  field(self.update.noDecay, &Config::noDecay);
  field(self.update.rates, &Config::rateFor);
  field(self.update.decays, &Config::decayFor);
  field(self.update.rateFactors, &Config::rateFactors);
  field(self.update.warmup, &Config::warmup);
  field(self.update.batch, &Config::batch);
  field(self.update.accumulate, &Config::accumulate);
  field(self.update.parts, &Config::parts);
  field(self.epochs, &Config::epochs);
  field(self.patience, &Config::patience);
  field(self.logEvery, &Config::logEvery);
  field(self.tensorboard, &Config::tensorboard);
  field(self.detectAnomaly, &Config::detectAnomaly);
  field(self.keep, &Config::keep);
  field(self.checkpointEvery, &Config::checkpointEvery);
  field(self.hashes, &Config::hashes);
  field(self.history, &Config::history);
  field(self.hasEnded, &Config::ended);
}

fit::TrainConfig TrainOptions::config() const {
  fit::TrainConfig config;
  visit(*this, [&](const auto &value, auto member) { config.*member = value; });
  return config;
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
template <typename Names> bool isAmong(const Names &names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

bool TrainOptions::hasChanged(std::string_view option) const {
  return std::any_of(changes.begin(), changes.end(), [&](const std::string &change) {
    return change.starts_with(std::string(option) + " ");
  });
}

void TrainOptions::decideHoisting() {
  // The order of gradients' sums follows from it: a training stays with what it was begun with.
  model.limited = false;
  if (resume.empty() && !limits.memoryLimitText.empty() && !isAmong(model.without, kHoistRows))
    model.without.emplace_back(kHoistRows);
}

void TrainOptions::read(const CLI::App &app) {
  std::string path = resume + "/config.json";
  if (!io::isFile(path))
    throw UserError(path + ": cannot be read; is '" + resume + "' a training?");
  fit::TrainConfig now = config(), before;
  before.load(path);
  std::set<std::string> given;
  for (const CLI::Option *option : app.get_options()) {
    const std::string &name = option->get_name();
    if (!option->count() || isAmong(kChangeNothing, name))
      continue;
    if (!isAmong(kMayChange, name) && !isAmong(before.untold, name))
      throw UsageError(name +
                       " is given with --resume: a training goes on as it was begun, but for " +
                       fmt::format("{}", fmt::join(kMayChange, ", ")));
    given.insert(name);
  }
  for (const std::string &option : before.untold)
    if (!given.contains(option))
      throw UsageError(fmt::format("{} was begun by a program, which did not tell {}: --resume "
                                   "needs what is given for it",
                                   resume, option));
  // What it goes on with is the order of sums of now, whatever it was begun with.
  fit::forEachConfigMember([&](const char *key, auto member) {
    if (!given.contains(fit::configOption(key)) && std::string_view(key) != "sums")
      now.*member = before.*member;
  });
  changes = fit::configChanges(before, now);
  visit(*this, [&](auto &value, auto member) { value = now.*member; });
  update.check();
  output = resume;
  if (model.vocabs.empty())
    model.vocabs = savedVocabularies(output);
}

} // namespace sheaf::tool

//===- grad_check.cpp - sheaf grad-check ----------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/failure.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/progress.h"
#include "tools/sheaf/update_options.h"
#include "tools/sheaf/weights.h"

#include "compiler/verify/GradCheck.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct GradCheckArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string directions = "2";
  std::string limit = "16";
  std::string steps;
  bool inputs = false;
  UpdateOptions update;
  FormatOption format;
};

driver::TrainCheckReport checkTraining(const GradCheckArguments &arguments, const LoadedRun &run,
                                       const std::function<void(rt::Session &)> &initialise,
                                       const driver::GradCheckOptions &gradients) {
  driver::TrainCheckOptions options;
  options.steps = parseNumber("--steps", arguments.steps);
  options.session = gradients.session;
  if (driver::roundsTo16Bits(*run.compiled))
    options.tolerance = driver::TrainCheckOptions::k16BitTolerance;
  options.trainer = arguments.update.trainer(arguments.weights.seed);
  options.trainer.rate.total = options.steps;
  options.frozen = frozenParams(run.model(), arguments.update.frozen);
  options.updates = arguments.update.paramUpdates(run.model());
  Progress bar("training", options.steps);
  options.progress = [&] { bar.step(); };
  return driver::checkTraining(*run.compiled, run.instances, initialise, options);
}

int checkGradients(GradCheckArguments &arguments) {
  bool asJson = arguments.format.json();
  driver::GradCheckOptions options;
  options.directions = parseNumber("--directions", arguments.directions);
  options.inputs = arguments.model.inputGradients = arguments.inputs;
  arguments.weights.check();
  arguments.limits.check(arguments.model);
  arguments.update.check();
  if (!arguments.steps.empty()) { // wrong ones are told before anything is compiled
    parseNumber("--steps", arguments.steps);
    arguments.update.trainer(0);
  }
  LoadedRun run = loadRun(arguments.model, arguments.data, arguments.weights,
                          parseNumber("--limit", arguments.limit));
  driver::requireLoss(run.model());
  options.session = sessionOptions(arguments.limits, 1, run.model());
  if (driver::roundsTo16Bits(*run.compiled))
    options.tolerance = driver::GradCheckOptions::k16BitTolerance;
  std::function<void(rt::Session &)> initialise = weightSetter(arguments.weights, run);
  std::unique_ptr<Progress> bar;
  options.progress = [&](int64_t, int64_t total) {
    if (!bar)
      bar = std::make_unique<Progress>("finite differences", total);
    bar->step();
  };
  driver::GradCheckReport report =
      driver::checkGradients(*run.compiled, run.instances, initialise, options);
  bar.reset();
  if (!arguments.steps.empty() && report.problem.empty())
    report.training = checkTraining(arguments, run, initialise, options);
  fmt::print("{}", asJson ? gradCheckJson(report) : gradCheckText(report));
  bool ok = report.ok && (!report.training || report.training->ok);
  if (!ok)
    tellFailure(driver::whatIsWrong(report));
  return ok ? kOk : kFailed;
}

} // namespace

void addGradCheck(CLI::App &app, Action &action) {
  CLI::App *sub =
      addCommand(app, "grad-check",
                 "compares gradients with those of the oracle in f64, and these with differences");
  auto arguments = std::make_shared<GradCheckArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true, EntryOption::Loss);
  arguments->model.addStore(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  sub->add_option(
         "--directions", arguments->directions,
         "finite differences of each parameter, each along a random direction in which all "
         "of its elements change (default: 2)")
      ->type_name("N");
  sub->add_option("--limit", arguments->limit, "instances at most (default: 16)")->type_name("N");
  sub->add_flag("--inputs", arguments->inputs,
                "compare the gradients of the tensors in arguments as well");
  CLI::Option *steps =
      sub->add_option(
             "--steps", arguments->steps,
             "train so many steps as well, as compiled and by the oracle in f64, and compare "
             "the losses")
          ->type_name("N");
  for (CLI::Option *option : arguments->update.add(*sub))
    option->needs(steps);
  arguments->format.add(*sub);
  sub->callback(
      [arguments, &action] { action = [arguments] { return checkGradients(*arguments); }; });
}

} // namespace sheaf::tool

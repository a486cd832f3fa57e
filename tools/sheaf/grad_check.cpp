//===- grad_check.cpp - sheaf grad-check ----------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/driver/GradCheck.h"
#include "runtime/io/progress.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct GradCheckArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string samples = "8";
  std::string limit = "16";
  FormatOption format;
};

int checkGradients(GradCheckArguments &arguments) {
  bool asJson = arguments.format.json();
  driver::GradCheckOptions options;
  options.samples = parseNumber("--samples", arguments.samples);
  arguments.weights.check();
  arguments.limits.check();
  LoadedRun run = loadRun(arguments.model, arguments.data, arguments.weights,
                          parseNumber("--limit", arguments.limit));
  driver::requireLoss(run.model());
  options.session = sessionOptions(arguments.limits, 1, run.model());
  if (run.compiled->precision() == driver::Precision::Bf16)
    options.tolerance = driver::GradCheckOptions::kBf16Tolerance;
  std::unique_ptr<io::Progress> bar;
  options.progress = [&](int64_t, int64_t total) {
    if (!bar)
      bar = std::make_unique<io::Progress>("finite differences", total);
    bar->step();
  };
  driver::GradCheckReport report = driver::checkGradients(
      *run.compiled, run.instances, weightSetter(arguments.weights, run.vocabularies), options);
  bar.reset();
  fmt::print("{}", asJson ? gradCheckJson(report) : gradCheckText(report));
  return report.ok ? kOk : kFailed;
}

} // namespace

void addGradCheck(CLI::App &app, Action &action) {
  CLI::App *sub = app.add_subcommand(
      "grad-check", "compares gradients with finite differences of the oracle in f64");
  auto arguments = std::make_shared<GradCheckArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true, EntryOption::Loss);
  arguments->model.addStore(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  sub->add_option("--samples", arguments->samples, "elements of each parameter (default: 8)")
      ->type_name("N");
  sub->add_option("--limit", arguments->limit, "instances at most (default: 16)")->type_name("N");
  arguments->format.add(*sub);
  sub->callback(
      [arguments, &action] { action = [arguments] { return checkGradients(*arguments); }; });
}

} // namespace sheaf::tool

//===- tune.cpp - sheaf tune ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/progress.h"
#include "tools/sheaf/weights.h"

#include "compiler/bench/Tune.h"
#include "compiler/verify/GradCheck.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

namespace sheaf::tool {

namespace {

struct TuneArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  BatchOptions batches;
  FormatOption format;
  double seconds = 30;
  bool train = false;
};

/// A bar whose length becomes known, and changes, on the way.
class Bar {
public:
  void show(size_t done, size_t total) {
    if (!bar_ || total != total_) {
      bar_.reset();
      bar_ = std::make_unique<Progress>("tuning", static_cast<int64_t>(total));
      total_ = total;
      done_ = 0;
    }
    bar_->step(static_cast<int64_t>(done - done_));
    done_ = done;
  }

private:
  std::unique_ptr<Progress> bar_;
  size_t done_ = 0, total_ = 0;
};

int runTune(TuneArguments &arguments) {
  bool asJson = arguments.format.json();
  if (!(arguments.seconds > 0) || std::isinf(arguments.seconds))
    throw UsageError("--seconds takes a positive number");
  arguments.batches.check();
  arguments.weights.check();
  arguments.limits.check(arguments.model);
  arguments.model.training = arguments.train;
  arguments.model.dropout |= arguments.train;
  if (arguments.train && !arguments.model.entryGiven->count())
    arguments.model.entry = "loss";
  driver::CompileOptions compile = compileOptions(arguments.model);
  auto warn = [](const std::vector<std::string> &warnings) {
    for (const std::string &warning : warnings)
      fmt::print(stderr, "warning: {}\n", warning);
  };
  warn(driver::requireStore(compile.store));

  LoadedRun run = loadRun(arguments.model, arguments.data, arguments.weights);
  if (arguments.train)
    driver::requireLoss(run.model());
  if (run.instances.empty())
    throw UserError(arguments.data.data + " holds no instance to time kernels with");
  bindSizes(run.vocabularies, compile);
  driver::TuneOptions options;
  options.session = sessionOptions(arguments.limits, arguments.batches.threads, run.model());
  options.batch = static_cast<size_t>(arguments.batches.batch);
  options.seconds = arguments.seconds;
  auto bar = std::make_unique<Bar>();
  options.progress = [&](size_t done, size_t total) { bar->show(done, total); };
  driver::TuneReport report = driver::tune(*run.source, compile, run.instances,
                                           weightSetter(arguments.weights, run), options);
  bar.reset();
  warn(report.kept.warnings);
  fmt::print("{}", asJson ? driver::tuneJson(report) : driver::tuneText(report));
  return report.kept.problem.empty() ? kOk : kFailed;
}

} // namespace

void addTune(CLI::App &app, Action &action) {
  CLI::App *sub =
      addCommand(app, "tune",
                 "times the kernels of a model on its data, cut in different ways, and keeps the "
                 "fastest in the store");
  auto arguments = std::make_shared<TuneArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  arguments->batches.add(*sub);
  sub->add_option("--seconds", arguments->seconds, "about how long it may take (default: 30)")
      ->type_name("S");
  sub->add_flag("--train", arguments->train,
                "the kernels of a training of the function --entry (default: loss), forward and "
                "back");
  arguments->format.add(*sub);
  sub->callback([arguments, &action] { action = [arguments] { return runTune(*arguments); }; });
}

} // namespace sheaf::tool

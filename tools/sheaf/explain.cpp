//===- explain.cpp - sheaf explain ----------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/output_file.h"
#include "tools/sheaf/weights.h"

#include "compiler/report/Explain.h"
#include "compiler/report/HtmlReport.h"
#include "compiler/report/MemoryReport.h"
#include "runtime/io/text.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct ExplainArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  BatchOptions batches;
  std::string repetitions = "9";
  FormatOption format;
  std::string html;
  bool memory = false;
};

/// What a mini-batch holds in memory, and nothing that takes time to measure.
int explainMemory(const ExplainArguments &arguments, const LoadedRun &run,
                  rt::SessionOptions options) {
  options.weightsStay = !options.hostile; // as in `run`
  rt::Session session(run.model(), options);
  weightSetter(arguments.weights, run)(session);
  driver::MemoryReport report = driver::reportMemory(*run.compiled, session, run.instances);
  if (arguments.format.json())
    fmt::print("{}", driver::jsonText(driver::reportJson(
                         "memory", 1, driver::memoryReportJson(*run.compiled, report))));
  else
    fmt::print("{}", driver::memoryReportText(*run.compiled, report));
  return report.failed ? kFailed : kOk;
}

void print(const ExplainArguments &arguments, const LoadedModel &loaded,
           const driver::RunReport *report) {
  const driver::CompiledModel &model = *loaded.compiled;
  if (!arguments.html.empty()) {
    std::string page = driver::htmlReport(driver::explainJson(model, report, *loaded.source));
    OutputFile file(arguments.html);
    file.write(page);
    file.finish();
    // Where the page itself is the output, it says enough.
    if (arguments.html != "-")
      note(fmt::format("wrote {}: a page of a mini-batch of {}, {}", arguments.html,
                       io::plural(report->instances, "instance"),
                       driver::bytesText(static_cast<double>(page.size()))));
  } else if (arguments.format.json()) {
    fmt::print("{}", driver::explainJson(model, report, *loaded.source));
  } else {
    // What was asked with data is what these come to; the model's own account goes on for long.
    fmt::print("{}{}",
               report ? driver::runReportText(model, *report, *loaded.source) + "\nthe model\n\n"
                      : "",
               driver::explainText(model));
  }
}

int runExplain(ExplainArguments &arguments) {
  arguments.format.json(); // whether it is one
  checkOutputs({arguments.html},
               {arguments.model.model, arguments.data.data, arguments.weights.weights});
  if (arguments.data.data.empty()) {
    if (!arguments.html.empty())
      throw UsageError("--html draws a mini-batch: give --data");
    if (arguments.memory)
      throw UsageError("--memory is that of a mini-batch: give --data");
    print(arguments, loadModel(arguments.model), nullptr);
    return kOk;
  }
  arguments.batches.check();
  arguments.weights.check();
  arguments.limits.check(arguments.model);
  driver::RunReportOptions options;
  options.repetitions = parseNumber("--repetitions", arguments.repetitions);
  InterruptGuard guard(arguments.html);
  LoadedRun run =
      loadRun(arguments.model, arguments.data, arguments.weights, arguments.batches.batch);
  options.session = sessionOptions(arguments.limits, arguments.batches.threads, run.model());
  if (arguments.memory)
    return explainMemory(arguments, run, options.session);
  driver::RunReport report = driver::reportRun(*run.compiled, run.instances,
                                               weightSetter(arguments.weights, run), options);
  print(arguments, run, &report);
  return report.failed ? kFailed : kOk;
}

} // namespace

void addExplain(CLI::App &app, Action &action) {
  CLI::App *sub =
      addCommand(app, "explain",
                 "says what was shared and fused, what was not and why; with --data, what a "
                 "mini-batch did and where its rows were few");
  auto arguments = std::make_shared<ExplainArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->model.addVerbose(*sub);
  arguments->data.add(*sub, /*required=*/false);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  arguments->batches.add(*sub);
  sub->add_option("--repetitions", arguments->repetitions,
                  "of the mini-batch; the shortest is told (default: 9)")
      ->type_name("N");
  arguments->format.add(*sub);
  CLI::Option *html =
      sub->add_option("--html", arguments->html, "write a page that draws the mini-batch instead")
          ->type_name("FILE")
          ->excludes("--format");
  sub->add_flag("--memory", arguments->memory,
                "only what the mini-batch holds in memory, and at the peak for what")
      ->excludes(html);
  sub->callback([arguments, &action] { action = [arguments] { return runExplain(*arguments); }; });
}

} // namespace sheaf::tool

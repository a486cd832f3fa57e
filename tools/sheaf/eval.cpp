//===- eval.cpp - sheaf eval ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/measures.h"
#include "tools/sheaf/read_notes.h"
#include "tools/sheaf/weights.h"

#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace sheaf::tool {

namespace {

struct EvalArguments {
  ModelOptions model;
  std::vector<std::string> metrics;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  BatchOptions batches;
  FormatOption format;
};

/// More classes than these are no table on a screen.
constexpr size_t kMostColumns = 20;

std::string classesText(const fit::Measure &measure, const LoadedRun &run) {
  std::vector<rt::Confusion::Class> classes = measure.confusion->classes();
  std::vector<std::string> names = {"class", "mean"};
  for (const rt::Confusion::Class &one : classes)
    names.push_back(fit::className(run.model(), run.vocabularies, one.number));
  auto width = std::max_element(names.begin(), names.end(), [](auto &a, auto &b) {
                 return a.size() < b.size();
               })->size();
  auto row = [&](const std::string &name, const rt::ClassScores &s, const std::string &count) {
    return fmt::format("  {:<{}}  {:9.4f}  {:6.4f}  {:6.4f}  {:>8}\n", name, width, s.precision,
                       s.recall, s.f1, count);
  };
  std::string text = fmt::format("  {:<{}}  precision  recall      f1    actual\n", "class", width);
  for (size_t i = 0; i < classes.size(); ++i)
    text += row(names[i + 2], classes[i].scores(), std::to_string(classes[i].actual));
  return text + row("mean", measure.confusion->macro(), std::to_string(measure.confusion->total()));
}

std::string confusionText(const fit::Measure &measure, const LoadedRun &run) {
  std::vector<rt::Confusion::Class> classes = measure.confusion->classes();
  const auto &counts = measure.confusion->counts();
  if (classes.size() > kMostColumns) {
    std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> wrong;
    for (const auto &[which, times] : counts)
      if (which.first != which.second)
        wrong.emplace_back(-times, which);
    std::sort(wrong.begin(), wrong.end());
    std::string text = "  most often taken for another:\n";
    for (size_t i = 0; i < std::min(wrong.size(), kMostColumns); ++i)
      text += fmt::format(
          "  {} as {}: {}\n", fit::className(run.model(), run.vocabularies, wrong[i].second.first),
          fit::className(run.model(), run.vocabularies, wrong[i].second.second), -wrong[i].first);
    return text;
  }
  size_t width = 9, first = 6;
  for (const rt::Confusion::Class &one : classes) {
    width = std::max(width, fit::className(run.model(), run.vocabularies, one.number).size());
    first = std::max(first, fit::className(run.model(), run.vocabularies, one.number).size());
  }
  std::string text = fmt::format("  {:<{}}", "actual", first);
  for (const rt::Confusion::Class &one : classes)
    text +=
        fmt::format("  {:>{}}", fit::className(run.model(), run.vocabularies, one.number), width);
  text += "  (predicted)\n";
  for (const rt::Confusion::Class &actual : classes) {
    text += fmt::format("  {:<{}}", fit::className(run.model(), run.vocabularies, actual.number),
                        first);
    for (const rt::Confusion::Class &predicted : classes) {
      auto it = counts.find({actual.number, predicted.number});
      text += fmt::format("  {:>{}}", it == counts.end() ? 0 : it->second, width);
    }
    text += '\n';
  }
  return text;
}

std::string measureText(const fit::Measure &measure, const LoadedRun &run) {
  const std::string &name = run.model().entry.name;
  if (!measure.confusion)
    return fmt::format("{} {} over {} instances\n", name, valueText(measure), measure.instances);
  rt::ClassScores scores = measure.scores();
  return fmt::format("{} accuracy {:.4f}, precision {:.4f}, recall {:.4f}, f1 {:.4f} over {} "
                     "predictions of {} instances\n",
                     name, measure.confusion->accuracy(), scores.precision, scores.recall,
                     scores.f1, measure.confusion->total(), measure.instances) +
         classesText(measure, run) + confusionText(measure, run);
}

driver::Json measureJson(const fit::Measure &measure, const LoadedRun &run) {
  driver::Json json = {{"function", run.model().entry.name},
                       {"instances", measure.instances},
                       {"failed", measure.failed}};
  if (measure.failed)
    json["first_failure"] = measure.error;
  if (!measure.confusion) {
    json["mean"] = valueJson(measure);
    return json;
  }
  auto add = [](driver::Json &to, const rt::ClassScores &scores) {
    to["precision"] = scores.precision;
    to["recall"] = scores.recall;
    to["f1"] = scores.f1;
  };
  json["predictions"] = measure.confusion->total();
  json["accuracy"] = measure.confusion->accuracy();
  add(json, measure.scores());
  driver::Json classes = driver::Json::array(), confusion = driver::Json::array();
  for (const rt::Confusion::Class &one : measure.confusion->classes()) {
    driver::Json entry = {{"class", fit::className(run.model(), run.vocabularies, one.number)},
                          {"actual", one.actual},
                          {"predicted", one.predicted}};
    add(entry, one.scores());
    classes.push_back(entry);
  }
  for (const auto &[which, times] : measure.confusion->counts())
    confusion.push_back({{"actual", fit::className(run.model(), run.vocabularies, which.first)},
                         {"predicted", fit::className(run.model(), run.vocabularies, which.second)},
                         {"times", times}});
  json["classes"] = classes;
  json["confusion"] = confusion;
  return json;
}

int runEval(EvalArguments &arguments) {
  bool asJson = arguments.format.json();
  arguments.batches.check();
  arguments.weights.check();
  arguments.limits.check(arguments.model);
  std::vector<fit::Metric> metrics;
  for (const std::string &metric : arguments.metrics)
    metrics.push_back(parseMetric(metric));
  driver::Json all = driver::Json::array();
  std::string model;
  int code = kOk;
  ReadNotes notes;
  InputFiles files;
  for (const fit::Metric &metric : metrics) {
    ModelOptions options = arguments.model;
    options.entry = metric.function;
    LoadedRun run = loadRun(options, arguments.data, arguments.weights, INT64_MAX, &notes, &files);
    fit::requireMeasure(run.model(), metric);
    rt::SessionOptions sessionSettings =
        sessionOptions(arguments.limits, arguments.batches.threads, run.model());
    sessionSettings.weightsStay = !sessionSettings.hostile;
    rt::Session session(run.model(), sessionSettings);
    if (run.compiled)
      setWeights(session, arguments.weights, run, /*quiet=*/!model.empty());
    model = run.model().name;
    fit::Measure measure = *evaluate(session, dataOf(run), metric, arguments.batches.batch);
    if (asJson)
      all.push_back(measureJson(measure, run));
    else
      fmt::print("{}", measureText(measure, run));
    if (measure.failed) {
      std::fflush(stdout);
      fmt::print(stderr, "error: {} of {} instances failed; the first: {}\n", measure.failed,
                 run.instances.size(), measure.error);
      code = kFailed;
    }
  }
  notes.noteIgnored();
  if (asJson)
    fmt::print("{}", driver::jsonText(
                         driver::reportJson("eval", 2, {{"model", model}, {"metrics", all}})));
  return code;
}

} // namespace

void addEval(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "eval", "measures of the model over data");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true, EntryOption::Metric);
  sub->add_option("--metric", arguments->metrics,
                  "a function of the model: a loss, whether an answer is right, or a pair of the "
                  "predicted and the actual class; repeatable")
      ->required()
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  arguments->model.addStore(*sub);
  arguments->model.addArtefact(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  arguments->batches.add(*sub);
  arguments->format.add(*sub);
  sub->callback([arguments, &action] { action = [arguments] { return runEval(*arguments); }; });
}

} // namespace sheaf::tool

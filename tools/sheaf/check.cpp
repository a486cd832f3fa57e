//===- check.cpp - sheaf check --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/failure.h"
#include "tools/sheaf/fits.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/report/ReportJson.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

using driver::Json;

struct CheckArguments {
  ModelOptions model;
  FormatOption format;
  std::string fits;
  CLI::Option *fitsGiven = nullptr;
  std::string memoryLimit;
};

/// A place and a message; lines and columns count from 1, `end` is after the last character.
Json findingJson(const SourceFile &source, SourceRange range, const std::string &message) {
  LineColumn begin = source.lineColumn(range.begin), end = source.lineColumn(range.end);
  Json json = {{"line", begin.line},
               {"column", begin.column},
               {"end_line", end.line},
               {"end_column", end.column},
               {"message", message}};
  if (const SourceText &file = source.fileOf(range.begin); &file != &source.files().front())
    json["file"] = file.name();
  return json;
}

Json diagnosticsJson(const Diagnostics &diags) {
  Json all = Json::array();
  for (const Diagnostic *diagnostic : diags.inSourceOrder()) {
    Json json = {{"severity", severityName(diagnostic->severity)}};
    json.update(findingJson(diags.file(), diagnostic->range, diagnostic->message));
    if (!diagnostic->help.empty())
      json["help"] = diagnostic->help;
    Json notes = Json::array();
    for (const DiagnosticNote &note : diagnostic->notes)
      notes.push_back(findingJson(diags.file(), note.range, note.message));
    json["notes"] = notes;
    all.push_back(json);
  }
  return all;
}

/// Whether a mini-batch fits in memory.
int runFits(const CheckArguments &arguments) {
  bool asJson = arguments.format.json();
  uint64_t limit = parseBytes("--memory-limit", arguments.memoryLimit);
  LoadedModel loaded = loadModel(arguments.model);
  driver::MemoryFormula formula = loaded.compiled->memoryFormula();
  driver::FitsQuestion question = parseFits(arguments.fits, driver::sizeNames(formula));
  question.limit = limit;
  // Once more, of such instances alone.
  if (!question.most.empty())
    formula = loaded.compiled->memoryFormula(question.most);
  driver::FitsReport report = driver::reportFits(*loaded.compiled, formula, question);
  const std::string &source = loaded.source->name();
  fmt::print("{}", asJson ? driver::fitsJson(report, source) : driver::fitsText(report, source));
  return report.fits() ? kOk : kFailed;
}

int runCheck(const CheckArguments &arguments) {
  if (arguments.fitsGiven->count() > 0)
    return runFits(arguments);
  bool asJson = arguments.format.json();
  driver::CompileOptions compile = compileOptions(arguments.model);
  SourceFile source = readModel(arguments.model);
  Diagnostics diags(source);
  driver::check(source, compile, diags);
  if (asJson)
    fmt::print("{}", driver::jsonText(driver::reportJson("check", 1,
                                                         {{"source", source.name()},
                                                          {"ok", !diags.hasErrors()},
                                                          {"errors", diags.errorCount()},
                                                          {"findings", diagnosticsJson(diags)}})));
  else
    printDiagnostics(diags);
  if (diags.hasErrors())
    for (const Diagnostic *diagnostic : diags.inSourceOrder())
      if (diagnostic->severity == Severity::Error) {
        tellFailure("error: " + diagnostic->message);
        break;
      }
  // No run can begin here, which need not be a mistake.
  if (!diags.hasErrors())
    if (std::string missing = missingEntry(source, arguments.model); !missing.empty())
      note(missing);
  return diags.hasErrors() ? kFailed : kOk;
}

} // namespace

void addCheck(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "check",
                             "types, shapes, exhaustive matches; with --fits, whether "
                             "a mini-batch fits in memory");
  auto arguments = std::make_shared<CheckArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->format.add(*sub);
  arguments->fitsGiven =
      sub->add_option("--fits", arguments->fits,
                      "prove that a mini-batch of inference fits in --memory-limit, whatever its "
                      "data: 'batch=64, words<=512'")
          ->type_name("SIZES");
  CLI::Option *limit = sub->add_option("--memory-limit", arguments->memoryLimit,
                                       "of --fits: bytes; K, M, G and T are understood")
                           ->type_name("BYTES")
                           ->needs(arguments->fitsGiven);
  arguments->fitsGiven->needs(limit);
  sub->callback([arguments, &action] { action = [arguments] { return runCheck(*arguments); }; });
}

} // namespace sheaf::tool

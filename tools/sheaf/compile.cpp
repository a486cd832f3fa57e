//===- compile.cpp - sheaf compile ----------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/output_file.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct CompileArguments {
  ModelOptions model;
  std::string phase;
  std::string output;
};

std::string phaseNames() {
  std::string names;
  for (const driver::PhaseInfo &info : driver::kPhases)
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

int runCompile(const CompileArguments &arguments) {
  std::optional<driver::Phase> phase = driver::phaseByName(arguments.phase);
  if (arguments.phase.empty() && arguments.model.dump.empty())
    throw UsageError("--emit PHASE or --dump DIR is required");
  if (!phase && !arguments.phase.empty())
    throw UsageError(
        fmt::format("there is no phase '{}'; --emit takes {}", arguments.phase, phaseNames()));
  checkOutputs({arguments.output}, {arguments.model.model});
  InterruptGuard guard(arguments.output);
  driver::CompileOptions options = compileOptions(arguments.model);
  SourceFile source = readModel(arguments.model);
  Diagnostics diags(source);
  bindVocabularyFiles(arguments.model, options);
  dumpPhases(source, options, arguments.model.dump);
  // The check tells what a dump that ended early did not.
  std::string text;
  if (phase)
    text = driver::emit(source, options, *phase, diags);
  else
    driver::check(source, options, diags);
  printDiagnostics(diags);
  if (diags.hasErrors())
    return kFailed;
  if (!phase)
    return kOk;
  OutputFile file(arguments.output);
  file.write(text);
  file.finish();
  return kOk;
}

} // namespace

void addCompile(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "compile", "shows what the compiler makes of a model");
  auto arguments = std::make_shared<CompileArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  std::string phases = "the phase to show:";
  for (const driver::PhaseInfo &info : driver::kPhases)
    phases += fmt::format("\n{:28}{:8} {}", "", info.name, info.meaning);
  sub->add_option("--emit", arguments->phase, phases)->type_name("PHASE");
  sub->add_option("-o", arguments->output, "the file to write instead of standard output")
      ->type_name("FILE");
  sub->callback([arguments, &action] { action = [arguments] { return runCompile(*arguments); }; });
}

} // namespace sheaf::tool

//===- check.cpp - sheaf check --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include <memory>

namespace sheaf::tool {

void addCheck(CLI::App &app, Action &action) {
  CLI::App *sub = app.add_subcommand("check", "types, shapes, exhaustive matches");
  auto options = std::make_shared<ModelOptions>();
  options->add(*sub, /*vocabulary=*/false);
  sub->callback([options, &action] {
    action = [options] {
      driver::CompileOptions compile = compileOptions(*options);
      SourceFile source = readModel(options->model);
      Diagnostics diags(source);
      driver::check(source, compile, diags);
      printDiagnostics(diags);
      return diags.hasErrors() ? kFailed : kOk;
    };
  });
}

} // namespace sheaf::tool

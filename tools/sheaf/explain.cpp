//===- explain.cpp - sheaf explain ----------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/driver/Explain.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct ExplainArguments {
  ModelOptions model;
  std::string format = "text";
};

int runExplain(const ExplainArguments &arguments) {
  if (arguments.format != "text" && arguments.format != "json")
    throw UsageError(fmt::format("--format takes text or json, not '{}'", arguments.format));
  LoadedModel loaded = loadModel(arguments.model);
  fmt::print("{}", arguments.format == "json" ? driver::explainJson(*loaded.compiled)
                                              : driver::explainText(*loaded.compiled));
  return kOk;
}

} // namespace

void addExplain(CLI::App &app, Action &action) {
  CLI::App *sub = app.add_subcommand(
      "explain", "what is shared, what was fused into which block, and what was not and why");
  auto arguments = std::make_shared<ExplainArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  sub->add_option("--format", arguments->format, "text or json")->type_name("FORMAT");
  sub->callback([arguments, &action] { action = [arguments] { return runExplain(*arguments); }; });
}

} // namespace sheaf::tool

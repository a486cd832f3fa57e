//===- init.cpp - sheaf init ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/weights.h"

#include "runtime/io/weights.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct InitArguments {
  ModelOptions model;
  WeightOptions weights;
  std::string output;
};

int runInit(InitArguments &arguments) {
  arguments.weights.check();
  checkOutputs({arguments.output}, {arguments.model.model});
  checkOutputs({arguments.output}, arguments.weights.initFrom);
  InterruptGuard guard(arguments.output);
  LoadedModel loaded = loadModel(arguments.model, arguments.weights);
  rt::Session session(loaded.model());
  setWeights(session, arguments.weights, loaded, /*quiet=*/false);
  std::map<std::string, std::string> metadata =
      io::modelMetadata(loaded.model(), loaded.vocabularies);
  metadata[io::kSeedKey] = std::to_string(arguments.weights.seed);
  // The vocabularies first: weights that are there have theirs beside them.
  for (const auto &[name, vocabulary] : loaded.vocabularies.all())
    vocabulary.save(io::vocabularyBeside(arguments.output, name));
  io::saveWeights(
      arguments.output, loaded.model(), [&](size_t index) { return session.param(index); },
      metadata);
  return kOk;
}

} // namespace

void addInit(CLI::App &app, Action &action) {
  CLI::App *sub =
      addCommand(app, "init", "writes weights, by each param's initialiser or from other files");
  auto arguments = std::make_shared<InitArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->weights.add(*sub, /*begins=*/true);
  arguments->weights.addInitFrom(*sub);
  sub->add_option("-o", arguments->output, "the safetensors file")->required()->type_name("FILE");
  sub->callback([arguments, &action] { action = [arguments] { return runInit(*arguments); }; });
}

} // namespace sheaf::tool

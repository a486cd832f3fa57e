//===- init.cpp - sheaf init ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "runtime/io/weights.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct InitArguments {
  ModelOptions model;
  uint64_t seed = 0;
  std::string output;
};

int runInit(const InitArguments &arguments) {
  checkOutputs({arguments.output}, {arguments.model.model});
  InterruptGuard guard(arguments.output);
  LoadedModel loaded = loadModel(arguments.model);
  rt::Session session(loaded.model());
  session.initParams(arguments.seed);
  std::map<std::string, std::string> metadata = {{io::kModelKey, loaded.model().name},
                                                 {io::kSeedKey, std::to_string(arguments.seed)}};
  if (!loaded.vocabularies.all().empty())
    metadata[io::kVocabKey] = loaded.vocabularies.hashes();
  // The vocabularies first: weights that are there have theirs beside them.
  for (const auto &[name, vocabulary] : loaded.vocabularies.all())
    vocabulary.save(vocabularyBeside(arguments.output, name));
  io::saveWeights(
      arguments.output, loaded.model(), [&](size_t index) { return session.param(index); },
      metadata);
  return kOk;
}

} // namespace

void addInit(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "init", "writes weights, each by its param's initialiser");
  auto arguments = std::make_shared<InitArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  addSeed(*sub, "--seed", arguments->seed, "of the random numbers (default: 0)");
  sub->add_option("-o", arguments->output, "the safetensors file")->required()->type_name("FILE");
  sub->callback([arguments, &action] { action = [arguments] { return runInit(*arguments); }; });
}

} // namespace sheaf::tool

//===- build.cpp - sheaf build --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/header.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/output_file.h"
#include "tools/sheaf/weights.h"

#include "compiler/target/Target.h"
#include "compiler/verify/GradCheck.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace sheaf::tool {

namespace {

struct BuildArguments {
  ModelOptions model;
  WeightOptions weights;
  std::vector<std::string> alsoFor;
  bool train = false;
  std::string output;
  std::string header;
};

/// Packs the weights for code that cannot run here. What follows from them alone is computed by
/// code for this machine, with the same bits.
void packForElsewhere(rt::Session &session, const driver::CompiledModel &model,
                      const BuildArguments &arguments) {
  // In training that is computed for every mini-batch.
  if (model.model().folded.empty() || model.model().training)
    return session.packWeights();
  ModelOptions options = arguments.model;
  options.targetCpu = "host";
  options.targetCache.clear();
  LoadedModel here = loadWithVocabularies(options, arguments.weights, /*runsElsewhere=*/false);
  if (here.compiled->numerics() != model.numerics())
    throw UserError(fmt::format(
        "code for CPU '{}' computes by {}, this machine by {}: what follows from weights alone has "
        "other bits, and cannot be computed here (--without fold-weights leaves that to runs)",
        model.target().cpu, model.numerics(), here.compiled->numerics()));
  rt::Session folded(here.model());
  setWeights(folded, arguments.weights, here, /*quiet=*/true);
  folded.packWeights();
  session.packWeightsLike(folded);
}

/// The model as it is compiled for one CPU, with its weights packed.
struct Build {
  LoadedModel loaded;
  std::unique_ptr<rt::Session> session;

  Build(const BuildArguments &arguments, const ModelOptions &model, bool quiet)
      : loaded(loadWithVocabularies(model, arguments.weights, /*runsElsewhere=*/true)) {
    if (arguments.train)
      driver::requireLoss(loaded.model());
    bool elsewhere = !target::runsHere(loaded.compiled->target());
    rt::SessionOptions options;
    options.onlyPacks = elsewhere;
    session = std::make_unique<rt::Session>(loaded.model(), options);
    setWeights(*session, arguments.weights, loaded, quiet);
    if (elsewhere)
      packForElsewhere(*session, *loaded.compiled, arguments);
    else
      session->packWeights();
  }
  artefact::Part part() const {
    return {*session, loaded.compiled->code(), loaded.compiled->target(),
            loaded.compiled->numerics()};
  }
};

int runBuild(BuildArguments &arguments) {
  if (arguments.model.numericClass == "any")
    throw UsageError("an artefact runs without libraries: build knows no --numeric-class any");
  if (arguments.output == "-")
    throw UsageError("-o: an artefact is mapped from a file, so it needs a name");
  if (arguments.train) {
    arguments.model.training = arguments.model.dropout = true;
    if (!arguments.model.entryGiven->count())
      arguments.model.entry = "loss";
  }
  for (const std::string &cpu : arguments.alsoFor)
    parseTargetCpu(cpu);
  arguments.weights.check();
  checkOutputs({arguments.output, arguments.header},
               {arguments.model.model, arguments.weights.weights});
  InterruptGuard guard(arguments.output);
  std::vector<std::unique_ptr<Build>> builds;
  builds.push_back(std::make_unique<Build>(arguments, arguments.model, /*quiet=*/false));
  for (const std::string &cpu : arguments.alsoFor) {
    ModelOptions other = arguments.model;
    other.targetCpu = cpu;
    builds.push_back(std::make_unique<Build>(arguments, other, /*quiet=*/true));
  }
  const LoadedModel &loaded = builds.front()->loaded;

  if (!arguments.header.empty()) {
    OutputFile header(arguments.header);
    header.write(cppHeader(loaded.model(), arguments.model.model));
    header.finish();
  }
  std::vector<artefact::Part> parts;
  for (const std::unique_ptr<Build> &build : builds)
    parts.push_back(build->part());
  artefact::write(arguments.output, parts, loaded.vocabularies, "sheaf " SHEAF_VERSION);
  return kOk;
}

} // namespace

void addBuild(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(
      app, "build", "writes a compiled model with its weights, which runs without a compiler");
  auto arguments = std::make_shared<BuildArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->weights.add(*sub);
  sub->add_option("-o", arguments->output, "the artefact")->required()->type_name("FILE");
  sub->add_option("--also-for", arguments->alsoFor,
                  "put code for this CPU into the file as well; of several, whoever opens it takes "
                  "the first that its machine can run; repeatable")
      ->type_name("CPU")
      ->expected(1)
      ->take_all();
  sub->add_flag("--train", arguments->train,
                "one that can be trained: of the function --entry (default: loss), with code that "
                "differentiates, and dropout drops");
  sub->add_option("--emit-header", arguments->header,
                  "also write the types of the entry as C++, for sheaf/sheaf.hpp")
      ->type_name("FILE");
  sub->callback([arguments, &action] { action = [arguments] { return runBuild(*arguments); }; });
}

} // namespace sheaf::tool

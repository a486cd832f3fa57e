//===- weights.cpp - The weights that the command line names --------------===//
#include "tools/sheaf/weights.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/update_options.h"

#include "compiler/driver/Config.h"
#include "compiler/driver/ParamShapes.h"
#include "runtime/fit/pretrained.h"
#include "runtime/io/weights.h"
#include "runtime/model/error.h"
#include "runtime/session/init.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf::tool {

std::function<std::string(const std::map<std::string, std::vector<int64_t>> &)>
dimAdvice(const LoadedModel &loaded) {
  return [&](const std::map<std::string, std::vector<int64_t>> &shapes) -> std::string {
    if (!loaded.source || loaded.source->isProgram())
      return "";
    std::string options, given;
    for (const auto &[dim, value] : driver::dimsForShapes(*loaded.source, loaded.options, shapes)) {
      std::optional<std::string> words = driver::vocabularyOfDim(dim);
      bool isVocabulary = words && loaded.vocabularies.find(*words);
      auto it = loaded.givenDims.find(dim);
      if (it != loaded.givenDims.end())
        given += fmt::format("\n  --dim {0}={1} is given, but the file's shapes are those of "
                             "--dim {0}={2}",
                             dim, it->second, value);
      else if (isVocabulary)
        given +=
            fmt::format("\n  the vocabulary of {} has {} entries, the file is for {}: --vocab "
                        "gives another",
                        io::tokenTypeName(*words), loaded.vocabularies.find(*words)->size(), value);
      else
        options += fmt::format(" --dim {}={}", dim, value);
    }
    return given + (options.empty() ? "" : fmt::format("\n {} would do", options));
  };
}

static std::string unusedText(const std::string &file, const std::vector<std::string> &unused) {
  return fmt::format("{}: {} the model has no parameter for: {}", file,
                     io::plural(static_cast<int64_t>(unused.size()), "tensor"),
                     io::firstOf(unused));
}

namespace {

using Metadata = std::map<std::string, std::string>;

/// What the source takes from a file of weights: of one that was saved here the constants, else
/// what the config.json says that is beside it.
void bindConfig(const std::string &file, const Metadata &metadata, const SourceFile &source,
                driver::CompileOptions &compile) {
  compile.constants.merge(io::storedConstants(file, metadata));
  if (metadata.contains(io::kModelKey) || compile.config)
    return;
  if (std::optional<io::ModelConfig> config = io::ModelConfig::beside(file))
    driver::bindConfig(source, *config, compile);
}

} // namespace

void bindStoredDims(const WeightOptions &weights, const SourceFile &source,
                    const io::Vocabularies &given, driver::CompileOptions &compile) {
  if (!weights.weights.empty()) {
    Metadata metadata = io::WeightFile::open(weights.weights).metadata;
    driver::bindDims(source, {io::storedDims(weights.weights, metadata), weights.weights, "--dim"},
                     given, compile);
    bindConfig(weights.weights, metadata, source, compile);
  }
  for (const std::string &from : weights.initFrom) {
    bool isText = !io::weightsFile(from).ends_with(".safetensors"); // vectors of words
    bindConfig(from, isText ? Metadata() : io::WeightFile::open(from).metadata, source, compile);
  }
}

namespace {

void requireFinite(const std::string &file, const std::vector<io::NonFinite> &all) {
  if (all.empty())
    return;
  std::string message = file + ": weights that are not finite:";
  for (const io::NonFinite &found : all)
    message += "\n  " + found.message();
  throw UserError(message);
}

[[noreturn]] void refuseRename(const io::Rename &rename, const std::string &from) {
  throw UsageError("--rename " + rename.text() + ": it is for no tensor of " + from);
}

void takeInitFrom(rt::Session &session, const WeightOptions &weights, const LoadedModel &loaded,
                  bool quiet) {
  paramsOf(loaded.model(), "--fresh", weights.fresh);
  fit::Pretrained pretrained(
      session, loaded.vocabularies,
      [&]() -> fit::Pretrained::Tables {
        if (loaded.source->isProgram())
          return {};
        return driver::vocabularyTables(*loaded.source, loaded.options);
      },
      [&](size_t param) { return rt::initialise(loaded.model().params[param], weights.seed); },
      weights.fresh);
  io::LoadOptions loading = weights.loading();
  loading.storedNames = loaded.compiled->storedNames();
  loading.adviseShapes = [&, advise = dimAdvice(loaded)](const auto &shapes) {
    return advise(shapes) + "\n  --fresh PATTERN leaves parameters as they are initialised";
  };
  std::vector<std::string> notes;
  std::vector<size_t> idle(loading.renames.size()); // in how many files
  for (const std::string &given : weights.initFrom) {
    std::string file = io::weightsFile(given);
    fit::Pretrained::Taken taken = pretrained.take(file, loading);
    requireFinite(given, taken.nonFinite);
    for (size_t rename : taken.idleRenames)
      ++idle[rename];
    for (const fit::Pretrained::Lacking &table : taken.lacking) {
      std::vector<std::string> names;
      for (const std::string &word : table.lack)
        names.push_back(io::quoted(word));
      notes.push_back(fmt::format(
          "{}: it has {} of the {} words of '{}'; the others begin as they are initialised: {}",
          file, table.words - table.lack.size(), table.words, table.param, io::firstOf(names)));
    }
    if (!taken.unused.empty())
      notes.push_back(unusedText(file, taken.unused));
    if (!taken.conversions.empty())
      notes.push_back(file + ": " + taken.conversions);
  }
  for (size_t i = 0; i < idle.size(); ++i)
    if (idle[i] == weights.initFrom.size())
      refuseRename(loading.renames[i], "--init-from");
  const std::set<std::string> &rest = pretrained.unloaded();
  if (!rest.empty())
    notes.push_back(fmt::format("not in the files of --init-from, and initialised with seed {}: {}",
                                weights.seed,
                                io::firstOf({rest.begin(), rest.end()}, /*most=*/12)));
  if (!quiet)
    for (const std::string &line : notes)
      note(line);
}

} // namespace

void setWeights(rt::Session &session, const WeightOptions &weights, const LoadedModel &loaded,
                bool quiet) {
  const std::vector<rt::ParamDesc> &params = session.model().params;
  if (weights.weights.empty()) {
    bool any = std::any_of(params.begin(), params.end(), [](auto &p) { return !p.synthetic; });
    if (any && !quiet && weights.seedGiven && weights.seedGiven->count() == 0)
      note("no weights given: initialised with seed 0 (--weights reads a file, --seed chooses "
           "another seed)");
    session.initParams(weights.seed);
    if (!weights.initFrom.empty())
      takeInitFrom(session, weights, loaded, quiet);
    return;
  }
  io::LoadOptions loading = weights.loading();
  loading.storedNames = loaded.compiled->storedNames();
  loading.adviseShapes = dimAdvice(loaded);
  io::LoadedWeights result =
      fit::setWeights(session, io::WeightFile::open(weights.weights), loaded.vocabularies, loading);
  for (size_t rename : result.idleRenames)
    refuseRename(loading.renames[rename], weights.weights);
  requireFinite(weights.weights, result.nonFinite);
  if (!quiet && !result.unused.empty())
    note(unusedText(weights.weights, result.unused));
  if (!quiet && !result.converted.empty())
    note(weights.weights + ": " + result.conversionText());
}

std::function<void(rt::Session &)> weightSetter(const WeightOptions &weights,
                                                const LoadedModel &loaded) {
  return [&, first = true](rt::Session &session) mutable {
    setWeights(session, weights, loaded, /*quiet=*/!first);
    first = false;
  };
}

} // namespace sheaf::tool

//===- weights.cpp - The weights that the command line names --------------===//
#include "tools/sheaf/weights.h"

#include "tools/sheaf/pretrained.h"

#include "runtime/io/weights.h"
#include "runtime/model/error.h"
#include "runtime/session/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sheaf::tool {

namespace fs = std::filesystem;

static bool isThere(const std::string &path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

std::string weightsFile(const std::string &path) {
  std::error_code failed;
  if (path.empty() || !fs::is_directory(path, failed))
    return path;
  std::string directory = path;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  std::string best = directory + "/best.safetensors";
  if (isThere(best))
    return best;
  std::vector<std::string> others;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, failed))
    if (entry.path().extension() == ".safetensors")
      others.push_back(entry.path().filename().string());
  std::sort(others.begin(), others.end());
  throw UserError(fmt::format(
      "{}: a directory without best.safetensors, the weights of a training that were best{}", path,
      others.empty() ? "" : "; there are " + io::firstOf(others)));
}

std::string vocabularyBeside(const std::string &weights, const std::string &name) {
  constexpr std::string_view extension = ".safetensors";
  std::string stem = weights;
  if (stem.ends_with(extension))
    stem.resize(stem.size() - extension.size());
  return stem + (name.empty() ? "" : "." + name) + ".vocab.txt";
}

std::string vocabularyOf(const std::string &weights, const std::string &name) {
  if (weights.empty())
    return "";
  std::string beside = vocabularyBeside(weights, name);
  if (!isThere(beside) && fs::path(weights).filename().string().starts_with("checkpoint-"))
    beside = vocabularyBeside(fs::path(weights).replace_filename("last.safetensors"), name);
  return isThere(beside) ? beside : "";
}

void bindStoredDims(const WeightOptions &weights, const std::vector<std::string> &declared,
                    const io::Vocabularies &given, driver::CompileOptions &compile) {
  if (weights.weights.empty())
    return;
  std::map<std::string, int64_t> stored =
      io::storedDims(weights.weights, io::SafetensorsFile::open(weights.weights).metadata());
  for (const auto &[name, value] : stored) {
    if (std::find(declared.begin(), declared.end(), name) == declared.end())
      continue;
    // That its words are others is what is to be told of another vocabulary.
    if (std::optional<std::string> words = driver::vocabularyOfDim(name))
      if (const io::Vocabulary *own = given.find(*words); own && own->size() != value)
        continue;
    auto [it, isNew] = compile.dims.emplace(name, value);
    if (it->second != value)
      throw UserError(fmt::format("--dim {0}={1} contradicts {2}, whose weights were made with "
                                  "{0}={3}",
                                  name, it->second, weights.weights, value));
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
    if (!weights.initFrom.empty()) {
      Pretrained pretrained(session, loaded, weights.seed, weights.fresh);
      for (const std::string &file : weights.initFrom)
        requireFinite(file, pretrained.take(weightsFile(file), weights.loading()));
      if (!quiet)
        for (const std::string &line : pretrained.notes())
          note(line);
    }
    return;
  }
  // What the compiler made itself is not in the file.
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].synthetic)
      session.setParam(i, rt::initialise(params[i], 0));
  io::WeightFile file = io::WeightFile::open(weights.weights);
  io::LoadOptions loading = weights.loading();
  loading.adviseShapes = dimAdvice(loaded);
  io::LoadedWeights result = io::loadWeights(
      file, session.model(),
      [&](size_t index, std::span<const uint8_t> rowMajor) { session.setParam(index, rowMajor); },
      loading);
  io::checkVocabulary(weights.weights, result.metadata, loaded.vocabularies);
  requireFinite(weights.weights, result.nonFinite);
  if (!quiet && !result.unused.empty())
    note(unusedText(weights.weights, result.unused));
}

std::function<void(rt::Session &)> weightSetter(const WeightOptions &weights,
                                                const LoadedModel &loaded) {
  return [&, first = true](rt::Session &session) mutable {
    setWeights(session, weights, loaded, /*quiet=*/!first);
    first = false;
  };
}

} // namespace sheaf::tool

// What a training was begun with, as its directory keeps it.
#include "runtime/api/train_config.h"
#include "runtime/api/origin.h"

#include "runtime/io/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sheaf::api {

namespace {

constexpr const char *kStandardInput = "-";

std::string orEmpty(uint64_t number) { return number ? std::to_string(number) : std::string(); }

/// Whether the command reads the same instances from the file, with what `config` says.
bool isRead(const ReadFile *file, const fit::TrainConfig &config) {
  return file && file->path != kStandardInput && !file->limited &&
         file->format == config.dataFormat && file->strict == config.strictData &&
         file->strictWords == config.strictVocab && orEmpty(file->skipBad) == config.skipBadLines;
}

void setHash(const ReadFile &file, const char *option, fit::TrainConfig &config) {
  if (!file.hash.empty())
    config.hashes[option] = file.hash;
}

void describeModel(const LoadedModel &loaded, fit::TrainConfig &config) {
  const rt::Model &model = loaded.model();
  if (loaded.origin()) {
    config = loaded.origin()->config;
  } else {
    for (const auto &[name, value] : model.dims)
      config.dims.push_back(fmt::format("{}={}", name, value));
    config.constants = io::constantsText(model.constants);
    config.precision = loaded.artefact().description().code().isBf16() ? "bf16" : "f32";
  }
  config.loss = model.entry.name;
  if (config.model.empty())
    config.untold.emplace_back("model");
  // Vocabularies without words lie beside no weights.
  for (const auto &[name, vocabulary] : loaded.vocabularies().all()) {
    std::string dim = io::sizeDimName(name);
    bool isGiven = std::any_of(config.dims.begin(), config.dims.end(),
                               [&](const auto &given) { return given.starts_with(dim + "="); });
    if (!vocabulary.hasWords() && model.dims.contains(dim) && !isGiven)
      config.dims.push_back(fmt::format("{}={}", dim, vocabulary.size()));
  }
}

void describeData(const ReadFile *file, fit::TrainConfig &config) {
  if (file) {
    config.dataFormat = file->format;
    config.strictData = file->strict;
    config.strictVocab = file->strictWords;
    config.skipBadLines = orEmpty(static_cast<uint64_t>(file->skipBad));
  }
  if (!isRead(file, config)) {
    config.untold.emplace_back("--data");
    return;
  }
  config.data = file->path;
  setHash(*file, "--data", config);
}

} // namespace

fit::TrainConfig configOf(const LoadedModel &model, const ValueStore &data,
                          const sheaf_session_options &session,
                          const fit::TrainingOptions &options) {
  fit::TrainConfig config;
  describeModel(model, config);
  describeData(data.file.get(), config);
  fit::describeOptions(options, model.model(), config);
  config.ownWeights = true;
  config.sampleSeed = session.sample_seed;
  config.memoryLimit = orEmpty(session.memory_limit);
  config.maxDepth = orEmpty(session.max_depth);
  config.maxSteps = orEmpty(session.max_steps);
  return config;
}

/// The command takes the loss first, then the metrics, of which the first that it is given comes
/// last and decides; all over one file.
void describeMeasures(std::span<const GivenMeasure> measures, fit::TrainConfig &config) {
  config.dev.clear();
  config.metric.clear();
  config.hashes.erase("--dev");
  std::erase_if(config.untold, [](const std::string &option) {
    return option == "--dev" || option == "--metric";
  });
  if (measures.empty())
    return;
  const ReadFile *file = measures.back().data.file.get();
  bool isFile = isRead(file, config), isMetric = true;
  for (const GivenMeasure &each : measures) {
    const fit::Metric &metric = each.measure.metric();
    const ReadFile *other = each.data.file.get();
    isFile &= other && file && other->path == file->path && isRead(other, config);
    if (each.measure.lessIsBetter() && metric.function == config.loss) {
      isMetric &= config.metric.empty();
      continue;
    }
    const ModelOrigin *origin = each.model.origin();
    isMetric &= !each.measure.lessIsBetter() && origin && origin->config.model == config.model;
    config.metric.insert(config.metric.begin(),
                         metric.function + (metric.score.empty() ? "" : ":" + metric.score));
  }
  if (isFile) {
    config.dev = file->path;
    setHash(*file, "--dev", config);
  } else {
    config.untold.emplace_back("--dev");
  }
  if (!isMetric) {
    config.metric.clear();
    config.untold.emplace_back("--metric");
  }
}

fit::TrainConfig resumedConfig(const std::string &path, const fit::TrainingOptions &options,
                               const rt::Model &model, int64_t steps) {
  fit::TrainConfig before;
  before.load(path);
  before.ended = false; // it goes on
  fit::TrainConfig now = before;
  now.sums = rt::kOrderOfSums;
  fit::describeOptions(options, model, now);
  if (std::vector<std::string> changes = fit::configChanges(before, now); !changes.empty())
    now.history.push_back(fmt::format("after step {}: {}", steps, fmt::join(changes, ", ")));
  return now;
}

} // namespace sheaf::api

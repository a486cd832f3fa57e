//===- checkpoint.cpp - Trainings on disk ---------------------------------===//
#include "tools/sheaf/checkpoint.h"

#include "runtime/error.h"
#include "runtime/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>

namespace sheaf::tool {

namespace {

namespace fs = std::filesystem;

constexpr const char *kStepsKey = "sheaf.steps";
constexpr const char *kUpdatesKey = "sheaf.updates";
constexpr const char *kSkippedKey = "sheaf.skipped";
// The bits of doubles: resumed exactly.
constexpr const char *kBestKey = "sheaf.best";
constexpr const char *kLossKey = "sheaf.loss_sum";
constexpr const char *kInstancesKey = "sheaf.instances";
constexpr const char *kStates[] = {"mean of ", "squares of "};

std::optional<int64_t> numberIn(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

/// Checkpoints by their steps, oldest first.
std::map<int64_t, fs::path> checkpointsIn(const std::string &directory) {
  std::map<int64_t, fs::path> found;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = "checkpoint-", suffix = ".safetensors";
    if (!name.starts_with(prefix) || !name.ends_with(suffix))
      continue;
    std::string_view middle(name);
    middle = middle.substr(prefix.size(), middle.size() - prefix.size() - suffix.size());
    if (std::optional<int64_t> steps = numberIn(middle))
      found[*steps] = entry.path();
  }
  return found;
}

io::TensorToWrite toWrite(std::string name, const rt::TensorView &view) {
  io::TensorToWrite tensor{std::move(name), view.dtype, view.shape, {}};
  tensor.data.resize(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
  view.copyTo(tensor.data.data());
  return tensor;
}

} // namespace

void saveCheckpoint(const std::string &directory, rt::Session &session, rt::Optimizer &optimizer,
                    const Progress &progress, int64_t keep) {
  const rt::Model &model = session.model();
  std::vector<io::TensorToWrite> tensors;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    if (param.synthetic)
      continue;
    tensors.push_back(toWrite(param.name, session.param(i)));
    for (size_t s = 0; s < 2; ++s)
      if (const uint8_t *data = optimizer.states()[i].tensors[s].get())
        tensors.push_back(toWrite(kStates[s] + param.name, {param.dtype, param.shape, data}));
  }
  std::map<std::string, std::string> metadata = {
      {kStepsKey, std::to_string(progress.steps)},
      {kUpdatesKey, std::to_string(optimizer.steps())},
      {kSkippedKey, std::to_string(progress.skipped)},
      {kLossKey, std::to_string(std::bit_cast<int64_t>(progress.lossSum))},
      {kInstancesKey, std::to_string(progress.instances)}};
  if (progress.best)
    metadata[kBestKey] = std::to_string(std::bit_cast<int64_t>(*progress.best));
  io::writeSafetensors(fmt::format("{}/checkpoint-{}.safetensors", directory, progress.steps),
                       tensors, metadata);
  std::map<int64_t, fs::path> all = checkpointsIn(directory);
  while (static_cast<int64_t>(all.size()) > keep) {
    std::error_code error; // one too many does no harm
    fs::remove(all.begin()->second, error);
    all.erase(all.begin());
  }
}

std::optional<Progress> loadCheckpoint(const std::string &directory, rt::Session &session,
                                       rt::Optimizer &optimizer) {
  std::map<int64_t, fs::path> all = checkpointsIn(directory);
  if (all.empty())
    return std::nullopt;
  std::string path = all.rbegin()->second.string();
  io::SafetensorsFile file = io::SafetensorsFile::open(path);
  auto number = [&](const char *key) {
    auto it = file.metadata().find(key);
    std::optional<int64_t> value =
        it == file.metadata().end() ? std::nullopt : numberIn(it->second);
    if (!value)
      throw UserError(path + ": no checkpoint: '" + key + "' is missing");
    return *value;
  };
  Progress progress;
  progress.steps = number(kStepsKey);
  progress.skipped = number(kSkippedKey);
  progress.lossSum = std::bit_cast<double>(number(kLossKey));
  progress.instances = number(kInstancesKey);
  if (file.metadata().contains(kBestKey))
    progress.best = std::bit_cast<double>(number(kBestKey));
  optimizer.setSteps(number(kUpdatesKey));

  const rt::Model &model = session.model();
  std::vector<uint8_t> bytes;
  auto read = [&](const io::FileTensor &tensor, const rt::ParamDesc &param) {
    if (tensor.shape != param.shape)
      throw UserError(fmt::format("{}: '{}' is {}, which is not what the model has", path,
                                  tensor.name, tensor.typeName()));
    if (std::optional<std::string> why = io::convertElements(tensor, param.dtype, bytes))
      throw UserError(path + ": '" + tensor.name + "': " + *why);
  };
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    if (param.synthetic)
      continue;
    const io::FileTensor *weight = file.find(param.name);
    if (!weight)
      throw UserError(path + ": the weight '" + param.name + "' is missing");
    read(*weight, param);
    session.setParam(i, bytes);
    for (size_t s = 0; s < 2; ++s)
      if (const io::FileTensor *state = file.find(kStates[s] + param.name)) {
        optimizer.makeState(i);
        uint8_t *to = optimizer.states()[i].tensors[s].get();
        if (!to)
          throw UserError(path + ": it is of another optimizer");
        read(*state, param);
        rt::toRowLayout(param.shape, param.dtype, bytes.data(), to);
      }
  }
  return progress;
}

} // namespace sheaf::tool

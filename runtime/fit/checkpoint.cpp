#include "runtime/fit/checkpoint.h"

#include "runtime/io/weights.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>

namespace sheaf::fit {

namespace {

namespace fs = std::filesystem;
using io::kAverage, io::kCheckpointParts, io::kMean, io::kPartPrefixes, io::kSquares, io::kWeight;
using io::kAveragesKey, io::kStepsKey;

constexpr const char *kUpdatesKey = "sheaf.updates";
constexpr const char *kSkippedKey = "sheaf.skipped";
constexpr const char *kScaleStepsKey = "sheaf.loss_scale_steps";
// The bits of doubles: resumed exactly.
constexpr const char *kBestKey = "sheaf.best";
constexpr const char *kLossKey = "sheaf.loss_sum";
constexpr const char *kScaleKey = "sheaf.loss_scale";
constexpr const char *kFirstLossKey = "sheaf.first_loss";
constexpr const char *kMeasureKey = "sheaf.measure";
constexpr const char *kInstancesKey = "sheaf.instances";
constexpr const char *kChangesKey = "sheaf.changes";
constexpr const char *kEpochChangesKey = "sheaf.epoch_changes";
constexpr const char *kSinceBestKey = "sheaf.epochs_since_best";
constexpr const char *kUnmeasuredKey = "sheaf.unmeasured";
constexpr const char *kPartsKey = "sheaf.parts";
/// CRC-32C of all else.
constexpr const char *kChecksumKey = "sheaf.crc32c";

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

rt::Optimizer::Part stateOf(size_t part) {
  return part == kMean ? rt::Optimizer::Mean : rt::Optimizer::Squares;
}

/// A part in row layout, or null: what is not there, and the weight itself.
const uint8_t *rowOf(rt::Trainer &trainer, size_t param, size_t part) {
  if (part == kMean || part == kSquares)
    return trainer.optimizer().state(param, stateOf(part)).data();
  return part == kAverage && trainer.average() ? trainer.average()->state(param).data() : nullptr;
}

/// Calls `take` with what a checkpoint has of each parameter: its index, the part, and the elements
/// in its type. Throws UserError for what does not fit the model.
void forEachTensor(const io::SafetensorsFile &file, const rt::Model &model,
                   const std::function<void(size_t, size_t, std::span<const uint8_t>)> &take) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    for (size_t part = 0; part < kCheckpointParts && !param.synthetic; ++part) {
      const io::FileTensor *tensor = file.find(kPartPrefixes[part] + param.name);
      if (!tensor && part == kWeight)
        throw PlacedError({file.name()}, "the weight '" + param.name + "' is missing");
      if (!tensor)
        continue;
      if (tensor->shape != param.shape)
        throw PlacedError({file.name()}, fmt::format("'{}' is {}, which is not what the model has",
                                                     tensor->name, tensor->typeName()));
      if (std::optional<std::string> why = io::convertElements(*tensor, param.dtype, bytes))
        throw PlacedError({file.name()}, "'" + tensor->name + "': " + *why);
      take(i, part, bytes);
    }
  }
}

} // namespace

bool hasCheckpoints(const std::string &directory) { return !checkpointsIn(directory).empty(); }

std::string checkpointPath(const std::string &directory, int64_t steps) {
  return fmt::format("{}/checkpoint-{}.safetensors", directory, steps);
}

void keepCheckpoints(const std::string &directory, int64_t keep) {
  std::map<int64_t, fs::path> all = checkpointsIn(directory);
  while (static_cast<int64_t>(all.size()) > keep) {
    std::error_code error; // one too many does no harm
    fs::remove(all.begin()->second, error);
    all.erase(all.begin());
  }
}

std::optional<std::pair<int64_t, double>> bestCheckpoint(const std::string &directory) {
  std::optional<std::pair<int64_t, double>> best;
  for (const auto &[steps, path] : checkpointsIn(directory)) {
    try {
      io::SafetensorsFile file = io::SafetensorsFile::open(path);
      auto it = file.metadata().find(kMeasureKey);
      std::optional<int64_t> bits =
          it == file.metadata().end() ? std::nullopt : numberIn(it->second);
      if (bits && (!best || std::bit_cast<double>(*bits) > best->second))
        best = {steps, std::bit_cast<double>(*bits)};
    } catch (const UserError &) {
      // A damaged one has nothing to give.
    }
  }
  return best;
}

void saveCheckpoint(const std::string &directory, rt::Session &session, rt::Trainer &trainer,
                    const rt::Course &course, std::map<std::string, std::string> metadata,
                    int64_t keep) {
  const rt::Model &model = session.model();
  std::vector<io::TensorToWrite> tensors;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    if (param.synthetic)
      continue;
    for (size_t part = 0; part < kCheckpointParts; ++part) {
      const uint8_t *row = part == kWeight ? session.param(i).data : rowOf(trainer, i, part);
      if (!row)
        continue;
      tensors.push_back({kPartPrefixes[part] + param.name, param.dtype, param.shape,
                         rt::TensorView{param.dtype, param.shape, row}.rowMajor()});
    }
  }
  auto bits = [](double value) { return std::to_string(std::bit_cast<int64_t>(value)); };
  metadata.merge(std::map<std::string, std::string>{
      {kStepsKey, std::to_string(course.steps)},
      {kUpdatesKey, std::to_string(trainer.optimizer().steps())},
      {kSkippedKey, std::to_string(course.skipped)},
      {kChangesKey, std::to_string(course.changes)},
      {kEpochChangesKey, std::to_string(course.epochChanges)},
      {kSinceBestKey, std::to_string(course.epochsSinceBest)},
      {kUnmeasuredKey, std::to_string(course.unmeasured)},
      {kPartsKey, std::to_string(trainer.parts())},
      {kLossKey, bits(course.lossSum)},
      {kInstancesKey, std::to_string(course.instances)},
      {kScaleKey, bits(trainer.lossScale().scale())},
      {kScaleStepsKey, std::to_string(trainer.lossScale().steps())}});
  for (auto [key, value] : {std::pair(kBestKey, course.best),
                            {kFirstLossKey, course.firstLoss},
                            {kMeasureKey, course.measure}})
    if (value)
      metadata[key] = bits(*value);
  if (trainer.average())
    metadata[kAveragesKey] = std::to_string(trainer.average()->updates());
  io::writeSafetensors(checkpointPath(directory, course.steps), tensors, metadata, kChecksumKey);
  keepCheckpoints(directory, keep);
}

std::optional<rt::Course>
loadCheckpoint(const std::string &directory, rt::Session &session, rt::Trainer &trainer,
               const std::function<void(const std::string &)> &onDamaged) {
  std::map<int64_t, fs::path> all = checkpointsIn(directory);
  if (all.empty())
    return std::nullopt;
  std::optional<io::SafetensorsFile> file;
  while (!file) {
    std::string path = all.rbegin()->second.string();
    try {
      file.emplace(io::SafetensorsFile::open(path));
      file->requireChecksum(kChecksumKey);
    } catch (const UserError &error) {
      file.reset();
      all.erase(std::prev(all.end()));
      if (all.empty())
        throw PlacedError({path}, "damaged, and there is no other checkpoint",
                          fmt::format("{}; {} has no whole checkpoint", error.what(), directory));
      if (onDamaged)
        onDamaged(error.what());
      // It must not count as one of those that are kept.
      fs::rename(path, path + ".damaged");
    }
  }
  const std::string &path = file->name();
  auto number = [&](const char *key) {
    auto it = file->metadata().find(key);
    std::optional<int64_t> value =
        it == file->metadata().end() ? std::nullopt : numberIn(it->second);
    if (!value)
      throw PlacedError({path}, fmt::format("no checkpoint: '{}' is missing", key));
    return *value;
  };
  auto real = [&](const char *key) { return std::bit_cast<double>(number(key)); };
  rt::Course course;
  course.steps = number(kStepsKey);
  course.skipped = number(kSkippedKey);
  course.lossSum = real(kLossKey);
  course.instances = number(kInstancesKey);
  for (auto [key, value] : {std::pair(kBestKey, &course.best),
                            {kFirstLossKey, &course.firstLoss},
                            {kMeasureKey, &course.measure}})
    if (file->metadata().contains(key))
      *value = real(key);
  // Older checkpoints lack these.
  auto since = [&](const char *key, int64_t otherwise) {
    return file->metadata().contains(key) ? number(key) : otherwise;
  };
  course.changes = since(kChangesKey, number(kUpdatesKey));
  course.epochChanges = since(kEpochChangesKey, 1);
  course.epochsSinceBest = since(kSinceBestKey, 0);
  course.unmeasured = since(kUnmeasuredKey, 0) != 0;
  int64_t parts = since(kPartsKey, 1);
  int64_t updates = number(kUpdatesKey), scaleSteps = number(kScaleStepsKey);
  int64_t averages = trainer.average() ? number(kAveragesKey) : 0;
  double scale = real(kScaleKey);

  // What does not fit is found before anything is changed.
  forEachTensor(*file, session.model(), [&](size_t i, size_t part, std::span<const uint8_t>) {
    bool has = part == kWeight    ? true
               : part == kAverage ? trainer.average() && !trainer.average()->state(i).empty()
                                  : trainer.optimizer().has(stateOf(part));
    if (!has)
      throw PlacedError({path}, "it is of another optimizer");
  });
  trainer.resume(course.steps, parts);
  trainer.optimizer().setSteps(updates);
  trainer.lossScale().restore(scale, scaleSteps);
  if (trainer.average())
    trainer.average()->setUpdates(averages);
  forEachTensor(*file, session.model(), [&](size_t i, size_t part, std::span<const uint8_t> bytes) {
    const rt::ParamDesc &param = session.model().params[i];
    auto write = [&](uint8_t *to) { rt::toRowLayout(param.shape, param.dtype, bytes.data(), to); };
    if (part == kWeight)
      session.setParam(i, bytes);
    else if (part == kAverage)
      trainer.average()->setState(i, write);
    else
      trainer.optimizer().setState(i, stateOf(part), write);
  });
  return course;
}

} // namespace sheaf::fit

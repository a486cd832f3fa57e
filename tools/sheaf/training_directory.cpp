//===- training_directory.cpp - The files of a training -------------------===//
#include "tools/sheaf/training_directory.h"

#include "tools/sheaf/checkpoint.h"
#include "tools/sheaf/weights.h"

#include "runtime/model/error.h"
#include "runtime/model/value.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace sheaf::tool {

namespace fs = std::filesystem;

TrainingDirectory::TrainingDirectory(const std::string &path) : path_(path), fd_(-1) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw UserError(path + ": " + error.message());
  fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw UserError(path + ": another training writes there");
  }
  io::AtomicFile::removeLeftovers(path);
}

TrainingDirectory::~TrainingDirectory() {
  if (fd_ >= 0)
    ::close(fd_);
}

bool TrainingDirectory::has(const std::string &name) const {
  std::error_code failed;
  return fs::exists(file(name), failed);
}

void TrainingDirectory::claim() {
  if (hasCheckpoints(path_))
    throw UserError(path_ + " holds a training; --resume goes on with it");
  if (has("last.safetensors") || has("best.safetensors"))
    throw UserError(path_ + " holds the weights of a training; give another directory");
  for (const char *name : {"config.json", "log.jsonl"}) {
    std::error_code none;
    fs::remove(file(name), none);
  }
}

void TrainingDirectory::saveVocabularies(const io::Vocabularies &vocabularies) const {
  for (const char *weights : {"last.safetensors", "best.safetensors"})
    for (const auto &[name, vocabulary] : vocabularies.all())
      if (vocabulary.hasWords())
        vocabulary.save(vocabularyBeside(file(weights), name));
}

void TrainingDirectory::saveWeights(const std::string &name, const rt::Model &model,
                                    const io::Vocabularies &vocabularies,
                                    const GetParam &get) const {
  io::saveWeights(file(name + ".safetensors"), model, get, io::modelMetadata(model, vocabularies));
}

std::string TrainingDirectory::rebuildBest(const rt::Model &model,
                                           const io::Vocabularies &vocabularies,
                                           double best) const {
  std::string name = file("best.safetensors");
  if (has("best.safetensors"))
    return "";
  std::optional<std::pair<int64_t, double>> checkpoint = bestCheckpoint(path_);
  if (!checkpoint)
    return name + " is missing, and no checkpoint of the end of an epoch is left to make it of";
  std::string from = checkpointPath(path_, checkpoint->first);
  std::vector<rt::HostTensor> values;
  for (const rt::ParamDesc &param : model.params)
    values.emplace_back(param.dtype, param.shape);
  io::loadWeights(
      io::WeightFile::open(from), model, [&](size_t index, std::span<const uint8_t> rowMajor) {
        const rt::ParamDesc &param = model.params[index];
        rt::toRowLayout(param.shape, param.dtype, rowMajor.data(), values[index].bytes.get());
      });
  saveWeights("best", model, vocabularies, [&](size_t index) {
    return rt::TensorView{values[index].dtype, values[index].shape, values[index].bytes.get()};
  });
  return fmt::format("{} was missing: made again of {}{}", name, from,
                     checkpoint->second < best ? ", the best that is left; that of the best epoch "
                                                 "is there no more"
                                               : "");
}

} // namespace sheaf::tool

#include "runtime/fit/directory.h"

#include "runtime/fit/checkpoint.h"
#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"
#include "runtime/model/value.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace sheaf::fit {

namespace fs = std::filesystem;

Directory::Directory(const std::string &path) : path_(path), fd_(-1) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw PlacedError({path}, error.message());
  fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw PlacedError({path}, "another training writes there");
  }
  io::AtomicFile::removeLeftovers(path);
}

Directory::~Directory() {
  if (fd_ >= 0)
    ::close(fd_);
}

bool Directory::has(const std::string &name) const {
  std::error_code failed;
  return fs::exists(file(name), failed);
}

Directory::Holds Directory::holds() const {
  if (hasCheckpoints(path_))
    return Holds::Checkpoints;
  return has("last.safetensors") || has("best.safetensors") ? Holds::Weights : Holds::Nothing;
}

void Directory::clear() {
  for (const char *name : {"config.json", "log.jsonl"}) {
    std::error_code none;
    fs::remove(file(name), none);
  }
}

void Directory::saveVocabularies(const io::Vocabularies &vocabularies) const {
  for (const char *weights : {"last.safetensors", "best.safetensors"})
    for (const auto &[name, vocabulary] : vocabularies.all())
      if (vocabulary.hasWords())
        vocabulary.save(io::vocabularyBeside(file(weights), name));
}

void Directory::saveWeights(const std::string &name, const rt::Model &model,
                            const io::Vocabularies &vocabularies, const GetParam &get) const {
  io::saveWeights(file(name + ".safetensors"), model, get, io::modelMetadata(model, vocabularies));
}

std::optional<Directory::Rebuilt> Directory::rebuildBest(const rt::Model &model,
                                                         const io::Vocabularies &vocabularies,
                                                         double best) const {
  std::string name = file("best.safetensors");
  if (has("best.safetensors"))
    return std::nullopt;
  std::optional<std::pair<int64_t, double>> checkpoint = bestCheckpoint(path_);
  if (!checkpoint)
    return Rebuilt{name, "", false};
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
  return Rebuilt{name, from, checkpoint->second >= best};
}

} // namespace sheaf::fit

//===- training_directory.h - The files of a training -----------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAINING_DIRECTORY_H
#define SHEAF_TOOLS_SHEAF_TRAINING_DIRECTORY_H

#include "runtime/io/vocab.h"
#include "runtime/io/weights.h"

#include <functional>
#include <string>

namespace sheaf::tool {

/// A directory that no other training writes to at the same time.
class TrainingDirectory {
public:
  /// Makes it if need be. Throws UserError.
  explicit TrainingDirectory(const std::string &path);
  ~TrainingDirectory();
  TrainingDirectory(const TrainingDirectory &) = delete;
  TrainingDirectory &operator=(const TrainingDirectory &) = delete;

  /// For a training that begins: throws UserError when the directory holds checkpoints or weights.
  /// What a training left that came to neither is removed.
  void claim();

  std::string file(const std::string &name) const { return path_ + "/" + name; }
  bool has(const std::string &name) const;

  /// Beside the weights `last` and `best`.
  void saveVocabularies(const io::Vocabularies &vocabularies) const;

  /// What stands for the weights of a parameter.
  using GetParam = std::function<rt::TensorView(size_t index)>;
  /// Writes `NAME.safetensors`.
  void saveWeights(const std::string &name, const rt::Model &model,
                   const io::Vocabularies &vocabularies, const GetParam &get) const;

  /// Makes `best.safetensors` again of the checkpoints that are left, if it is missing; returns
  /// what was done, for people, and nothing if there is nothing to do. `best`: the measure.
  std::string rebuildBest(const rt::Model &model, const io::Vocabularies &vocabularies,
                          double best) const;

private:
  std::string path_;
  int fd_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAINING_DIRECTORY_H

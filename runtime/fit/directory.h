//===- directory.h - The files of a training --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_FIT_DIRECTORY_H
#define SHEAF_RUNTIME_FIT_DIRECTORY_H

#include "runtime/io/vocab.h"
#include "runtime/io/weights.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sheaf::fit {

/// A directory that no other training writes to at the same time.
class Directory {
public:
  /// Makes it if need be. Throws UserError.
  explicit Directory(const std::string &path);
  ~Directory();
  Directory(const Directory &) = delete;
  Directory &operator=(const Directory &) = delete;

  /// What stands there of an earlier training.
  enum class Holds : uint8_t { Nothing, Weights, Checkpoints };
  Holds holds() const;
  /// For a training that begins where there is nothing: removes what one left that came to neither
  /// checkpoints nor weights.
  void clear();

  const std::string &path() const { return path_; }
  std::string file(const std::string &name) const { return path_ + "/" + name; }
  bool has(const std::string &name) const;

  /// Beside the weights `last` and `best`.
  void saveVocabularies(const io::Vocabularies &vocabularies) const;

  /// What stands for the weights of a parameter.
  using GetParam = std::function<rt::TensorView(size_t index)>;
  /// Writes `NAME.safetensors`.
  void saveWeights(const std::string &name, const rt::Model &model,
                   const io::Vocabularies &vocabularies, const GetParam &get) const;

  /// What became of `best.safetensors` that was missing.
  struct Rebuilt {
    std::string file;
    std::string checkpoint; ///< that it was made of; empty: none is left
    bool isBest = false;    ///< it is of the best epoch, not only the best that is left
  };
  /// Makes `best.safetensors` again of the checkpoints that are left, if it is missing. `best`: the
  /// measure. Nothing if there is nothing to do.
  std::optional<Rebuilt> rebuildBest(const rt::Model &model, const io::Vocabularies &vocabularies,
                                     double best) const;

private:
  std::string path_;
  int fd_;
};

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_DIRECTORY_H

//===- pretrained.h - Weights that others were trained to -------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_PRETRAINED_H
#define SHEAF_TOOLS_SHEAF_PRETRAINED_H

#include "tools/sheaf/load.h"

#include "runtime/io/weights.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sheaf::tool {

/// What other dims would do where weights have other shapes: io::LoadOptions::adviseShapes. The
/// model must outlive it.
std::function<std::string(const std::map<std::string, std::vector<int64_t>> &)>
dimAdvice(const LoadedModel &loaded);

/// That a file has tensors which no parameter takes.
std::string unusedText(const std::string &file, const std::vector<std::string> &unused);

/// Begins a training with what files of other models have: safetensors files, by name, and vectors
/// of words as text. Where a file's vocabulary is another, rows of tables go by word.
class Pretrained {
public:
  /// `session` has its initial weights, those of `seed`. `fresh`: patterns of parameters that keep
  /// them.
  Pretrained(rt::Session &session, const LoadedModel &loaded, uint64_t seed,
             const std::vector<std::string> &fresh);

  /// Gives the session what a file has for it; returns what of it is not finite, if `options` ask.
  /// Throws UserError.
  std::vector<io::NonFinite> take(const std::string &path, io::LoadOptions options);

  /// What no file had, and what else there is to say.
  std::vector<std::string> notes() const;

private:
  using Tables = std::map<std::string, std::string>; ///< vocabularies of params
  const Tables &tables();
  io::WeightFile openVectors(const io::SourceText &text, io::LoadOptions &options);
  void matchWords(const io::WeightFile &file, io::LoadOptions &options);
  void addWords(const std::string &file, const std::string &param, io::WordRows rows,
                const std::vector<std::string> &lack, io::LoadOptions &options);
  size_t paramNamed(const std::string &name) const;

  rt::Session &session_;
  const LoadedModel &loaded_;
  uint64_t seed_;
  std::vector<std::string> fresh_;
  std::optional<Tables> tables_;
  std::set<std::string> unloaded_;
  std::vector<std::string> notes_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_PRETRAINED_H

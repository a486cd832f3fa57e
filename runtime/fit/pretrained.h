//===- pretrained.h - Weights that others were trained to -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_FIT_PRETRAINED_H
#define SHEAF_RUNTIME_FIT_PRETRAINED_H

#include "runtime/io/text.h"
#include "runtime/io/weights.h"
#include "runtime/session/session.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sheaf::fit {

/// Gives a session the weights of a file, and what the compiler made itself its initialisers'.
/// Throws UserError for a file that does not fit (io::loadWeights), or that was made with other
/// vocabularies.
io::LoadedWeights setWeights(rt::Session &session, const io::WeightFile &file,
                             const io::Vocabularies &vocabularies, const io::LoadOptions &options);

/// Begins a training with what files of other models have: safetensors files, by name, and vectors
/// of words as text. Where a file's vocabulary is another, rows of tables go by word.
class Pretrained {
public:
  /// The vocabularies of parameters that have a row for each word, by their names.
  using Tables = std::map<std::string, std::string>;

  /// The row-major elements of a parameter that rows keep of whose words a file has none.
  using Initial = std::function<std::vector<uint8_t>(size_t param)>;

  /// `session` has its initial weights. `tables` is asked when it is first needed. `fresh`:
  /// patterns of parameters that keep their weights. Throws UserError for a pattern that no
  /// parameter matches.
  Pretrained(rt::Session &session, const io::Vocabularies &vocabularies,
             std::function<Tables()> tables, Initial initial, std::vector<std::string> fresh);

  /// A table of which a file lacks words: their rows begin as they are initialised.
  struct Lacking {
    std::string param;
    size_t words = 0; ///< of the table
    std::vector<std::string> lack;
  };
  /// What there is to say of a file.
  struct Taken {
    std::vector<Lacking> lacking;
    std::vector<std::string> unused;      ///< io::LoadedWeights::unused
    std::vector<size_t> idleRenames;      ///< likewise
    std::vector<io::NonFinite> nonFinite; ///< if `options` ask
    std::string conversions;              ///< io::LoadedWeights::conversionText()
  };
  /// Gives the session what a file has for it. Throws UserError.
  Taken take(const std::string &path, io::LoadOptions options);

  /// Parameters that no file had.
  const std::set<std::string> &unloaded() const { return unloaded_; }

private:
  const Tables &tables();
  io::WeightFile openVectors(const io::SourceText &text, io::LoadOptions &options, Taken &taken);
  void matchWords(const io::WeightFile &file, io::LoadOptions &options, Taken &taken);
  size_t paramNamed(const std::string &name) const;

  rt::Session &session_;
  const io::Vocabularies &vocabularies_;
  std::function<Tables()> findTables_;
  Initial initial_;
  std::vector<std::string> fresh_;
  std::optional<Tables> tables_;
  std::set<std::string> unloaded_;
};

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_PRETRAINED_H

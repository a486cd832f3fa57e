//===- weights.h - A model's weights and safetensors files ------*- C++ -*-===//
//
// Weights are stored under the names of their params; what the compiler made itself
// (ParamDesc::synthetic) is not stored. Metadata under these keys, all optional:
//   sheaf.model  the model's name        sheaf.seed  the seed of the initialisers
//   sheaf.vocab  Vocabularies::hashes()  format      "pt", which other readers look for
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_WEIGHTS_H
#define SHEAF_RUNTIME_IO_WEIGHTS_H

#include "runtime/io/safetensors.h"
#include "runtime/io/vocab.h"
#include "runtime/model.h"
#include "runtime/value.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sheaf::io {

constexpr const char *kVocabKey = "sheaf.vocab";
constexpr const char *kSeedKey = "sheaf.seed";
constexpr const char *kModelKey = "sheaf.model";

/// Values of a weight that are not finite.
struct NonFinite {
  std::string param;
  int64_t nan = 0, infinite = 0;
  std::vector<int64_t> first; ///< index of the first of them
  /// "'node_w' has 2 NaN and 1 infinite value, the first at [3, 17]"
  std::string message() const;
};

struct LoadedWeights {
  std::map<std::string, std::string> metadata;
  std::vector<NonFinite> nonFinite; ///< only when asked for
};

/// Takes a weight: its index in Model::params and its row-major, unpadded elements in the param's
/// dtype (as Session::setParam does).
using SetParam = std::function<void(size_t index, std::span<const uint8_t> rowMajor)>;

/// Reads all weights of a model from a file and converts them to the params' types. Before `set` is
/// called for the first time all of the file is checked: one UserError lists every weight that is
/// missing, has another shape, has a type that does not convert, or is not the model's.
LoadedWeights loadWeights(const std::string &path, const rt::Model &model, const SetParam &set,
                          bool findNonFinite = false);

/// Writes all weights of a model. `get` returns the tensor of a param (as Session::param does).
void saveWeights(const std::string &path, const rt::Model &model,
                 const std::function<rt::TensorView(size_t index)> &get,
                 const std::map<std::string, std::string> &metadata);

/// Throws UserError when the metadata tell of another vocabulary than the one in use of that name.
/// Says nothing when either is unknown.
void checkVocabulary(const std::string &weightsPath,
                     const std::map<std::string, std::string> &metadata,
                     const Vocabularies &vocabularies);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_WEIGHTS_H

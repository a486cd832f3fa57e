//===- weights.h - A model's weights and safetensors files ------*- C++ -*-===//
//
// Weights are stored under the names of their params; what the compiler made itself
// (ParamDesc::synthetic) is not stored. Metadata under these keys, all optional:
//   sheaf.model  the model's name        sheaf.seed  the seed of the initialisers
//   sheaf.vocab  Vocabularies::hashes()  format      "pt", which other readers look for
//   sheaf.dims   Model::dims, as dimsText() writes them
//   sheaf.constants   Model::constants, likewise
// A checkpoint of a training has the weights under the same names, and beside them what
// checkpointPartOf() tells.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_WEIGHTS_H
#define SHEAF_RUNTIME_IO_WEIGHTS_H

#include "runtime/io/name_pattern.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/vocab.h"
#include "runtime/model/model.h"
#include "runtime/model/value.h"

#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace sheaf::io {

constexpr const char *kVocabKey = "sheaf.vocab";
constexpr const char *kSeedKey = "sheaf.seed";
constexpr const char *kModelKey = "sheaf.model";
constexpr const char *kDimsKey = "sheaf.dims";
constexpr const char *kConstantsKey = "sheaf.constants";
/// Of checkpoints: the steps that were made, and how often the averages were updated.
constexpr const char *kStepsKey = "sheaf.steps";
constexpr const char *kAveragesKey = "sheaf.averages";

/// `hidden=256,vocab=5000`
std::string dimsText(const std::map<std::string, int64_t> &dims);
/// `eps=1e-06,scale=0.5`
std::string constantsText(const std::map<std::string, double> &constants);
/// What dimsText() wrote; nothing when the metadata do not tell. Throws UserError for another form.
std::map<std::string, int64_t> storedDims(const std::string &path,
                                          const std::map<std::string, std::string> &metadata);
std::map<std::string, double> storedConstants(const std::string &path,
                                              const std::map<std::string, std::string> &metadata);
/// What constantsText() wrote. Throws UserError for another form, which `what` has.
std::map<std::string, double> parseConstants(const std::string &text, const std::string &what);

/// What of a trainer has a parameter's shape, and stands under its name with a prefix: the weight
/// itself (without one), the optimiser's state, the average.
enum CheckpointPart : size_t { kWeight, kMean, kSquares, kAverage, kCheckpointParts };
constexpr const char *kPartPrefixes[kCheckpointParts] = {"", "mean of ", "squares of ",
                                                         "average of "};

/// Values of a weight that are not finite.
struct NonFinite {
  std::string param;
  int64_t nan = 0, infinite = 0;
  std::vector<int64_t> first; ///< index of the first of them
  /// "'node_w' has 2 NaN and 1 infinite value, the first at [3, 17]"
  std::string message() const;
};

/// What weights are taken from: a file, or what else has named tensors.
struct WeightFile {
  std::string name;
  std::map<std::string, std::string> metadata;
  std::vector<FileTensor> tensors;
  std::vector<SafetensorsFile> mapped; ///< hold the tensors' data
  std::vector<uint8_t> owned;          ///< or this does

  /// What a path of weights means (weightsFile()): a safetensors file, or the index of several. Of
  /// a checkpoint that has averages, these are the weights; the optimiser's state is left out.
  /// Throws UserError.
  static WeightFile open(const std::string &path);
};

/// Another vocabulary's table: its rows go to the words that both have.
struct WordRows {
  std::vector<int64_t> of; ///< the file's row for each row of the parameter, -1: none
  int64_t fileRows = 0;    ///< rows of the file's table
};

struct LoadOptions {
  bool findNonFinite = false;
  bool strict = false;  ///< a tensor that the model does not take is an error
  bool partial = false; ///< a parameter that the file lacks is left as it is, no error
  std::vector<Rename> renames;
  bool useAll = false; ///< a rename that decides for no tensor of the file is an error
  std::string renameTerm = "rename"; ///< what the caller's users call one
  /// By parameter: what else files may call it.
  std::map<std::string, std::vector<std::string>> storedNames;
  std::vector<std::string> fresh; ///< patterns of parameters that the file gives nothing
  /// By parameter: what the file's rows are, where they are not the parameter's.
  std::map<std::string, WordRows> words;
  /// The values that rows without a word keep: those of Model::params[index].
  std::function<std::vector<uint8_t>(size_t index)> initial;
  /// What to do about other shapes, as the end of the error; gets those of the file for the
  /// parameters that it has. May be empty.
  std::function<std::string(const std::map<std::string, std::vector<int64_t>> &)> adviseShapes;
  /// Asked for, ends the loading before the next weight by a CheckStopped.
  std::stop_token stop;
};

struct LoadedWeights {
  std::map<std::string, std::string> metadata;
  std::vector<NonFinite> nonFinite;  ///< only when asked for
  std::vector<std::string> unused;   ///< the file's tensors that no parameter takes: name: type
  std::vector<std::string> unloaded; ///< parameters that the file gave nothing
  std::vector<size_t> idleRenames;   ///< which decide for no tensor of the file
  /// How many weights have another type in the file: by "F16 to f32".
  std::map<std::string, int64_t> converted;
  /// "103 tensors are converted, F16 to f32"; empty: none are.
  std::string conversionText() const;
};

/// Takes a weight: its index in Model::params and its row-major, unpadded elements in the param's
/// dtype (as Session::setParam does).
using SetParam = std::function<void(size_t index, std::span<const uint8_t> rowMajor)>;

/// Gives a model the weights of a file, converted to the params' types. Before `set` is called for
/// the first time all of the file is checked: one UserError lists every weight that is missing, has
/// another shape, has a type that does not convert, or (strict) is not the model's. Of a file that
/// has nothing of the model it is one line.
LoadedWeights loadWeights(const WeightFile &file, const rt::Model &model, const SetParam &set,
                          const LoadOptions &options = {});

/// Where `options` forbid idle renames, throws UserError for the first of these.
void refuseIdle(const LoadOptions &options, const std::vector<size_t> &idle,
                const std::string &file);

/// Names one after the other, the first of them if there are many: "a, b and 7 others".
std::string firstOf(const std::vector<std::string> &names, size_t most = 6);

/// Writes all weights of a model. `get` returns the tensor of a param (as Session::param does).
void saveWeights(const std::string &path, const rt::Model &model,
                 const std::function<rt::TensorView(size_t index)> &get,
                 const std::map<std::string, std::string> &metadata);

/// What files with weights of this model tell of it: name, dims, vocabularies.
std::map<std::string, std::string> modelMetadata(const rt::Model &model,
                                                 const Vocabularies &vocabularies);

/// Throws UserError when the metadata tell of another vocabulary than the one in use of that name.
/// Says nothing when either is unknown.
void checkVocabulary(const std::string &weightsPath,
                     const std::map<std::string, std::string> &metadata,
                     const Vocabularies &vocabularies);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_WEIGHTS_H

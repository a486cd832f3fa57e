//===- model.h - A compiled model, as data ----------------------*- C++ -*-===//
//
// What the compiler hands to the runtime: plain data and code, nothing of MLIR or LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_MODEL_H
#define SHEAF_RUNTIME_MODEL_MODEL_H

#include "runtime/model/abi.h"
#include "runtime/model/file_range.h"
#include "runtime/model/gradient.h"
#include "runtime/model/kernel_code.h"
#include "runtime/model/library.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::rt {

/// A weight. All parameters live in the row space before any instance's rows, in row layout.
struct ParamDesc {
  std::string name; ///< `node_w`, or `forward.w` inside a layer instance
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::string init; ///< zeros, ones, normal, uniform, glorot, he, constant, orthogonal, identity
  std::vector<double> initArgs;
  uint32_t id = 0;        ///< first granule, fixed by the compiler (generated code contains it)
  bool synthetic = false; ///< made by the compiler: not in weight files
  /// Whether host code may hand its rows on as a value. Not in artefacts, where it is true.
  bool isValue = true;
};

/// A weight, or a part of one, that a kernel reads, whoever computes it.
struct WeightRead {
  enum Role : uint8_t {
    AsItIs, ///< rows of the parameter
    Factor  ///< of products, or what their sums start at: in the form that the code wants
  } role = AsItIs;
  uint32_t param = 0;
  double bytes = 0; ///< that a launch reads, without padding
};

/// What the words of a record are, for explain, traces and the reversed walk of training.
struct RecordWord {
  enum Kind : uint8_t {
    Row,    ///< one word: the granule id of a per-instance tensor argument
    Int,    ///< two words: an i64, low word first
    Float,  ///< two words: the bits of a double, low word first
    Extent, ///< one word: a per-instance extent
    Out,    ///< one word, the last: the first granule of the results, one after the other
    /// One word: the granule id of a table of i32, the granule ids of tensors. The next word, an
    /// Extent, is their number.
    List
  } kind;
  std::string name;
  /// Row: the tensor; -1 stands for the Extent words that follow, in order. List: each of them.
  std::vector<int64_t> shape = {};
  DType dtype = DType::F32;

  uint32_t words() const { return kind == Int || kind == Float ? 2 : 1; }
};

/// FLOP of a record's products: coefficient times the product of these Extent words.
struct FlopTerm {
  double coefficient = 0;
  std::vector<uint32_t> extentWords;
};

/// Something that host code still needs when a call of it comes back.
struct RootDesc {
  enum Kind : uint8_t {
    Value, ///< the slots of a value
    List,  ///< two slots: a list that is being made, and how many of its elements are there
    Fork,  ///< two slots: what sheaf_fork() returned, and the address of the results
    Forks  ///< two slots: the address of pairs as of Fork, one after the other, and their number
  } kind = Value;
  uint32_t type = 0; ///< of the value, of an element, of all results together as a tuple
};

struct KernelDesc {
  std::string name;
  uint32_t words = 1; ///< 32-bit words a record
  std::vector<RecordWord> layout;
  /// What a record reserves at Out, one after the other.
  std::vector<RecordTensor> results;
  /// Of each result, the Row and List words it follows from.
  std::vector<std::vector<uint32_t>> resultRows;
  std::vector<WeightRead> weights;
  bool temporaries = false; ///< needs what was asked for by sheaf_temporaries()
  std::vector<FlopTerm> flop;
  /// Bytes of rows that a record reads and writes, without padding, counted as `flop` is; weights
  /// come on top, once a launch at least. Not given: not known.
  std::optional<std::vector<FlopTerm>> bytes;
  std::string source;    ///< file:line of the block's first operator
  bool deferred = false; ///< no read depends on its results
  uint32_t phase = 0;    ///< its depths begin at phase << Model::depthBits; 0 unless deferred when
                         ///< the model reads
  /// Recorded only with Context::joins. Its packed weights are made when that is first needed.
  bool joined = false;
  /// The first kernel with the same code and weights, itself or another: their records may run in
  /// one launch. Not given: itself.
  std::optional<uint32_t> family;
};

/// What begins in this word of a kernel's records; null: nothing, as far as is known.
inline const RecordWord *entryAt(const KernelDesc &kernel, uint32_t word) {
  uint32_t at = 0;
  for (const RecordWord &entry : kernel.layout) {
    if (at == word)
      return &entry;
    at += entry.words();
  }
  return nullptr;
}

struct EntryDesc {
  std::string name;
  std::vector<std::string> argNames;
  std::vector<uint32_t> argTypes;
  uint32_t resultType = 0;
  /// The type of what an instance emits, if it does. `resultType` is then a tuple: what `fn`
  /// writes, and the list of what was emitted (sheaf_emit), which the session writes.
  std::optional<uint32_t> emits;
  EntryFn fn = nullptr;

  /// The type of what `fn` writes.
  uint32_t ownResult(const TypeTable &types) const {
    return emits ? types.types[resultType].children[0] : resultType;
  }
};

/// Where in the slots of an outcome the list of what was emitted stands, of a model that emits;
/// before it stands what its function gives.
struct EmittingOutcome {
  uint32_t result, list; ///< types
  int64_t listSlot;

  explicit EmittingOutcome(const TypeTable &types, const EntryDesc &entry)
      : result(entry.ownResult(types)), list(types.types[entry.resultType].children[1]),
        listSlot(types.slots(result)) {}
};

/// Weights in the form that sessions use, ready in a file.
struct StoredWeights {
  FileRange params; ///< all parameters, in row layout
  /// The copies in the form that kernels read, in the order of their code; 64-byte aligned.
  std::vector<std::span<const uint8_t>> packed;
};

struct Model {
  std::string name;
  TypeTable types;
  std::vector<ParamDesc> params;
  uint32_t paramGranules = 0; ///< granules [0, paramGranules) hold the parameters
  std::vector<KernelDesc> kernels;
  ModelCode code; ///< of the kernels
  /// Made for training: sessions can differentiate. `gradients` has one element for each kernel
  /// that host code records; the backward kernels stand after those in `kernels`, and the native
  /// ones of runtime/cpu after these.
  bool training = false;
  bool inputGradients = false; ///< made for training: the float tensors of arguments have gradients
  bool f16 = false;            ///< of one made for training: gradients go through f16 values
  std::vector<KernelGradient> gradients;
  EntryDesc entry;
  std::vector<std::string> messages;   ///< "FILE:LINE: " and why an instance fails
  std::vector<int64_t> messageColumns; ///< of these, from 1; 0, and what is not there: not known
  /// Generated code calls sheaf_list_flat where abi.h asks for it, so that a cons onto a tail whose
  /// neighbouring slot is taken (a stack popped and pushed, a list with several heads) need not
  /// copy.
  bool chainedLists = false;
  /// Computes `folded`, parameters that follow from others: writes one handle for each. May be
  /// null. Called when weights have changed, in training for every mini-batch.
  EntryFn foldWeights = nullptr;
  std::vector<uint32_t> folded;        ///< indices into params
  bool reads = false;                  ///< host code waits for tensors (sheaf_wait)
  std::vector<std::string> readPlaces; ///< file:line of each read that may wait
  /// What RootFrames hold, by RootFrame::place. Not given: host code does not say it, and nothing
  /// can be given back while an instance waits.
  std::optional<std::vector<std::vector<RootDesc>>> roots;
  /// They hold all lists and data, too; else only what holds tensors.
  bool rootsHoldAll = false;
  uint32_t depthBits = rt::depthBits(1); ///< layout.h
  /// Bytes of the host stack that one call of a function of the program takes at most.
  uint64_t frameBytes = 0;
  /// Its functions go on further down when sheaf_deepen() says so.
  bool furtherStacks = false;
  /// A session begins with these weights, which it only reads; null: it must be given some.
  const StoredWeights *stored = nullptr;
  std::map<std::string, int64_t> dims;
  /// Those that came with weights (`let eps = config "eps" else 1e-5`); of a bool 0 or 1.
  std::map<std::string, double> constants;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_MODEL_H

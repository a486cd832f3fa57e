//===- gradient.h - How gradients go through a kernel -----------*- C++ -*-===//
//
// For every kernel of a model that is made for training there is a backward one: its records
// are made of the forward records by the backward pass (runtime/backward), which reads this.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_GRADIENT_H
#define SHEAF_RUNTIME_MODEL_GRADIENT_H

#include "runtime/model/layout.h"

#include <algorithm>

namespace sheaf::rt {

/// A number that follows from the words of a record: a sum of products of them.
struct WordTerm {
  int64_t coefficient = 0;
  std::vector<uint32_t> words;
};
using WordSum = std::vector<WordTerm>;
inline int64_t evaluate(const WordSum &sum, const int32_t *words) {
  int64_t total = 0;
  for (const WordTerm &term : sum) {
    int64_t product = term.coefficient;
    for (uint32_t word : term.words)
      product *= words[word];
    total += product;
  }
  return total;
}

/// Whether it is the same for all records.
inline bool isConstant(const WordSum &sum) {
  return std::ranges::all_of(sum, [](const WordTerm &term) { return term.words.empty(); });
}

/// A tensor whose extents follow from the words of a record: of the forward one, as all numbers
/// here do, or of the one that makes it (KernelDesc::results).
struct RecordTensor {
  DType dtype = DType::F32;
  std::vector<WordSum> extents;
};

/// Where a tensor of a backward pass is.
struct RowSource {
  enum Kind : uint8_t {
    Argument, ///< the row in this word of the forward record
    Result,   ///< this result of the forward record
    Gradient, ///< the gradient of this result
    Output    ///< this output of the backward record
  } kind = Argument;
  uint32_t index = 0;
};

/// What fills words of a backward record, one after the other.
struct BackwardWord {
  enum Kind : uint8_t {
    Copy,  ///< a word of the forward record: `source.index`
    Row,   ///< the id of `source`, which is no Output
    Extent ///< `extent`
  } kind = Copy;
  RowSource source;
  WordSum extent;
};

/// The gradient that a record gives to one of its arguments.
struct ArgumentGradient {
  uint32_t word = 0; ///< of the argument's row in the forward record
  RecordTensor tensor;
  RowSource gradient; ///< a Gradient or an Output
};

/// What a record adds to the gradient of a parameter.
struct WeightGradient {
  enum Kind : uint8_t {
    /// transpose(left) @ right, where both are `rows` rows; into the part of the parameter (a
    /// matrix) that begins at (rowBegin, columnBegin) and is as large as these rows are long.
    Product,
    Whole, ///< `right`, which is of the parameter's shape
    /// The parts of `right` along its first axis, each into the row of the parameter that the
    /// element of `left`, a vector of ints, names.
    Scatter
  } kind = Product;
  uint32_t param = 0;
  RowSource left, right;
  WordSum rows;
  int64_t rowBegin = 0, rowCount = 0;
  int64_t columnBegin = 0, columnCount = 0;
  DType indexType = DType::I32; ///< Scatter
};

/// Kernels of the run time's own, the last of a model that is made for training
/// (device/gradient_records.h). Their records name rows of gradients only.
constexpr size_t kNativeKernels = 2;

struct KernelGradient {
  /// The backward kernel, by index in Model::kernels; -1: no gradient goes through. It runs
  /// only if it has outputs: others pass gradients on as they are.
  int64_t kernel = -1;
  std::vector<bool> wanted;              ///< which results' gradients `kernel` reads or passes on
  std::vector<BackwardWord> words;       ///< of a backward record, all but the last
  std::vector<RecordTensor> outputs;     ///< what a backward record reserves
  std::vector<RecordTensor> temporaries; ///< what it needs in scratch beside
  std::vector<ArgumentGradient> arguments;
  std::vector<WeightGradient> weights;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_GRADIENT_H

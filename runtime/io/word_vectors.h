//===- word_vectors.h - Vectors of words as text ----------------*- C++ -*-===//
//
// The form in which GloVe, word2vec and fastText give their vectors: a line a word, the word and
// its numbers with blanks between them; word2vec's and fastText's have a first line with the number
// of words and of numbers. https://github.com/stanfordnlp/GloVe
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_WORD_VECTORS_H
#define SHEAF_RUNTIME_IO_WORD_VECTORS_H

#include "runtime/io/vocab.h"

#include <string>
#include <vector>

namespace sheaf::io {

struct WordVectors {
  int64_t width = 0;
  int64_t words = 0;             ///< in the file
  std::vector<float> values;     ///< row-major
  std::vector<int64_t> rowOf;    ///< by number of the vocabulary: a row of `values`, -1: none
  std::vector<std::string> lack; ///< words of the vocabulary without one
};

/// Whether a text begins as such a file: a word and two numbers or more, or two whole numbers.
bool isWordVectors(std::string_view text);

/// The vectors of a vocabulary's words; a word that is there twice has the first. Words may hold
/// blanks: of a line, as many fields as the first has numbers are the vector. Throws UserError with
/// file and line.
WordVectors readWordVectors(const SourceText &source, const Vocabulary &vocabulary);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_WORD_VECTORS_H

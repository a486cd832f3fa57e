//===- tokenizer.h - Texts as a tokenizer's numbers -------------*- C++ -*-===//
//
// `tokenizer.json` is Hugging Face's form of a tokenizer. Their library of that name reads it, in
// one process of Python that gets the texts and gives the numbers.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TOOLS_SHEAF_TOKENIZER_H
#define SHEAF_TOOLS_SHEAF_TOKENIZER_H

#include "runtime/io/read.h"

#include <memory>
#include <string>
#include <vector>

namespace sheaf::tool {

/// Data as JSON, line for line, in which numbers stand for texts: for each line of a text, or for
/// each string that is a line of JSON or a member of one. `tokenizer`: a tokenizer.json, or the
/// directory that has one. Changes the format that is read to that of the result. Throws UserError
/// where there is no Python, no library, or no such tokenizer, and when the process ends or does
/// not answer.
io::SourceText encodeTexts(const io::SourceText &text, const std::string &tokenizer,
                           io::ReadOptions &reading);

/// Numbers back to text, by a process that waits for them.
class TokenDecoder {
public:
  /// Throws UserError where there is no such file, or no Python.
  explicit TokenDecoder(const std::string &tokenizer);
  ~TokenDecoder();

  /// Of lines of JSON, a number or an array of them each, the texts as JSON strings. Throws
  /// UserError like encodeTexts().
  std::vector<std::string> decode(const std::vector<std::string> &ids);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TOKENIZER_H

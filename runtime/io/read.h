//===- read.h - Any data file for any entry ---------------------*- C++ -*-===//
//
// The door to the readers (formats.h): the instances of a file, and its words.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_READ_H
#define SHEAF_RUNTIME_IO_READ_H

#include "runtime/io/dataset.h"
#include "runtime/io/formats.h"
#include "runtime/io/vocab.h"
#include "runtime/model/model.h"

#include <map>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace sheaf::io {

struct ReadOptions {
  const DataFormat *format = nullptr; ///< null: detectFormat()
  int64_t limit = INT64_MAX;          ///< most instances
  /// Model::dims, for extents that name them; may be null.
  const std::map<std::string, int64_t> *dims = nullptr;
  /// What the entry does not take is an error. Else it is ignored, and counted.
  bool strict = false;
  int64_t skipBad = 0; ///< records that cannot be read and are left out, at most
  std::stop_token stop = {};
  std::string formatTerm = "a format"; ///< what the caller's users call what gives one
};

/// What readers throw when they were stopped.
class ReadingStopped : public std::runtime_error {
public:
  ReadingStopped() : std::runtime_error("the reading was stopped") {}
};

/// Slots of an entry's arguments together.
int64_t argSlots(const rt::TypeTable &types, const rt::EntryDesc &entry);

/// Reads a file (`-`: standard input). Throws UserError: not readable, without an instance, not fit
/// for the entry, or with a wrong record.
Dataset readDataset(const std::string &path, const rt::TypeTable &types, const rt::EntryDesc &entry,
                    TokenReader &tokens, const ReadOptions &options = {});
Dataset readDataset(const SourceText &source, const rt::TypeTable &types,
                    const rt::EntryDesc &entry, TokenReader &tokens,
                    const ReadOptions &options = {});

/// Counts the tokens in a model's data, as the entry reads them, by vocabulary. Extents need not be
/// known yet: the types may have any static extents.
std::map<std::string, CountedTokens> countTokens(const SourceText &source,
                                                 const rt::TypeTable &types,
                                                 const rt::EntryDesc &entry,
                                                 const ReadOptions &options = {});

/// Makes the vocabularies of these names of the words in data, as the entry reads them. `sizes`: by
/// name what the dims that stand for their sizes say; they leave room for so many words, or, where
/// the data have numbers for tokens, tell how many there are. Throws UserError for numbers that
/// nothing tells the number of.
std::map<std::string, Vocabulary>
vocabulariesOf(const SourceText &source, const std::set<std::string> &names,
               const std::map<std::string, int64_t> &sizes, const rt::TypeTable &types,
               const rt::EntryDesc &entry, const ReadOptions &options = {});

/// Builds vocabularies without a model: of the words that the format finds in a text
/// (DataFormat::countWords).
std::map<std::string, Vocabulary> buildVocabularies(const SourceText &source,
                                                    const ReadOptions &options = {},
                                                    const WordCounter::Options &counting = {});

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_READ_H

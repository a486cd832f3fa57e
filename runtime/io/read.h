//===- read.h - Any data file for any entry ---------------------*- C++ -*-===//
//
// The door to the readers: which format a file has, its instances, its words.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_READ_H
#define SHEAF_RUNTIME_IO_READ_H

#include "runtime/io/dataset.h"
#include "runtime/io/vocab.h"
#include "runtime/model.h"

#include <map>
#include <string>
#include <vector>

namespace sheaf::io {

enum class DataFormat { Auto, Trees, Jsonl, Tagged, Text };

/// `auto`, `trees`, `jsonl`, `tagged`, `text`. Throws UserError that lists them.
DataFormat parseDataFormat(const std::string &name);
const char *dataFormatName(DataFormat format);

/// What a file holds: `.jsonl`, `.ndjson` and `.json` say so, else its first line that is not
/// blank: `(` begins a tree, `{` or a `[` that begins an array JSON, all words with a `|` a tagged
/// sentence, anything else text.
DataFormat detectFormat(const SourceText &source);

struct ReadOptions {
  DataFormat format = DataFormat::Auto;
  int64_t limit = INT64_MAX; ///< most instances
  /// Model::dims, for extents that name them; may be null.
  const std::map<std::string, int64_t> *dims = nullptr;
};

/// Slots of an entry's arguments together.
int64_t argSlots(const rt::TypeTable &types, const rt::EntryDesc &entry);

/// Reads a file (`-`: standard input). Throws UserError: not readable, without an instance, not fit
/// for the entry, or with a wrong line.
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

/// Builds vocabularies without a model: the words of trees, text and tagged sentences (their tags
/// make a vocabulary named `tag`), and for JSON every string that is not a member's name, or the
/// words of the tree that it is.
std::map<std::string, Vocabulary> buildVocabularies(const SourceText &source,
                                                    const ReadOptions &options = {},
                                                    const WordCounter::Options &counting = {});

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_READ_H

//===- vocab.h - Words and their numbers ------------------------*- C++ -*-===//
//
// A vocabulary gives every word a number. Its file has one word a line: the line is the word, its
// place (from 0) the number, and line 0 is `<unk>`, which stands for all words that are not there.
//
// A model may have several vocabularies, told apart by name: the type `token` uses the one with
// the empty name (the default), `token<tag>` the one named `tag`.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_VOCAB_H
#define SHEAF_RUNTIME_IO_VOCAB_H

#include "runtime/io/text.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sheaf::io {

constexpr std::string_view kUnknownWord = "<unk>";

/// A map from words that is searched by std::string_view.
struct WordHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename T> using WordMap = std::unordered_map<std::string, T, WordHash, std::equal_to<>>;

class Vocabulary {
public:
  /// Only `<unk>`.
  Vocabulary();

  /// Numbers 0 ... size-1 without words: what data that hold numbers only need. Any word is
  /// unknown, and a number prints as a number. The size is that of the model's dim.
  static Vocabulary ofSize(int64_t size);

  /// Reads a vocabulary's file. A line that is a JSON string with an escape, or the empty one, is
  /// that string's word. Throws UserError: not readable, no UTF-8, empty, line 0 not `<unk>`, an
  /// empty line, a word twice.
  static Vocabulary load(const std::string &path);
  static Vocabulary parse(const SourceText &source);

  /// The bytes of the file.
  std::string fileText() const;
  /// Writes the file (atomically).
  void save(const std::string &path) const;

  /// Adds a word if it is new. Returns whether it was added.
  bool add(std::string_view word);

  /// The number of a word, -1 when it is not there.
  int64_t find(std::string_view word) const;
  /// The number of a word, 0 (`<unk>`) when it is not there.
  int64_t id(std::string_view word) const { return std::max<int64_t>(find(word), 0); }
  /// The word of a number; empty when it has none.
  std::string_view word(int64_t id) const;
  int64_t size() const { return size_; }
  bool hasWords() const { return static_cast<int64_t>(words_.size()) == size_; }

  /// 64-bit FNV-1a of the file's bytes in 16 hexadecimal digits: equal vocabularies, equal hashes.
  /// Stored beside weights.
  std::string hash() const;

private:
  std::vector<std::string> words_;
  WordMap<int64_t> ids_;
  int64_t size_ = 0;
};

/// Counts words in order of first appearance, then makes a vocabulary of them.
class WordCounter {
public:
  void count(std::string_view word);
  int64_t distinct() const { return static_cast<int64_t>(words_.size()); }

  struct Options {
    int64_t minCount = 1;        ///< leave out words that are rarer
    int64_t maxSize = INT64_MAX; ///< words in the vocabulary, `<unk>` included
  };
  /// `<unk>`, then the words by falling frequency, equal frequencies by first appearance.
  Vocabulary build(const Options &options) const;
  Vocabulary build() const { return build(Options()); }

private:
  struct Entry {
    std::string word;
    int64_t count;
  };
  std::vector<Entry> words_;
  WordMap<size_t> index_;
};

/// The vocabularies of a model by name.
class Vocabularies {
public:
  /// `FILE` is the default vocabulary, `NAME=FILE` the one of `token<NAME>` (NAME is an identifier;
  /// write `=FILE` for a default file whose path has such a form). Throws UserError, also when the
  /// same name is given twice. `term`: what the caller's users call one.
  void add(const std::string &given, const std::string &term = "vocabulary");

  void set(const std::string &name, Vocabulary vocabulary);
  /// Null when there is none.
  const Vocabulary *find(const std::string &name) const;
  const std::map<std::string, Vocabulary> &all() const { return byName_; }

  /// One text for the metadata of weights: `hash` for a single default vocabulary, else
  /// `name=hash` joined by commas in order of the names; empty when there is none.
  std::string hashes() const;

private:
  std::map<std::string, Vocabulary> byName_;
};

/// How a type of this vocabulary is written: `token` or `token<tag>`.
std::string tokenTypeName(const std::string &vocab);
/// The dim that stands for its size: `vocab` or `tag_vocab`.
std::string sizeDimName(const std::string &vocab);

/// What readers ask for the number of a word.
class TokenReader {
public:
  virtual ~TokenReader();

  /// A handle for a vocabulary. Throws UserError when there is none of this name.
  virtual uint32_t open(const std::string &vocab) = 0;
  /// The number of a word, or -1 when that is an error (the caller knows the place).
  virtual int64_t number(uint32_t handle, std::string_view word) = 0;
  /// Numbers below this may stand in data.
  virtual int64_t size(uint32_t handle) = 0;
  /// What that follows from, where it is not a vocabulary's file: ` (dim 'vocab' is 10)`.
  virtual std::string sizeOrigin(uint32_t) { return {}; }
  /// Told of every number that stands for a token.
  virtual void sawNumber(uint32_t, int64_t) {}
  /// Told when a record has been read, or could not be: then its words do not count.
  virtual void endRecord(bool) {}
  /// Whether extents are known yet: while words are counted, static extents may depend on the
  /// size of the vocabulary and are not checked.
  virtual bool checksExtents() const { return true; }
};

/// Looks words up and counts the unknown ones.
class VocabularyReader : public TokenReader {
public:
  /// `strict`: an unknown word is an error, not `<unk>`. The vocabularies must outlive this.
  explicit VocabularyReader(const Vocabularies &vocabularies, bool strict = false)
      : vocabularies_(vocabularies), strict_(strict) {}

  uint32_t open(const std::string &vocab) override;
  int64_t number(uint32_t handle, std::string_view word) override;
  int64_t size(uint32_t handle) override;
  std::string sizeOrigin(uint32_t handle) override;

  struct Unknown {
    std::string vocab;
    int64_t words = 0;                 ///< looked up
    int64_t unknown = 0;               ///< of them not in the vocabulary
    std::vector<std::string> examples; ///< the first few different ones
  };
  const std::vector<Unknown> &unknown() const { return opened_; }

private:
  const Vocabularies &vocabularies_;
  bool strict_;
  std::vector<const Vocabulary *> tables_;
  std::vector<Unknown> opened_;
};

/// The tokens of one vocabulary in data.
struct CountedTokens {
  WordCounter words;
  int64_t greatest = -1; ///< of those that are given as numbers; -1: none are
};

/// Counts the words of each vocabulary that data use, to build the vocabularies.
class CountingReader : public TokenReader {
public:
  uint32_t open(const std::string &vocab) override;
  int64_t number(uint32_t handle, std::string_view word) override;
  int64_t size(uint32_t) override { return INT64_MAX; }
  void sawNumber(uint32_t handle, int64_t number) override;
  void endRecord(bool kept) override;
  bool checksExtents() const override { return false; }

  /// Of the records that ended.
  const std::map<std::string, CountedTokens> &counted() const { return counted_; }
  WordCounter &words(const std::string &vocab) { return counted_[vocab].words; }

private:
  std::map<std::string, CountedTokens> counted_;
  std::vector<CountedTokens *> handles_;
  /// Of the record that is being read: words one after the other with where they end, and numbers.
  std::string text_;
  std::vector<std::pair<uint32_t, size_t>> words_;
  std::vector<std::pair<uint32_t, int64_t>> numbers_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_VOCAB_H

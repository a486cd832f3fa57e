#include "runtime/io/vocab.h"

#include "runtime/io/json.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>

namespace sheaf::io {

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

Vocabulary::Vocabulary() { add(kUnknownWord); }

Vocabulary Vocabulary::ofSize(int64_t size) {
  Vocabulary vocabulary;
  vocabulary.words_.clear();
  vocabulary.ids_.clear();
  vocabulary.size_ = size;
  return vocabulary;
}

Vocabulary Vocabulary::load(const std::string &path) { return parse(readSource(path)); }

/// The word of a line, where that is a JSON string that needs to be one; else nothing.
static std::optional<std::string> escapedWord(std::string_view line) {
  if (line.size() < 2 || line.front() != '"' || line.back() != '"' ||
      (line.size() > 2 && line.find('\\') == std::string_view::npos))
    return std::nullopt;
  JsonPull json(line);
  try {
    json.next();
    std::string word(json.text());
    bool isWhole = json.end() == line.size();
    return isWhole ? std::optional(word) : std::nullopt;
  } catch (const TextError &) {
    return std::nullopt; // a word that only looks like one
  }
}

/// A word as a line of a file.
static std::string lineOf(std::string_view word) {
  bool isPlain = !word.empty() && !escapedWord(word) &&
                 std::none_of(word.begin(), word.end(),
                              [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
  if (isPlain)
    return std::string(word);
  std::string line;
  appendJsonString(line, word);
  return line;
}

Vocabulary Vocabulary::parse(const SourceText &source) {
  requireEightBit(source);
  Vocabulary vocabulary;
  auto most = static_cast<size_t>(std::count(source.text.begin(), source.text.end(), '\n')) + 1;
  vocabulary.words_.reserve(most);
  vocabulary.ids_.reserve(most);
  LineReader lines(source.text);
  std::string_view line;
  while (lines.next(line)) {
    try {
      requireUtf8(line);
    } catch (const TextError &error) {
      failAt(source.name, lines.number(), static_cast<int64_t>(error.offset) + 1, error.message);
    }
    if (lines.number() == 1) {
      if (line != kUnknownWord)
        failAt(source.name, 1, 0,
               fmt::format("the first line of a vocabulary is '{}', found {}", kUnknownWord,
                           quoted(line)));
      continue;
    }
    if (line.empty())
      failAt(source.name, lines.number(), 0, "an empty line in a vocabulary");
    std::optional<std::string> escaped = escapedWord(line);
    std::string_view word = escaped ? *escaped : line;
    if (!vocabulary.add(word))
      failAt(source.name, lines.number(), 0,
             fmt::format("{} stands on line {} already", quoted(word), vocabulary.id(word) + 1));
  }
  if (lines.number() == 0)
    throw PlacedError({source.name}, fmt::format("an empty vocabulary: its first line must be '{}'",
                                                 kUnknownWord));
  return vocabulary;
}

std::string Vocabulary::fileText() const {
  std::string text;
  for (const std::string &word : words_) {
    text += lineOf(word);
    text += '\n';
  }
  return text;
}

void Vocabulary::save(const std::string &path) const {
  AtomicFile file(path);
  file.write(fileText());
  file.commit();
}

bool Vocabulary::add(std::string_view word) {
  if (!ids_.try_emplace(std::string(word), size_).second)
    return false;
  words_.emplace_back(word);
  ++size_;
  return true;
}

int64_t Vocabulary::find(std::string_view word) const {
  auto it = ids_.find(word);
  return it == ids_.end() ? -1 : it->second;
}

std::string_view Vocabulary::word(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(words_.size()))
    return {};
  return words_[static_cast<size_t>(id)];
}

std::string Vocabulary::hash() const {
  return contentHash(hasWords() ? fileText() : fmt::format("size {}", size_));
}

//===----------------------------------------------------------------------===//
// WordCounter
//===----------------------------------------------------------------------===//

void WordCounter::count(std::string_view word) {
  auto it = index_.find(word);
  if (it == index_.end()) {
    index_.emplace(word, words_.size());
    words_.push_back({std::string(word), 1});
  } else {
    ++words_[it->second].count;
  }
}

Vocabulary WordCounter::build(const Options &options) const {
  std::vector<const Entry *> order;
  for (const Entry &entry : words_)
    if (entry.count >= options.minCount)
      order.push_back(&entry);
  // Entries lie in order of first appearance, so their addresses break ties.
  std::sort(order.begin(), order.end(), [](const Entry *a, const Entry *b) {
    return a->count != b->count ? a->count > b->count : a < b;
  });
  Vocabulary vocabulary;
  for (const Entry *entry : order) {
    if (vocabulary.size() >= options.maxSize)
      break;
    vocabulary.add(entry->word);
  }
  return vocabulary;
}

//===----------------------------------------------------------------------===//
// Vocabularies
//===----------------------------------------------------------------------===//

static bool isIdentifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0]))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void Vocabularies::add(const std::string &given, const std::string &term) {
  std::string name, path = given;
  size_t equals = given.find('=');
  if (equals != std::string::npos && (equals == 0 || isIdentifier(given.substr(0, equals)))) {
    name = given.substr(0, equals);
    path = given.substr(equals + 1);
  }
  if (path.empty())
    throw UserError(fmt::format("{} {}: expected FILE or NAME=FILE", term, given));
  if (find(name))
    throw UserError(fmt::format("{} {}: the vocabulary of '{}' is given twice", term, given,
                                tokenTypeName(name)));
  set(name, Vocabulary::load(path));
}

void Vocabularies::set(const std::string &name, Vocabulary vocabulary) {
  byName_.insert_or_assign(name, std::move(vocabulary));
}

const Vocabulary *Vocabularies::find(const std::string &name) const {
  auto it = byName_.find(name);
  return it == byName_.end() ? nullptr : &it->second;
}

std::string Vocabularies::hashes() const {
  if (byName_.size() == 1 && byName_.begin()->first.empty())
    return byName_.begin()->second.hash();
  std::string text;
  for (const auto &[name, vocabulary] : byName_)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, vocabulary.hash());
  return text;
}

std::string tokenTypeName(const std::string &vocab) {
  return vocab.empty() ? "token" : fmt::format("token<{}>", vocab);
}

std::string sizeDimName(const std::string &vocab) {
  return vocab.empty() ? "vocab" : vocab + "_vocab";
}

//===----------------------------------------------------------------------===//
// Readers
//===----------------------------------------------------------------------===//

TokenReader::~TokenReader() = default;

uint32_t VocabularyReader::open(const std::string &vocab) {
  for (size_t i = 0; i < opened_.size(); ++i)
    if (opened_[i].vocab == vocab)
      return static_cast<uint32_t>(i);
  const Vocabulary *table = vocabularies_.find(vocab);
  if (!table)
    throw UserError(fmt::format("no vocabulary for '{}'", tokenTypeName(vocab)));
  tables_.push_back(table);
  opened_.push_back({vocab, 0, 0, {}});
  return static_cast<uint32_t>(tables_.size() - 1);
}

int64_t VocabularyReader::number(uint32_t handle, std::string_view word) {
  Unknown &seen = opened_[handle];
  ++seen.words;
  int64_t id = tables_[handle]->find(word);
  if (id >= 0)
    return id;
  ++seen.unknown;
  constexpr size_t kExamples = 5;
  if (seen.examples.size() < kExamples &&
      std::find(seen.examples.begin(), seen.examples.end(), word) == seen.examples.end())
    seen.examples.emplace_back(word);
  return strict_ ? -1 : 0;
}

int64_t VocabularyReader::size(uint32_t handle) { return tables_[handle]->size(); }

std::string VocabularyReader::sizeOrigin(uint32_t handle) {
  if (tables_[handle]->hasWords())
    return {};
  return fmt::format(" (dim '{}' is {})", sizeDimName(opened_[handle].vocab), size(handle));
}

uint32_t CountingReader::open(const std::string &vocab) {
  CountedTokens *counted = &counted_[vocab];
  auto it = std::find(handles_.begin(), handles_.end(), counted);
  if (it != handles_.end())
    return static_cast<uint32_t>(it - handles_.begin());
  handles_.push_back(counted);
  return static_cast<uint32_t>(handles_.size() - 1);
}

int64_t CountingReader::number(uint32_t handle, std::string_view word) {
  text_ += word;
  words_.emplace_back(handle, text_.size());
  return 0;
}

void CountingReader::sawNumber(uint32_t handle, int64_t number) {
  numbers_.emplace_back(handle, number);
}

void CountingReader::endRecord(bool kept) {
  size_t begin = 0;
  for (auto [handle, end] : words_) {
    if (kept)
      handles_[handle]->words.count(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
  for (auto [handle, number] : numbers_)
    if (kept)
      handles_[handle]->greatest = std::max(handles_[handle]->greatest, number);
  text_.clear();
  words_.clear();
  numbers_.clear();
}

} // namespace sheaf::io

//===- sentences.h - Lines of words -----------------------------*- C++ -*-===//
//
// Three kinds of text become lists of words:
// - text: a line is a sentence, words between white space;
// - tagged: the same, each word followed by `|` and its tag: `Punk|I-MISC band|O`;
// - trees: the words of a bracket tree from left to right, for models of sequences.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_SENTENCES_H
#define SHEAF_RUNTIME_IO_SENTENCES_H

#include "runtime/io/formats.h"

#include <optional>
#include <string_view>
#include <vector>

namespace sheaf::io {

/// One word of a tagged line. Throws TextError (offset in `item`) when it is not `word|tag`; the
/// last `|` counts, so a word may contain others.
struct TaggedWord {
  std::string_view word, tag;
};
TaggedWord splitTagged(std::string_view item);

/// The parts of a line between white space; views into it.
std::vector<std::string_view> splitWords(std::string_view line);

/// How sentences become the arguments of an entry.
///
/// The first parameter of type `list<token>` or `token[n]` takes the words. A second of such a
/// type, or of type `list<int>`, `i32[n]` or `i64[n]`, takes the tags: through its vocabulary, or
/// as integers. A parameter `label: int` takes the root's label of a tree. Nothing else fits.
class SentenceBinding final : public InstanceReader {
public:
  enum class Kind { Text, Tagged, Tree };

  /// Throws UserError that shows the parameters and what they should be.
  SentenceBinding(const ReadContext &context, Kind kind);

  /// Whether trees can be read for this entry as sentences (and not as data).
  static bool takesWords(const rt::TypeTable &types, const rt::EntryDesc &entry);

  const std::vector<rt::Slot> &read(std::string_view line) override;

private:
  struct Sequence {
    uint32_t type;
    uint32_t vocab = 0;
    bool isToken = false;
    bool isList = false;
  };
  static std::optional<Sequence> sequence(const rt::TypeTable &types, uint32_t type);
  rt::Slot token(const Sequence &to, std::string_view word, size_t offset);
  void push(const Sequence &to, const std::vector<rt::Slot> &items);
  void readTree(std::string_view line);

  const rt::TypeTable &types_;
  TokenReader &tokens_;
  SlotHeap &heap_;
  Kind kind_;
  std::vector<uint32_t> order_; ///< by argument: 0 words, 1 tags, 2 label
  Sequence words_;
  std::optional<Sequence> tags_;
  bool wantsLabel_ = false;
  std::vector<rt::Slot> wordItems_, tagItems_, args_;
  std::optional<int64_t> label_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_SENTENCES_H

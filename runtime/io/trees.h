//===- trees.h - Labelled bracket trees -------------------------*- C++ -*-===//
//
// One tree a line, as in the Stanford Sentiment Treebank:
//
//     (3 (2 It) (4 (2 is) (3 good)))
//
//     tree  ::=  '(' label? word ')'  |  '(' label? tree+ ')'
//     label ::=  an integer
//     word  ::=  anything without white space and brackets
//
// In `(7)` the 7 is the word. Words are taken as they stand: `\/` and `-LRB-` are not decoded.
// A tree does not go on on the next line; blank lines are skipped.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_TREES_H
#define SHEAF_RUNTIME_IO_TREES_H

#include "runtime/io/dataset.h"
#include "runtime/io/vocab.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::io {

/// The parts of one tree, in order. Memory grows with the depth, machine stack does not.
/// Throws TextError for a text that is not exactly one tree.
class TreeEvents {
public:
  explicit TreeEvents(std::string_view text) : text_(text) {}

  enum Kind { Open, Word, Close, End };
  /// Open: an inner node begins. Word: a whole word node. Close: the inner node opened last and
  /// not yet closed ends.
  Kind next();

  /// Open, Word: where the node begins. Close: where the node that ends began.
  size_t offset() const { return offset_; }
  /// Open, Word, Close: the node's label, if it has one.
  std::optional<int64_t> label() const { return label_; }
  /// Word: the word and where it is.
  std::string_view word() const { return word_; }
  size_t wordOffset() const { return static_cast<size_t>(word_.data() - text_.data()); }
  /// Close: how many children the node has.
  int64_t children() const { return children_; }

private:
  struct Node {
    size_t offset;
    std::optional<int64_t> label;
    int64_t children;
  };
  Kind beginNode();
  std::string_view atom();
  void skipSpace();
  std::string found() const;

  std::string_view text_;
  size_t at_ = 0;
  size_t offset_ = 0;
  std::optional<int64_t> label_;
  std::string_view word_;
  int64_t children_ = 0;
  std::vector<Node> open_;
  bool done_ = false;
};

/// The words of a tree from left to right. Throws TextError.
std::vector<std::string_view> treeWords(std::string_view text);

/// How bracket trees become values of one data type (docs/data.md):
/// - a word node builds the constructor whose fields are one `token` and perhaps `label: int`;
/// - an inner node with k children builds the constructor with k fields of the type itself, else
///   the one with one `list<T>` of it, each perhaps with `label: int`;
/// - a field `label: int` takes the node's label, wherever it stands among the fields.
/// Constructors of other forms are never built. Two that would do for the same node are an error
/// here; a node that no constructor fits is an error when it is read.
class TreeBinding {
public:
  /// Throws UserError that shows the type and a tree that cannot be built.
  TreeBinding(const rt::TypeTable &types, uint32_t type);

  /// What builds what, one line each, for people.
  std::string explain() const;

  /// Reads one tree. Throws TextError.
  rt::Slot read(std::string_view text, TokenReader &tokens, SlotHeap &heap) const;
  rt::Slot read(std::string_view text, TokenReader &tokens, SlotHeap &heap,
                std::optional<int64_t> &rootLabel) const;

private:
  struct Builder {
    uint32_t ctor;
    int64_t arity;      ///< fields
    int64_t labelField; ///< -1: none
    int64_t firstField; ///< the token, or the list
    bool isList = false;
    std::vector<int64_t> childFields;
    int64_t children = 0; ///< that a node must have; -1: any number
  };
  rt::Slot buildInner(const Builder &, std::optional<int64_t> label, size_t offset,
                      const rt::Slot *children, int64_t count, SlotHeap &heap) const;
  const Builder *inner(int64_t children) const;
  rt::Slot label(const Builder &, std::optional<int64_t> label, size_t offset) const;
  [[noreturn]] void ambiguous(uint32_t first, uint32_t second, const char *node,
                              const char *tree) const;

  std::string typeName_;
  std::string declaration_;
  std::vector<std::string> ctorNames_;
  std::string vocab_;
  std::optional<Builder> word_;
  std::optional<Builder> list_;
  std::vector<Builder> fixed_; ///< by rising number of children
};

/// Shortens a tree's text for a message.
std::string excerpt(std::string_view tree, size_t limit = 60);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_TREES_H

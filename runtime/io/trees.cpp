#include "runtime/io/trees.h"

#include "runtime/io/types.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace sheaf::io {

using rt::Slot;
using rt::TypeKind;

//===----------------------------------------------------------------------===//
// TreeEvents
//===----------------------------------------------------------------------===//

void TreeEvents::skipSpace() {
  while (at_ < text_.size() && isSpace(text_[at_]))
    ++at_;
}

std::string_view TreeEvents::atom() {
  size_t begin = at_;
  while (at_ < text_.size() && !isSpace(text_[at_]) && text_[at_] != '(' && text_[at_] != ')')
    ++at_;
  return text_.substr(begin, at_ - begin);
}

/// What stands at the current place.
std::string TreeEvents::found() const {
  if (at_ >= text_.size())
    return "the end of the tree";
  TreeEvents rest(text_.substr(at_));
  std::string_view word = rest.atom();
  return quoted(word.empty() ? text_.substr(at_, 1) : word);
}

TreeEvents::Kind TreeEvents::next() {
  skipSpace();
  if (open_.empty()) {
    if (!done_) {
      if (at_ >= text_.size() || text_[at_] != '(')
        throw TextError{at_, fmt::format("expected '(' to begin a tree, found {}", found())};
      done_ = true;
      return beginNode();
    }
    if (at_ < text_.size())
      throw TextError{
          at_, fmt::format("expected the end of the line after the tree, found {}", found())};
    return End;
  }
  if (at_ >= text_.size())
    throw TextError{at_, fmt::format("expected ')': {} not closed, the innermost begins at "
                                     "column {}",
                                     open_.size() == 1 ? std::string("1 node is")
                                                       : fmt::format("{} nodes are", open_.size()),
                                     open_.back().offset + 1)};
  if (text_[at_] == '(') {
    ++open_.back().children;
    return beginNode();
  }
  if (text_[at_] == ')') {
    ++at_;
    offset_ = open_.back().offset;
    label_ = open_.back().label;
    children_ = open_.back().children;
    open_.pop_back();
    return Close;
  }
  throw TextError{at_, fmt::format("expected '(' or ')' after a subtree, found {} (a node has one "
                                   "word or subtrees, not both)",
                                   found())};
}

/// At the '(' of a node.
TreeEvents::Kind TreeEvents::beginNode() {
  offset_ = at_++;
  label_.reset();
  skipSpace();
  std::string_view first = atom();
  size_t firstAt = at_ - first.size();
  skipSpace();
  char next = at_ < text_.size() ? text_[at_] : '\0';
  if (first.empty()) {
    if (next == '(') {
      open_.push_back({offset_, label_, 0});
      return Open;
    }
    throw TextError{at_, fmt::format("expected a label, a word or a subtree, found {}", found())};
  }
  if (next == ')') {
    word_ = first;
    ++at_;
    return Word;
  }
  if (at_ >= text_.size())
    throw TextError{at_, fmt::format("expected a word, a subtree or ')', found {}", found())};
  int64_t label = 0;
  auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), label);
  if (error != std::errc() || end != first.data() + first.size())
    throw TextError{firstAt, fmt::format("expected an integer label, found {}", quoted(first))};
  label_ = label;
  if (next == '(') {
    open_.push_back({offset_, label_, 0});
    return Open;
  }
  word_ = atom();
  skipSpace();
  if (at_ < text_.size() && text_[at_] == ')') {
    ++at_;
    return Word;
  }
  throw TextError{at_,
                  fmt::format("expected ')' after the word {}, found {}", quoted(word_), found())};
}

std::string excerpt(std::string_view tree, size_t limit) {
  std::string text = quoted(tree, limit);
  return text.substr(1, text.size() - 2);
}

//===----------------------------------------------------------------------===//
// TreeBinding
//===----------------------------------------------------------------------===//

void TreeBinding::ambiguous(uint32_t first, uint32_t second, const char *node,
                            const char *tree) const {
  throw UserError(fmt::format("bracket trees do not say which constructor of '{}' to build: both "
                              "'{}' and '{}' fit {} such as {}\n  {}",
                              typeName_, ctorNames_[first], ctorNames_[second], node, tree,
                              declaration_));
}

TreeBinding::TreeBinding(const rt::TypeTable &types, uint32_t type) {
  typeName_ = io::typeName(types, type);
  if (types.types[type].kind != TypeKind::Data)
    throw UserError(fmt::format("bracket trees such as (3 (2 It) (4 works)) need a data type, not "
                                "'{}'",
                                typeName_));
  uint32_t dataIndex = types.types[type].data;
  const rt::DataDesc &data = types.data[dataIndex];
  declaration_ = dataDeclaration(types, dataIndex);
  auto isSelf = [&](uint32_t t) {
    return types.types[t].kind == TypeKind::Data && types.types[t].data == dataIndex;
  };
  for (uint32_t c = 0; c < data.ctors.size(); ++c)
    ctorNames_.push_back(data.ctors[c].name);
  for (uint32_t c = 0; c < data.ctors.size(); ++c) {
    const rt::CtorDesc &ctor = data.ctors[c];
    Builder builder{c, static_cast<int64_t>(ctor.fieldTypes.size()), -1, -1, false, {}, 0};
    int64_t words = 0, lists = 0, others = 0;
    for (size_t f = 0; f < ctor.fieldTypes.size(); ++f) {
      const rt::TypeDesc &field = types.types[ctor.fieldTypes[f]];
      int64_t at = static_cast<int64_t>(f);
      if (isSelf(ctor.fieldTypes[f])) {
        builder.childFields.push_back(at);
      } else if (field.kind == TypeKind::Token) {
        ++words;
        builder.firstField = at;
      } else if (field.kind == TypeKind::List && isSelf(field.children.at(0))) {
        ++lists;
        builder.firstField = at;
        builder.children = field.length.value_or(-1);
      } else if (field.kind == TypeKind::Int && f < ctor.fieldNames.size() &&
                 ctor.fieldNames[f] == "label") {
        builder.labelField = at;
      } else {
        ++others;
      }
    }
    int64_t subtrees = static_cast<int64_t>(builder.childFields.size());
    if (others)
      continue;
    if (words == 1 && lists == 0 && subtrees == 0) {
      if (word_)
        ambiguous(word_->ctor, c, "a word node", "(2 word)");
      vocab_ = types.types[ctor.fieldTypes[static_cast<size_t>(builder.firstField)]].vocab;
      word_ = std::move(builder);
    } else if (words == 0 && lists == 1 && subtrees == 0 && builder.children < 0) {
      if (list_)
        ambiguous(list_->ctor, c, "an inner node", "(3 (2 a) (2 b) (2 c))");
      builder.isList = true;
      list_ = std::move(builder);
    } else if (words == 0 && (lists == 0 ? subtrees > 0 : lists == 1 && subtrees == 0)) {
      builder.isList = lists == 1;
      if (!builder.isList)
        builder.children = subtrees;
      int64_t children = builder.children;
      if (const Builder *other = inner(children); other && other->children == children) {
        std::string tree = "(3";
        for (int64_t i = 0; i < std::min<int64_t>(children, 8); ++i)
          tree += " (2 word)";
        ambiguous(other->ctor, c,
                  fmt::format("an inner node with {}",
                              children == 1 ? "1 child" : fmt::format("{} children", children))
                      .c_str(),
                  (tree + ")").c_str());
      }
      fixed_.push_back(std::move(builder));
    }
  }
  if (!word_)
    throw UserError(
        fmt::format("bracket trees cannot build '{}': no constructor is for a word node "
                    "such as (2 word); it would have one field of type token and "
                    "perhaps 'label: int'\n  {}",
                    typeName_, declaration_));
  std::sort(fixed_.begin(), fixed_.end(),
            [](const Builder &a, const Builder &b) { return a.children < b.children; });
}

std::string TreeBinding::explain() const {
  auto labelled = [](const Builder &b) { return b.labelField >= 0 ? ", with its label" : ""; };
  std::string text =
      fmt::format("(2 word) builds {}{}\n", ctorNames_[word_->ctor], labelled(*word_));
  for (const Builder &b : fixed_)
    text += fmt::format("a node of {} builds {}{}\n",
                        b.children == 1 ? "1 subtree" : fmt::format("{} subtrees", b.children),
                        ctorNames_[b.ctor], labelled(b));
  if (list_)
    text += fmt::format("a node of {} subtrees builds {}{}\n",
                        fixed_.empty() ? "any number of" : "any other number of",
                        ctorNames_[list_->ctor], labelled(*list_));
  return text;
}

const TreeBinding::Builder *TreeBinding::inner(int64_t children) const {
  for (const Builder &b : fixed_)
    if (b.children == children)
      return &b;
  return list_ ? &*list_ : nullptr;
}

Slot TreeBinding::label(const Builder &builder, std::optional<int64_t> label, size_t offset) const {
  if (!label)
    throw TextError{offset, fmt::format("this node has no label, but '{}' of '{}' has a field "
                                        "'label: int'",
                                        ctorNames_[builder.ctor], typeName_)};
  return *label;
}

Slot TreeBinding::buildInner(const Builder &builder, std::optional<int64_t> nodeLabel,
                             size_t offset, const Slot *children, int64_t count,
                             SlotHeap &heap) const {
  Slot list = builder.isList ? heap.list(children, count, 1) : 0;
  Slot *object = heap.allocate(1 + builder.arity);
  object[0] = builder.ctor;
  if (builder.labelField >= 0)
    object[1 + builder.labelField] = label(builder, nodeLabel, offset);
  if (builder.isList)
    object[1 + builder.firstField] = list;
  else
    for (int64_t i = 0; i < count; ++i)
      object[1 + builder.childFields[static_cast<size_t>(i)]] = children[i];
  return reinterpret_cast<Slot>(object);
}

Slot TreeBinding::read(std::string_view text, TokenReader &tokens, SlotHeap &heap) const {
  std::optional<int64_t> rootLabel;
  return read(text, tokens, heap, rootLabel);
}

Slot TreeBinding::read(std::string_view text, TokenReader &tokens, SlotHeap &heap,
                       std::optional<int64_t> &rootLabel) const {
  uint32_t vocab = tokens.open(vocab_);
  TreeEvents events(text);
  std::vector<Slot> values; // finished subtrees whose parent is still open
  for (;;) {
    switch (events.next()) {
    case TreeEvents::Open:
      break;
    case TreeEvents::Word: {
      int64_t id = tokens.number(vocab, events.word());
      if (id < 0)
        throw TextError{events.wordOffset(),
                        fmt::format("the word {} is not in the vocabulary of '{}'",
                                    quoted(events.word()), tokenTypeName(vocab_))};
      Slot *object = heap.allocate(1 + word_->arity);
      object[0] = word_->ctor;
      object[1 + word_->firstField] = id;
      if (word_->labelField >= 0)
        object[1 + word_->labelField] = label(*word_, events.label(), events.offset());
      values.push_back(reinterpret_cast<Slot>(object));
      rootLabel = events.label();
      break;
    }
    case TreeEvents::Close: {
      int64_t count = events.children();
      const Builder *builder = inner(count);
      if (!builder)
        throw TextError{events.offset(),
                        fmt::format("no constructor of '{}' takes {}: {}\n  {}", typeName_,
                                    count == 1 ? "1 subtree" : fmt::format("{} subtrees", count),
                                    excerpt(text.substr(events.offset())), declaration_)};
      size_t first = values.size() - static_cast<size_t>(count);
      Slot node =
          buildInner(*builder, events.label(), events.offset(), values.data() + first, count, heap);
      values.resize(first);
      values.push_back(node);
      rootLabel = events.label();
      break;
    }
    case TreeEvents::End:
      return values.back();
    }
  }
}

std::vector<std::string_view> treeWords(std::string_view text) {
  std::vector<std::string_view> words;
  TreeEvents events(text);
  for (TreeEvents::Kind kind = events.next(); kind != TreeEvents::End; kind = events.next())
    if (kind == TreeEvents::Word)
      words.push_back(events.word());
  return words;
}

} // namespace sheaf::io

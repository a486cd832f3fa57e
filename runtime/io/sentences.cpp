#include "runtime/io/sentences.h"

#include "runtime/io/trees.h"
#include "runtime/io/types.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>

namespace sheaf::io {

using rt::Slot;
using rt::TypeKind;

TaggedWord splitTagged(std::string_view item) {
  size_t bar = item.rfind('|');
  if (bar == std::string_view::npos)
    throw TextError{0,
                    fmt::format("expected a word and its tag as word|tag, found {}", quoted(item))};
  if (bar == 0)
    throw TextError{0, fmt::format("no word before the '|' of {}", quoted(item))};
  if (bar + 1 == item.size())
    throw TextError{bar, fmt::format("no tag after the '|' of {}", quoted(item))};
  return {item.substr(0, bar), item.substr(bar + 1)};
}

std::vector<std::string_view> splitWords(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  for (;;) {
    while (at < line.size() && isSpace(line[at]))
      ++at;
    if (at == line.size())
      return words;
    size_t begin = at;
    while (at < line.size() && !isSpace(line[at]))
      ++at;
    words.push_back(line.substr(begin, at - begin));
  }
}

//===----------------------------------------------------------------------===//
// SentenceBinding
//===----------------------------------------------------------------------===//

std::optional<SentenceBinding::Sequence> SentenceBinding::sequence(const rt::TypeTable &types,
                                                                   uint32_t t) {
  const rt::TypeDesc &type = types.types[t];
  if (type.kind == TypeKind::List) {
    TypeKind element = types.types[type.children.at(0)].kind;
    if (element == TypeKind::Token || element == TypeKind::Int)
      return Sequence{t, 0, element == TypeKind::Token, true};
  }
  if (type.kind == TypeKind::Tensor && type.shape.size() == 1 &&
      (type.isToken || type.dtype == rt::DType::I32 || type.dtype == rt::DType::I64))
    return Sequence{t, 0, type.isToken, false};
  return std::nullopt;
}

bool SentenceBinding::takesWords(const rt::TypeTable &types, const rt::EntryDesc &entry) {
  return std::any_of(entry.argTypes.begin(), entry.argTypes.end(), [&](uint32_t t) {
    std::optional<Sequence> found = sequence(types, t);
    return found && found->isToken;
  });
}

SentenceBinding::SentenceBinding(const ReadContext &context, Kind kind)
    : types_(context.types), tokens_(context.tokens), heap_(context.heap), kind_(kind) {
  const rt::TypeTable &types = types_;
  const rt::EntryDesc &entry = context.entry;
  std::string signature;
  for (size_t i = 0; i < entry.argTypes.size(); ++i)
    signature += fmt::format("{}{}: {}", i ? ", " : "", entry.argNames[i],
                             typeName(types, entry.argTypes[i]));
  const char *form = kind == Kind::Text     ? "lines of text"
                     : kind == Kind::Tagged ? "tagged sentences"
                                            : "the words of trees";
  bool hasWords = false;
  for (size_t i = 0; i < entry.argTypes.size(); ++i) {
    std::optional<Sequence> found = sequence(types, entry.argTypes[i]);
    if (found && found->isToken && !hasWords) {
      words_ = *found;
      hasWords = true;
      order_.push_back(0);
    } else if (found && kind == Kind::Tagged && !tags_) {
      tags_ = *found;
      order_.push_back(1);
    } else if (kind == Kind::Tree && !wantsLabel_ && entry.argNames[i] == "label" &&
               types.types[entry.argTypes[i]].kind == TypeKind::Int) {
      wantsLabel_ = true;
      order_.push_back(2);
    } else {
      throw UserError(fmt::format(
          "{} cannot give the parameter '{}: {}' of '{}({})'; {}", form, entry.argNames[i],
          typeName(types, entry.argTypes[i]), entry.name, signature,
          kind == Kind::Text     ? "they give one list<token> or token[n]"
          : kind == Kind::Tagged ? "they give one list<token> or token[n] of words and one "
                                   "of tags (also list<int>, i32[n] or i64[n])"
                                 : "they give one list<token> or token[n] and 'label: int'"));
    }
  }
  if (!hasWords)
    throw UserError(fmt::format("{} need a parameter of type list<token> or token[n]; '{}({})' has "
                                "none",
                                form, entry.name, signature));
  auto open = [&](Sequence &s) {
    const rt::TypeDesc &type = types.types[s.type];
    if (s.isToken)
      s.vocab = tokens_.open(s.isList ? types.types[type.children[0]].vocab : type.vocab);
  };
  open(words_);
  if (tags_)
    open(*tags_);
}

Slot SentenceBinding::token(const Sequence &to, std::string_view word, size_t offset) {
  const rt::TypeDesc &type = types_.types[to.type];
  if (to.isToken) {
    int64_t id = tokens_.number(to.vocab, word);
    if (id < 0)
      throw TextError{offset,
                      fmt::format("the word {} is not in the vocabulary of '{}'", quoted(word),
                                  tokenTypeName(to.isList ? types_.types[type.children[0]].vocab
                                                          : type.vocab))};
    return id;
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    throw TextError{offset, fmt::format("expected an integer tag for {}, found {} (a parameter of "
                                        "type list<token<tag>> takes words)",
                                        typeName(types_, to.type), quoted(word))};
  if (!to.isList && type.dtype == rt::DType::I32 &&
      (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()))
    throw TextError{offset,
                    fmt::format("the tag {} does not fit {}", value, typeName(types_, to.type))};
  return value;
}

void SentenceBinding::push(const Sequence &to, const std::vector<Slot> &items) {
  int64_t count = static_cast<int64_t>(items.size());
  const rt::TypeDesc &type = types_.types[to.type];
  int64_t needed = to.isList ? type.length.value_or(-1) : type.shape[0];
  if (needed >= 0 && needed != count && tokens_.checksExtents())
    throw TextError{0, fmt::format("{} needs {}, found {}", typeName(types_, to.type),
                                   plural(needed, "word"), count)};
  if (to.isList) {
    args_.push_back(heap_.list(items.data(), count, 1));
    return;
  }
  if (type.dtype == rt::DType::I64) {
    args_.push_back(heap_.tensor(type.dtype, {count}, items.data()));
  } else {
    std::vector<int32_t> narrow(items.begin(), items.end());
    args_.push_back(heap_.tensor(type.dtype, {count}, narrow.data()));
  }
  if (type.shape[0] < 0)
    args_.push_back(count);
}

void SentenceBinding::readTree(std::string_view line) {
  TreeEvents events(line);
  for (;;) {
    TreeEvents::Kind kind = events.next();
    if (kind == TreeEvents::End)
      break;
    if (kind == TreeEvents::Word)
      wordItems_.push_back(token(words_, events.word(), events.wordOffset()));
    if (kind != TreeEvents::Open)
      label_ = events.label();
  }
  if (wantsLabel_ && !label_)
    throw TextError{0, "this tree has no label at its root, but the parameter 'label: int' needs "
                       "one"};
}

const std::vector<Slot> &SentenceBinding::read(std::string_view line) {
  wordItems_.clear();
  tagItems_.clear();
  args_.clear();
  if (kind_ == Kind::Tree) {
    readTree(line);
  } else {
    for (std::string_view item : splitWords(line)) {
      size_t offset = static_cast<size_t>(item.data() - line.data());
      if (kind_ == Kind::Text) {
        wordItems_.push_back(token(words_, item, offset));
        continue;
      }
      TaggedWord tagged;
      try {
        tagged = splitTagged(item);
      } catch (TextError &error) {
        error.offset += offset;
        throw;
      }
      wordItems_.push_back(token(words_, tagged.word, offset));
      if (tags_)
        tagItems_.push_back(token(*tags_, tagged.tag, offset + tagged.word.size() + 1));
    }
  }
  for (uint32_t part : order_) {
    if (part == 2)
      args_.push_back(*label_);
    else
      push(part == 0 ? words_ : *tags_, part == 0 ? wordItems_ : tagItems_);
  }
  return args_;
}

} // namespace sheaf::io

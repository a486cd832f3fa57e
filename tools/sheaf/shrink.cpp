//===- shrink.cpp - Texts made smaller ------------------------------------===//
#include "tools/sheaf/shrink.h"

#include "compiler/frontend/Lexer.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <set>

namespace sheaf::tool {

namespace {

Piece::Kind kindOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::Integer:
    return Piece::Number;
  case TokenKind::LeftParen:
  case TokenKind::LeftBracket:
  case TokenKind::LeftBrace:
    return Piece::Open;
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
  case TokenKind::RightBrace:
    return Piece::Close;
  case TokenKind::Comma:
  case TokenKind::Semicolon:
    return Piece::Comma;
  case TokenKind::Plus:
  case TokenKind::Minus:
  case TokenKind::Star:
  case TokenKind::Slash:
  case TokenKind::Percent:
  case TokenKind::At:
  case TokenKind::EqualEqual:
  case TokenKind::NotEqual:
  case TokenKind::Less:
  case TokenKind::LessEqual:
  case TokenKind::Greater:
  case TokenKind::GreaterEqual:
  case TokenKind::AndAnd:
  case TokenKind::OrOr:
  case TokenKind::ColonColon:
  case TokenKind::Pipe:
    return Piece::Infix;
  case TokenKind::Equal:
  case TokenKind::FatArrow:
  case TokenKind::Arrow:
    return Piece::Boundary;
  case TokenKind::Identifier:
  case TokenKind::Float:
  case TokenKind::String:
    return Piece::Word;
  default:
    return Piece::Other;
  }
}

/// [begin, end) of the pieces.
struct Range {
  size_t begin, end;
  bool operator<(const Range &other) const {
    return std::pair(begin, end) < std::pair(other.begin, other.end);
  }
};

/// What is between two brackets, or the whole, with the items that it is put together of.
struct Group {
  Range inside;
  std::vector<Range> items; ///< the comma behind an item is part of it
};

class Shrinker {
public:
  Shrinker(Pieces pieces, const std::function<bool(const Pieces &)> &keeps)
      : pieces_(std::move(pieces)), keeps_(keeps) {}

  Pieces run() {
    for (bool smaller = true; smaller;) {
      size_t before = pieces_.size();
      numbersChanged_ = false;
      dropItems();
      dropNames();
      dropArguments();
      hoist();
      halveOperators();
      lowerNumbers();
      smaller = pieces_.size() < before || numbersChanged_;
    }
    return std::move(pieces_);
  }

private:
  /// What is left without some ranges. A place where an item began stays one.
  Pieces without(std::vector<Range> ranges) const {
    std::sort(ranges.begin(), ranges.end());
    Pieces left;
    size_t at = 0;
    bool starts = false;
    std::string before;
    auto take = [&](size_t end) {
      for (; at < end; ++at) {
        left.push_back(pieces_[at]);
        if (starts && !left.back().startsItem) {
          left.back().startsItem = true;
          left.back().before = before;
        }
        starts = false;
      }
    };
    for (const Range &range : ranges) {
      if (range.begin < at)
        continue; // inside of one that is left out
      take(range.begin);
      if (range.begin < range.end && pieces_[range.begin].startsItem) {
        starts = true;
        before = pieces_[range.begin].before;
      }
      at = range.end;
    }
    // A bracket's end begins no item.
    if (at < pieces_.size() && pieces_[at].kind == Piece::Close)
      starts = false;
    take(pieces_.size());
    return left;
  }

  bool attempt(Pieces candidate) {
    if (candidate.empty() || !seen_.insert(textOf(candidate)).second || !keeps_(candidate))
      return false;
    pieces_ = std::move(candidate);
    return true;
  }

  /// The end of each bracket; 0 for what is none. A bracket without end reaches to the end.
  std::vector<size_t> closers() const {
    std::vector<size_t> ends(pieces_.size());
    std::vector<size_t> open;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].kind == Piece::Open)
        open.push_back(i);
      else if (pieces_[i].kind == Piece::Close && !open.empty()) {
        ends[open.back()] = i;
        open.pop_back();
      }
    }
    for (size_t i : open)
      ends[i] = pieces_.size();
    return ends;
  }

  Group groupOf(Range inside, const std::vector<size_t> &ends) const {
    Group group{inside, {}};
    size_t begin = inside.begin;
    for (size_t i = inside.begin; i < inside.end; ++i) {
      if (i > begin && pieces_[i].startsItem) {
        group.items.push_back({begin, i});
        begin = i;
      }
      if (pieces_[i].kind == Piece::Open)
        i = std::min(ends[i], inside.end - 1);
      else if (pieces_[i].kind == Piece::Comma) {
        group.items.push_back({begin, i + 1});
        begin = i + 1;
      }
    }
    if (begin < inside.end)
      group.items.push_back({begin, inside.end});
    return group;
  }

  /// The whole first, then brackets by their begin: large ones before what is in them.
  std::vector<Group> groups() const {
    std::vector<size_t> ends = closers();
    std::vector<Group> all{groupOf({0, pieces_.size()}, ends)};
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i].kind == Piece::Open)
        all.push_back(groupOf({i + 1, ends[i]}, ends));
    return all;
  }

  /// An item to be dropped, with the comma before it when it is the last.
  Range dropped(const Group &group, size_t item) const {
    Range range = group.items[item];
    if (item > 0 && item + 1 == group.items.size() &&
        pieces_[group.items[item - 1].end - 1].kind == Piece::Comma)
      --range.begin;
    return range;
  }

  /// Items of every group: halves, quarters, ..., single ones.
  void dropItems() {
    for (size_t g = 0;; ++g) {
      std::vector<Group> all = groups();
      if (g >= all.size())
        return;
      for (size_t chunk = std::max<size_t>(all[g].items.size() / 2, 1);; chunk /= 2) {
        // From the end: what comes later needs what came before.
        for (size_t end = all[g].items.size(); end > 0;) {
          size_t begin = end > chunk ? end - chunk : 0;
          std::vector<Range> ranges;
          for (size_t i = begin; i < end; ++i)
            ranges.push_back(dropped(all[g], i));
          end = begin;
          if (attempt(without(ranges))) {
            all = groups();
            if (g >= all.size())
              return;
            end = std::min(end, all[g].items.size());
          }
        }
        if (chunk <= 1)
          break;
      }
    }
  }

  /// Everything that names something, at once: a field with its uses, a constructor with its arms.
  void dropNames() {
    std::set<std::string> names;
    for (const Piece &piece : pieces_)
      if (piece.kind == Piece::Word)
        names.insert(piece.text);
    for (const std::string &name : names) {
      std::vector<Group> all = groups();
      std::vector<Range> ranges;
      for (size_t i = 0; i < pieces_.size(); ++i) {
        if (pieces_[i].kind != Piece::Word || pieces_[i].text != name)
          continue;
        // The smallest item around it.
        const Group *smallest = nullptr;
        for (const Group &group : all)
          if (group.inside.begin <= i && i < group.inside.end &&
              (!smallest || group.inside.begin >= smallest->inside.begin))
            smallest = &group;
        for (size_t item = 0; item < smallest->items.size(); ++item)
          if (smallest->items[item].begin <= i && i < smallest->items[item].end)
            ranges.push_back(dropped(*smallest, item));
      }
      attempt(without(ranges));
    }
  }

  /// The same argument of every call and of the declaration.
  void dropArguments() {
    std::set<std::string> names;
    for (size_t i = 0; i + 1 < pieces_.size(); ++i)
      if (pieces_[i].kind == Piece::Word && pieces_[i + 1].kind == Piece::Open)
        names.insert(pieces_[i].text);
    for (const std::string &name : names)
      for (size_t number = 8; number-- > 0;) {
        std::vector<size_t> ends = closers();
        std::vector<Range> ranges;
        for (size_t i = 0; i + 1 < pieces_.size(); ++i)
          if (pieces_[i].text == name && pieces_[i + 1].kind == Piece::Open) {
            Group group = groupOf({i + 2, ends[i + 1]}, ends);
            if (number < group.items.size())
              ranges.push_back(dropped(group, number));
          }
        if (!ranges.empty())
          attempt(without(ranges));
      }
  }

  /// Where the expression of an item begins: behind its last `=` or `=>`, or with it.
  size_t expression(const Range &item, const std::vector<size_t> &ends) const {
    size_t begin = item.begin;
    for (size_t i = item.begin; i < item.end; ++i) {
      if (pieces_[i].kind == Piece::Open)
        i = ends[i];
      else if (pieces_[i].kind == Piece::Boundary)
        begin = i + 1;
    }
    return begin;
  }

  /// An expression gives way to a bracket in it, with or without the bracket's marks, or to an item
  /// of that.
  void hoist() {
    for (size_t g = 0; g < groups().size(); ++g)
      for (size_t n = 0;; ++n) {
        std::vector<Group> all = groups();
        if (g >= all.size() || n >= all[g].items.size())
          break;
        std::vector<size_t> ends = closers();
        Range item = all[g].items[n];
        size_t end = pieces_[item.end - 1].kind == Piece::Comma ? item.end - 1 : item.end;
        size_t begin = expression({item.begin, end}, ends);
        bool done = false;
        for (size_t i = begin; i < end && !done; ++i) {
          if (pieces_[i].kind != Piece::Open || ends[i] >= end)
            continue;
          Group inner = groupOf({i + 1, ends[i]}, ends);
          if (i > begin || ends[i] + 1 < end)
            done = attempt(without({{begin, i}, {ends[i] + 1, end}}));
          for (const Range &part : inner.items) {
            if (done)
              break;
            size_t partEnd = pieces_[part.end - 1].kind == Piece::Comma ? part.end - 1 : part.end;
            done = attempt(without({{begin, part.begin}, {partEnd, end}}));
          }
        }
        if (done)
          --n; // once more, of what it has become
      }
  }

  /// `a + b` gives way to `a` or `b`.
  void halveOperators() {
    for (size_t at = 0; at < pieces_.size(); ++at) {
      if (pieces_[at].kind != Piece::Infix)
        continue;
      std::vector<size_t> ends = closers();
      Range around{0, 0};
      for (const Group &group : groups())
        for (const Range &item : group.items)
          if (item.begin <= at && at < item.end && group.inside.begin >= around.begin)
            around = {item.begin,
                      pieces_[item.end - 1].kind == Piece::Comma ? item.end - 1 : item.end};
      size_t begin = expression(around, ends);
      if (begin > at)
        begin = around.begin;
      size_t operand = at + 1 < pieces_.size() && pieces_[at + 1].kind == Piece::Open
                           ? ends[at + 1] + 1
                           : at + 2;
      if (attempt(without({{at, around.end}})) || attempt(without({{begin, at + 1}})) ||
          attempt(without({{at, std::min(operand, pieces_.size())}})))
        --at;
    }
  }

  void lowerNumbers() {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].kind != Piece::Number || pieces_[i].text.size() > 9)
        continue;
      int64_t value = std::stoll(pieces_[i].text);
      for (int64_t lower : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, value / 4, value / 2})
        if (lower < value) {
          Pieces candidate = pieces_;
          candidate[i].text = std::to_string(lower);
          if (attempt(std::move(candidate))) {
            numbersChanged_ = true;
            break;
          }
        }
    }
  }

  Pieces pieces_;
  const std::function<bool(const Pieces &)> &keeps_;
  std::set<std::string> seen_;
  bool numbersChanged_ = false;
};

} // namespace

Pieces programPieces(std::string_view text) {
  SourceFile source("reduced.sheaf", std::string(text));
  Diagnostics unheard(source);
  Pieces pieces;
  std::vector<char> open;
  for (const Token &token : lex(source, unheard)) {
    if (token.kind == TokenKind::End)
      break;
    Piece piece;
    piece.kind = kindOf(token.kind);
    piece.text = source.slice(token.range);
    if (piece.kind == Piece::Close && !open.empty())
      open.pop_back();
    // A line inside of ( ) or [ ] begins nothing, nor does one that goes on with an operator.
    bool blank = !open.empty() && open.back() != '{';
    if (token.startsLine) {
      piece.before = pieces.empty() ? "" : "\n" + std::string(2 * open.size(), ' ');
      piece.startsItem =
          !blank && piece.kind != Piece::Close && (piece.kind != Piece::Infix || piece.text == "-");
    } else if (!pieces.empty()) {
      size_t end = token.range.begin;
      piece.before = end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) ? " " : "";
    }
    if (piece.kind == Piece::Open)
      open.push_back(piece.text[0]);
    // The first of a block is an item too.
    if (!pieces.empty() && pieces.back().text == "{" && piece.kind != Piece::Close)
      piece.startsItem = true;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Pieces dataPieces(std::string_view text) {
  Pieces pieces;
  std::string before;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) {
      before += c;
      ++i;
      continue;
    }
    size_t end = i + 1;
    Piece piece;
    if (std::string_view("([{").find(c) != std::string_view::npos) {
      piece.kind = Piece::Open;
    } else if (std::string_view(")]}").find(c) != std::string_view::npos) {
      piece.kind = Piece::Close;
    } else if (c == ',') {
      piece.kind = Piece::Comma;
    } else if (c == ':') {
      piece.kind = Piece::Boundary;
    } else if (c == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             std::string_view("()[]{},:\"").find(text[end]) == std::string_view::npos)
        ++end;
    }
    piece.text = text.substr(i, end - i);
    if (piece.kind == Piece::Word &&
        piece.text.find_first_not_of("0123456789") == std::string::npos)
      piece.kind = Piece::Number;
    piece.before = std::move(before);
    before.clear();
    // Words of a sentence, branches of a tree: behind a blank, or where a bracket follows one.
    bool afterBoundary = !pieces.empty() && pieces.back().kind == Piece::Boundary;
    piece.startsItem = piece.kind != Piece::Close && piece.kind != Piece::Comma &&
                       piece.kind != Piece::Boundary && !afterBoundary &&
                       (!piece.before.empty() || piece.kind == Piece::Open);
    pieces.push_back(std::move(piece));
    i = end;
  }
  return pieces;
}

std::string textOf(const Pieces &pieces) {
  std::string text;
  for (const Piece &piece : pieces)
    text += (text.empty() ? "" : piece.before) + piece.text;
  return text;
}

Pieces shrink(Pieces pieces, const std::function<bool(const Pieces &)> &keeps) {
  return Shrinker(std::move(pieces), keeps).run();
}

std::vector<size_t> shrinkList(size_t count,
                               const std::function<bool(const std::vector<size_t> &)> &keeps) {
  std::vector<size_t> left(count);
  for (size_t i = 0; i < count; ++i)
    left[i] = i;
  for (size_t chunk = std::max<size_t>(count / 2, 1);; chunk = std::max<size_t>(chunk / 2, 1)) {
    bool smaller = false;
    for (size_t begin = 0; begin < left.size() && left.size() > 1;) {
      size_t end = std::min(begin + chunk, left.size());
      std::vector<size_t> candidate(left.begin(),
                                    left.begin() + static_cast<std::ptrdiff_t>(begin));
      candidate.insert(candidate.end(), left.begin() + static_cast<std::ptrdiff_t>(end),
                       left.end());
      if (!candidate.empty() && keeps(candidate)) {
        left = std::move(candidate);
        smaller = true;
      } else {
        begin = end;
      }
    }
    if (chunk == 1 && !smaller)
      return left;
  }
}

} // namespace sheaf::tool

//===- Shrink.cpp - Texts made smaller ------------------------------------===//
#include "compiler/reduce/Shrink.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace sheaf::reduce {

namespace {

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
  std::vector<Range> items; ///< the comma after an item is part of it
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
      dropResults();
      inlineNames();
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

  /// An item to be dropped, with the comma before it when it is the last of a list.
  Range dropped(const Group &group, size_t item) const {
    Range range = group.items[item];
    if (item > 0 && pieces_[range.end - 1].kind != Piece::Comma &&
        pieces_[group.items[item - 1].end - 1].kind == Piece::Comma)
      --range.begin;
    return range;
  }

  /// The rest of `dim a = 1, b = 2` without its first item: the word before that stays.
  bool dropBehindWord(const Group &group, size_t item) {
    Range range = group.items[item];
    return range.end - range.begin > 2 && pieces_[range.begin].kind == Piece::Word &&
           pieces_[range.begin + 1].kind == Piece::Word &&
           pieces_[range.end - 1].kind == Piece::Comma &&
           attempt(without({{range.begin + 1, range.end}}));
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
          if (attempt(without(ranges)) || (chunk == 1 && dropBehindWord(all[g], begin))) {
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

  /// Of the alternatives of a data type the one around piece `at`, with one `|`; of what has none,
  /// the whole item.
  Range alternative(const Range &item, size_t at, const std::vector<size_t> &ends) const {
    size_t begin = expression(item, ends);
    if (at < begin || (pieces_[item.begin].text != "data" &&
                       (item.begin == 0 || pieces_[item.begin - 1].kind != Piece::Boundary)))
      return item;
    bool first = true;
    for (size_t i = begin; i < item.end; ++i) {
      if (pieces_[i].kind == Piece::Open) {
        i = std::min(ends[i], item.end - 1);
      } else if (pieces_[i].text == "|") {
        if (at < i)
          return {begin, first ? i + 1 : i};
        begin = i;
        first = false;
      }
    }
    return first ? item : Range{begin, item.end};
  }

  /// Everything that names something, at once: a field with its uses, a constructor with its arms.
  void dropNames() {
    std::set<std::string> names;
    for (const Piece &piece : pieces_)
      if (piece.kind == Piece::Word)
        names.insert(piece.text);
    for (const std::string &name : names) {
      std::vector<Group> all = groups();
      std::vector<size_t> ends = closers();
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
            ranges.push_back(alternative(dropped(*smallest, item), i, ends));
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

  /// The same component of the type of a function's results and of the tuple that it ends with.
  void dropResults() {
    for (size_t n = 0; n < groups()[0].items.size(); ++n)
      for (bool smaller = true; smaller;) {
        smaller = false;
        std::vector<size_t> ends = closers();
        Range item = groups()[0].items[n];
        size_t arrow = item.begin;
        while (arrow < item.end && pieces_[arrow].text != "->")
          arrow = pieces_[arrow].kind == Piece::Open ? ends[arrow] + 1 : arrow + 1;
        if (arrow + 1 >= item.end || pieces_[arrow + 1].kind != Piece::Open)
          break;
        Group types = groupOf({arrow + 2, ends[arrow + 1]}, ends);
        Group values = lastTuple({ends[arrow + 1] + 1, item.end}, ends);
        if (types.items.size() < 2 || values.items.size() != types.items.size())
          break;
        for (size_t i = types.items.size(); i-- > 0 && !smaller;)
          smaller = types.items.size() == 2
                        ? attempt(without(joined(besides(types, 1 - i), besides(values, 1 - i))))
                        : attempt(without({dropped(types, i), dropped(values, i)}));
      }
  }

  /// What a range ends with, if that is a bracket: the group of its last item, and so on.
  Group lastTuple(Range range, const std::vector<size_t> &ends) const {
    Group group{range, {}};
    for (size_t i = range.begin; i < range.end; ++i) {
      if (pieces_[i].kind != Piece::Open || ends[i] >= range.end)
        continue;
      if (ends[i] + 1 < range.end) {
        i = ends[i];
        continue;
      }
      group = groupOf({i + 1, ends[i]}, ends);
      if (pieces_[i].text != "{" || group.items.empty())
        break;
      range = group.items.back();
      i = expression(range, ends) - 1;
    }
    return group;
  }

  static std::vector<Range> joined(std::vector<Range> some, const std::vector<Range> &more) {
    some.insert(some.end(), more.begin(), more.end());
    return some;
  }

  /// A bracket with all in it but one item.
  std::vector<Range> besides(const Group &group, size_t item) const {
    Range range = group.items[item];
    if (pieces_[range.end - 1].kind == Piece::Comma)
      --range.end;
    return {{group.inside.begin - 1, range.begin}, {range.end, group.inside.end + 1}};
  }

  /// `let x = e` goes where `x` is used, if that makes the text shorter.
  void inlineNames() {
    for (size_t i = 0; i + 3 < pieces_.size(); ++i) {
      if (pieces_[i].text != "let" || pieces_[i + 1].kind != Piece::Word ||
          pieces_[i + 2].text != "=")
        continue;
      std::vector<size_t> ends = closers();
      std::vector<Group> all = groups();
      Range value{0, 0};
      for (const Group &group : all)
        for (const Range &item : group.items)
          if (item.begin == i)
            value = {i + 3, item.end};
      auto used = [&](const Piece &piece) {
        return piece.kind == Piece::Word && piece.text == pieces_[i + 1].text;
      };
      auto behind = pieces_.begin() + static_cast<std::ptrdiff_t>(value.end);
      if (value.begin >= value.end || std::none_of(behind, pieces_.end(), used))
        continue;
      Pieces candidate(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(i));
      for (auto at = behind; at != pieces_.end(); ++at)
        if (used(*at)) {
          size_t begin = candidate.size();
          candidate.insert(candidate.end(),
                           pieces_.begin() + static_cast<std::ptrdiff_t>(value.begin),
                           pieces_[value.end - 1].kind == Piece::Comma ? behind - 1 : behind);
          candidate[begin].before = at->before;
          candidate[begin].startsItem = at->startsItem;
        } else {
          candidate.push_back(*at);
        }
      if (candidate.size() < pieces_.size() && attempt(std::move(candidate)))
        --i;
    }
  }

  /// Where the expression of an item begins: after its last `=` or `=>`, or with it.
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

} // namespace sheaf::reduce

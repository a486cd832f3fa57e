//===- SizeLoops.cpp - Loops over lists, with bounds ----------------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/OpQueries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// How often a loop's body is looked at for what it carries before that counts as not known.
constexpr int kMostLoopRounds = 8;

/// Every bound of a value, in order. Two values that were made in the same way have as many.
void boundsOf(SizeValue &value, std::vector<Bound *> &bounds) {
  if (value.kind == SizeValue::Number || value.kind == SizeValue::List)
    bounds.push_back(&value.number.most);
  for (SizeNumber &dim : value.dims)
    bounds.push_back(&dim.most);
  for (auto &[symbol, sum] : value.sums)
    bounds.push_back(&sum);
  for (SizeValue &part : value.parts)
    boundsOf(part, bounds);
}

/// Whether they differ in nothing but numbers, and lists have sums of the same symbols.
bool sameForm(const SizeValue &a, const SizeValue &b) {
  return a.kind == b.kind && a.isWhole == b.isWhole && a.dims.size() == b.dims.size() &&
         llvm::equal(llvm::make_first_range(a.sums), llvm::make_first_range(b.sums)) &&
         a.parts.size() == b.parts.size() && a.tree == b.tree &&
         llvm::all_of(llvm::zip(a.parts, b.parts),
                      [](auto pair) { return sameForm(std::get<0>(pair), std::get<1>(pair)); });
}

/// Nothing, in the form of a value.
SizeValue emptied(const SizeValue &value) {
  return mapBounds(value, [](const Bound &) { return Bound(); });
}

/// A value in the form of one that it is within: with lists as these know them. Null where that is
/// another.
std::optional<SizeValue> inForm(const SizeValue &value, const SizeValue &form) {
  if (value.kind != form.kind)
    return std::nullopt;
  SizeValue result = value;
  std::vector<SizeValue> parts = value.parts;
  if (form.kind == SizeValue::List && !form.isWhole) {
    result.isWhole = false;
    for (const auto &[symbol, sum] : form.sums)
      result.sums.try_emplace(symbol);
    std::optional<SizeValue> element = elementOf(value);
    parts.assign(1, element ? *element : emptied(form.parts.front()));
  }
  if (parts.size() != form.parts.size())
    return std::nullopt;
  result.parts.clear();
  for (auto [part, other] : llvm::zip(parts, form.parts)) {
    std::optional<SizeValue> own = inForm(part, other);
    if (!own)
      return std::nullopt;
    result.parts.push_back(std::move(*own));
  }
  return result;
}

/// Whether what is known of two values of one form, beside their bounds, is the same.
bool sameFacts(const SizeValue &a, const SizeValue &b) {
  return a.inPieces == b.inPieces && a.joinCounted == b.joinCounted &&
         a.number.least == b.number.least &&
         llvm::equal(a.dims, b.dims,
                     [](const SizeNumber &x, const SizeNumber &y) { return x.least == y.least; }) &&
         llvm::all_of(llvm::zip(a.parts, b.parts),
                      [](auto pair) { return sameFacts(std::get<0>(pair), std::get<1>(pair)); });
}

/// Puts a mark into all ways, after the first one from the outside.
void markWays(SizeValue &value, const std::string &mark, std::optional<std::string> first) {
  if (!first)
    first = value.way;
  if (value.way && StringRef(*value.way).starts_with(*first))
    value.way->insert(first->size(), mark);
  else
    value.way.reset();
  for (SizeValue &part : value.parts)
    markWays(part, mark, first);
}

SizeValue listOf(SizeNumber length, std::optional<SizeValue> element, SizeSums sums) {
  SizeValue list;
  list.kind = SizeValue::List;
  list.number = std::move(length);
  list.sums = std::move(sums);
  if (element && element->kind != SizeValue::Never)
    list.parts.push_back(std::move(*element));
  else
    list.isWhole = true;
  return list;
}

} // namespace

std::pair<SizeValue, SizeSums> SizeWalk::freshElement(const SizeValue &list) {
  std::optional<SizeValue> element = elementOf(list);
  if (!element) {
    SizeValue never;
    never.kind = SizeValue::Never;
    return {never, {}};
  }
  markWays(*element, kTurn + std::to_string(++loops_) + ";", std::nullopt);
  std::map<unsigned, Bound> names;
  SizeSums sums;
  for (const auto &[symbol, sum] : list.sums) {
    unsigned fresh = symbols_.element();
    names[symbol] = Bound::symbol(fresh);
    sums[fresh] = sum;
  }
  if (names.empty())
    return {*element, sums};
  return {mapBounds(*element,
                    [&](const Bound &bound) {
                      return bound.substitute([&](unsigned symbol) {
                        auto it = names.find(symbol);
                        return it == names.end() ? nullptr : &it->second;
                      });
                    }),
          sums};
}

/// The body once, as each of `count` elements runs it. With `counts` what it takes is added.
SizeValue SizeWalk::runBody(Block &body, Values args, const Bound &count, const SizeSums &sums,
                            bool counts) {
  std::set<std::string> before;
  if (taken() && !counts)
    before = *taken();
  Values results;
  MemoryUseBound own = usedBy([&] {
    for (auto [argument, value] : llvm::zip(body.getArguments(), args))
      set(argument, value);
    results = walk(body);
  });
  if (counts)
    addSum(*use_, own, count, sums, symbols_);
  else if (taken())
    *taken() = std::move(before);
  return results.front();
}

void SizeWalk::visitMap(ir::MapOp map) {
  SizeValue list = of(map.getList());
  Block &body = map.getBody().front();
  madeList(map.getType(), list.number.most);
  if (list.isWhole) {
    SizeValue result = listOf(list.number, std::nullopt, {});
    for (auto [i, element] : llvm::enumerate(list.parts))
      result.parts.push_back(
          runBody(body, {element, numberValue(static_cast<int64_t>(i))}, Bound(1), {}, true));
    return set(map.getResult(), std::move(result));
  }
  auto [element, sums] = freshElement(list);
  beginElements(element);
  size_t results = callResults();
  SizeValue made = runBody(body, {element, numberValue({0, list.number.most.less(1)})},
                           list.number.most, sums, true);
  addCallResults(sums, results);
  endElements();
  set(map.getResult(), listOf(list.number, keepWays(std::move(made), element), std::move(sums)));
}

void SizeWalk::visitFilter(ir::FilterOp filter) {
  SizeValue list = of(filter.getList());
  Block &body = filter.getBody().front();
  heap(Bound(kListBytes));
  madeList(filter.getType(), list.number.most);
  if (list.isWhole) {
    SizeValue kept = listOf(SizeNumber::exactly(0), std::nullopt, {});
    bool known = true;
    std::vector<SizeValue> mayBe;
    for (auto [i, element] : llvm::enumerate(list.parts)) {
      SizeValue stays =
          runBody(body, {element, numberValue(static_cast<int64_t>(i))}, Bound(1), {}, true);
      std::optional<int64_t> is = stays.number.exact();
      known &= is.has_value();
      if (is != 0)
        mayBe.push_back(element);
    }
    kept.number = {known ? static_cast<int64_t>(mayBe.size()) : 0,
                   Bound(static_cast<double>(mayBe.size()))};
    kept.isWhole = known || mayBe.empty();
    kept.parts = std::move(mayBe);
    if (!kept.isWhole) {
      SizeValue element = withoutWays(*elementOf(kept));
      kept.parts.assign(1, std::move(element));
    }
    return set(filter.getResult(), std::move(kept));
  }
  auto [element, sums] = freshElement(list);
  beginElements(element);
  runBody(body, {element, numberValue({0, list.number.most.less(1)})}, list.number.most, sums,
          true);
  endElements();
  list.number.least = 0;
  list.inPieces = false;
  list.way.reset();
  set(filter.getResult(), std::move(list));
}

/// What a fold or scan carries if that grows by as much at each element, as symbols in it:
/// `carried` after the first element, and `more` after the next. Null where it does not. With
/// `together` what grows has one symbol.
std::optional<SizeValue> SizeWalk::grownEvenly(Operation *loop, const SizeValue &carried,
                                               SizeValue more, const SizeValue &init,
                                               const SizeValue &element, const SizeValue &number,
                                               const Bound &count, const SizeSums &sums,
                                               bool together, std::map<unsigned, Bound> &growth) {
  Block &body = loop->getRegion(0).front();
  SizeValue general = carried;
  std::vector<Bound *> now, after, first;
  boundsOf(general, now);
  boundsOf(more, after);
  // Else with what it is after the first element.
  SizeValue start = inForm(withoutWays(init), carried).value_or(carried);
  if (!sameForm(start, carried))
    start = carried;
  boundsOf(start, first);
  std::map<size_t, unsigned> grown;
  for (size_t i = 0; i < now.size(); ++i)
    if (!(*now[i] == *after[i])) {
      unsigned symbol = together && !grown.empty() ? grown.begin()->second : symbols_.element();
      grown[i] = symbol;
      *now[i] = Bound::symbol(symbol);
    }
  size_t results = callResults();
  SizeValue result = withoutWays(runBody(body, {general, element, number}, count, sums, false));
  SizeSums all = sums;
  addCallResults(all, results);
  SizeValue reached = joined(general, result);
  if (!sameForm(general, reached) || !sameFacts(general, reached))
    return std::nullopt;
  std::vector<Bound *> end;
  boundsOf(result.kind == general.kind && sameForm(general, result) ? result : reached, end);
  std::map<unsigned, Bound> begins, steps;
  for (size_t i = 0; i < now.size(); ++i) {
    auto it = grown.find(i);
    if (it == grown.end()) {
      if (!largestOf(*end[i], sums).isWithin(*now[i]))
        return std::nullopt;
      continue;
    }
    Bound step;
    for (const auto &[term, coefficient] : end[i]->terms()) {
      if (term == Bound::Term{it->second} && coefficient <= 1)
        continue;
      if (llvm::any_of(grown, [&](auto &entry) { return llvm::is_contained(term, entry.second); }))
        return std::nullopt;
      step.add(term, coefficient);
    }
    Bound &begin = begins[it->second], &most = steps[it->second];
    begin = Bound::max(begin, *first[i]);
    most = Bound::max(most, step);
  }
  for (const auto &[symbol, begin] : begins)
    growth[symbol] = begin + sumOf(steps[symbol], count, all, symbols_);
  return general;
}

/// What a fold or scan carries, whatever the element. `growth`: symbols in it that stand for what
/// grows with the elements, and their largest values.
SizeValue SizeWalk::invariantOf(Operation *loop, const SizeValue &init, const SizeValue &element,
                                const SizeValue &number, const Bound &count, const SizeSums &sums,
                                std::map<unsigned, Bound> &growth) {
  Block &body = loop->getRegion(0).front();
  auto next = [&](const SizeValue &carried) {
    SizeValue result = runBody(body, {carried, element, number}, count, sums, false);
    // Of an element that was, all that is known is that it is one.
    return mapBounds(withoutWays(std::move(result)),
                     [&](const Bound &bound) { return largestOf(bound, sums); });
  };
  SizeValue carried = withoutWays(init);
  SizeValue more = joined(carried, next(carried));
  if (more == carried)
    return carried;
  carried = std::move(more);
  more = joined(carried, next(carried));
  if (more == carried)
    return carried;

  // What grows by as much at each element is what it began with and all of these together: each by
  // itself, or, where one becomes what another was, all of them.
  if (sameForm(carried, more) && sameFacts(carried, more))
    for (bool together : {false, true})
      if (std::optional<SizeValue> general = grownEvenly(loop, carried, more, init, element, number,
                                                         count, sums, together, growth))
        return *general;

  const std::string what = "what a loop carries from element to element";
  for (int round = 0; round < kMostLoopRounds; ++round) {
    SizeValue wide = widened(carried, next(carried), [&](const Bound &, const Bound &) {
      return Bound::symbol(symbols_.unknown(loop->getLoc(), what));
    });
    if (wide == carried)
      return carried;
    carried = std::move(wide);
  }
  return unknown(loop->getOperand(0).getType(), loop->getLoc(), what);
}

void SizeWalk::visitFold(Operation *loop) {
  bool isScan = isa<ir::ScanOp>(loop);
  SizeValue init = of(loop->getOperand(0)), list = of(loop->getOperand(1));
  Block &body = loop->getRegion(0).front();
  if (isScan)
    madeList(loop->getResult(0).getType(), list.number.most);
  turning_.push_back(loop);
  llvm::scope_exit ended([&] { turning_.pop_back(); });
  if (list.isWhole) {
    SizeValue carried = init, all = listOf(list.number, std::nullopt, {});
    MemoryUseBound whole = usedBy([&] {
      MemoryUseBound::Turns turns;
      for (auto [i, element] : llvm::enumerate(list.parts)) {
        carried = runBody(body, {carried, element, numberValue(static_cast<int64_t>(i))}, Bound(1),
                          {}, true);
        all.parts.push_back(carried);
        larger(turns, std::exchange(use_->turns[loop], {}));
      }
      use_->turns[loop] = std::move(turns);
    });
    endTurns(loop, whole, [](const Bound &bound) { return bound; });
    addSum(*use_, whole, Bound(1), {}, symbols_);
    return set(loop->getResult(0), isScan ? std::move(all) : std::move(carried));
  }
  auto [element, sums] = freshElement(list);
  SizeValue number = numberValue({0, list.number.most.less(1)});
  std::map<unsigned, Bound> growth;
  auto grown = [&](const Bound &bound) {
    return bound.substitute([&](unsigned symbol) {
      auto it = growth.find(symbol);
      return it == growth.end() ? nullptr : &it->second;
    });
  };
  beginElements(element);
  SizeValue carried = invariantOf(loop, init, element, number, list.number.most, sums, growth);
  endElements();

  beginElements(element);
  SizeValue made;
  MemoryUseBound own =
      usedBy([&] { made = runBody(body, {carried, element, number}, Bound(1), {}, true); });
  endElements();
  endTurns(loop, own, [&](const Bound &bound) { return largestOf(grown(bound), sums); });
  addSum(*use_, sheaf::passes::mapBounds(own, grown), list.number.most, sums, symbols_);
  // What comes out is what goes on, or what the loop began with.
  carried = mapBounds(carried, grown);
  if (!isScan)
    return set(loop->getResult(0), joined(withoutWays(init), std::move(carried)));
  set(loop->getResult(0), listOf(list.number, std::move(carried), {}));
}

} // namespace sheaf::passes

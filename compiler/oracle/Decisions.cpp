//===- Decisions.cpp - Ints that follow from floats -----------------------===//

#include "compiler/oracle/Decisions.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Reference.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace sheaf::oracle {
namespace {

using ops::RefTensor;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Calls `visit` with the tensors that a value is or, as a list, consists of.
template <typename Visit> void forEachTensor(const Value &value, Visit visit) {
  if (auto *tensor = std::get_if<TensorPtr>(&value)) {
    visit(*tensor);
    return;
  }
  auto *list = std::get_if<CellPtr>(&value);
  if (!list || (*list)->kind < Cell::Kind::Empty)
    return;
  for (const Value &each : elements(value))
    if (auto *tensor = std::get_if<TensorPtr>(&each))
      visit(*tensor);
}

template <typename Visit> void forEachTensor(llvm::ArrayRef<Value> values, Visit visit) {
  for (const Value &value : values)
    forEachTensor(value, visit);
}

/// Whether a step decides something by floats.
bool decides(const Step &step, llvm::ArrayRef<Value> operands) {
  return step.record && step.record->decision && llvm::any_of(operands, [](const Value &value) {
           auto *tensor = std::get_if<TensorPtr>(&value);
           return tensor && ops::isFloat((*tensor)->dtype);
         });
}

/// Tensors that a run has made for itself are no one else's to look at before it ends.
RefTensor &mutableTensor(const RefTensor &tensor) { return const_cast<RefTensor &>(tensor); }

} // namespace

//===----------------------------------------------------------------------===//
// What is kept
//===----------------------------------------------------------------------===//

void Decisions::begin(const Weights &weights) {
  entries_.clear();
  made_.clear();
  weights_.clear();
  distances_.clear();
  for (const auto &[name, tensor] : weights)
    weights_.insert(tensor.get());
  elements_ = tried_ = anew_ = stale_ = 0;
  nextSweep_ = 64;
  hasForgotten_ = hasFailed_ = false;
}

bool Decisions::follows(const Value &value) const {
  bool found = false;
  forEachTensor(value, [&](const TensorPtr &tensor) { found |= made_.contains(tensor.get()); });
  return found;
}

void Decisions::note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  bool isBehind =
      !made_.empty() && llvm::any_of(operands, [&](const Value &each) { return follows(each); });
  if (!isBehind && !decides(step, operands))
    return;
  Entry entry{nextNumber_++, &step, {operands.begin(), operands.end()}, results, 0, {}, {}, false};
  auto count = [&](const TensorPtr &tensor) {
    if (!weights_.contains(tensor.get()))
      entry.elements += tensor->data.size() + 16;
  };
  forEachTensor(operands, count);
  addAsUser(entry);
  forEachTensor(results, [&](const TensorPtr &tensor) {
    count(tensor);
    made_[tensor.get()] = entry.number;
  });
  elements_ += entry.elements;
  entries_.push_back(std::move(entry));
  if (entries_.size() >= nextSweep_ || elements_ > kMostElements)
    sweep();
}

void Decisions::addAsUser(const Entry &entry) {
  forEachTensor(entry.operands, [&](const TensorPtr &tensor) {
    auto it = made_.find(tensor.get());
    if (it == made_.end())
      return;
    std::vector<uint64_t> &users = entries_[indexOf(it->second)].users;
    if (users.empty() || users.back() != entry.number)
      users.push_back(entry.number);
  });
}

/// Whether anything but the entry itself holds one of its results.
bool Decisions::isHeld(const Entry &entry) {
  return llvm::any_of(entry.results, [](const Value &result) {
    if (auto *tensor = std::get_if<TensorPtr>(&result))
      return tensor->use_count() > 1;
    // A list; its elements may be held without it.
    if (std::get<CellPtr>(result).use_count() > 1)
      return true;
    std::vector<Value> all = elements(result);
    return llvm::any_of(
        all, [](const Value &each) { return std::get<TensorPtr>(each).use_count() > 2; });
  });
}

void Decisions::forget(Entry &entry) {
  elements_ -= entry.elements;
  stale_ -= entry.isStale;
  forEachTensor(entry.results, [&](const TensorPtr &tensor) { made_.erase(tensor.get()); });
  entry = {};
}

/// Forgets what no one can ask for, and beyond that what is oldest.
void Decisions::sweep() {
  // Users come after what they use, and hold it.
  for (Entry &entry : llvm::reverse(entries_))
    if (!isHeld(entry))
      forget(entry);
  if (elements_ > kMostElements) {
    hasForgotten_ = true;
    for (Entry &entry : entries_)
      if (entry.step && elements_ > kMostElements / 2)
        forget(entry);
  }
  std::erase_if(entries_, [](const Entry &entry) { return !entry.step; });
  nextSweep_ = 2 * entries_.size() + 64;
}

/// The first entry with this number or a greater one.
size_t Decisions::indexOf(uint64_t number) const {
  auto it = llvm::lower_bound(
      entries_, number, [](const Entry &entry, uint64_t least) { return entry.number < least; });
  return static_cast<size_t>(it - entries_.begin());
}

//===----------------------------------------------------------------------===//
// Which decision it was
//===----------------------------------------------------------------------===//

/// The entries that a tensor follows from through ints and bools, in order: decisions by floats,
/// and what leads from them to it.
std::vector<size_t> Decisions::behind(const RefTensor &tensor) const {
  std::vector<size_t> found, pending{indexOf(tensor)};
  llvm::DenseSet<size_t> seen{pending[0]};
  while (!pending.empty()) {
    size_t i = pending.back();
    pending.pop_back();
    found.push_back(i);
    const Entry &entry = entries_[i];
    if (decides(*entry.step, entry.operands))
      continue;
    forEachTensor(entry.operands, [&](const TensorPtr &each) {
      if (!ops::isFloat(each->dtype) && made_.contains(each.get()))
        if (size_t next = indexOf(*each); seen.insert(next).second)
          pending.push_back(next);
    });
  }
  llvm::sort(found);
  return found;
}

/// What decisions of these entries may be instead, the nearest first: all that are near, and those
/// that move an element by what the one in question is to move by.
std::vector<Decisions::Option> Decisions::optionsOf(llvm::ArrayRef<size_t> slice, double difference,
                                                    double near) {
  std::vector<Option> options;
  for (size_t i : llvm::reverse(slice)) {
    const Entry &entry = entries_[i];
    if (!decides(*entry.step, entry.operands))
      continue;
    Deciding by = decidingOf(*entry.step, entry.operands);
    const RefTensor &result = tensor(entry.results[by.rule.result]);
    llvm::DenseSet<size_t> found; // before
    for (const Held &held : entry.held)
      if (held.isDecision)
        found.insert(held.at);
    for (size_t at = 0; at < result.data.size(); ++at) {
      if (found.contains(at))
        continue;
      double own = result.data[at],
             moved = result.dtype == ops::DType::Bool ? 1 - own : own + difference;
      auto add = [&](double value, double most) {
        double distance = by.rule.distance(by.operands, by.attrs, result, at, value);
        if (distance <= most && distance < kNever)
          options.push_back({i, at, value, distance});
      };
      add(moved, kNever);
      auto [least, greatest] = by.rule.range(by.operands, by.attrs, result, at);
      tried_ += 1 + static_cast<size_t>(greatest - least);
      for (double value = least; value <= greatest && tried_ <= kMostTried; ++value)
        if (value != own && value != moved)
          add(value, near);
    }
  }
  // Of equals the latest.
  llvm::sort(options, [](const Option &a, const Option &b) {
    return std::tuple(a.distance, b.entry, a.at, a.value) <
           std::tuple(b.distance, a.entry, b.at, b.value);
  });
  auto far = llvm::upper_bound(
      options, near, [](double most, const Option &option) { return most < option.distance; });
  if (static_cast<size_t>(options.end() - far) > kMostFar)
    options.erase(far + kMostFar, options.end());
  return options;
}

void Decisions::save(const Entry &entry, Saved &saved) {
  forEachTensor(entry.results, [&](const TensorPtr &each) {
    saved.emplace_back(&mutableTensor(*each), each->data);
  });
}

void Decisions::restore(Saved &saved) {
  for (auto &[each, data] : llvm::reverse(saved))
    each->data = std::move(data);
  saved.clear();
}

/// Computes what follows from the results of an entry, of these; false when that fails.
bool Decisions::computeSlice(llvm::ArrayRef<size_t> slice, size_t from, Saved &saved,
                             const Context &context) {
  llvm::DenseSet<const RefTensor *> changed;
  auto note = [&](const Entry &entry) {
    forEachTensor(entry.results, [&](const TensorPtr &each) {
      changed.insert(each.get());
      tried_ += each->data.size();
    });
  };
  note(entries_[from]);
  try {
    for (size_t i : slice) {
      Entry &entry = entries_[i];
      bool isTouched = false;
      forEachTensor(entry.operands,
                    [&](const TensorPtr &each) { isTouched |= changed.contains(each.get()); });
      if (i <= from || !isTouched || decides(*entry.step, entry.operands))
        continue;
      save(entry, saved);
      note(entry);
      computeAnew(entry, context);
      reassert(entry, /*isTrial=*/true);
    }
  } catch (const Failure &) { // an index out of range, say
    return false;
  }
  return true;
}

/// Turns a decision around and computes what follows of these entries; false when that fails.
bool Decisions::tryOption(llvm::ArrayRef<size_t> slice, const Option &option, Saved &saved,
                          const Context &context) {
  save(entries_[option.entry], saved);
  take(entries_[option.entry], option.at, option.value);
  return computeSlice(slice, option.entry, saved, context);
}

/// The element of the only decision that the one in question seems to be a copy of. Found by
/// numbering them; a guess, to be tried.
std::optional<Decisions::Option> Decisions::originOf(llvm::ArrayRef<size_t> slice,
                                                     const RefTensor &tensor, size_t at,
                                                     double value, const Context &context) {
  std::optional<size_t> from;
  for (size_t i : slice)
    if (decides(*entries_[i].step, entries_[i].operands)) {
      if (from)
        return std::nullopt;
      from = i;
    }
  if (!from)
    return std::nullopt;
  Deciding by = decidingOf(*entries_[*from].step, entries_[*from].operands);
  const RefTensor &result = oracle::tensor(entries_[*from].results[by.rule.result]);
  Saved saved;
  save(entries_[*from], saved);
  std::iota(mutableTensor(result).data.begin(), mutableTensor(result).data.end(), 0.0);
  size_t tried = tried_;
  bool works = computeSlice(slice, *from, saved, context);
  tried_ = tried;
  double origin = tensor.data[at];
  restore(saved);
  if (!works || !ops::isPlace(origin, static_cast<int64_t>(result.data.size())))
    return std::nullopt;
  auto element = static_cast<size_t>(origin);
  double distance = by.rule.distance(by.operands, by.attrs, result, element, value);
  if (distance == kNever)
    return std::nullopt;
  return Option{*from, element, value, distance};
}

/// What to turn around, which is done in the tensors on the way; nothing if that is not found, and
/// then all is as it was.
std::vector<Decisions::Option> Decisions::search(const RefTensor &tensor, size_t at, double value,
                                                 double near, const Context &context) {
  std::vector<size_t> slice = behind(tensor);
  if (auto origin = originOf(slice, tensor, at, value, context)) {
    Saved saved;
    if (tryOption(slice, *origin, saved, context) && tensor.data[at] == value)
      return {*origin};
    restore(saved);
  }
  if (tried_ > kMostTried)
    return {};
  double own = tensor.data[at], found = own;
  std::vector<Option> options = optionsOf(slice, value - own, near), taken;
  Saved all;
  auto keep = [&](const Option &option, Saved &saved) {
    taken.push_back(option);
    std::move(saved.begin(), saved.end(), std::back_inserter(all));
    found = tensor.data[at];
    return found == value;
  };
  // Each that does it, or comes nearer to it, as those do that are counted.
  for (const Option &option : options) {
    Saved saved;
    if (tried_ > kMostTried)
      break;
    bool works = tryOption(slice, option, saved, context);
    bool isNearer =
        option.distance <= near && std::fabs(tensor.data[at] - value) < std::fabs(found - value);
    if (!works || !(isNearer || tensor.data[at] == value))
      restore(saved);
    else if (keep(option, saved))
      return taken;
  }
  restore(all);
  taken.clear();
  // All that are near, one after the other, as one of them that is left holds a maximum.
  llvm::DenseSet<std::pair<size_t, size_t>> seen;
  for (const Option &option : options) {
    Saved saved;
    if (option.distance > near || tried_ > kMostTried)
      break;
    if (!seen.insert({option.entry, option.at}).second)
      continue;
    if (!tryOption(slice, option, saved, context))
      restore(saved);
    else if (keep(option, saved))
      return taken;
  }
  restore(all);
  return {};
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

void Decisions::take(const Entry &entry, size_t at, double value) {
  Deciding by = decidingOf(*entry.step, entry.operands);
  std::vector<RefTensor *> results;
  for (const Value &result : entry.results)
    results.push_back(&mutableTensor(tensor(result)));
  if (by.rule.take)
    by.rule.take(by.operands, by.attrs, results, at, value);
  else
    results[by.rule.result]->data[at] = value;
}

void Decisions::computeAnew(Entry &entry, const Context &context) {
  Values fresh = entry.step->kind == Step::Kind::Apply
                     ? applyOperator(*entry.step, entry.operands, context)
                     : compute(*entry.step, entry.operands, context);
  std::vector<TensorPtr> from;
  forEachTensor(fresh, [&](const TensorPtr &tensor) { from.push_back(tensor); });
  size_t next = 0;
  forEachTensor(entry.results,
                [&](const TensorPtr &tensor) { mutableTensor(*tensor).data = from[next++]->data; });
}

/// What is held of a result that was computed anew. A trial changes no distances.
void Decisions::reassert(Entry &entry, bool isTrial) {
  if (entry.held.empty())
    return;
  std::optional<Deciding> by;
  if (decides(*entry.step, entry.operands))
    by.emplace(decidingOf(*entry.step, entry.operands));
  for (const Held &held : entry.held) {
    double &own = held.tensor->data[held.at], distance = 0;
    if (own != held.value) {
      distance = kNever;
      if (held.isDecision) {
        distance = by->rule.distance(by->operands, by->attrs, *held.tensor, held.at, held.value);
        take(entry, held.at, held.value);
      } else {
        own = held.value;
      }
    }
    if (!isTrial)
      distances_[held.turn] = distance;
  }
}

/// What follows from the results of an entry is not yet what it will be.
void Decisions::markUsers(size_t from) {
  std::vector<size_t> pending{from};
  while (!pending.empty()) {
    size_t next = pending.back();
    pending.pop_back();
    // They come back when they are computed anew.
    for (uint64_t number : std::exchange(entries_[next].users, {})) {
      size_t i = indexOf(number);
      if (i == entries_.size() || entries_[i].number != number || entries_[i].isStale)
        continue;
      entries_[i].isStale = true;
      ++stale_;
      pending.push_back(i);
    }
  }
}

void Decisions::refreshEntry(size_t index, const Context &context) {
  Entry &entry = entries_[index];
  entry.isStale = false;
  --stale_;
  addAsUser(entry);
  forEachTensor(entry.results, [&](const TensorPtr &each) { anew_ += each->data.size(); });
  if (anew_ > kMostAnew)
    return;
  try {
    computeAnew(entry, context);
    reassert(entry, /*isTrial=*/false);
  } catch (const Failure &) { // an index out of range, say
    hasFailed_ = true;
  }
}

void Decisions::refresh(llvm::ArrayRef<Value> values, const Context &context) {
  if (stale_ == 0)
    return;
  std::vector<size_t> found, pending;
  llvm::DenseSet<size_t> seen;
  auto need = [&](const TensorPtr &tensor) {
    auto it = made_.find(tensor.get());
    if (it == made_.end())
      return;
    size_t i = indexOf(it->second);
    if (entries_[i].isStale && seen.insert(i).second)
      pending.push_back(i);
  };
  forEachTensor(values, need);
  while (!pending.empty()) {
    size_t i = pending.back();
    pending.pop_back();
    found.push_back(i);
    forEachTensor(entries_[i].operands, need);
  }
  llvm::sort(found);
  for (size_t i : found)
    refreshEntry(i, context);
}

void Decisions::refreshAll(const Context &context) {
  if (stale_ > 0)
    sweep();
  for (size_t i = 0; i < entries_.size() && stale_ > 0; ++i)
    if (entries_[i].isStale)
      refreshEntry(i, context);
}

uint32_t Decisions::hold(Entry &entry, const RefTensor &tensor, size_t at, double value,
                         bool isDecision, double distance) {
  auto turn = static_cast<uint32_t>(distances_.size());
  distances_.push_back(distance);
  entry.held.push_back({turn, &mutableTensor(tensor), at, value, isDecision});
  return turn;
}

Decisions::Change Decisions::change(const RefTensor &tensor, size_t at, double value, double near,
                                    const Context &context) {
  if (!knows(tensor))
    return {{}, !hasForgotten_};
  size_t own = indexOf(tensor);
  auto resultOf = [&](const Entry &entry) -> const RefTensor & {
    return oracle::tensor(entry.results[entry.step->record->decision->result]);
  };
  std::vector<Option> taken;
  if (decides(*entries_[own].step, entries_[own].operands) && &resultOf(entries_[own]) == &tensor) {
    Deciding by = decidingOf(*entries_[own].step, entries_[own].operands);
    double distance = by.rule.distance(by.operands, by.attrs, tensor, at, value);
    if (distance < kNever) {
      take(entries_[own], at, value);
      taken.push_back({own, at, value, distance});
    }
  } else {
    taken = search(tensor, at, value, near, context);
  }
  Change change;
  if (taken.empty()) {
    change.isComplete = !hasForgotten_ && tried_ <= kMostTried;
    mutableTensor(tensor).data[at] = value;
    change.turns.push_back(hold(entries_[own], tensor, at, value, false, kNever));
    markUsers(own);
    return change;
  }
  for (const Option &option : taken) {
    Entry &entry = entries_[option.entry];
    change.turns.push_back(
        hold(entry, resultOf(entry), option.at, option.value, true, option.distance));
  }
  for (const Option &option : taken)
    markUsers(option.entry);
  return change;
}

double Decisions::distance(llvm::ArrayRef<uint32_t> turns) const {
  double greatest = turns.empty() || hasFailed_ || !isComplete() ? kNever : 0;
  for (uint32_t turn : turns)
    greatest = std::max(greatest, distances_[turn]);
  return greatest;
}

} // namespace sheaf::oracle

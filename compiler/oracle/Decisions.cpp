//===- Decisions.cpp - Ints that follow from floats -----------------------===//

#include "compiler/oracle/Decisions.h"

#include "compiler/ir/Program.h"

#include <limits>

namespace sheaf::oracle {
namespace {

using ops::RefTensor;

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

/// Where a decision stands among the results of a step; null when the step makes none.
const ops::Decision *decisionOf(const Step &step) {
  return step.record && step.record->decision ? &*step.record->decision : nullptr;
}

bool hasFloats(llvm::ArrayRef<Value> operands) {
  return llvm::any_of(operands, [](const Value &value) {
    auto *tensor = std::get_if<TensorPtr>(&value);
    return tensor && ops::isFloat((*tensor)->dtype);
  });
}

/// Tensors that a run has made for itself are no one else's to look at before it ends.
RefTensor &mutableTensor(const RefTensor &tensor) { return const_cast<RefTensor &>(tensor); }

} // namespace

void Decisions::begin(const Weights &weights) {
  entries_.clear();
  made_.clear();
  weights_.clear();
  for (const auto &[name, tensor] : weights)
    weights_.insert(tensor.get());
  elements_ = 0;
  nextSweep_ = 64;
}

bool Decisions::follows(const Value &value) const {
  bool found = false;
  forEachTensor(value, [&](const TensorPtr &tensor) { found |= made_.contains(tensor.get()); });
  return found;
}

void Decisions::note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  bool decides = decisionOf(step) && hasFloats(operands);
  bool isBehind =
      !made_.empty() && llvm::any_of(operands, [&](const Value &each) { return follows(each); });
  if (!decides && !isBehind)
    return;
  Entry entry{&step, {operands.begin(), operands.end()}, results, 0};
  auto count = [&](const TensorPtr &tensor) {
    if (!weights_.contains(tensor.get()))
      entry.elements += tensor->data.size() + 16;
  };
  for (const Value &operand : operands)
    forEachTensor(operand, count);
  for (const Value &result : results)
    forEachTensor(result, [&](const TensorPtr &tensor) {
      count(tensor);
      if (isBehind || !ops::isFloat(tensor->dtype))
        made_.insert(tensor.get());
    });
  elements_ += entry.elements;
  entries_.push_back(std::move(entry));
  if (entries_.size() >= nextSweep_ || elements_ > kMostElements)
    sweep();
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
  for (const Value &result : entry.results)
    forEachTensor(result, [&](const TensorPtr &tensor) { made_.erase(tensor.get()); });
  entry = {};
}

/// Forgets what no one can ask for, and beyond that what is oldest.
void Decisions::sweep() {
  // Users come behind what they use, and hold it.
  for (Entry &entry : llvm::reverse(entries_))
    if (!isHeld(entry))
      forget(entry);
  if (elements_ > kMostElements)
    for (Entry &entry : entries_)
      if (entry.step && elements_ > kMostElements / 2)
        forget(entry);
  std::erase_if(entries_, [](const Entry &entry) { return !entry.step; });
  nextSweep_ = 2 * entries_.size() + 64;
}

void Decisions::computeAnew(const Entry &entry, const Context &context) {
  Values fresh = entry.step->kind == Step::Kind::Apply
                     ? applyOperator(*entry.step, entry.operands, context)
                     : compute(*entry.step, entry.operands, context);
  for (auto [old, now] : llvm::zip(entry.results, fresh)) {
    std::vector<TensorPtr> from;
    forEachTensor(now, [&](const TensorPtr &tensor) { from.push_back(tensor); });
    size_t next = 0;
    forEachTensor(
        old, [&](const TensorPtr &tensor) { mutableTensor(*tensor).data = from[next++]->data; });
  }
}

/// The entries that a tensor follows from, in order.
std::vector<size_t> Decisions::behind(const RefTensor &tensor) const {
  llvm::DenseSet<const RefTensor *> needed{&tensor};
  std::vector<size_t> found;
  for (size_t i = entries_.size(); i-- > 0;) {
    bool isNeeded = false;
    for (const Value &result : entries_[i].results)
      forEachTensor(result,
                    [&](const TensorPtr &each) { isNeeded |= needed.contains(each.get()); });
    if (!isNeeded)
      continue;
    found.push_back(i);
    for (const Value &operand : entries_[i].operands)
      forEachTensor(operand, [&](const TensorPtr &each) {
        if (made_.contains(each.get()))
          needed.insert(each.get());
      });
  }
  return {found.rbegin(), found.rend()};
}

void Decisions::take(const Candidate &candidate) {
  const Entry &entry = entries_[candidate.entry];
  const RefTensor &result = tensor(entry.results[decisionOf(*entry.step)->result]);
  takeDecision(*entry.step, mutableTensor(result), candidate.turn);
}

double Decisions::change(const RefTensor &tensor, size_t at, double value, const Context &context) {
  Candidate best{0, {0, 0}, std::numeric_limits<double>::infinity()};
  if (!made_.contains(&tensor))
    return best.distance;
  std::vector<size_t> chain = behind(tensor);
  std::vector<std::vector<double>> before;
  auto forChain = [&](auto visit) {
    for (size_t i : chain)
      for (const Value &result : entries_[i].results)
        forEachTensor(result, visit);
  };
  forChain([&](const TensorPtr &each) { before.push_back(each->data); });
  // Whether the tensor would be what is wanted.
  auto wouldDo = [&](const Candidate &candidate) {
    take(candidate);
    bool does = false;
    try {
      for (size_t i : chain)
        if (i > candidate.entry)
          computeAnew(entries_[i], context);
      does = tensor.data[at] == value;
    } catch (const Failure &) { // an index out of range, say
    }
    size_t next = 0;
    forChain([&](const TensorPtr &each) { mutableTensor(*each).data = before[next++]; });
    return does;
  };

  double own = tensor.data[at];
  int trials = 0;
  for (size_t i : chain) {
    const Entry &entry = entries_[i];
    const ops::Decision *decision = decisionOf(*entry.step);
    if (!decision || !hasFloats(entry.operands))
      continue;
    const RefTensor &result = oracle::tensor(entry.results[decision->result]);
    bool isIt = &result == &tensor;
    std::vector<Turn> turns;
    for (size_t j = isIt ? at : 0; j < (isIt ? at + 1 : result.data.size()); ++j)
      // What moves it, or adds to it, carries the difference on.
      turns.push_back({j, result.dtype == ops::DType::Bool ? 1 - result.data[j]
                                                           : result.data[j] + value - own});
    auto distances = decisionDistances(*entry.step, entry.operands, result, turns);
    for (auto [turn, distance] : llvm::zip(turns, distances)) {
      Candidate candidate{i, turn, distance};
      if (distance < best.distance && ++trials <= kMostTrials && wouldDo(candidate))
        best = candidate;
    }
  }
  if (best.distance == std::numeric_limits<double>::infinity())
    return best.distance;

  take(best);
  const Entry &turned = entries_[best.entry];
  llvm::DenseSet<const RefTensor *> changed{
      &oracle::tensor(turned.results[decisionOf(*turned.step)->result])};
  for (size_t i = best.entry + 1; i < entries_.size(); ++i) {
    bool isTouched = false;
    for (const Value &operand : entries_[i].operands)
      forEachTensor(operand,
                    [&](const TensorPtr &each) { isTouched |= changed.contains(each.get()); });
    if (!isTouched)
      continue;
    computeAnew(entries_[i], context);
    for (const Value &result : entries_[i].results)
      forEachTensor(result, [&](const TensorPtr &each) { changed.insert(each.get()); });
  }
  return best.distance;
}

void Decisions::set(const RefTensor &tensor, size_t at, double value) {
  if (made_.contains(&tensor))
    mutableTensor(tensor).data[at] = value;
}

} // namespace sheaf::oracle

//===- backward_sums.cpp - Gradients that have several summands -----------===//
#include "runtime/backward/backward.h"

namespace sheaf::rt {

namespace {

/// In Backward::sources_: the rest is the number of a summand, the last of a ring.
constexpr uint32_t kRing = uint32_t(1) << 31;

} // namespace

void Backward::contribute(uint32_t to, uint32_t from, int64_t granules, DType dtype) {
  if (to < model_.paramGranules) {
    uint32_t param = paramOf(to);
    if (!trainable_[param])
      return;
    paramRows_.push_back({param, to, static_cast<uint32_t>(granules)});
  } else if (to + static_cast<uint64_t>(granules) > sources_.size()) {
    throw InternalError("a gradient goes to rows that no record has made");
  }
  bool first = !hasGradient(to, granules);
  if (first)
    for (int64_t i = 0; i < granules; ++i)
      sources_[to + i] = from + static_cast<uint32_t>(i);
  for (int64_t i = first ? granules : 0; i < granules; ++i) {
    uint32_t &last = sources_[to + i];
    uint32_t source = from + static_cast<uint32_t>(i);
    if (last == 0) {
      last = source;
      first = true;
      continue;
    }
    auto number = static_cast<uint32_t>(summands_.size());
    if (last & kRing) {
      Summand &before = summands_[last & ~kRing];
      summands_.push_back({source, before.next});
      summands_[last & ~kRing].next = number;
      last = number | kRing;
    } else {
      summands_.push_back({last, number + 1});
      summands_.push_back({source, number});
      last = (number + 1) | kRing;
    }
  }
  if (first && to >= model_.paramGranules)
    waiting_.push_back({to, static_cast<uint32_t>(granules), dtype});
}

bool Backward::hasGradient(uint32_t begin, int64_t granules) const {
  uint32_t any = 0; // of few granules: a loop without exits is the fastest
  for (int64_t i = 0; i < granules; ++i)
    any |= sources_[begin + i];
  return any != 0;
}

/// The row of a tensor's gradient, of which some granule has a summand.
uint32_t Backward::takeGradient(uint32_t begin, int64_t granules, DType dtype) {
  uint32_t first = sources_[begin];
  uint32_t differs = !first || (first & kRing);
  for (int64_t i = 0; i < granules; ++i)
    differs |= sources_[begin + i] ^ (first + static_cast<uint32_t>(i));
  if (!differs)
    return first;
  // What only stands apart would stand in one place elsewhere: that does not count.
  if (!first || (first & kRing))
    made_ += static_cast<uint64_t>(granules);
  uint32_t to = allocateRows(granules);
  sumTo(to, begin, granules, dtype, /*add=*/false);
  return to;
}

/// Makes records that sum runs of granules whose summands stand side by side.
void Backward::sumTo(uint32_t to, uint32_t begin, int64_t granules, DType dtype, bool add) {
  // Calls `visit` with the summands of a granule, first to last, until it gives false.
  auto visitSummands = [&](int64_t granule, auto visit) {
    uint32_t last = sources_[begin + granule];
    if (last == 0)
      return;
    if (!(last & kRing)) {
      visit(last);
      return;
    }
    uint32_t end = last & ~kRing, at = end;
    do {
      at = summands_[at].next;
      if (!visit(summands_[at].source))
        return;
    } while (at != end);
  };
  for (int64_t i = 0; i < granules;) {
    list_.clear();
    visitSummands(i, [&](uint32_t source) {
      list_.push_back(source);
      return true;
    });
    int64_t end = i + 1;
    for (; end < granules; ++end) {
      size_t same = 0, seen = 0;
      visitSummands(end, [&](uint32_t source) {
        ++seen;
        if (same < list_.size() && source == list_[same] + static_cast<uint32_t>(end - i))
          ++same;
        return same == seen;
      });
      if (same != seen || same != list_.size())
        break;
    }
    auto *sources = reinterpret_cast<uint32_t *>(
        allocateWords(static_cast<int64_t>(std::max<size_t>(list_.size(), 1))));
    std::copy(list_.begin(), list_.end(), sources);
    appendRecord(sums_, SumRecord{to + static_cast<uint32_t>(i), static_cast<uint32_t>(end - i), 0,
                                  add, static_cast<uint32_t>(list_.size()),
                                  static_cast<uint32_t>(dtype), sources});
    i = end;
  }
}

void Backward::flushSums(uint32_t depth) {
  if (sums_.empty())
    return;
  int32_t *words = allocateWords(static_cast<int64_t>(sums_.size()));
  std::copy(sums_.begin(), sums_.end(), words);
  schedule_.push_back({depth, nativeKernel(model_, NativeKernel::Sum), words,
                       static_cast<int64_t>(sums_.size()) / kRecordWords<SumRecord>});
  sums_.clear();
}

} // namespace sheaf::rt

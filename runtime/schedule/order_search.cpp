#include "runtime/schedule/order_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace sheaf::rt {

namespace {

/// Sequences that the beam keeps. On nine sets of lattices 16 leave 1.20 of the least launches, 50
/// 1.19, 200 1.18.
constexpr size_t kWidth = 50;
/// What a search may take: looks at records or states of parts, of some nanoseconds each; bytes.
constexpr size_t kMostLooks = size_t(1) << 24;
constexpr uint64_t kMostBytes = uint64_t(64) << 20;
/// A record with one more to go after it counts so much more, as its binary logarithm. From 0.3
/// to 0.7 makes no difference on lattices.
constexpr double kUrgency = 0.5;

constexpr uint32_t kNoRecord = UINT32_MAX, kRunsLast = UINT32_MAX;

uint64_t hashed(uint64_t before, uint64_t word) {
  return (before ^ word ^ before >> 29) * 0x9E3779B97F4A7C15;
}

class OrderSearch {
public:
  OrderSearch(const RecordGraph &graph, MemoryMeter &meter, MemoryKind &count)
      : graph_(graph),
        arena_(meter, count, alignof(uint64_t), size_t(64) << 10, /*redzones=*/false) {}

  /// Throws GivenUp when it takes too long or too much, or the budget is short; std::bad_alloc.
  std::vector<uint32_t> find(size_t fewerThan);
  struct GivenUp {};

private:
  struct State;
  /// What would run in a part if a family came next.
  struct Ready {
    uint32_t family, count;
    const uint32_t *records;
    uint64_t weight;
    State *next; ///< null as long as nobody asked
  };
  struct State {
    State *sameBucket;
    uint64_t *ran; ///< a bit a record of the part
    Ready *ready;
    uint32_t families; ///< that are ready
    uint32_t number;   ///< in the order of making
    uint64_t left;     ///< weight of all that have not run
  };
  /// Records that hang together.
  struct Part {
    uint32_t *records;
    uint32_t size; ///< records
    std::span<State *> buckets;
    uint64_t words() const { return (size + uint64_t(63)) / 64; }
    std::span<const uint32_t> all() const { return {records, size}; }
  };
  /// How a sequence of the beam came about.
  struct Step {
    uint32_t before; ///< its number in the beam of one length less
    uint32_t family; ///< that came last
  };
  struct Candidate {
    uint64_t left;
    Step step;
    bool operator<(const Candidate &other) const {
      return std::tie(left, step.before, step.family) <
             std::tie(other.left, other.step.before, other.step.family);
    }
  };

  /// Families that nothing waits for but those after them here: each runs once, in the end.
  std::vector<uint32_t> findLast();
  void findParts(std::span<const uint32_t> last);
  void findWeights();
  bool allNeedsRan(const uint64_t *ran, uint32_t record);
  /// The state of a part in which `ran` have run. `newlyReady_` are ready, and what was ready
  /// `before`, except for what ran `now`.
  State *makeState(const Part &part, const uint64_t *ran, std::span<const Ready> before,
                   const Ready *now);
  State *firstState(const Part &part);
  State *next(const Part &part, const State &state, Ready &ready);
  /// Adds what may come next to the candidates; false when all have run.
  bool addCandidates(uint32_t number, const State *const *states);

  void look(size_t count) {
    if ((looks_ += count) > kMostLooks)
      throw GivenUp();
  }
  template <typename T> std::span<T> allocate(size_t count) {
    void *memory = arena_.allocate(count * sizeof(T));
    if (!memory || arena_.capacity() > kMostBytes)
      throw GivenUp();
    return {new (memory) T[count](), count};
  }

  const RecordGraph &graph_;
  BumpArena arena_;
  std::span<Part> parts_;
  std::span<uint32_t> placeInPart_; ///< by record, or kRunsLast
  std::span<uint64_t> weights_;     ///< by record, at least 1; the sum of all has 64 bits
  std::span<uint64_t> totals_;      ///< by family
  std::vector<uint32_t> newlyReady_;
  uint32_t states_ = 0;
  size_t looks_ = 0;
  std::vector<Candidate> candidates_;
};

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

std::vector<uint32_t> OrderSearch::findLast() {
  std::span<uint32_t> firstOf = allocate<uint32_t>(graph_.families());
  std::span<uint32_t> next = allocate<uint32_t>(graph_.size()); // of its family
  std::fill(firstOf.begin(), firstOf.end(), kNoRecord);
  std::vector<uint64_t> waiting(graph_.families()); // for its records, of families not in `last`
  for (uint32_t record = 0; record < graph_.size(); ++record) {
    next[record] = std::exchange(firstOf[graph_.family(record)], record);
    waiting[graph_.family(record)] += graph_.users(record).size();
  }
  std::vector<uint32_t> last;
  for (uint32_t family = 0; family < graph_.families(); ++family)
    if (waiting[family] == 0)
      last.push_back(family);
  for (size_t i = 0; i < last.size(); ++i)
    for (uint32_t record = firstOf[last[i]]; record != kNoRecord; record = next[record])
      for (uint32_t other : graph_.needs(record))
        if (--waiting[graph_.family(other)] == 0)
          last.push_back(graph_.family(other));
  std::reverse(last.begin(), last.end());
  return last;
}

void OrderSearch::findParts(std::span<const uint32_t> last) {
  uint32_t size = graph_.size();
  std::vector<bool> isLast(graph_.families());
  for (uint32_t family : last)
    isLast[family] = true;
  auto runsLast = [&](uint32_t record) { return isLast[graph_.family(record)]; };
  std::span<uint32_t> first = allocate<uint32_t>(size); // of its part, in the end
  auto root = [&](uint32_t record) {
    while (first[record] != record)
      record = first[record] = first[first[record]];
    return record;
  };
  for (uint32_t record = 0; record < size; ++record) {
    first[record] = record;
    if (!runsLast(record))
      for (uint32_t other : graph_.needs(record)) {
        uint32_t a = root(record), b = root(other);
        first[std::max(a, b)] = std::min(a, b);
      }
  }
  std::span<uint32_t> sizes = allocate<uint32_t>(size), numbers = allocate<uint32_t>(size);
  uint32_t parts = 0;
  for (uint32_t record = 0; record < size; ++record)
    if (!runsLast(record) && sizes[root(record)]++ == 0)
      numbers[root(record)] = parts++;
  parts_ = allocate<Part>(parts);
  placeInPart_ = allocate<uint32_t>(size);
  for (uint32_t record = 0; record < size; ++record) {
    placeInPart_[record] = kRunsLast;
    if (runsLast(record))
      continue;
    Part &part = parts_[numbers[root(record)]];
    if (!part.records) {
      part.records = allocate<uint32_t>(sizes[root(record)]).data();
      part.buckets = allocate<State *>(std::bit_ceil(uint64_t(2) * sizes[root(record)]));
    }
    placeInPart_[record] = part.size;
    part.records[part.size++] = record;
  }
}

/// From the longest way after each record.
void OrderSearch::findWeights() {
  std::span<uint32_t> behind = allocate<uint32_t>(graph_.size());
  uint32_t longest = graph_.findWaysBehind(behind) + 1;
  weights_ = allocate<uint64_t>(graph_.size());
  double bits = 64 - std::bit_width(graph_.size()), step = std::min(kUrgency, bits / longest);
  for (uint32_t record = 0; record < graph_.size(); ++record) {
    double weight = std::exp2(bits - step * (longest - behind[record]));
    weights_[record] = std::max<uint64_t>(static_cast<uint64_t>(weight), 1);
  }
}

//===----------------------------------------------------------------------===//
// States of a part
//===----------------------------------------------------------------------===//

bool OrderSearch::allNeedsRan(const uint64_t *ran, uint32_t record) {
  look(graph_.needs(record).size());
  for (uint32_t other : graph_.needs(record))
    if (!(ran[placeInPart_[other] / 64] >> placeInPart_[other] % 64 & 1))
      return false;
  return true;
}

OrderSearch::State *OrderSearch::makeState(const Part &part, const uint64_t *ran,
                                           std::span<const Ready> before, const Ready *now) {
  State &state = allocate<State>(1).front();
  state.number = states_++;
  look(part.words() + newlyReady_.size() + before.size());
  state.ran = allocate<uint64_t>(part.words()).data();
  std::copy_n(ran, part.words(), state.ran);
  std::sort(newlyReady_.begin(), newlyReady_.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(graph_.family(a), a) < std::pair(graph_.family(b), b);
  });
  newlyReady_.erase(std::unique(newlyReady_.begin(), newlyReady_.end()), newlyReady_.end());
  // Both are in order of families; lists without a new record are shared.
  state.ready = allocate<Ready>(before.size() + newlyReady_.size()).data();
  auto next = newlyReady_.begin();
  auto takeFamily = [&](const Ready *old) {
    Ready &ready = state.ready[state.families++];
    if (old)
      ready = {old->family, old->count, old->records, old->weight, nullptr};
    else
      ready.family = graph_.family(*next);
    auto end = std::find_if(next, newlyReady_.end(),
                            [&](uint32_t record) { return graph_.family(record) != ready.family; });
    if (next == end)
      return;
    std::span<uint32_t> records = allocate<uint32_t>(ready.count + static_cast<size_t>(end - next));
    std::copy(next, end, std::copy_n(ready.records, ready.count, records.begin()));
    ready.records = records.data();
    ready.count = static_cast<uint32_t>(records.size());
    for (; next != end; ++next)
      ready.weight += weights_[*next];
  };
  for (const Ready &old : before) {
    while (next != newlyReady_.end() && graph_.family(*next) < old.family)
      takeFamily(nullptr);
    if (&old != now)
      takeFamily(&old);
  }
  while (next != newlyReady_.end())
    takeFamily(nullptr);
  return &state;
}

OrderSearch::State *OrderSearch::firstState(const Part &part) {
  newlyReady_.clear();
  for (uint32_t record : part.all())
    if (graph_.needs(record).empty())
      newlyReady_.push_back(record);
  std::vector<uint64_t> none(part.words());
  State *made = makeState(part, none.data(), {}, nullptr);
  for (uint32_t record : part.all())
    made->left += weights_[record];
  return made;
}

OrderSearch::State *OrderSearch::next(const Part &part, const State &state, Ready &ready) {
  if (ready.next)
    return ready.next;
  look(part.words() + ready.count);
  std::vector<uint64_t> ran(state.ran, state.ran + part.words());
  uint64_t hash = 0;
  for (uint32_t i = 0; i < ready.count; ++i)
    ran[placeInPart_[ready.records[i]] / 64] |= uint64_t(1) << placeInPart_[ready.records[i]] % 64;
  for (uint64_t word : ran)
    hash = hashed(hash, word);
  State *&bucket = part.buckets[(hash >> 32) & (part.buckets.size() - 1)];
  for (State *other = bucket; other; other = other->sameBucket, look(1))
    if (std::equal(ran.begin(), ran.end(), other->ran))
      return ready.next = other;

  newlyReady_.clear();
  for (uint32_t i = 0; i < ready.count; ++i) {
    look(graph_.users(ready.records[i]).size());
    for (uint32_t user : graph_.users(ready.records[i]))
      if (placeInPart_[user] != kRunsLast && allNeedsRan(ran.data(), user))
        newlyReady_.push_back(user);
  }
  State *made = makeState(part, ran.data(), {state.ready, state.families}, &ready);
  made->left = state.left - ready.weight;
  made->sameBucket = bucket;
  return ready.next = bucket = made;
}

//===----------------------------------------------------------------------===//
// The beam
//===----------------------------------------------------------------------===//

bool OrderSearch::addCandidates(uint32_t number, const State *const *states) {
  look(totals_.size());
  std::fill(totals_.begin(), totals_.end(), 0);
  uint64_t left = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    left += states[part]->left;
    look(states[part]->families);
    for (uint32_t i = 0; i < states[part]->families; ++i)
      totals_[states[part]->ready[i].family] += states[part]->ready[i].weight;
  }
  bool any = false;
  for (uint32_t family = 0; family < totals_.size(); ++family)
    if (totals_[family] > 0) {
      candidates_.push_back({left - totals_[family], {number, family}});
      any = true;
    }
  return any;
}

std::vector<uint32_t> OrderSearch::find(size_t fewerThan) {
  std::vector<uint32_t> last = findLast();
  if (last.size() == graph_.families())
    return {}; // a launch each, as any order has
  findParts(last);
  size_t width = std::min(kWidth, kMostLooks / (parts_.size() * fewerThan));
  if (width < 2)
    return {};
  findWeights();
  totals_ = allocate<uint64_t>(graph_.families());
  std::span<State *> beam = allocate<State *>(width * parts_.size());
  std::span<State *> longer = allocate<State *>(width * parts_.size());
  std::vector<Step *> steps; // of beams of length 1, 2, ...
  for (size_t part = 0; part < parts_.size(); ++part)
    beam[part] = firstState(parts_[part]);
  addCandidates(0, beam.data());
  while (steps.size() + 1 + last.size() < fewerThan) {
    std::vector<Candidate> best = std::exchange(candidates_, {});
    std::sort(best.begin(), best.end());
    steps.push_back(allocate<Step>(width).data());
    uint32_t taken = 0;
    std::unordered_set<uint64_t> seen; // what two orders of the same launches lead to
    for (const Candidate &candidate : best) {
      look(parts_.size());
      State *const *from = &beam[candidate.step.before * parts_.size()];
      State **to = &longer[taken * parts_.size()];
      uint64_t hash = 0;
      for (size_t part = 0; part < parts_.size(); ++part) {
        to[part] = from[part];
        look(from[part]->families);
        for (uint32_t i = 0; i < from[part]->families; ++i)
          if (Ready &ready = from[part]->ready[i]; ready.family == candidate.step.family)
            to[part] = next(parts_[part], *from[part], ready);
        hash = hashed(hash, to[part]->number);
      }
      if (!seen.insert(hash).second)
        continue;
      steps.back()[taken++] = candidate.step;
      if (!addCandidates(taken - 1, to)) {
        std::vector<uint32_t> order(steps.size());
        uint32_t number = taken - 1;
        for (size_t length = steps.size(); length-- > 0; number = steps[length][number].before)
          order[length] = steps[length][number].family;
        order.insert(order.end(), last.begin(), last.end());
        return order;
      }
      if (taken == width)
        break;
    }
    std::swap(beam, longer);
  }
  return {};
}

} // namespace

std::vector<uint32_t> searchOrder(const RecordGraph &graph, size_t fewerThan, MemoryMeter &meter,
                                  MemoryKind &count) {
  if (graph.size() == 0)
    return {};
  try {
    return OrderSearch(graph, meter, count).find(fewerThan);
  } catch (const OrderSearch::GivenUp &) {
    return {};
  } catch (const std::bad_alloc &) {
    return {};
  }
}

} // namespace sheaf::rt

#include "runtime/schedule/launch_order.h"

#include "runtime/model/error.h"
#include "runtime/schedule/order_search.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace sheaf::rt {

namespace {

/// A record with one more to go after it counts so much more, as its binary logarithm: of 1.05 to
/// 1.3, measured on lattices and graphs of gates, 1.1 to 1.15 leave the fewest launches.
constexpr double kMostUrgency = 0.1375;
/// Urgencies are from 1 to 2 to this, as whole numbers: sums of 2^32 of them are exact.
constexpr double kUrgencyBits = 31;

constexpr uint32_t kPlaced = UINT32_MAX;

} // namespace

void LaunchOrder::release() {
  meter_.uncharge(count_, std::exchange(charged_, 0));
  launches_ = forwards_ = {};
  records_ = forwardRecords_ = waits_ = weights_ = powers_ = {};
  kinds_ = {};
}

bool LaunchOrder::reserve(const RecordGraph &graph) {
  // A launch a record at most; ready records are in one list each.
  uint64_t bytes = uint64_t(graph.size()) * (2 * sizeof(Launch) + 6 * sizeof(uint32_t)) +
                   graph.families() * sizeof(Kind);
  if (bytes > charged_ && !meter_.charge(count_, bytes - charged_))
    return false;
  charged_ = std::max(charged_, bytes);
  return true;
}

bool LaunchOrder::find(By by, const RecordGraph &graph) {
  if (!reserve(graph))
    return false;
  try {
    if (by == By::Agenda) {
      findDepths(graph);
      forwards(graph, [this] { return lowest(); });
      return true;
    }
    findUrgencies(graph);
    forwards(graph, [this] { return mostReady(); });
    backwards(graph);
    if (by == By::LookAhead)
      return true;
    std::vector<uint32_t> found = searchOrder(graph, launches_.size(), meter_, count_);
    if (found.empty())
      return true;
    forwards(graph, [this, next = found.begin(), end = found.end()]() mutable {
      return next == end ? nullptr : &kinds_[*next++];
    });
    if (records_.size() != graph.size())
      throw InternalError("a search for an order of launches left records out");
    backwards(graph);
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

/// How many records are on the longest way to each.
void LaunchOrder::findDepths(const RecordGraph &graph) {
  weights_.assign(graph.size(), 0);
  for (uint32_t record = 0; record < graph.size(); ++record)
    for (uint32_t other : graph.needs(record))
      weights_[record] = std::max(weights_[record], weights_[other] + 1);
}

/// From the longest way after each record.
void LaunchOrder::findUrgencies(const RecordGraph &graph) {
  weights_.resize(graph.size());
  uint32_t longest = graph.findWaysBehind(weights_) + 1;
  double step = std::min(kMostUrgency, kUrgencyBits / longest);
  powers_.resize(longest);
  for (uint32_t i = 0; i < longest; ++i)
    powers_[i] = static_cast<uint32_t>(
        std::exp2(std::min(kUrgencyBits, kUrgencyBits - step * (longest - 1 - i))));
  for (uint32_t &weight : weights_)
    weight = powers_[weight];
}

void LaunchOrder::begin(const RecordGraph &graph) {
  if (kinds_.size() < graph.families())
    kinds_.resize(graph.families());
  for (Kind &kind : kinds_) {
    kind.ready.clear();
    kind.since = kind.pending = 0;
    kind.pendingWeight = kind.readyWeight = 0;
  }
  waits_.resize(graph.size());
  launches_.clear();
  records_.clear();
  records_.reserve(graph.size());
  levelBegin_ = 0;
}

/// Takes what is ready of a kind. Launches that do not need each other share a level.
void LaunchOrder::appendLaunch(Kind &kind) {
  auto number = static_cast<uint32_t>(launches_.size());
  uint32_t level = number == 0 ? 0 : launches_.back().level;
  if (kind.since > levelBegin_) {
    levelBegin_ = number;
    ++level;
  }
  auto begin = static_cast<uint32_t>(records_.size());
  records_.insert(records_.end(), kind.ready.begin(), kind.ready.end());
  launches_.push_back({static_cast<uint32_t>(&kind - kinds_.data()), begin,
                       static_cast<uint32_t>(records_.size()), level});
  kind.ready.clear();
}

template <typename Next> void LaunchOrder::forwards(const RecordGraph &graph, Next next) {
  begin(graph);
  for (uint32_t record = 0; record < graph.size(); ++record) {
    Kind &kind = kinds_[graph.family(record)];
    ++kind.pending;
    kind.pendingWeight += weights_[record];
    waits_[record] = static_cast<uint32_t>(graph.needs(record).size());
    if (waits_[record] == 0) {
      kind.ready.push_back(record);
      kind.readyWeight += weights_[record];
    }
  }
  while (Kind *kind = next()) {
    kind->pending -= static_cast<uint32_t>(kind->ready.size());
    kind->pendingWeight -= kind->readyWeight;
    kind->readyWeight = 0;
    appendLaunch(*kind);
    Launch launch = launches_.back();
    for (uint32_t i = launch.begin; i < launch.end; ++i)
      for (uint32_t user : graph.users(records_[i]))
        if (--waits_[user] == 0) {
          Kind &kindOfUser = kinds_[graph.family(user)];
          kindOfUser.ready.push_back(user);
          kindOfUser.readyWeight += weights_[user];
          kindOfUser.since = static_cast<uint32_t>(launches_.size());
        }
  }
}

/// The same from the end on, along launches_.
void LaunchOrder::backwards(const RecordGraph &graph) {
  forwards_.swap(launches_);
  forwardRecords_.swap(records_);
  begin(graph);
  for (uint32_t record = graph.size(); record-- > 0;) {
    waits_[record] = static_cast<uint32_t>(graph.users(record).size());
    if (waits_[record] == 0)
      kinds_[graph.family(record)].ready.push_back(record);
  }
  for (size_t number = forwards_.size(); number-- > 0;) {
    const Launch &forward = forwards_[number];
    // What could not run earlier and, now, not later either.
    if (std::none_of(forwardRecords_.begin() + forward.begin, forwardRecords_.begin() + forward.end,
                     [&](uint32_t record) { return waits_[record] == 0; }))
      continue;
    appendLaunch(kinds_[forward.family]);
    Launch launch = launches_.back();
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      waits_[records_[i]] = kPlaced;
      for (uint32_t other : graph.needs(records_[i]))
        if (--waits_[other] == 0) {
          Kind &next = kinds_[graph.family(other)];
          next.ready.push_back(other);
          next.since = static_cast<uint32_t>(launches_.size());
        }
    }
  }
  std::reverse(launches_.begin(), launches_.end());
  uint32_t last = launches_.empty() ? 0 : launches_.front().level;
  for (Launch &launch : launches_)
    launch.level = last - launch.level;
}

//===----------------------------------------------------------------------===//
// Which kernel is next
//===----------------------------------------------------------------------===//

template <typename Value> LaunchOrder::Kind *LaunchOrder::greatest(Value value) {
  Kind *best = nullptr;
  double most = 0;
  for (Kind &kind : kinds_)
    if (!kind.ready.empty())
      if (double its = value(kind); !best || its > most) {
        best = &kind;
        most = its;
      }
  return best;
}

LaunchOrder::Kind *LaunchOrder::lowest() {
  return greatest([](const Kind &kind) { return -double(kind.pendingWeight) / kind.pending; });
}

LaunchOrder::Kind *LaunchOrder::mostReady() {
  return greatest(
      [](const Kind &kind) { return double(kind.readyWeight) / double(kind.pendingWeight); });
}

} // namespace sheaf::rt

#include "runtime/policy.h"

#include <cstring>
#include <new>

namespace sheaf::rt {

std::string_view policyName(Policy policy) {
  switch (policy) {
  case Policy::Depth:
    return "depth";
  case Policy::Agenda:
    return "agenda";
  case Policy::LookAhead:
    return "lookahead";
  case Policy::Auto:
    break;
  }
  return "auto";
}

std::optional<Policy> policyByName(std::string_view name) {
  for (Policy policy : {Policy::Depth, Policy::Agenda, Policy::LookAhead, Policy::Auto})
    if (policyName(policy) == name)
      return policy;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rearranging
//===----------------------------------------------------------------------===//

Scheduler::Scheduler(const Model &model, MemoryMeter &meter, MemoryKind &count)
    : model_(model), meter_(meter), count_(count), makers_(meter, count),
      graph_(model, meter, count),
      records_(meter, count, alignof(int32_t), size_t(64) << 10, /*redzones=*/false) {}

Scheduler::~Scheduler() { meter_.uncharge(count_, charged_); }

void Scheduler::beginRun(const RowSpace &rows) {
  records_.reset();
  inputs_.clear();
  keptEnd_ = rows.keptBegin();
  began_ = failed_ = false;
}

bool Scheduler::build(const Schedule &schedule, size_t begin, const RowSpace &rows) {
  if (!began_) {
    makers_.begin(rows, keptEnd_);
    inputsKnown_ = recordsKnown_ = 0;
    began_ = true;
  }
  if (!makers_.grow(rows))
    return false;
  for (; inputsKnown_ < inputs_.size(); ++inputsKnown_)
    makers_.addInputs(inputs_[inputsKnown_]);
  if (!graph_.build(schedule, begin, makers_, recordsKnown_))
    return false;
  recordsKnown_ += graph_.size();
  return true;
}

bool Scheduler::prepare(Policy policy, const Schedule &schedule, size_t begin) {
  uint64_t records = graph_.size();
  looksAhead_ = policy == Policy::LookAhead;
  // A family with one launch in order of depth has no chains; it needs no column.
  uint32_t columns = 0;
  try {
    if (kinds_.size() < graph_.families())
      kinds_.resize(graph_.families());
    for (Kind &kind : kinds_) {
      kind.ready.clear();
      kind.pending = kind.column = 0;
      kind.depthSum = 0;
      kind.longest = 0;
      kind.farthest = 0;
      kind.pendingChains.assign(2, 0);
      kind.readyChains.assign(2, 0);
    }
    uint32_t record = 0;
    for (size_t i = begin; i < schedule.size(); ++i) {
      Kind &kind = kinds_[graph_.family(record)];
      if (kind.pending > 0 && kind.column == 0)
        kind.column = ++columns;
      kind.pending += static_cast<uint32_t>(schedule[i].count);
      record += static_cast<uint32_t>(schedule[i].count);
    }
    uint64_t bytes = records * (4 + (looksAhead_ ? columns : 0)) * sizeof(uint32_t);
    if (bytes > charged_ && !meter_.charge(count_, bytes - charged_))
      return false;
    charged_ = std::max(charged_, bytes);
    waits_.resize(records);
    for (uint32_t r = 0; r < records; ++r) {
      waits_[r] = graph_.waitsFor(r);
      kinds_[graph_.family(r)].depthSum += graph_.depth(r);
    }
    if (looksAhead_)
      findChains(columns);
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

void Scheduler::findChains(uint32_t columns) {
  toGo_.assign(graph_.size(), 0);
  chain_.assign(graph_.size(), 1);
  ahead_.assign(size_t(graph_.size()) * columns, 0);
  for (uint32_t record = graph_.size(); record-- > 0;) {
    uint32_t *ahead = ahead_.data() + size_t(record) * columns;
    for (uint32_t user : graph_.users(record)) {
      const uint32_t *behind = ahead_.data() + size_t(user) * columns;
      for (uint32_t c = 0; c < columns; ++c)
        ahead[c] = std::max(ahead[c], behind[c]);
      if (uint32_t column = kinds_[graph_.family(user)].column)
        ahead[column - 1] = std::max(ahead[column - 1], chain_[user]);
      toGo_[record] = std::max(toGo_[record], toGo_[user] + 1);
    }
    Kind &kind = kinds_[graph_.family(record)];
    if (kind.column)
      chain_[record] = ahead[kind.column - 1] + 1;
    size_t length = chain_[record];
    if (length >= kind.pendingChains.size()) {
      kind.pendingChains.resize(2 * length);
      kind.readyChains.resize(2 * length);
    }
    ++kind.pendingChains[length];
    kind.longest = std::max(kind.longest, length);
  }
}

void Scheduler::makeReady(uint32_t record, size_t since) {
  Kind &kind = kinds_[graph_.family(record)];
  kind.ready.push_back(record);
  kind.since = since;
  if (!looksAhead_)
    return;
  ++kind.readyChains[chain_[record]];
  kind.farthest = std::max(kind.farthest, toGo_[record]);
}

void Scheduler::arrange(Policy policy, Schedule &schedule, size_t begin, const RowSpace &rows) {
  if (failed_ || policy == Policy::Depth)
    return;
  // Launches of an earlier flush that are not in the graph would look like inputs: from then on
  // this mini-batch keeps the order of depth.
  failed_ = true;
  if (!build(schedule, begin, rows) || !prepare(policy, schedule, begin))
    return;
  uint64_t words = 0;
  for (size_t i = begin; i < schedule.size(); ++i)
    words += static_cast<uint64_t>(schedule[i].count) * model_.kernels[schedule[i].kernel].words;
  auto *memory = static_cast<int32_t *>(records_.allocate(words * sizeof(int32_t)));
  if (!memory)
    return;
  failed_ = false;

  uint32_t depth = begin > 0 ? schedule[begin - 1].depth + 1 : 0;
  schedule.resize(begin);
  size_t groupBegin = begin;
  for (uint32_t record = 0; record < graph_.size(); ++record)
    if (waits_[record] == 0)
      makeReady(record, begin);
  for (;;) {
    Kind *kind = policy == Policy::Agenda ? chooseAgenda() : chooseLookAhead();
    if (!kind)
      return;
    // Launches that do not need each other share a depth, as in order of depth.
    size_t number = schedule.size();
    if (kind->since > groupBegin) {
      groupBegin = number;
      ++depth;
    }
    schedule.push_back(launch(*kind, depth, memory, number + 1));
    memory += schedule.back().count * model_.kernels[schedule.back().kernel].words;
  }
}

/// Runs what is ready of a kind; its users may then be ready behind `since` launches.
ScheduledBucket Scheduler::launch(Kind &kind, uint32_t depth, int32_t *memory, size_t since) {
  std::vector<uint32_t> records;
  records.swap(kind.ready);
  kind.farthest = 0;
  uint32_t kernel = graph_.kernel(graph_.family(records.front()));
  uint32_t words = model_.kernels[kernel].words;
  ScheduledBucket result{depth, kernel, memory, static_cast<int64_t>(records.size())};
  for (uint32_t record : records) {
    std::memcpy(memory, graph_.words(record), words * sizeof(int32_t));
    memory += words;
    --kind.pending;
    kind.depthSum -= graph_.depth(record);
    if (looksAhead_) {
      --kind.pendingChains[chain_[record]];
      --kind.readyChains[chain_[record]];
    }
  }
  while (kind.longest > 0 && kind.pendingChains[kind.longest] == 0)
    --kind.longest;
  for (uint32_t record : records)
    for (uint32_t user : graph_.users(record))
      if (--waits_[user] == 0)
        makeReady(user, since);
  if (kind.ready.empty()) {
    records.clear();
    kind.ready.swap(records); // its memory is used again
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The policies
//===----------------------------------------------------------------------===//

Scheduler::Kind *Scheduler::chooseAgenda() {
  Kind *best = nullptr;
  double least = 0;
  for (Kind &kind : kinds_) {
    if (kind.ready.empty())
      continue;
    double average = static_cast<double>(kind.depthSum) / kind.pending;
    if (!best || average < least) {
      best = &kind;
      least = average;
    }
  }
  return best;
}

Scheduler::Kind *Scheduler::chooseLookAhead() {
  Kind *best = nullptr;
  bool bestShortens = false;
  double bestValue = 0;
  for (Kind &kind : kinds_) {
    if (kind.ready.empty())
      continue;
    bool shortens = kind.readyChains[kind.longest] == kind.pendingChains[kind.longest];
    // Of those that do, the one that leaves least behind.
    double value = shortens ? static_cast<double>(kind.ready.size()) / kind.pending : kind.farthest;
    if (!best || shortens > bestShortens || (shortens == bestShortens && value > bestValue)) {
      best = &kind;
      bestShortens = shortens;
      bestValue = value;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Which is best
//===----------------------------------------------------------------------===//

std::optional<Dependences> Scheduler::dependences(const Schedule &schedule, const RowSpace &rows) {
  if (!trace(schedule, rows))
    return std::nullopt;
  Dependences result;
  result.latest.assign(graph_.size(), Dependences::kNone);
  // Records are numbered by launch, so the last to say so is the latest.
  for (uint32_t record = 0; record < graph_.size(); ++record)
    for (uint32_t user : graph_.users(record))
      result.latest[user] = record;
  std::vector<uint32_t> longest = graph_.longestChains();
  result.longestChains.resize(model_.kernels.size());
  for (uint32_t family = 0; family < graph_.families(); ++family) {
    result.longestChains[graph_.kernel(family)] = longest[family];
    result.leastLaunches += longest[family];
  }
  return result;
}

bool Scheduler::trace(const Schedule &schedule, const RowSpace &rows) {
  began_ = false;
  return build(schedule, 0, rows);
}

std::vector<bool> Scheduler::neededFor(uint64_t id, uint64_t granules) const {
  std::vector<bool> needed(graph_.size());
  makers_.of(id, granules, [&](uint32_t record) { needed[record] = true; });
  // Nobody waits for one of a higher number.
  for (uint32_t record = graph_.size(); record-- > 0;)
    for (uint32_t user : graph_.users(record))
      needed[record] = needed[record] || needed[user];
  return needed;
}

void Scheduler::release() {
  began_ = false;
  makers_.release();
  graph_.release();
}

Policy PolicyTrial::next() const { return chosen().value_or(kTried[runs_ % std::size(kTried)]); }

void PolicyTrial::took(uint64_t nanoseconds, uint64_t records) {
  if (chosen() || records == 0)
    return;
  size_t which = runs_ % std::size(kTried);
  double each = static_cast<double>(nanoseconds) / static_cast<double>(records);
  best_[which] = runs_ < std::size(kTried) ? each : std::min(best_[which], each);
  ++runs_;
}

std::optional<Policy> PolicyTrial::chosen() const {
  if (runs_ < kRounds * std::size(kTried))
    return std::nullopt;
  return kTried[std::min_element(std::begin(best_), std::end(best_)) - std::begin(best_)];
}

} // namespace sheaf::rt

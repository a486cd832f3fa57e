#include "runtime/schedule/policy.h"

#include <algorithm>
#include <cstring>

namespace sheaf::rt {

std::string_view policyName(Policy policy) {
  switch (policy) {
  case Policy::Depth:
    return "depth";
  case Policy::Agenda:
    return "agenda";
  case Policy::LookAhead:
    return "lookahead";
  case Policy::Search:
    return "search";
  case Policy::Memory:
    return "memory";
  case Policy::Auto:
    break;
  }
  return "auto";
}

std::optional<Policy> policyByName(std::string_view name) {
  for (Policy policy : kOrders)
    if (policyName(policy) == name)
      return policy;
  return name == policyName(Policy::Auto) ? std::optional(Policy::Auto) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rearranging
//===----------------------------------------------------------------------===//

Scheduler::Scheduler(const Model &model, const RowWords &words, MemoryMeter &meter,
                     MemoryKind &count)
    : model_(model), makers_(meter, count), graph_(model, words, meter, count),
      order_(meter, count), windows_(model, words, meter, count),
      records_(meter, count, alignof(int32_t), size_t(64) << 10, /*redzones=*/false) {}

void Scheduler::beginRun(const RowSpace &rows) {
  records_.reset();
  windows_.beginRun();
  inputs_.clear();
  keptEnd_ = rows.keptBegin();
  began_ = failed_ = false;
}

bool Scheduler::build(const Schedule &schedule, size_t begin, const RowSpace &rows,
                      const PromisedRows *promised) {
  if (!began_) {
    makers_.begin(rows, keptEnd_);
    inputsKnown_ = recordsKnown_ = 0;
    began_ = true;
  }
  if (!makers_.grow(rows, promised))
    return false;
  for (; inputsKnown_ < inputs_.size(); ++inputsKnown_)
    makers_.addInputs(inputs_[inputsKnown_]);
  if (!graph_.build(schedule, begin, rows, makers_, recordsKnown_))
    return false;
  recordsKnown_ += graph_.size();
  return true;
}

void Scheduler::arrange(Policy policy, Schedule &schedule, size_t begin, const RowSpace &rows,
                        const PromisedRows *promised) {
  if (failed_ || !reorders(policy))
    return;
  // Launches of an earlier flush that are not in the graph would look like inputs: from then on
  // this mini-batch keeps the order of depth.
  failed_ = true;
  LaunchOrder::By by = policy == Policy::Agenda      ? LaunchOrder::By::Agenda
                       : policy == Policy::LookAhead ? LaunchOrder::By::LookAhead
                                                     : LaunchOrder::By::Search;
  if (!build(schedule, begin, rows, promised) || !order_.find(by, graph_))
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
  for (const LaunchOrder::Launch &launch : order_.launches()) {
    uint32_t kernel = graph_.kernel(launch.family);
    uint32_t each = model_.kernels[kernel].words;
    schedule.push_back(
        {depth + launch.level, kernel, memory, static_cast<int64_t>(launch.end - launch.begin)});
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      std::memcpy(memory, graph_.words(order_.records()[i]), each * sizeof(int32_t));
      memory += each;
    }
  }
}

//===----------------------------------------------------------------------===//
// Which is best
//===----------------------------------------------------------------------===//

std::optional<Dependences> Scheduler::dependences(const Schedule &schedule, const RowSpace &rows) {
  if (!trace(schedule, rows))
    return std::nullopt;
  Dependences result;
  result.latest.assign(graph_.size(), Dependences::kNone);
  // Records are numbered by launch.
  for (uint32_t record = 0; record < graph_.size(); ++record)
    if (std::span<const uint32_t> needs = graph_.needs(record); !needs.empty())
      result.latest[record] = *std::max_element(needs.begin(), needs.end());
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
  return graph_.resultsNeededFor(makers_, id, granules);
}

void Scheduler::release() {
  began_ = false;
  makers_.release();
  graph_.release();
  order_.release();
}

void Scheduler::giveBack() {
  release();
  records_.reset();
  records_.giveBack();
  windows_.giveBack();
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
  if (runs_ < kRuns)
    return std::nullopt;
  return kTried[std::min_element(std::begin(best_), std::end(best_)) - std::begin(best_)];
}

} // namespace sheaf::rt

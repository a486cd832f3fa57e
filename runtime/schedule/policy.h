//===- policy.h - In which order the records of a flush run -----*- C++ -*-===//
//
// By default in order of depth, which recording has already put them in. The other policies look at
// the records of a flush as a graph and choose kernel after kernel (launch_order.h). No result
// depends on the policy.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_POLICY_H
#define SHEAF_RUNTIME_SCHEDULE_POLICY_H

#include "runtime/schedule/launch_order.h"
#include "runtime/schedule/recorded_windows.h"

#include <iterator>
#include <optional>
#include <string_view>

namespace sheaf::rt {

enum class Policy : uint8_t {
  Depth,
  Agenda,
  LookAhead,
  Search,
  Memory, ///< of depth, in windows of the order of recording (recorded_windows.h)
  Auto    ///< each of the first three for some mini-batches, then the fastest
};
/// All but Auto.
inline constexpr Policy kOrders[] = {Policy::Depth, Policy::Agenda, Policy::LookAhead,
                                     Policy::Search, Policy::Memory};
/// Whether the scheduler puts records into another order than that of depth.
constexpr bool reorders(Policy policy) {
  return policy != Policy::Depth && policy != Policy::Memory;
}
std::string_view policyName(Policy policy);
std::optional<Policy> policyByName(std::string_view name);

/// Puts the launches of flushes into another order.
class Scheduler {
public:
  Scheduler(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count);
  Scheduler(const Scheduler &) = delete;

  /// A mini-batch begins; what the last schedule showed is forgotten. The rows as they are then.
  void beginRun(const RowSpace &rows);
  /// An instance of this mini-batch has brought tensors: granules from `id` on.
  void addInputs(uint64_t id) { inputs_.push_back(id); }

  /// Rearranges the launches of `schedule` from `begin` on, all of them of this mini-batch and
  /// those before it rearranged, too. When memory is short they stay in order of depth. What was
  /// `promised` is made by these launches, and by none before.
  void arrange(Policy policy, Schedule &schedule, size_t begin, const RowSpace &rows,
               const PromisedRows *promised = nullptr);

  /// For launches of which all is promised: divides them in place of arrange().
  RecordedWindows &windows() { return windows_; }

  /// Who waits for whom in all launches of the schedule of this mini-batch. Nothing when memory is
  /// short.
  std::optional<Dependences> dependences(const Schedule &schedule, const RowSpace &rows);

  /// Finds out who waits for whom in all launches of the schedule, for neededFor(). False when
  /// memory is short.
  bool trace(const Schedule &schedule, const RowSpace &rows);
  /// The results that granules [id, id + granules) follow from, as bits: one for each result of
  /// each record, in the order of the schedule that was traced.
  std::vector<bool> neededFor(uint64_t id, uint64_t granules) const;
  /// Gives the memory of all this back, until it is needed again.
  void release();
  /// The same, and that of launches that were rearranged: no schedule shows them any more.
  void giveBack();

private:
  bool build(const Schedule &schedule, size_t begin, const RowSpace &rows,
             const PromisedRows *promised = nullptr);

  const Model &model_;
  RowMakers makers_;
  RecordGraph graph_;
  LaunchOrder order_;
  RecordedWindows windows_;
  BumpArena records_; ///< of the launches that were rearranged
  uint64_t keptEnd_ = 0;
  std::vector<uint64_t> inputs_;
  size_t inputsKnown_ = 0; ///< to makers_
  uint32_t recordsKnown_ = 0;
  bool began_ = false, failed_ = false;
};

/// Which policy is the fastest: tries each in turn for a few mini-batches.
class PolicyTrial {
  /// Not search, which takes longer than it saves where a launch costs a microsecond.
  static constexpr Policy kTried[] = {Policy::Depth, Policy::LookAhead, Policy::Agenda};
  static constexpr unsigned kRounds = 3; ///< the first warms up

public:
  /// So many mini-batches it takes.
  static constexpr unsigned kRuns = kRounds * std::size(kTried);

  /// What the next mini-batch is to use.
  Policy next() const;
  /// It took so long for so many records.
  void took(uint64_t nanoseconds, uint64_t records);
  std::optional<Policy> chosen() const;

private:
  double best_[std::size(kTried)] = {}; ///< nanoseconds a record
  unsigned runs_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_POLICY_H

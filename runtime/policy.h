//===- policy.h - In which order the records of a flush run -----*- C++ -*-===//
//
// By default in order of depth, which recording has already put them in. The other policies look at
// the records of a flush as a graph and choose kernel after kernel: whichever is chosen runs all of
// its records that are ready, in one launch. No result depends on the policy.
//
// - Agenda (DyNet's): the kernel whose records that have not run stand at the lowest depth on
//   average.
// - Look-ahead: a kernel for which a launch now shortens the longest chain of its records: all that
//   begin one are ready. Such a launch has to be made at some time whatever the order (a lower
//   bound is the sum of the kernels' longest chains), and now is as good as later; the idea is that
//   of ED-Batch's sufficient condition. When there is none, one that leads on: the kernel of the
//   ready record with the longest way still to go.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_POLICY_H
#define SHEAF_RUNTIME_POLICY_H

#include "runtime/record_graph.h"

#include <optional>
#include <string_view>

namespace sheaf::rt {

enum class Policy : uint8_t {
  Depth,
  Agenda,
  LookAhead,
  Auto ///< each of the others for some mini-batches, then the fastest
};
std::string_view policyName(Policy policy);
std::optional<Policy> policyByName(std::string_view name);

/// Puts the launches of flushes into another order.
class Scheduler {
public:
  Scheduler(const Model &model, MemoryMeter &meter, MemoryKind &count);
  ~Scheduler();
  Scheduler(const Scheduler &) = delete;

  /// A mini-batch begins; what the last schedule showed is forgotten. The rows as they are then.
  void beginRun(const RowSpace &rows);
  /// An instance of this mini-batch has brought tensors: granules from `id` on.
  void addInputs(uint64_t id) { inputs_.push_back(id); }

  /// Rearranges the launches of `schedule` from `begin` on, all of them of this mini-batch and
  /// those before it rearranged, too. When memory is short they stay in order of depth.
  void arrange(Policy policy, Schedule &schedule, size_t begin, const RowSpace &rows);

  /// Who waits for whom in all launches of the schedule of this mini-batch. Nothing when memory is
  /// short.
  std::optional<Dependences> dependences(const Schedule &schedule, const RowSpace &rows);

  /// Finds out who waits for whom in all launches of the schedule, for neededFor(). False when
  /// memory is short.
  bool trace(const Schedule &schedule, const RowSpace &rows);
  /// The records that granules [id, id + granules) follow from, as bits in the order of the
  /// schedule that was traced.
  std::vector<bool> neededFor(uint64_t id, uint64_t granules) const;
  /// Gives the memory of all this back, until it is needed again.
  void release();

private:
  /// The records of one family in the running flush.
  struct Kind {
    std::vector<uint32_t> ready;
    uint32_t pending = 0;  ///< records that have not run
    uint64_t depthSum = 0; ///< of these
    size_t since = 0;      ///< `ready` is so behind this many launches
    /// Look-ahead: pending and ready records by the length of the chain that they begin.
    std::vector<uint32_t> pendingChains, readyChains;
    size_t longest = 0;    ///< of the pending
    uint32_t farthest = 0; ///< the longest way that a record of `ready` has to go
    uint32_t column = 0;
  };

  bool build(const Schedule &schedule, size_t begin, const RowSpace &rows);
  bool prepare(Policy policy, const Schedule &schedule, size_t begin);
  void findChains(uint32_t columns);
  void makeReady(uint32_t record, size_t since);
  Kind *chooseAgenda();
  Kind *chooseLookAhead();
  ScheduledBucket launch(Kind &kind, uint32_t depth, int32_t *memory, size_t since);

  const Model &model_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  RowMakers makers_;
  RecordGraph graph_;
  BumpArena records_; ///< of the launches that were rearranged
  uint64_t charged_ = 0;
  uint64_t keptEnd_ = 0;
  std::vector<uint64_t> inputs_;
  size_t inputsKnown_ = 0; ///< to makers_
  uint32_t recordsKnown_ = 0;
  bool began_ = false, failed_ = false;
  std::vector<Kind> kinds_; ///< by family of the graph
  std::vector<uint32_t> waits_;
  bool looksAhead_ = false;
  std::vector<uint32_t> toGo_;  ///< by record: the records on the longest way behind it
  std::vector<uint32_t> chain_; ///< by record: the longest chain of its own family from it on
  std::vector<uint32_t> ahead_; ///< by record, a column a family: the longest chain behind it
};

/// Which policy is the fastest: tries each in turn for a few mini-batches.
class PolicyTrial {
public:
  /// What the next mini-batch is to use.
  Policy next() const;
  /// It took so long for so many records.
  void took(uint64_t nanoseconds, uint64_t records);
  std::optional<Policy> chosen() const;

private:
  static constexpr Policy kTried[] = {Policy::Depth, Policy::LookAhead, Policy::Agenda};
  static constexpr unsigned kRounds = 3; ///< the first warms up
  double best_[3] = {};                  ///< nanoseconds a record
  unsigned runs_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_POLICY_H

//===- session_impl.h - What a session is made of ---------------*- C++ -*-===//
//
// Private to session.cpp (what callers see of a session, its weights), session_run.cpp (how a
// mini-batch runs), session_backward.cpp (the way back), run.cpp (what is put aside) and
// session_rows.cpp (what the device is told).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_SESSION_IMPL_H
#define SHEAF_RUNTIME_SESSION_SESSION_IMPL_H

#include "runtime/backward/backward.h"
#include "runtime/device/device.h"
#include "runtime/session/emissions.h"
#include "runtime/session/session.h"
#include "runtime/walk/collector.h"
#include "runtime/walk/recorder.h"

#include <map>
#include <set>

namespace sheaf::rt {

/// What the way back needs of a mini-batch.
struct Ran {
  const Schedule &recorded;
  const FoldedLaunches &folded;
  const std::vector<Outcome> &outcomes;
  const std::vector<Walk> &walks;
  uint64_t weights; ///< Session::Impl::weightsVersion at the time
};

struct Session::Impl {
  const Model &model;
  SessionOptions options;
  MemoryMeter meter;
  MemoryUse memory;
  std::unique_ptr<Device> device;
  Recorder recorder;
  ValueMover values;
  Emissions emissions;
  const bool canJoin;                           ///< some kernels are for where rows are short
  bool rowsAreShort = false, joinsSome = false; ///< of this mini-batch
  Scheduler scheduler;
  ForkWorth forkWorth;
  PolicyTrial trial;
  Policy policy = Policy::Depth; ///< of this mini-batch
  Schedule schedule;
  Schedule reordered; ///< in training: of a policy's order, the launches as they were recorded
  std::vector<Instruction> instructions; ///< that are being put together
  Ticket ticket;                         ///< of what was submitted last
  std::unique_ptr<Backward> backward;    ///< of models made for training
  Counters counters;
  std::vector<Outcome> outcomes;
  std::vector<Walk> walks; ///< one an instance, in their order
  bool weightsChanged = true;
  std::set<size_t> paramsGone; ///< only their packed copies are there (SessionOptions::weightsStay)
  uint64_t weightsVersion = 0; ///< grows with each change
  uint64_t weightsOfRun = 0;   ///< the last run's
  FoldedLaunches folded;       ///< in training: of this mini-batch
  bool foldedIsStale = true;   ///< in training: the parameters that follow from others
  bool keptIsStale = false;    ///< results of older weights are kept
  std::map<uint32_t, uint64_t> buffers; ///< of the device's, that were made: their bytes
  Trace *trace = nullptr;
  uint64_t step = 0;
  bool keepsAll = false; ///< asked for
  std::function<void(const Schedule &)> onForget;
  Collector collector;
  bool isWhole = true; ///< `schedule` shows all of the mini-batch
  bool serves = false; ///< an engine has it

  Impl(const Model &model, const SessionOptions &given);
  ~Impl();

  // Weights, and what follows from them alone.
  void packWeights();
  void keepPacked(size_t param);
  void requireRows(size_t param) const;
  void weightsPacked(); ///< by whoever changed them
  void foldWeights();
  void computeFolded();
  void packFolded();

  // A mini-batch, from the whole to its parts.
  std::span<const Outcome> run(std::span<const Instance> instances, const std::stop_token &stop);
  bool walkAll(std::span<const Instance> instances, const std::stop_token &stop);
  void walk(std::span<const Instance> instances, const std::stop_token &stop);
  bool walkAgain(std::span<const Instance> instances, const std::stop_token &stop, size_t logged);
  void chooseForms(int64_t instance);
  bool begin(Walk &walk, const Instance &instance, HostStack *stack);
  void beginEmitting(Walk &walk);
  void end(const Walk &walk, Outcome &outcome);
  /// What mini-batches and engines have in common: nothing is recorded, nothing of this run known.
  void beginRun();
  template <typename Ended> void stopTasks(Ended ended);
  void runPending();
  /// Instances that are computed together, where none reads.
  struct Wave {
    size_t begun = 0;
    uint64_t granules = 0;          ///< handed out when it began
    size_t holders = 0;             ///< begun since rows were given back
    uint64_t records = 0;           ///< Counters::records at that time
    std::optional<size_t> tooLarge; ///< it found too little memory, and is begun again
  };
  uint64_t usedBytes() const;
  bool isFull(const Wave &wave) const;
  void endWave(Wave &wave);
  bool mayForget(const Wave &wave) const;
  bool failedBesideOthers(const Wave &wave) const;
  /// Computes what is recorded, or a part of it, each depth whole before the next. Returns the
  /// depth of the first that is left, or BucketTable::kNone. `more` is told that first, and may
  /// append launches to the schedule, which run after.
  uint32_t flush(BucketTable::What what, const BucketTable::Part &part = {},
                 const std::function<void(uint32_t)> &more = nullptr);
  /// Computes launches that were drained before.
  void compute(std::span<const ScheduledBucket> launches);
  /// The launches of the schedule from `begin` on are computed next. `start`: when that began.
  void arrangeAndSubmit(size_t begin, BucketTable::What what, uint64_t start);
  void submit(size_t begin);
  /// Until then no row is read, and none that a launch uses is given back.
  void settle() { device->wait(ticket); }
  bool mayCollect() const;
  bool collect();
  /// The same with what `addResults` adds to what those that wait need; false when there was no
  /// memory to look.
  bool collect(const std::function<void(LiveValues &)> &addResults);
  void keep(const Walk &walk, LiveValues &live) const;
  void forgetMiniBatch();
  /// What tasks have counted becomes part of the counters.
  void countTasks();

  // The way back.
  /// The launches of this mini-batch in order of depth, whatever order they ran in.
  const Schedule &recorded() const { return mayReorder() ? reordered : schedule; }
  bool mayReorder() const { return model.training && options.policy != Policy::Depth; }
  Ran last() const { return {recorded(), folded, outcomes, walks, weightsOfRun}; }
  void checkGoesBack(const Ran &ran) const;
  GradientSeed seedOf(const Ran &ran, const Cotangent &cotangent, size_t number);
  std::vector<GradientInput> inputs(const Ran &ran) const;
  std::span<const ParamGradient> goBack(const Ran &ran, std::span<const float> weights,
                                        bool keepRows);
  std::span<const ParamGradient> goBack(const Ran &ran, std::span<const Cotangent> cotangents,
                                        bool keepRows);
  std::span<const ParamGradient> goBack(const Ran &ran, std::span<const GradientSeed> seeds,
                                        bool keepRows);

  // Mini-batches that were put aside.
  std::vector<const Run::Impl *> aside;
  std::vector<RowRange> rowsAside() const;

  // Rows of a device with a memory of its own.
  void copyWrittenIn();
  void copyKeptOut(size_t begin);
  void publishReads(int64_t depth);
  void fetch(const RowRange &rows);
  void showResults(const std::function<void(LiveValues &)> &addResults);
  void showAll();
  void showParams(std::span<const uint32_t> params);

  // Instances without a result.
  void giveUp(const Walk &walk, Outcome &outcome);
  void giveUpAll(std::span<const Instance> instances);
  void giveUpNonFinite(std::span<const Instance> instances);

  // What is seen from outside.
  TensorView tensor(uint32_t type, const Slot *slots) const;
  void note(TracePart::Kind kind, uint64_t begin, int64_t number);
  void noteMemory();
  void checkGuards();
};

/// A mini-batch that was put aside. It is where its slots and records are.
struct Run::Impl {
  Session::Impl &session;
  std::unique_ptr<Heap> heap;
  std::unique_ptr<BumpArena> records;
  std::vector<RowRange> rows;
  Schedule recorded;
  FoldedLaunches folded;
  std::vector<Outcome> outcomes;
  std::vector<Walk> walks;
  uint64_t weights = 0;
  uint64_t charged = 0; ///< for the schedule

  explicit Impl(Session::Impl &session) : session(session) {}
  ~Impl();
  Ran ran() const { return {recorded, folded, outcomes, walks, weights}; }
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_SESSION_IMPL_H

//===- session_impl.h - What a session is made of ---------------*- C++ -*-===//
//
// Private to session.cpp (what callers see of a session, its weights), session_run.cpp (how a
// mini-batch runs), session_waves.cpp (which instances are walked when, and where what they promise
// lies), session_recompute.cpp (what of it training drops), session_backward.cpp (the backward
// pass), run.cpp (what is put aside) and session_rows.cpp (what the device is told).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_SESSION_IMPL_H
#define SHEAF_RUNTIME_SESSION_SESSION_IMPL_H

#include "runtime/backward/backward.h"
#include "runtime/device/device.h"
#include "runtime/schedule/row_plan.h"
#include "runtime/session/emissions.h"
#include "runtime/session/session.h"
#include "runtime/walk/collector.h"
#include "runtime/walk/read_replay.h"
#include "runtime/walk/recorder.h"

#include <map>
#include <set>

namespace sheaf::rt {

/// What the backward pass needs of a mini-batch.
struct Ran {
  const Schedule &recorded;
  const FoldedLaunches &folded;
  const std::vector<Outcome> &outcomes;
  const std::vector<Walk> &walks;
  DroppedRows &dropped;
  uint64_t weights; ///< Session::Impl::weightsVersion at the time
};

/// What rows the backward pass takes beside those of the forward pass, as far as it is known: those
/// of parameters' gradients, and a share of the forward pass'.
struct RecomputeNeed {
  double share = 0.3;       ///< of late
  double least = 0;         ///< less was too little
  double shareBefore = 0.3; ///< both as they were after the last one that succeeded
  double leastBefore = 0;
  bool compact = false;      ///< it shall take less room rather than less time
  uint64_t forwardBytes = 0; ///< rows of the last mini-batch, dropped or not
  uint64_t roomBytes = 0;    ///< for it, when it began
  bool droppedAll = false;   ///< of the last mini-batch, what may be, in the way that takes least
  bool tried = false;        ///< in this mini-batch: rows were promised
};

class KeptValues;

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
  const RowWords rowWords;
  Scheduler scheduler;
  RowPlan rowPlan;
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
  /// Not set yet, or only their packed copies are there (SessionOptions::weightsStay).
  std::set<size_t> paramsGone;
  uint64_t weightsVersion = 0;          ///< grows with each change
  uint64_t weightsOfRun = 0;            ///< the last run's
  FoldedLaunches folded;                ///< in training: of this mini-batch
  bool foldedIsStale = true;            ///< in training: the parameters that follow from others
  bool keptIsStale = false;             ///< results of older weights are kept
  std::map<uint32_t, uint64_t> buffers; ///< of the device's, that were made: their bytes
  Trace *trace = nullptr;
  uint64_t step = 0;
  bool keepsAll = false; ///< asked for
  std::function<void(const Schedule &)> onForget;
  RowObserver *rowObserver = nullptr;
  std::optional<ReadReplay> replay;
  Collector collector;
  bool isWhole = true;              ///< `schedule` shows all of the mini-batch
  bool serves = false;              ///< an engine has it
  const KeptValues *kept = nullptr; ///< of the engine

  Impl(const Model &model, const SessionOptions &given);
  ~Impl();

  // Weights, and what follows from them alone.
  void packWeights();
  uint64_t granulesOfParam(size_t param) const;
  void chargeWeights(uint64_t granules);
  bool mayKeepPacked(size_t param) const;
  void keepPacked(size_t param);
  void requireRows(size_t param) const;
  void weightsPacked(); ///< by whoever changed them
  void foldWeights();
  void computeFolded();
  void packFolded();

  // A mini-batch, from the whole to its parts.
  std::span<const Outcome> run(std::span<const Instance> instances, const std::stop_token &stop);
  /// Throws UserError when so many instances would find no values for what they read.
  void requireReads(size_t instances) const;
  bool walkAll(std::span<const Instance> instances, const std::stop_token &stop);
  void walk(std::span<const Instance> instances, const std::stop_token &stop);
  bool walkFrugally(std::span<const Instance> instances, const std::stop_token &stop, size_t logged,
                    bool keepsStacks);
  bool walkAgain(std::span<const Instance> instances, const std::stop_token &stop, size_t logged);
  void chooseForms(int64_t instance);
  bool begin(Walk &walk, const Instance &instance, HostStack *stack,
             std::span<const PresentArgument> present = {});
  void beginEmitting(Walk &walk);
  void end(const Walk &walk, Outcome &outcome);
  /// What mini-batches and engines have in common: nothing is recorded, nothing of this run known.
  void beginRun();
  template <typename Ended> void stopTasks(Ended ended);
  void runPending();
  /// Instances that are computed together, where none reads.
  struct Wave {
    std::vector<size_t> members;    ///< those begun, by number
    size_t most = SIZE_MAX;         ///< so many
    uint64_t granules = 0;          ///< handed out when it began
    size_t holders = 0;             ///< begun since rows were given back
    uint64_t promised = 0;          ///< granules since then
    uint64_t records = 0;           ///< Counters::records at that time
    std::optional<size_t> tooLarge; ///< it found too little memory, and is begun again
    std::vector<size_t> again;      ///< there was no room for what they promised together
    bool isPlain = false;           ///< nor for the only one, which has no promises therefore
    bool isShort = false;           ///< of memory, so rows are promised
    bool findsMuch = false;         ///< records of earlier waves: what is promised is not found
  };
  uint64_t usedBytes() const;
  bool isFull(const Wave &wave) const;
  void endWave(Wave &wave, bool more);
  void beginWave(Wave &wave);
  void breakUp(Wave &wave);
  bool collectFrugally();
  bool mayForget(const Wave &wave) const;
  bool isMuch(uint64_t found, const Wave &wave) const;
  bool failedBesideOthers(const Wave &wave) const;

  // Rows that are promised until a whole wave is there (row_plan.h).
  /// Rows that caches hold: more of them are best computed while they are near.
  static constexpr uint64_t kNearBytes = uint64_t(4) << 20;
  /// What the records of the last mini-batches took.
  struct Usual {
    uint64_t records = 0, rowBytes = 0;
  } usual;
  When rowReuse = When::Worth;  ///< of this mini-batch
  bool hasRoom = true;          ///< for what the last flush promised; else it did not run
  double takenOfPromised = 1;   ///< of late
  uint64_t handedOutBefore = 0; ///< granules of this mini-batch, until rows were last given back
  uint32_t runsApart = 0;       ///< so many mini-batches look no record up
  Wave *wave = nullptr;         ///< the one that is walked
  bool mayPromise() const;
  bool promises(const Wave &wave);
  /// Gives what was promised to the launches from `begin` on a place. Returns that of what no
  /// result needs; nothing when there is no room.
  std::optional<RowRange> placeRows(size_t begin);
  uint64_t leastPlanned = 0; ///< bytes of the session with what the plans of this wave take
  std::map<int64_t, uint64_t> enough; ///< by instance: that of one that had no room alone
  uint64_t enoughFor(const Walk &walk) const;
  uint64_t windowsOfPlan = 0; ///< (recorded_windows.h); 0: launches run in order of depth
  bool planInWindows(size_t begin, std::span<Slot *const> results);
  bool planRows(size_t begin, std::span<Slot *const> results);
  bool hasRoomForPlan() const;
  bool cutInWindows(size_t begin, uint64_t granules);
  bool planNarrower(size_t begin, std::span<Slot *const> results);
  bool planOneByOne(size_t begin, std::span<Slot *const> results);
  std::optional<RowRange> allocatePlanned();
  void notePlan(uint64_t promised, uint64_t start);
  void giveBackPassing(size_t begin, const RowRange &passing);
  void noteUsual(uint64_t records, uint64_t promisedBytes);

  // Rows of training that are dropped, and made again in the backward pass (recompute_choice.h).
  RecomputeNeed need;
  bool recomputeAllowed = true;
  DroppedRows dropped;       ///< of this mini-batch
  Schedule recordedLaunches; ///< that were planned for, until they have run
  // Where copies of these run, which have places:
  BumpArena placedRecords;      ///< their records
  std::vector<uint32_t> runsAt; ///< by launch that was recorded: which one it is; and the end
  bool mayRecompute() const;
  bool drops();
  double needBytes(double forward) const;
  void noteShort();
  void noteNeed(uint64_t bytes);
  void beginNeed();
  void endNeed(uint64_t promised);
  uint64_t mostToStay(std::span<const ScheduledBucket> launches) const;
  std::optional<RowRange> placeTraining(size_t begin, std::span<Slot *const> results);
  Schedule copiesOf(std::span<const ScheduledBucket> launches);
  bool placeCopies(size_t begin, std::span<const ScheduledBucket> copies);
  bool placeMade(uint32_t &out, std::vector<int32_t> &parts);
  void takeRecordedBack(size_t begin);
  void forgetCopies();
  void giveUpWave(const Wave &wave);
  /// Computes what is recorded, or a part of it, each depth whole before the next. Returns the
  /// depth of the first that is left, or BucketTable::kNone. `more` is told that first, and may
  /// append launches to the schedule, which run after.
  uint32_t flush(BucketTable::What what, const BucketTable::Part &part = {},
                 const std::function<void(uint32_t)> &more = nullptr);
  /// Computes launches that were drained before.
  void compute(std::span<const ScheduledBucket> launches);
  Schedule keptOf(std::span<const ScheduledBucket> launches) const;
  /// The launches of the schedule from `begin` on are computed next. `start`: when that began.
  void arrangeAndSubmit(size_t begin, BucketTable::What what, uint64_t start);
  /// `planned`: their rows are by rowPlan.
  void submit(size_t begin, bool planned);
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

  // The backward pass.
  /// The launches of this mini-batch in order of depth, whatever order they ran in.
  const Schedule &recorded() const { return mayReorder() ? reordered : schedule; }
  bool mayReorder() const { return model.training && reorders(options.policy); }
  Ran last() { return {recorded(), folded, outcomes, walks, dropped, weightsOfRun}; }
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

  // Values that an engine keeps.
  bool rowsMayStay() const;
  std::vector<RowRange> keptRows();
  bool bringOut(ValueImage &image);

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
  uint64_t heldGranules() const;
  void tellRows(size_t begin, bool planned);
  void checkGuards();
};

template <typename Ended> void Session::Impl::stopTasks(Ended ended) {
  recorder.tasks.stop();
  recorder.tasks.run(ended);
}

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
  DroppedRows dropped;
  uint64_t weights = 0;
  uint64_t charged = 0; ///< for the schedule

  explicit Impl(Session::Impl &session)
      : session(session),
        dropped(session.model, session.rowWords, session.meter, session.memory.records) {}
  ~Impl();
  Ran ran() { return {recorded, folded, outcomes, walks, dropped, weights}; }
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_SESSION_IMPL_H

//===- session.h - Runs mini-batches of a model -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_SESSION_H
#define SHEAF_RUNTIME_SESSION_SESSION_H

#include "runtime/backward/param_gradient.h"
#include "runtime/device/factory.h"
#include "runtime/measure/counters.h"
#include "runtime/measure/trace.h"
#include "runtime/model/model.h"
#include "runtime/model/value.h"
#include "runtime/schedule/policy.h"
#include "runtime/schedule/row_observer.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/when.h"
#include "runtime/session/run.h"
#include "runtime/walk/forking.h"
#include "runtime/walk/read_log.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace sheaf::rt {

struct SessionOptions {
  /// What runs kernels (devices.h); null: the processor.
  DeviceFactory device = nullptr;
  /// Threads that run kernels, the caller included. At least 1.
  unsigned threads = 1;
  /// Shared with other sessions, which divide its threads while they run (makeWorkers()); `threads`
  /// is as many then. Null: the session's own. Changes no result.
  std::shared_ptr<Workers> workers = nullptr;
  /// What the frames of one instance's recursion may take; what they do take counts against
  /// memoryLimit, but for the first 64 KB. 0: 16 GB, or 1 GB when a model reads tensors, whose
  /// instances recurse side by side; a quarter of the machine's memory if that is less. Never more
  /// than memoryLimit.
  uint64_t hostStackBytes = 0;
  /// Instances, and calls inside them, of a model that reads tensors which wait at one time; each
  /// has a stack. More instances wait for their turn, more calls run one after the other. Far more
  /// than these are little use: kernels have rows enough.
  unsigned fibers = 512;
  static constexpr unsigned kMostFibers = 8192; ///< taken for more: systems limit mappings
  /// Which calls that may wait run beside those that make them; changes no result.
  Forking forking = Forking::Worth;
  /// Calls of recursive functions that an instance may make before it is given up as endless.
  int64_t maxSteps = 1000000000;
  /// Most bytes of weights, packed weights, rows, host values and records together.
  /// 0: nine tenths of the machine's (or the container's) memory.
  uint64_t memoryLimit = 0;
  /// Address space for rows; 0: 64 GB. Taken smaller when the machine refuses it.
  uint64_t rowSpaceBytes = 0;
  /// Most bytes of results to keep from one mini-batch to the next (known.h); 0: none, as for a
  /// schedule that is to be walked backwards, where every result must have its record. Not given: a
  /// quarter of the memory limit.
  std::optional<uint64_t> keepBytes;
  /// Instances of a model that does not read run in waves: when the rows of those walked come to so
  /// many bytes, they are computed, while they are near. 0: all at once, as always in training,
  /// while there is memory. Not given: as much as caches hold, more if weights are large, and of
  /// 256 instances at least. Changes no result.
  std::optional<uint64_t> waveBytes;
  /// Whether rows of a model that does not read are used again inside of a wave; changes no result.
  When rowReuse = When::Worth;
  /// Whether tensors that grow from the same rows have these in common, where the device can do it;
  /// changes no result. Worth: where rows are many (walk/grown.h).
  When shareRows = When::Worth;
  /// Whether training drops rows of a forward pass and makes them again in the backward pass, of a
  /// model that does not read; changes no result. Worth: what memory does not hold.
  When recompute = When::Worth;
  /// In which order the records of a flush run; changes no result.
  Policy policy = Policy::Depth;
  /// What the draws of all instances follow from.
  uint64_t sampleSeed = 0;
  /// An instance whose result holds NaN or infinity fails; its error names the block that was the
  /// first to make one. Looking costs a pass over the results.
  bool checkResults = false;
  /// To find mistakes in generated code: buckets start with room for one record, fresh rows and
  /// scratch hold NaN patterns, a guard granule follows every record's rows and is checked after
  /// each flush (InternalError naming the kernel), every bucket that can be split is split, every
  /// other call is forked where that is left to what is worth it, and waves are of one instance and
  /// of a few.
  bool hostile = false;
  /// Of inference: parameters are written by setParam() alone and not read back, so of one that
  /// kernels read packed its rows are given back as soon as it is set. Changes no result.
  bool weightsStay = false;
  /// It only packs weights (packWeightsLike, or packWeights of a model that folds none): its code
  /// may be for another machine, and is never run.
  bool onlyPacks = false;
};

/// For SessionOptions::workers: so many threads at work while no more callers than that run at a
/// time. Throws UserError when the machine refuses them.
std::shared_ptr<Workers> makeWorkers(unsigned threads);

/// What arrives at a tensor of floats in the result of an instance of the last run.
struct Cotangent {
  size_t instance = 0; ///< its place in the run
  /// Where the tensor stands, from the outside in: which part of a tuple, element of a list, field
  /// of data. Nothing: it is the result.
  std::span<const size_t> part;
  std::span<const int64_t> shape;
  const float *elements = nullptr; ///< row-major, without padding
};

/// SessionOptions::hostStackBytes with room for so many frames of a model's recursion: as frames of
/// one function have one size, but functions differ, that of the largest counts.
inline uint64_t stackBytesFor(const Model &model, uint64_t frames) {
  return frames * model.frameBytes;
}

/// A model with its weights, able to run mini-batches. Of a model that comes with weights
/// (Model::stored) it has those until it is given others. A session is used by one thread at a
/// time; it shares nothing with other sessions but the const model (which must outlive it), inputs
/// and workers.
class Session {
public:
  /// Throws UserError when the machine refuses the memory, InternalError on an inconsistent model.
  explicit Session(const Model &model, SessionOptions options = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Model &model() const;
  const SessionOptions &options() const; ///< with the defaults filled in
  /// Whether the device does; else there are no values of tensors.
  bool computes() const;

  //===--- Weights ---------------------------------------------------------===//

  /// Copies a parameter from row-major, unpadded elements of its dtype.
  /// Throws InternalError when the number of bytes is not the parameter's.
  void setParam(size_t index, std::span<const uint8_t> rowMajor);
  /// Fills every parameter by its initialiser (init.h). `synthetic` ones too.
  void initParams(uint64_t seed);
  /// The parameter in row layout. Call packWeights() after writing through it.
  uint8_t *paramRow(size_t index);
  TensorView param(size_t index) const;
  /// Index of a parameter by name, or -1.
  int64_t findParam(std::string_view name) const;
  /// Brings weights into the form kernels read, and computes what follows from them alone (in
  /// training, run() does). Forgets the last mini-batch. run() does it by itself after
  /// setParam/initParams. Throws UserError when memory is short.
  void packWeights();
  /// The same without running code: what follows from weights alone is taken from a session of the
  /// same program that was compiled for another machine, and has the same weights, packed.
  void packWeightsLike(const Session &other);
  /// Whether all weights are in that form and nothing else has to follow them, so that an Update
  /// (device/update.h) may change them in both forms, instead of packWeights().
  bool packsRows() const;
  /// Whether an Update of several pieces does: each of whole units of kRowsPackedApart rows of the
  /// parameter as a matrix.
  static constexpr int64_t kRowsPackedApart = 16;
  bool packsRowsApart(size_t param) const;
  /// The packed copies of the last packWeights(), in the order of the code.
  std::vector<std::span<const uint8_t>> packedWeights() const;

  //===--- Running ---------------------------------------------------------===//

  /// Runs a mini-batch: forgets the one before, walks every instance, runs what they recorded.
  /// Returns one outcome an instance, valid until the next run. An instance that fails does so
  /// alone. Throws as packWeights() does when weights have changed; UserError when the program
  /// reads tensors and the device computes nothing, or replayReads() was given too few instances;
  /// else InternalError only.
  /// When `stop` is asked for, from any thread, no flush begins any more and all instances fail.
  /// If it was before the run began, not even weights are packed.
  std::span<const Outcome> run(std::span<const Instance> instances, std::stop_token stop = {});

  /// Who is given what instances of the next runs emit, each value once, those of one instance in
  /// order, in the thread that runs: after the flush that computed it. The slots are of
  /// EntryDesc::emits, and valid during the call. Null: no one; outcomes hold all in any case. Of
  /// an instance that fails, what came before that may have been delivered.
  using OnEmit = std::function<void(const Instance &, const Slot *)>;
  void onEmit(OnEmit deliver);

  /// The training step that the next runs draw for: 0 until it is set. An instance draws the same
  /// in every run of one step.
  void setStep(uint64_t step);

  /// The tensor of type `type` (index into Model::types) that stands in these slots of an outcome.
  /// Throws UserError when the device computes nothing.
  TensorView tensor(uint32_t type, const Slot *slots) const;

  /// What the last run did, and the rows it refers to; valid until the next run. Of a long run the
  /// last part only, and rows that were used again hold what lay there last (keepAll).
  const Schedule &schedule() const;
  const uint8_t *rows() const;

  /// What kernel `kernel` is given as its weights.
  std::span<const void *const> kernelWeights(size_t kernel) const;

  //===--- Training --------------------------------------------------------===//

  /// For those who reduce and change parameters and gradients where they are (device/update.h).
  Device &device();
  /// Memory of the device for what is remembered from step to step, zero; never 0. `what` names it
  /// in the error: OutOfMemory where the memory limit does not hold it.
  uint32_t makeBuffer(uint64_t bytes, const char *what);
  void dropBuffer(uint32_t buffer);
  /// An Update has changed these parameters. `packed`: and their packed copies.
  void paramsUpdated(std::span<const uint32_t> params, bool packed);

  /// The gradients of sum(weights[i] * loss of instance i) of the last run, of a model made for
  /// training whose result is a float tensor without axes, in a session with keepBytes 0. An
  /// instance that failed has no part in it. Once more after a run means what it says of that run;
  /// gradients that were there are none then. With `keepRows` the rows that backwardSchedule() made
  /// stay as they are. Throws UserError when weights have changed since the run, OutOfMemory; the
  /// session can run again.
  std::span<const ParamGradient> backward(std::span<const float> weights, bool keepRows = false);
  /// The same of a model with any result: the gradients of the sum of all elements of these tensors
  /// of it, each times the cotangent's. Those of one tensor add up; what has none counts nothing.
  /// Throws UserError, with instance and part, for one that is of no float tensor of the result, or
  /// of another shape.
  std::span<const ParamGradient> backward(std::span<const Cotangent> cotangents,
                                          bool keepRows = false);
  /// The same from a mini-batch that was put aside.
  std::span<const ParamGradient> backward(const Run &run, std::span<const float> weights);
  std::span<const ParamGradient> backward(const Run &run, std::span<const Cotangent> cotangents);
  /// backward(); nothing where memory was too short, and would not be if the mini-batch ran again,
  /// since more of its rows would be dropped. Throws OutOfMemory where that helps no more.
  std::optional<std::span<const ParamGradient>> tryBackward(std::span<const float> weights);
  /// Whether rows may be dropped from now on (SessionOptions::recompute, which may forbid it).
  void allowRecompute(bool allowed);
  /// Puts the last mini-batch aside: as if there had been none, but what it gave stays while the
  /// Run does, gradients that it has by now included. Of a session that can go back. Throws
  /// OutOfMemory, UserError when the machine refuses the addresses; then nothing has changed.
  std::unique_ptr<Run> putAside();
  /// Gives back all of the last mini-batch that was not put aside, as the next run would: as if
  /// there had been none.
  void forget();
  /// What the last backward() gave.
  std::span<const ParamGradient> gradients() const;
  /// After backward(), the gradient of a float tensor in an instance's arguments(), of a model with
  /// Model::inputGradients: of the same type and extents, valid until the next run. Zero where no
  /// cotangent depends on it. Of f32, its bits depend on the instance and its cotangents alone, but
  /// not with another policy than Policy::Depth, nor where a model that reads waits for others.
  TensorView inputGradient(uint32_t type, const Slot *slots) const;
  /// The arguments of an instance of the last run as they are inside, in slots of
  /// EntryDesc::argTypes; null for one that failed. What has no tensors in it is where the caller
  /// gave it, and so there as long as that is.
  const Slot *arguments(size_t instance) const;
  /// What the last backward() did; valid until the next run.
  const Schedule &backwardSchedule() const;
  /// Leaves a parameter out, or takes it in again. While it is frozen its gradient stays None, and
  /// its products are not computed. Gives whether it was frozen.
  bool freeze(size_t param, bool frozen = true);
  /// Whether gradients of it are asked for: a parameter of f32 that is not frozen.
  bool trains(size_t param) const;

  //===--- Counting --------------------------------------------------------===//

  /// Instances that wait for tensors give back what is needed no more, records and rows, each time
  /// that as much was made as is needed; those that do not wait, inside of a flush (row_plan.h).
  /// Not with `keep`, nor with a trace, nor when results are checked, nor in training: then
  /// schedule() shows all of a run, and each of its records has rows of its own.
  void keepAll(bool keep);
  /// Before launches are forgotten while a run goes on, `visit` is called with them, and may look
  /// at their words.
  void onForget(std::function<void(const Schedule &)> visit);

  /// What the records of the last run waited for, and the least launches that they need in any
  /// order. Takes about as long as the run. Nothing when memory is short, or when some of the run's
  /// records were given back.
  std::optional<Dependences> dependences();
  /// Nanoseconds that all records of a kernel in the last run take when as many as `most` run as
  /// one launch, by launch: what batching could give at best. Changes no bit of any result.
  std::vector<uint64_t> timeAtOnce(size_t kernel, int64_t most);
  /// The same of its launches as they were, one after the other with no other kernel between: what
  /// they take where what they read is in the caches.
  std::vector<uint64_t> timeAgain(size_t kernel);
  /// The policy in use; of Policy::Auto the one that was chosen, if it was.
  Policy policy() const;

  /// Where the next runs note what they do; null: nowhere. It has as many threads as the session,
  /// and must outlive its use here.
  void setTrace(Trace *trace);

  /// Who is told what rows the next runs hold; null: no one. It must outlive them.
  void setRowObserver(RowObserver *observer);

  /// Where the next runs note what they read, one after the other; null: nowhere. It must outlive
  /// its use here.
  void setReadLog(ReadLog *log);
  /// What the next runs read, whatever tensors hold: what instances of the same program read when
  /// they ran, in the same order, in a session that had this log. It stays as it is meanwhile. In
  /// the place of another log; null: what tensors hold. An instance that reads what the log does
  /// not have fails.
  void replayReads(const ReadLog *log);

  const Counters &counters() const;
  void resetCounters();
  MemoryUse memory() const;

private:
  friend class Engine;
  friend class Run;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs a mini-batch by `run`, which is given some of its instances and gives their outcomes, and
/// calls `visit(number, outcome)` once for each. Those that found too little memory beside the
/// others run again when all have run, a quarter as many together, and so on: what fails for want
/// of memory has failed alone.
template <typename Run, typename Visit>
void runEach(std::span<const Instance> instances, Run run, Visit visit) {
  std::vector<size_t> numbers;
  std::vector<Instance> some, tooMany;
  size_t together = instances.size();
  for (std::span<const Instance> rest = instances; !rest.empty(); rest = some) {
    std::vector<size_t> kept;
    for (size_t first = 0; first < rest.size(); first += together) {
      std::span<const Instance> now = rest.subspan(first, std::min(together, rest.size() - first));
      std::span<const Outcome> outcomes = run(now);
      for (size_t i = 0; i < now.size(); ++i) {
        size_t number = numbers.empty() ? first + i : numbers[first + i];
        if (outcomes[i].ok() || !outcomes[i].error->outOfMemory() || now.size() == 1) {
          visit(number, outcomes[i]);
          continue;
        }
        kept.push_back(number);
        Instance &again = tooMany.emplace_back(now[i]);
        again.delivered = outcomes[i].delivered;
        again.isAgain = true;
      }
    }
    together = std::max<size_t>(1, std::min(together, kept.size()) / 4);
    numbers = std::move(kept);
    some = std::exchange(tooMany, {});
  }
}

/// Parameters that are frozen as long as this is there.
class FrozenParams {
public:
  FrozenParams(Session &session, std::span<const size_t> params);
  ~FrozenParams();
  FrozenParams(const FrozenParams &) = delete;
  FrozenParams &operator=(const FrozenParams &) = delete;

private:
  Session &session_;
  std::vector<size_t> params_; ///< that were not frozen before
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_SESSION_H

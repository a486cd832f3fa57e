#include "runtime/session.h"

#include "runtime/collector.h"
#include "runtime/flush.h"
#include "runtime/init.h"
#include "runtime/inputs.h"
#include "runtime/keys.h"
#include "runtime/non_finite.h"
#include "runtime/recorder.h"
#include "runtime/tiles.h"
#include "runtime/train/backward.h"
#include "runtime/weights.h"

#include <cstring>
#include <utility>

namespace sheaf::rt {

namespace {

uint64_t nanosecondsSince(uint64_t start) { return clockNow() - start; }

SessionOptions withDefaults(const Model &model, SessionOptions options) {
  options.threads = std::max(options.threads, 1u);
  uint64_t memory = availableMemory();
  if (options.hostStackBytes == 0)
    options.hostStackBytes = std::min(uint64_t(model.reads ? 1 : 16) << 30, memory / 4);
  options.fibers = model.reads ? std::max(options.fibers, 1u) : 1;
  if (options.memoryLimit == 0)
    options.memoryLimit = memory / 10 * 9;
  // The stack is not metered frame by frame, but it does not outgrow the limit by itself.
  options.hostStackBytes = std::min(options.hostStackBytes, options.memoryLimit);
  if (options.rowSpaceBytes == 0)
    options.rowSpaceBytes = uint64_t(64) << 30;
  if (!options.keepBytes)
    options.keepBytes = options.memoryLimit / 4;
  return options;
}

void checkModel(const Model &model) {
  for (const ParamDesc &param : model.params)
    if (param.id + tensorGranules(param.shape, param.dtype) > int64_t(model.paramGranules))
      throw InternalError("parameter '" + param.name + "' lies outside of the parameters' rows");
  for (const KernelDesc &kernel : model.kernels) {
    if (!kernel.fn || kernel.words == 0)
      throw InternalError("kernel '" + kernel.name + "' has no code or no words");
    for (const FlopTerm &term : kernel.flop)
      for (uint32_t word : term.extentWords)
        if (word >= kernel.words)
          throw InternalError("kernel '" + kernel.name +
                              "' counts FLOP by a word it does not have");
  }
}

} // namespace

struct Session::Impl {
  const Model &model;
  SessionOptions options;
  MemoryMeter meter;
  MemoryUse memory;
  Recorder recorder;
  ValueMover values;
  PackedWeights weights;
  Flusher flusher;
  Scheduler scheduler;
  PolicyTrial trial;
  Policy policy = Policy::Depth; ///< of this mini-batch
  Schedule schedule;
  std::unique_ptr<Backward> backward; ///< of models made for training
  Counters counters;
  std::vector<Outcome> outcomes;
  std::vector<Walk> walks; ///< one an instance, in their order
  bool weightsChanged = true;
  bool keptIsStale = false; ///< results of older weights are kept
  Trace *trace = nullptr;
  uint64_t step = 0;
  bool keepsAll = false; ///< asked for
  std::function<void(const Schedule &)> onForget;
  Collector collector;
  bool isWhole = true; ///< `schedule` shows all of the mini-batch

  Impl(const Model &model, const SessionOptions &given)
      : model(model), options(withDefaults(model, given)), meter(options.memoryLimit),
        recorder(model, meter, memory,
                 {rowSpaceBytes(), meter.limit(), options.hostStackBytes, options.fibers,
                  options.maxSteps, *options.keepBytes, options.threads},
                 options.hostile),
        values(model.types, recorder),
        weights(model, recorder.rowSpace.address(0), meter, memory.packed),
        flusher(model, options.threads, recorder.scratch, options.hostile),
        scheduler(model, meter, memory.records),
        collector(model, values.facts(), recorder, meter, memory.records, options.hostile) {
    checkModel(model);
    uint64_t bytes = uint64_t(model.paramGranules) * kGranuleBytes;
    if (!meter.charge(memory.weights, bytes))
      throw UserError("the memory limit of " + std::to_string(meter.limit() >> 20) +
                      " MB does not hold the weights: " + std::to_string(bytes >> 20) +
                      " MB are needed");
    counters.kernels.resize(model.kernels.size());
    if (model.stored) {
      weights.use(model.stored->packed);
      weightsChanged = false;
    }
    if (model.training)
      backward = std::make_unique<Backward>(model, recorder.rowSpace, recorder.scratch, meter,
                                            memory.records, options.threads, options.hostile);
  }

  uint64_t rowSpaceBytes() const {
    // One granule for the guard of the parameters, and some rows in any case.
    return std::max(options.rowSpaceBytes, (uint64_t(model.paramGranules) + 64) * kGranuleBytes);
  }

  void walk(std::span<const Instance> instances, const std::stop_token &stop);
  bool begin(const Instance &instance, HostStack *stack);
  void end(const Walk &walk, Outcome &outcome);
  void giveUp(const Walk &walk, Outcome &outcome);
  void flush(BucketTable::What what);
  void note(TracePart::Kind kind, uint64_t begin, int64_t number);
  void noteMemory();
  void checkGuards();
  void packWeights();
  void foldWeights();
  void forgetMiniBatch();
  template <typename Ended> void stopTasks(Ended ended);
  void runPending();
  bool mayCollect() const;
  void collect();
  bool walkAll(std::span<const Instance> instances, const std::stop_token &stop);
  void giveUpAll(std::span<const Instance> instances);
  void giveUpNonFinite(std::span<const Instance> instances);
  TensorView tensor(uint32_t type, const Slot *slots) const;
  std::span<const Outcome> run(std::span<const Instance> instances, const std::stop_token &stop);
};

Session::Session(const Model &model, SessionOptions options)
    : impl_(std::make_unique<Impl>(model, options)) {
  if (model.tiles && !allowTiles())
    throw UserError("the model's kernels use AMX, which this machine or its system does not offer");
}
Session::~Session() = default;

const Model &Session::model() const { return impl_->model; }
const SessionOptions &Session::options() const { return impl_->options; }

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

void Session::setParam(size_t index, std::span<const uint8_t> rowMajor) {
  const ParamDesc &desc = impl_->model.params.at(index);
  int64_t bytes = dtypeBytes(desc.dtype);
  for (int64_t extent : desc.shape)
    bytes *= extent;
  if (static_cast<int64_t>(rowMajor.size()) != bytes)
    throw InternalError("parameter '" + desc.name + "' has " + std::to_string(bytes) +
                        " bytes, given " + std::to_string(rowMajor.size()));
  toRowLayout(desc.shape, desc.dtype, rowMajor.data(), paramRow(index));
}

void Session::initParams(uint64_t seed) {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    setParam(i, initialise(impl_->model.params[i], seed));
}

uint8_t *Session::paramRow(size_t index) {
  impl_->weightsChanged = true;
  return impl_->recorder.rowSpace.address(impl_->model.params.at(index).id);
}

TensorView Session::param(size_t index) const {
  const ParamDesc &desc = impl_->model.params.at(index);
  return {desc.dtype, desc.shape, impl_->recorder.rowSpace.address(desc.id)};
}

int64_t Session::findParam(std::string_view name) const {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    if (impl_->model.params[i].name == name)
      return static_cast<int64_t>(i);
  return -1;
}

void Session::packWeights() { impl_->packWeights(); }

bool Session::packsRows() const {
  return !impl_->weightsChanged && !impl_->model.foldWeights && impl_->weights.packsRows();
}

bool Session::packsRowsApart(size_t param) const {
  return impl_->weights.packsApart(param, kRowsPackedApart);
}

void Session::packRows(size_t param, int64_t begin, int64_t end) {
  impl_->weights.packRows(param, begin, end);
}

void Session::rowsPacked() {
  impl_->weightsChanged = false;
  impl_->keptIsStale = true;
}

/// What follows from weights alone is recorded and run like an instance, with nothing else beside
/// it, and becomes a weight itself.
void Session::Impl::foldWeights() {
  FloatEnvironment environment;
  struct Restore {
    Counters &counters, before;
    ~Restore() { std::swap(counters, before); }
  } restore{counters, counters};
  forgetMiniBatch();
  recorder.known.forgetKept(); // it follows from older weights
  recorder.scratch.beginRun();
  recorder.computed = 0;
  recorder.failure = {};
  policy = Policy::Depth; // until the next mini-batch says otherwise
  std::vector<Slot> handles(model.folded.size());
  Walk walk;
  Task task;
  task.fn = model.foldWeights;
  task.results = handles.data();
  task.walk = &walk;
  recorder.tasks.start(task, recorder.stacks.take());
  recorder.tasks.run([](const Walk &) {});
  if (walk.failed)
    throw UserError("computing what follows from the weights alone failed: " +
                    recorder.describe(walk.failed->failure, model, meter));
  flush(BucketTable::What::All);
  for (size_t i = 0; i < handles.size(); ++i) {
    const ParamDesc &desc = model.params[model.folded[i]];
    uint32_t from = TensorHandle::unpack(handles[i]).id;
    // A parameter itself, or one that was folded before, may stand for a result.
    memmove(recorder.rowSpace.address(desc.id), recorder.rowSpace.address(from),
            static_cast<size_t>(tensorGranules(desc.shape, desc.dtype)) * kGranuleBytes);
  }
  forgetMiniBatch();
}

void Session::Impl::packWeights() {
  uint64_t start = trace ? clockNow() : 0;
  weights.pack();
  if (model.foldWeights) {
    foldWeights();
    weights.pack();
  }
  weightsChanged = false;
  keptIsStale = true;
  note(TracePart::Weights, start, 0);
}

std::vector<std::span<const uint8_t>> Session::packedWeights() const {
  return impl_->weights.copies();
}

std::span<const void *const> Session::kernelWeights(size_t kernel) const {
  return impl_->weights.of(kernel);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Makes the next walk. False when there is no memory for its arguments.
bool Session::Impl::begin(const Instance &instance, HostStack *stack) {
  Walk &walk = walks.emplace_back();
  walk.instance = instance.index;
  walk.key = instanceKey(options.sampleSeed, step, instance.index);
  recorder.failure = {};
  size_t bytes = static_cast<size_t>(values.facts().slots(model.entry.resultType)) * sizeof(Slot);
  void *memory = recorder.heap.allocate(sizeof(Task) + bytes);
  auto *task = memory ? new (memory) Task : nullptr;
  if (!task) {
    recorder.failure = {Failure::Heap, 0, 0, 0, sizeof(Task) + bytes};
  } else {
    task->fn = model.entry.fn;
    task->walk = &walk;
    task->results = walk.results = reinterpret_cast<Slot *>(task + 1);
    uint64_t start = trace ? clockNow() : 0;
    task->args = values.bringIn(model.entry.argTypes, instance.args);
    for (uint64_t id : values.begins())
      scheduler.addInputs(id);
    note(TracePart::Inputs, start, instance.index);
  }
  if (recorder.failure.kind != Failure::None)
    return false;
  recorder.tasks.start(*task, stack);
  return true;
}

void Session::Impl::end(const Walk &walk, Outcome &outcome) {
  bool ok = !walk.failed;
  recorder.failure = ok ? Failure() : walk.failed->failure;
  if (ok && recorder.lists.anyChained())
    ok = values.flatten(model.entry.resultType, walk.results);
  outcome.slots = ok ? walk.results : nullptr;
  if (!ok)
    giveUp(walk, outcome);
  noteMemory();
}

void Session::Impl::giveUp(const Walk &walk, Outcome &outcome) {
  Failure::Kind kind = recorder.failure.kind;
  outcome.error.emplace(walk.instance, recorder.describe(recorder.failure, model, meter),
                        kind == Failure::Rows || kind == Failure::Heap || kind == Failure::Records);
}

template <typename Ended> void Session::Impl::stopTasks(Ended ended) {
  recorder.tasks.stop();
  recorder.tasks.run(ended);
}

/// Runs what those that wait wait for, or everything, and then gives back what no one needs.
void Session::Impl::runPending() {
  if (!mayCollect() || !collector.isDue())
    return flush(BucketTable::What::Demanded);
  flush(BucketTable::What::All);
  collect();
}

/// Walks all instances. Those that wait for tensors wait together, so that what they wait for runs
/// in large buckets; those that end make room for others.
void Session::Impl::walk(std::span<const Instance> instances, const std::stop_token &stop) {
  // Constants that host code computes must not depend on the caller's rounding either.
  FloatEnvironment environment;
  walks.clear();
  walks.reserve(instances.size());
  auto ended = [&](const Walk &walk) { end(walk, outcomes[&walk - walks.data()]); };
  for (;;) {
    recorder.tasks.run(ended);
    if (stop.stop_requested())
      return stopTasks(ended);
    HostStack *stack = walks.size() < instances.size() ? recorder.stacks.take() : nullptr;
    if (stack) {
      if (!begin(instances[walks.size()], stack)) {
        recorder.stacks.giveBack(stack);
        giveUp(walks.back(), outcomes[walks.size() - 1]);
      }
    } else if (recorder.tasks.anyWaits()) {
      try {
        runPending();
      } catch (...) {
        // Whoever waits must not be found by the next run.
        stopTasks([](const Walk &) {});
        throw;
      }
      recorder.tasks.wake();
    } else {
      return;
    }
  }
}

void Session::Impl::note(TracePart::Kind kind, uint64_t begin, int64_t number) {
  if (trace)
    trace->parts.push_back({kind, {begin, clockNow()}, number});
}

void Session::Impl::noteMemory() {
  if (!trace)
    return;
  // Of stacks what they may keep: looking at their pages takes system calls.
  recorder.rowSpace.account();
  TraceMemory &sample = trace->memory.emplace_back();
  sample.time = clockNow();
  for (size_t i = 0; i < std::size(kMemoryKinds); ++i)
    sample.bytes[i] = (memory.*kMemoryKinds[i].kind).now;
}

void Session::Impl::flush(BucketTable::What what) {
  noteMemory();
  uint64_t start = clockNow(), ordered = start;
  size_t begin = schedule.size();
  recorder.buckets.drain(schedule, what);
  if (schedule.size() > begin) {
    // In order of depth: those of later phases, which no read depends on, stand behind.
    for (size_t i = schedule.size(); i-- > begin;)
      if (uint32_t depth = schedule[i].depth; depth >> model.depthBits == 0) {
        recorder.computed = std::max<int64_t>(recorder.computed, int64_t(depth) + 1);
        break;
      }
    scheduler.arrange(policy, schedule, begin, recorder.rowSpace);
    ordered = clockNow();
    counters.orderNanoseconds += ordered - start;
    counters.flushes += 1;
    flusher.run(schedule, begin, recorder.rowSpace.address(0), weights, counters);
  }
  uint64_t end = clockNow();
  counters.flushNanoseconds += end - start;
  if (trace && schedule.size() > begin) {
    trace->flushes.push_back({{start, end},
                              ordered,
                              static_cast<uint32_t>(begin),
                              static_cast<uint32_t>(schedule.size()),
                              what == BucketTable::What::Demanded});
    noteMemory();
  }
}

void Session::Impl::checkGuards() {
  std::vector<RowSpace::Damage> damages = recorder.rowSpace.damagedGuards();
  if (damages.empty())
    return;
  // Find whose rows end where the guard was written over.
  for (const ScheduledBucket &bucket : schedule) {
    uint32_t words = model.kernels[bucket.kernel].words;
    for (int64_t i = 0; i < bucket.count; ++i)
      if (static_cast<uint32_t>(bucket.records[(i + 1) * words - 1]) == damages[0].id)
        throw InternalError(
            "the guard after a record's rows was written over, probably by kernel '" +
            model.kernels[bucket.kernel].name + "' (" + model.kernels[bucket.kernel].source +
            ") at depth " + std::to_string(bucket.depth));
  }
  throw InternalError("a guard in the row space was written over, after granule " +
                      std::to_string(damages[0].id));
}

/// Whether rows and records may be given back before the mini-batch ends: host code says what it
/// needs, and no one asks afterwards what ran.
bool Session::Impl::mayCollect() const {
  return model.roots && !model.training && !trace && !keepsAll && !options.checkResults;
}

/// All that wait have waited for has run, and so has everything else: forgets all records, and all
/// rows, lists and data that neither a task nor a result still needs.
void Session::Impl::collect() {
  if (options.hostile)
    checkGuards();
  auto addResults = [&](LiveValues &live) {
    for (size_t i = 0; i < walks.size(); ++i) {
      live.keep(walks[i].results);
      if (walks[i].open > 0 && walks[i].failed)
        live.keep(*walks[i].failed);
      if (walks[i].open == 0 && outcomes[i].slots)
        live.add(model.entry.resultType, outcomes[i].slots);
    }
  };
  if (!collector.mark(addResults))
    return;
  if (onForget)
    onForget(schedule);
  isWhole = false;
  collector.giveBack(schedule, scheduler, policy);
  ++counters.collections;
}

void Session::Impl::forgetMiniBatch() {
  recorder.buckets.reset(schedule);
  recorder.heap.reset();
  recorder.rowSpace.reset();
  recorder.lists.forget();
}

/// True when memory was too short for an instance.
bool Session::Impl::walkAll(std::span<const Instance> instances, const std::stop_token &stop) {
  recorder.tasks.begin();
  recorder.known.beginRun();
  recorder.scratch.beginRun();
  recorder.computed = 0;
  scheduler.beginRun(recorder.rowSpace);
  isWhole = true;
  collector.beginRun();
  outcomes.clear();
  outcomes.resize(instances.size());
  walk(instances, stop);
  return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome &outcome) {
    return !outcome.ok() && outcome.error->outOfMemory();
  });
}

/// The run was stopped: what is recorded is never computed, results that were to be kept included.
void Session::Impl::giveUpAll(std::span<const Instance> instances) {
  std::string why = recorder.describe({Failure::Stopped}, model, meter);
  for (size_t i = 0; i < instances.size(); ++i)
    if (outcomes[i].ok()) {
      outcomes[i].slots = nullptr;
      outcomes[i].error.emplace(instances[i].index, why);
    }
  keptIsStale = true;
}

/// What was asked to be finite and is not is no result.
void Session::Impl::giveUpNonFinite(std::span<const Instance> instances) {
  NonFiniteSearch search(model.types,
                         [&](uint32_t type, const Slot *slots) { return tensor(type, slots); });
  std::optional<bool> traced; // whether memory allowed it
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].ok())
      continue;
    auto found = search.find(model.entry.resultType, outcomes[i].slots);
    if (!found)
      continue;
    std::string why = "its result holds " + nonFiniteName(found->value);
    if (found->tensor && !traced)
      traced = scheduler.trace(schedule, recorder.rowSpace);
    if (found->tensor && *traced) {
      std::vector<bool> needed = scheduler.neededFor(found->tensor->id, found->granules);
      if (auto first = firstNonFinite(model, schedule, recorder.rowSpace.address(0), &needed)) {
        const KernelDesc &kernel = model.kernels[first->kernel];
        why += "; of the blocks that it follows from, " + kernel.name + " (" + kernel.source +
               ") is the first to make one, " + nonFiniteName(first->value);
      }
    }
    outcomes[i].slots = nullptr;
    outcomes[i].error.emplace(instances[i].index, why);
    ++counters.failed;
  }
  // Recording by depth needs no graph: the next mini-batch has this memory.
  if (traced && options.policy == Policy::Depth)
    scheduler.release();
}

std::span<const Outcome> Session::Impl::run(std::span<const Instance> instances,
                                            const std::stop_token &stop) {
  uint64_t begin = trace ? clockNow() : 0;
  forgetMiniBatch();
  noteMemory();
  if (weightsChanged)
    packWeights();
  if (keptIsStale)
    recorder.known.forgetKept();
  keptIsStale = false;

  policy = options.policy == Policy::Auto ? trial.next() : options.policy;
  uint64_t flushed = counters.flushNanoseconds, recorded = counters.records;
  uint64_t start = clockNow();
  // No instance fails for want of what is only kept to save time.
  if (walkAll(instances, stop) && !stop.stop_requested()) {
    bool more = recorder.known.giveBack();
    more |= recorder.scratch.giveBack();
    if (more) {
      forgetMiniBatch();
      walkAll(instances, stop);
    }
  }
  bool stopped = stop.stop_requested();
  if (stopped)
    giveUpAll(instances);
  for (const Outcome &outcome : outcomes)
    counters.failed += !outcome.ok();
  counters.recordNanoseconds += nanosecondsSince(start) - (counters.flushNanoseconds - flushed);
  if (!stopped)
    flush(BucketTable::What::All);
  if (options.policy == Policy::Auto && !stopped)
    trial.took(counters.flushNanoseconds - flushed, counters.records - recorded);

  recorder.known.endRun(counters);
  recorder.rowSpace.account();
  recorder.stacks.trim();
  if (options.hostile)
    checkGuards();
  if (options.checkResults && !stopped)
    giveUpNonFinite(instances);
  const Tasks::Counts tasks = std::exchange(recorder.tasks.counts, {});
  counters.waits += tasks.waits;
  counters.forked += tasks.forked;
  counters.inlined += tasks.inlined;
  note(TracePart::MiniBatch, begin, static_cast<int64_t>(counters.runs));
  noteMemory();
  counters.runs += 1;
  counters.instances += instances.size();
  return outcomes;
}

std::span<const Outcome> Session::run(std::span<const Instance> instances, std::stop_token stop) {
  return impl_->run(instances, stop);
}

void Session::setStep(uint64_t step) { impl_->step = step; }

TensorView Session::tensor(uint32_t type, const Slot *slots) const {
  return impl_->tensor(type, slots);
}

TensorView Session::Impl::tensor(uint32_t type, const Slot *slots) const {
  const TypeDesc &desc = model.types.types.at(type);
  TensorView view{desc.dtype, desc.shape, nullptr};
  const Slot *extents = slots + 1;
  for (int64_t &extent : view.shape)
    if (extent < 0)
      extent = *extents++;
  view.data = recorder.rowSpace.address(TensorHandle::unpack(slots[0]).id);
  return view;
}

const Schedule &Session::schedule() const { return impl_->schedule; }
const uint8_t *Session::rows() const { return impl_->recorder.rowSpace.address(0); }

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

std::span<const ParamGradient> Session::backward(std::span<const float> weights, bool keepRows) {
  const TypeDesc &type = impl_->model.types.types.at(impl_->model.entry.resultType);
  if (!impl_->backward || type.kind != TypeKind::Tensor || type.dtype != DType::F32 ||
      !type.shape.empty() || weights.size() != impl_->outcomes.size() ||
      impl_->options.keepBytes != 0)
    throw InternalError("backward() on a session that cannot go back");
  std::vector<GradientSeed> seeds;
  for (size_t i = 0; i < weights.size(); ++i)
    if (impl_->outcomes[i].ok())
      seeds.push_back({TensorHandle::unpack(*impl_->outcomes[i].slots).id, weights[i]});
  uint64_t begin = impl_->trace ? clockNow() : 0;
  impl_->backward->run(impl_->schedule, seeds, impl_->flusher, impl_->weights, impl_->counters,
                       keepRows);
  impl_->recorder.rowSpace.account();
  impl_->note(TracePart::Backward, begin, 0);
  impl_->noteMemory();
  return impl_->backward->gradients();
}

void Session::forEach(size_t count, bool little, const std::function<void(size_t)> &work) {
  impl_->flusher.workers().forEach(count, little, work);
}

const Schedule &Session::backwardSchedule() const {
  if (!impl_->backward)
    throw InternalError("backwardSchedule() of a session that cannot go back");
  return impl_->backward->schedule();
}

void Session::freeze(size_t param) {
  if (!impl_->backward)
    throw InternalError("freeze() on a session that cannot go back");
  impl_->backward->freeze(param);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

std::optional<Dependences> Session::dependences() {
  if (!impl_->isWhole)
    return std::nullopt;
  return impl_->scheduler.dependences(impl_->schedule, impl_->recorder.rowSpace);
}

std::vector<uint64_t> Session::timeAtOnce(size_t kernel, int64_t most) {
  int64_t words = impl_->model.kernels.at(kernel).words;
  std::vector<int32_t> records;
  for (const ScheduledBucket &launch : impl_->schedule)
    if (launch.kernel == kernel)
      records.insert(records.end(), launch.records, launch.records + launch.count * words);
  std::vector<uint64_t> nanoseconds;
  Trace *trace = std::exchange(impl_->flusher.trace, nullptr);
  int64_t count = static_cast<int64_t>(records.size()) / words;
  for (int64_t begin = 0; begin < count; begin += most) {
    // Every argument is there, and the results are written once more with the same bits.
    Schedule once{{0, static_cast<uint32_t>(kernel), records.data() + begin * words,
                   std::min(most, count - begin)}};
    Counters unused;
    unused.kernels.resize(impl_->model.kernels.size());
    impl_->flusher.run(once, 0, impl_->recorder.rowSpace.address(0), impl_->weights, unused);
    nanoseconds.push_back(unused.kernels[kernel].nanoseconds);
  }
  impl_->flusher.trace = trace;
  return nanoseconds;
}

void Session::keepAll(bool keep) { impl_->keepsAll = keep; }

void Session::onForget(std::function<void(const Schedule &)> visit) {
  impl_->onForget = std::move(visit);
}

void Session::setTrace(Trace *trace) {
  if (trace && trace->launches.size() != impl_->options.threads)
    throw InternalError("a trace for another number of threads than the session's");
  impl_->trace = impl_->flusher.trace = impl_->recorder.tasks.trace = trace;
}

Policy Session::policy() const {
  return impl_->options.policy == Policy::Auto ? impl_->trial.chosen().value_or(Policy::Auto)
                                               : impl_->options.policy;
}

const Counters &Session::counters() const { return impl_->counters; }

void Session::resetCounters() {
  Counters fresh;
  fresh.kernels.resize(impl_->model.kernels.size());
  impl_->counters = std::move(fresh);
}

MemoryUse Session::memory() const {
  MemoryUse use = impl_->memory;
  use.stack.now = impl_->recorder.stacks.residentBytes();
  use.stack.peak = std::max(use.stack.peak, use.stack.now);
  return use;
}

} // namespace sheaf::rt

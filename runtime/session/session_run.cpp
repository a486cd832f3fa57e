#include "runtime/session/session_impl.h"

#include "runtime/device/float_environment.h"
#include "runtime/model/keys.h"
#include "runtime/session/non_finite.h"
#include "runtime/walk/inputs.h"

#include <bit>
#include <utility>

namespace sheaf::rt {

/// Hostile, every other instance is walked as if rows were short, or, where instances go on in
/// turns, all in every other run.
void Session::Impl::chooseForms(int64_t instance) {
  uint64_t number = model.reads ? counters.runs : static_cast<uint64_t>(instance);
  recorder.joins = rowsAreShort || (joinsSome && number % 2 == 1);
}

/// False when there is no memory for the instance's arguments.
bool Session::Impl::begin(Walk &walk, const Instance &instance, HostStack *stack) {
  walk.instance = instance.index;
  chooseForms(instance.index);
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
    task->logged = walk.logged;
    task->results = walk.results = reinterpret_cast<Slot *>(task + 1);
    if (model.entry.emits)
      beginEmitting(walk);
    uint64_t start = trace ? clockNow() : 0;
    task->args = walk.args = values.bringIn(model.entry.argTypes, instance.args);
    for (uint64_t id : values.begins())
      scheduler.addInputs(id);
    note(TracePart::Inputs, start, instance.index);
  }
  if (recorder.failure.kind != Failure::None)
    return false;
  recorder.tasks.start(*task, stack);
  return true;
}

void Session::Impl::beginEmitting(Walk &walk) {
  int64_t slots = values.facts().slots(*model.entry.emits);
  ListObject *list = recorder.lists.make(slots, 0);
  if (!list) {
    recorder.failure = {Failure::Heap, 0, 0, 0, static_cast<uint64_t>(slots) * sizeof(Slot)};
    return;
  }
  walk.emitted = walk.results + EmittingOutcome(model.types, model.entry).listSlot;
  *walk.emitted = std::bit_cast<Slot>(list);
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
  outcome.error.emplace(walk.instance,
                        recorder.describe(recorder.failure, model, meter, walk.limits),
                        causeOf(recorder.failure, model), columnOf(recorder.failure, model));
}

template <typename Ended> void Session::Impl::stopTasks(Ended ended) {
  recorder.tasks.stop();
  recorder.tasks.run(ended);
}

/// Runs what those that wait wait for, or everything, and then gives back what no one needs.
void Session::Impl::runPending() {
  bool collects = mayCollect() && collector.isDue();
  flush(collects ? BucketTable::What::All : BucketTable::What::Demanded);
  settle();
  if (collects)
    collect();
}

/// What was given back and not yet handed out again is free.
uint64_t Session::Impl::usedBytes() const {
  const RowSpace &rows = recorder.rowSpace;
  uint64_t holes = rows.reclaimed() - std::min(rows.reclaimed(), rows.handedOut());
  return meter.used() - holes * kGranuleBytes;
}

/// Whether what was recorded since then is enough to run.
bool Session::Impl::isFull(const Wave &wave) const {
  if (model.reads || model.training || wave.begun == 0)
    return false;
  // The next instance, and what kernels use while they run, need room.
  if (mayCollect() && usedBytes() > meter.limit() / 4 * 3 && collector.isDue())
    return true;
  uint64_t bytes = (recorder.rowSpace.handedOut() - wave.granules) * kGranuleBytes;
  if (options.waveBytes)
    return *options.waveBytes > 0 && bytes >= *options.waveBytes;
  if (options.hostile)
    return walks.size() % 4 < 2;
  // Weights are read once more in every wave, and a step of a sequence has a row of each instance.
  constexpr uint64_t kNearBytes = uint64_t(4) << 20;
  constexpr size_t kLeastInstances = 256;
  return wave.begun >= kLeastInstances && bytes >= std::max(kNearBytes, 4 * memory.packed.now);
}

/// Runs what is recorded, of instances that have all ended: no one but their results needs any of
/// it then, so the next ones may have its memory.
void Session::Impl::endWave(Wave &wave) {
  flush(BucketTable::What::All);
  if (model.entry.emits)
    settle();
  emissions.afterFlush(walks, outcomes);
  bool givesBack = mayCollect() && (wave.tooLarge || collector.isDue());
  if (givesBack) {
    settle();
    givesBack = (wave.tooLarge || mayForget(wave)) && collect();
  }
  if (givesBack) {
    wave.holders = 0;
    wave.records = counters.records;
  } else {
    wave.tooLarge.reset();
  }
  wave.begun = 0;
  wave.granules = recorder.rowSpace.handedOut();
}

/// Records whose rows are given back are not found any more. That must not cost more than it is
/// worth where there is memory.
bool Session::Impl::mayForget(const Wave &wave) const {
  constexpr uint64_t kSeldom = 32;
  return options.hostile || usedBytes() > meter.limit() / 2 ||
         recorder.known.foundSeen() * kSeldom <= counters.records - wave.records;
}

/// Whether the one that found too little memory may find it when the rows of others are gone.
bool Session::Impl::failedBesideOthers(const Wave &wave) const {
  Failure::Kind kind = recorder.failure.kind;
  return wave.holders > 1 && !model.reads && mayCollect() &&
         (kind == Failure::Rows || kind == Failure::Heap || kind == Failure::Records);
}

/// Walks all instances. Those that wait for tensors wait together, so that what they wait for runs
/// in large buckets; those that end make room for others.
void Session::Impl::walk(std::span<const Instance> instances, const std::stop_token &stop) {
  // Constants that host code computes must not depend on the caller's rounding either.
  FloatEnvironment environment;
  walks.clear();
  walks.reserve(instances.size());
  std::vector<size_t> uncertain;
  Wave wave;
  wave.granules = recorder.rowSpace.handedOut();
  wave.records = counters.records;
  auto ended = [&](const Walk &walk) {
    auto number = static_cast<size_t>(&walk - walks.data());
    if (walk.isUncertain())
      return uncertain.push_back(number);
    end(walk, outcomes[number]);
    if (walk.failed && failedBesideOthers(wave))
      wave.tooLarge = number;
  };
  auto again = [&](size_t number, bool inOrder) {
    Walk &walk = walks[number];
    walk = {.limits = walk.limits, .inOrder = inOrder, .logged = walk.logged};
    if (recorder.readLog)
      recorder.readLog->beginAgain(walk.logged);
    return number;
  };
  auto next = [&]() -> size_t {
    if (wave.tooLarge) {
      size_t number = *std::exchange(wave.tooLarge, std::nullopt);
      outcomes[number] = {};
      return again(number, false);
    }
    if (walks.size() < instances.size()) {
      Walk &walk = walks.emplace_back();
      if (recorder.readLog)
        walk.logged = recorder.readLog->begin();
      return walks.size() - 1;
    }
    size_t number = uncertain.back();
    uncertain.pop_back();
    return again(number, true);
  };
  Interrupts interrupts(recorder.tasks, [&](Walk &) {
    if (!stop.stop_requested())
      return false;
    recorder.tasks.stop();
    return true;
  });
  for (;;) {
    recorder.tasks.toCome = instances.size() - walks.size();
    recorder.tasks.run(ended);
    if (stop.stop_requested())
      return stopTasks(ended);
    if (wave.tooLarge)
      endWave(wave);
    bool more = wave.tooLarge || walks.size() < instances.size() || !uncertain.empty();
    if (more && isFull(wave))
      endWave(wave);
    if (HostStack *stack = more ? recorder.stacks.take() : nullptr) {
      size_t number = next();
      ++wave.begun;
      ++wave.holders;
      if (!begin(walks[number], instances[number], stack)) {
        recorder.stacks.giveBack(stack);
        giveUp(walks[number], outcomes[number]);
        if (failedBesideOthers(wave))
          wave.tooLarge = number;
      }
    } else if (recorder.tasks.anyWaits()) {
      try {
        runPending();
        emissions.afterFlush(walks, outcomes);
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
  recorder.rowSpace.account();
  TraceMemory &sample = trace->memory.emplace_back();
  sample.time = clockNow();
  for (size_t i = 0; i < std::size(kMemoryKinds); ++i)
    sample.bytes[i] = (memory.*kMemoryKinds[i].kind).now;
}

uint32_t Session::Impl::flush(BucketTable::What what, const BucketTable::Part &part,
                              const std::function<void(uint32_t)> &more) {
  noteMemory();
  uint64_t start = clockNow();
  settle(); // the schedule that is about to grow may be in use
  size_t begin = schedule.size();
  uint32_t left = recorder.buckets.drain(schedule, what, part);
  // In order of depth: those of later phases, which no read depends on, come last. The next
  // instances of a mini-batch that does not read begin as the first did.
  for (size_t i = model.reads || serves ? schedule.size() : 0; i-- > begin;)
    if (uint32_t depth = schedule[i].depth; depth >> model.depthBits == 0) {
      recorder.setComputed(std::max<int64_t>(recorder.computed, std::min(depth + 1, left)));
      break;
    }
  // What stands above has run, whether or not anything stood just above.
  if (part.end < recorder.buckets.depthLimit() && left >= part.end)
    recorder.setComputed(std::max<int64_t>(recorder.computed, part.end));
  if (more)
    more(left);
  arrangeAndSubmit(begin, what, start);
  publishReads(left == BucketTable::kNone ? INT64_MAX : recorder.computed);
  counters.flushNanoseconds += clockNow() - start;
  return left;
}

void Session::Impl::compute(std::span<const ScheduledBucket> launches) {
  uint64_t start = clockNow();
  settle();
  size_t begin = schedule.size();
  schedule.insert(schedule.end(), launches.begin(), launches.end());
  arrangeAndSubmit(begin, BucketTable::What::All, start);
  counters.flushNanoseconds += clockNow() - start;
}

void Session::Impl::arrangeAndSubmit(size_t begin, BucketTable::What what, uint64_t start) {
  if (schedule.size() == begin)
    return;
  // Of the order that all policies begin with, so that none changes what is forked.
  if (what == BucketTable::What::Demanded || recorder.tasks.anyWaits()) {
    forkWorth.noteFlush(schedule, begin);
    recorder.tasks.worth = forkWorth.most();
  }
  if (mayReorder())
    reordered.insert(reordered.end(), schedule.begin() + static_cast<ptrdiff_t>(begin),
                     schedule.end());
  scheduler.arrange(policy, schedule, begin, recorder.rowSpace);
  uint64_t ordered = clockNow();
  counters.orderNanoseconds += ordered - start;
  counters.flushes += 1;
  submit(begin);
  if (!trace)
    return;
  settle();
  trace->flushes.push_back({{start, clockNow()},
                            ordered,
                            static_cast<uint32_t>(begin),
                            static_cast<uint32_t>(schedule.size()),
                            what == BucketTable::What::Demanded,
                            recorder.tasks.worth});
  noteMemory();
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
/// needs, or has ended by then, and no one asks afterwards what ran.
bool Session::Impl::mayCollect() const {
  return (model.roots || !model.reads) && !model.training && !trace && !keepsAll &&
         !options.checkResults;
}

/// All that wait have waited for has run, and so has everything else: forgets all records, and all
/// rows, lists and data that neither a task nor a result still needs.
bool Session::Impl::collect() {
  return collect([&](LiveValues &live) {
    for (size_t i = 0; i < walks.size(); ++i) {
      keep(walks[i], live);
      if (walks[i].open == 0 && outcomes[i].slots)
        live.add(model.entry.resultType, outcomes[i].slots);
    }
  });
}

/// What an instance has made for its outcome so far.
void Session::Impl::keep(const Walk &walk, LiveValues &live) const {
  live.keep(walk.results);
  if (walk.open > 0 && walk.emitted)
    live.add(EmittingOutcome(model.types, model.entry).list, walk.emitted);
  if (walk.open > 0 && walk.failed)
    live.keep(*walk.failed);
}

bool Session::Impl::collect(const std::function<void(LiveValues &)> &addResults) {
  if (options.hostile)
    checkGuards();
  if (!collector.mark(addResults))
    return false;
  if (onForget)
    onForget(schedule);
  isWhole = false;
  collector.giveBack(schedule, scheduler, policy);
  counters.evictions += recorder.known.takeEvictions();
  ++counters.collections;
  return true;
}

void Session::Impl::forgetMiniBatch() {
  settle();
  folded = {};
  reordered.clear();
  recorder.written.ranges.clear();
  recorder.reads.waits.clear();
  recorder.buckets.reset(schedule);
  recorder.heap.reset();
  recorder.grown.forget();
  recorder.rowSpace.reset(rowsAside());
  recorder.lists.forget();
}

void Session::Impl::beginRun() {
  recorder.tasks.begin();
  forkWorth.begin();
  recorder.tasks.worth = forkWorth.most();
  recorder.known.beginRun();
  recorder.scratch.beginRun();
  recorder.setComputed(0);
  scheduler.beginRun(recorder.rowSpace);
  isWhole = true;
  collector.beginRun();
}

/// True when memory was too short for an instance.
bool Session::Impl::walkAll(std::span<const Instance> instances, const std::stop_token &stop) {
  beginRun();
  outcomes.clear();
  outcomes.resize(instances.size());
  if (model.training && model.foldWeights && !stop.stop_requested()) {
    computeFolded();
    packFolded();
    recorder.setComputed(0); // no record of an instance depends on one of these
  }
  walk(instances, stop);
  return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome &outcome) {
    return !outcome.ok() && outcome.error->outOfMemory();
  });
}

bool Session::Impl::walkAgain(std::span<const Instance> instances, const std::stop_token &stop,
                              size_t logged) {
  forgetMiniBatch();
  if (recorder.readLog)
    recorder.readLog->keep(logged);
  return walkAll(instances, stop);
}

/// The run was stopped: what is recorded is never computed, results that were to be kept included.
void Session::Impl::giveUpAll(std::span<const Instance> instances) {
  std::string why = recorder.describe({Failure::Stopped}, model, meter);
  for (size_t i = 0; i < instances.size(); ++i)
    if (outcomes[i].ok()) {
      outcomes[i].slots = nullptr;
      outcomes[i].error.emplace(instances[i].index, why, RunError::Cause::Limit);
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
      showAll();
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

void Session::Impl::countTasks() {
  const Tasks::Counts tasks = std::exchange(recorder.tasks.counts, {});
  counters.waits += tasks.waits;
  counters.forked += tasks.forked;
  counters.inlined += tasks.inlined;
  counters.inPlace += tasks.inPlace;
}

std::span<const Outcome> Session::Impl::run(std::span<const Instance> instances,
                                            const std::stop_token &stop) {
  if (serves)
    throw InternalError("a session that an engine has runs no mini-batches");
  uint64_t begin = trace ? clockNow() : 0;
  forgetMiniBatch();
  noteMemory();
  emissions.beginRun(instances);
  if (weightsChanged && !stop.stop_requested())
    packWeights();
  if (keptIsStale)
    recorder.known.forgetKept();
  keptIsStale = false;
  weightsOfRun = weightsVersion;

  policy = options.policy == Policy::Auto ? trial.next() : options.policy;
  uint64_t flushed = counters.flushNanoseconds, recorded = counters.records;
  uint64_t start = clockNow();
  bool keepsStacks = memory.stack.now > 0;
  size_t logged = recorder.readLog ? recorder.readLog->instances() : 0;
  rowsAreShort = false;
  joinsSome = options.hostile && canJoin && device->packJoined();
  // No instance fails for want of what is only kept to save time.
  if (walkAll(instances, stop) && !stop.stop_requested()) {
    bool isShort = !recorder.giveBack(keepsStacks) || walkAgain(instances, stop, logged);
    // Nor for rows that another form of its kernels needs not.
    if (isShort && canJoin && !stop.stop_requested()) {
      settle();
      recorder.buckets.reset(schedule, /*goesOn=*/true);
      forgetMiniBatch();
      rowsAreShort = device->packJoined();
      walkAgain(instances, stop, logged);
    }
  }
  bool stopped = stop.stop_requested();
  if (stopped)
    giveUpAll(instances);
  for (const Outcome &outcome : outcomes)
    counters.failed += !outcome.ok();
  counters.recordNanoseconds += clockNow() - start - (counters.flushNanoseconds - flushed);
  if (!stopped) {
    flush(BucketTable::What::All);
    uint64_t waiting = clockNow();
    settle();
    showResults([&](LiveValues &results) {
      for (const Outcome &outcome : outcomes)
        if (outcome.ok())
          results.add(model.entry.resultType, outcome.slots);
    });
    counters.flushNanoseconds += clockNow() - waiting;
    emissions.afterFlush(walks, outcomes);
  }
  for (size_t i = 0; i < outcomes.size(); ++i)
    outcomes[i].delivered = emissions.delivered(i);
  if (options.policy == Policy::Auto && !stopped)
    trial.took(counters.flushNanoseconds - flushed, counters.records - recorded);

  recorder.known.endRun(counters);
  recorder.rowSpace.account();
  recorder.stacks.trim();
  if (options.hostile)
    checkGuards();
  if (options.checkResults && !stopped)
    giveUpNonFinite(instances);
  countTasks();
  note(TracePart::MiniBatch, begin, static_cast<int64_t>(counters.runs));
  noteMemory();
  counters.runs += 1;
  counters.instances += instances.size();
  return outcomes;
}

TensorView Session::Impl::tensor(uint32_t type, const Slot *slots) const {
  if (!device->facts().computes)
    throw UserError("the device computes nothing: there are no results to look at");
  const TypeDesc &desc = model.types.types.at(type);
  TensorView view{desc.dtype, desc.shape, nullptr};
  const Slot *extents = slots + 1;
  for (int64_t &extent : view.shape)
    if (extent < 0)
      extent = *extents++;
  view.data = recorder.rowSpace.address(TensorHandle::unpack(slots[0]).id);
  return view;
}

} // namespace sheaf::rt

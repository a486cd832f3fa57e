#include "runtime/session/session_impl.h"

#include "runtime/device/float_environment.h"
#include "runtime/model/keys.h"
#include "runtime/session/kept_values.h"
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
bool Session::Impl::begin(Walk &walk, const Instance &instance, HostStack *stack,
                          std::span<const PresentArgument> present) {
  walk.instance = instance.index;
  chooseForms(instance.index);
  walk.key = instanceKey(options.sampleSeed, step, instance.index);
  recorder.failure = {};
  size_t bytes = static_cast<size_t>(values.facts().slots(model.entry.resultType)) * sizeof(Slot);
  void *memory = recorder.heap.allocate(sizeof(Task) + bytes);
  auto *task = memory ? new (memory) Task : nullptr;
  if (!task) {
    recorder.setFailure({Failure::Heap, 0, 0, 0, sizeof(Task) + bytes});
  } else {
    task->fn = model.entry.fn;
    task->walk = &walk;
    task->logged = walk.logged;
    task->results = walk.results = reinterpret_cast<Slot *>(task + 1);
    if (model.entry.emits)
      beginEmitting(walk);
    uint64_t start = trace ? clockNow() : 0;
    task->args = walk.args = values.bringIn(model.entry.argTypes, instance.args, present);
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
    recorder.setFailure({Failure::Heap, 0, 0, 0, static_cast<uint64_t>(slots) * sizeof(Slot)});
    return;
  }
  walk.emitted = walk.results + EmittingOutcome(model.types, model.entry).listSlot;
  *walk.emitted = std::bit_cast<Slot>(list);
}

void Session::Impl::end(const Walk &walk, Outcome &outcome) {
  bool ok = !walk.failed;
  recorder.failure = {};
  if (!ok)
    recorder.takeFailure(walk);
  if (ok && recorder.lists.anyChained())
    ok = values.flatten(model.entry.resultType, walk.results);
  outcome.slots = ok ? walk.results : nullptr;
  if (!ok)
    giveUp(walk, outcome);
  noteMemory();
}

void Session::Impl::giveUp(const Walk &walk, Outcome &outcome) {
  outcome.error.emplace(walk.instance, recorder.describe(model, walk.limits, enoughFor(walk)),
                        causeOf(recorder.failure, model), columnOf(recorder.failure, model));
}

/// Bytes that would have held all that an instance alone has promised, as far as plans of it told;
/// 0: none was made.
uint64_t Session::Impl::enoughFor(const Walk &walk) const {
  auto found = enough.find(walk.instance);
  return found == enough.end() ? 0 : found->second;
}

/// Runs what those that wait wait for, or everything, and then gives back what no one needs.
void Session::Impl::runPending() {
  bool collects = mayCollect() && collector.isDue();
  flush(collects ? BucketTable::What::All : BucketTable::What::Demanded);
  settle();
  if (collects)
    collect();
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

/// Those of the launches' records whose results are kept for other mini-batches.
Schedule Session::Impl::keptOf(std::span<const ScheduledBucket> launches) const {
  Schedule kept;
  for (const ScheduledBucket &launch : launches) {
    uint32_t words = recorder.buckets.words(launch.kernel);
    auto isKept = [&](int64_t i) {
      auto id = static_cast<uint32_t>(launch.records[(i + 1) * words - 1]);
      return id >= recorder.rowSpace.keptBegin() && !PromisedRows::has(id);
    };
    for (int64_t end, i = 0; i < launch.count; i = end) {
      for (end = i + 1; end < launch.count && isKept(end) == isKept(i);)
        ++end;
      if (isKept(i))
        kept.push_back({launch.depth, launch.kernel, launch.records + i * words, end - i});
    }
  }
  return kept;
}

void Session::Impl::arrangeAndSubmit(size_t begin, BucketTable::What what, uint64_t start) {
  hasRoom = true;
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
  scheduler.arrange(policy, schedule, begin, recorder.rowSpace, &recorder.promised);
  bool promised = !recorder.promised.isEmpty();
  std::optional<RowRange> passing;
  if (promised) {
    uint64_t planned = clockNow();
    passing = placeRows(begin);
    if (passing)
      notePlan(recorder.promised.granules(), planned);
  }
  hasRoom = !promised || passing;
  if (!hasRoom) {
    // What others are to find runs; who recorded it is walked again.
    Schedule kept = keptOf(std::span(schedule).subspan(begin));
    schedule.resize(begin);
    schedule.insert(schedule.end(), kept.begin(), kept.end());
  }
  uint64_t ordered = clockNow();
  counters.orderNanoseconds += ordered - start;
  counters.flushes += 1;
  if (rowObserver)
    tellRows(begin, passing.has_value());
  submit(begin, passing.has_value());
  if (passing)
    giveBackPassing(begin, *passing);
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

/// Of this mini-batch, without what was given back and not handed out again.
uint64_t Session::Impl::heldGranules() const {
  return recorder.rowSpace.held() - recorder.rowSpace.inHoles();
}

void Session::Impl::tellRows(size_t begin, bool planned) {
  std::span<const ScheduledBucket> launches = std::span(schedule).subspan(begin);
  if (planned)
    rowObserver->planned(rowPlan.launches(), rowPlan,
                         heldGranules() - rowPlan.staying() - rowPlan.passing());
  else
    rowObserver->recorded(launches, heldGranules(), recorder.rowSpace.keptBegin());
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
  handedOutBefore += recorder.rowSpace.handedOut();
  collector.giveBack(schedule, scheduler, policy);
  if (recorder.grown.takeJoined() && kept)
    kept->findMemory();
  if (rowObserver)
    rowObserver->collected(heldGranules());
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
  recorder.rowSpace.promise(nullptr);
  recorder.promised.forget();
  dropped.forget();
  forgetCopies();
  recorder.lists.forget();
  bool stays = rowsMayStay();
  std::vector<RowRange> stay;
  if (!stays)
    stay = kept ? keptRows() : rowsAside();
  recorder.grown.forgetCopies();
  if (stays)
    return;
  if (!kept || stay.empty())
    recorder.grown.forget();
  recorder.rowSpace.reset(stay, /*inOnePiece=*/!kept);
}

void Session::Impl::beginRun() {
  recorder.tasks.begin();
  forkWorth.begin();
  recorder.tasks.worth = forkWorth.most();
  recorder.known.beginRun();
  recorder.scratch.beginRun();
  // Whoever looks at records afterwards finds who made the rows that they read.
  recorder.grown.shareWhen(reorders(policy) || !mayCollect() ? When::Never : options.shareRows);
  recorder.setComputed(0);
  scheduler.beginRun(recorder.rowSpace);
  isWhole = true;
  handedOutBefore = 0;
  if (rowObserver)
    rowObserver->begun();
  collector.beginRun();
}

void Session::Impl::requireReads(size_t instances) const {
  if (!model.reads)
    return;
  if (replay && replay->left() < instances)
    throw UserError("the log of reads has " + std::to_string(replay->left()) + " more instances; " +
                    std::to_string(instances) + " are to run");
  if (!replay && !device->facts().computes)
    throw UserError("the device computes nothing, and the program reads tensors: " +
                    (model.readPlaces.empty() ? std::string() : model.readPlaces.front() + ": ") +
                    "a log of what they hold is needed");
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
  scheduler.giveBack();
  if (recorder.readWatch)
    recorder.readWatch->keep(logged);
  return walkAll(instances, stop);
}

/// Where one mini-batch did without memoised records, so many others do.
constexpr uint32_t kRunsApart = 32;

/// Memory was too short for an instance: walks all again, with what is only kept to save time given
/// back, and rows promised or not, as fewer fail. True when it is too short still.
bool Session::Impl::walkFrugally(std::span<const Instance> instances, const std::stop_token &stop,
                                 size_t logged, bool keepsStacks) {
  auto failures = [&] {
    return std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome &outcome) {
      return !outcome.ok() && outcome.error->outOfMemory();
    });
  };
  auto again = [&](When reuse) {
    rowReuse = reuse;
    rowPlan.release();
    recorder.promised.release();
    if (reuse == When::Never)
      forgetMiniBatch(); // what the last walk took is given back, too
    bool anyGiven = recorder.giveBack(keepsStacks);
    bool differs = mayPromise() && !need.tried;
    if ((anyGiven || differs) && !stop.stop_requested())
      walkAgain(instances, stop, logged);
    return failures();
  };
  // Another order takes tables of who makes which rows, in proportion to all of these.
  if (reorders(policy) && !model.training)
    policy = Policy::Depth;
  auto promised = again(When::Always);
  // Training drops rows only when they are promised, and all that must be: no other walk needs
  // less.
  if (promised == 0 || !mayPromise() || model.training || stop.stop_requested())
    return promised > 0;
  auto plain = again(When::Never);
  if (plain == 0 || stop.stop_requested())
    return plain > 0;
  // Equal records that stand far apart hold what they share from the first of them to the last.
  recorder.known.pauseAll(true);
  auto apart = again(When::Always);
  auto fewest = std::min(promised, plain);
  if (apart < fewest)
    runsApart = kRunsApart;
  else
    recorder.known.pauseAll(false);
  if (apart <= fewest)
    return apart > 0;
  return again(plain < promised ? When::Never : When::Always) > 0;
}

/// The run was stopped: what is recorded is never computed, results that were to be kept included.
void Session::Impl::giveUpAll(std::span<const Instance> instances) {
  recorder.setFailure({Failure::Stopped});
  std::string why = recorder.describe(model);
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
  if (traced && !reorders(options.policy))
    scheduler.release();
}

void Session::Impl::countTasks() {
  const Tasks::Counts tasks = std::exchange(recorder.tasks.counts, {});
  counters.waits += tasks.waits;
  counters.forked += tasks.forked;
  counters.inlined += tasks.inlined;
  counters.inPlace += tasks.inPlace;
  const GrownRows::Counts grown = std::exchange(recorder.grown.counts, {});
  counters.sharedTensors += grown.shared;
  counters.sharedBytes += grown.bytes;
}

std::span<const Outcome> Session::Impl::run(std::span<const Instance> instances,
                                            const std::stop_token &stop) {
  if (serves)
    throw InternalError("a session that an engine has runs no mini-batches");
  requireReads(instances.size());
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
  uint64_t promised = counters.promisedBytes;
  uint64_t start = clockNow();
  bool keepsStacks = memory.stack.now > 0;
  size_t logged = recorder.readWatch ? recorder.readWatch->instances() : 0;
  rowsAreShort = false;
  enough.clear();
  if (runsApart > 0 && --runsApart == 0)
    recorder.known.pauseAll(false);
  rowReuse = options.rowReuse;
  beginNeed();
  joinsSome = options.hostile && canJoin && device->packJoined();
  // No instance fails for want of what is only kept to save time.
  if (walkAll(instances, stop) && !stop.stop_requested()) {
    bool isShort = walkFrugally(instances, stop, logged, keepsStacks);
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
  auto again = static_cast<uint64_t>(std::count_if(
      instances.begin(), instances.end(), [](const Instance &each) { return each.isAgain; }));
  for (const Outcome &outcome : outcomes)
    counters.failed += !outcome.ok();
  counters.failed -= std::min(again, counters.failed);
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
  if (!stopped)
    noteUsual(counters.records - recorded, counters.promisedBytes - promised);
  endNeed(counters.promisedBytes - promised);

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
  counters.instances += instances.size() - again;
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

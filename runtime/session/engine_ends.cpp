#include "runtime/session/engine_impl.h"

#include <iterator>
#include <new>
#include <utility>

namespace sheaf::rt {

namespace {

/// Bytes of rows since memory was last given back, to do so for other engines.
constexpr uint64_t kLeastForOthers = uint64_t(64) << 10;

} // namespace

//===----------------------------------------------------------------------===//
// Between instances
//===----------------------------------------------------------------------===//

/// Forgets all that was recorded, and gives its memory back.
void Engine::Impl::beginAnew() {
  computeKept();
  session.settle();
  if (session.options.hostile)
    session.checkGuards();
  session.countTasks();
  recorder.known.endRun(session.counters);
  session.forgetMiniBatch();
  if (session.weightsChanged)
    session.packWeights();
  if (std::exchange(session.keptIsStale, false))
    recorder.known.forgetKept();
  recorder.rowSpace.account();
  recorder.stacks.trim();
  session.policy = Policy::Depth;
  session.rowsAreShort = !queue.empty() && queue.begin()->second->joins;
  session.joinsSome = session.options.hostile && session.canJoin && session.device->packJoined();
  session.beginRun();
  ++session.counters.runs;
  young = turn = 0;
  computed = {};
  left = BucketTable::kNone;
  frontier = window = 0;
  draining = ranLater = false;
  givenUp = {};
  fresh = true;
}

/// Of what instances that were given up had recorded: no one asks for the rest.
void Engine::Impl::computeKept() {
  recorder.promised.forget(); // by a run that threw
  if (recorder.buckets.isEmpty() && cohorts.empty())
    return;
  auto compute = [&](std::span<const ScheduledBucket> launches) {
    session.compute(session.keptOf(launches));
  };
  Schedule pending;
  recorder.buckets.drain(pending, BucketTable::What::All, {.end = recorder.buckets.depthLimit()});
  compute(pending);
  for (const Cohort &cohort : cohorts)
    compute(std::span(cohort.later).subspan(cohort.ran));
  cohorts.clear();
  pending.clear();
  recorder.buckets.drain(pending);
  compute(pending);
}

void Engine::Impl::collect() {
  bool collected = session.collect([&](LiveValues &live) {
    for (auto &[number, entry] : running)
      session.keep(*entry, live);
    kept.mark(live.bits());
  });
  // The youngest is begun again later; the oldest never is.
  if (!collected || running.size() < 2 || !isShortOfMemory(kVeryShort))
    return;
  most = running.size() - 1;
  calm = 0;
  Entry &youngest = *std::prev(running.end())->second;
  youngest.why = Entry::Why::TakenBack;
  youngest.stopped = true;
}

/// Those to come begin at the first depth again. What the older ones know stands deeper than they
/// would look, and the other way round; so nothing that has been seen is found any more.
void Engine::Impl::beginGeneration() {
  recorder.known.forgetSeen();
  young = 1 - young;
  computed[young] = 0;
  window = 0;
  ++counts.generations;
}

/// Of the session's limit, or of what engines share.
bool Engine::Impl::isShortOfMemory(double part) {
  uint64_t used = session.usedBytes();
  share.tell(used);
  return static_cast<double>(used) > part * static_cast<double>(session.meter.limit()) ||
         share.isShort(part);
}

/// Whether all that is recorded has to run so that one can look.
bool Engine::Impl::mustCollect() const {
  if (!mayCollect())
    return false;
  return session.collector.isOverdue() || (!options.joins && session.collector.isDue()) ||
         (share.isShort(kVeryShort) &&
          recorder.rowSpace.handedOut() * kGranuleBytes >= kLeastForOthers);
}

//===----------------------------------------------------------------------===//
// How instances end
//===----------------------------------------------------------------------===//

void Engine::Impl::ended(Entry &entry) {
  using Cause = RunError::Cause;
  switch (entry.why) {
  case Entry::Why::Deadline:
    return fail(entry, "it did not end before its deadline", Cause::Deadline);
  case Entry::Why::Cancelled:
    return fail(entry, "it was cancelled", Cause::Cancelled);
  case Entry::Why::TakenBack:
    return putBack(entry);
  case Entry::Why::None:
    break;
  }
  if (entry.isUncertain()) {
    entry.certainly = true;
    return putBack(entry);
  }
  if (entry.hasTooManyRows())
    return fail(entry,
                "its tensors take more than its limit of " +
                    bytesText(entry.request.limits.rowBytes),
                Cause::Limit);
  if (!entry.failed) {
    if (walked.empty())
      firstWalked = now();
    entry.state = Entry::State::Walked;
    walked.push_back(&entry);
    return;
  }
  recorder.takeFailure(entry);
  // Alone it begins at the first depth, wherever the others stand.
  if (recorder.failure.kind == Failure::Depth && !entry.runsAlone()) {
    entry.shorts = 2;
    return putBack(entry);
  }
  finish(entry);
}

/// Its outcome is known: the result, or the failure that the recorder names.
void Engine::Impl::finish(Entry &entry) {
  Outcome outcome;
  session.end(entry, outcome);
  if (outcome.ok() && entry.request.keep && !keep(outcome)) {
    outcome = {};
    session.giveUp(entry, outcome);
  }
  if (!outcome.ok() && outcome.error->outOfMemory())
    return tooLittleMemory(entry);
  if (outcome.ok() && session.model.entry.emits)
    entry.computed = session.emissions.ready(entry);
  leave(entry);
  hand(entry, std::move(outcome));
}

/// False, with Recorder::failure set, when memory is short.
bool Engine::Impl::keep(Outcome &outcome) try {
  const Model &model = session.model;
  uint32_t type = model.entry.ownResult(model.types);
  ValueImage image(model.types, session.values.facts(), type, outcome.slots);
  if (!session.bringOut(image))
    return false;
  uint64_t bytes = image.bytes();
  outcome.kept = kept.keep(type, std::move(image), session.weightsVersion);
  if (!outcome.kept)
    recorder.setFailure({Failure::Heap, 0, 0, 0, bytes});
  return outcome.kept != nullptr;
} catch (const std::bad_alloc &) {
  recorder.setFailure({Failure::Heap, 0, 0, 0, 0});
  return false;
}

void Engine::Impl::fail(Entry &entry, const std::string &message, RunError::Cause cause) {
  leave(entry);
  Outcome outcome;
  outcome.error.emplace(entry.request.instance.index, message, cause);
  hand(entry, std::move(outcome));
}

/// Beside fewer others it may do, else alone. It fails if it does not even then.
void Engine::Impl::tooLittleMemory(Entry &entry) {
  most = std::max<size_t>(1, running.size() / 2);
  calm = 0;
  if (entry.runsAlone()) {
    Outcome outcome;
    session.giveUp(entry, outcome);
    // What is pending may be written where rows are kept.
    cohorts.clear();
    recorder.buckets.reset(session.schedule);
    session.keptIsStale = true; // rows that are kept may never have been computed
    // No instance fails for want of what is only kept to save time; but it takes stacks again.
    bool more = entry.shorts == 2 && recorder.giveBack(/*keptStacks=*/true);
    // Nor for rows that another form of its kernels needs not.
    // (Where rows are counted, the form is that of the instance elsewhere.)
    if (!more && !entry.joins && session.canJoin && entry.request.limits.rowBytes == 0)
      more = entry.joins = session.device->packJoined();
    if (!more) {
      leave(entry);
      if (KeptUse use = kept.use(); use.values > 0) {
        const RunError &error = *outcome.error;
        outcome.error.emplace(
            error.instance(),
            error.message() + "; " + bytesText(use.bytes) +
                " of all are values that are kept for whoever has a handle of them",
            error.cause(), error.column());
      }
      return hand(entry, std::move(outcome));
    }
  }
  ++entry.shorts;
  putBack(entry);
}

void Engine::Impl::putBack(Entry &entry) {
  leave(entry);
  entry.why = Entry::Why::None;
  entry.state = Entry::State::Queued;
  queue.emplace(place(entry), &entry);
  ++counts.begunAgain;
}

/// It is no more among those that run or wait to.
void Engine::Impl::leave(Entry &entry) {
  if (entry.state == Entry::State::Queued) {
    queue.erase(place(entry));
    return;
  }
  if (entry.state != Entry::State::Due && entry.hasLater) {
    givenUp.goal = std::max({givenUp.goal, entry.deepest, entry.laterGoal});
    givenUp.foundLater |= entry.foundLater;
  }
  if (entry.state == Entry::State::Walked)
    std::erase(walked, &entry);
  if (entry.state == Entry::State::Due)
    for (Cohort &cohort : cohorts)
      std::erase(cohort.entries, &entry);
  running.erase(entry.number);
  --walking[entry.generation];
}

/// What has been emitted so far has been computed, or a part of it.
void Engine::Impl::noteEmissions() {
  if (session.model.entry.emits)
    for (auto &[number, entry] : running)
      if (entry->request.emitted && !entry->stopped)
        entry->computed = session.emissions.ready(*entry, entry->computed, left);
}

void Engine::Impl::hand(Entry &entry, Outcome outcome) {
  deadlines.erase({entry.request.deadline, entry.number});
  ++counts.ended;
  ++session.counters.instances;
  counts.failed += !outcome.ok();
  session.counters.failed += !outcome.ok();
  if (outcome.ok() && most < options.mostRunning && ++calm > most) {
    ++most;
    calm = 0;
  }
  auto node = entries.extract(entry.number);
  deliveries.push_back({std::move(node.mapped()), std::move(outcome)});
}

void Engine::Impl::deliverEnded() {
  while (!deliveries.empty()) {
    if (deliveries.front().outcome.ok())
      deliverEmissions(*deliveries.front().entry);
    Delivery delivery = std::move(deliveries.front());
    deliveries.pop_front();
    delivery.outcome.delivered = delivery.entry->emitted;
    delivery.entry->submitted->onStop.reset();
    if (delivery.entry->request.done)
      delivery.entry->request.done(delivery.outcome);
  }
}

/// What runs has emitted only since the last slice.
void Engine::Impl::deliver() {
  deliverEnded();
  if (session.model.entry.emits)
    for (auto &[number, entry] : running)
      deliverEmissions(*entry);
}

void Engine::Impl::deliverEmissions(Entry &entry) {
  if (!entry.request.emitted) // they are in the result alone
    return;
  session.emissions.handOut(entry, entry.emitted, entry.computed, [&](const Slot *value) {
    entry.request.emitted(entry.request.instance, value);
  });
}

} // namespace sheaf::rt

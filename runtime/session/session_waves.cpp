//===- session_waves.cpp - Which instances are walked when ----------------===//
//
// Instances of a model that reads wait for each other, and go on together. Those of one that does
// not read run in waves: so many are walked, and then what they have recorded is computed. What a
// wave records may be promised rows only, which are given places when all of it is there
// (schedule/row_plan.h); a wave that finds no room for them is walked again as smaller ones.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/session_impl.h"

#include "runtime/device/float_environment.h"

#include <utility>

namespace sheaf::rt {

//===----------------------------------------------------------------------===//
// How much is walked
//===----------------------------------------------------------------------===//

/// What is found again seldom is not worth keeping rows for.
constexpr uint64_t kSeldom = 32;

/// What was given back and not yet handed out again is free.
uint64_t Session::Impl::usedBytes() const {
  return meter.usedBesideRows() + heldGranules() * kGranuleBytes;
}

/// Whether what was recorded since then is enough to run.
bool Session::Impl::isFull(const Wave &wave) const {
  if (model.reads || model.training || wave.members.empty())
    return false;
  if (wave.members.size() >= wave.most)
    return true;
  // The next instance, and what kernels use while they run, need room.
  if (mayCollect() && usedBytes() > meter.limit() / 4 * 3 && collector.isDue())
    return true;
  uint64_t promised = recorder.promised.granules();
  if (promised > 0 && takenOfPromised * static_cast<double>(promised) >
                          0.75 * static_cast<double>(recorder.rowSpace.left()))
    return true;
  uint64_t bytes = (recorder.rowSpace.handedOut() - wave.granules + promised) * kGranuleBytes;
  if (options.waveBytes)
    return *options.waveBytes > 0 && bytes >= *options.waveBytes;
  if (options.hostile)
    return walks.size() % 4 < 2;
  // Weights are read once more in every wave, and a step of a sequence has a row of each instance.
  constexpr size_t kLeastInstances = 256;
  return wave.members.size() >= kLeastInstances &&
         bytes >= std::max(kNearBytes, 4 * memory.packed.now);
}

void Session::Impl::beginWave(Wave &wave) {
  wave.members.clear();
  wave.granules = recorder.rowSpace.handedOut();
  recorder.rowSpace.promise(nullptr);
}

/// Runs what is recorded, of instances that have all ended: no one but their results needs any of
/// it then, so the next ones may have its memory if there are `more`.
void Session::Impl::endWave(Wave &wave, bool more) {
  bool promised = !recorder.promised.isEmpty();
  wave.promised += recorder.promised.granules();
  wave.isShort |= wave.tooLarge.has_value();
  uint64_t found = recorder.known.foundSeen();
  flush(BucketTable::What::All);
  if (!hasRoom)
    return model.training ? giveUpWave(wave) : breakUp(wave);
  wave.isPlain = false;
  if (promised) {
    // Counters count what has run; nothing that was seen is known any more.
    wave.findsMuch = isMuch(found, wave);
    wave.records = counters.records;
    if (wave.most < SIZE_MAX / 2)
      wave.most *= 2;
  }
  if (model.entry.emits)
    settle();
  emissions.afterFlush(walks, outcomes);
  bool givesBack = more && mayCollect() && (wave.tooLarge || collector.isDue(wave.promised));
  if (givesBack) {
    settle();
    givesBack = wave.tooLarge ? collectFrugally() : mayForget(wave) && collect();
  }
  if (givesBack) {
    wave.holders = wave.promised = 0;
    wave.records = counters.records;
  } else {
    wave.tooLarge.reset();
  }
  beginWave(wave);
}

/// There was no room for what a wave has promised: nothing of it has run. Its instances are walked
/// again, in smaller waves; one that has no room even alone, with nothing of others to give back,
/// gets its rows as it records.
void Session::Impl::breakUp(Wave &wave) {
  settle();
  if (wave.members.size() == 1 && leastPlanned > 0 && outcomes[wave.members[0]].slots) {
    uint64_t &bytes = enough[walks[wave.members[0]].instance];
    bytes = bytes > 0 ? std::min(bytes, leastPlanned) : leastPlanned;
  }
  for (size_t number : wave.members) {
    if (!outcomes[number].slots && wave.tooLarge != number)
      continue;
    Walk &walk = walks[number];
    outcomes[number] = {};
    walk = {.limits = walk.limits, .logged = walk.logged}; // what it emitted is not there
    wave.again.push_back(number);
  }
  wave.most = std::max<size_t>(1, wave.members.size() / 2);
  bool besideOthers = wave.holders > 1;
  wave.isShort = true;
  wave.tooLarge.reset();
  takenOfPromised = 1;
  recorder.known.forgetSeen();
  bool collected = collectFrugally();
  if (collected)
    wave.holders = wave.promised = 0;
  // Where rows and records of others are gone it is promised rows once more.
  wave.isPlain = wave.members.size() == 1 && !(besideOthers && collected);
  beginWave(wave);
}

/// collect() where memory is short: the tables of what was promised make room to look, and what
/// waves that were larger took for their records is given back as well.
bool Session::Impl::collectFrugally() {
  rowPlan.release();
  recorder.promised.release();
  scheduler.windows().release();
  if (!collect())
    return false;
  scheduler.windows().giveBack();
  recorder.buckets.giveBackAll(schedule);
  recorder.heap.giveBack();
  return true;
}

/// Whether so many records of the waves since then were found among those of earlier ones.
bool Session::Impl::isMuch(uint64_t found, const Wave &wave) const {
  return found * kSeldom > counters.records - wave.records;
}

/// Records whose rows are given back are not found any more. That must not cost more than it is
/// worth where there is memory.
bool Session::Impl::mayForget(const Wave &wave) const {
  return options.hostile || usedBytes() > meter.limit() / 2 ||
         !isMuch(recorder.known.foundSeen(), wave);
}

/// Whether the one that found too little memory may find it when the rows of others are gone.
bool Session::Impl::failedBesideOthers(const Wave &wave) const {
  return wave.holders > 1 && !model.reads && mayCollect() && recorder.failure.isOfMemory() &&
         recorder.failure.kind != Failure::Stack;
}

//===----------------------------------------------------------------------===//
// Promised rows
//===----------------------------------------------------------------------===//

bool Session::Impl::mayPromise() const {
  if (model.training)
    return mayRecompute();
  return options.rowReuse != When::Never && !model.reads && !serves && mayCollect() &&
         rowPlan.isPossible();
}

/// Whether what the next instance records is only promised. Then it costs each record about 50 ns
/// more, so rows must be large for that, and many.
bool Session::Impl::promises(const Wave &wave) {
  if (model.training)
    return drops();
  if (!mayPromise() || wave.isPlain || rowReuse == When::Never)
    return false;
  if (rowReuse == When::Always || policy == Policy::Memory || wave.isShort)
    return true;
  if (options.hostile) // both are to be tried
    return wave.members.empty() && walks.size() % 8 < 5;
  if (wave.findsMuch && usedBytes() <= meter.limit() / 2)
    return false;
  // Of what is needed to the end nothing is used again; now and then that is looked at anew.
  constexpr double kLittle = 0.9;
  constexpr uint64_t kAnew = 16;
  if (takenOfPromised > kLittle && counters.rowPlans > 0 && counters.runs % kAnew != 0)
    return false;
  if (usual.records == 0) // nothing is known yet
    return true;
  constexpr uint64_t kLargeBytes = 1024;
  uint64_t bytes = (recorder.rowSpace.handedOut() - wave.granules) * kGranuleBytes;
  return usual.rowBytes >= kLargeBytes * usual.records &&
         std::max(usual.rowBytes, bytes) >= kNearBytes;
}

/// What the mini-batch that ends here took.
void Session::Impl::noteUsual(uint64_t records, uint64_t promisedBytes) {
  usual.records = records;
  usual.rowBytes =
      promisedBytes + (handedOutBefore + recorder.rowSpace.handedOut()) * kGranuleBytes;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// Walks all instances. Those that wait for tensors wait together, so that what they wait for runs
/// in large buckets; those that end make room for others.
void Session::Impl::walk(std::span<const Instance> instances, const std::stop_token &stop) {
  // Constants that host code computes must not depend on the caller's rounding either.
  FloatEnvironment environment;
  walks.clear();
  walks.reserve(instances.size());
  std::vector<size_t> uncertain;
  Wave wave;
  struct Walking {
    Impl &session;
    ~Walking() {
      session.wave = nullptr;
      session.recorder.rowSpace.promise(nullptr);
      session.recorder.promised.forget();
    }
  } walking{*this};
  this->wave = &wave;
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
    if (recorder.readWatch)
      walk.logged = recorder.readWatch->beginAgain(walk.logged);
    return number;
  };
  auto next = [&]() -> size_t {
    if (wave.tooLarge) {
      size_t number = *std::exchange(wave.tooLarge, std::nullopt);
      outcomes[number] = {};
      return again(number, false);
    }
    if (!wave.again.empty()) {
      size_t number = wave.again.back();
      wave.again.pop_back();
      return again(number, false);
    }
    if (walks.size() < instances.size()) {
      Walk &walk = walks.emplace_back();
      if (recorder.readWatch)
        walk.logged = recorder.readWatch->begin();
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
      endWave(wave, /*more=*/true);
    auto isMore = [&] {
      return wave.tooLarge || !wave.again.empty() || walks.size() < instances.size() ||
             !uncertain.empty();
    };
    bool more = isMore();
    // What the last wave records runs at the end, unless it may have to be walked again.
    if (more ? isFull(wave) : !recorder.promised.isEmpty()) {
      endWave(wave, more);
      more = isMore();
    }
    if (HostStack *stack = more ? recorder.stacks.take() : nullptr) {
      size_t number = next();
      if (!recorder.rowSpace.promises() && promises(wave))
        recorder.rowSpace.promise(&recorder.promised);
      wave.members.push_back(number);
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

} // namespace sheaf::rt

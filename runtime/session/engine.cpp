#include "runtime/session/engine_impl.h"

#include "runtime/device/float_environment.h"
#include "runtime/session/executor.h"
#include "runtime/session/invalid_argument.h"

#include <iterator>
#include <utility>

namespace sheaf::rt {

namespace {

/// By the engine's clock: where many instances begin in one round, stops and deadlines are looked
/// for so often.
constexpr uint64_t kLookNs = 1'000'000;
/// So many slices in turn newcomers may need for what stands above what older ones have reached.
constexpr unsigned kCatchUp = 8;

/// Callbacks run outside of it.
template <typename Part> void inFloatEnvironment(Part part) {
  FloatEnvironment environment;
  part();
}

} // namespace

Engine::Impl::Impl(Session::Impl &session, EngineOptions given)
    : session(session), recorder(session.recorder), options(std::move(given)),
      share(options.budget), kept(session.model, recorder, session.meter, session.memory, inbox),
      slices(session.model, options.slice, session.options.hostile) {
  if (session.model.training)
    throw InvalidArgument("an engine runs models that were compiled for inference");
  if (session.options.checkResults)
    throw InvalidArgument("an engine does not check results");
  if (session.emissions.isHeard())
    throw InvalidArgument("an engine tells each request what it emits, and no one else");
  if (session.serves)
    throw InternalError("a session has one engine at most");
  session.requireReads(0);
  options.mostRunning = std::max(options.mostRunning, 1u);
  options.depths = std::min(options.depths, recorder.buckets.depthLimit() / 2);
  if (session.options.hostile)
    options.depths = std::min(options.depths, 16u);
  most = options.mostRunning;
  session.policy = Policy::Depth;
  session.serves = true;
  recorder.holder = "the engine";
  session.kept = &kept;
  recorder.tasks.rows = &recorder.rowSpace;
  recorder.tasks.isInterrupted = [this](Walk &walk) {
    return isInterrupted(static_cast<Entry &>(walk));
  };
}

Engine::Impl::~Impl() {
  // Whoever waits must not be found by the session's next run.
  for (auto &[number, entry] : running)
    entry->stopped = true;
  recorder.tasks.stop();
  recorder.tasks.run([](const Walk &) {});
  session.keptIsStale = true; // some of it may not have been computed
  session.serves = false;
  recorder.holder = Recorder::kMiniBatch;
  session.kept = nullptr;
  recorder.tasks.rows = nullptr;
  recorder.tasks.isInterrupted = nullptr;
  recorder.tasks.toCome = 0;
}

//===----------------------------------------------------------------------===//
// A round
//===----------------------------------------------------------------------===//

bool Engine::Impl::step() {
  if (broken)
    std::rethrow_exception(broken);
  deliver(); // what a callback that threw left
  takeIn();
  inFloatEnvironment([&] { endStopped(); });
  deliverEnded(); // those need no slice
  inFloatEnvironment([&] {
    if (mayAdvance())
      advance();
  });
  deliverEnded();
  inFloatEnvironment([&] { slice(); });
  deliver();
  if (running.empty() && !fresh)
    inFloatEnvironment([&] { beginAnew(); });
  share.tell(session.usedBytes());
  inbox.setQueued(queue.size());
  return !entries.empty() || !changes.empty() || inbox.hasArrivals();
}

void Engine::Impl::takeIn() {
  forgetKept();
  EngineInbox::Arrivals arrivals = inbox.take();
  std::move(arrivals.changes.begin(), arrivals.changes.end(), std::back_inserter(changes));
  for (std::unique_ptr<EngineInbox::Submitted> &submitted : arrivals.requests) {
    auto taken = std::make_unique<Entry>(std::move(submitted));
    Entry &entry = *taken;
    ++counts.submitted;
    queue.emplace(place(entry), &entry);
    if (entry.request.deadline != UINT64_MAX)
      deadlines.emplace(entry.request.deadline, entry.number);
    bool stopped = entry.request.stop.stop_requested();
    entries.emplace(entry.number, std::move(taken));
    if (stopped)
      fail(entry, "it was cancelled", RunError::Cause::Cancelled);
  }
}

/// Rows of values that no one has, or that follow from other weights, go where rows next do.
void Engine::Impl::forgetKept() {
  bool any = inbox.takeDropped() && kept.sweep();
  if (std::exchange(weights, session.weightsVersion) != session.weightsVersion)
    any |= kept.forgetOlder(weights);
  if (any && running.empty())
    fresh = false;
}

/// Those that are stopped, or whose time is up, end now: what waits of them is given up.
void Engine::Impl::endStopped() {
  bool walks = false;
  auto stop = [&](uint64_t number, Entry::Why why) {
    auto found = entries.find(number);
    if (found == entries.end())
      return;
    Entry &entry = *found->second;
    entry.why = why;
    if (entry.state == Entry::State::Walking)
      entry.stopped = walks = true;
    else
      ended(entry);
  };
  for (uint64_t number : inbox.takeStops())
    stop(number, Entry::Why::Cancelled);
  if (!deadlines.empty())
    for (uint64_t time = now(); !deadlines.empty() && deadlines.begin()->first <= time;)
      stop(deadlines.extract(deadlines.begin()).value().second, Entry::Why::Deadline);
  if (walks) {
    recorder.tasks.wake([](const Task &task) { return task.walk->stopped; });
    walk();
  }
}

/// While its host code runs.
bool Engine::Impl::isInterrupted(Entry &entry) const {
  if (entry.why == Entry::Why::None) {
    if (entry.request.stop.stop_requested())
      entry.why = Entry::Why::Cancelled;
    else if (entry.request.deadline != UINT64_MAX && now() >= entry.request.deadline)
      entry.why = Entry::Why::Deadline;
  }
  return entry.why != Entry::Why::None;
}

/// Others may go on when nothing is left to be computed, or between slices. What they record may
/// stand above what was left; older ones get further all the same, now and then.
bool Engine::Impl::mayAdvance() const {
  if (draining || (mayRunLater() && !ranLater))
    return false;
  return left == BucketTable::kNone ||
         (options.joins && (left > frontier || catchingUp < kCatchUp));
}

/// Runs host code until all wait, and decides what is to be computed then.
void Engine::Impl::advance() {
  ++rounds;
  bool nothingPends = recorder.buckets.isEmpty() && cohorts.empty();
  // (Results that wait for what no read needs are no roots.)
  if (nothingPends && walked.empty() && !running.empty()) {
    if (isToCollect())
      collect();
    if (computed[young] >= int64_t(options.depths) && walking[1 - young] == 0)
      beginGeneration();
  }
  unsigned old = 1 - young;
  if (walking[old] == 0)
    turn = young;
  else
    turn = walking[young] > 0 || !queue.empty() ? 1 - turn : old;
  recorder.setComputed(computed[turn]);
  uint64_t first = running.empty() ? 0 : running.begin()->first;
  if (std::exchange(oldest, first) != first || left >= recorder.buckets.depthLimit())
    frontier = 0;
  catchingUp = left > frontier ? 0 : catchingUp + 1;
  if (left < recorder.buckets.depthLimit())
    frontier = std::max(frontier, left);
  // (What counts as ready later than it was recorded may stand deeper than all that has run.)
  int64_t ready = left == BucketTable::kNone ? INT64_MAX : recorder.computed;
  recorder.tasks.wake([&](const Task &task) {
    const auto &entry = static_cast<const Entry &>(*task.walk);
    return entry.stopped || (entry.generation == turn && int64_t(task.waitsFor) <= ready);
  });
  walk();
  if (turn == young)
    admit();
  left = 0; // what has been recorded may stand anywhere
  ranLater = false;
  bool waits = recorder.tasks.anyWaits();
  draining = turn != young || walking[1 - young] > 0 || computed[turn] >= int64_t(options.depths) ||
             mustCollect();
  if (!walked.empty() && (draining || !waits || now() - firstWalked >= options.linger))
    gatherCohort();
  if (draining || !waits || !options.joins)
    window = BucketTable::kNone;
  else if (window == BucketTable::kNone || int64_t(window) <= recorder.computed)
    window = recorder.tasks.deepestWait();
}

void Engine::Impl::walk() {
  recorder.tasks.run([&](Walk &walk) { ended(static_cast<Entry &>(walk)); });
}

void Engine::Impl::admit() {
  if (!changes.empty() && !running.empty())
    return; // what runs ends first
  while (!changes.empty()) {
    std::function<void()> change = std::move(changes.front());
    changes.pop_front();
    change();
    forgetKept();
  }
  for (uint64_t looked = now(); !queue.empty() && running.size() < most;) {
    if (uint64_t time = now(); time - looked >= kLookNs) {
      looked = time;
      endStopped();
      if (queue.empty())
        return;
    }
    Entry &entry = *queue.begin()->second;
    // Also after those that failed at once: what they left is no one's.
    if (running.empty() && (!fresh || session.weightsChanged || session.keptIsStale ||
                            session.rowsAreShort != entry.joins))
      beginAnew();
    if (!running.empty() &&
        (entry.runsAlone() || running.begin()->second->runsAlone() || isShortOfMemory(kShort)))
      return;
    recorder.tasks.toCome = std::min(queue.size(), most - running.size()) - 1;
    HostStack *stack = recorder.stacks.take();
    if (!stack)
      return;
    begin(entry, stack);
    walk();
  }
}

void Engine::Impl::begin(Entry &entry, HostStack *stack) {
  fresh = false;
  queue.erase(place(entry));
  const RequestLimits &limits = entry.request.limits;
  uint32_t logged = entry.logged;
  static_cast<Walk &>(entry) = {
      .limits = {limits.steps, limits.stackBytes, limits.rowBytes / kGranuleBytes},
      .inOrder = entry.certainly,
      .logged = logged};
  if (limits.rowBytes > 0)
    entry.limits.granules = std::max<uint64_t>(1, entry.limits.granules);
  if (ReadWatch *watch = recorder.readWatch; watch && entry.again)
    entry.logged = watch->beginAgain(logged);
  else if (watch)
    entry.logged = watch->begin();
  counts.joined += left != BucketTable::kNone;
  entry.again = true;
  entry.computed = 0;
  entry.laterGoal = 0;
  entry.state = Entry::State::Walking;
  entry.generation = young;
  ++walking[young];
  running.emplace(entry.number, &entry);
  if (std::string why = kept.whyNot(entry.request.kept); !why.empty()) {
    recorder.stacks.giveBack(stack);
    return fail(entry, why, RunError::Cause::Program);
  }
  uint64_t before = recorder.rowSpace.handedOut();
  bool begun =
      session.begin(entry, entry.request.instance, stack, KeptValues::present(entry.request.kept));
  entry.granules += recorder.rowSpace.handedOut() - before;
  if (!begun) {
    recorder.stacks.giveBack(stack);
    tooLittleMemory(entry);
  }
}

/// Those that have ended have their results when what they recorded or found has run.
void Engine::Impl::gatherCohort() try {
  Cohort cohort;
  cohort.entries = std::exchange(walked, {});
  bool foundLater = false;
  auto include = [&](const Entry &entry) {
    cohort.goal = std::max({cohort.goal, entry.deepest, entry.laterGoal});
    foundLater |= entry.foundLater;
  };
  for (Entry *entry : cohort.entries) {
    entry->state = Entry::State::Due;
    include(*entry);
  }
  // Those of later phases that others have recorded stand in the same launches.
  std::vector<Entry *> others;
  recorder.buckets.drainLater(cohort.later);
  if (!cohort.later.empty()) {
    for (const auto &[number, entry] : running)
      if (entry->state == Entry::State::Walking && entry->hasLater) {
        include(*entry);
        others.push_back(entry);
      }
    cohort.goal = std::max(cohort.goal, givenUp.goal);
    foundLater |= givenUp.foundLater;
  }
  givenUp = {};
  if (foundLater && !cohorts.empty())
    cohort.goal = std::max(cohort.goal, cohorts.back().goal);
  for (Entry *entry : others) {
    entry->laterGoal = cohort.goal;
    entry->hasLater = false;
  }
  auto after = std::upper_bound(cohorts.begin(), cohorts.end(), cohort.goal,
                                [](uint32_t goal, const Cohort &c) { return goal < c.goal; });
  cohorts.insert(after, std::move(cohort));
} catch (...) {
  broken = std::current_exception(); // its launches are in no bucket any more
  throw;
}

/// Computes some of what is pending. Those go on whose tensors are there then, and those that have
/// ended have their results.
void Engine::Impl::slice() {
  size_t before = session.schedule.size();
  uint64_t start = clockNow();
  slices.begin(session.counters);
  try {
    computeSome();
    session.settle();
    slices.end(session.counters, clockNow() - start);
    counts.flushes += session.schedule.size() > before;
    computed[turn] = recorder.computed;
    noteEmissions();
    finishCohorts();
  } catch (...) {
    broken = std::current_exception(); // some launches or results will never be there
    throw;
  }
  if (recorder.buckets.isEmpty() && cohorts.empty())
    draining = false;
}

void Engine::Impl::computeSome() {
  if (mayRunLater()) {
    Schedule some;
    takeLater(cohorts.front(), some);
    return session.compute(some);
  }
  bool all = draining || !cohorts.empty();
  // What later phases take from each other is in the order of cohorts.
  uint32_t end = cohorts.empty() ? BucketTable::kNone : recorder.buckets.depthLimit();
  if (!draining && int64_t(window) > recorder.computed)
    end = std::min(end, window);
  session.flush(all ? BucketTable::What::All : BucketTable::What::Demanded,
                {end, [&](const ScheduledBucket &launch) { return slices.take(launch); }},
                [&](uint32_t first) {
                  left = first;
                  if (mayRunLater() && slices.hasRoom())
                    takeLater(cohorts.front(), session.schedule);
                });
}

/// Of a cohort's launches of later phases what the slice has room for.
void Engine::Impl::takeLater(Cohort &cohort, Schedule &schedule) {
  ranLater = true;
  while (cohort.ran < cohort.later.size()) {
    ScheduledBucket &launch = cohort.later[cohort.ran];
    int64_t count = slices.take(launch);
    if (count > 0)
      schedule.push_back({launch.depth, launch.kernel, launch.records, count});
    launch.records += count * recorder.buckets.words(launch.kernel);
    launch.count -= count;
    if (launch.count > 0)
      break;
    ++cohort.ran;
  }
}

void Engine::Impl::finishCohorts() {
  while (mayRunLater() && cohorts.front().ran == cohorts.front().later.size()) {
    Cohort cohort = std::move(cohorts.front());
    cohorts.pop_front();
    for (Entry *entry : cohort.entries)
      finish(*entry);
  }
  auto isOk = [](const Delivery &delivery) { return delivery.outcome.ok(); };
  if (std::any_of(deliveries.begin(), deliveries.end(), isOk))
    session.showResults([&](LiveValues &results) {
      for (const Delivery &delivery : deliveries)
        if (isOk(delivery))
          results.add(session.model.entry.resultType, delivery.outcome.slots);
    });
}

//===----------------------------------------------------------------------===//
// Engine
//===----------------------------------------------------------------------===//

Engine::Engine(Session &session, EngineOptions options)
    : impl_(std::make_unique<Impl>(*session.impl_, std::move(options))) {}
Engine::~Engine() {
  if (impl_->executor)
    impl_->executor->remove(*this);
}

void Engine::submit(Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  submit(std::move(one));
}
void Engine::submit(std::vector<Request> requests) {
  for (const Request &request : requests)
    impl_->kept.check(request.kept);
  impl_->inbox.submit(std::move(requests));
}
void Engine::whenIdle(std::function<void()> change) { impl_->inbox.whenIdle(std::move(change)); }
bool Engine::step() { return impl_->step(); }

void Engine::run(const std::stop_token &stop) {
  while (!stop.stop_requested()) {
    if (!impl_->step())
      impl_->inbox.wait(stop);
  }
}

const Engine::Counts &Engine::counts() const { return impl_->counts; }
size_t Engine::running() const { return impl_->running.size(); }
size_t Engine::waiting() const { return impl_->inbox.waiting(); }
KeptUse Engine::kept() const { return impl_->kept.use(); }

} // namespace sheaf::rt

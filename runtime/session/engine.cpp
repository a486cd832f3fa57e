#include "runtime/session/engine.h"

#include "runtime/device/float_environment.h"
#include "runtime/session/engine_inbox.h"
#include "runtime/session/invalid_argument.h"
#include "runtime/session/session_impl.h"

#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace sheaf::rt {

namespace {

/// Launches of the first slice, before any has been timed.
constexpr size_t kFirstSlice = 64;
/// Where so much of the limit is in use, no more instances begin, and the youngest is taken back.
constexpr double kShort = 0.8, kVeryShort = 0.9;
/// By the engine's clock: where many instances begin in one round, stops and deadlines are looked
/// for so often.
constexpr uint64_t kLookNs = 1'000'000;
/// Bytes of rows since memory was last given back, to do so for other engines.
constexpr uint64_t kLeastForOthers = uint64_t(64) << 10;

/// A request on its way.
struct Entry : Walk {
  explicit Entry(std::unique_ptr<EngineInbox::Submitted> from) : submitted(std::move(from)) {}

  std::unique_ptr<EngineInbox::Submitted> submitted;
  const Request &request = submitted->request;
  const uint64_t number = submitted->number;
  unsigned generation = 0;
  unsigned shorts = 0; ///< times that memory did not do; from the second on it runs alone
  uint64_t emitted = request.instance.delivered; ///< so many have been handed out
  uint64_t computed = 0;                         ///< so many may be
  bool joins = false;     ///< at last with the kernels that need the fewest rows
  bool again = false;     ///< it has begun before
  bool certainly = false; ///< it is walked in order
  enum class Why : uint8_t { None, Deadline, Cancelled, TakenBack } why = Why::None;
  enum class State : uint8_t { Queued, Walking, Walked } state = State::Queued;

  bool runsAlone() const { return shorts > 1; }
};

} // namespace

struct Engine::Impl {
  Impl(Session::Impl &session, EngineOptions given);
  ~Impl();

  // A round, from the whole to its parts.
  bool step();
  void takeIn();
  void endStopped();
  bool isInterrupted(Entry &entry) const;
  void advance();
  void admit();
  void begin(Entry &entry, HostStack *stack);
  void walk();
  void slice();

  // When no instance runs.
  void beginAnew();
  // When nothing is recorded that has not run.
  void collect();
  void beginGeneration();

  // An instance leaves those that run.
  void ended(Entry &entry);
  void finish(Entry &entry);
  void fail(Entry &entry, const std::string &message, RunError::Cause cause);
  void tooLittleMemory(Entry &entry);
  void putBack(Entry &entry);
  void leave(Entry &entry);
  void hand(Entry &entry, Outcome outcome);
  void noteEmissions();
  void deliver();
  void deliverEmissions(Entry &entry);

  bool isShortOfMemory(double part);
  bool mustCollect() const;
  uint64_t now() const { return options.clock ? options.clock() : clockNow(); }
  /// Higher priorities first, then in order of arrival.
  static std::pair<int64_t, uint64_t> place(const Entry &entry) {
    return {-int64_t(entry.request.priority), entry.number};
  }

  Session::Impl &session;
  Recorder &recorder;
  EngineOptions options;
  SharedBudget::Share share; ///< of options.budget
  Counts counts;

  EngineInbox inbox;

  std::deque<std::function<void()>> changes;                    ///< to be made when none runs
  std::unordered_map<uint64_t, std::unique_ptr<Entry>> entries; ///< that have no outcome yet
  std::set<std::pair<uint64_t, uint64_t>> deadlines;            ///< of these, with numbers
  std::map<std::pair<int64_t, uint64_t>, Entry *> queue;
  std::map<uint64_t, Entry *> running; ///< by number: the oldest first
  std::vector<Entry *> walked;         ///< of these; what they recorded has not all run
  uint64_t firstWalked = 0;            ///< since when there is one
  struct Delivery {
    std::unique_ptr<Entry> entry;
    Outcome outcome;
  };
  std::deque<Delivery> deliveries;

  size_t most;     ///< that run at a time, as far as memory has done so far
  size_t calm = 0; ///< that ended since it did not
  /// Instances of one generation count depths from the same first one. A new one begins when depths
  /// grow large; the two then run in turn, each with nothing of the other pending.
  unsigned young = 0, turn = 0;
  std::array<int64_t, 2> computed{}; ///< Context::computed of each
  std::array<size_t, 2> walking{};   ///< instances of each that run
  std::optional<BucketTable::What> flushing;
  size_t launches = kFirstSlice; ///< of a slice
  std::exception_ptr broken;     ///< why it can do nothing any more
  bool fresh = false;            ///< nothing has begun since beginAnew()
};

Engine::Impl::Impl(Session::Impl &session, EngineOptions given)
    : session(session), recorder(session.recorder), options(std::move(given)),
      share(options.budget) {
  if (session.model.training)
    throw InvalidArgument("an engine runs models that were compiled for inference");
  if (session.options.checkResults)
    throw InvalidArgument("an engine does not check results");
  if (session.emissions.isHeard())
    throw InvalidArgument("an engine tells each request what it emits, and no one else");
  if (session.serves)
    throw InternalError("a session has one engine at most");
  options.mostRunning = std::max(options.mostRunning, 1u);
  options.depths = std::min(options.depths, recorder.buckets.depthLimit() / 2);
  if (session.options.hostile)
    options.depths = std::min(options.depths, 16u);
  most = options.mostRunning;
  session.policy = Policy::Depth;
  session.serves = true;
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
  {
    FloatEnvironment environment;
    endStopped();
    if (!flushing)
      advance();
    if (flushing)
      slice();
  }
  deliver();
  if (running.empty() && !fresh) {
    FloatEnvironment environment;
    beginAnew();
  }
  share.tell(session.usedBytes());
  inbox.setQueued(queue.size());
  return !entries.empty() || !changes.empty() || inbox.hasArrivals();
}

void Engine::Impl::takeIn() {
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
    recorder.tasks.wake([](const Walk &walk) { return walk.stopped; });
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

/// Runs host code until all wait, and decides what is to be computed then.
void Engine::Impl::advance() {
  // (Results that wait for what no read needs are no roots.)
  if (recorder.buckets.isEmpty() && walked.empty() && !running.empty()) {
    if (mustCollect())
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
  recorder.tasks.wake(
      [&](const Walk &walk) { return static_cast<const Entry &>(walk).generation == turn; });
  walk();
  if (turn == young)
    admit();
  bool waits = recorder.tasks.anyWaits();
  if (!waits && walked.empty())
    return;
  bool all = walking[1 - young] > 0 || computed[turn] >= int64_t(options.depths) || mustCollect();
  if (!walked.empty())
    all |= !waits || now() - firstWalked >= options.linger;
  flushing = all ? BucketTable::What::All : BucketTable::What::Demanded;
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
  if (ReadLog *log = recorder.readLog; log && entry.again)
    log->beginAgain(logged);
  else if (log)
    entry.logged = log->begin();
  entry.again = true;
  entry.computed = 0;
  entry.state = Entry::State::Walking;
  entry.generation = young;
  ++walking[young];
  running.emplace(entry.number, &entry);
  uint64_t before = recorder.rowSpace.handedOut();
  bool begun = session.begin(entry, entry.request.instance, stack);
  entry.granules += recorder.rowSpace.handedOut() - before;
  if (!begun) {
    recorder.stacks.giveBack(stack);
    tooLittleMemory(entry);
  }
}

/// Computes some of what is pending. When all of it has run, those that waited for it go on, and
/// those that have ended have their results.
void Engine::Impl::slice() {
  size_t before = session.schedule.size();
  uint64_t start = clockNow();
  bool all = false;
  try {
    all = session.flush(*flushing, session.options.hostile ? 1 : launches);
    session.settle();
  } catch (...) {
    broken = std::current_exception(); // some launches will never have run
    throw;
  }
  ++counts.flushes;
  if (size_t ran = session.schedule.size() - before) {
    double each = static_cast<double>(clockNow() - start) / static_cast<double>(ran);
    double fit = static_cast<double>(options.slice) / std::max(each, 1.0);
    launches = static_cast<size_t>(std::clamp(fit, 1.0, 1e6));
  }
  if (!all)
    return;
  computed[turn] = recorder.computed;
  noteEmissions();
  if (*flushing == BucketTable::What::All)
    for (Entry *entry : std::exchange(walked, {}))
      finish(*entry);
  auto isOk = [](const Delivery &delivery) { return delivery.outcome.ok(); };
  if (std::any_of(deliveries.begin(), deliveries.end(), isOk))
    session.showResults([&](LiveValues &results) {
      for (const Delivery &delivery : deliveries)
        if (isOk(delivery))
          results.add(session.model.entry.resultType, delivery.outcome.slots);
    });
  flushing.reset();
}

//===----------------------------------------------------------------------===//
// Between instances
//===----------------------------------------------------------------------===//

/// Forgets all that was recorded, and gives its memory back.
void Engine::Impl::beginAnew() {
  // What instances that were given up had recorded may be known to others, and be kept.
  if (!recorder.buckets.isEmpty())
    session.flush(BucketTable::What::All);
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
  fresh = true;
}

void Engine::Impl::collect() {
  bool collected = session.collect([&](LiveValues &live) {
    for (auto &[number, entry] : running)
      session.keep(*entry, live);
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
  ++counts.generations;
}

/// Of the session's limit, or of what engines share.
bool Engine::Impl::isShortOfMemory(double part) {
  uint64_t used = session.usedBytes();
  share.tell(used);
  return static_cast<double>(used) > part * static_cast<double>(session.meter.limit()) ||
         share.isShort(part);
}

/// Time to look what is needed, or what others need is held here, and it pays to look.
bool Engine::Impl::mustCollect() const {
  if (!session.mayCollect())
    return false;
  return session.collector.isDue() ||
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
  recorder.failure = entry.failed->failure;
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
  if (!outcome.ok() && outcome.error->outOfMemory())
    return tooLittleMemory(entry);
  leave(entry);
  hand(entry, std::move(outcome));
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
    recorder.buckets.reset(session.schedule);
    // No instance fails for want of what is only kept to save time; but it takes stacks again.
    bool more = entry.shorts == 2 && recorder.giveBack(/*keptStacks=*/true);
    // Nor for rows that another form of its kernels needs not.
    // (Where rows are counted, the form is that of the instance elsewhere.)
    if (!more && !entry.joins && session.canJoin && entry.request.limits.rowBytes == 0)
      more = entry.joins = session.device->packJoined();
    if (!more) {
      leave(entry);
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
  if (entry.state == Entry::State::Walked)
    std::erase(walked, &entry);
  running.erase(entry.number);
  --walking[entry.generation];
}

/// What has been emitted so far has been computed.
void Engine::Impl::noteEmissions() {
  if (session.model.entry.emits)
    for (auto &[number, entry] : running)
      if (entry->request.emitted && !entry->stopped)
        entry->computed = session.emissions.ready(*entry);
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

void Engine::Impl::deliver() {
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
  if (session.model.entry.emits)
    for (auto &[number, entry] : running)
      deliverEmissions(*entry);
}

void Engine::Impl::deliverEmissions(Entry &entry) {
  session.emissions.handOut(entry, entry.emitted, entry.computed, [&](const Slot *value) {
    entry.request.emitted(entry.request.instance, value);
  });
}

//===----------------------------------------------------------------------===//
// Engine
//===----------------------------------------------------------------------===//

Engine::Engine(Session &session, EngineOptions options)
    : impl_(std::make_unique<Impl>(*session.impl_, std::move(options))) {}
Engine::~Engine() = default;

void Engine::submit(Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  submit(std::move(one));
}
void Engine::submit(std::vector<Request> requests) { impl_->inbox.submit(std::move(requests)); }
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

} // namespace sheaf::rt

#include "runtime/walk/tasks.h"

#include <algorithm>
#include <span>
#include <vector>

namespace sheaf::rt {

namespace {

/// A reading of the clock takes 10 to 20 ns, a step of a small model 100: so many short stretches
/// share one.
constexpr size_t kShareReading = 8;
constexpr uint64_t kShortNs = 1000;

/// Calls of recursive functions, rounds of loops and tasks between two looks whether the instance
/// is to end: a call or round takes a microsecond where it records much.
constexpr int64_t kStepsAtOnce = 512, kRoundsAtOnce = 512;
constexpr unsigned kTasksAtOnce = 16;

/// Where a task stood when it failed: the forks on the way to it, and how many it had forked
/// itself. In the order of the program a fork comes before what its parent does next.
std::vector<uint32_t> placeOf(const Task &task) {
  std::vector<uint32_t> place{task.forks};
  for (const Task *t = &task; t->parent; t = t->parent)
    place.push_back(t->number);
  return {place.rbegin(), place.rend()};
}

} // namespace

void Tasks::Queue::push(Task *task) {
  task->next = nullptr;
  (first ? last->next : first) = task;
  last = task;
}

void Tasks::Queue::append(Queue &other) {
  if (!other.first)
    return;
  (first ? last->next : first) = other.first;
  last = other.last;
  other = {};
}

Task *Tasks::Queue::pop() {
  Task *task = first;
  if (task)
    first = task->next;
  return task;
}

void Tasks::start(Task &task, HostStack *stack) {
  task.stack = stack;
  if (!task.parent) {
    const Walk::Limits &limits = task.walk->limits;
    task.walk->stepsLeft = limits.steps > 0 ? std::min(limits.steps, maxSteps_) : maxSteps_;
    uint64_t bytes = limits.stackBytes > 0 ? limits.stackBytes : stacks_.bytes();
    task.room = {std::nullopt, std::min(bytes, stacks_.bytes())};
  }
  ++task.walk->open;
  open_ += !task.parent;
  ready_.push(&task);
}

Walk *Tasks::runUntilEnd() {
  if (!trace)
    return runReady();
  untimed_.begin = clockNow();
  Walk *ended = runReady();
  if (untimed_.count > 0)
    readClock();
  return ended;
}

/// Runs what is current until it leaves its stack, with the walk's share of what is limited.
HostStack::Left Tasks::runCurrent() {
  Task *task = current_;
  Walk &walk = *task->walk;
  failure_ = {};
  setRoom(task->room);
  context_.instance = walk.instance;
  context_.key = walk.key;
  context_.roots = task->roots;
  // No one asks any more what it finds: its next call of a recursive function ends it.
  inVain_ = walk.stopped || (walk.failed && placeOf(*walk.failed) < placeOf(*task));
  grantSteps(inVain_ ? 0 : walk.stepsLeft);
  if (inVain_)
    context_.roundsLeft = 0;
  auto recorded = [&] { return rows ? rows->handedOut() + found : 0; };
  uint64_t before = recorded();
  deepest = 0;
  hasLater = foundLater = false;
  struct Call {
    Task *task;
    Context *context;
  } call{task, &context_};
  auto body = [](void *p) {
    auto *c = static_cast<Call *>(p);
    Task *task = c->task;
    EntryFn fn = task->fn;
    task->fn = nullptr;
    fn(c->context, task->args, task->results);
  };
  HostStack::Left left = task->fn ? task->stack->call(body, &call) : task->stack->resume();
  noteSteps();
  walk.granules += recorded() - before;
  walk.deepest = std::max(walk.deepest, deepest);
  walk.hasLater |= hasLater;
  walk.foundLater |= foundLater;
  if (walk.hasTooManyRows())
    walk.stopped = true;
  return left;
}

Walk *Tasks::runReady() {
  while (Task *task = ready_.pop()) {
    prefetchNext();
    task->state = Task::Running;
    current_ = task;
    if (++begun_ % kTasksAtOnce == 0)
      interrupts(*task->walk);
    // One that has not begun does not.
    bool never = task->fn && (stopped_ || task->walk->stopped);
    failure_ = {Failure::Stopped};
    HostStack::Left left = never ? HostStack::Left::Abandoned : runCurrent();
    if (trace)
      note(*task, left);
    current_ = nullptr;
    if (left == HostStack::Left::Waiting)
      continue;
    task->state = left == HostStack::Left::Completed ? Task::Done : Task::Failed;
    task->failure = failure_;
    if (context_.readWatch && task->state == Task::Done)
      context_.readWatch->end(task->logged);
    if (Walk *walk = ended(*task))
      return walk;
  }
  return nullptr;
}

/// Where very many wait, nothing of them is in a cache any more when their turn comes.
void Tasks::prefetchNext() const {
  const Task *next = ready_.first;
  if (!next)
    return;
  next->stack->prefetch();
  auto prefetchTwoLines = [](const void *p) {
    __builtin_prefetch(p);
    __builtin_prefetch(static_cast<const char *>(p) + 64);
  };
  if (const Task *second = next->next) {
    prefetchTwoLines(second->stack);
    if (const Task *third = second->next)
      prefetchTwoLines(third);
  }
}

void Tasks::note(const Task &task, HostStack::Left left) {
  TraceWalk::Left how = left == HostStack::Left::Completed   ? TraceWalk::Ended
                        : left == HostStack::Left::Abandoned ? TraceWalk::GaveUp
                        : task.state == Task::Waiting        ? TraceWalk::Waits
                                                             : TraceWalk::Joins;
  trace->walks.push_back(
      {{}, task.walk->instance, &task, task.parent != nullptr, how, task.waitsAt});
  // One ends where the next begins: what lies between is little, reading the clock is more.
  if (++untimed_.count == kShareReading || !untimed_.areShort)
    readClock();
}

void Tasks::readClock() {
  uint64_t now = clockNow(), each = (now - untimed_.begin) / untimed_.count;
  std::span<TraceWalk> walks = std::span(trace->walks).last(untimed_.count);
  for (uint64_t begin = untimed_.begin; TraceWalk &walk : walks) {
    walk.span = {begin, begin + each};
    begin += each;
  }
  walks.back().span.end = now;
  untimed_ = {now, 0, each < kShortNs};
}

Walk *Tasks::ended(Task &task) {
  stacks_.giveBack(task.stack);
  if (Task *heir = task.heir) {
    heir->stack = stacks_.take();
    heir->roots = nullptr;
  }
  while (Task *joiner = task.joiners) {
    task.joiners = joiner->next;
    joiner->state = Task::Ready;
    ready_.push(joiner);
  }
  Walk &walk = *task.walk;
  if (task.failure.kind != Failure::None &&
      (!walk.failed || placeOf(task) < placeOf(*walk.failed))) {
    walk.failed = &task;
    walk.shortage = task.failure.isOfMemory() ? shortage : Shortage();
  }
  if (--walk.open > 0)
    return nullptr;
  --open_;
  return &walk;
}

void Tasks::noteSteps() {
  if (!inVain_)
    current_->walk->stepsLeft = context_.stepsLeft + stepsBeyond_;
}

void Tasks::grantSteps(int64_t steps) {
  context_.stepsLeft = std::min(steps, kStepsAtOnce);
  stepsBeyond_ = steps - context_.stepsLeft;
}

bool Tasks::interrupts(Walk &walk) {
  if (isInterrupted && isInterrupted(walk))
    walk.stopped = true;
  return walk.stopped || stopped_;
}

/// Of what runs in vain the first failure counts, whatever this one is.
void Tasks::goOnUnlessInterrupted() {
  if (!inVain_ && !interrupts(*current_->walk))
    return;
  failure_ = {Failure::Stopped};
  abandon();
}

bool Tasks::moreSteps() {
  goOnUnlessInterrupted();
  if (stepsBeyond_ == 0)
    return false;
  grantSteps(stepsBeyond_);
  return true;
}

void Tasks::moreRounds() {
  goOnUnlessInterrupted();
  context_.roundsLeft = kRoundsAtOnce;
}

void Tasks::wake() { ready_.append(waiting_); }

uint32_t Tasks::deepestWait() const {
  uint32_t depth = 0;
  for (const Task *task = waiting_.first; task; task = task->next)
    depth = std::max(depth, task->waitsFor);
  return depth;
}

void Tasks::leave(Task::State state) {
  Task *task = current_;
  task->state = state;
  task->roots = context_.roots;
  task->room = room_;
  task->stack->wait();
}

void Tasks::setRoom(const StackRoom &room) {
  room_ = room;
  const StackRange &range = current_->stack->range();
  // Without a limit the next frame that asks says where it is.
  context_.stackTaken = !room.limit ? range.top()
                        : *room.limit > std::bit_cast<int64_t>(range.taken)
                            ? std::bit_cast<uint8_t *>(*room.limit)
                            : range.taken;
}

void Tasks::wait(uint32_t place, uint32_t depth) {
  ++counts.waits;
  auto isStopped = [&] { return stopped_ || current_->walk->stopped; };
  if (!isStopped()) {
    current_->waitsAt = place;
    current_->waitsFor = depth;
    waiting_.push(current_);
    leave(Task::Waiting);
  }
  if (isStopped()) {
    failure_ = {Failure::Stopped};
    abandon();
  }
}

HostStacks::Deepened Tasks::deepen(const uint8_t *frame) {
  using Deepened = HostStacks::Deepened;
  uint64_t below = room_.below(frame);
  StackRoom room{std::bit_cast<int64_t>(frame) - static_cast<int64_t>(below)};
  Deepened deepened = below == 0 ? Deepened::UsedUp : Deepened::Done;
  if (deepened == Deepened::Done && frame <= current_->stack->range().taken)
    deepened = stacks_.deepen(*current_->stack, frame);
  setRoom(room);
  goesOnWith_ = below;
  return deepened;
}

bool Tasks::goOn(EntryFn fn, const Slot *args, Slot *results) {
  FurtherRange *further = stacks_.further();
  if (!further)
    return false;
  struct Call {
    Tasks *tasks;
    EntryFn fn;
    const Slot *args;
    Slot *results;
    StackRoom room;
  } call{this, fn, args, results, {std::nullopt, goesOnWith_}};
  auto body = [](void *p) {
    auto *c = static_cast<Call *>(p);
    c->tasks->setRoom(c->room);
    c->fn(&c->tasks->context_, c->args, c->results);
  };
  StackRoom before = room_;
  current_->stack->callOn(*further, body, &call);
  stacks_.giveBackFurther(further);
  setRoom(before);
  return true;
}

void Tasks::stop() {
  stopped_ = true;
  wake();
}

/// Instances count, not calls: all of them then go the same way, and stay in step. Those that have
/// not begun will wait with the others before anything runs, as far as there are stacks for them.
bool Tasks::paysToFork() {
  switch (forking) {
  case Forking::Worth:
    return open_ - 1 + std::min<uint64_t>(toCome, stacks_.freeCount()) < worth;
  case Forking::Alternately:
    return asked_++ % 2 == 0;
  case Forking::Never:
    return false;
  case Forking::Always:
    break;
  }
  return true;
}

std::optional<Slot> Tasks::read(LoggedRead read) {
  std::optional<Slot> value = context_.readWatch->read(current_->logged, read);
  Walk &walk = *current_->walk;
  walk.lacksReads |= !value && context_.readWatch->knowsMore(walk.logged);
  return value;
}

/// Whether a call is forked, as `forking` says and if there is a stack.
bool Tasks::forks() {
  if (current_->walk->inOrder)
    return false;
  bool pays = paysToFork(), forks = pays && stacks_.freeCount() > 0;
  if (!forks)
    ++(pays ? counts.inlined : counts.inPlace);
  return forks;
}

bool Tasks::asked() {
  bool forked = forks();
  bool isCall = context_.readWatch ? context_.readWatch->asked(current_->logged, forked) : forked;
  forks_ = isCall ? std::optional(forked) : std::nullopt;
  return isCall;
}

HostStack *Tasks::stackForFork(bool wasAsked) {
  std::optional<bool> known = std::exchange(forks_, std::nullopt);
  // What was decided may have been of another's call that was none in the end.
  if (current_->walk->inOrder || (known && (wasAsked || *known) ? !*known : !forks()))
    return nullptr;
  HostStack *stack = stacks_.take();
  ++(stack ? counts.forked : counts.inlined);
  return stack;
}

void Tasks::setUp(Task &task, EntryFn fn, const Slot *args, Slot *results, const uint8_t *frame) {
  task.fn = fn;
  task.args = args;
  task.results = results;
  task.walk = current_->walk;
  task.walk->forked = true;
  task.parent = current_;
  task.number = current_->forks++;
  task.room = {std::nullopt, room_.below(frame)};
  if (ReadWatch *watch = context_.readWatch)
    task.logged = watch->fork(current_->logged);
}

void Tasks::fork(Task &task, HostStack *stack, EntryFn fn, const Slot *args, Slot *results,
                 const uint8_t *frame) {
  setUp(task, fn, args, results, frame);
  start(task, stack);
}

void Tasks::forkBehind(Task &task, Task &other, EntryFn fn, RootFrame *needs, Slot *results,
                       const uint8_t *frame) {
  ++counts.forked;
  setUp(task, fn, needs->slots(), results, frame);
  ++task.walk->open;
  task.roots = needs;
  awaits(task, other);
  other.heir = &task;
}

void Tasks::awaits(Task &joiner, Task &task) {
  joiner.state = Task::Joining;
  joiner.joined = &task;
  joiner.next = task.joiners;
  task.joiners = &joiner;
}

void Tasks::runInline(EntryFn fn, const Slot *args, Slot *results, const uint8_t *frame) {
  StackRoom before = room_;
  ReadWatch *watch = context_.readWatch;
  uint32_t logged = current_->logged;
  if (watch)
    current_->logged = watch->fork(logged);
  setRoom({std::nullopt, room_.below(frame)});
  fn(&context_, args, results);
  setRoom(before);
  if (watch)
    watch->end(std::exchange(current_->logged, logged));
  ++current_->forks;
}

void Tasks::join(Task &task) {
  if (!task.hasEnded()) {
    awaits(*current_, task);
    leave(Task::Joining);
  }
  if (task.state == Task::Failed || current_->walk->stopped) {
    failure_ = {};
    abandon();
  }
}

void Tasks::abandon() { current_->stack->abandon(); }

} // namespace sheaf::rt

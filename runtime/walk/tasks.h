//===- tasks.h - Instances that wait, and calls beside them -----*- C++ -*-===//
//
// A task is one thread of control of generated host code: an instance, or a call that an instance
// forked because something that follows it does not depend on it. Each has a stack of its own. A
// task runs until it ends or waits: for tensors (sheaf_wait) or for another task (sheaf_join). All
// tasks of a session run on one machine thread, one at a time; no result depends on their order.
//
// A fork that finds no free stack is run by the one who forked, as a plain call: it never waits for
// a stack, so whoever has one can always go on. So is one where enough wait already (forking.h).
//
// A fork that needs what another leaves takes the stack of that one when it has ended, and holds
// none before. It is one of its joiners until then.
//
// A task joins what it forked itself, or what its parent had forked before it. In the order of the
// program that has ended before the place where the task stands; and what is run as a plain call
// has ended before anyone knows of it, so no one waits for a task through another's stack. Hence no
// tasks wait for each other in a circle.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_TASKS_H
#define SHEAF_RUNTIME_WALK_TASKS_H

#include "runtime/measure/trace.h"
#include "runtime/memory/held_memory.h"
#include "runtime/memory/rows.h"
#include "runtime/model/abi.h"
#include "runtime/walk/forking.h"
#include "runtime/walk/host_stack.h"
#include "runtime/walk/read_watch.h"

#include <bit>
#include <functional>
#include <optional>
#include <utility>

namespace sheaf::rt {

/// Why an instance was given up.
struct Failure {
  enum Kind {
    None,
    Message,
    Stack,
    Rows,
    Names, ///< of rows that were to be promised
    Heap,
    Records,
    Scratch,
    Depth,
    Reads,
    Stopped
  } kind = None;
  uint32_t message = 0; ///< Message: index into Model::messages
  int64_t a = 0, b = 0; ///< Message: {0} and {1}; Rows, Names, Records, Depth: a is 1 + the kernel,
                        ///< or 0; Reads: a is the place, and b whether the code is too old
  uint64_t wanted = 0;  ///< Rows: granules; Names, Heap, Scratch: bytes; Depth: the depth

  bool isOfMemory() const { return kind >= Stack && kind <= Scratch; }
};

/// What memory held when there was too little.
struct Shortage {
  HeldMemory held;
  uint64_t promised = 0;                 ///< bytes of rows that have names, and no place yet
  std::optional<uint64_t> addressesLeft; ///< Rows: for so many bytes, where that is too few
};

/// One instance on its way.
struct Walk {
  /// Bounds of this instance; 0: the session's, or none.
  struct Limits {
    int64_t steps = 0;       ///< calls of recursive functions; the session's if that is less
    uint64_t stackBytes = 0; ///< of frames; the session's if that is less
    uint64_t granules = 0;   ///< of all rows that it records
  };

  int64_t instance = 0;       ///< Instance::index
  uint64_t key = 0;           ///< what its draws follow from
  const Slot *args = nullptr; ///< as they were brought in
  Slot *results = nullptr;
  Slot *emitted = nullptr; ///< of these the list of what it has emitted; null: it does not
  uint64_t certain = 0;    ///< of these so many before which no call that was forked can fail
  Limits limits;
  unsigned open = 0;            ///< tasks that have not ended
  int64_t stepsLeft = 0;        ///< of all its tasks together
  uint64_t granules = 0;        ///< with Tasks::rows: of rows recorded, found or new
  uint32_t deepest = 0;         ///< of all handles of the first phase that it was given, the depth
  bool hasLater = false;        ///< records of later phases, since that was last asked
  bool foundLater = false;      ///< one that another had made
  bool stopped = false;         ///< nothing of it goes on
  bool inOrder = false;         ///< it forks nothing: calls run as plain ones
  bool forked = false;          ///< calls of it ran side by side
  bool lacksReads = false;      ///< it read what is known when it begins again (ReadWatch)
  uint32_t logged = 0;          ///< with Context::readWatch: its first task's number there
  const Task *failed = nullptr; ///< the first that failed, in the order of the program
  Shortage shortage = {};       ///< when it did

  bool hasTooManyRows() const { return limits.granules > 0 && granules > limits.granules; }
  /// It ran out of steps, but which call took the last follows from what ran when; and of others
  /// that failed, one may have come too late by then. Likewise, how many rows it had when it
  /// failed. Walked again in order, it fails where the program does.
  bool isUncertain() const {
    return lacksReads ||
           (forked &&
            (stepsLeft <= 0 || (limits.granules > 0 && (failed != nullptr || hasTooManyRows()))));
  }
};

/// How deep the frames of a task may still reach. It is the same wherever they stand: a call that
/// was forked may take what its caller had left, as if it had been a plain one, and bytes are
/// counted from one frame of the program to the next.
struct StackRoom {
  /// An address that frames must stand above; it may be below all addresses that there are.
  std::optional<int64_t> limit;
  uint64_t bytes = 0; ///< without a limit: below the next frame that asks (sheaf_deepen)
  uint64_t below(const uint8_t *frame) const {
    if (!limit)
      return bytes;
    int64_t left = std::bit_cast<int64_t>(frame) - *limit;
    return left > 0 ? static_cast<uint64_t>(left) : 0;
  }
};

struct Task {
  EntryFn fn = nullptr;
  const Slot *args = nullptr;
  Slot *results = nullptr;
  Walk *walk = nullptr;
  Task *parent = nullptr;
  uint32_t number = 0; ///< among the forks of its parent
  uint32_t forks = 0;  ///< calls that it has forked
  HostStack *stack = nullptr;
  StackRoom room; ///< while it does not run
  enum State : uint8_t { Ready, Running, Waiting, Joining, Done, Failed } state = Ready;
  uint32_t waitsAt = 0;        ///< Waiting: for which read (Model::readPlaces)
  uint32_t waitsFor = 0;       ///< Waiting: until what stands at this depth is computed
  uint32_t logged = 0;         ///< with Context::readWatch: of what runs of it, the number there
  RootFrame *roots = nullptr;  ///< Waiting, Joining: what the calls on its stack still need
  Task *joined = nullptr;      ///< Joining: the one that it waits for
  Task *joiners = nullptr;     ///< wait for this one
  Task *heir = nullptr;        ///< one of these, which has not begun: it gets the stack
  Task *next = nullptr;        ///< in a queue, or among those that wait for the same
  Failure failure;             ///< None: it failed because one that it joined did
  mutable uint64_t keptIn = 0; ///< the last time that looking for what is needed came by

  bool hasEnded() const { return state == Done || state == Failed; }
  bool leavesStack() const { return !hasEnded() && !heir; }
};

class Tasks {
public:
  /// `failure`: where code on a stack says why it gives up.
  Tasks(Context &context, HostStacks &stacks, Failure &failure, int64_t maxSteps)
      : context_(context), stacks_(stacks), failure_(failure), maxSteps_(maxSteps) {}

  /// Makes an instance ready to run on `stack`. `task` is the caller's memory.
  void start(Task &task, HostStack *stack);
  /// Runs tasks until none is ready. Calls `ended` for each instance whose last task has ended.
  template <typename Ended> void run(Ended ended) {
    while (Walk *walk = runUntilEnd())
      ended(*walk);
  }
  bool anyWaits() const { return waiting_.first != nullptr; }
  /// Calls `visit` with all tasks that have not ended. None is ready.
  template <typename Visit> void forEachWaiting(Visit visit) const {
    // Whoever joins waits, through others, for one that waits: these are trees.
    for (const Task *waiting = waiting_.first; waiting; waiting = waiting->next)
      for (const Task *task = waiting; task; task = behind(*task, *waiting))
        visit(*task);
  }
  /// What all that wait have waited for is there; or what those tasks that `isMeant` have.
  void wake();
  template <typename IsMeant> void wake(IsMeant isMeant) {
    Queue others;
    while (Task *task = waiting_.pop())
      (isMeant(std::as_const(*task)) ? ready_ : others).push(task);
    waiting_ = others;
  }
  /// The greatest depth that any of them waits for; 0 where none does.
  uint32_t deepestWait() const;
  /// It will never be: all that wait, and all that will, are given up.
  void stop();
  /// Before the next mini-batch.
  void begin() {
    stopped_ = false;
    open_ = toCome = 0;
  }

  // From generated code.
  void wait(uint32_t place, uint32_t depth);
  /// Grants calls of recursive functions; false when the instance has had all that it may.
  bool moreSteps();
  /// Grants rounds of loops.
  void moreRounds();
  Walk &walk() { return *current_->walk; }
  /// What counts as read; nothing when whoever follows reads does not know.
  std::optional<Slot> read(LoggedRead read);
  /// Whether host code is to fork a call; then stackForFork() is called next. Else it makes the
  /// call itself.
  bool asked();
  /// A stack for a fork, or null: then the caller runs it itself. `wasAsked`: whether it gets one
  /// was decided then.
  HostStack *stackForFork(bool wasAsked = true);
  /// `task` is fresh memory for the fork. `frame`: of the function that host code called.
  void fork(Task &task, HostStack *stack, EntryFn fn, const Slot *args, Slot *results,
            const uint8_t *frame);
  /// A fork that begins when `other` has ended, on its stack, which no one else gets. `needs`: its
  /// arguments.
  void forkBehind(Task &task, Task &other, EntryFn fn, RootFrame *needs, Slot *results,
                  const uint8_t *frame);
  /// A fork that the caller runs itself.
  void runInline(EntryFn fn, const Slot *args, Slot *results, const uint8_t *frame);
  void join(Task &task);
  /// Makes room on the stack of what runs; see HostStacks. Further: goOn() is called next.
  HostStacks::Deepened deepen(const uint8_t *frame);
  /// Runs a call further down on the stack of what runs; false when there are no addresses for it.
  bool goOn(EntryFn fn, const Slot *args, Slot *results);
  [[noreturn]] void abandon();
  int64_t maxSteps() const { return maxSteps_; }

  /// Given, the rows that every walk records are counted: what is handed out while it runs, and
  /// what it finds instead (`found`).
  const RowSpace *rows = nullptr;
  /// Granules of results that records found, or that are kept; and what rows count that were
  /// appended, less what was handed out for them.
  uint64_t found = 0;
  /// Of what runs now: Walk::deepest, Walk::hasLater, Walk::foundLater.
  uint32_t deepest = 0;
  bool hasLater = false, foundLater = false;

  /// Asked again and again while host code of this instance runs: whether it is to end.
  std::function<bool(Walk &)> isInterrupted;

  /// When what ran last failed for want of memory.
  Shortage shortage;

  /// Where stretches of host code are noted, if anywhere.
  Trace *trace = nullptr;

  /// When calls are forked.
  Forking forking = Forking::Always;
  uint32_t worth = 0;  ///< Forking::Worth: while fewer other instances are there (ForkWorth)
  uint64_t toCome = 0; ///< instances of the mini-batch that have not begun

  /// Counts until someone takes them away.
  struct Counts {
    uint64_t forked = 0, inlined = 0, inPlace = 0, waits = 0;
  };
  Counts counts;

private:
  struct Queue {
    Task *first = nullptr, *last = nullptr;
    void push(Task *task);
    /// Takes all of the other's.
    void append(Queue &other);
    Task *pop();
  };

  /// Of stretches that are noted and have no times yet.
  struct Untimed {
    uint64_t begin = 0; ///< of the first
    size_t count = 0;
    bool areShort = false; ///< those before were
  };

  /// The next of the tree of those that wait for `root`.
  static const Task *behind(const Task &task, const Task &root) {
    if (task.joiners)
      return task.joiners;
    const Task *at = &task;
    while (at != &root && !at->next)
      at = at->joined;
    return at == &root ? nullptr : at->next;
  }

  Walk *runUntilEnd();
  Walk *runReady();
  HostStack::Left runCurrent();
  bool paysToFork();
  bool forks();
  void setUp(Task &task, EntryFn fn, const Slot *args, Slot *results, const uint8_t *frame);
  void awaits(Task &joiner, Task &task);
  Walk *ended(Task &task);
  void note(const Task &task, HostStack::Left left);
  /// Stretches that share a reading of the clock divide the time evenly.
  void readClock();
  void noteSteps();
  void grantSteps(int64_t steps);
  bool interrupts(Walk &walk);
  void goOnUnlessInterrupted();
  void prefetchNext() const;
  void leave(Task::State state);
  /// What runs has this room from now on, on the range of its stack that it is on.
  void setRoom(const StackRoom &room);

  Context &context_;
  HostStacks &stacks_;
  Failure &failure_;
  int64_t maxSteps_;
  Queue ready_, waiting_;
  Task *current_ = nullptr;
  uint64_t open_ = 0;  ///< instances that have begun and not ended
  uint64_t asked_ = 0; ///< whether to fork
  /// Whether the next call that is forked is to get a stack; not known before forks() is asked.
  std::optional<bool> forks_;
  StackRoom room_;          ///< of what runs
  int64_t stepsBeyond_ = 0; ///< of what runs: beside Context::stepsLeft
  unsigned begun_ = 0;      ///< tasks that went on
  uint64_t goesOnWith_ = 0; ///< bytes that a call has which goOn() is to run
  Untimed untimed_;
  bool stopped_ = false;
  bool inVain_ = false; ///< what runs comes after a failure that counts already
};

/// Sets Tasks::isInterrupted for a while.
class Interrupts {
public:
  Interrupts(Tasks &tasks, std::function<bool(Walk &)> isInterrupted) : tasks_(tasks) {
    tasks.isInterrupted = std::move(isInterrupted);
  }
  ~Interrupts() { tasks_.isInterrupted = nullptr; }
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;

private:
  Tasks &tasks_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_TASKS_H

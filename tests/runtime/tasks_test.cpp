//===- tasks_test.cpp - Waiting, forking, joining, giving up --------------===//

#include "runtime/measure/trace.h"
#include "runtime/memory/sanitizer.h"
#include "runtime/walk/tasks.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace sheaf::rt {
namespace {

/// What the code of these tests is given as its first argument.
struct Bench {
  Context context{};
  MemoryMeter meter{uint64_t(1) << 30};
  MemoryKind memory;
  HostStacks stacks;
  Failure failure;
  Tasks tasks;
  std::deque<Task> made;
  std::vector<std::unique_ptr<Slot[]>> kept;

  explicit Bench(unsigned count, uint64_t bytes = uint64_t(1) << 16)
      : stacks({bytes, count, /*further=*/true}, meter, memory),
        tasks(context, stacks, failure, 1000) {}

  Task *fork(EntryFn fn, const Slot *args, Slot *results) {
    const auto *frame = static_cast<const uint8_t *>(__builtin_frame_address(0));
    if (HostStack *stack = tasks.stackForFork()) {
      Task &task = made.emplace_back();
      tasks.fork(task, stack, fn, args, results, frame);
      return &task;
    }
    tasks.runInline(fn, args, results, frame);
    return nullptr;
  }
  void join(Task *task) {
    if (task)
      tasks.join(*task);
  }
  /// As host code does where a function begins; true when it has gone on further down.
  bool wentOn(EntryFn fn, const Slot *args, Slot *results, const void *frame) {
    if (static_cast<const uint8_t *>(frame) > context.stackTaken)
      return false;
    switch (tasks.deepen(static_cast<const uint8_t *>(frame))) {
    case HostStacks::Deepened::Done:
      return false;
    case HostStacks::Deepened::Further:
      ++further;
      return tasks.goOn(fn, args, results);
    case HostStacks::Deepened::UsedUp:
      fail(kUsedUp);
    case HostStacks::Deepened::NoMemory:
      fail(kNoMemory);
    }
    return false;
  }
  static constexpr uint32_t kUsedUp = 77, kNoMemory = 78;
  int further = 0; ///< calls that went on further down
  [[noreturn]] void fail(uint32_t message) {
    failure = {Failure::Message, message, 0, 0, 0};
    tasks.abandon();
  }

  /// Runs instances as a session does; gives the messages of those that failed, -1 for the others.
  std::vector<int> run(EntryFn fn, std::vector<Slot> arguments, int *flushes = nullptr) {
    std::deque<Walk> walks(arguments.size());
    std::deque<Task> roots(arguments.size());
    std::vector<std::array<Slot, 2>> args(arguments.size());
    results.assign(arguments.size(), 0);
    std::vector<int> outcome(arguments.size(), -2);
    size_t next = 0;
    auto ended = [&](const Walk &walk) {
      outcome[static_cast<size_t>(walk.instance)] =
          walk.failed ? static_cast<int>(walk.failed->failure.message) : -1;
    };
    for (;;) {
      tasks.toCome = arguments.size() - next;
      tasks.run(ended);
      HostStack *stack = next < arguments.size() ? stacks.take() : nullptr;
      if (stack) {
        args[next] = {reinterpret_cast<Slot>(this), arguments[next]};
        walks[next].instance = static_cast<int64_t>(next);
        walks[next].inOrder = inOrder;
        roots[next].fn = fn;
        roots[next].walk = &walks[next];
        roots[next].args = args[next].data();
        roots[next].results = &results[next];
        tasks.start(roots[next], stack);
        ++next;
      } else if (tasks.anyWaits()) {
        if (flushes)
          ++*flushes;
        tasks.wake();
      } else {
        return outcome;
      }
    }
  }
  std::vector<Slot> results;
  bool inOrder = false; ///< Walk::inOrder of the instances
};

Bench &bench(const Slot *args) { return *reinterpret_cast<Bench *>(args[0]); }

/// Waits args[1] times.
void waits(Context *, const Slot *args, Slot *results) {
  for (Slot i = 0; i < args[1]; ++i)
    bench(args).tasks.wait(0, 0);
  results[0] = args[1];
}

TEST(Tasks, InstancesWaitTogether) {
  Bench b(8);
  int flushes = 0;
  EXPECT_EQ(b.run(waits, {3, 0, 5, 1}, &flushes), (std::vector<int>{-1, -1, -1, -1}));
  EXPECT_EQ(flushes, 5);
  EXPECT_EQ(b.results, (std::vector<Slot>{3, 0, 5, 1}));
}

/// Is to fork a call, and has none; with args[1], asks for a stack.
void asks(Context *, const Slot *args, Slot *results) {
  if (args[1])
    results[0] = bench(args).tasks.stackForFork(/*wasAsked=*/false) != nullptr;
  else
    results[0] = bench(args).tasks.asked();
}

TEST(Tasks, AnotherHasNoSayInAWalkInOrder) {
  Bench b(4);
  b.run(asks, {0});
  EXPECT_EQ(b.results, std::vector<Slot>{1});
  b.inOrder = true;
  b.run(asks, {1, 0});
  EXPECT_EQ(b.results, (std::vector<Slot>{0, 0}));
}

TEST(Tasks, ThoseThatEndMakeRoom) {
  Bench b(2);
  int flushes = 0;
  b.run(waits, {1, 3, 1, 1}, &flushes);
  // Two at a time: 1 and 3, then the others one after the other beside the 3.
  EXPECT_EQ(flushes, 3);
}

/// A tree of forks, as deep as args[1]; every leaf waits once. Gives the number of leaves.
void tree(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  if (args[1] == 0) {
    b.tasks.wait(0, 0);
    results[0] = 1;
    return;
  }
  // On the stack of the parent, which is there until it has joined.
  Slot inner[2] = {args[0], args[1] - 1}, left[1], right[1];
  Task *task = b.fork(tree, inner, left);
  tree(&b.context, inner, right);
  b.join(task);
  results[0] = left[0] + right[0];
}

TEST(Tasks, ForksWaitSideBySide) {
  Bench b(64);
  int flushes = 0;
  EXPECT_EQ(b.run(tree, {5}, &flushes), std::vector<int>{-1});
  EXPECT_EQ(b.results[0], 32u);
  EXPECT_EQ(flushes, 1);
  EXPECT_EQ(b.tasks.counts.forked, 31u);
}

TEST(Tasks, ATraceHasEveryStretchInOrder) {
  Bench b(64);
  Trace trace(1);
  b.tasks.trace = &trace;
  b.run(tree, {5, 0, 3});
  // A leaf waits and ends; what forks another joins it and ends. One call of two is a task.
  ASSERT_EQ(trace.walks.size(), 3 * 32u - 1 + 2 + 3 * 8u - 1);
  uint64_t before = 0;
  std::array<int, 4> left{};
  for (const TraceWalk &walk : trace.walks) {
    EXPECT_LE(before, walk.span.begin);
    EXPECT_LE(walk.span.begin, walk.span.end);
    before = walk.span.end;
    ++left[walk.left];
  }
  EXPECT_EQ(left[TraceWalk::Waits], 32 + 1 + 8);
  EXPECT_EQ(left[TraceWalk::Ended], 32 + 1 + 8);
}

TEST(Tasks, FewStacksChangeNothingButSpeed) {
  for (unsigned stacks : {1, 2, 3, 5}) {
    Bench b(stacks);
    EXPECT_EQ(b.run(tree, {5, 3}), (std::vector<int>{-1, -1})) << stacks;
    EXPECT_EQ(b.results, (std::vector<Slot>{32, 8})) << stacks;
    EXPECT_GT(b.tasks.counts.inlined, 0u);
  }
}

TEST(Tasks, WhereEnoughWaitCallsRunInPlace) {
  // With as many other instances none is forked.
  for (size_t instances : {1, 3, 8}) {
    Bench b(64);
    int flushes = 0;
    b.tasks.forking = Forking::Worth;
    b.tasks.worth = 7;
    std::vector<Slot> depths(instances, 5);
    EXPECT_EQ(b.run(tree, depths, &flushes), std::vector<int>(instances, -1));
    EXPECT_EQ(b.results, std::vector<Slot>(instances, 32));
    EXPECT_EQ(b.tasks.counts.forked + b.tasks.counts.inPlace, 31 * instances);
    EXPECT_EQ(b.tasks.counts.forked > 0, instances < 8) << instances;
    if (instances == 8)
      EXPECT_EQ(flushes, 32); // a leaf of each at a time
    else
      EXPECT_LE(flushes, 16) << instances;
  }
}

TEST(Tasks, HowCallsAreForkedChangesNoResult) {
  for (Forking forking : {Forking::Always, Forking::Never, Forking::Alternately}) {
    Bench b(64);
    b.tasks.forking = forking;
    EXPECT_EQ(b.run(tree, {5, 3}), (std::vector<int>{-1, -1}));
    EXPECT_EQ(b.results, (std::vector<Slot>{32, 8}));
    EXPECT_EQ(b.tasks.counts.forked > 0, forking != Forking::Never);
    EXPECT_EQ(b.tasks.counts.inPlace > 0, forking != Forking::Always);
    EXPECT_EQ(b.tasks.counts.inlined, 0u);
  }
}

TEST(Tasks, AWalkInOrderForksNothing) {
  for (bool inOrder : {false, true}) {
    Bench b(64);
    int flushes = 0;
    b.inOrder = inOrder;
    EXPECT_EQ(b.run(tree, {5}, &flushes), std::vector<int>{-1});
    EXPECT_EQ(b.results[0], 32u);
    EXPECT_EQ(flushes, inOrder ? 32 : 1);
    EXPECT_EQ(b.tasks.counts.forked, inOrder ? 0u : 31u);
    EXPECT_EQ(b.tasks.counts.inlined, 0u);
  }
}

/// Waits args[2] times after what args[3], a task, has left in args[4] is there; gives the sum.
void waitsAfter(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  b.join(reinterpret_cast<Task *>(args[3]));
  for (Slot i = 0; i < args[2]; ++i)
    b.tasks.wait(0, 0);
  results[0] = args[2] + *reinterpret_cast<const Slot *>(args[4]);
}

/// Forks a call that waits 5 times and args[1] others that take what it leaves, or what one of them
/// leaves. Beside them the caller waits 9 times.
void starOfJoins(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  Slot count = args[1];
  auto *memory = new Slot[3 + 6 * count]{args[0], 5};
  b.kept.emplace_back(memory);
  Task *first = b.fork(waits, memory, memory + 2);
  std::vector<Task *> others;
  for (Slot i = 0; i < count; ++i) {
    Slot *own = memory + 3 + 6 * i;
    own[0] = args[0];
    own[2] = i % 4;
    // Every third waits for the one before it, which waits for the first.
    bool second = i % 3 == 2;
    own[3] = reinterpret_cast<Slot>(second ? others.back() : first);
    own[4] = reinterpret_cast<Slot>(second ? own - 1 : memory + 2);
    others.push_back(b.fork(waitsAfter, own, own + 5));
  }
  for (int i = 0; i < 9; ++i)
    b.tasks.wait(0, 0);
  results[0] = 0;
  for (Slot i = 0; i < count; ++i) {
    b.join(others[i]);
    results[0] += memory[3 + 6 * i + 5];
  }
}

TEST(Tasks, SeveralMayJoinOne) {
  for (unsigned stacks : {1, 2, 3, 8, 64}) {
    Bench b(stacks);
    int flushes = 0;
    EXPECT_EQ(b.run(starOfJoins, {20}, &flushes), std::vector<int>{-1}) << stacks;
    // 5 each, and 0 to 3 of its own; of every third the sum of the one before it.
    Slot sum = 0, last = 0;
    for (Slot i = 0; i < 20; ++i)
      sum += last = i % 4 + (i % 3 == 2 ? last : 5);
    EXPECT_EQ(b.results[0], sum) << stacks;
    if (stacks == 64)
      EXPECT_EQ(flushes, 10); // 5, then 2 and 3 of those numbered 10 and 11
  }
}

/// Forks args[1] calls one after the other, each of which waits twice and takes what the one
/// before leaves; waits itself 3 times, and joins the last.
void chainOfHeirs(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  Slot count = args[1];
  struct Link {
    Slot result;
    RootFrame frame;
    Slot args[5];
  };
  auto *memory = new Slot[3 + count * sizeof(Link) / sizeof(Slot)]{args[0], 1};
  b.kept.emplace_back(memory);
  auto *links = reinterpret_cast<Link *>(memory + 3);
  Task *last = b.fork(waits, memory, memory + 2);
  for (Slot i = 0; i < count; ++i) {
    Link &link = links[i];
    const Slot *before = i > 0 ? &links[i - 1].result : memory + 2;
    Slot needs[] = {args[0], 0, 2, reinterpret_cast<Slot>(last), reinterpret_cast<Slot>(before)};
    std::copy(std::begin(needs), std::end(needs), link.args);
    if (last && last->leavesStack()) {
      Task &task = b.made.emplace_back();
      b.tasks.forkBehind(task, *last, waitsAfter, &link.frame, &link.result,
                         static_cast<const uint8_t *>(__builtin_frame_address(0)));
      EXPECT_FALSE(last->leavesStack());
      last = &task;
    } else {
      last = b.fork(waitsAfter, link.args, &link.result);
    }
  }
  for (int i = 0; i < 3; ++i)
    b.tasks.wait(0, 0);
  b.join(last);
  results[0] = links[count - 1].result;
}

TEST(Tasks, AForkTakesTheStackOfTheOneThatItNeeds) {
  for (unsigned stacks : {1, 2, 3, 4}) {
    Bench b(stacks);
    int flushes = 0;
    EXPECT_EQ(b.run(chainOfHeirs, {30, 10}, &flushes), (std::vector<int>{-1, -1})) << stacks;
    EXPECT_EQ(b.results, (std::vector<Slot>{61, 21})) << stacks;
    // Two each are enough: its own and that of the chain.
    EXPECT_EQ(b.tasks.counts.inlined > 0, stacks % 2 == 1) << stacks;
    if (stacks == 4)
      EXPECT_EQ(flushes, 61);
  }
}

TEST(Tasks, AllThatJoinAreVisitedOnce) {
  for (EntryFn fn : {starOfJoins, chainOfHeirs}) {
    Bench b(64);
    Walk walk;
    Task root;
    Slot args[2] = {reinterpret_cast<Slot>(&b), 20}, results[1];
    root.fn = fn;
    root.walk = &walk;
    root.args = args;
    root.results = results;
    b.tasks.start(root, b.stacks.take());
    int ended = 0;
    while (ended == 0) {
      b.tasks.run([&](const Walk &) { ++ended; });
      std::map<const Task *, int> visits;
      b.tasks.forEachWaiting([&](const Task &task) { ++visits[&task]; });
      EXPECT_EQ(visits.size(), walk.open);
      for (auto [task, count] : visits)
        EXPECT_EQ(count, 1);
      b.tasks.wake();
    }
  }
}

TEST(Tasks, StoppingGivesUpAllThatWait) {
  for (EntryFn fn : {tree, chainOfHeirs}) {
    Bench b(64);
    Walk walk;
    Task root;
    Slot args[2] = {reinterpret_cast<Slot>(&b), 5}, results[1];
    root.fn = fn;
    root.walk = &walk;
    root.args = args;
    root.results = results;
    b.tasks.start(root, b.stacks.take());
    int ended = 0;
    b.tasks.run([&](const Walk &) { ++ended; });
    EXPECT_EQ(ended, 0);
    b.tasks.stop();
    b.tasks.run([&](const Walk &walk) {
      ++ended;
      ASSERT_TRUE(walk.failed);
      EXPECT_EQ(walk.failed->failure.kind, Failure::Stopped);
    });
    EXPECT_EQ(ended, 1);
    EXPECT_FALSE(b.tasks.anyWaits());
    // A later mini-batch waits again.
    b.tasks.begin();
    EXPECT_EQ(b.run(tree, {3}), std::vector<int>{-1});
  }
}

/// Fails with message args[1] % 100 after args[1] / 100 waits; 0 does not fail.
void failing(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  for (Slot i = 0; i < args[1] / 100; ++i)
    b.tasks.wait(0, 0);
  if (args[1] % 100)
    b.fail(static_cast<uint32_t>(args[1] % 100));
  results[0] = 0;
}

/// Forks two calls and makes a third itself, with the six digits of args[1] in pairs: each waits
/// for the first and fails with the second.
void three(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  auto part = [&](Slot digits) { return digits / 10 * 100 + digits % 10; };
  // In memory that outlives this call: a fork goes on when its parent has failed.
  auto *memory =
      new Slot[9]{args[0], part(args[1] / 10000), 0, args[0], part(args[1] / 100 % 100), 0,
                  args[0], part(args[1] % 100),   0};
  b.kept.emplace_back(memory);
  Task *first = b.fork(failing, memory, memory + 2);
  Task *second = b.fork(failing, memory + 3, memory + 5);
  failing(&b.context, memory + 6, memory + 8);
  b.join(first);
  b.join(second);
  results[0] = 7;
}

/// Runs three(), or what is like it, with digits that fail in all orders.
void expectFirstFailures(EntryFn fn, std::initializer_list<unsigned> stackCounts) {
  // Waits and message of the first, the second, and the caller's own part.
  const std::vector<std::pair<Slot, int>> cases = {
      {0, -1},     {1, 1},      {100, 1},    {10000, 1},  {510203, 1},
      {310203, 1}, {205203, 2}, {900003, 3}, {905204, 2}, {110000, 1},
  };
  for (unsigned stacks : stackCounts) {
    Bench b(stacks);
    std::vector<Slot> arguments;
    std::vector<int> expected;
    for (auto [argument, message] : cases) {
      arguments.push_back(argument);
      expected.push_back(message);
    }
    EXPECT_EQ(b.run(fn, arguments), expected) << stacks;
  }
}

TEST(Tasks, TheFirstFailureInTheProgramCounts) { expectFirstFailures(three, {1, 2, 16}); }

/// Forks a call, one that takes what it leaves, and makes a third itself; as three().
void chained(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  auto part = [&](Slot digits) { return digits / 10 * 100 + digits % 10; };
  auto *memory =
      new Slot[12]{args[0], part(args[1] / 10000), 0, args[0], part(args[1] / 100 % 100), 0, 0, 0,
                   args[0], part(args[1] % 100),   0};
  b.kept.emplace_back(memory);
  Task *first = b.fork(failing, memory, memory + 2);
  memory[5] = reinterpret_cast<Slot>(first);
  Task *second = b.fork(
      [](Context *, const Slot *args, Slot *results) {
        bench(args).join(reinterpret_cast<Task *>(args[2]));
        failing(nullptr, args, results);
      },
      memory + 3, memory + 6);
  failing(&b.context, memory + 8, memory + 10);
  b.join(second);
  results[0] = 7;
}

TEST(Tasks, WhoTakesWhatAFailureLeftFailsForNoReasonOfItsOwn) {
  expectFirstFailures(chained, {1, 2, 3, 30});
}

/// Calls itself args[1] times, every third time as a fork, and waits at the end and on the way
/// back.
void deep(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  if (b.wentOn(deep, args, results, __builtin_frame_address(0)))
    return;
  if (args[1] == 0) {
    b.tasks.wait(0, 0);
    results[0] = 0;
    return;
  }
  auto *memory = new Slot[3]{args[0], args[1] - 1, 0};
  b.kept.emplace_back(memory);
  if (args[1] % 3 == 0)
    b.join(b.fork(deep, memory, memory + 2));
  else
    deep(&b.context, memory, memory + 2);
  if (args[1] % 50 == 0)
    b.tasks.wait(0, 0);
  results[0] = memory[2] + 1;
}

TEST(Tasks, DeepCallsGoOnOnAFurtherRange) {
  Bench b(4, uint64_t(8) << 20);
  EXPECT_EQ(b.run(deep, {3000, 2, 2500, 2000, 1500, 1000}), std::vector<int>(6, -1));
  EXPECT_EQ(b.results, (std::vector<Slot>{3000, 2, 2500, 2000, 1500, 1000}));
  EXPECT_GT(b.further, 0);
  EXPECT_GT(b.memory.now, 0u);
  EXPECT_TRUE(b.stacks.giveBack());
  EXPECT_EQ(b.memory.now, 0u);
  EXPECT_FALSE(b.stacks.giveBack());
}

TEST(Tasks, HowDeepCallsMayBeDoesNotDependOnStacks) {
  auto deepest = [](unsigned stacks, bool inOrder) {
    Slot some = 1, tooMany = 20000;
    Bench b(stacks, uint64_t(1) << 19);
    b.inOrder = inOrder;
    while (tooMany - some > 1) {
      Slot middle = (some + tooMany) / 2;
      int outcome = b.run(deep, {middle})[0];
      EXPECT_TRUE(outcome == -1 || outcome == int(Bench::kUsedUp)) << outcome;
      (outcome == -1 ? some : tooMany) = middle;
    }
    return some;
  };
  Slot one = deepest(1, false);
  EXPECT_GT(one, 100u);
  EXPECT_LT(one, 10000u);
  // The address sanitizer aligns frames of these functions as it needs.
  const double off = kPoisoning ? 0.05 * static_cast<double>(one) : 0;
  auto expectAlike = [&](Slot other) {
    EXPECT_NEAR(static_cast<double>(other), static_cast<double>(one), off);
  };
  for (unsigned stacks : {2, 7, 64, 20000})
    expectAlike(deepest(stacks, false));
  expectAlike(deepest(7, true));
}

/// A recursion without end that forks.
void endless(Context *, const Slot *args, Slot *results) {
  Bench &b = bench(args);
  if (b.wentOn(endless, args, results, __builtin_frame_address(0)))
    return;
  auto *memory = new Slot[3]{args[0], args[1] + 1, 0};
  b.kept.emplace_back(memory);
  if (args[1] % 40 == 0)
    b.join(b.fork(endless, memory, memory + 2));
  else
    endless(&b.context, memory, memory + 2);
  results[0] = memory[2];
}

TEST(Tasks, CallsGivenUpFurtherDownLeaveTheirStacksFree) {
  Bench b(8, uint64_t(1) << 20);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(b.run(endless, {0, 0, 0}), std::vector<int>(3, int(Bench::kUsedUp)));
    EXPECT_EQ(b.run(deep, {1000, 900}), std::vector<int>(2, -1));
  }
}

} // namespace
} // namespace sheaf::rt

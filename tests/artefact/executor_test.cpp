// Engines that share threads, in one executor and beside each other: every result is that of the
// instance alone, and none keeps the others from their turns.
#include "runtime/session/executor.h"

#include "runtime/device/device.h"
#include "runtime/devices/devices.h"
#include "runtime/session/invalid_argument.h"
#include "tests/artefact/engine_case.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

constexpr int64_t kLimits = 25;

/// main(limit): `limit` steps, each of which reads; a negative one has no end.
class ExecutorTest : public EngineCase {
protected:
  ExecutorTest() : EngineCase(SHEAF_GOLDEN "/v2_3.sheafc") {
    Session reference(model, small());
    for (int64_t limit = 0; limit < kLimits; ++limit) {
      arguments[static_cast<size_t>(limit)] = {limit};
      Instance instance{argument(limit), 0};
      alone[static_cast<size_t>(limit)] =
          text(reference, reference.run(std::span(&instance, 1))[0]);
    }
  }

  const Slot *argument(int64_t limit) const { return arguments[static_cast<size_t>(limit)].data(); }

  std::array<std::array<Slot, 1>, kLimits> arguments;
  std::array<std::string, kLimits> alone; ///< what each instance gives alone
  const std::array<Slot, 1> endless{-1};
};

/// An engine with a session of its own, and what became of its instances.
struct Served {
  Served(const Model &model, const SessionOptions &options)
      : session(model, options), engine(std::in_place, session) {}

  Session session;
  std::optional<Engine> engine;
  std::atomic<int64_t> ended = 0, wrong = 0;
};

class SharedThreads : public ExecutorTest, public testing::WithParamInterface<unsigned> {
protected:
  void
  submit(Served &served, int64_t limit, int64_t number, std::function<void()> then = [] {}) const {
    served.engine->submit({.instance = {argument(limit), number},
                           .done = [this, &served, limit, then](const Outcome &outcome) {
                             served.wrong +=
                                 text(served.session, outcome) != alone[static_cast<size_t>(limit)];
                             ++served.ended;
                             then();
                           }});
  }
};
using EnginesInTurns = SharedThreads;

/// Waits in a test for what other threads do.
template <typename Condition> void until(Condition condition) {
  while (!condition())
    std::this_thread::yield();
}

SessionOptions sharing(SessionOptions options, const std::shared_ptr<Workers> &workers,
                       bool hostile = true) {
  options.workers = workers;
  options.hostile = hostile; // whatever can be is divided
  return options;
}

TEST_P(SharedThreads, GiveTheSameBitsToEnginesInThreadsOfTheirOwn) {
  auto workers = makeWorkers(GetParam());
  constexpr int64_t kEach = 150;
  {
    std::array<std::unique_ptr<Served>, 3> all;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = std::make_unique<Served>(model, sharing(small(), workers, i < 2));
    EXPECT_EQ(all[0]->session.options().threads, GetParam());
    std::vector<std::jthread> threads;
    for (std::unique_ptr<Served> &each : all)
      threads.emplace_back([&](const std::stop_token &stop) { each->engine->run(stop); });
    // A session that runs mini-batches is another caller.
    threads.emplace_back([&] {
      Session session(model, sharing(small(), workers));
      std::vector<Instance> instances;
      for (int64_t limit = 0; limit < kLimits; ++limit)
        instances.push_back({argument(limit), limit});
      for (int i = 0; i < 5; ++i) {
        std::span<const Outcome> outcomes = session.run(instances);
        for (size_t limit = 0; limit < outcomes.size(); ++limit)
          all[0]->wrong += text(session, outcomes[limit]) != alone[limit];
      }
    });
    for (int64_t i = 0; i < kEach; ++i)
      for (std::unique_ptr<Served> &each : all)
        submit(*each, i % kLimits, i);
    // One goes while the others run.
    until([&] { return all[2]->ended > kEach / 4; });
    threads[2].request_stop();
    threads[2].join();
    EXPECT_EQ(all[2]->wrong, 0);
    all[2].reset();
    until([&] { return all[0]->ended == kEach && all[1]->ended == kEach; });
    threads[3].join();
    EXPECT_EQ(all[0]->wrong + all[1]->wrong, 0);
    for (size_t i : {0, 1})
      threads[i].request_stop();
  }
  // They are there for others still.
  Session session(model, sharing(small(), workers));
  Instance instance{argument(9), 0};
  EXPECT_EQ(text(session, session.run(std::span(&instance, 1))[0]), alone[9]);
}

TEST_P(EnginesInTurns, GiveTheSameBitsInAnyNumberOfThreads) {
  auto workers = makeWorkers(GetParam());
  for (size_t count : {1, 3}) {
    Executor executor;
    std::array<std::unique_ptr<Served>, 4> all;
    for (std::unique_ptr<Served> &each : all) {
      each = std::make_unique<Served>(model, sharing(small(), workers));
      executor.add(*each->engine);
    }
    constexpr int64_t kEach = 60;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back([&](const std::stop_token &stop) { executor.run(stop); });
    for (int64_t i = 0; i < kEach; ++i)
      for (size_t e = 0; e < all.size(); ++e) // each gives the next something to do
        submit(*all[e], i % kLimits, i,
               [this, i, &next = *all[(e + 1) % all.size()]] { submit(next, i % 7, i); });
    for (std::unique_ptr<Served> &each : all)
      until([&] { return each->ended == 2 * kEach; });
    // One goes, and leaves something undone.
    submit(*all[3], 3, 0);
    all[3]->engine.reset();
    submit(*all[0], 4, 1);
    until([&] { return all[0]->ended == 2 * kEach + 1; });
    for (std::unique_ptr<Served> &each : all)
      EXPECT_EQ(each->wrong, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedThreads, testing::Values(1u, 2u, 5u));
INSTANTIATE_TEST_SUITE_P(All, EnginesInTurns, testing::Values(1u, 3u));

TEST_F(ExecutorTest, GivesTimeByShares) {
  uint64_t time = 0;
  Executor executor([&] { return time; });
  Session longSession(model, small()), shortSession(model, small()), doubleSession(model, small());
  // A turn of the one takes 20 times as long as one of the others: 3 looks at the clock, or more.
  std::array<uint64_t, 3> took{};
  auto taking = [&](size_t i, uint64_t nanoseconds) {
    return EngineOptions{.clock = [&took, &time, i, nanoseconds] {
      took[i] += nanoseconds;
      return time += nanoseconds;
    }};
  };
  std::stop_source stop;
  Engine slow(longSession, taking(0, 2000)), quick(shortSession, taking(1, 100)),
      twice(doubleSession, taking(2, 100));
  for (Engine *engine : {&slow, &quick, &twice})
    engine->submit({.instance = {endless.data(), 0}, .stop = stop.get_token()});
  executor.add(slow);
  executor.add(quick);
  executor.add(twice, {.share = 2});
  for (int i = 0; i < 3000; ++i)
    ASSERT_TRUE(executor.step());
  auto all = static_cast<double>(took[0] + took[1] + took[2]);
  EXPECT_NEAR(static_cast<double>(took[0]) / all, 0.25, 0.02);
  EXPECT_NEAR(static_cast<double>(took[1]) / all, 0.25, 0.02);
  EXPECT_NEAR(static_cast<double>(took[2]) / all, 0.5, 0.02);
  EXPECT_GT(quick.counts().flushes, 15 * slow.counts().flushes);
  stop.request_stop();
  while (executor.step()) {
  }
}

TEST_F(ExecutorTest, WhoComesLateHasNoClaimOnTheTimeThatWentBy) {
  uint64_t time = 0;
  Executor executor([&] { return time; });
  Session busySession(model, small()), lateSession(model, small());
  std::stop_source stop;
  EngineOptions ticks{.clock = [&] { return time += 10; }};
  Engine busy(busySession, ticks), late(lateSession, ticks);
  executor.add(busy);
  executor.add(late);
  busy.submit({.instance = {endless.data(), 0}, .stop = stop.get_token()});
  for (int i = 0; i < 500; ++i)
    executor.step();
  uint64_t before = busy.counts().flushes;
  EXPECT_GT(before, 400u);
  // Its result is there after a few turns, in between which the other has as many.
  bool ended = false;
  late.submit({.instance = {argument(20), 1}, .done = [&](const Outcome &outcome) {
                 EXPECT_EQ(text(lateSession, outcome), alone[20]);
                 ended = true;
               }});
  while (!ended)
    executor.step();
  uint64_t meanwhile = busy.counts().flushes - before;
  EXPECT_GT(meanwhile, late.counts().flushes / 2);
  EXPECT_LT(meanwhile, late.counts().flushes * 2);
  stop.request_stop();
  while (executor.step()) {
  }
}

TEST_F(ExecutorTest, AnEngineThatThrowsDoesNotStopTheOthers) {
  Executor executor;
  Session one(model, small()), two(model, small()), three(model, small());
  Engine throws(one), tells(two), works(three);
  int told = 0, thrown = 0, ended = 0;
  executor.add(throws);
  executor.add(tells, {.failed = [&](const std::exception_ptr &error) {
                 EXPECT_THROW(std::rethrow_exception(error), std::logic_error);
                 ++told;
               }});
  executor.add(works);
  for (int64_t i = 0; i < 10; ++i) {
    throws.submit({.instance = {argument(i), i}, .done = [&](const Outcome &) {
                     ++ended;
                     throw std::runtime_error("no");
                   }});
    tells.submit({.instance = {argument(i), i}, .done = [&](const Outcome &) {
                    ++ended;
                    throw std::logic_error("no");
                  }});
    works.submit({.instance = {argument(i), i}, .done = [&](const Outcome &outcome) {
                    EXPECT_TRUE(outcome.ok());
                    ++ended;
                  }});
  }
  for (bool more = true; more;)
    try {
      more = executor.step();
    } catch (const std::runtime_error &) {
      ++thrown;
    }
  EXPECT_EQ(told, 10);
  EXPECT_EQ(thrown, 10);
  EXPECT_EQ(ended, 30);
}

/// The processor, until it is told to fail.
class FailingDevice : public Device {
public:
  explicit FailingDevice(const DeviceSetup &setup) : FailingDevice(devices().front().make(setup)) {}
  static inline std::atomic<bool> fails = false;

  Ticket submit(std::span<const Instruction> instructions) override {
    if (fails)
      throw InternalError("the device is gone");
    return inner_->submit(instructions);
  }
  void wait(Ticket ticket) override { inner_->wait(ticket); }
  uint8_t *host() const override { return inner_->host(); }
  uint64_t capacity() const override { return inner_->capacity(); }
  void pack() override { inner_->pack(); }
  bool packJoined() override { return inner_->packJoined(); }
  void adopt(std::span<const std::span<const uint8_t>> copies) override { inner_->adopt(copies); }
  bool packsRows() const override { return inner_->packsRows(); }
  bool packsApart(size_t param, int64_t unit) const override {
    return inner_->packsApart(param, unit);
  }
  void packRows(size_t param, int64_t begin, int64_t end) override {
    inner_->packRows(param, begin, end);
  }
  std::vector<std::span<const uint8_t>> packedCopies() const override {
    return inner_->packedCopies();
  }
  std::span<const void *const> kernelWeights(size_t kernel) const override {
    return inner_->kernelWeights(kernel);
  }
  uint32_t makeBuffer(uint64_t bytes) override { return inner_->makeBuffer(bytes); }
  void dropBuffer(uint32_t buffer) override { inner_->dropBuffer(buffer); }
  std::span<uint8_t> showBuffer(uint32_t buffer) override { return inner_->showBuffer(buffer); }
  void bufferWritten(uint32_t buffer) override { inner_->bufferWritten(buffer); }
  void forEach(size_t count, bool little, const std::function<void(size_t)> &work) override {
    inner_->forEach(count, little, work);
  }

private:
  explicit FailingDevice(std::unique_ptr<Device> inner)
      : Device(inner->facts()), inner_(std::move(inner)) {}
  std::unique_ptr<Device> inner_;
};

TEST_F(ExecutorTest, AnEngineThatCanDoNothingAnyMoreIsToldOfOnce) {
  Executor executor;
  SessionOptions failing = small();
  failing.device = [](const DeviceSetup &setup) -> std::unique_ptr<Device> {
    return std::make_unique<FailingDevice>(setup);
  };
  Session one(model, failing), two(model, small());
  Engine broken(one), works(two);
  int told = 0, ended = 0;
  executor.add(broken, {.failed = [&](const std::exception_ptr &error) {
                 EXPECT_THROW(std::rethrow_exception(error), InternalError);
                 ++told;
               }});
  executor.add(works);
  auto submit = [&] {
    broken.submit({.instance = {argument(20), 0}, .done = [&](const Outcome &) { FAIL(); }});
    works.submit({.instance = {argument(20), 0}, .done = [&](const Outcome &outcome) {
                    EXPECT_EQ(text(two, outcome), alone[20]);
                    ++ended;
                  }});
  };
  submit();
  for (int i = 0; i < 6; ++i)
    executor.step();
  FailingDevice::fails = true;
  while (executor.step()) {
  }
  submit();
  while (executor.step()) {
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(ended, 2);
  EXPECT_THROW(broken.step(), InternalError);
  FailingDevice::fails = false; // the session gives back what it has
}

TEST_F(ExecutorTest, SleepsUntilAnyIsGivenSomething) {
  Executor executor;
  Session one(model, small()), two(model, small());
  Engine first(one), second(two);
  executor.add(first);
  std::jthread runner([&](const std::stop_token &stop) { executor.run(stop); });
  executor.add(second); // while it runs
  for (int64_t i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    for (auto [engine, session] : {std::pair(&first, &one), std::pair(&second, &two)}) {
      auto limit = static_cast<size_t>(i);
      EXPECT_EQ(engine
                    ->submit({.instance = {argument(i), i}},
                             [&, session](const Outcome &o) { return text(*session, o); })
                    .get(),
                alone[limit]);
    }
    // So does a stop, and a change.
    std::stop_source stop;
    std::promise<RunError::Cause> cause;
    second.submit(
        {.instance = {endless.data(), i},
         .stop = stop.get_token(),
         .done = [&](const Outcome &outcome) { cause.set_value(outcome.error.value().cause()); }});
    stop.request_stop();
    EXPECT_EQ(cause.get_future().get(), RunError::Cause::Cancelled);
    std::promise<void> changed;
    first.whenIdle([&] { changed.set_value(); });
    changed.get_future().get();
  }
  // It is asleep by now, most likely: a stop wakes it, and the destructor waits for that.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  runner.request_stop();
  runner.join();
}

TEST_F(ExecutorTest, EnginesComeAndGo) {
  Executor executor;
  Session session(model, small());
  Engine engine(session);
  EXPECT_THROW(executor.add(engine, {.share = 0}), InvalidArgument);
  executor.add(engine);
  EXPECT_THROW(executor.add(engine), InvalidArgument);
  Executor other;
  EXPECT_THROW(other.add(engine), InvalidArgument);
  int ended = 0;
  std::stop_source stop;
  engine.submit({.instance = {argument(3), 0}, .done = [&](const Outcome &) {
                   ++ended;
                   executor.remove(engine); // its last step here
                   EXPECT_THROW(executor.add(engine), InvalidArgument);
                 }});
  engine.submit({.instance = {endless.data(), 1},
                 .stop = stop.get_token(),
                 .done = [&](const Outcome &) { ++ended; }});
  while (executor.step()) {
  }
  EXPECT_EQ(ended, 1);
  executor.remove(engine); // is not there
  {
    Executor third;
    third.add(engine);
    EXPECT_TRUE(third.step());
    stop.request_stop();
    while (third.step()) {
    }
    EXPECT_EQ(ended, 2);
  }
  engine.submit({.instance = {argument(3), 2}, .done = [&](const Outcome &) { ++ended; }});
  while (engine.step()) {
  }
  EXPECT_EQ(ended, 3);
}

} // namespace

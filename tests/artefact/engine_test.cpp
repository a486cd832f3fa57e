// Engines over an artefact whose instances read, recurse and keep lists: every result is that of
// the instance alone, whatever comes, goes and fails beside it.
#include "runtime/io/formats.h"
#include "runtime/io/read.h"
#include "tests/artefact/engine_case.h"
#include "tests/artefact/run_out.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

#ifdef __x86_64__
constexpr bool kEmulated = false;
#else
constexpr bool kEmulated = true; // as a rule
#endif
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr int64_t kMany = kEmulated ? 400 : kSanitized ? 2000 : 10000;

/// main(limit): `limit` steps, each of which reads; a negative one has no end.
constexpr const char *kSteps = "v2_3.sheafc";
/// main(n, m): recursions of so many calls, which may run side by side.
constexpr const char *kForks = "v2_5.sheafc";
/// main(words): as many thoughts of each as a probability says that is read after every one.
constexpr const char *kPonder = "v2_9.sheafc";

class EngineTest : public EngineCase {
protected:
  explicit EngineTest(const std::string &file = kSteps)
      : EngineCase(std::string(SHEAF_GOLDEN) + "/" + file), takesWords_(file == kPonder) {}

  SessionOptions small() const {
    SessionOptions options = EngineCase::small();
    options.maxSteps = 100000;
    return options;
  }

  /// Slots that stay where they are; of words, so many.
  const Slot *argument(int64_t limit) {
    if (takesWords_)
      return words(limit);
    return arguments_.try_emplace(limit, std::array<Slot, 2>{limit, limit % 7})
        .first->second.data();
  }

  const std::string &alone(int64_t limit) {
    std::string &known = alone_[limit];
    if (known.empty()) {
      Instance instance{argument(limit), 0};
      known = text(reference_, reference_.run(std::span(&instance, 1))[0]);
    }
    return known;
  }

private:
  const Slot *words(int64_t count) {
    auto [known, isNew] = sentences_.try_emplace(count);
    if (isNew) {
      std::string line;
      for (int64_t i = 0; i < count; ++i)
        line += std::string(i ? " " : "") + "abcd"[(i * i + count / 3 + i * count) % 4];
      io::ReadOptions options;
      options.dims = &model.dims;
      options.format = io::parseDataFormat("text");
      known->second =
          io::readDataset({"test.txt", line + "\n"}, model.types, model.entry, tokens_, options);
    }
    return known->second.args(0);
  }

  bool takesWords_;
  io::Vocabularies vocabularies_ = artefact->vocabularies();
  io::VocabularyReader tokens_{vocabularies_, /*strict=*/true};
  std::map<int64_t, io::Dataset> sentences_;
  std::map<int64_t, std::array<Slot, 2>> arguments_;
  std::map<int64_t, std::string> alone_;
  Session reference_{model, small()};
};

struct Load {
  const char *file = kSteps;
  bool hostile = false;
  unsigned threads = 1;
  EngineOptions engine = {};
};

class EveryLoad : public EngineTest, public testing::WithParamInterface<Load> {
protected:
  EveryLoad() : EngineTest(GetParam().file) {}
};

TEST_P(EveryLoad, GivesWhatEachInstanceGivesAlone) {
  const Load &load = GetParam();
  SessionOptions options = small();
  options.hostile = load.hostile;
  options.threads = load.threads;
  options.forking = Forking::Always;
  Session session(model, options);
  const MemoryUse before = session.memory();
  uint64_t time = 0;
  EngineOptions engineOptions = load.engine;
  engineOptions.clock = [&] { return time; };
  Engine engine(session, engineOptions);
  std::mt19937_64 random(11);
  auto among = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int64_t count = load.hostile ? std::max<int64_t>(kMany / 20, 300) : kMany;
  if (load.file == kPonder && !kEmulated)
    count = 10'000; // with sanitizers, too

  std::map<int64_t, std::stop_source> stops; // of some that have not ended
  int64_t submitted = 0, ended = 0, well = 0, wrong = 0;
  std::map<RunError::Cause, int64_t> causes;
  while (ended < count) {
    for (int64_t arrive = among(8); arrive > 0 && submitted < count; --arrive) {
      int64_t number = submitted++, kind = among(20);
      int64_t endless = load.file == kSteps ? -1 : 300;
      int64_t limit = kind == 0 ? endless : among(among(10) == 0 ? 200 : 20);
      if (load.file == kPonder)
        limit = std::max<int64_t>(limit, 1); // a sentence has words
      Request request{.instance = {argument(limit), number}, .priority = int(among(3))};
      if (kind == 0 || kind == 1) // it would go on for ever, or may end before
        request.stop = stops[number].get_token();
      if (kind == 2)
        request.deadline = time + uint64_t(among(40));
      if (kind == 3)
        request.limits.steps = 10;
      request.done = [&, limit, number, kind](const Outcome &outcome) {
        ++ended;
        stops.erase(number);
        if (outcome.ok()) {
          ++well;
          wrong += text(session, outcome) != alone(limit);
          return;
        }
        EXPECT_EQ(outcome.error->instance(), number);
        ++causes[outcome.error->cause()];
        EXPECT_LE(kind, 3) << outcome.error->message();
        if (kind == 3 && load.file == kSteps) {
          EXPECT_GE(limit, 9) << outcome.error->message();
        }
      };
      engine.submit(std::move(request));
    }
    time += 1;
    if (!stops.empty() && among(6) == 0)
      stops.begin()->second.request_stop();
    engine.step();
    if (submitted == count && !stops.empty())
      std::next(stops.begin(), among(int64_t(stops.size())))->second.request_stop();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(well, count * 8 / 10);
  EXPECT_GT(causes[RunError::Cause::Cancelled], 0);
  EXPECT_GT(causes[RunError::Cause::Deadline], 0);
  EXPECT_GT(causes[RunError::Cause::Limit], 0);
  EXPECT_EQ(causes[RunError::Cause::Program] + causes[RunError::Cause::Memory], 0);
  while (engine.step()) {
  }
  EXPECT_EQ(engine.running(), 0u);
  EXPECT_EQ(engine.waiting(), 0u);
  EXPECT_EQ(engine.counts().ended, uint64_t(count));
  EXPECT_EQ(session.memory().rows.now, before.rows.now);
  EXPECT_LE(session.memory().heap.now, uint64_t(32) << 20); // chunks for the next ones
  if (load.engine.depths < 100 || load.hostile) {
    EXPECT_GT(engine.counts().generations, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryLoad,
                         testing::Values(Load{}, Load{.threads = 2}, Load{.hostile = true},
                                         Load{.engine = {.mostRunning = 3, .linger = 0}},
                                         Load{.engine = {.linger = 20, .slice = 1, .depths = 8}},
                                         Load{.file = kForks, .engine = {.depths = 64}},
                                         Load{.file = kForks, .hostile = true},
                                         Load{.file = kPonder, .engine = {.depths = 64}}));

class ForkingEngineTest : public EngineTest {
protected:
  ForkingEngineTest() : EngineTest(kForks) {}
};

TEST_F(ForkingEngineTest, LimitsOfRowsDoNotDependOnCompany) {
  auto verdict = [&](uint64_t rowBytes, bool company) {
    SessionOptions options = small();
    options.forking = company ? Forking::Always : Forking::Never;
    Session session(model, options);
    Engine engine(session);
    std::string found;
    for (int64_t i = 0; i < (company ? 20 : 0); ++i)
      engine.submit({.instance = {argument(15 + i), 1000 + i}});
    engine.submit({.instance = {argument(20), 0},
                   .limits = {.rowBytes = rowBytes},
                   .done = [&](const Outcome &outcome) { found = text(session, outcome); }});
    while (engine.step()) {
    }
    return found;
  };
  std::map<bool, int> ends;
  for (uint64_t rowBytes = 64; rowBytes < 64 * 200; rowBytes += kMany < 10000 ? 64 * 19 : 64 * 3) {
    std::string found = verdict(rowBytes, true);
    EXPECT_EQ(found, verdict(rowBytes, false)) << rowBytes;
    ++ends[found == alone(20)];
  }
  EXPECT_GT(ends[true], 0);
  EXPECT_GT(ends[false], 0);
}

TEST_F(ForkingEngineTest, OneThatIsTooLargeFailsAlone) {
  SessionOptions options = small();
  options.memoryLimit = uint64_t(2) << 20;
  options.keepBytes = 0;
  Session session(model, options);
  Engine engine(session);
  int64_t small = 0, wrong = 0, large = 0;
  for (int64_t i = 0; i < 60; ++i) {
    bool isLarge = i % 20 == 0;
    int64_t limit = isLarge ? 90000 : i % 13;
    engine.submit(
        {.instance = {argument(limit), i}, .done = [&, limit, isLarge](const Outcome &outcome) {
           ++(isLarge ? large : small);
           wrong += isLarge ? outcome.ok() : text(session, outcome) != alone(limit);
         }});
  }
  while (engine.step()) {
  }
  EXPECT_EQ(small, 57);
  EXPECT_EQ(large, 3);
  EXPECT_EQ(wrong, 0);
}

TEST_F(EngineTest, BeginsHigherPrioritiesFirst) {
  Session session(model, small());
  Engine engine(session, {.mostRunning = 1});
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 6; ++i)
    engine.submit({.instance = {argument(3), i},
                   .priority = int(i % 3),
                   .done = [&, i](const Outcome &) { order.push_back(i); }});
  EXPECT_EQ(engine.waiting(), 6u);
  while (engine.step()) {
  }
  EXPECT_EQ(order, (std::vector<int64_t>{2, 5, 1, 4, 0, 3}));
}

TEST_F(EngineTest, EndsWhatIsStoppedOrLateBeforeItBegins) {
  Session session(model, small());
  uint64_t time = 100;
  Engine engine(session, {.mostRunning = 1, .clock = [&] { return time; }});
  std::map<int64_t, RunError::Cause> causes;
  auto submit = [&](int64_t number, int64_t limit, uint64_t deadline, std::stop_token stop) {
    engine.submit({.instance = {argument(limit), number},
                   .deadline = deadline,
                   .stop = std::move(stop),
                   .done = [&, number](const Outcome &outcome) {
                     causes[number] = outcome.error.value().cause();
                   }});
  };
  std::stop_source endless, asked, later;
  submit(0, -1, UINT64_MAX, endless.get_token());
  asked.request_stop();
  submit(1, 3, UINT64_MAX, asked.get_token());
  submit(2, 3, UINT64_MAX, later.get_token());
  submit(3, 3, 150, {});
  EXPECT_TRUE(engine.step());
  EXPECT_EQ(causes, (std::map<int64_t, RunError::Cause>{{1, RunError::Cause::Cancelled}}));
  later.request_stop();
  EXPECT_TRUE(engine.step());
  EXPECT_EQ(causes.at(2), RunError::Cause::Cancelled);
  time = 150;
  EXPECT_TRUE(engine.step());
  EXPECT_EQ(causes.at(3), RunError::Cause::Deadline);
  EXPECT_EQ(engine.running(), 1u);
  endless.request_stop();
  while (engine.step()) {
  }
  EXPECT_EQ(causes.at(0), RunError::Cause::Cancelled);
}

TEST_F(EngineTest, EndsWhatIsLateWhileOthersBegin) {
  Session session(model, small());
  uint64_t time = 0;
  Engine engine(session, {.clock = [&] { return time += 1'000'000; }});
  int64_t ended = 0, late = 0;
  constexpr int64_t kInstances = 20;
  for (int64_t i = 0; i < kInstances; ++i)
    engine.submit({.instance = {argument(0), i}, // it reads nothing
                   .deadline = i % 2 == 0 ? uint64_t(12'000'000) : UINT64_MAX,
                   .done = [&](const Outcome &outcome) {
                     late += !outcome.ok() && outcome.error->cause() == RunError::Cause::Deadline;
                     ended += outcome.ok();
                   }});
  while (engine.step()) {
  }
  EXPECT_GE(ended, kInstances / 2);
  EXPECT_GT(late, 0);
  EXPECT_EQ(ended + late, kInstances);
}

TEST_F(EngineTest, EndsWhatIsStoppedInAFewMilliseconds) {
  if (kSanitized || kEmulated)
    GTEST_SKIP() << "sanitizers and emulators take longer";
  using Clock = std::chrono::steady_clock;
  SessionOptions options = small();
  options.maxSteps = INT64_MAX;
  Session session(model, options);
  Engine engine(session);
  constexpr size_t kEndless = 5000, kStopped = 41;
  Slot endless = -1;
  std::vector<std::stop_source> stops(kEndless);
  std::vector<std::promise<Clock::time_point>> ends(kEndless);
  for (size_t i = 0; i < kEndless; ++i)
    engine.submit({.instance = {&endless, int64_t(i)},
                   .stop = stops[i].get_token(),
                   .done = [&ends, i](const Outcome &outcome) {
                     if (i < kStopped)
                       EXPECT_EQ(outcome.error.value().cause(), RunError::Cause::Cancelled);
                     ends[i].set_value(Clock::now());
                   }});
  std::vector<double> waits;
  {
    std::jthread runner([&](const std::stop_token &stop) { engine.run(stop); });
    for (size_t i = 0; i < kStopped; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Clock::time_point asked = Clock::now();
      stops[i].request_stop();
      waits.push_back(
          std::chrono::duration<double, std::milli>(ends[i].get_future().get() - asked).count());
    }
  }
  // The middle one: a busy machine may hold up some.
  std::ranges::nth_element(waits, waits.begin() + kStopped / 2);
  EXPECT_LT(waits[kStopped / 2], 5.0);
  RecordProperty("middle_ms", std::to_string(waits[kStopped / 2]));
  RecordProperty("longest_ms", std::to_string(std::ranges::max(waits)));
}

TEST_F(EngineTest, LimitsCountWhatTheInstanceDoes) {
  // The least of rows with which 40 steps end, alone and beside others that know the same records.
  auto ends = [&](uint64_t rowBytes, int64_t steps, bool company) {
    Session session(model, small());
    Engine engine(session);
    std::optional<std::string> error;
    for (int64_t i = 0; i < (company ? 30 : 0); ++i)
      engine.submit({.instance = {argument(35 + i % 10), 1000 + i}});
    engine.submit({.instance = {argument(40), 0},
                   .limits = {.steps = steps, .rowBytes = rowBytes},
                   .done = [&](const Outcome &outcome) {
                     error = outcome.ok() ? "" : outcome.error->message();
                   }});
    while (engine.step()) {
    }
    return error.value();
  };
  uint64_t low = 0, high = 1 << 20;
  while (high - low > 1)
    ((ends((low + high) / 2, 0, false).empty()) ? high : low) = (low + high) / 2;
  EXPECT_GT(high, 40u * 64);
  EXPECT_EQ(ends(high, 0, true), "");
  EXPECT_EQ(ends(low, 0, true), ends(low, 0, false));
  EXPECT_NE(ends(low, 0, true).find("limit"), std::string::npos);
  EXPECT_EQ(ends(0, 100, true), "");
  for (int64_t steps = 30; steps < 50; steps += kMany < 10000 ? 5 : 1)
    EXPECT_EQ(ends(0, steps, true), ends(0, steps, false));
  EXPECT_NE(ends(0, 30, true).find("30 calls"), std::string::npos) << ends(0, 30, true);
}

TEST_F(EngineTest, RunsWithLittleMemory) {
  SessionOptions options = small();
  options.memoryLimit = uint64_t(3) << 20;
  options.hostStackBytes = uint64_t(64) << 10;
  options.keepBytes = 0;
  Session session(model, options);
  Engine engine(session);
  int64_t ended = 0, wrong = 0;
  for (int64_t i = 0; i < 300; ++i) {
    int64_t limit = 100 + i % 7 * 50;
    engine.submit({.instance = {argument(limit), i}, .done = [&, limit](const Outcome &outcome) {
                     ++ended;
                     wrong += text(session, outcome) != alone(limit);
                   }});
  }
  while (engine.step()) {
  }
  EXPECT_EQ(ended, 300);
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(session.memory().rows.peak, options.memoryLimit);
  EXPECT_GT(session.counters().collections, 0u);
}

/// What ran before has no say in whether an instance fits.
TEST_F(EngineTest, FitsWhateverRanBefore) {
  auto limited = [&](uint64_t bytes) {
    SessionOptions options = small();
    options.memoryLimit = bytes;
    options.hostStackBytes = uint64_t(64) << 10;
    return options;
  };
  constexpr int64_t kSteps = 400;
  Instance instance{argument(kSteps), 0};
  auto runs = [&](Session &session) { return session.run(std::span(&instance, 1))[0].ok(); };
  auto isServed = [&](Session &session) {
    bool ok = false;
    Engine engine(session);
    engine.submit(
        {.instance = instance, .done = [&](const Outcome &outcome) { ok = outcome.ok(); }});
    while (engine.step()) {
    }
    return ok;
  };
  auto leastFor = [&](auto &&fits) {
    uint64_t least = 0, enough = uint64_t(4) << 20;
    while (enough - least > 4096) {
      uint64_t middle = (least + enough) / 2;
      bool does = false;
      try {
        Session session(model, limited(middle));
        does = fits(session);
      } catch (const UserError &) {
        // not even the weights fit
      }
      (does ? enough : least) = middle;
    }
    return enough + (uint64_t(64) << 10); // tables of what ran before are not made smaller
  };

  Session session(model, limited(leastFor(runs)));
  std::vector<Instance> others;
  for (int64_t i = 0; i < 60; ++i)
    others.push_back({argument(3 + i), i});
  for (size_t count : {1, 7, 60, 20}) {
    session.run(std::span(others).first(count));
    EXPECT_EQ(text(session, session.run(std::span(&instance, 1))[0]), alone(kSteps)) << count;
  }

  Session served(model, limited(leastFor(isServed)));
  Engine engine(served);
  int64_t ended = 0;
  for (size_t count : {1, 7, 60, 20}) {
    for (size_t i = 0; i < count; ++i)
      engine.submit({.instance = others[i], .done = [&, i](const Outcome &outcome) {
                       ++ended;
                       EXPECT_EQ(text(served, outcome), alone(3 + int64_t(i)));
                     }});
    engine.submit({.instance = instance, .done = [&](const Outcome &outcome) {
                     ++ended;
                     EXPECT_EQ(text(served, outcome), alone(kSteps));
                   }});
    while (engine.step()) {
    }
  }
  EXPECT_EQ(ended, 1 + 7 + 60 + 20 + 4);
}

TEST_F(EngineTest, BeginsNoneBesideOthersWhereAShareOfTheBudgetIsLarge) {
  auto budget = std::make_shared<SharedBudget>(uint64_t(64) << 20);
  SharedBudget::Share other(budget);
  Session session(model, small());
  size_t most = 0;
  int64_t ended = 0, wrong = 0;
  std::optional<Engine> engine(std::in_place, session, EngineOptions{.budget = budget});
  auto run = [&] {
    most = 0;
    ended = 0;
    for (int64_t i = 0; i < 10; ++i)
      engine->submit({.instance = {argument(20), i}, .done = [&](const Outcome &outcome) {
                        ++ended;
                        wrong += text(session, outcome) != alone(20);
                      }});
    while (engine->step())
      most = std::max(most, engine->running());
    EXPECT_EQ(ended, 10);
  };
  other.tell(uint64_t(54) << 20);
  run();
  EXPECT_EQ(most, 1u);
  other.tell(uint64_t(10) << 20);
  run();
  EXPECT_EQ(most, 10u);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(budget->used(), uint64_t(10) << 20);
  engine.reset();
  EXPECT_EQ(budget->used(), uint64_t(10) << 20);
}

TEST_F(EngineTest, TakesBackWhatRunsWhereOthersNeedTheBudget) {
  auto budget = std::make_shared<SharedBudget>(uint64_t(64) << 20);
  SharedBudget::Share other(budget);
  Session session(model, small());
  Engine engine(session, {.budget = budget});
  int64_t ended = 0, wrong = 0;
  for (int64_t i = 0; i < 6; ++i)
    engine.submit({.instance = {argument(3000), i}, .done = [&](const Outcome &outcome) {
                     ++ended;
                     wrong += text(session, outcome) != alone(3000);
                   }});
  while (engine.running() < 6)
    ASSERT_TRUE(engine.step());
  other.tell(uint64_t(63) << 20);
  while (engine.step()) {
  }
  EXPECT_EQ(ended, 6);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(engine.counts().begunAgain, 0u);
}

TEST_F(EngineTest, HandsOutTheOtherResultsWhenOneThrows) {
  Session session(model, small());
  Engine engine(session);
  int64_t ended = 0;
  for (int64_t i = 0; i < 5; ++i)
    engine.submit({.instance = {argument(4), i}, .done = [&, i](const Outcome &outcome) {
                     EXPECT_EQ(text(session, outcome), alone(4));
                     ++ended;
                     if (i == 2)
                       throw std::runtime_error("no");
                     if (i == 3) // from within, too
                       engine.submit(
                           {.instance = {argument(2), 9}, .done = [&](const Outcome &last) {
                              EXPECT_EQ(text(session, last), alone(2));
                              ++ended;
                            }});
                   }});
  EXPECT_EQ(runOut(engine), 1);
  EXPECT_EQ(ended, 6);
}

TEST_F(EngineTest, ChangesWeightsBetweenInstances) {
  Session session(model, small());
  Engine engine(session);
  int64_t old = 0, fresh = 0;
  auto submit = [&](int64_t &count, bool same) {
    for (int64_t i = 0; i < 20; ++i)
      engine.submit(
          {.instance = {argument(10 + i), i}, .done = [&, i, same](const Outcome &outcome) {
             EXPECT_EQ(text(session, outcome) == alone(10 + i), same);
             ++count;
           }});
  };
  submit(old, true);
  engine.step();
  engine.step();
  EXPECT_GT(engine.running(), 0u);
  engine.whenIdle([&] {
    std::vector<float> zeros(25, 0.0f);
    session.setParam(
        static_cast<size_t>(session.findParam("w")),
        {reinterpret_cast<const uint8_t *>(zeros.data()), zeros.size() * sizeof(float)});
  });
  submit(fresh, false);
  while (engine.step()) {
  }
  EXPECT_EQ(old, 20);
  EXPECT_EQ(fresh, 20);
}

TEST_F(EngineTest, TakesRequestsFromOtherThreads) {
  Session session(model, small());
  Engine engine(session);
  std::jthread runner([&](const std::stop_token &stop) { engine.run(stop); });
  constexpr int64_t kEach = kMany / 40;
  for (int64_t limit = 0; limit < 20; ++limit)
    alone(limit);
  std::vector<const Slot *> arguments;
  for (int64_t limit = 0; limit < 20; ++limit)
    arguments.push_back(argument(limit));
  std::atomic<int64_t> wrong = 0, cancelled = 0;
  std::vector<std::string> expected;
  for (int64_t limit = 0; limit < 20; ++limit)
    expected.push_back(alone(limit));
  Slot endless = -1;
  {
    std::vector<std::jthread> clients;
    for (int64_t client = 0; client < 3; ++client)
      clients.emplace_back([&, client] {
        for (int64_t i = 0; i < kEach; ++i) {
          auto limit = static_cast<size_t>((i * 7 + client) % 20);
          std::stop_source stop;
          // (An exception of a future is shared by libstdc++ in a way that sanitizers do not see.)
          auto cause = std::make_shared<std::promise<RunError::Cause>>();
          engine.submit({.instance = {&endless, i},
                         .stop = stop.get_token(),
                         .done = [cause](const Outcome &outcome) {
                           cause->set_value(outcome.error.value().cause());
                         }});
          std::future<std::string> result =
              engine.submit({.instance = {arguments[limit], i}},
                            [&](const Outcome &outcome) { return text(session, outcome); });
          wrong += result.get() != expected[limit];
          stop.request_stop();
          cancelled += cause->get_future().get() == RunError::Cause::Cancelled;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cancelled, 3 * kEach);
}

TEST_F(EngineTest, LeavesTheSessionAsItWas) {
  Session session(model, small());
  std::future<int> dropped;
  {
    Engine engine(session);
    EXPECT_THROW(session.run({}), InternalError);
    dropped = engine.submit({.instance = {argument(-1), 0}}, [](const Outcome &) { return 1; });
    engine.submit({.instance = {argument(50), 1}});
    engine.step();
    engine.step();
  }
  Instance instance{argument(30), 0};
  EXPECT_THROW(dropped.get(), std::future_error);
  EXPECT_EQ(text(session, session.run(std::span(&instance, 1))[0]), alone(30));
}

} // namespace

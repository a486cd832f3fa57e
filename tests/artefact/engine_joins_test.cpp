// Engines whose flushes are long: others begin and go on between slices, launches are cut, and
// every result is that of the instance alone.
#include "tests/artefact/engine_case.h"

#include <array>
#include <map>
#include <random>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

class JoinsTest : public EngineCase {
protected:
  explicit JoinsTest(const std::string &name = "chains")
      : EngineCase(SHEAF_MADE "/" + name + ".sheafc") {}

  /// Slots that stay where they are.
  const Slot *arguments(int64_t steps, int64_t start) {
    return arguments_.try_emplace({steps, start}, std::array<Slot, 2>{steps, start})
        .first->second.data();
  }

  const std::string &alone(int64_t steps, int64_t start) {
    std::string &known = alone_[{steps, start}];
    if (known.empty()) {
      Instance instance{arguments(steps, start), 0};
      known = text(reference_, reference_.run(std::span(&instance, 1))[0]);
    }
    return known;
  }

private:
  std::map<std::pair<int64_t, int64_t>, std::array<Slot, 2>> arguments_;
  std::map<std::pair<int64_t, int64_t>, std::string> alone_;
  Session reference_{model, small()};
};

struct Load {
  const char *file;
  bool hostile = false;
  unsigned threads = 1;
  EngineOptions engine = {};
  uint64_t memoryLimit = uint64_t(256) << 20;
  std::optional<uint64_t> keepBytes = {};
};

class EveryJoiningLoad : public JoinsTest, public testing::WithParamInterface<Load> {
protected:
  EveryJoiningLoad() : JoinsTest(GetParam().file) {}
};

TEST_P(EveryJoiningLoad, GivesWhatEachInstanceGivesAlone) {
  const Load &load = GetParam();
  Session session(model, optionsOf(load));
  Engine engine(session, load.engine);
  std::mt19937_64 random(7);
  auto among = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const int64_t count = load.hostile ? 80 : 300;
  int64_t submitted = 0, ended = 0, wrong = 0;
  std::map<RunError::Cause, int64_t> causes;
  std::map<int64_t, std::stop_source> stops;
  std::map<int64_t, std::string> told;
  while (ended < count) {
    if (submitted < count && among(6) == 0) {
      int64_t number = submitted++, start = among(9);
      int64_t steps = number % 25 == 3 ? 1000 : among(12) == 0 ? among(150) : among(8);
      Request request{.instance = {arguments(steps, start), number}};
      if (number % 10 == 5)
        request.stop = stops[number].get_token();
      if (model.entry.emits)
        request.emitted = [&](const Instance &instance, const Slot *value) {
          told[instance.index] += text(session, *model.entry.emits, value) + ",";
        };
      request.done = [&, steps, start, number](const Outcome &outcome) {
        ++ended;
        stops.erase(number);
        if (!outcome.ok())
          ++causes[outcome.error->cause()];
        if (outcome.ok() || outcome.error->cause() == RunError::Cause::Program)
          wrong += text(session, outcome) != alone(steps, start);
        if (outcome.ok() && model.entry.emits) {
          std::string all = emittedText(session, outcome);
          all.back() = ',';
          wrong += all != "[" + told[number];
        }
      };
      engine.submit(std::move(request));
    }
    if (!stops.empty() && among(40) == 0)
      stops.begin()->second.request_stop();
    engine.step();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(causes[RunError::Cause::Program], count / 25 + (count % 25 > 3));
  EXPECT_EQ(causes[RunError::Cause::Memory] + causes[RunError::Cause::Limit], 0);
  // A slice of 20 us may hold a whole flush: that is the clock's to say.
  if (load.hostile || load.engine.slice <= 2000 || !load.engine.joins)
    EXPECT_EQ(engine.counts().joined > 0, load.engine.joins);
  while (engine.step()) {
  }
  EXPECT_EQ(session.counters().evictions > 0, load.keepBytes.has_value());
}

constexpr uint64_t kShort = uint64_t(1) << 20;
INSTANTIATE_TEST_SUITE_P(
    All, EveryJoiningLoad,
    testing::Values(Load{.file = "chains", .engine = {.slice = 1}},
                    Load{.file = "chains_read", .engine = {.slice = 1}},
                    Load{.file = "chains_uneven", .engine = {.slice = 1}},
                    Load{.file = "chains_uneven", .engine = {.slice = 1, .joins = false}},
                    Load{.file = "chains_uneven", .engine = {.slice = 20'000}},
                    Load{.file = "chains_uneven", .hostile = true},
                    Load{.file = "chains", .engine = {.slice = 2000}},
                    Load{.file = "chains_read", .engine = {.slice = 2000, .depths = 40}},
                    Load{.file = "chains", .threads = 2, .engine = {.slice = 1}},
                    Load{.file = "chains", .engine = {.slice = 1, .joins = false}},
                    Load{.file = "chains_read", .engine = {.slice = 1, .joins = false}},
                    Load{.file = "chains", .hostile = true},
                    Load{.file = "chains_read", .hostile = true},
                    Load{.file = "chains_read", .hostile = true, .keepBytes = 4 * 2 * 64},
                    Load{.file = "chains_read", .engine = {.mostRunning = 3, .slice = 1}},
                    Load{.file = "chains", .engine = {.slice = 1}, .memoryLimit = kShort},
                    Load{.file = "chains_read", .engine = {.slice = 1}, .memoryLimit = kShort}));

TEST_F(JoinsTest, AShortOneNeedNotWaitForALongOne) {
  for (bool joins : {true, false}) {
    Session session(model, small());
    Engine engine(session, {.slice = 1, .joins = joins});
    std::vector<int64_t> order;
    auto submit = [&](int64_t steps, int64_t number) {
      engine.submit({.instance = {arguments(steps, number), number},
                     .done = [&, steps, number](const Outcome &outcome) {
                       order.push_back(number);
                       EXPECT_EQ(text(session, outcome), alone(steps, number));
                     }});
    };
    submit(900, 0);
    for (int i = 0; i < 20; ++i)
      engine.step();
    submit(3, 1);
    submit(4, 2);
    while (engine.step()) {
    }
    EXPECT_EQ(order, joins ? (std::vector<int64_t>{1, 2, 0}) : (std::vector<int64_t>{0, 1, 2}));
  }
}

/// However many come, the one that was there first gets further.
TEST_F(JoinsTest, ALongOneIsNotHeldUp) {
  Session session(model, small());
  Engine engine(session, {.slice = 1});
  bool done = false;
  constexpr int64_t kSteps = 50;
  engine.submit(
      {.instance = {arguments(kSteps, 0), 0}, .done = [&](const Outcome &) { done = true; }});
  engine.step();
  int64_t others = 0;
  for (int64_t i = 1; !done && i < 100 * kSteps; ++i) {
    engine.submit(
        {.instance = {arguments(3, i % 9), i}, .done = [&](const Outcome &) { ++others; }});
    engine.step();
  }
  EXPECT_TRUE(done);
  EXPECT_GT(others, 0);
}

/// What all of them left is not computed, but for what is kept.
TEST_F(JoinsTest, ThoseThatAreGivenUpCostNothingMore) {
  constexpr int64_t kInstances = 9;
  int64_t wrong = 0, ended = 0;
  for (int steps = 0; steps < 30; ++steps) {
    Session session(model, small()); // nothing is kept yet
    Engine engine(session, {.slice = 1});
    std::stop_source stop;
    auto submit = [&](std::stop_token token, auto done) {
      for (int64_t i = 0; i < kInstances; ++i)
        engine.submit({.instance = {arguments(40, i), i},
                       .stop = token,
                       .done = [=](auto &outcome) { done(i, outcome); }});
    };
    submit(stop.get_token(), [&](int64_t, const Outcome &outcome) {
      EXPECT_EQ(outcome.error.value().cause(), RunError::Cause::Cancelled);
    });
    for (int i = 0; i < steps; ++i)
      engine.step();
    uint64_t records = session.counters().records;
    stop.request_stop();
    while (engine.step()) {
    }
    EXPECT_LE(session.counters().records - records, uint64_t(kInstances));
    submit({}, [&](int64_t i, const Outcome &outcome) {
      ++ended;
      wrong += text(session, outcome) != alone(40, i);
    });
    while (engine.step()) {
    }
  }
  EXPECT_EQ(ended, 30 * kInstances);
  EXPECT_EQ(wrong, 0);
}

TEST_F(JoinsTest, LaunchesAreCut) {
  Session session(model, small());
  Engine engine(session, {.slice = 1});
  constexpr uint64_t kInstances = 60;
  uint64_t ended = 0, cancelled = 0;
  std::stop_source stop;
  for (int64_t i = 0; i < int64_t(kInstances); ++i)
    engine.submit({.instance = {arguments(2 + i, 3), i},
                   .stop = i % 2 ? stop.get_token() : std::stop_token(),
                   .done = [&](const Outcome &outcome) { ++(outcome.ok() ? ended : cancelled); }});
  uint64_t records = 0;
  for (int i = 0; engine.step(); ++i) {
    // (Weights' own come first.)
    if (i > 0)
      EXPECT_LE(session.counters().records - records, kInstances / 2);
    records = session.counters().records;
    if (i == 10) {
      EXPECT_EQ(ended, 0u);
      stop.request_stop();
      engine.step();
      EXPECT_EQ(cancelled, kInstances / 2);
      records = session.counters().records;
    }
  }
  EXPECT_EQ(ended, kInstances / 2);
}

} // namespace

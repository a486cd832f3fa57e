// What engines hand out while instances run: of each instance what it emits alone, once and in
// order, though it is begun again.
#include "runtime/model/error.h"
#include "tests/artefact/engine_case.h"
#include "tests/artefact/run_out.h"

#include <algorithm>
#include <map>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

class EngineEmissionsTest : public EngineCase {
protected:
  EngineEmissionsTest() : EngineCase(SHEAF_MADE "/streams.sheafc") {}

  SessionOptions small() const {
    SessionOptions options = EngineCase::small();
    options.forking = Forking::Always;
    return options;
  }

  /// Slots that stay where they are.
  const Slot *argument(int64_t limit) {
    return &arguments_.try_emplace(limit, limit).first->second;
  }

  /// All that an instance emits alone, as its result has it.
  const std::string &alone(int64_t limit) {
    std::string &known = alone_[limit];
    if (known.empty()) {
      Session session(model, small());
      Instance instance{argument(limit), 0};
      known = emittedText(session, session.run(std::span(&instance, 1))[0]);
    }
    return known;
  }

  /// What requests were told, by number, and in which step that was.
  struct Told {
    std::string list = "[";
    int64_t count = 0, firstStep = 0;
    void add(const std::string &value, int64_t step) {
      list += (count ? "," : "") + value;
      firstStep = count++ ? firstStep : step;
    }
  };
  std::map<int64_t, Told> told;
  int64_t steps = 0;

  auto telling(const Session &session) {
    return [this, &session](const Instance &instance, const Slot *value) {
      told[instance.index].add(text(session, *model.entry.emits, value), steps);
    };
  }

private:
  std::map<int64_t, Slot> arguments_;
  std::map<int64_t, std::string> alone_;
};

struct EmittingLoad {
  bool hostile = false;
  unsigned threads = 1;
  EngineOptions engine = {};
  uint64_t memoryLimit = uint64_t(256) << 20;
};

class EveryEmittingLoad : public EngineEmissionsTest,
                          public testing::WithParamInterface<EmittingLoad> {};

TEST_P(EveryEmittingLoad, TellsWhatEachInstanceEmitsAlone) {
  const EmittingLoad &load = GetParam();
  SessionOptions options = small();
  options.hostile = load.hostile;
  options.threads = load.threads;
  options.memoryLimit = load.memoryLimit;
  const bool isShort = load.memoryLimit < small().memoryLimit;
  if (isShort) {
    options.hostStackBytes = uint64_t(64) << 10;
    options.keepBytes = 0;
  }
  Session session(model, options);
  Engine engine(session, load.engine);
  constexpr int64_t kCount = 60;
  int64_t ended = 0, early = 0, endlessOnes = 0, wrong = 0;
  std::stop_source stop;
  for (int64_t i = 0; i < kCount; ++i) {
    int64_t limit = isShort ? 40 + i % 7 * 30 : i % 13;
    bool endless = i % 20 == 7;
    engine.submit({.instance = {argument(endless ? -1 : limit), i},
                   .stop = endless ? stop.get_token() : std::stop_token(),
                   .emitted = telling(session),
                   .done = [&, i, limit](const Outcome &outcome) {
                     ++ended;
                     const Told &all = told[i];
                     EXPECT_EQ(outcome.delivered, uint64_t(all.count));
                     early += all.firstStep < steps;
                     if (!outcome.ok()) {
                       // (All that they emit is kept for the result that they never have.)
                       bool full = isShort && outcome.error->cause() == RunError::Cause::Memory;
                       EXPECT_TRUE(full || outcome.error->cause() == RunError::Cause::Cancelled);
                       EXPECT_GT(all.count, 0);
                       ++endlessOnes;
                       return;
                     }
                     wrong += all.list + "]" != emittedText(session, outcome);
                     wrong += all.list + "]" != alone(limit);
                   }});
  }
  while (engine.step()) {
    ++steps;
    if (ended == kCount - 3)
      stop.request_stop();
  }
  EXPECT_EQ(ended, kCount);
  EXPECT_EQ(endlessOnes, 3);
  EXPECT_EQ(wrong, 0);
  // (One that finds all that it reads computed already does not wait.)
  EXPECT_GT(early, kCount / 6);
  if (isShort) {
    EXPECT_GT(engine.counts().begunAgain, 0u);
  }
  // What the endless ones were told is what each of them begins with, however often it was begun.
  for (int64_t i : {7, 27, 47}) {
    const std::string &full = alone(15);
    size_t both = std::min(told[i].list.size(), full.size() - 1);
    EXPECT_EQ(told[i].list.substr(0, both), full.substr(0, both));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryEmittingLoad,
                         testing::Values(EmittingLoad{}, EmittingLoad{.threads = 2},
                                         EmittingLoad{.hostile = true},
                                         EmittingLoad{.engine = {.mostRunning = 6, .linger = 0}},
                                         EmittingLoad{.engine = {.slice = 1, .depths = 8}},
                                         EmittingLoad{.memoryLimit = uint64_t(2) << 20}));

TEST_F(EngineEmissionsTest, GoesOnAfterOneThatThrows) {
  Session session(model, small());
  Engine engine(session);
  int64_t ended = 0;
  for (int64_t i = 0; i < 4; ++i)
    engine.submit({.instance = {argument(6), i},
                   .emitted =
                       [&, tell = telling(session)](const Instance &instance, const Slot *value) {
                         tell(instance, value);
                         if (told[instance.index].count % 5 == 0)
                           throw std::runtime_error("no");
                       },
                   .done = [&](const Outcome &) { ++ended; }});
  EXPECT_EQ(runOut(engine), 4 * 2); // of 13 each
  EXPECT_EQ(ended, 4);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(told[i].list + "]", alone(6));
}

TEST_F(EngineEmissionsTest, BeginsBehindWhatWasDelivered) {
  Session session(model, small());
  Engine engine(session);
  uint64_t delivered = 0;
  engine.submit({.instance = {argument(6), 0, 10},
                 .emitted = telling(session),
                 .done = [&](const Outcome &outcome) { delivered = outcome.delivered; }});
  while (engine.step()) {
  }
  EXPECT_EQ(delivered, 13u);
  EXPECT_EQ(told[0].count, 3);
  EXPECT_TRUE(alone(6).ends_with("," + told[0].list.substr(1) + "]"));
}

TEST_F(EngineEmissionsTest, ResultsHoldWhatNoRequestIsTold) {
  Session session(model, small());
  Engine engine(session);
  std::string emitted;
  uint64_t delivered = 1;
  engine.submit({.instance = {argument(6), 0}, .done = [&](const Outcome &outcome) {
                   emitted = emittedText(session, outcome);
                   delivered = outcome.delivered;
                 }});
  while (engine.step()) {
  }
  EXPECT_EQ(emitted, alone(6));
  EXPECT_EQ(delivered, 0u);
}

TEST_F(EngineEmissionsTest, IsToldByRequestsOnly) {
  Session session(model, small());
  session.onEmit([](const Instance &, const Slot *) {});
  EXPECT_THROW(Engine{session}, UserError);
}

} // namespace

// Values that an engine keeps: an instance that begins from one gives what all words at once give,
// whoever else begins from it, comes, goes and fails.
#include "runtime/device/device.h"
#include "runtime/io/formats.h"
#include "runtime/io/read.h"
#include "runtime/model/growth.h"
#include "runtime/session/invalid_argument.h"
#include "runtime/walk/value_image.h"
#include "tests/artefact/engine_case.h"
#include "tests/artefact/run_out.h"

#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

using Words = std::vector<int>;

/// main(state, words): (state, more) or only a state.
struct Program {
  const char *name;
  const char *start;                                         ///< the state before any words
  const char *state = "state", *words = "words", *more = ""; ///< arguments
};
constexpr Program kDecoder{"kept_decoder", "[]"};
constexpr Program kTuple{"kept_tuple", "[[], [0.5, 0, 0, -1, 0, 0, 0, 2]]"};
constexpr Program kTree{"kept_tree", R"("Leaf")"};
constexpr Program kStack{"kept_stack", "[]"};
constexpr Program kViews{"kept_views", "[[[0.5, 0, 0, -1, 0, 0, 0, 2]], []]"};
#define SHEAF_WRITES(count)                                                                        \
  "caches", "text", ", \"count\": " #count ", \"temperature\": 0.0, \"top_k\": 1, \"top_p\": 1.0"
constexpr Program kGpt2{"kept_gpt2", "[]", SHEAF_WRITES(0)};
constexpr Program kLlama{"kept_llama", "[]", SHEAF_WRITES(0)};

class KeptTest : public EngineCase {
public:
  explicit KeptTest(const Program &program = kDecoder)
      : EngineCase(std::string(SHEAF_MADE) + "/" + program.name + ".sheafc"), program_(program) {}

  bool isModel() const { return program_.more[0] != 0; } ///< and takes no text without a word
  bool isWhole() const {                                 // the result is the state
    return hasFormOf(model.types, model.entry.ownResult(model.types), model.entry.argTypes[0]);
  }
  uint32_t stateType() const {
    uint32_t type = model.entry.ownResult(model.types);
    return isWhole() ? type : model.types.types[type].children[0];
  }
  KeptValue stateOf(const Outcome &outcome) const {
    KeptValue all(outcome.kept);
    return isWhole() ? all : all.part(0);
  }
  std::string stateText(const Session &session, const Outcome &outcome) const {
    return outcome.ok() ? text(session, stateType(), outcome.slots) : text(session, outcome);
  }

  /// From the start on; where the state is kept, what stands for it is not looked at.
  Instance instance(const Words &words, int64_t number = 0) {
    std::string line = std::string("{\"") + program_.state + "\": " + program_.start + ", \"" +
                       program_.words + "\": [";
    for (size_t i = 0; i < words.size(); ++i)
      line += (i ? ", " : "") + std::to_string(words[i]);
    io::ReadOptions options;
    options.dims = &model.dims;
    options.format = io::parseDataFormat("jsonl");
    read_.push_back(io::readDataset({"test.jsonl", line + "]" + program_.more + "}\n"}, model.types,
                                    model.entry, tokens_, options));
    return {read_.back().args(0), number};
  }

  struct Texts {
    std::string all, state;
  };
  const Texts &alone(const Words &words) {
    Texts &known = alone_[words];
    if (known.all.empty()) {
      Instance one = instance(words);
      const Outcome &outcome = reference_.run(std::span(&one, 1))[0];
      known = {text(reference_, outcome), stateText(reference_, outcome)};
    }
    return known;
  }

  void runOut(Engine &engine) {
    while (engine.step()) {
    }
  }
  /// What follows words after a value, or from the start on, kept.
  KeptValue keepAfter(Session &session, Engine &engine, const KeptValue &from, const Words &words,
                      const Words &whole) {
    KeptValue result;
    Request request{.instance = instance(words), .keep = true};
    if (from)
      request.kept = {{0, from}};
    request.done = [&](const Outcome &outcome) {
      EXPECT_EQ(stateText(session, outcome), alone(whole).state);
      if (outcome.ok())
        result = stateOf(outcome);
    };
    engine.submit(std::move(request));
    runOut(engine);
    return result;
  }

private:
  void TestBody() override {}

  Program program_;
  io::Vocabularies vocabularies_ = artefact->vocabularies();
  io::VocabularyReader tokens_{vocabularies_, /*strict=*/false};
  std::deque<io::Dataset> read_; ///< instances stay where they are
  std::map<Words, Texts> alone_;
  Session reference_{model, small()};
};

Words after(const Words &words, const Words &more) {
  Words all = words;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Words count(int n) {
  Words words;
  for (int i = 0; i < n; ++i)
    words.push_back((i * 7 + i / 3) % 16);
  return words;
}

struct Load {
  Program program;
  friend void PrintTo(const Load &load, std::ostream *to) { *to << load.program.name; }
  bool hostile = false;
  unsigned threads = 1;
  EngineOptions engine = {};
  uint64_t memoryLimit = uint64_t(256) << 20;
  std::optional<uint64_t> keepBytes = {};
  When share = When::Worth;
};

class EveryLoad : public KeptTest, public testing::WithParamInterface<Load> {
protected:
  EveryLoad() : KeptTest(GetParam().program) {}
};

TEST_P(EveryLoad, GivesWhatAllWordsAtOnceGive) {
  const Load &load = GetParam();
  SessionOptions sessionOptions = optionsOf(load);
  sessionOptions.shareRows = load.share;
  Session session(model, sessionOptions);
  uint64_t time = 0;
  EngineOptions engineOptions = load.engine;
  engineOptions.clock = [&] { return time; };
  Engine engine(session, engineOptions);
  struct Node {
    Words words;
    KeptValue state;
  };
  std::vector<Node> nodes{{}};
  std::mt19937_64 random(19);
  auto among = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const int64_t total = load.hostile && !load.keepBytes ? 150 : 600;
  int64_t submitted = 0, ended = 0, well = 0, wrong = 0, continued = 0;
  size_t most = 0;
  std::map<int64_t, std::stop_source> stops;
  std::map<RunError::Cause, int64_t> causes;
  while (ended < total) {
    for (size_t arrive = among(5); arrive > 0 && submitted < std::min(total, ended + 20);
         --arrive) {
      // Many go on from few values: of the last ones, or from the start.
      const Node &from =
          nodes[among(3) ? nodes.size() - 1 - among(std::min<size_t>(nodes.size(), 4))
                         : among(nodes.size())];
      Words words;
      for (size_t n = among(8) == 0 ? 12 : isModel() + among(4); n > 0; --n)
        words.push_back(static_cast<int>(among(16)));
      Words whole = after(from.words, words);
      int64_t number = submitted++;
      size_t kind = among(12);
      Request request{.instance = instance(words, number),
                      .keep = whole.size() < 40 && among(2) == 0};
      if (from.state) {
        request.kept = {{0, from.state}};
        ++continued;
      }
      if (kind == 0)
        request.stop = stops[number].get_token();
      if (kind == 1)
        request.deadline = time + among(20);
      request.done = [&, number, whole, kind, hasWords = !words.empty(),
                      keep = request.keep](const Outcome &outcome) {
        ++ended;
        stops.erase(number);
        if (!outcome.ok()) {
          ++causes[outcome.error->cause()];
          EXPECT_LE(kind, 1u) << outcome.error->message();
          EXPECT_EQ(outcome.kept, nullptr);
          return;
        }
        ++well;
        wrong += stateText(session, outcome) != alone(whole).state;
        if (hasWords)
          wrong += text(session, outcome) != alone(whole).all;
        EXPECT_EQ(outcome.kept != nullptr, keep);
        if (keep)
          nodes.push_back({whole, stateOf(outcome)});
      };
      engine.submit(std::move(request));
    }
    time += 1;
    if (!stops.empty() && among(6) == 0)
      stops.begin()->second.request_stop();
    if (submitted == total && !stops.empty())
      stops.begin()->second.request_stop();
    if (nodes.size() > 12 || among(30) == 0) // whoever runs from it goes on
      nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(among(nodes.size())));
    if (nodes.empty() || among(10) == 0)
      nodes.insert(nodes.begin(), Node{});
    engine.step();
    most = std::max(most, engine.kept().values);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(well, total * 3 / 4);
  EXPECT_GT(continued, total / 3);
  EXPECT_GT(most, 5u);
  EXPECT_GT(causes[RunError::Cause::Cancelled], 0);
  EXPECT_EQ(causes[RunError::Cause::Program] + causes[RunError::Cause::Memory] +
                causes[RunError::Cause::Limit],
            0);
  EXPECT_GT(engine.kept().bytes, 0u);
  nodes.clear();
  runOut(engine);
  EXPECT_EQ(engine.kept().values, 0u);
  EXPECT_EQ(engine.kept().bytes, 0u);
  EXPECT_EQ(session.memory().rows.now, 0u);
  EXPECT_EQ(session.counters().evictions > 0, load.keepBytes.has_value());
}

std::vector<Load> loads() {
  std::vector<Load> all;
  for (const Program &program : {kDecoder, kTuple, kTree, kStack, kViews, kGpt2, kLlama}) {
    all.push_back({.program = program});
    all.push_back({.program = program, .hostile = true});
    all.push_back({.program = program, .threads = 2, .engine = {.slice = 1}});
    all.push_back({.program = program, .engine = {.mostRunning = 3, .linger = 0}});
    all.push_back({.program = program, .engine = {.linger = 20, .slice = 1, .depths = 8}});
    all.push_back({.program = program, .engine = {.slice = 1, .joins = false}});
    all.push_back(
        {.program = program, .engine = {.slice = 2000}, .memoryLimit = uint64_t(4) << 20});
  }
  // Whole pages are common, however few.
  for (const Program &program : {kDecoder, kTuple, kViews, kGpt2, kLlama}) {
    all.push_back({.program = program, .share = When::Always});
    all.push_back(
        {.program = program, .threads = 2, .engine = {.slice = 1}, .share = When::Always});
    all.push_back({.program = program,
                   .engine = {.linger = 20, .slice = 1, .depths = 8},
                   .share = When::Always});
    all.push_back({.program = program,
                   .engine = {.slice = 2000},
                   .memoryLimit = uint64_t(4) << 20,
                   .share = When::Always});
    all.push_back({.program = program, .hostile = true, .share = When::Never});
  }
  // Memoised results come and go.
  all.push_back({.program = kStack, .hostile = true, .keepBytes = 3 * 2 * 64});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, EveryLoad, testing::ValuesIn(loads()), [](const auto &info) {
  return std::string(info.param.program.name) + std::to_string(info.index);
});

TEST_F(KeptTest, SharesRowsOfWhatGrowsInPlace) {
  Session session(model, small());
  Engine engine(session);
  KeptValue prompt = keepAfter(session, engine, {}, count(200), count(200));
  uint64_t ofPrompt = engine.kept().bytes;
  EXPECT_EQ(ofPrompt, prompt.bytes());
  EXPECT_GE(ofPrompt, 200u * 2 * 128); // a row of 24 numbers takes two granules
  // One after the other: each is the longest version that is needed.
  std::vector<KeptValue> turns{prompt};
  Words whole = count(200);
  for (int turn = 0; turn < 20; ++turn) {
    Words words{turn % 16, 3};
    whole = after(whole, words);
    turns.push_back(keepAfter(session, engine, turns.back(), words, whole));
  }
  EXPECT_EQ(engine.kept().values, 21u);
  EXPECT_LT(engine.kept().bytes, 6 * ofPrompt);
  // The last alone keeps its own.
  turns.erase(turns.begin(), turns.end() - 1);
  prompt = {};
  runOut(engine);
  EXPECT_EQ(engine.kept().values, 1u);
  EXPECT_EQ(engine.kept().bytes, turns[0].bytes());
}

TEST_F(KeptTest, APromptOfManySamplesIsThereOnce) {
  Words prompt = count(400);
  uint64_t most[2] = {};
  for (When share : {When::Never, When::Always}) {
    SessionOptions options = small();
    options.shareRows = share;
    Session session(model, options);
    Engine engine(session);
    KeptValue base = keepAfter(session, engine, {}, prompt, prompt);
    uint64_t alone = engine.kept().bytes;
    for (int round = 0; round < 3; ++round) {
      std::vector<KeptValue> samples(12);
      int64_t wrong = 0;
      for (int i = 0; i < 12; ++i) {
        Words words{i, round}, whole = after(prompt, words);
        Request request{.instance = instance(words, i), .keep = true};
        request.kept = {{0, base}};
        request.done = [&, i, whole](const Outcome &outcome) {
          wrong += stateText(session, outcome) != this->alone(whole).state;
          samples[static_cast<size_t>(i)] = stateOf(outcome);
        };
        engine.submit(std::move(request));
      }
      runOut(engine);
      for (int i = 0; i < 6; ++i) { // from what others have written
        Words words{i, round, 5, i}, whole = after(prompt, words);
        KeptValue further =
            keepAfter(session, engine, samples[static_cast<size_t>(i)], {5, i}, whole);
      }
      EXPECT_EQ(wrong, 0);
      uint64_t beside = engine.kept().bytes - alone;
      if (session.counters().sharedTensors > 0)
        EXPECT_LT(beside, 6 * alone) << round;
      else
        EXPECT_GT(beside, 9 * alone) << round;
    }
    EXPECT_EQ(session.counters().sharedTensors > 0,
              share == When::Always && session.device().pages());
    most[share == When::Always] = session.memory().rows.peak;
    base = {};
    runOut(engine);
    EXPECT_EQ(engine.kept().values, 0u);
    EXPECT_EQ(engine.kept().bytes, 0u);
    EXPECT_EQ(session.memory().rows.now, 0u);
  }
  EXPECT_LE(most[1], most[0]);
}

TEST_F(KeptTest, GoesOnInPlaceAfterOthersHaveGone) {
  Session session(model, small());
  Engine engine(session);
  KeptValue prompt = keepAfter(session, engine, {}, count(8), count(8));
  KeptValue base = keepAfter(session, engine, prompt, {1}, after(count(8), {1}));
  prompt = {};
  runOut(engine);
  uint64_t alone = engine.kept().bytes;
  for (int i = 0; i < 10; ++i) { // what it appends is dropped
    KeptValue further = keepAfter(session, engine, base, {i, 2}, after(count(8), {1, i, 2}));
    EXPECT_LT(engine.kept().bytes - alone, 1024u) << i; // all its rows are shared
    KeptValue beside = keepAfter(session, engine, base, {2, i}, after(count(8), {1, 2, i}));
    EXPECT_GT(engine.kept().bytes - alone, 4096u) << i; // its rows are its own
  }
}

TEST_F(KeptTest, SurvivesWhatIsForgottenMeanwhile) {
  for (bool hostile : {false, true}) {
    SessionOptions options = small();
    options.hostile = hostile;
    Session session(model, options);
    Engine engine(session);
    KeptValue prompt = keepAfter(session, engine, {}, count(30), count(30));
    for (int i = 0; i < 30; ++i) { // each begins anew, with other rows in the same places
      keepAfter(session, engine, {}, count(i), count(i));
      if (i % 7 == 3) {
        keepAfter(session, engine, prompt, {i % 16}, after(count(30), {i % 16}));
      }
    }
    runOut(engine);
    EXPECT_EQ(engine.kept().values, 1u);
  }
}

TEST_F(KeptTest, OneAtATimeBesideManyThatAreKept) {
  Session session(model, small());
  Engine engine(session);
  std::vector<KeptValue> kept;
  while (engine.kept().bytes < uint64_t(32) << 20) {
    int n = 40 + static_cast<int>(kept.size() % 8);
    kept.push_back(keepAfter(session, engine, {}, count(n), count(n)));
  }
  // What they make between two looks at all that is kept lies beside it.
  uint64_t most = engine.kept().bytes + (uint64_t(8) << 20);
  for (size_t turn = 0; turn < 400; ++turn) {
    size_t at = turn * 7 % 64;
    Words words{static_cast<int>(turn % 3)}, whole = count(40 + static_cast<int>(at % 8));
    KeptValue next = keepAfter(session, engine, kept[at], words, after(whole, words));
    keepAfter(session, engine, next, {1}, after(after(whole, words), {1}));
    ASSERT_LT(session.memory().rows.now, most) << turn;
  }
  kept.resize(1);
  runOut(engine);
  EXPECT_LT(session.memory().rows.now, uint64_t(1) << 20);
  keepAfter(session, engine, kept[0], {5}, after(count(40), {5}));
  kept.clear();
  runOut(engine);
  EXPECT_EQ(session.memory().rows.now, 0u);
}

TEST_F(KeptTest, RefusesWhatDoesNotFit) {
  Session session(model, small()), other(model, small());
  Engine engine(session), another(other);
  KeptValue prompt = keepAfter(session, engine, {}, count(5), count(5));
  auto refusal = [&](Engine &by, std::vector<KeptArgument> kept) -> std::string {
    try {
      by.submit({.instance = instance({1}), .kept = std::move(kept)});
    } catch (const InvalidArgument &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(another, {{0, prompt}}), "argument 0 is a value that another engine keeps");
  EXPECT_EQ(refusal(engine, {{1, prompt}}), "argument 1 is a kept value of another type");
  EXPECT_EQ(refusal(engine, {{2, prompt}}), "there is no argument 2 but 2");
  EXPECT_EQ(refusal(engine, {{0, {}}}), "argument 0 is an empty handle");
  EXPECT_THROW((void)prompt.part(0), InvalidArgument); // a list
  EXPECT_EQ(engine.waiting() + another.waiting(), 0u);
  EXPECT_EQ(refusal(engine, {{0, prompt}}), "");
  runOut(engine);
}

TEST_F(KeptTest, EndsWithTheWeightsThatItFollowsFrom) {
  Session session(model, small());
  Engine engine(session);
  KeptValue prompt = keepAfter(session, engine, {}, count(100), count(100));
  auto change = [&] {
    const ParamDesc &desc = model.params[0];
    std::vector<float> numbers(static_cast<size_t>(tensorGranules(desc.shape, desc.dtype) * 16),
                               0.25f);
    numbers.resize(static_cast<size_t>(desc.shape[0] * desc.shape[1]));
    session.setParam(
        0, {reinterpret_cast<const uint8_t *>(numbers.data()), numbers.size() * sizeof(float)});
  };
  std::vector<std::string> ends;
  auto submit = [&] {
    engine.submit(
        {.instance = instance({1, 2}), .kept = {{0, prompt}}, .done = [&](const Outcome &outcome) {
           ends.push_back(outcome.ok() ? "" : outcome.error->message());
         }});
  };
  submit();
  engine.step(); // it runs
  engine.whenIdle(change);
  submit(); // it begins after the change
  EXPECT_TRUE(prompt.isThere());
  runOut(engine);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0], "");
  const std::string why =
      "argument 0 is a kept value that follows from weights which have been changed since";
  EXPECT_EQ(ends[1], why);
  EXPECT_FALSE(prompt.isThere());
  EXPECT_LT(prompt.bytes(), 2048u); // no rows
  EXPECT_THROW(submit(), InvalidArgument);
  EXPECT_EQ(engine.kept().values, 0u);
  EXPECT_EQ(session.memory().rows.now, 0u);
  bool ok = false;
  engine.submit({.instance = instance({1, 2}), .keep = true, .done = [&](const Outcome &outcome) {
                   ok = KeptValue(outcome.kept).isThere();
                 }});
  runOut(engine);
  EXPECT_TRUE(ok);
}

TEST_F(KeptTest, HandlesMayOutliveTheEngine) {
  KeptValue prompt;
  Session session(model, small());
  {
    Engine engine(session);
    prompt = keepAfter(session, engine, {}, count(5), count(5));
    engine.submit({.instance = instance({1}), .kept = {{0, prompt}}}); // dropped with it
  }
  EXPECT_FALSE(prompt.isThere());
  EXPECT_EQ(std::bit_cast<const ListObject *>(prompt.slots()[0])->size, 2);
  Engine engine(session);
  EXPECT_THROW(engine.submit({.instance = instance({1}), .kept = {{0, prompt}}}), InvalidArgument);
  EXPECT_TRUE(keepAfter(session, engine, {}, count(9), count(9)));
}

TEST_F(KeptTest, NamesWhatIsKeptWhereMemoryIsShort) {
  SessionOptions options = small();
  options.memoryLimit = uint64_t(4) << 20;
  options.keepBytes = 0;
  Session session(model, options);
  Engine engine(session);
  std::vector<KeptValue> kept;
  std::string error;
  size_t ended = 0;
  while (error.empty() && kept.size() < 1000) {
    engine.submit(
        {.instance = instance(count(300)), .keep = true, .done = [&](const Outcome &outcome) {
           ++ended;
           if (outcome.ok())
             kept.emplace_back(outcome.kept);
           else
             error = outcome.error->message();
         }});
    runOut(engine);
    EXPECT_EQ(kept.size(), engine.kept().values);
  }
  EXPECT_GT(kept.size(), 5u);
  EXPECT_NE(error.find("the engine already holds "), std::string::npos) << error;
  EXPECT_NE(error.find(" of all are values that are kept for whoever has a handle of them"),
            std::string::npos)
      << error;
  // None of them was taken; those that begin from them need less.
  for (const KeptValue &value : kept)
    EXPECT_TRUE(value.isThere());
  kept.resize(kept.size() / 2);
  for (int i = 0; i < 20; ++i)
    engine.submit({.instance = instance({i % 16}),
                   .kept = {{0, kept[static_cast<size_t>(i) % kept.size()].part(0)}},
                   .done = [&, i](const Outcome &outcome) {
                     ++ended;
                     EXPECT_EQ(stateText(session, outcome),
                               alone(after(count(300), {i % 16})).state);
                   }});
  runOut(engine);
  EXPECT_EQ(engine.counts().ended, ended);
}

class WritingTest : public KeptTest, public testing::WithParamInterface<const char *> {
protected:
  WritingTest() : KeptTest({GetParam(), "[]", SHEAF_WRITES(9)}) {}
};

/// Many go on from one prompt, and write: what each writes is what it writes alone.
TEST_P(WritingTest, SamplesFromOnePrompt) {
  KeptTest prompts({GetParam(), "[]", SHEAF_WRITES(0)});
  for (bool hostile : {false, true}) {
    SessionOptions options = small();
    options.hostile = hostile;
    Session session(model, options);
    Engine engine(session, {.slice = 20'000});
    KeptValue prompt;
    engine.submit({.instance = prompts.instance(count(40)),
                   .keep = true,
                   .done = [&](const Outcome &outcome) { prompt = stateOf(outcome); }});
    runOut(engine);
    uint64_t bytes = engine.kept().bytes;
    int ended = 0;
    for (int i = 0; i < 30; ++i)
      engine.submit({.instance = instance({i % 5}),
                     .kept = {{0, prompt}},
                     .done = [&, i](const Outcome &outcome) {
                       ++ended;
                       EXPECT_EQ(text(session, outcome), alone(after(count(40), {i % 5})).all);
                     }});
    runOut(engine);
    EXPECT_EQ(ended, 30);
    EXPECT_EQ(engine.kept().bytes, bytes);
  }
}

/// What a type says that a token takes is what is held more for it, beside the room for others.
TEST_P(WritingTest, HoldsForATokenWhatTheTypeSays) {
  KeptTest prompts({GetParam(), "[]", SHEAF_WRITES(0)});
  std::optional<int64_t> growth = growthBytes(model.types, model.entry.ownResult(model.types));
  ASSERT_TRUE(growth);
  EXPECT_GT(*growth, 0);
  Session session(model, small());
  Engine engine(session);
  std::vector<uint64_t> bytes;
  for (int words : {40, 41, 52}) {
    KeptValue prompt = prompts.keepAfter(session, engine, {}, count(words), count(words));
    ASSERT_TRUE(prompt);
    bytes.push_back(prompt.bytes());
    // A word that goes into the room takes nothing.
    KeptValue more = prompts.keepAfter(session, engine, prompt, {3}, after(count(words), {3}));
    EXPECT_EQ(more.bytes(), prompt.bytes());
  }
  EXPECT_EQ(bytes[1] - bytes[0], static_cast<uint64_t>(*growth));
  EXPECT_EQ(bytes[2] - bytes[0], 12 * static_cast<uint64_t>(*growth));
}

INSTANTIATE_TEST_SUITE_P(All, WritingTest, testing::Values("kept_gpt2", "kept_llama"));

/// Which instance appends in place, and which copies, has no say in its verdict.
TEST_F(KeptTest, LimitsOfRowsDoNotDependOnWhoGrewTheValueFirst) {
  auto verdict = [&](uint64_t rowBytes, int before) {
    Session session(model, small());
    Engine engine(session);
    KeptValue prompt = keepAfter(session, engine, {}, count(20), count(20));
    KeptValue base = keepAfter(session, engine, prompt, {1}, after(count(20), {1}));
    std::vector<KeptValue> others;
    for (int i = 0; i < before; ++i)
      others.push_back(keepAfter(session, engine, base, {2}, after(count(20), {1, 2})));
    std::string end;
    engine.submit({.instance = instance({3, 4, 5}),
                   .limits = {.rowBytes = rowBytes},
                   .kept = {{0, base}},
                   .done = [&](const Outcome &outcome) { end = text(session, outcome); }});
    runOut(engine);
    return end;
  };
  std::map<bool, int> ends;
  for (uint64_t rowBytes = 256; rowBytes < 16384; rowBytes += 512) {
    std::string first = verdict(rowBytes, 0);
    EXPECT_EQ(first, verdict(rowBytes, 1)) << rowBytes;
    ++ends[first == alone(after(count(20), {1, 3, 4, 5})).all];
  }
  EXPECT_GT(ends[true], 0);
  EXPECT_GT(ends[false], 0);
}

TEST_F(KeptTest, IsDroppedFromAnyThread) {
  Session session(model, small());
  Engine engine(session);
  std::jthread runner([&](const std::stop_token &stop) { engine.run(stop); });
  std::vector<Instance> prompts, turns;
  std::vector<std::string> expected;
  for (int i = 0; i < 8; ++i) {
    prompts.push_back(instance(count(3 + i)));
    turns.push_back(instance({i, 1}));
    expected.push_back(alone(after(count(3 + i), {i, 1})).all);
  }
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> clients;
    for (size_t client = 0; client < 3; ++client)
      clients.emplace_back([&, client] {
        for (size_t i = 0; i < 40; ++i) {
          size_t number = (i * 3 + client) % prompts.size();
          KeptValue prompt = engine
                                 .submit({.instance = prompts[number], .keep = true},
                                         [&](const Outcome &o) { return stateOf(o); })
                                 .get();
          std::vector<std::future<std::string>> ends;
          for (int copy = 0; copy < 3; ++copy)
            ends.push_back(
                engine.submit({.instance = turns[number], .kept = {{0, prompt}}},
                              [&](const Outcome &outcome) { return text(session, outcome); }));
          prompt = {};
          for (std::future<std::string> &end : ends)
            wrong += end.get() != expected[number];
        }
      });
  }
  runner.request_stop();
  runner.join();
  EXPECT_EQ(wrong, 0);
  runOut(engine);
  EXPECT_EQ(engine.kept().values, 0u);
}

} // namespace

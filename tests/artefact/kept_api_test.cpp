// Values that an engine keeps, by the C interface and its C++ header.
#include "sheaf/sheaf.hpp"
#include "tests/artefact/message_of.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <thread>

namespace {

using Words = std::vector<int>;

/// main(state: (f32[m, 8], f32[8]), words: list<token>) -> (f32[?, 8], f32[8])
struct KeptApi : testing::Test {
  sheaf::Model model{SHEAF_MADE "/kept_tuple.sheafc"};
  sheaf_session_options small = [] {
    sheaf_session_options options{};
    options.size = sizeof options;
    options.memory_limit = uint64_t(64) << 20;
    return options;
  }();

  sheaf::Value wordsOf(sheaf::Batch &batch, const Words &words) {
    sheaf::Type type = model.argumentType(1);
    sheaf::Type token = sheaf_type_child(model.get(), type, 0);
    std::vector<sheaf::Value> values;
    for (int word : words)
      values.push_back(batch.makeToken(token, word));
    return batch.makeList(type, values);
  }
  sheaf::Value start(sheaf::Batch &batch, int rows = 0) {
    sheaf::Type type = model.argumentType(0);
    std::vector<float> numbers(static_cast<size_t>(rows + 1) * 8, 0.5f);
    return batch.makeTuple(
        type, {batch.makeTensor(sheaf_type_child(model.get(), type, 0), {rows, 8}, numbers.data()),
               batch.makeTensor(sheaf_type_child(model.get(), type, 1), {8}, numbers.data())});
  }
  sheaf::Batch from(const std::optional<sheaf::Kept> &kept, const Words &words, int64_t id = 0) {
    sheaf::Batch batch(model);
    batch.add(
        {kept ? batch.makeKept(model.argumentType(0), *kept) : start(batch), wordsOf(batch, words)},
        id);
    return batch;
  }
  static std::vector<float> numbersOf(const sheaf::Result &result) {
    std::vector<float> all;
    for (size_t part : {0u, 1u}) {
      sheaf::Tensor tensor = result[0][part].tensor();
      all.insert(all.end(), tensor.data<float>(), tensor.data<float>() + tensor.size());
    }
    return all;
  }
  std::vector<float> alone(const Words &words) {
    return numbersOf(sheaf::Session(1, uint64_t(64) << 20).run(from({}, words)));
  }
  static sheaf_request_options keep(uint32_t how) {
    sheaf_request_options options{};
    options.keep = how;
    return options;
  }
  static void runOut(sheaf::Engine &engine) {
    while (engine.step()) {
    }
  }
  std::optional<sheaf::Kept> keepAfter(sheaf::Engine &engine, const Words &words) {
    std::optional<sheaf::Kept> kept;
    engine.submit(
        from({}, words), [&](int64_t, const sheaf::Result &result) { kept = result.kept(); },
        keep(SHEAF_KEEP_ONLY));
    runOut(engine);
    return kept;
  }
};

TEST_F(KeptApi, OthersBeginFromWhatIsKept) {
  sheaf::Engine engine(model, &small);
  std::optional<sheaf::Kept> prompt;
  engine.submit(
      from({}, {1, 2, 3}),
      [&](int64_t, const sheaf::Result &result) {
        EXPECT_EQ(numbersOf(result), alone({1, 2, 3}));
        prompt = result.kept();
      },
      keep(SHEAF_KEEP_BOTH));
  runOut(engine);
  ASSERT_TRUE(prompt);
  EXPECT_TRUE(prompt->isThere());
  EXPECT_EQ(prompt->type(), model.resultType());
  EXPECT_EQ(model.growth(prompt->type()), 64); // a row of 8 numbers
  EXPECT_EQ(model.growth(model.argumentType(1)), 0);
  EXPECT_EQ(model.growth(SHEAF_NO_TYPE), -1);
  EXPECT_EQ(engine.keptValues(), 1u);
  EXPECT_EQ(engine.keptBytes(), prompt->bytes());
  std::map<int64_t, std::vector<float>> found;
  for (int64_t i = 0; i < 6; ++i)
    engine.submit(from(prompt, {4, static_cast<int>(i)}, i),
                  [&](int64_t id, const sheaf::Result &result) {
                    found[id] = numbersOf(result);
                    EXPECT_EQ(messageOf([&] { (void)result.kept(); }, SHEAF_INVALID),
                              "of instance 0 nothing is kept");
                  });
  prompt.reset(); // those that begin from it hold it
  runOut(engine);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(found[i], alone({1, 2, 3, 4, i})) << i;
  EXPECT_EQ(engine.keptValues(), 0u);
  EXPECT_EQ(engine.keptBytes(), 0u);
}

TEST_F(KeptApi, NothingIsCopiedWhereItIsKeptAlone) {
  sheaf::Engine engine(model, &small);
  std::optional<sheaf::Result> held;
  engine.submit(
      from({}, {1, 2}), [&](int64_t, const sheaf::Result &result) { held = result; },
      keep(SHEAF_KEEP_ONLY));
  runOut(engine);
  EXPECT_EQ(held->error(0), "");
  EXPECT_EQ(held->cause(0), SHEAF_ENDED);
  EXPECT_EQ(held->failure(0).instance, -1);
  EXPECT_EQ(messageOf([&] { (void)(*held)[0]; }, SHEAF_INVALID),
            "instance 0: its value was kept and not copied");
  EXPECT_EQ(engine.keptValues(), 1u); // the result holds it
  held.reset();
  runOut(engine);
  EXPECT_EQ(engine.keptValues(), 0u);
}

TEST_F(KeptApi, RefusesWhatDoesNotFit) {
  sheaf::Engine engine(model, &small), another(model, &small);
  std::optional<sheaf::Kept> prompt = keepAfter(engine, {1, 2});
  auto done = [](int64_t, const sheaf::Result &) {};
  EXPECT_EQ(messageOf([&] { another.submit(from(prompt, {1}), done); }, SHEAF_INVALID),
            "argument 0 is a value that another engine keeps");
  sheaf::Batch batch = from(prompt, {1});
  EXPECT_EQ(messageOf([&] { sheaf::Session(1).run(batch); }, SHEAF_INVALID),
            "the batch has values that an engine keeps: only that engine runs it");
  EXPECT_EQ(batch.size(), 1u);
  sheaf::Value value = batch.makeKept(model.argumentType(0), *prompt);
  EXPECT_EQ(messageOf([&] { batch.makeKept(model.argumentType(1), *prompt); }, SHEAF_INVALID),
            "the kept value is of type '(f32[?, 8], f32[8])', not 'list<token>'");
  EXPECT_EQ(messageOf([&] { batch.makeKept(4711, *prompt); }, SHEAF_INVALID),
            "the kept value is of type '(f32[?, 8], f32[8])': there is no type 4711");
  EXPECT_EQ(messageOf([&] { (void)(*prompt)[2]; }, SHEAF_INVALID), "the kept value has no part 2");
  // A part of it is none of a tuple that is made.
  sheaf::Kept state = (*prompt)[1];
  sheaf::Type type = model.argumentType(0);
  EXPECT_EQ(messageOf([&] { batch.makeTuple(type, {value, batch.makeKept(state.type(), state)}); },
                      SHEAF_INVALID),
            "part 0 is of type '" + model.text(type) + "', not '" +
                model.text(sheaf_type_child(model.get(), type, 0)) + "'");
  EXPECT_EQ(messageOf(
                [&] {
                  sheaf::Type part = sheaf_type_child(model.get(), type, 1);
                  std::vector<float> none(8);
                  batch.makeTuple(type, {batch.makeTensor(sheaf_type_child(model.get(), type, 0),
                                                          {0, 8}, none.data()),
                                         batch.makeKept(part, state)});
                },
                SHEAF_INVALID),
            "part 1 is kept by an engine: it can only be an argument, as a whole");
  sheaf::Model other(SHEAF_MADE "/kept_tuple.sheafc");
  EXPECT_EQ(messageOf([&] { sheaf::Batch(other).makeKept(other.argumentType(0), *prompt); },
                      SHEAF_INVALID),
            "the kept value is of another model");
  EXPECT_EQ(messageOf([&] { engine.submit(from({}, {1}), done, keep(7)); }, SHEAF_INVALID),
            "options.keep is 7");
  EXPECT_EQ(sheaf_result_kept(nullptr, 0, nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_kept_part(nullptr, 0, nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_kept_type(nullptr), SHEAF_NO_TYPE);
  EXPECT_EQ(sheaf_kept_bytes(nullptr) + sheaf_engine_kept_bytes(nullptr), 0u);
  EXPECT_EQ(sheaf_kept_is_there(nullptr), 0);
  sheaf_kept_release(nullptr);
}

TEST_F(KeptApi, HandlesOutliveAllElse) {
  std::optional<sheaf::Kept> prompt;
  std::optional<sheaf::Batch> batch;
  {
    sheaf::Engine engine(model, &small);
    prompt = keepAfter(engine, {1, 2});
    batch = from(prompt, {3});
  }
  EXPECT_FALSE(prompt->isThere());
  sheaf::Engine engine(model, &small);
  EXPECT_EQ(messageOf([&] { engine.submit(*batch, [](int64_t, const sheaf::Result &) {}); },
                      SHEAF_INVALID),
            "argument 0 is a value that another engine keeps");
  sheaf::Kept part = (*prompt)[0];
  prompt.reset();
  batch.reset();
  model = sheaf::Model(SHEAF_MADE "/kept_stack.sheafc");
  EXPECT_GT(part.bytes(), 0u);
}

TEST_F(KeptApi, AnyThreadMayGoOn) {
  sheaf::Engine engine(model, &small);
  sheaf::Stop stop;
  std::thread runner([&] { EXPECT_NO_THROW(engine.run(stop)); });
  constexpr int kClients = 3, kTurns = 30;
  std::vector<std::vector<float>> last(kClients);
  std::atomic<int> left = kClients;
  // Each has a conversation: what ends begins the next turn, in the thread that steps.
  std::function<void(int, int, std::optional<sheaf::Kept>)> turn =
      [&](int client, int number, std::optional<sheaf::Kept> kept) {
        engine.submit(
            from(kept, {client, number % 16}),
            [&, client, number](int64_t, const sheaf::Result &result) {
              if (number + 1 < kTurns) {
                turn(client, number + 1, result.kept());
              } else {
                last[static_cast<size_t>(client)] = numbersOf(result);
                --left;
              }
            },
            keep(SHEAF_KEEP_BOTH));
      };
  {
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client)
      clients.emplace_back([&, client] { turn(client, 0, {}); });
    for (std::thread &client : clients)
      client.join();
  }
  while (left > 0)
    std::this_thread::yield();
  stop.request();
  runner.join();
  for (int client = 0; client < kClients; ++client) {
    Words words;
    for (int number = 0; number < kTurns; ++number)
      words.insert(words.end(), {client, number % 16});
    EXPECT_EQ(last[static_cast<size_t>(client)], alone(words)) << client;
  }
  runOut(engine);
  EXPECT_EQ(engine.keptValues(), 0u);
}

} // namespace

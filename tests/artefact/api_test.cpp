// The C interface through its C++ wrapper, with the golden artefact.
#include "tests/artefact/message_of.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <thread>

namespace {

constexpr uint64_t kSmall = uint64_t(64) << 20;
const std::string kGolden = SHEAF_GOLDEN "/v2.sheafc";
const std::string kWithLengths = SHEAF_GOLDEN "/v2_7.sheafc";

struct Tree {
  explicit Tree(sheaf::Batch &batch) : batch(batch), model(batch.model()) {
    type = model.argumentType(0);
    token = sheaf_type_field_type(model.get(), type, 0, 0);
  }
  sheaf::Value leaf(const std::string &word) {
    return batch.makeData(type, "Leaf", {batch.makeToken(token, model.token(word))});
  }
  sheaf::Value node(sheaf::Value left, sheaf::Value right) {
    return batch.makeData(type, "Node", {left, right});
  }
  sheaf::Batch &batch;
  const sheaf::Model &model;
  sheaf::Type type, token;
};

TEST(Api, Describes) {
  sheaf::Model model(kGolden);
  EXPECT_EQ(model.name(), "v2");
  EXPECT_EQ(model.entry(), "main");
  EXPECT_EQ(model.dim("hidden"), 4);
  EXPECT_EQ(model.dim("depth"), -1);
  ASSERT_EQ(model.arguments(), 1u);
  EXPECT_STREQ(sheaf_model_argument_name(model.get(), 0), "t");
  sheaf::Type tree = model.argumentType(0);
  EXPECT_EQ(model.findType("Tree"), tree);
  EXPECT_EQ(sheaf_type_kind(model.get(), tree), SHEAF_DATA);
  EXPECT_EQ(sheaf_type_constructor_count(model.get(), tree), 2u);
  EXPECT_STREQ(sheaf_type_field_name(model.get(), tree, 1, 0), "left");
  EXPECT_EQ(sheaf_type_field_type(model.get(), tree, 1, 0), tree);
  sheaf::Type result = model.resultType();
  EXPECT_EQ(sheaf_type_kind(model.get(), result), SHEAF_TUPLE);
  EXPECT_EQ(sheaf_type_child_count(model.get(), result), 3u);
  sheaf::Type tensor = sheaf_type_child(model.get(), result, 0);
  EXPECT_EQ(sheaf_type_rank(model.get(), tensor), 1u);
  EXPECT_EQ(sheaf_type_extent(model.get(), tensor, 0), 4);
  EXPECT_EQ(sheaf_type_dtype(model.get(), tensor).code, kDLFloat);
  EXPECT_EQ(sheaf_vocabulary_size(model.get(), ""), 5);
  EXPECT_EQ(model.token("c"), 3);
  EXPECT_EQ(model.token("x"), 0);
  EXPECT_EQ(model.word(2), "b");
  EXPECT_EQ(sheaf_vocabulary_word(model.get(), "", 5), nullptr);
  EXPECT_EQ(std::strlen(sheaf_vocabulary_hash(model.get(), "")), 16u);
  // Nothing of what is not there.
  EXPECT_EQ(sheaf_type_text(model.get(), 999), nullptr);
  EXPECT_EQ(sheaf_type_constructor_name(model.get(), tensor, 0), nullptr);
  EXPECT_EQ(sheaf_model_argument_type(model.get(), 1), SHEAF_NO_TYPE);
  EXPECT_EQ(sheaf_model_name(nullptr), nullptr);
}

TEST(Api, Runs) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  Tree tree(batch);
  batch.add({tree.node(tree.leaf("a"), tree.leaf("b"))});
  batch.add({tree.leaf("c")});
  sheaf::Value shared = tree.node(tree.leaf("d"), tree.leaf("a"));
  batch.add({tree.node(shared, shared)});
  sheaf::Result result = sheaf::Session().run(batch);
  ASSERT_EQ(result.size(), 3u);
  // tests/artefact/golden/v2.expected.jsonl
  const float expected[2][4] = {{0.7754811f, 0.8404181f, 0.19480997f, 0.036216892f},
                                {-0.53865665f, -0.47756845f, 0.11136175f, -0.014229828f}};
  for (size_t i = 0; i < 2; ++i) {
    sheaf::Tensor state = result[i][0].tensor();
    ASSERT_EQ(state.shape(), (std::vector<int64_t>{4}));
    for (size_t j = 0; j < 4; ++j)
      EXPECT_EQ(state.data<float>()[j], expected[i][j]) << i << " " << j;
  }
  EXPECT_EQ(result[0][1].toInt(), 2);
  EXPECT_EQ(result[2][1].toInt(), 4);
  sheaf::View words = result[2][2];
  ASSERT_EQ(words.size(), 4u);
  EXPECT_EQ(model.word(words[2].toInt()), "d");
}

TEST(Api, TensorsOutliveTheirResult) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  batch.add({Tree(batch).leaf("c")});
  sheaf::Tensor state = [&] { return sheaf::Session().run(batch)[0][0].tensor(); }();
  EXPECT_EQ(state.data<float>()[0], -0.53865665f);
}

TEST(Api, RefusesWrongArguments) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model), other(model);
  Tree tree(batch), otherTree(other);
  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  EXPECT_EQ(message([&] { batch.makeToken(tree.token, 5); }),
            "token 5 is none of the 5 of the vocabulary of 'token'");
  EXPECT_EQ(message([&] { batch.makeToken(tree.token, -1); }),
            "token -1 is none of the 5 of the vocabulary of 'token'");
  EXPECT_EQ(message([&] { batch.makeInt(tree.token, 1); }), "'token' is not the type of an int");
  EXPECT_EQ(message([&] { batch.makeInt(999, 1); }), "the model has no type 999");
  EXPECT_EQ(message([&] { batch.makeData(tree.type, 2, {}); }), "'Tree' has no constructor 2");
  EXPECT_EQ(message([&] { batch.makeData(tree.type, "Node", {tree.leaf("a")}); }),
            "Node: given 1 of 2 fields");
  EXPECT_EQ(message([&] { batch.makeData(tree.type, "Leaf", {tree.leaf("a")}); }),
            "Leaf: field 0 is of type 'Tree', not 'token'");
  EXPECT_EQ(message([&] { batch.add({otherTree.leaf("a")}); }),
            "argument 0 is no value of this batch");
  EXPECT_EQ(message([&] { batch.add({sheaf::Value{0}}); }), "argument 0 is no value of this batch");
  EXPECT_EQ(message([&] { batch.add({}); }), "given 0 of 1 arguments");
  sheaf::Value old = tree.leaf("a");
  batch.clear();
  EXPECT_EQ(message([&] { batch.add({old}); }), "argument 0 is no value of this batch");
  EXPECT_EQ(messageOf([] { sheaf::Model("/nowhere"); }, SHEAF_NOT_READABLE),
            "/nowhere: No such file or directory");
  EXPECT_EQ(messageOf([&] { sheaf::Model(kGolden, std::string(64, '0')); }, SHEAF_DIGEST)
                .substr(0, kGolden.size()),
            kGolden);
  for (const char *noDigest : {"", "xyz", "0123456789abcdef"}) {
    sheaf_load_options options{sizeof options, noDigest, 0, nullptr};
    sheaf_model *model = nullptr;
    EXPECT_EQ(sheaf_model_load(kGolden.c_str(), &options, &model), SHEAF_INVALID);
    EXPECT_STREQ(sheaf_error_message(), "options.sha256 is not 64 hexadecimal digits");
    EXPECT_EQ(model, nullptr);
  }
  EXPECT_EQ(sheaf_model_load(nullptr, nullptr, nullptr), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "path is null");
  EXPECT_EQ(sheaf_session_run(nullptr, batch.get(), nullptr), SHEAF_INVALID);
  sheaf_session_options options{};
  sheaf_session *session = nullptr;
  EXPECT_EQ(sheaf_session_create(&options, &session), SHEAF_INVALID);
}

/// What `call` answers when it is given these options as others may give them: `Options` is what
/// the library knows. `call` must succeed with them.
template <typename Options, typename Call>
void takesStructsThatGrow(const char *type, Options options, Call call) {
  struct {
    Options known;
    uint64_t later[2] = {};
  } newer{options};
  size_t &size = newer.known.size;
  auto status = [&] { return call(&newer.known); };
  size = sizeof(Options);
  EXPECT_EQ(status(), SHEAF_OK) << type << ": " << sheaf_error_message();
  size = sizeof newer;
  EXPECT_EQ(status(), SHEAF_OK) << type << ": " << sheaf_error_message();
  newer.later[1] = uint64_t(1) << 63;
  size = sizeof newer - sizeof(uint64_t);
  EXPECT_EQ(status(), SHEAF_OK) << type << ": " << sheaf_error_message();
  size = sizeof newer;
  EXPECT_EQ(status(), SHEAF_INVALID) << type;
  EXPECT_EQ(sheaf_error_message(), std::string("a member of ") + type +
                                       " is set that this library does not know: it is " +
                                       sheaf_version() + ", older than the caller's header");
  for (size_t wrong : {size_t(0), sizeof(size_t) - 1, sizeof(Options) - 1, sizeof(Options) + 1,
                       size_t(1) << 20, SIZE_MAX}) {
    size = wrong;
    EXPECT_EQ(status(), SHEAF_INVALID) << type << " of " << wrong;
    EXPECT_EQ(sheaf_error_message(),
              "options.size is " + std::to_string(wrong) + ": set it to sizeof(" + type + ")");
  }
  // What stands behind the end of an older one is not looked at.
  std::vector<unsigned char> older(sizeof(Options), 0xff);
  size = sizeof(size_t);
  std::memcpy(older.data(), &size, sizeof size);
  EXPECT_EQ(call(reinterpret_cast<const Options *>(older.data())), SHEAF_OK)
      << type << ": " << sheaf_error_message();
}

TEST(Api, StructsOfOptionsGrow) {
  takesStructsThatGrow("sheaf_load_options", sheaf_load_options{},
                       [](const sheaf_load_options *options) {
                         sheaf_model *model = nullptr;
                         sheaf_status status = sheaf_model_load(kGolden.c_str(), options, &model);
                         sheaf_model_release(model);
                         return status;
                       });
  takesStructsThatGrow("sheaf_session_options", sheaf_session_options{},
                       [](const sheaf_session_options *options) {
                         sheaf_session *session = nullptr;
                         sheaf_status status = sheaf_session_create(options, &session);
                         sheaf_session_release(session);
                         return status;
                       });
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  sheaf::Session session;
  takesStructsThatGrow(
      "sheaf_run_options", sheaf_run_options{}, [&](const sheaf_run_options *options) {
        sheaf_result *result = nullptr;
        sheaf_status status = sheaf_session_run_with(session.get(), batch.get(), options, &result);
        sheaf_result_release(result);
        return status;
      });
  sheaf_session_options small{};
  small.size = sizeof small;
  small.memory_limit = uint64_t(64) << 20;
  takesStructsThatGrow(
      "sheaf_engine_options", sheaf_engine_options{}, [&](const sheaf_engine_options *options) {
        sheaf_engine *engine = nullptr;
        sheaf_status status = sheaf_engine_create(model.get(), &small, options, &engine);
        sheaf_engine_release(engine);
        return status;
      });
  takesStructsThatGrow("sheaf_executor_options", sheaf_executor_options{},
                       [](const sheaf_executor_options *options) {
                         sheaf_executor *executor = nullptr;
                         sheaf_status status = sheaf_executor_create(options, &executor);
                         sheaf_executor_release(executor);
                         return status;
                       });
  sheaf::Engine engine(model, &small);
  takesStructsThatGrow(
      "sheaf_request_options", sheaf_request_options{}, [&](const sheaf_request_options *options) {
        auto done = [](void *, int64_t, sheaf_result *) {};
        return sheaf_engine_submit(engine.get(), batch.get(), options, done, nullptr);
      });
}

/// A member of an older client's struct is heard, and one that it lacks is not.
TEST(Api, AnOlderClientsOptionsAreHeard) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  batch.add({Tree(batch).leaf("c")});
  sheaf::Session session;
  sheaf::Stop stop;
  stop.request();
  sheaf_run_options options{};
  options.size = offsetof(sheaf_run_options, emit);
  options.stop = stop.get();
  options.emit = [](void *, int64_t, const sheaf_result *, sheaf_view) { FAIL(); };
  sheaf_result *result = nullptr;
  ASSERT_EQ(sheaf_session_run_with(session.get(), batch.get(), &options, &result), SHEAF_OK);
  EXPECT_STREQ(sheaf_result_error(result, 0), "the run was stopped");
  sheaf_result_release(result);
}

TEST(Api, ChecksLengthsOfLists) {
  sheaf::Model model(kWithLengths);
  sheaf::Batch batch(model);
  sheaf::Type memory = model.argumentType(0), rows = model.argumentType(1),
              marks = model.argumentType(2);
  sheaf::Type row = sheaf_type_child(model.get(), rows, 0);
  sheaf::Type number = sheaf_type_child(model.get(), marks, 0);
  sheaf::Type keys = sheaf_type_field_type(model.get(), memory, 0, 0);
  sheaf::Type names = sheaf_type_field_type(model.get(), memory, 0, 1);
  std::vector<float> ones(8, 1);
  sheaf::Value one = batch.makeTensor(row, {8}, ones.data()), two = batch.makeInt(number, 2);
  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  EXPECT_EQ(message([&] { batch.makeList(keys, {one, one}); }),
            "the list has 2 elements; its type is 'list<f32[8]>[3]'");
  sheaf::Value known = batch.makeData(
      memory, "Memory", {batch.makeList(keys, {one, one, one}), batch.makeList(names, {})});
  sheaf::Value three = batch.makeList(rows, {one, one, one});
  EXPECT_EQ(message([&] { batch.add({known, three, batch.makeList(marks, {two})}); }),
            "the extent n of 'list<f32[8]>[n]' is 3 in one list and 1 in another of the same "
            "instance");
  batch.add({known, three, batch.makeList(marks, {two, two, two})});
  sheaf::Result result = sheaf::Session().run(batch);
  EXPECT_EQ(result[0].tensor().shape(), (std::vector<int64_t>{3, 8}));
  EXPECT_NEAR(result[0].tensor().data<float>()[0], 3, 1e-5);
}

TEST(Api, RefusesWrongViews) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  batch.add({Tree(batch).leaf("c")});
  sheaf::Result result = sheaf::Session().run(batch);
  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  EXPECT_EQ(message([&] { result[0].toInt(); }),
            "a value of type '(f32[4], int, list<token>)' is no int, token or bool");
  EXPECT_EQ(message([&] { result[0][3]; }),
            "a value of type '(f32[4], int, list<token>)' has no part 3 but 3");
  EXPECT_EQ(message([&] { result[0][2][1]; }), "a value of type 'list<token>' has no part 1 but 1");
  EXPECT_EQ(message([&] { result[1]; }), "the result has no instance 1");
  EXPECT_EQ(result.error(1), "the result has no such instance");
}

TEST(Api, InstancesFailAlone) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  Tree tree(batch);
  sheaf::Value deep = tree.leaf("a");
  for (int i = 0; i < 100000; ++i)
    deep = tree.node(deep, tree.leaf("b"));
  batch.add({deep});
  batch.add({tree.leaf("c")});
  sheaf_session_options options{};
  options.size = sizeof options;
  options.max_depth = 1000;
  sheaf::Result result = sheaf::Session(options).run(batch);
  EXPECT_NE(result.error(0).find("too deep"), std::string::npos) << result.error(0);
  EXPECT_EQ(result.error(1), "");
  EXPECT_EQ(result[1][1].toInt(), 1);
  EXPECT_EQ(sheaf::Session().run(batch)[0][1].toInt(), 100001);
}

/// How many instances have their result, and how many the error of a run that was stopped.
std::pair<size_t, size_t> doneAndStopped(const sheaf::Result &result) {
  std::pair<size_t, size_t> counts;
  for (size_t i = 0; i < result.size(); ++i) {
    counts.first += result.error(i).empty();
    counts.second += result.error(i) == "the run was stopped";
  }
  return counts;
}
using Counts = std::pair<size_t, size_t>;

TEST(Api, AStopIsForTheRunsItIsGivenTo) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model), none(model);
  Tree tree(batch);
  for (int i = 0; i < 3; ++i)
    batch.add({tree.node(tree.leaf("a"), tree.leaf("b"))});
  sheaf::Session session;
  sheaf::Stop stop, other;
  EXPECT_EQ(doneAndStopped(session.run(batch, stop)), Counts(3, 0));
  sheaf::Result before = session.run(batch, stop);
  stop.request();
  stop.request();
  EXPECT_EQ(doneAndStopped(before), Counts(3, 0));
  EXPECT_EQ(doneAndStopped(session.run(batch)), Counts(3, 0));
  EXPECT_EQ(doneAndStopped(session.run(batch, other)), Counts(3, 0));
  EXPECT_EQ(doneAndStopped(session.run(batch, stop)), Counts(0, 3));
  // Its weights are made ready by the first run that runs.
  sheaf::Session fresh;
  EXPECT_EQ(doneAndStopped(fresh.run(batch, stop)), Counts(0, 3));
  EXPECT_FLOAT_EQ(fresh.run(batch, other)[0][0].tensor().data<float>()[0], 0.7754811f);
  EXPECT_EQ(session.run(none, stop).size(), 0u);
}

TEST(Api, StopsInC) {
  sheaf::Model model(kGolden);
  sheaf::Batch batch(model);
  batch.add({Tree(batch).leaf("c")});
  sheaf::Session session;
  sheaf_stop *stop = nullptr;
  ASSERT_EQ(sheaf_stop_create(&stop), SHEAF_OK);
  sheaf_result *result = nullptr;
  sheaf_run_options options{};
  options.stop = stop;
  EXPECT_EQ(sheaf_session_run_with(session.get(), batch.get(), &options, &result), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "options.size is 0: set it to sizeof(sheaf_run_options)");
  EXPECT_EQ(result, nullptr);
  options.size = sizeof options;
  sheaf_stop_request(stop);
  ASSERT_EQ(sheaf_session_run_with(session.get(), batch.get(), &options, &result), SHEAF_OK);
  EXPECT_STREQ(sheaf_result_error(result, 0), "the run was stopped");
  sheaf_result_release(result);
  sheaf_stop_release(stop);
  options.stop = nullptr;
  for (const sheaf_run_options *given : {&options, static_cast<sheaf_run_options *>(nullptr)}) {
    ASSERT_EQ(sheaf_session_run_with(session.get(), batch.get(), given, &result), SHEAF_OK);
    EXPECT_EQ(sheaf_result_error(result, 0), nullptr);
    sheaf_result_release(result);
  }
  sheaf_stop_request(nullptr);
  sheaf_stop_release(nullptr);
  EXPECT_EQ(sheaf_stop_create(nullptr), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "stop is null");
}

TEST(Api, StopsLoading) {
  sheaf::Stop stop;
  sheaf_load_options options{};
  options.stop = stop.get();
  EXPECT_EQ(sheaf::Model(kGolden, options).name(), sheaf::Model(kGolden).name());
  stop.request();
  EXPECT_EQ(messageOf([&] { sheaf::Model(kGolden, options); }, SHEAF_STOPPED),
            "the loading was stopped");
}

TEST(Api, AnyThreadAndAnyModel) {
  sheaf::Model one(kGolden), two(kGolden), three(kGolden);
  sheaf::Session session(2);
  std::vector<std::thread> threads;
  std::vector<int64_t> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) {
        sheaf::Batch batch(t % 2 ? one : two);
        Tree tree(batch);
        sheaf::Value value = tree.leaf("a");
        for (size_t i = 0; i < t; ++i)
          value = tree.node(value, tree.leaf("b"));
        for (int i = 0; i < 8; ++i)
          batch.add({value});
        sheaf::Result result = session.run(batch);
        for (size_t i = 0; i < result.size(); ++i)
          wrong[t] += result[i][1].toInt() != static_cast<int64_t>(t) + 1;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int64_t>(4));
  session.add(three);
  session.remove(one);
}

/// Batches for the artefact whose entry takes how many steps to make.
sheaf::Batch stepsOf(const sheaf::Model &model, std::initializer_list<int64_t> limits) {
  sheaf::Batch batch(model);
  for (int64_t limit : limits)
    batch.add({batch.makeInt(model.argumentType(0), limit)}, 100 + limit);
  return batch;
}

std::vector<float> lastOf(const sheaf::Result &result, size_t instance) {
  sheaf::Tensor tensor = result[instance][1].tensor();
  const auto *elements = static_cast<const float *>(tensor.get().data);
  return {elements, elements + tensor.size()};
}

TEST(Api, AnEngineGivesWhatSessionsGive) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc");
  sheaf::Result expected = sheaf::Session(1, kSmall).run(stepsOf(model, {3, 30, 7}));
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kSmall;
  sheaf::Engine engine(model, &session);
  std::map<int64_t, std::vector<float>> found;
  std::map<int64_t, sheaf_cause> causes;
  auto done = [&](int64_t id, const sheaf::Result &result) {
    ASSERT_EQ(result.size(), 1u);
    causes[id] = result.cause(0);
    if (causes[id] == SHEAF_ENDED)
      found[id] = lastOf(result, 0);
  };
  sheaf::Batch batch = stepsOf(model, {3, 30});
  engine.submit(batch, done);
  EXPECT_EQ(batch.size(), 0u);
  engine.submit(stepsOf(model, {7}), done);
  sheaf::Stop stop;
  sheaf_request_options options{};
  options.stop = stop.get();
  engine.submit(stepsOf(model, {-1}), done, options);
  options = {};
  options.timeout = 1000000;
  engine.submit(stepsOf(model, {-2}), done, options);
  options = {};
  options.max_steps = 5;
  engine.submit(stepsOf(model, {20}), done, options);
  EXPECT_EQ(engine.waiting(), 6u);
  while (causes.size() < 5)
    engine.step();
  stop.request();
  while (engine.step()) {
  }
  EXPECT_EQ(found, (std::map<int64_t, std::vector<float>>{{103, lastOf(expected, 0)},
                                                          {130, lastOf(expected, 1)},
                                                          {107, lastOf(expected, 2)}}));
  EXPECT_EQ(causes, (std::map<int64_t, sheaf_cause>{{103, SHEAF_ENDED},
                                                    {130, SHEAF_ENDED},
                                                    {107, SHEAF_ENDED},
                                                    {99, SHEAF_CANCELLED},
                                                    {98, SHEAF_DEADLINE},
                                                    {120, SHEAF_LIMIT}}));
}

TEST(Api, AnEngineRunsInAThreadOfItsOwn) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc");
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kSmall;
  sheaf::Engine engine(model, &session);
  sheaf::Stop stop;
  std::thread runner([&] { EXPECT_NO_THROW(engine.run(stop)); });
  std::atomic<int> ended = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 3; ++client)
    clients.emplace_back([&] {
      for (int64_t i = 0; i < 20; ++i)
        engine.submit(stepsOf(model, {i, i + 1}), [&](int64_t, const sheaf::Result &result) {
          ended += result.error(0).empty();
        });
    });
  for (std::thread &client : clients)
    client.join();
  while (ended < 3 * 40)
    std::this_thread::yield();
  stop.request();
  runner.join();
}

TEST(Api, EnginesShareABudget) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc");
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kSmall;
  sheaf_engine_options options{};
  options.size = sizeof options;
  std::optional<sheaf::Budget> budget(1); // always short: they run one by one
  options.budget = budget->get();
  std::optional<sheaf::Engine> one(std::in_place, model, &session, &options),
      two(std::in_place, model, &session, &options);
  int ended = 0;
  auto done = [&](int64_t, const sheaf::Result &result) { ended += result.error(0).empty(); };
  one->submit(stepsOf(model, {3, 30, 7}), done);
  two->submit(stepsOf(model, {5, 4}), done);
  for (bool more = true; more;) {
    more = one->step();
    more |= two->step();
  }
  EXPECT_EQ(ended, 5);
  uint64_t both = budget->used();
  EXPECT_GT(both, 0u);
  one.reset();
  EXPECT_LT(budget->used(), both);
  budget.reset(); // the engines hold it
  two->submit(stepsOf(model, {2}), done);
  while (two->step()) {
  }
  EXPECT_EQ(ended, 6);
  EXPECT_EQ(sheaf_budget_create(1, nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_budget_used(nullptr), 0u);
}

TEST(Api, EnginesShareWorkersAndAnExecutor) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc");
  sheaf::Result expected = sheaf::Session(1, kSmall).run(stepsOf(model, {3, 30, 7}));
  std::optional<sheaf::Workers> workers(2);
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kSmall;
  session.workers = workers->get();
  sheaf::Session beside(session); // made while the handle is there, and its models later
  std::map<sheaf_engine *, std::string> failed;
  std::optional<sheaf::Executor> executor([&](sheaf_engine *engine, std::exception_ptr error) {
    failed[engine] += messageOf([&] { std::rethrow_exception(error); }, SHEAF_INVALID);
  });
  sheaf_engine_options options{};
  options.share = 3;
  std::optional<sheaf::Engine> one(std::in_place, model, *executor, &session),
      two(std::in_place, model, *executor, &session, options);
  workers.reset(); // they hold them
  session.workers = nullptr;
  int ended = 0;
  auto done = [&](int64_t id, const sheaf::Result &result) {
    ++ended;
    EXPECT_EQ(lastOf(result, 0), lastOf(expected, id == 103 ? 0 : id == 130 ? 1 : 2));
  };
  one->submit(stepsOf(model, {3, 30}), done);
  two->submit(stepsOf(model, {7}), [&](int64_t id, const sheaf::Result &result) {
    done(id, result);
    one->submit(stepsOf(model, {7}), done);
    executor->step(); // which it must not
  });
  while (executor->step()) {
  }
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(failed, (std::map<sheaf_engine *, std::string>{
                        {two->get(), "the executor is stepped from within a callback"}}));
  EXPECT_EQ(messageOf([&] { one->step(); }, SHEAF_INVALID),
            "the engine is stepped by its executor");
  EXPECT_EQ(lastOf(beside.run(stepsOf(model, {30})), 0), lastOf(expected, 1));

  // In threads, while one engine goes.
  sheaf::Stop stop;
  std::vector<std::thread> runners;
  for (int i = 0; i < 2; ++i)
    runners.emplace_back([&] { executor->run(stop); });
  std::atomic<int> more = 0;
  for (int i = 0; i < 20; ++i)
    for (sheaf::Engine *engine : {&*one, &*two})
      engine->submit(
          stepsOf(model, {i, -1}),
          [&](int64_t, const sheaf::Result &result) { more += result.error(0).empty(); },
          [&] {
            sheaf_request_options request{};
            request.max_steps = 100;
            return request;
          }());
  while (more < 20)
    std::this_thread::yield();
  two.reset();
  while (one->waiting() > 0)
    std::this_thread::yield();
  stop.request();
  for (std::thread &runner : runners)
    runner.join();
  executor.reset();

  // Without anyone who is told, it comes out of the step.
  sheaf::Executor quiet;
  sheaf::Engine third(model, quiet, &session);
  third.submit(stepsOf(model, {3}),
               [](int64_t, const sheaf::Result &) { throw std::runtime_error("no"); });
  int thrown = 0;
  for (bool left = true; left;)
    try {
      left = quiet.step();
    } catch (const std::runtime_error &) {
      ++thrown;
    }
  EXPECT_EQ(thrown, 1);

  EXPECT_EQ(sheaf_workers_create(5000, nullptr), SHEAF_INVALID);
  sheaf_workers *many = nullptr;
  EXPECT_EQ(sheaf_workers_create(5000, &many), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "threads is 5000");
  EXPECT_EQ(sheaf_executor_create(nullptr, nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_executor_step(quiet.get(), nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_executor_run(quiet.get(), nullptr), SHEAF_INVALID);
}

TEST(Api, EnginesRefuseWrongArguments) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc"), other(kGolden);
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kSmall;
  sheaf::Engine engine(model, &session);
  sheaf::Batch batch(other);
  Tree tree(batch);
  batch.add({tree.leaf("a")});
  EXPECT_EQ(messageOf([&] { engine.submit(batch, {}); }, SHEAF_INVALID),
            "the batch is of another model");
  EXPECT_EQ(batch.size(), 1u);
  sheaf_engine *made = nullptr;
  sheaf_engine_options options{};
  EXPECT_EQ(sheaf_engine_create(model.get(), &session, &options, &made), SHEAF_INVALID);
  EXPECT_EQ(sheaf_engine_create(nullptr, &session, nullptr, &made), SHEAF_INVALID);
  sheaf_session_options checks = session;
  checks.check_results = 1;
  EXPECT_EQ(sheaf_engine_create(model.get(), &checks, nullptr, &made), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "an engine does not check results");
  EXPECT_EQ(sheaf_engine_submit(engine.get(), batch.get(), nullptr, nullptr, nullptr),
            SHEAF_INVALID);
  EXPECT_EQ(sheaf_engine_step(engine.get(), nullptr), SHEAF_INVALID);
  // A callback does not step, and what it throws comes out of the step.
  engine.submit(stepsOf(model, {1}), [&](int64_t, const sheaf::Result &) { engine.step(); });
  EXPECT_EQ(messageOf(
                [&] {
                  while (engine.step()) {
                  }
                },
                SHEAF_INVALID),
            "the engine is stepped from within a callback");
}

} // namespace

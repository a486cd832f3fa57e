// Values that belong to no batch: built many at a time, shared by batches, sessions and threads.
#include "tests/artefact/message_of.h"
#include "tests/deep.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace {

constexpr uint64_t kMemory = uint64_t(64) << 20;

/// v2: a tree gives a tensor, the number of its leaves and their words.
class Trees : public ::testing::Test {
protected:
  sheaf::Model model{SHEAF_GOLDEN "/v2.sheafc"};
  sheaf::Type tree = model.argumentType(0);
  sheaf::Type token = sheaf_type_field_type(model.get(), tree, 0, 0);

  /// Writes a tree of so many leaves; those of one seed are equal.
  void write(sheaf::Preorder &to, size_t leaves, std::mt19937 &random) const {
    std::vector<size_t> pending{leaves};
    while (!pending.empty()) {
      size_t here = pending.back();
      pending.pop_back();
      to.heads.push_back(here > 1);
      if (here == 1) {
        to.numbers.push_back(random() % 5);
        continue;
      }
      size_t left = 1 + random() % (here - 1);
      pending.push_back(here - left);
      pending.push_back(left);
    }
  }
  sheaf::Preorder forest(size_t count, unsigned seed) const {
    std::mt19937 random(seed);
    sheaf::Preorder written;
    for (size_t i = 0; i < count; ++i)
      write(written, 1 + random() % 20, random);
    return written;
  }
  sheaf::Values build(const sheaf::Preorder &written, size_t count) const {
    sheaf::Builder builder(model);
    builder.instances({builder.preorder(tree, written, count)}, count);
    return builder.finish();
  }
  /// The same, value by value, of what is left of `written`.
  sheaf::Value makeNext(sheaf::Batch &batch, const sheaf::Preorder &written, size_t &head,
                        size_t &number) const {
    if (written.heads[head++] == 0)
      return batch.makeData(tree, size_t(0), {batch.makeToken(token, written.numbers[number++])});
    sheaf::Value left = makeNext(batch, written, head, number);
    return batch.makeData(tree, 1, {left, makeNext(batch, written, head, number)});
  }
  std::string bits(const sheaf::Result &result, size_t instance) const {
    sheaf::Tensor state = result[instance][0].tensor();
    std::string bytes(static_cast<const char *>(state.get().data), 16);
    sheaf::View words = result[instance][2];
    for (size_t i = 0; i < words.size(); ++i)
      bytes += static_cast<char>('0' + words[i].toInt());
    return bytes + std::to_string(result[instance][1].toInt());
  }
  std::vector<std::string> bits(const sheaf::Result &result) const {
    std::vector<std::string> all;
    for (size_t i = 0; i < result.size(); ++i)
      all.push_back(bits(result, i));
    return all;
  }
  std::vector<std::string> run(const sheaf::Values &values) const {
    sheaf::Batch batch(model);
    batch.add(values);
    return bits(sheaf::Session(1, kMemory).run(batch));
  }
};

TEST_F(Trees, InPreorderAreThoseMadeOneByOne) {
  sheaf::Preorder written = forest(40, 1);
  sheaf::Batch batch(model);
  for (size_t i = 0, head = 0, number = 0; i < 40; ++i)
    batch.add({makeNext(batch, written, head, number)});
  std::vector<std::string> expected = bits(sheaf::Session(1, kMemory).run(batch));
  EXPECT_EQ(run(build(written, 40)), expected);
}

TEST_F(Trees, InColumnsAreThoseInPreorder) {
  sheaf::Builder builder(model);
  sheaf::Value words = builder.numbers(token, std::vector<uint8_t>{0, 1, 2, 3, 4});
  sheaf::Value leaves = builder.data(tree, 0, {words}, 5);
  sheaf::Value rights = builder.select(leaves, {4, 4, 0});
  sheaf::Value nodes = builder.data(tree, 1, {builder.at(leaves, 1), rights}, 3);
  sheaf::Value roots = builder.data(tree, 1, {nodes, nodes}, 3);
  builder.instances({roots}, 3);
  builder.instances({nodes}, 1);
  sheaf::Preorder written;
  for (auto [left, right] : {std::pair(1, 4), {2, 4}, {3, 0}}) {
    written.heads.insert(written.heads.end(), {1, 1, 0, 0, 1, 0, 0});
    written.numbers.insert(written.numbers.end(), {left, right, left, right});
  }
  written.heads.insert(written.heads.end(), {1, 0, 0});
  written.numbers.insert(written.numbers.end(), {1, 4});
  EXPECT_EQ(run(builder.finish()), run(build(written, 4)));
}

TEST_F(Trees, ABatchMixesThemInAnyOrder) {
  sheaf::Batch batch(model);
  std::vector<std::string> expected;
  {
    sheaf::Values one = build(forest(10, 2), 10), two = build(forest(10, 3), 10);
    std::vector<std::string> ones = run(one), twos = run(two);
    batch.add(one, {9, 0, 9});
    batch.add({batch.makeData(tree, size_t(0), {batch.makeToken(token, 3)})});
    batch.add(two);
    expected = {ones[9], ones[0], ones[9]};
    expected.push_back("");
    expected.insert(expected.end(), twos.begin(), twos.end());
  } // what the batch has keeps them alive
  std::vector<std::string> found = bits(sheaf::Session(1, kMemory).run(batch));
  EXPECT_EQ(found.at(3).back(), '1');
  found[3] = "";
  EXPECT_EQ(found, expected);
  batch.clear();
  EXPECT_EQ(batch.size(), 0u);
}

TEST_F(Trees, RunInManySessionsAtOnce) {
  sheaf::Values values = build(forest(60, 4), 60);
  std::vector<std::string> expected = run(values);
  sheaf::Session shared(2, kMemory);
  std::vector<std::thread> threads;
  std::vector<size_t> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      sheaf::Session own(1, kMemory);
      for (int round = 0; round < 8; ++round) {
        sheaf::Batch batch(model);
        std::vector<uint64_t> which(1 + random() % 60);
        for (uint64_t &i : which)
          i = random() % 60;
        batch.add(values, which);
        sheaf::Result result = (t % 2 ? own : shared).run(batch);
        for (size_t i = 0; i < which.size(); ++i)
          wrong[t] += bits(result, i) != expected[which[i]];
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<size_t>(4));
}

TEST_F(Trees, EnginesTakeThem) {
  sheaf::Values values = build(forest(20, 5), 20);
  std::vector<std::string> expected = run(values);
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = kMemory;
  sheaf::Engine engine(model, &session);
  size_t right = 0;
  std::vector<int64_t> ids(20);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = round * 100 + static_cast<int64_t>(i);
    std::vector<uint64_t> all(20);
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = i;
    sheaf::Batch batch(model);
    batch.add(values, all, ids.data());
    engine.submit(batch, [&](int64_t id, const sheaf::Result &result) {
      right += bits(result, 0) == expected[static_cast<size_t>(id % 100)];
    });
  }
  while (engine.step()) {
  }
  EXPECT_EQ(right, 60u);
}

TEST_F(Trees, StandInOthersWithoutACopy) {
  sheaf::Builder builder(model);
  sheaf::Value first = builder.preorder(tree, forest(6, 6), 6);
  builder.instances({first}, 6);
  sheaf::Values one = builder.finish();
  // A builder that has finished begins anew: its values are no more.
  EXPECT_EQ(messageOf([&] { builder.instances({first}, 6); }, SHEAF_INVALID),
            "argument 0 is no value of this builder");
  sheaf::Value taken = builder.take(one, sheaf::Builder::at(first, 2), 3);
  sheaf::Value pairs = builder.data(tree, 1, {taken, builder.at(taken, 1)}, 2);
  builder.instances({taken}, 1);
  builder.instances({pairs}, 2);
  sheaf::Values two = builder.finish();
  EXPECT_LT(two.bytes(), one.bytes() + 1);
  std::vector<std::string> expected = run(one), found = run(two);
  EXPECT_EQ(found[0], expected[2]);
  EXPECT_EQ(found[1].size() > expected[2].size(), true);
}

/// Each keeps the one before alive; all end at once.
TEST_F(Trees, ALongChainOfValuesTakesNoStack) {
  sheaf::Builder builder(model);
  sheaf::Value value = builder.preorder(tree, {{0}, {1}, {}, {}}, 1);
  sheaf::Values last = builder.finish();
  for (int i = 0; i < sheaf::kDeep / 10; ++i) {
    value = builder.take(last, value, 1);
    if (i + 1 == sheaf::kDeep / 10)
      builder.instances({value}, 1);
    last = builder.finish();
  }
  EXPECT_EQ(run(last).at(0).back(), '1');
}

TEST_F(Trees, AreAsDeepAsMemoryAllows) {
  sheaf::Preorder left, right;
  for (int i = 0; i < sheaf::kDeep; ++i) {
    left.heads.push_back(1);
    left.numbers.push_back(i % 5);
    right.heads.insert(right.heads.end(), {1, 0});
    right.numbers.push_back(i % 5);
  }
  left.heads.insert(left.heads.end(), static_cast<size_t>(sheaf::kDeep) + 1, 0);
  left.numbers.push_back(2);
  right.heads.push_back(0);
  right.numbers.push_back(2);
  for (const sheaf::Preorder &written : {left, right}) {
    sheaf::Batch batch(model);
    batch.add(build(written, 1));
    EXPECT_EQ(sheaf::Session().run(batch)[0][1].toInt(), sheaf::kDeep + 1);
  }
}

TEST_F(Trees, ResultsAreOneArray) {
  sheaf::Batch batch(model);
  batch.add(build(forest(30, 7), 30));
  sheaf::Result result = sheaf::Session(1, kMemory).run(batch);
  sheaf::Tensor states = result.stack({0}), sizes = result.stack({1});
  EXPECT_EQ(states.shape(), (std::vector<int64_t>{30, 4}));
  EXPECT_EQ(sizes.shape(), (std::vector<int64_t>{30}));
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(std::memcmp(states.data<float>() + 4 * i, result[i][0].tensor().get().data, 16), 0);
    EXPECT_EQ(sizes.data<int64_t>()[i], result[i][1].toInt());
  }
  // It is the memory of the results themselves, of some in a row as well.
  EXPECT_EQ(states.get().data, result[0][0].tensor().get().data);
  EXPECT_EQ(result.stack({0}, {3, 4, 5}).get().data, result[3][0].tensor().get().data);
  sheaf::Tensor some = result.stack({0}, {9, 2}), none = result.stack({0}, {});
  EXPECT_EQ(some.shape(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(std::memcmp(some.data<float>() + 4, states.data<float>() + 8, 16), 0);
  EXPECT_EQ(none.shape(), (std::vector<int64_t>{0, 4}));
  auto message = [&](const std::vector<size_t> &path, const std::vector<size_t> &instances) {
    return messageOf([&] { result.stack(path, instances); }, SHEAF_INVALID);
  };
  EXPECT_EQ(message({2}, {0}), "a value of type 'list<token>' is no tensor and no number");
  EXPECT_EQ(message({3}, {0}), "'(f32[4], int, list<token>)' has no part 3 but 3");
  EXPECT_EQ(message({0, 0}, {0}), "'f32[4]' is no tuple: it has no part 0 that all results have");
  EXPECT_EQ(message({0}, {30}), "the result has no instance 30");
}

TEST_F(Trees, InstancesThatFailedAreInNoArray) {
  sheaf::Preorder written = forest(2, 8);
  for (int i = 0; i < 3000; ++i)
    written.heads.push_back(1);
  for (int i = 0; i < 3001; ++i) {
    written.heads.push_back(0);
    written.numbers.push_back(1);
  }
  sheaf::Batch batch(model);
  batch.add(build(written, 3));
  sheaf_session_options options{};
  options.size = sizeof options;
  options.memory_limit = kMemory;
  options.max_depth = 1000;
  sheaf::Result result = sheaf::Session(options).run(batch);
  EXPECT_EQ(messageOf([&] { result.stack({0}); }, SHEAF_INVALID).substr(0, 19),
            "instance 2 failed: ");
  EXPECT_EQ(result.stack({0}, {0, 1}).shape(), (std::vector<int64_t>{2, 4}));
}

TEST_F(Trees, WhatIsWrittenMustFit) {
  sheaf::Builder builder(model);
  auto message = [&](const sheaf::Preorder &written, size_t count) {
    return messageOf([&] { builder.preorder(tree, written, count); }, SHEAF_INVALID);
  };
  EXPECT_EQ(message({{1, 0, 2}, {1, 1}, {}, {}}, 1), "heads[2]: 'Tree' has no constructor 2");
  EXPECT_EQ(message({{1, 0, 0}, {1, 5}, {}, {}}, 1),
            "numbers[1]: token 5 is none of the 5 of the vocabulary of 'token'");
  EXPECT_EQ(message({{1, 0}, {1, 1}, {}, {}}, 1), "heads has only 2, and the values take more");
  EXPECT_EQ(message({{0, 0}, {1}, {}, {}}, 2), "numbers has only 1, and the values take more");
  EXPECT_EQ(message({{0, 0}, {1}, {}, {}}, 1), "heads has 2, and the values take only 1");
  EXPECT_EQ(message({{0}, {1, 1}, {}, {}}, 1), "numbers has 2, and the values take only 1");
  EXPECT_EQ(message({{0}, {1}, {0.5}, {}}, 1), "floats has 1, and the values take only 0");
  EXPECT_EQ(message({{0}, {1}, {}, {}}, size_t(1) << 60),
            "count asks for 1152921504606846976 values, more than what is written can be");
  EXPECT_EQ(messageOf([&] { builder.preorder(999, {}, 0); }, SHEAF_INVALID),
            "the model has no type 999");
  sheaf_preorder short_{};
  sheaf_value first;
  EXPECT_EQ(sheaf_builder_preorder(builder.get(), tree, &short_, 1, &first), SHEAF_INVALID);
  short_.size = sizeof short_;
  short_.head_count = 1;
  EXPECT_EQ(sheaf_builder_preorder(builder.get(), tree, &short_, 1, &first), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "heads is null");
}

TEST_F(Trees, ColumnsMustFit) {
  sheaf::Builder builder(model), other(model);
  sheaf::Model again(SHEAF_GOLDEN "/v2.sheafc");
  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  std::vector<int32_t> numbers{0, 4, 5};
  EXPECT_EQ(message([&] { builder.numbers(token, numbers); }),
            "number 2: token 5 is none of the 5 of the vocabulary of 'token'");
  EXPECT_EQ(message([&] { builder.numbers(token, std::vector<double>{1}); }),
            "the numbers are not ints of 8, 16, 32 or 64 bits, nor unsigned ones of 8, 16 or 32");
  EXPECT_EQ(message([&] { builder.numbers(tree, numbers); }), "'Tree' is not the type of an int");
  numbers[2] = 3;
  sheaf::Value words = builder.numbers(token, numbers);
  EXPECT_EQ(message([&] { builder.data(tree, 0, {words}, 4); }),
            "Leaf: field 0: 4 values are needed; those made with it end after 3");
  EXPECT_EQ(message([&] { builder.data(tree, 0, {builder.at(words, 2)}, 2); }),
            "Leaf: field 0: 2 values are needed; those made with it end after 1");
  EXPECT_EQ(message([&] { builder.data(tree, 1, {words}, 3); }), "Node: given 1 of 2 fields");
  EXPECT_EQ(message([&] { builder.data(tree, 1, {words, words}, 3); }),
            "Node: field 0 is of type 'token', not 'Tree'");
  EXPECT_EQ(message([&] { builder.data(tree, 2, {words}, 3); }), "'Tree' has no constructor 2");
  EXPECT_EQ(message([&] { other.data(tree, 0, {words}, 1); }),
            "Leaf: field 0 is no value of this builder");
  EXPECT_EQ(message([&] { builder.instances({words}, 1); }),
            "argument 0 is of type 'token', not 'Tree'");
  EXPECT_EQ(message([&] { builder.select(words, {0, 3}); }), "index 1 is 3 of 3 values");
  EXPECT_EQ(message([&] { builder.select({0}, {}); }), "the first value is none of this builder");
  sheaf::Values none = builder.finish();
  EXPECT_EQ(message([&] { builder.take(none, {12345}, 1); }),
            "the first value is none of these values");
  EXPECT_EQ(message([&] { builder.take(none, words, 4); }),
            "4 values are asked for; those made with the first end after 3");
  EXPECT_EQ(message([&] { sheaf::Builder(again).take(none, words, 1); }),
            "the values are of another model");
  sheaf::Batch batch(model), batchOfOther(again);
  EXPECT_EQ(message([&] { batch.add(none, {0}); }), "there is no instance 0 but 0");
  EXPECT_EQ(message([&] { batchOfOther.add(none); }), "the values are of another model");
  EXPECT_EQ(sheaf_builder_finish(builder.get(), nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_builder_create(nullptr, nullptr), SHEAF_INVALID);
  EXPECT_EQ(sheaf_values_size(nullptr), 0u);
}

/// v2_7: data with lists of tensors, and lists whose lengths must agree.
TEST(Values, ListsAndTensors) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_7.sheafc");
  sheaf::Type memory = model.argumentType(0), rows = model.argumentType(1),
              marks = model.argumentType(2);
  sheaf::Type row = sheaf_type_child(model.get(), rows, 0);
  sheaf::Type number = sheaf_type_child(model.get(), marks, 0);
  sheaf::Type keys = sheaf_type_field_type(model.get(), memory, 0, 0);
  sheaf::Type names = sheaf_type_field_type(model.get(), memory, 0, 1);
  // Nine rows, of which every second element counts: the strides say so.
  std::vector<float> elements(9 * 16, -1);
  for (size_t i = 0; i < 9; ++i)
    for (size_t j = 0; j < 8; ++j)
      elements[i * 16 + 2 * j] = static_cast<float>(i == j) + static_cast<float>(i) / 8;
  int64_t shape[] = {9, 8}, strides[] = {16, 2};
  DLTensor stacked{elements.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};

  sheaf::Builder builder(model);
  sheaf::Value all = builder.unstack(row, stacked);
  sheaf::Value memories = builder.data(
      memory, 0,
      {builder.lists(keys, all, {0, 3, 6}),
       builder.lists(names, builder.numbers(number, std::vector<int64_t>{7}), {0, 1, 1})},
      2);
  sheaf::Value xs = builder.lists(rows, builder.at(all, 4), {0, 2, 5});
  sheaf::Value ones = builder.lists(
      marks, builder.numbers(number, std::vector<uint16_t>{1, 2, 3, 4, 5}), {0, 2, 5});
  builder.instances({memories, xs, ones}, 2);
  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  EXPECT_EQ(message([&] { builder.instances({memories, xs, builder.at(ones, 1)}, 1); }),
            "instance 0: the extent n of 'list<f32[8]>[n]' is 2 in one list and 3 in another of "
            "the same instance");
  EXPECT_EQ(message([&] { builder.lists(keys, all, {0, 3, 5}); }),
            "list 1 has 2 elements; its type is 'list<f32[8]>[3]'");
  EXPECT_EQ(message([&] { builder.lists(rows, all, {0, 3, 2}); }),
            "offset 2 is 2, less than the one before");
  EXPECT_EQ(message([&] { builder.lists(rows, all, {0, 10}); }),
            "element 0: 10 values are needed; those made with it end after 9");
  EXPECT_EQ(message([&] { builder.unstack(number, stacked); }),
            "'int' is not the type of a tensor");
  shape[1] = 7;
  EXPECT_EQ(message([&] { builder.unstack(row, stacked); }),
            "axis 0 of the tensor has 7 elements; its type is 'f32[8]'");
  shape[1] = 8;

  // The same in preorder, with one tensor given for each row, and value by value.
  std::vector<DLTensor> each(9, stacked);
  std::vector<int64_t> offsets(9);
  sheaf::Preorder firsts, lists, counts;
  std::vector<const DLTensor *> rowsOf;
  for (size_t i = 0; i < 9; ++i) {
    each[i].ndim = 1;
    each[i].shape = shape + 1;
    each[i].strides = strides + 1;
    each[i].byte_offset = i * 16 * sizeof(float);
    rowsOf.push_back(&each[i]);
  }
  firsts.heads = {0, 3, 1, 0, 3, 0};
  firsts.numbers = {7};
  firsts.tensors.assign(rowsOf.begin(), rowsOf.begin() + 6);
  lists.heads = {2, 3};
  lists.tensors.assign(rowsOf.begin() + 4, rowsOf.end());
  counts.heads = {2, 3};
  counts.numbers = {1, 2, 3, 4, 5};
  builder.instances({builder.preorder(memory, firsts, 2), builder.preorder(rows, lists, 2),
                     builder.preorder(marks, counts, 2)},
                    2);
  firsts.tensors[4] = nullptr;
  EXPECT_EQ(message([&] { builder.preorder(memory, firsts, 2); }),
            "tensors[4]: the tensor is null");
  lists.heads[0] = 4000000000;
  EXPECT_EQ(message([&] { builder.preorder(rows, lists, 2); }),
            "heads[0] asks for 4000000000 values, more than what is written can be");
  sheaf::Batch batch(model);
  batch.add(builder.finish());
  for (size_t i = 0; i < 2; ++i) {
    size_t from = i ? 6 : 4, count = i ? 3 : 2, number0 = i ? 3 : 1;
    std::vector<sheaf::Value> keyRows, xRows, numbers;
    for (size_t k = 3 * i; k < 3 * i + 3; ++k)
      keyRows.push_back(batch.makeTensor(row, each[k]));
    for (size_t k = 0; k < count; ++k) {
      xRows.push_back(batch.makeTensor(row, each[from + k]));
      numbers.push_back(batch.makeInt(number, static_cast<int64_t>(number0 + k)));
    }
    batch.add({batch.makeData(memory, size_t(0),
                              {batch.makeList(keys, keyRows), batch.makeList(names, {})}),
               batch.makeList(rows, xRows), batch.makeList(marks, numbers)});
  }
  sheaf::Result result = sheaf::Session(1, kMemory).run(batch);
  ASSERT_EQ(result.size(), 6u);
  for (size_t i = 0; i < 4; ++i) {
    sheaf::Tensor found = result[i].tensor(), expected = result[4 + i % 2].tensor();
    ASSERT_EQ(found.shape(), expected.shape());
    EXPECT_EQ(std::memcmp(found.get().data, expected.get().data, 4 * expected.size()), 0) << i;
  }
  // Extents that are the instances' own stand in one array only if they agree.
  EXPECT_EQ(message([&] { result.stack(); }),
            "the tensor of instance 1 is of extents [3, 8], that of instance 0 of [2, 8]");
  sheaf::Tensor both = result.stack({}, {1, 3});
  EXPECT_EQ(both.shape(), (std::vector<int64_t>{2, 3, 8}));
  EXPECT_EQ(std::memcmp(both.data<float>() + 24, result[1].tensor().get().data, 96), 0);
}

} // namespace

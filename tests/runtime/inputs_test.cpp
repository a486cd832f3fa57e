#include "runtime/device/workers.h"
#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <deque>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

// data Chain = End | Link(value: f32[?], many: list<(int, f32[3])>, next: Chain)
enum : uint32_t { kInt, kVector, kFixed, kPair, kList, kChain, kInts, kIntLists };

Model inputModel() {
  Model model;
  auto &types = model.types.types;
  types.resize(8);
  types[kVector].kind = TypeKind::Tensor;
  types[kVector].shape = {-1};
  types[kFixed].kind = TypeKind::Tensor;
  types[kFixed].shape = {3};
  types[kPair].kind = TypeKind::Tuple;
  types[kPair].children = {kInt, kFixed};
  types[kList].kind = TypeKind::List;
  types[kList].children = {kPair};
  types[kChain].kind = TypeKind::Data;
  types[kInts].kind = TypeKind::List;
  types[kInts].children = {kInt};
  types[kIntLists].kind = TypeKind::List;
  types[kIntLists].children = {kInts};
  model.types.data.push_back(
      {"Chain", {{"End", {}, {}}, {"Link", {"value", "many", "next"}, {kVector, kList, kChain}}}});
  return model;
}

SessionOptions small() {
  SessionOptions options;
  options.hostStackBytes = 1 << 20;
  options.rowSpaceBytes = 1 << 30;
  return options;
}

void echo(Context *, const Slot *args, Slot *results) { results[0] = args[0]; }

float at(const Session &session, uint32_t type, const Slot *slots, size_t i) {
  return reinterpret_cast<const float *>(session.tensor(type, slots).data)[i];
}

TEST(Inputs, TensorsInsideDataListsAndTuples) {
  Model model = inputModel();
  model.entry.argTypes = {kChain};
  model.entry.resultType = kChain;
  model.entry.fn = echo;
  for (bool hostile : {false, true}) {
    SessionOptions options = small();
    options.hostile = hostile;
    Session session(model, options);
    std::deque<HostTensor> tensors;
    std::deque<std::vector<Slot>> slots;
    std::deque<ListObject> lists;
    auto tensor = [&](int64_t n, float first) {
      HostTensor &t = tensors.emplace_back(DType::F32, std::vector<int64_t>{n});
      for (int64_t i = 0; i < n; ++i)
        reinterpret_cast<float *>(t.bytes.get())[i] = first + float(i);
      return t.inputSlot();
    };
    Slot next = std::bit_cast<Slot>(slots.emplace_back(std::vector<Slot>{0}).data());
    constexpr int64_t kLinks = 30000;
    for (int64_t i = 0; i < kLinks; ++i) {
      auto &elements = slots.emplace_back();
      for (int64_t k = 0; k < i % 3; ++k) {
        elements.push_back(k * 10);
        elements.push_back(tensor(3, float(1000 + k)));
      }
      lists.push_back({elements.data(), i % 3, 2, nullptr});
      int64_t n = i % 40;
      next = std::bit_cast<Slot>(
          slots
              .emplace_back(std::vector<Slot>{1, tensor(n, float(i)), n,
                                              std::bit_cast<Slot>(&lists.back()), next})
              .data());
    }
    Slot arg = next;
    std::vector<Instance> batch{{&arg, 0}, {&arg, 1}};
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::span<const Outcome> outcomes = session.run(batch);
      for (const Outcome &outcome : outcomes) {
        ASSERT_TRUE(outcome.ok());
        auto *value = std::bit_cast<const Slot *>(outcome.slots[0]);
        for (int64_t i = kLinks - 1; i >= 0; --i) {
          ASSERT_EQ(value[0], 1);
          TensorView view = session.tensor(kVector, value + 1);
          ASSERT_EQ(view.shape, std::vector<int64_t>{i % 40});
          if (i % 40)
            ASSERT_EQ(at(session, kVector, value + 1, size_t(i % 40 - 1)), float(i + i % 40 - 1));
          auto *list = std::bit_cast<const ListObject *>(value[3]);
          ASSERT_EQ(list->size, i % 3);
          for (int64_t k = 0; k < list->size; ++k) {
            ASSERT_EQ(list->elements[2 * k], k * 10);
            ASSERT_EQ(at(session, kFixed, list->elements + 2 * k + 1, 2), float(1002 + k));
          }
          value = std::bit_cast<const Slot *>(value[4]);
        }
        ASSERT_EQ(value[0], 0);
      }
    }
    // The input is as it was, for the next session.
    EXPECT_EQ(arg, next);
    EXPECT_EQ(HostTensor::fromInputSlot(std::bit_cast<const Slot *>(arg)[1]), &tensors.back());
  }
}

TEST(Inputs, WithoutTensorsAreShared) {
  Model model = inputModel();
  model.entry.argTypes = {kInts};
  model.entry.resultType = kInts;
  model.entry.fn = echo;
  Session session(model, small());
  Slot elements[2] = {4, 5};
  ListObject list{elements, 2, 1, nullptr};
  Slot arg = std::bit_cast<Slot>(&list);
  std::vector<Instance> batch{{&arg, 0}};
  EXPECT_EQ(session.run(batch)[0].slots[0], arg);
}

TEST(Inputs, TooLargeForTheLimit) {
  Model model = inputModel();
  model.entry.argTypes = {kVector};
  model.entry.resultType = kInt;
  model.entry.fn = echo;
  SessionOptions options = small();
  options.memoryLimit = 1 << 20;
  Session session(model, options);
  HostTensor large(DType::F32, {1 << 20}), little(DType::F32, {5});
  Slot first[2] = {large.inputSlot(), 1 << 20}, second[2] = {little.inputSlot(), 5};
  std::vector<Instance> batch{{first, 8}, {second, 9}};
  std::span<const Outcome> outcomes = session.run(batch);
  ASSERT_FALSE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].error->instance(), 8);
  EXPECT_EQ(outcomes[0].error->message().find(
                "out of memory for tensors: 4.0 MB more are needed, the mini-batch already holds "),
            0u)
      << outcomes[0].error->message();
  EXPECT_TRUE(outcomes[1].ok());
}

// A list of lists that share tails: results come out flat.
void chains(Context *context, const Slot *args, Slot *results) {
  ListObject *base = sheaf_list_new(context, 1, 0);
  for (Slot i = 0; i < args[0]; ++i)
    base = sheaf_list_cons(context, &i, base);
  ListObject *all = sheaf_list_new(context, 1, 0);
  for (Slot i = 0; i < 10; ++i) {
    ListObject *branch = sheaf_list_cons(context, &i, base);
    Slot slot = std::bit_cast<Slot>(sheaf_list_cons(context, &i, branch));
    all = sheaf_list_append(context, all, &slot);
  }
  results[0] = std::bit_cast<Slot>(all);
}

TEST(Outputs, ListsInPiecesComeOutFlat) {
  for (bool chained : {false, true}) {
    Model model = inputModel();
    model.chainedLists = chained;
    model.entry.argTypes = {kInt};
    model.entry.resultType = kIntLists;
    model.entry.fn = chains;
    Session session(model, small());
    Slot n = 1000;
    std::vector<Instance> batch{{&n, 0}};
    std::span<const Outcome> outcomes = session.run(batch);
    ASSERT_TRUE(outcomes[0].ok());
    auto *all = std::bit_cast<const ListObject *>(outcomes[0].slots[0]);
    ASSERT_EQ(all->size, 10);
    for (Slot i = 0; i < 10; ++i) {
      auto *list = std::bit_cast<const ListObject *>(all->elements[i]);
      ASSERT_EQ(list->size, 1002);
      EXPECT_EQ(list->elements[0], i);
      EXPECT_EQ(list->elements[1], i);
      for (Slot k = 0; k < 1000; ++k)
        ASSERT_EQ(list->elements[2 + k], 999 - k);
    }
  }
}

// Lists that do not fit end the instance, not the process.
void greedy(Context *context, const Slot *args, Slot *results) {
  ListObject *list = sheaf_list_new(context, 1, 1);
  list->elements[0] = 1;
  for (Slot i = 0; i < args[0]; ++i)
    list = sheaf_list_concat(context, list, list);
  results[0] = list->size;
}

TEST(Outputs, ListsBeyondTheLimit) {
  Model model = inputModel();
  model.entry.argTypes = {kInt};
  model.entry.resultType = kInt;
  model.entry.fn = greedy;
  SessionOptions options = small();
  options.memoryLimit = 4 << 20;
  Session session(model, options);
  Slot few = 10, many = 62;
  std::vector<Instance> batch{{&many, 3}, {&few, 4}};
  std::span<const Outcome> outcomes = session.run(batch);
  ASSERT_FALSE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].error->message().find("out of memory for data values and lists: "), 0u)
      << outcomes[0].error->message();
  ASSERT_TRUE(outcomes[1].ok());
  EXPECT_EQ(outcomes[1].slots[0], 1024);
}

TEST(Layout, PaddedRowsRoundTrip) {
  for (auto [shape, dtype] : {std::pair<std::vector<int64_t>, DType>{{}, DType::F32},
                              {{7}, DType::BF16},
                              {{3, 33}, DType::BF16},
                              {{2, 3, 17}, DType::F32},
                              {{4, 9}, DType::I64},
                              {{0, 5}, DType::F32},
                              {{5, 0}, DType::F32},
                              {{3, 2}, DType::Bool}}) {
    HostTensor tensor(dtype, shape);
    TensorView view{dtype, shape, tensor.bytes.get()};
    std::vector<uint8_t> in(size_t(view.elements() * dtypeBytes(dtype))), out(in.size());
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = uint8_t(i + 1);
    toRowLayout(shape, dtype, in.data(), tensor.bytes.get());
    view.copyTo(out.data());
    EXPECT_EQ(in, out);
    EXPECT_EQ(view.rowStride() % 64, 0);
    if (!shape.empty())
      EXPECT_EQ(tensor.granules() * 64, view.rows() * view.rowStride());
  }
}

} // namespace

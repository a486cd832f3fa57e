#include "runtime/train/confusion.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

TEST(Confusion, Scores) {
  Confusion c;
  EXPECT_EQ(c.accuracy(), 0);
  EXPECT_EQ(c.macro().f1, 0);
  c.add(0, 0, 5);
  c.add(0, 1, 1);
  c.add(1, 1, 2);
  c.add(1, 0, 2);
  c.add(3, 0); // a class that is never predicted
  EXPECT_EQ(c.total(), 11);
  EXPECT_DOUBLE_EQ(c.accuracy(), 7.0 / 11);
  std::vector<Confusion::Class> classes = c.classes();
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[2].number, 3);
  EXPECT_EQ(classes[2].actual, 1);
  EXPECT_EQ(classes[2].scores().precision, 0);
  EXPECT_DOUBLE_EQ(classes[0].scores().precision, 5.0 / 8);
  EXPECT_DOUBLE_EQ(classes[0].scores().recall, 5.0 / 6);
  EXPECT_DOUBLE_EQ(classes[0].scores().f1, 10.0 / 14);
  EXPECT_DOUBLE_EQ(c.macro().recall, (5.0 / 6 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(c.of(1).precision, 2.0 / 3);
  EXPECT_EQ(c.of(7).recall, 0);
}

/// Types 0: int, 1: bool, 2: token, 3: f32[], 4: list<int>, 5 (int, int), 6 (list<int>, list<int>),
/// 7 list<(int, int)>, 8 (int, bool), 9 (int, int, int), 10 (token, int), 11 (f32, f32).
TypeTable table() {
  TypeTable types;
  auto add = [&](TypeKind kind, std::vector<uint32_t> children = {}) {
    TypeDesc type;
    type.kind = kind;
    type.children = std::move(children);
    types.types.push_back(type);
  };
  add(TypeKind::Int);
  add(TypeKind::Bool);
  add(TypeKind::Token);
  add(TypeKind::Tensor);
  add(TypeKind::List, {0});
  add(TypeKind::Tuple, {0, 0});
  add(TypeKind::Tuple, {4, 4});
  add(TypeKind::List, {5});
  add(TypeKind::Tuple, {0, 1});
  add(TypeKind::Tuple, {0, 0, 0});
  add(TypeKind::Tuple, {2, 0});
  add(TypeKind::Tuple, {3, 3});
  return types;
}

TEST(Confusion, Types) {
  TypeTable types = table();
  std::vector<bool> expected = {false, false, false, false, false, true,
                                true,  true,  false, false, false, false};
  for (uint32_t t = 0; t < expected.size(); ++t)
    EXPECT_EQ(isPrediction(types, t), expected[t]) << t;
  EXPECT_EQ(classType(types, 7), 0u);
}

TEST(Confusion, Values) {
  TypeTable types = table();
  auto none = [](uint32_t, const Slot *) { return TensorView{}; };
  Confusion c;
  std::vector<Slot> pair = {4, 2}; // 4 is predicted, it is 2
  EXPECT_EQ(addPrediction(c, types, 5, pair.data(), none), "");
  EXPECT_EQ(c.counts().at({2, 4}), 1);
}

} // namespace
} // namespace sheaf::rt

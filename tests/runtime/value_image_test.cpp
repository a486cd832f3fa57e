// Values copied out of the heap in which they were made.

#include "runtime/walk/value_image.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>

namespace sheaf::rt {
namespace {

/// data Tree = Leaf(x: f32[?, 4]) | Node(left: Tree, words: list<int>, right: Tree)
struct ImageTest : testing::Test {
  ImageTest() {
    tensor({-1, 4}, "?");            // 0
    add(TypeKind::Int);              // 1
    add(TypeKind::List, {1});        // 2
    add(TypeKind::Data);             // 3
    add(TypeKind::List, {3});        // 4
    add(TypeKind::Tuple, {4, 2, 0}); // 5
    types.data.push_back({"Tree", {{"Leaf", {"x"}, {0}}, {"Node", {"l", "w", "r"}, {3, 2, 3}}}});
  }

  TypeDesc &add(TypeKind kind, std::vector<uint32_t> children = {}, uint32_t data = 0) {
    TypeDesc &type = types.types.emplace_back();
    type.kind = kind;
    type.children = std::move(children);
    type.data = data;
    return type;
  }
  void tensor(std::vector<int64_t> shape, const char *name) {
    TypeDesc &type = add(TypeKind::Tensor);
    type.shape = std::move(shape);
    type.dimNames = {name, ""};
  }
  Slot leaf(uint32_t id, int64_t rows) { return object({0, TensorHandle{id, 7}.pack(), rows}); }
  Slot node(Slot left, Slot words, Slot right) { return object({1, left, words, right}); }
  Slot list(std::vector<Slot> elements) {
    Slot at = object(std::move(elements));
    lists.push_back({std::bit_cast<Slot *>(at), static_cast<int64_t>(objects.back().size()), 1,
                     reinterpret_cast<ListBuffer *>(1)});
    return std::bit_cast<Slot>(&lists.back());
  }
  Slot object(std::vector<Slot> slots) {
    objects.push_back(std::move(slots));
    return std::bit_cast<Slot>(objects.back().data());
  }

  TypeTable types;
  std::deque<std::vector<Slot>> objects;
  std::deque<ListObject> lists;
};

const Slot *follow(Slot slot) { return std::bit_cast<const Slot *>(slot); }

TEST_F(ImageTest, IsTheValueAtAnotherDepth) {
  TypeFacts facts(types);
  Slot words = list({5, 6, 7});
  Slot tree = node(leaf(40, 2), words, leaf(44, 0));
  std::vector<Slot> value{list({tree, leaf(40, 2), tree}), words, TensorHandle{50, 3}.pack(), 3};
  ValueImage image(types, facts, 5, value.data());
  objects.clear();
  lists.clear();
  ValueImage moved(std::move(image));
  ASSERT_EQ(moved.tensors().size(), 4u); // the tree's stand there once
  std::vector<Slot> copy(static_cast<size_t>(moved.size()));
  moved.copyTo(copy.data(), 9);
  for (auto [slots, depth] : {std::pair{moved.slots(), 0u}, {std::as_const(copy).data(), 9u}}) {
    EXPECT_EQ(TensorHandle::unpack(slots[2]).id, 50u);
    EXPECT_EQ(TensorHandle::unpack(slots[2]).depth, depth);
    EXPECT_EQ(slots[3], 3);
    const auto *all = std::bit_cast<const ListObject *>(slots[0]);
    EXPECT_EQ(all->size, 3);
    EXPECT_EQ(all->buffer, nullptr);
    EXPECT_EQ(all->elements[0], all->elements[2]);
    const Slot *found = follow(all->elements[0]);
    EXPECT_EQ(found[0], 1);
    EXPECT_EQ(found[2], slots[1]); // one list of words
    EXPECT_EQ(std::bit_cast<const ListObject *>(slots[1])->elements[2], 7);
    EXPECT_EQ(TensorHandle::unpack(follow(found[1])[1]).id, 40u);
    EXPECT_EQ(TensorHandle::unpack(follow(found[1])[1]).depth, depth);
    EXPECT_EQ(follow(found[3])[2], 0);
  }
  // What has no tensor stays where it is, the rest is the copy's own.
  EXPECT_EQ(copy[1], moved.slots()[1]);
  EXPECT_NE(copy[0], moved.slots()[0]);
  moved.setId(moved.tensors()[0], 99);
  EXPECT_EQ(moved.id(moved.tensors()[0]), 99u);
}

TEST_F(ImageTest, CopiesWhatStandsInManyPlacesOnce) {
  TypeFacts facts(types);
  Slot tree = leaf(40, 2);
  for (int i = 0; i < 200; ++i) // 2^200 leaves
    tree = node(tree, list({}), tree);
  ValueImage image(types, facts, 3, &tree);
  EXPECT_EQ(image.tensors().size(), 1u);
  EXPECT_LT(image.bytes(), 40000u);
}

TEST_F(ImageTest, TakesNoStackForDepth) {
  TypeFacts facts(types);
  Slot tree = leaf(40, 2), none = list({});
  for (int i = 0; i < 300000; ++i)
    tree = node(tree, none, leaf(41, 1));
  ValueImage image(types, facts, 3, &tree);
  EXPECT_EQ(image.tensors().size(), 300001u);
}

TEST_F(ImageTest, FormsAreThoseOfSlots) {
  tensor({-1, 4}, "n");       // 6
  tensor({2, 4}, "");         // 7
  add(TypeKind::List, {9});   // 8
  add(TypeKind::Data, {}, 1); // 9
  add(TypeKind::Data, {}, 2); // 10
  DataDesc named = types.data[0], fixed = types.data[0];
  named.name = "Tree<n>";
  named.ctors[0].fieldTypes = {6};
  named.ctors[1].fieldTypes = {9, 2, 9};
  fixed.ctors[0].fieldTypes = {7};
  types.data.push_back(named);
  types.data.push_back(fixed);
  EXPECT_TRUE(hasFormOf(types, 0, 6));
  EXPECT_FALSE(hasFormOf(types, 0, 7));
  EXPECT_FALSE(hasFormOf(types, 2, 4));
  EXPECT_TRUE(hasFormOf(types, 3, 9));
  EXPECT_TRUE(hasFormOf(types, 4, 8));
  EXPECT_FALSE(hasFormOf(types, 3, 10));
  EXPECT_FALSE(hasFormOf(types, 3, 4));
  types.types[8].length = 5; // as 4, but for the length
  EXPECT_TRUE(hasFormOf(types, 8, 4));
  EXPECT_FALSE(hasFormOf(types, 4, 8));
}

} // namespace
} // namespace sheaf::rt

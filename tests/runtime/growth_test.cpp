// What values have more when their tensors get a row, by their types.

#include "runtime/model/growth.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

struct GrowthTest : testing::Test {
  uint32_t add(TypeKind kind, std::vector<uint32_t> children = {}) {
    TypeDesc &type = types.types.emplace_back();
    type.kind = kind;
    type.children = std::move(children);
    return static_cast<uint32_t>(types.types.size() - 1);
  }
  uint32_t tensor(std::vector<int64_t> shape, DType dtype = DType::F32) {
    uint32_t number = add(TypeKind::Tensor);
    types.types[number].shape = std::move(shape);
    types.types[number].dtype = dtype;
    return number;
  }
  uint32_t list(uint32_t element, std::optional<int64_t> length) {
    uint32_t number = add(TypeKind::List, {element});
    types.types[number].length = length;
    return number;
  }
  std::optional<int64_t> of(uint32_t type) const { return growthBytes(types, type); }

  TypeTable types;
};

TEST_F(GrowthTest, RowsArePadded) {
  EXPECT_EQ(of(tensor({-1, 16})), 64);
  EXPECT_EQ(of(tensor({-1, 17})), 128);
  EXPECT_EQ(of(tensor({-1, 17}, DType::BF16)), 64);
  EXPECT_EQ(of(tensor({-1, 3, 17})), 384);
}

TEST_F(GrowthTest, WhatHasItsExtentsDoesNotGrow) {
  EXPECT_EQ(of(tensor({})), 0);
  EXPECT_EQ(of(tensor({5, 16})), 0);
}

TEST_F(GrowthTest, OtherExtentsAreNotKnown) {
  EXPECT_EQ(of(tensor({-1})), std::nullopt);
  EXPECT_EQ(of(tensor({4, -1})), std::nullopt);
  EXPECT_EQ(of(tensor({-1, -1})), std::nullopt);
}

TEST_F(GrowthTest, ListsHaveAsManyAsTheirTypeSays) {
  uint32_t cache = tensor({-1, 32}), word = add(TypeKind::Token);
  EXPECT_EQ(of(list(cache, 4)), 512);
  EXPECT_EQ(of(list(cache, std::nullopt)), std::nullopt);
  EXPECT_EQ(of(list(cache, -1)), std::nullopt);
  EXPECT_EQ(of(list(word, std::nullopt)), 0);
  EXPECT_EQ(of(add(TypeKind::Tuple, {list(cache, 4), list(word, std::nullopt), cache})), 640);
}

TEST_F(GrowthTest, DataHaveAnyNumberOfTensors) {
  uint32_t empty = add(TypeKind::Data), tree = add(TypeKind::Data);
  types.types[tree].data = 1;
  types.data.push_back({"Colour", {{"Red", {}, {}}}});
  types.data.push_back({"Tree", {{"Node", {"child", "rows"}, {tree, tensor({-1, 4})}}}});
  EXPECT_EQ(of(empty), 0);
  EXPECT_EQ(of(tree), std::nullopt);
}

} // namespace
} // namespace sheaf::rt

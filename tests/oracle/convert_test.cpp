// Oracle values from slots of the runtime.

#include "compiler/oracle/Compare.h"
#include "compiler/oracle/Convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>

namespace sheaf::oracle {
namespace {

using rt::Slot;
using rt::TypeDesc;
using rt::TypeKind;

/// Types and inputs made by hand.
class ConvertTest : public testing::Test {
protected:
  uint32_t add(TypeDesc desc) {
    types_.types.push_back(std::move(desc));
    return static_cast<uint32_t>(types_.types.size() - 1);
  }
  uint32_t scalar(TypeKind kind) {
    TypeDesc desc;
    desc.kind = kind;
    return add(desc);
  }
  uint32_t tensorType(rt::DType dtype, std::vector<int64_t> shape) {
    TypeDesc desc;
    desc.kind = TypeKind::Tensor;
    desc.dtype = dtype;
    desc.shape = std::move(shape);
    return add(desc);
  }
  uint32_t compound(TypeKind kind, std::vector<uint32_t> children) {
    TypeDesc desc;
    desc.kind = kind;
    desc.children = std::move(children);
    return add(desc);
  }

  template <typename T>
  Slot tensorSlot(rt::DType dtype, std::vector<int64_t> shape, const std::vector<T> &data) {
    rt::HostTensor &tensor = tensors_.emplace_back(dtype, shape);
    rt::toRowLayout(shape, dtype, data.data(), tensor.bytes.get());
    return tensor.inputSlot();
  }

  /// Slots that stay where they are.
  Slot *keep(std::vector<Slot> slots) { return memory_.emplace_back(std::move(slots)).data(); }
  Slot listSlot(std::vector<Slot> elements, int64_t elementSlots) {
    int64_t size = static_cast<int64_t>(elements.size()) / elementSlots;
    lists_.push_back({keep(std::move(elements)), size, elementSlots, nullptr});
    return std::bit_cast<Slot>(&lists_.back());
  }

  void expectSame(uint32_t type, std::vector<Slot> slots, const Value &expected) {
    Comparison c = compare(expected, fromInput(types_, type, slots.data()), 0);
    EXPECT_TRUE(c.ok) << c.message;
  }

  static Value f32(std::vector<int64_t> shape, std::vector<double> data,
                   ops::DType dtype = ops::DType::F32) {
    ops::RefTensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.data = std::move(data);
    return makeTensor(std::move(t));
  }

  rt::TypeTable types_;
  std::deque<rt::HostTensor> tensors_;
  std::deque<std::vector<Slot>> memory_;
  std::deque<rt::ListObject> lists_;
};

TEST_F(ConvertTest, Scalars) {
  expectSame(scalar(TypeKind::Int), {-3}, int64_t(-3));
  expectSame(scalar(TypeKind::Token), {7}, int64_t(7));
  expectSame(scalar(TypeKind::Bool), {1}, true);
  expectSame(scalar(TypeKind::Float), {std::bit_cast<Slot>(0.25)}, 0.25);
}

TEST_F(ConvertTest, Tensors) {
  using rt::DType;
  std::vector<float> row(20);
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(i) - 4.5F;
  // Rows of 20 floats take two granules each: padding lies between them.
  std::vector<float> matrix = row;
  matrix.insert(matrix.end(), row.rbegin(), row.rend());
  expectSame(tensorType(DType::F32, {2, 20}), {tensorSlot(DType::F32, {2, 20}, matrix)},
             f32({2, 20}, {matrix.begin(), matrix.end()}));
  expectSame(tensorType(DType::F32, {-1, 2}),
             {tensorSlot<float>(DType::F32, {2, 2}, {1, 2, 3, 4}), 2}, f32({2, 2}, {1, 2, 3, 4}));
  expectSame(tensorType(DType::F32, {}), {tensorSlot<float>(DType::F32, {}, {5})}, f32({}, {5}));
  expectSame(tensorType(DType::I64, {1}), {tensorSlot<int64_t>(DType::I64, {1}, {-9})},
             f32({1}, {-9}, ops::DType::I64));
  expectSame(tensorType(DType::Bool, {2}), {tensorSlot<int32_t>(DType::Bool, {2}, {0, 1})},
             f32({2}, {0, 1}, ops::DType::Bool));
  expectSame(tensorType(DType::BF16, {2}),
             {tensorSlot<uint16_t>(DType::BF16, {2}, {0x3fc0, 0xc000})},
             f32({2}, {1.5, -2}, ops::DType::BF16));
  expectSame(tensorType(DType::F16, {2}), {tensorSlot<uint16_t>(DType::F16, {2}, {0x3e00, 0xc000})},
             f32({2}, {1.5, -2}, ops::DType::F16));
  expectSame(tensorType(DType::F32, {-1}), {tensorSlot<float>(DType::F32, {0}, {}), 0},
             f32({0}, {}));
}

TEST_F(ConvertTest, ListsAndTuples) {
  uint32_t integer = scalar(TypeKind::Int);
  uint32_t dynamic = tensorType(rt::DType::F32, {-1});
  uint32_t pair = compound(TypeKind::Tuple, {dynamic, integer});
  uint32_t list = compound(TypeKind::List, {pair});
  uint32_t all = compound(TypeKind::Tuple, {list, integer, pair});
  Slot a = tensorSlot<float>(rt::DType::F32, {1}, {4});
  Slot b = tensorSlot<float>(rt::DType::F32, {2}, {5, 6});
  Value first = makeTuple({f32({1}, {4}), int64_t(10)});
  Value second = makeTuple({f32({2}, {5, 6}), int64_t(20)});
  expectSame(all, {listSlot({a, 1, 10, b, 2, 20}, 3), 99, b, 2, 20},
             makeTuple({makeList({first, second}), int64_t(99), second}));
  expectSame(list, {listSlot({}, 3)}, makeList({}));

  std::vector<Slot> args = {3, listSlot({}, 3), 4};
  std::vector<uint32_t> argTypes = {integer, list, integer};
  std::vector<Value> values = fromInstance(types_, argTypes, args.data());
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(std::get<int64_t>(values[0]), 3);
  EXPECT_EQ(std::get<int64_t>(values[2]), 4);
}

TEST_F(ConvertTest, DeepData) {
  uint32_t integer = scalar(TypeKind::Int);
  TypeDesc desc;
  desc.kind = TypeKind::Data;
  uint32_t chain = add(desc);
  types_.data.push_back({"Chain", {{"End", {}, {}}, {"Link", {"x", "next"}, {integer, chain}}}});
  Slot at = std::bit_cast<Slot>(keep({0}));
  Value expected = makeData(0, {});
  for (int64_t i = 0; i < 500'000; ++i) {
    at = std::bit_cast<Slot>(keep({1, i, at}));
    expected = makeData(1, {i, expected});
  }
  expectSame(chain, {at}, expected);
}

} // namespace
} // namespace sheaf::oracle

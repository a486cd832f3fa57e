// How a step is divided into parts, and in which order their gradients are summed.

#include "runtime/train/gradient_sum.h"
#include "runtime/train/parts.h"

#include "runtime/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace sheaf::rt {
namespace {

using Floats = std::vector<float>;
constexpr int64_t kRows = 24, kColumns = 5;

Model twoParams() {
  Model model;
  for (const char *name : {"dense", "rows"}) {
    ParamDesc param;
    param.name = name;
    param.dtype = DType::F32;
    param.shape = {kRows, kColumns};
    model.params.push_back(param);
  }
  return model;
}

/// Gradients of one part: of the first parameter all, of the second some rows.
struct Part {
  HostTensor dense{DType::F32, {kRows, kColumns}}, some{DType::F32, {kRows, kColumns}};
  std::vector<ParamGradient> gradients{2};

  explicit Part(std::mt19937 &random) {
    std::uniform_real_distribution<float> number(-3, 3);
    auto fill = [&](HostTensor &tensor, ParamGradient &gradient, int64_t row) {
      gradient.data = reinterpret_cast<float *>(tensor.bytes.get());
      for (int64_t i = 0; i < kColumns; ++i) {
        float exact = number(random) * static_cast<float>(1 << (random() % 12));
        gradient.data[row * 16 + i] = random() % 9 == 0 ? -0.0F : exact;
      }
    };
    if (random() % 5) {
      gradients[0].kind = ParamGradient::Dense;
      for (int64_t row = 0; row < kRows; ++row)
        fill(dense, gradients[0], row);
    }
    for (uint32_t row = 0; row < kRows; ++row)
      if (random() % 3 == 0) {
        gradients[1].kind = ParamGradient::Rows;
        gradients[1].rows.push_back(row);
        fill(some, gradients[1], row);
      }
  }
};

Floats floatsOf(std::span<const ParamGradient> gradients) {
  Floats all;
  for (const ParamGradient &gradient : gradients)
    for (uint32_t row = 0; row < kRows; ++row) {
      bool has = gradient.kind == ParamGradient::Dense ||
                 (gradient.kind == ParamGradient::Rows &&
                  std::binary_search(gradient.rows.begin(), gradient.rows.end(), row));
      for (int64_t i = 0; i < kColumns; ++i)
        all.push_back(has ? gradient.data[row * 16 + i] : 0.0F);
    }
  return all;
}

/// Node (level, number) of the tree, as gradient_sum.h has it.
Floats node(const std::vector<Floats> &parts, unsigned level, size_t number) {
  if (level == 0) {
    Floats sum = parts[number];
    for (float &x : sum)
      x += 0.0F;
    return sum;
  }
  Floats left = node(parts, level - 1, 2 * number);
  if ((2 * number + 1) << (level - 1) < parts.size()) {
    Floats right = node(parts, level - 1, 2 * number + 1);
    for (size_t i = 0; i < left.size(); ++i)
      left[i] += right[i];
  }
  return left;
}

Floats sumOf(const std::vector<Floats> &parts) {
  unsigned levels = 0;
  while (size_t(1) << levels < parts.size())
    ++levels;
  return node(parts, levels, 0);
}

bool sameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Parts, AreSummedByOneTree) {
  Model model = twoParams();
  std::mt19937 random(3);
  GradientSum sum(model);
  for (size_t count = 1; count < 40; ++count) {
    std::vector<Part> parts;
    std::vector<Floats> floats;
    for (size_t i = 0; i < count; ++i) {
      parts.emplace_back(random);
      floats.push_back(floatsOf(parts.back().gradients));
    }
    sum.clear();
    for (const Part &part : parts)
      sum.add(part.gradients);
    EXPECT_TRUE(sameBits(floatsOf(sum.gradients()), sumOf(floats))) << count;
    EXPECT_TRUE(sameBits(floatsOf(sum.gradients()), sumOf(floats))) << "asked again";
  }
}

TEST(Parts, MayComeInPieces) {
  Model model = twoParams();
  std::mt19937 random(4);
  GradientSum sum(model);
  for (int round = 0; round < 60; ++round) {
    sum.clear();
    std::vector<Floats> all;
    for (unsigned i = 1 + random() % 7; i > 0; --i) {
      if (random() % 2) {
        Part part(random);
        sum.add(part.gradients);
        all.push_back(floatsOf(part.gradients));
        continue;
      }
      // One after the other; some parts have nothing in them.
      sum.open();
      Floats pieces;
      for (unsigned j = random() % 5; j > 0; --j) {
        Part piece(random);
        sum.add(piece.gradients);
        Floats floats = floatsOf(piece.gradients);
        pieces.resize(floats.size());
        for (size_t k = 0; k < floats.size(); ++k)
          pieces[k] += floats[k];
      }
      sum.close();
      if (!pieces.empty())
        all.push_back(std::move(pieces));
    }
    if (!all.empty())
      EXPECT_TRUE(sameBits(floatsOf(sum.gradients()), sumOf(all))) << round;
  }
}

TEST(Parts, HaveAboutTheSameCost) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> costs(1 + random() % 60);
    for (uint64_t &cost : costs)
      cost = 1 + random() % (round % 3 ? 30 : 2000);
    uint64_t total = 0, greatest = *std::max_element(costs.begin(), costs.end());
    for (uint64_t cost : costs)
      total += cost;
    size_t count = 1 + random() % costs.size();
    std::vector<size_t> places = cutByCost(costs, count);
    ASSERT_EQ(places.size(), count + 1);
    EXPECT_EQ(places.front(), 0u);
    EXPECT_EQ(places.back(), costs.size());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_LT(places[i], places[i + 1]) << "no part is empty";
      uint64_t cost = 0;
      for (size_t j = places[i]; j < places[i + 1]; ++j)
        cost += costs[j];
      if (places[i + 1] - places[i] > 1)
        EXPECT_LE(cost, total / count + greatest + 1);
    }
  }
  // Costs of which the sum times the parts overflows.
  std::vector<uint64_t> large(4, std::numeric_limits<uint64_t>::max() / 8);
  EXPECT_EQ(cutByCost(large, 2), (std::vector<size_t>{0, 2, 4}));
}

TEST(Parts, CostWhatTheirDataHold) {
  // [int], list<int>, list<f32[3]>, data T = L(int) | N(T, T)
  TypeTable types;
  auto type = [&](TypeKind kind, std::vector<uint32_t> children = {}) {
    TypeDesc desc;
    desc.kind = kind;
    desc.children = std::move(children);
    types.types.push_back(desc);
    return static_cast<uint32_t>(types.types.size() - 1);
  };
  uint32_t number = type(TypeKind::Int), ints = type(TypeKind::List, {number});
  uint32_t tensor = type(TypeKind::Tensor);
  types.types[tensor].shape = {3};
  uint32_t tensors = type(TypeKind::List, {tensor}), tree = type(TypeKind::Data);
  types.data.push_back({});
  types.data[0].ctors.resize(2);
  types.data[0].ctors[0].fieldTypes = {number};
  types.data[0].ctors[1].fieldTypes = {tree, tree};
  types.types[tree].data = 0;

  InstanceCosts costs(types, std::vector<uint32_t>{number, ints, tensors, tree});
  std::vector<Slot> elements(1000, 1);
  HostTensor one(DType::F32, {3});
  std::vector<Slot> rows(7, one.inputSlot());
  auto listOf = [](std::vector<Slot> &slots) {
    ListObject list{};
    list.size = static_cast<int64_t>(slots.size());
    list.elementSlots = 1;
    list.elements = slots.data();
    return list;
  };
  ListObject many = listOf(elements), few = listOf(rows);
  std::vector<Slot> leaf = {0, 5},
                    inner = {1, std::bit_cast<Slot>(leaf.data()), std::bit_cast<Slot>(leaf.data())};
  std::vector<Slot> args = {3, std::bit_cast<Slot>(&many), std::bit_cast<Slot>(&few),
                            std::bit_cast<Slot>(inner.data())};
  // Itself, four arguments, the ints, the tensors with a granule each, two leaves and what they
  // hold.
  EXPECT_EQ(costs.of(args.data()), 1u + 4 + 1000 + 14 + 4);

  // As deep as memory allows, and the same value in two places of each of 200 levels.
  std::vector<std::vector<Slot>> levels(200);
  for (size_t i = 0; i < levels.size(); ++i) {
    auto below = std::bit_cast<Slot>(i ? levels[i - 1].data() : leaf.data());
    levels[i] = {1, below, below};
  }
  args[3] = std::bit_cast<Slot>(levels.back().data());
  EXPECT_EQ(costs.of(args.data()), InstanceCosts::kMost);
}

} // namespace
} // namespace sheaf::rt

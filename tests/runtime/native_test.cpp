// Gradients of weights, to the bit, for parts of every size.

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/native.h"
#include "runtime/cpu/tiles.h"
#include "runtime/model/convert.h"
#include "runtime/model/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace sheaf::rt {
namespace {

constexpr int64_t kFloats = kGranuleBytes / 4;

/// One product with rows that lie apart and in no order, and what must come of it.
struct Case {
  int64_t left, right; ///< columns of the two sides
  int64_t count;
  bool add, sums;
};

struct Memory {
  explicit Memory(const Case &c) : c(c) {
    int64_t granules = 1;
    auto take = [&](int64_t rows, int64_t width) {
      int64_t at = granules;
      granules += rows * stride(width);
      return static_cast<uint32_t>(at);
    };
    matrix = take(c.left, c.right);
    bias = take(1, c.right);
    uint32_t lefts = take(c.count, c.left), rights = take(c.count, c.right);
    bytes = allocateAligned(static_cast<size_t>(granules * kGranuleBytes));
    // What lies after the columns of a row must not matter.
    std::fill_n(floats(), granules * kFloats, NAN);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    auto fill = [&](uint32_t first, int64_t rows, int64_t width) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j)
          row(first)[i * stride(width) * kFloats + j] = normal(random);
    };
    fill(matrix, c.left, c.right);
    fill(bias, 1, c.right);
    fill(lefts, c.count, c.left);
    fill(rights, c.count, c.right);
    for (int64_t i = 0; i < c.count; ++i) {
      int64_t other = i * 7 % c.count; // 7 divides no count that is used
      left.push_back(lefts + static_cast<uint32_t>(i * stride(c.left)));
      right.push_back(rights + static_cast<uint32_t>(other * stride(c.right)));
    }
  }
  static int64_t stride(int64_t width) { return (width + kFloats - 1) / kFloats; }
  float *floats() { return reinterpret_cast<float *>(bytes.get()); }
  float *row(uint32_t granule) { return floats() + int64_t(granule) * kFloats; }
  float *result(int64_t i) { return row(matrix + static_cast<uint32_t>(i * stride(c.right))); }

  Case c;
  AlignedBytes bytes;
  uint32_t matrix, bias;
  std::vector<uint32_t> left, right;
};

float factor(float x) { return bf16ToFloat(floatToFactor(x)); }

/// Of one element: `start` and all records.
float sumOf(Memory &memory, int64_t i, int64_t j, float start, bool tiles) {
  int64_t count = memory.c.count;
  auto a = [&](int64_t k) { return memory.row(memory.left[static_cast<size_t>(k)])[i]; };
  auto b = [&](int64_t k) { return memory.row(memory.right[static_cast<size_t>(k)])[j]; };
  float sum = start;
  if (!tiles) {
    for (int64_t k = 0; k < count; ++k)
      sum = std::fma(a(k), b(k), sum);
    return sum;
  }
  for (int64_t block = 0; block < count; block += 32) {
    float chains[2] = {0, 0};
    for (int64_t k = block; k < std::min(block + 32, count); ++k)
      chains[k % 2] = std::fma(factor(a(k)), factor(b(k)), chains[k % 2]);
    sum += chains[0] + chains[1];
  }
  return sum;
}

/// By tiles or not; walked back or not.
class NativeProducts : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(NativeProducts, AreSumsInTheOrderOfRecords) {
  auto [tiles, back] = GetParam();
#ifdef __x86_64__
  std::vector<std::string> needed{tiles ? "amx-bf16" : "fma"};
  if (missingFeature(needed) || (tiles && !allowTiles()))
    GTEST_SKIP() << "no " << needed[0] << " here";
#else
  if (tiles)
    GTEST_SKIP();
#endif
  Model model;
  cpuCode(model).tiles = tiles;
  addNativeKernels(model, true, true);
  const CpuKernel &kernel = cpuCode(model).kernels[nativeKernel(model, NativeKernel::Product)];
  AlignedBytes scratch = allocateAligned(static_cast<size_t>(kernel.scratchBytes));
  for (const Case &c :
       {Case{1, 1, 1, false, true}, Case{16, 16, 2, false, false}, Case{33, 70, 33, true, true},
        Case{48, 64, 300, false, true}, Case{100, 31, 257, true, true},
        Case{37, 512, 64, false, false}, Case{270, 130, 97, true, true}}) {
    Memory memory(c);
    std::vector<std::vector<float>> expected;
    for (int64_t i = 0; i < c.left; ++i) {
      std::vector<float> &row = expected.emplace_back();
      for (int64_t j = 0; j < c.right; ++j)
        row.push_back(sumOf(memory, i, j, c.add ? memory.result(i)[j] : 0, tiles));
    }
    std::vector<float> sums(memory.row(memory.bias), memory.row(memory.bias) + c.right);
    for (int64_t j = 0; c.sums && j < c.right; ++j)
      for (uint32_t right : memory.right)
        sums[static_cast<size_t>(j)] += memory.row(right)[j];

    // In parts of the rows and of the columns; those of the same columns are computed together.
    std::vector<int32_t> words;
    int64_t down = std::min<int64_t>(c.left, 48), across = std::min<int64_t>(c.right, 64);
    auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    for (int64_t column = 0; column < c.right; column += across)
      for (int64_t row = 0; row < c.left; row += down) {
        ProductRecord record{};
        record.to = memory.matrix;
        record.rowStride = word(Memory::stride(c.right));
        record.rowBegin = record.leftBegin = word(row);
        record.rows = word(std::min(down, c.left - row));
        record.columnBegin = record.rightBegin = word(column);
        record.columns = word(std::min(across, c.right - column));
        record.left = memory.left.data();
        record.right = memory.right.data();
        record.count = word(c.count);
        record.add = c.add;
        record.sums = c.sums && row == 0 ? memory.bias : 0;
        appendRecord(words, record);
      }
    kernel.fn(words.data(), 0, static_cast<int64_t>(words.size()) / kRecordWords<ProductRecord>,
              back ? 1 : 0, back ? 0 : 1, memory.bytes.get(), nullptr, scratch.get());
    for (int64_t i = 0; i < c.left; ++i)
      for (int64_t j = 0; j < c.right; ++j)
        ASSERT_EQ(memory.result(i)[j], expected[static_cast<size_t>(i)][static_cast<size_t>(j)])
            << c.left << " x " << c.right << ", " << c.count << " records: " << i << ", " << j;
    for (int64_t j = 0; j < c.right; ++j)
      ASSERT_EQ(memory.row(memory.bias)[j], sums[static_cast<size_t>(j)]) << j;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NativeProducts,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto &info) {
                           std::string by = std::get<0>(info.param) ? "Tiles" : "FusedMultiplyAdds";
                           return by + (std::get<1>(info.param) ? "Back" : "");
                         });

} // namespace
} // namespace sheaf::rt

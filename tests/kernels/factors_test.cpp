//===- factors_test.cpp - Products of bf16, to the bit --------------------===//
//
// What docs/numerics.md says of products in bf16, written down once more as slowly and plainly as
// can be, against kernels on every kind of processor.
//
//===----------------------------------------------------------------------===//

#include "tests/kernels/harness.h"

#include "runtime/model/convert.h"

#include <bit>
#include <cmath>

using namespace sheaf;
using namespace sheaf::test;

namespace {

float factor(double x) { return rt::bf16ToFloat(rt::floatToFactor(static_cast<float>(x))); }

float withoutSubnormal(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

/// sum + a * b, rounded once; zero when it is subnormal after rounding to 24 bits.
float multiplyAdd(float a, float b, float sum) {
  sum = withoutSubnormal(sum);
  float result = std::fma(a, b, sum);
  // Times 2^60 nothing is subnormal that matters.
  double far = std::fma(static_cast<double>(a) * 0x1p60, static_cast<double>(b),
                        static_cast<double>(sum) * 0x1p60);
  if (std::abs(static_cast<float>(far)) < 0x1p-66f)
    return std::copysign(0.0f, result);
  return result;
}

float add(float a, float b) { return multiplyAdd(a, 1.0f, b); }

/// Factors from `k` on; zeros after the end.
struct Factors {
  const std::vector<double> &data;
  int64_t extent, begin = 0, stride = 1;
  float operator[](int64_t k) const {
    return k < extent ? factor(data[static_cast<size_t>(begin + k * stride)]) : 0.0f;
  }
};

float byPairs(const Factors &a, const Factors &b, int64_t depth, float sum) {
  for (int64_t k = 0; k < depth; k += 2) {
    sum = multiplyAdd(a[k + 1], b[k + 1], sum);
    sum = multiplyAdd(a[k], b[k], sum);
  }
  return sum;
}

float byTiles(const Factors &a, const Factors &b, int64_t depth, float sum) {
  for (int64_t begin = 0; begin < depth; begin += 32) {
    float even = 0, odd = 0;
    for (int64_t k = begin; k < begin + 32; k += 2) {
      even = multiplyAdd(a[k], b[k], even);
      odd = multiplyAdd(a[k + 1], b[k + 1], odd);
    }
    sum = add(add(even, odd), sum);
  }
  return sum;
}

/// Numbers whose products and sums come near every end of the range.
double anyNumber(std::mt19937 &random) {
  auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  double fraction = 1 + std::uniform_real_distribution<double>(0, 1)(random);
  double sign = between(0, 1) ? 1 : -1;
  switch (between(0, 9)) {
  case 0:
    return sign * 0.0;
  case 1: // subnormal
    return sign * std::ldexp(fraction, between(-150, -127));
  case 2: // a power of two
    return sign * std::ldexp(1.0, between(-78, -48));
  case 3:
    return sign * std::ldexp(fraction, between(-3, 3));
  case 4: // rounds up to a power of two
    return sign * std::ldexp(1.999, between(-65, -60));
  default: // products near the least normal number
    return sign * std::ldexp(fraction, between(-66, -60));
  }
}

double anyLargeNumber(std::mt19937 &random) {
  auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  double sign = between(0, 1) ? 1 : -1;
  if (between(0, 200) == 0)
    return between(0, 2) ? sign * INFINITY : NAN;
  return sign *
         std::ldexp(1 + std::uniform_real_distribution<double>(0, 1)(random), between(-5, 63));
}

std::string rowTimesWeight(int64_t depth, bool start) {
  std::string k = std::to_string(depth);
  std::string text =
      "sheaf.block @b args(1) {\n^bb0(%x: tensor<" + k + "xf32>, %w: tensor<" + k +
      "x40xf32>, %s: tensor<40xf32>):\n  %p = sheaf.apply \"matmul_bf16\"(%x, %w) {} "
      ": (tensor<" +
      k + "xf32>, tensor<" + k + "x40xf32>) -> tensor<40xf32>\n";
  if (start)
    return text + "  %y = sheaf.apply \"add\"(%p, %s) {} : (tensor<40xf32>, tensor<40xf32>) -> "
                  "tensor<40xf32>\n  sheaf.yield %y : tensor<40xf32>\n}";
  return text + "  sheaf.yield %p : tensor<40xf32>\n}";
}

struct Machine {
  const char *cpu;
  float (*sums)(const Factors &, const Factors &, int64_t, float);
};
const Machine machines[] = {{"sapphirerapids", byTiles},
                            {"cooperlake", byPairs},
                            {"skylake-avx512", byPairs},
                            {"x86-64-v3", byPairs},
                            {"x86-64-v2", byPairs}};

class Factored : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override {
    if (!runsHere(GetParam().cpu))
      GTEST_SKIP() << "no " << GetParam().cpu;
  }

  void compare(int64_t depth, bool start, bool packed, const Inputs &inputs) {
    constexpr int64_t records = 37;
    KernelRun kernel(rowTimesWeight(depth, start), GetParam().cpu,
                     packed ? std::set<std::string>() : std::set<std::string>{"panels"});
    kernel.fill(records, inputs, static_cast<unsigned>(depth));
    ASSERT_TRUE(kernel.run(records, 1));
    auto sums = packed ? GetParam().sums : byPairs;
    for (int64_t r = 0; r < records; ++r) {
      std::vector<double> expected;
      for (int64_t column = 0; column < 40; ++column) {
        // What is not packed adds the start value afterwards.
        float bias = static_cast<float>(kernel.weight(1).data[static_cast<size_t>(column)]);
        float sum =
            sums({kernel.argument(r, 0).data, depth}, {kernel.weight(0).data, depth, column, 40},
                 depth, start && packed ? bias : 0.0f);
        expected.push_back(start && !packed ? sum + bias : sum);
      }
      ASSERT_TRUE(same({expected}, kernel.results(r)))
          << GetParam().cpu << ", depth " << depth << ", record " << r;
    }
  }
};

TEST_P(Factored, NearTheLeastNumbers) {
  Inputs inputs;
  inputs.element = anyNumber;
  for (int64_t depth : {1, 2, 3, 31, 32, 33, 70})
    for (bool start : {false, true})
      compare(depth, start, true, inputs);
}

TEST_P(Factored, NearTheGreatestNumbers) {
  Inputs inputs;
  inputs.element = anyLargeNumber;
  for (int64_t depth : {2, 5, 64})
    compare(depth, true, true, inputs);
}

TEST_P(Factored, OfOrdinaryNumbers) {
  for (int64_t depth : {17, 96, 300})
    compare(depth, true, true, {});
}

TEST_P(Factored, WhereWeightsAreNotPacked) {
  Inputs inputs;
  inputs.element = anyNumber;
  for (int64_t depth : {1, 2, 33})
    for (bool start : {false, true})
      compare(depth, start, false, inputs);
}

/// Of matrices of the record: rounded before or where they are multiplied, rows that are columns in
/// memory, and without steps with a factor 0.
std::string ownMatrices(int64_t depth) {
  std::string k = std::to_string(depth), left = "tensor<9x" + k + "x", right = "tensor<" + k + "x";
  return "sheaf.block @b args(3) {\n^bb0(%x: " + left + "f32>, %y: " + right +
         "9xf32>, %m: " + right + "40xf32>):\n  %fx = sheaf.apply \"factor\"(%x) {} : (" + left +
         "f32>) -> " + left + "bf16>\n  %fy = sheaf.apply \"factor\"(%y) {} : (" + right +
         "9xf32>) -> " + right + "9xbf16>\n  %fm = sheaf.apply \"factor\"(%m) {} : (" + right +
         "40xf32>) -> " + right +
         "40xbf16>\n  %t = sheaf.apply \"transpose\"(%fy) {axis1 = 0 : i64, axis2 = 1 : i64} : (" +
         right + "9xbf16>) -> " + left +
         "bf16>\n  %p = sheaf.apply \"matmul_factors\"(%fx, %fm) {} : (" + left + "bf16>, " +
         right + "40xbf16>) -> tensor<9x40xf32>\n  %q = sheaf.apply " +
         "\"matmul_factors\"(%t, %fm) {} : (" + left + "bf16>, " + right +
         "40xbf16>) -> tensor<9x40xf32>\n  %r = sheaf.apply \"matmul_bf16\"(%x, %m) {} : (" + left +
         "f32>, " + right + "40xf32>) -> tensor<9x40xf32>\n  %s = sheaf.apply " +
         "\"matmul_seen_factors\"(%fx, %fm) {} : (" + left + "bf16>, " + right +
         "40xbf16>) -> tensor<9x40xf32>\n  sheaf.yield %p, %q, %r, %s : tensor<9x40xf32>, "
         "tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>\n}";
}

float withoutZeros(const Factors &a, const Factors &b, int64_t depth) {
  float sum = 0;
  for (int64_t k = 0; k < depth; k += 2)
    for (int64_t i : {k + 1, k})
      if (a[i] != 0 && b[i] != 0)
        sum = multiplyAdd(a[i], b[i], sum);
  return sum + 0.0f;
}

TEST_P(Factored, OfMatricesOfTheRecord) {
  for (auto element : {anyNumber, anyLargeNumber})
    for (int64_t depth : {1, 2, 33, 96}) {
      constexpr int64_t records = 3;
      Inputs inputs;
      inputs.element = element;
      KernelRun kernel(ownMatrices(depth), GetParam().cpu, {});
      kernel.fill(records, inputs, static_cast<unsigned>(depth));
      ASSERT_TRUE(kernel.run(records, 1));
      for (int64_t r = 0; r < records; ++r) {
        Results expected(4);
        for (int64_t row = 0; row < 9; ++row)
          for (int64_t column = 0; column < 40; ++column) {
            Factors m{kernel.argument(r, 2).data, depth, column, 40};
            // Beyond the end of its row another begins.
            Factors x{kernel.argument(r, 0).data, depth, row * depth};
            Factors y{kernel.argument(r, 1).data, depth, row, 9};
            float sum = byPairs(x, m, depth, 0);
            expected[0].push_back(sum);
            expected[1].push_back(byPairs(y, m, depth, 0));
            expected[2].push_back(sum);
            expected[3].push_back(withoutZeros(x, m, depth));
          }
        ASSERT_TRUE(same(expected, kernel.results(r)))
            << GetParam().cpu << ", depth " << depth << ", record " << r;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Factored, testing::ValuesIn(machines), [](const auto &info) {
  std::string name = info.param.cpu;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(RoundToFactor, IsToNearestAndWithoutSubnormals) {
  EXPECT_EQ(factor(1.0), 1.0f);
  EXPECT_EQ(factor(1.0 + 0x1p-8), 1.0f);               // a tie, to even
  EXPECT_EQ(factor(1.0 + 3 * 0x1p-8), 1.0f + 0x1p-6f); // a tie, to even
  EXPECT_EQ(factor(0x1.fep-126), 0x1.fep-126f);
  EXPECT_EQ(factor(0x1.fffp-127), 0.0f); // would round up to the least normal number
  EXPECT_TRUE(std::signbit(factor(-0x1p-130)));
  EXPECT_EQ(factor(3.4e38), INFINITY);
  EXPECT_TRUE(std::isnan(factor(NAN)));
}

} // namespace

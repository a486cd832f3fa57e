#include "runtime/session/init.h"

#include "runtime/model/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

std::vector<float> make(const char *init, std::vector<double> args, std::vector<int64_t> shape,
                        const char *name = "w", uint64_t seed = 7) {
  ParamDesc desc;
  desc.name = name;
  desc.init = init;
  desc.initArgs = std::move(args);
  desc.shape = std::move(shape);
  std::vector<uint8_t> bytes = initialise(desc, seed);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty())
    memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

double mean(const std::vector<float> &v) {
  double sum = 0;
  for (float x : v)
    sum += x;
  return sum / double(v.size());
}
double deviation(const std::vector<float> &v) {
  double m = mean(v), sum = 0;
  for (float x : v)
    sum += (x - m) * (x - m);
  return std::sqrt(sum / double(v.size()));
}

TEST(Init, Constants) {
  EXPECT_EQ(make("zeros", {}, {3}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(make("", {}, {2}), (std::vector<float>{0, 0}));
  EXPECT_EQ(make("ones", {}, {2, 1}), (std::vector<float>{1, 1}));
  EXPECT_EQ(make("constant", {-2.5}, {}), (std::vector<float>{-2.5f}));
  EXPECT_EQ(make("identity", {}, {2, 3}), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(make("identity", {}, {2, 2, 2}), (std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1}));
  EXPECT_TRUE(make("glorot", {}, {0, 4}).empty());
}

TEST(Init, Distributions) {
  std::vector<float> v = make("normal", {0.1}, {200, 500});
  EXPECT_NEAR(mean(v), 0, 0.001);
  EXPECT_NEAR(deviation(v), 0.1, 0.001);
  // As many beyond one and two deviations as there should be.
  auto share = [&](float limit) {
    return double(
               std::count_if(v.begin(), v.end(), [&](float x) { return std::fabs(x) > limit; })) /
           double(v.size());
  };
  EXPECT_NEAR(share(0.1f), 0.3173, 0.006);
  EXPECT_NEAR(share(0.2f), 0.0455, 0.003);
  v = make("normal", {3, 0.5}, {100, 500});
  EXPECT_NEAR(mean(v), 3, 0.01);
  v = make("uniform", {-1, 3}, {100, 500});
  EXPECT_NEAR(mean(v), 1, 0.02);
  EXPECT_NEAR(deviation(v), 4 / std::sqrt(12.0), 0.01);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -1);
  EXPECT_LE(*std::max_element(v.begin(), v.end()), 3);
  v = make("uniform", {0.5}, {100, 500});
  EXPECT_NEAR(mean(v), 0, 0.01);
  v = make("glorot", {}, {300, 100});
  EXPECT_NEAR(*std::max_element(v.begin(), v.end()), std::sqrt(6.0 / 400), 1e-4);
  v = make("he", {}, {300, 100});
  EXPECT_NEAR(deviation(v), std::sqrt(2.0 / 300), 1e-3);
}

TEST(Init, OrthogonalRowsOrColumns) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{8, 20}, {20, 8}, {16, 16}}) {
    std::vector<float> v = make("orthogonal", {}, {2, rows, columns});
    int64_t n = std::min(rows, columns), length = std::max(rows, columns);
    for (int64_t matrix = 0; matrix < 2; ++matrix) {
      auto at = [&](int64_t i, int64_t k) {
        int64_t r = rows <= columns ? i : k, c = rows <= columns ? k : i;
        return double(v[size_t(matrix * rows * columns + r * columns + c)]);
      };
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double dot = 0;
          for (int64_t k = 0; k < length; ++k)
            dot += at(i, k) * at(j, k);
          EXPECT_NEAR(dot, i == j, 1e-6);
        }
      }
    }
  }
}

TEST(Init, DependsOnSeedAndNameOnly) {
  std::vector<float> v = make("normal", {1}, {64});
  EXPECT_EQ(make("normal", {1}, {64}), v);
  EXPECT_NE(make("normal", {1}, {64}, "v"), v);
  EXPECT_NE(make("normal", {1}, {64}, "w", 8), v);
  std::vector<float> longer = make("normal", {1}, {4, 32});
  EXPECT_TRUE(std::equal(v.begin(), v.end(), longer.begin()));
}

// The formula of init.h, with the C library's functions: equal to the last bits of a double.
TEST(Init, FollowsItsFormula) {
  auto mix = [](uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  };
  uint64_t hash = 0xCBF29CE484222325;
  hash = (hash ^ 'w') * 0x100000001B3;
  uint64_t key = mix(7 ^ hash);
  auto u = [&](uint64_t i) {
    return double(mix(key + (i + 1) * 0x9E3779B97F4A7C15) >> 11) * 0x1p-53;
  };
  std::vector<float> normal = make("normal", {1}, {20000}),
                     uniform = make("uniform", {0, 1}, {20000});
  for (uint64_t i = 0; i < 20000; ++i) {
    EXPECT_EQ(uniform[i], float(u(i)));
    double r = std::sqrt(-2 * std::log(1 - u(i & ~uint64_t(1)))), turn = 2 * M_PI * u(i | 1);
    double expected = r * (i & 1 ? std::sin(turn) : std::cos(turn));
    EXPECT_NEAR(normal[i], expected, 1e-7 * std::max(1.0, std::fabs(expected)));
  }
}

TEST(Init, BitsAreFixed) {
  std::vector<float> v = make("normal", {1}, {4});
  uint32_t bits[4];
  memcpy(bits, v.data(), sizeof bits);
  EXPECT_EQ(bits[0], 3195230420u);
  EXPECT_EQ(bits[1], 3213951137u);
  EXPECT_EQ(bits[2], 1055135344u);
  EXPECT_EQ(bits[3], 1052851979u);
}

TEST(Init, Refusals) {
  EXPECT_THROW(make("lecun", {}, {2}), UserError);
  EXPECT_THROW(make("normal", {}, {2}), UserError);
  EXPECT_THROW(make("zeros", {1}, {2}), UserError);
  EXPECT_THROW(make("uniform", {1, 2, 3}, {2}), UserError);
  EXPECT_THROW(make("orthogonal", {}, {4}), UserError);
  EXPECT_THROW(make("identity", {}, {4}), UserError);
  EXPECT_THROW(make("constant", {NAN}, {4}), UserError);
  try {
    make("normal", {}, {2});
  } catch (const UserError &error) {
    EXPECT_STREQ(error.what(), "parameter 'w': initialiser 'normal' takes 1 to 2 arguments, got 0");
  }
}

} // namespace

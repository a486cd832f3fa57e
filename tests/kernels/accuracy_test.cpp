//===- accuracy_test.cpp - Elementwise functions, in units of the last place ===//
//
// The bounds that docs/numerics.md states, over half a million arguments each, for every kind of
// processor.
//
//===----------------------------------------------------------------------===//

#include "tests/kernels/harness.h"

#include <cmath>

using namespace sheaf;
using namespace sheaf::test;

namespace {

constexpr int64_t kLongRecords = 128;

struct Function {
  const char *name;
  double (*exact)(double);
  double least, most;       ///< arguments: half of them uniform, the others' logarithms
  double fused, split;      ///< the largest error in ulp, with and without fused multiply-adds
  double smallestValue = 0; ///< values below count in units of its last place
  double smallestArgument = 0x1p-125; ///< of those whose logarithms are uniform
};

void PrintTo(const Function &function, std::ostream *out) { *out << function.name; }

/// The distance from one float to the next, where x is.
double unitOf(double x) {
  int exponent;
  std::frexp(std::max(std::abs(x), 0x1p-126), &exponent);
  return std::ldexp(1, exponent - 24);
}

/// @f(x) = name(x), elementwise.
std::string blockOf(const std::string &name) {
  return R"(
sheaf.block @f args(1) {
^bb0(%x: tensor<4096xf32>):
  %y = sheaf.apply ")" +
         name + R"("(%x) {} : (tensor<4096xf32>) -> tensor<4096xf32>
  sheaf.yield %y : tensor<4096xf32>
})";
}

constexpr const char *kProcessors[] = {"host", "x86-64-v3", "x86-64-v2"};

class Accuracy : public testing::TestWithParam<Function> {};

TEST_P(Accuracy, IsAsStated) {
  const Function &function = GetParam();
  Inputs inputs;
  inputs.element = [&](std::mt19937 &random) -> double {
    std::uniform_real_distribution<double> uniform(function.least, function.most);
    if (random() % 2)
      return static_cast<float>(uniform(random));
    double most = std::max(std::abs(function.least), std::abs(function.most));
    std::uniform_real_distribution<double> exponent(std::log(function.smallestArgument),
                                                    std::log(most));
    double x = std::exp(exponent(random));
    if (function.least < 0 && random() % 2)
      x = -x;
    return static_cast<float>(std::clamp(x, function.least, function.most));
  };
  for (const char *cpu : kProcessors) {
    if (!runsHere(cpu))
      continue;
    KernelRun run(blockOf(function.name), cpu, {});
    run.fill(kLongRecords, inputs, 1);
    ASSERT_TRUE(run.run(kLongRecords, 1));
    double worst = 0, at = 0;
    for (int64_t r = 0; r < kLongRecords; ++r) {
      std::vector<double> y = run.results(r)[0];
      for (size_t i = 0; i < y.size(); ++i) {
        double x = run.argument(r, 0).data[i], exact = function.exact(x);
        double error =
            std::abs(y[i] - exact) / unitOf(std::max(std::abs(exact), function.smallestValue));
        ASSERT_FALSE(std::isnan(error)) << cpu << ", at " << x;
        if (error > worst) {
          worst = error;
          at = x;
        }
      }
    }
    double bound = std::string(cpu) == "x86-64-v2" ? function.split : function.fused;
    EXPECT_LE(worst, bound) << cpu << ", at " << at;
    EXPECT_GE(worst, bound / 2) << cpu << ": the bound says too little";
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double gelu(double x) { return x * std::erfc(-x * M_SQRT1_2) / 2; }
double geluTanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double logSigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }
double rsqrt(double x) { return 1 / std::sqrt(x); }

// clang-format off
const Function functions[] = {
    {"exp", std::exp, -86.9, 88.7, 0.9, 1.2},
    {"log", std::log, 0x1p-149, 3e38, 0.9, 1.1, 0, 0x1p-149},
    {"log1p", std::log1p, -0.99, 3e38, 2.5, 2.5},
    {"expm1", std::expm1, -80, 88.7, 2.5, 2.5},
    {"log_sigmoid", logSigmoid, -80, 80, 3, 3},
    {"tanh", std::tanh, -90, 90, 4.4, 5.1},
    {"erf", std::erf, -20, 20, 5.2, 6.4},
    {"sin", std::sin, -1e7, 1e7, 0.8, 0.8, 1},
    {"cos", std::cos, -1e7, 1e7, 0.8, 0.8, 1},
    {"sigmoid", sigmoid, -80, 80, 2.4, 2.4},
    {"silu", silu, -80, 80, 2.6, 2.6},
    {"gelu", gelu, -20, 20, 5.7, 7.8, 1},
    {"gelu_tanh", geluTanh, -6, 6, 5.1, 6.8, 1},
    {"softplus", softplus, -80, 80, 2.6, 2.8},
    {"sqrt", std::sqrt, 0, 3e38, 0.5, 0.5},
    {"rsqrt", rsqrt, 0x1p-126, 3e38, 1.5, 1.5},
};
// clang-format on

/// Where functions end, and beyond what a float can hold.
TEST(Functions, AtTheirEnds) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    const char *name;
    float x, least, most; ///< between these, inclusive; NaN: is NaN
  };
  const Case cases[] = {{"exp", -inf, 0, 0},
                        {"exp", -1e9f, 0, 0},
                        {"exp", -87.5f, 0, 0},
                        {"exp", 0, 1, 1},
                        {"exp", 88.8f, inf, inf},
                        {"exp", inf, inf, inf},
                        {"exp", none, none, none},
                        {"sigmoid", -inf, 0, 2e-38f},
                        {"sigmoid", -1e30f, 0, 2e-38f},
                        {"sigmoid", 0, 0.5f, 0.5f},
                        {"sigmoid", inf, 1, 1},
                        {"sigmoid", none, none, none},
                        {"tanh", -inf, -1, -1},
                        {"tanh", -9.01f, -1, -1},
                        {"tanh", 0, 0, 0},
                        {"tanh", inf, 1, 1},
                        {"tanh", none, none, none},
                        {"erf", -inf, -1, -1},
                        {"erf", -4, -1, -1},
                        {"erf", 0, 0, 0},
                        {"erf", inf, 1, 1},
                        {"erf", none, none, none},
                        {"log", 0x1p-149f, -103.278931f, -103.278931f},
                        {"log", 0x1p-127f, -88.0296936f, -88.0296936f},
                        {"log", 0, -inf, -inf},
                        {"log", -0x1p-149f, none, none},
                        {"log", inf, inf, inf},
                        {"log", none, none, none},
                        {"gelu", -1e9f, 0, 0},
                        {"gelu", 1e9f, 1e9f, 1e9f},
                        {"gelu", none, none, none},
                        {"gelu_tanh", -1e9f, 0, 0},
                        {"gelu_tanh", 1e9f, 1e9f, 1e9f}};
  for (const char *cpu : kProcessors) {
    if (!runsHere(cpu))
      continue;
    for (const Case &what : cases) {
      KernelRun run(blockOf(what.name), cpu, {});
      Inputs inputs;
      inputs.element = [&](std::mt19937 &) -> double { return what.x; };
      run.fill(1, inputs, 1);
      ASSERT_TRUE(run.run(1, 1));
      double y = run.results(0)[0][0];
      if (std::isnan(what.least))
        EXPECT_TRUE(std::isnan(y)) << cpu << ", " << what.name << " of " << what.x << " is " << y;
      else
        EXPECT_TRUE(y >= what.least && y <= what.most)
            << cpu << ", " << what.name << " of " << what.x << " is " << y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Accuracy, testing::ValuesIn(functions),
                         [](const auto &info) { return info.param.name; });

} // namespace

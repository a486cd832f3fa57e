// References: values worked out by hand or by the C library.

#include "compiler/ops/Philox.h"
#include "tests/ops/types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sheaf::ops::test {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

struct Exact : Arithmetic {
  double round(double x) const override { return x; }
};
struct ToFloat : Arithmetic {
  double round(double x) const override { return static_cast<float>(x); }
};

RefTensor of(DType dtype, std::vector<int64_t> shape, std::vector<double> data) {
  RefTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.data = std::move(data);
  return t;
}
RefTensor f32(std::vector<int64_t> shape, std::vector<double> data) {
  return of(DType::F32, std::move(shape), std::move(data));
}
RefTensor f32(std::vector<double> data) {
  return f32({static_cast<int64_t>(data.size())}, std::move(data));
}
RefTensor i32(std::vector<double> data) {
  return of(DType::I32, {static_cast<int64_t>(data.size())}, std::move(data));
}
RefTensor i64(std::vector<double> data) {
  return of(DType::I64, {static_cast<int64_t>(data.size())}, std::move(data));
}
RefTensor bools(std::vector<double> data) {
  return of(DType::Bool, {static_cast<int64_t>(data.size())}, std::move(data));
}
RefTensor hostInt(int64_t x) {
  RefTensor t = of(DType::I64, {}, {static_cast<double>(x)});
  t.host = true;
  t.key = x;
  return t;
}

struct Outcome {
  std::vector<RefTensor> results;
  std::string error;
};

Outcome evaluate(std::string_view name, std::vector<RefTensor> operands,
                 std::string_view attributes = "", const Arithmetic &arithmetic = Exact(),
                 bool isList = false) {
  const Op &op = *OpTable::get().find(name);
  std::vector<OperandType> types;
  for (const RefTensor &t : operands) {
    if (t.host)
      types.push_back({HostKind::Int, false});
    else
      types.push_back({TensorType{t.dtype, {t.shape.begin(), t.shape.end()}, {}}, false});
  }
  if (isList) {
    // The last parameter takes what is left.
    types.resize(op.params.front().kind == ParamKind::List ? 1 : 2);
    types.back().isList = true;
  }
  Attrs arguments = canonicalAttrs(op, types, attrs(attributes));
  ShapeResult shape = op.shape(types, arguments, StrictOracle());
  EXPECT_EQ(shape.error, "") << name;
  Outcome outcome;
  for (const TensorType &type : shape.types) {
    RefTensor t;
    t.dtype = type.dtype;
    for (const Dim &dim : type.dims)
      t.shape.push_back(dim.isConstant() ? dim.constant() : static_cast<int64_t>(operands.size()));
    t.data.resize(t.size());
    outcome.results.push_back(std::move(t));
  }
  outcome.error = op.reference(operands, arguments, arithmetic, outcome.results);
  return outcome;
}

/// The data of the only result.
std::vector<double> value(std::string_view name, std::vector<RefTensor> operands,
                          std::string_view attributes = "",
                          const Arithmetic &arithmetic = Exact()) {
  Outcome outcome = evaluate(name, std::move(operands), attributes, arithmetic);
  EXPECT_EQ(outcome.error, "") << name;
  return outcome.results[0].data;
}

void expectNear(const std::vector<double> &actual, const std::vector<double> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << i;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(actual[i], expected[i]) << i;
    else
      EXPECT_NEAR(actual[i], expected[i], 1e-12 * std::max(1.0, std::fabs(expected[i]))) << i;
  }
}

using V = std::vector<double>;

TEST(References, Arithmetic) {
  expectNear(value("add", {f32({1, 2}), f32({3, -4})}), {4, -2});
  expectNear(value("sub", {f32({1, 2}), f32({3, -4})}), {-2, 6});
  expectNear(value("mul", {f32({1, 2}), f32({3, -4})}), {3, -8});
  expectNear(value("div", {f32({1, 2, 0}), f32({4, 0, 0})}), {0.25, kInf, kNan});
  expectNear(value("pow", {f32({2, 9}), f32({10, 0.5})}), {1024, 3});
  expectNear(value("neg", {f32({1, -2})}), {-1, 2});
  expectNear(value("abs", {f32({1, -2})}), {1, 2});
  expectNear(value("square", {f32({3, -2})}), {9, 4});
  expectNear(value("sign", {f32({3, -2, 0, kNan})}), {1, -1, 0, kNan});
  expectNear(value("maximum", {f32({1, kNan, 2}), f32({3, 1, kNan})}), {3, kNan, kNan});
  expectNear(value("minimum", {f32({1, kNan, 2}), f32({3, 1, kNan})}), {1, kNan, kNan});
  expectNear(value("clamp", {f32({-3, 0.5, 3}), f32({}, {-1}), f32({}, {1})}), {-1, 0.5, 1});
}

TEST(References, Broadcasting) {
  EXPECT_EQ(value("add", {f32({2, 2}, {1, 2, 3, 4}), f32({10, 20})}), (V{11, 22, 13, 24}));
  EXPECT_EQ(value("add", {f32({2, 1}, {1, 2}), f32({10, 20})}), (V{11, 21, 12, 22}));
  EXPECT_EQ(value("sub", {f32({}, {1}), f32({10, 20})}), (V{-9, -19}));
  EXPECT_EQ(value("mul", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {1, 10})}),
            (V{1, 2, 10, 20, 3, 4, 30, 40}));
  EXPECT_EQ(value("add", {f32({0, 2}, {}), f32({1, 2})}), V{});
}

TEST(References, IntsWrap) {
  EXPECT_EQ(value("add", {i32({2147483647}), i32({1})}), V{-2147483648.0});
  EXPECT_EQ(value("mul", {i32({65536}), i32({65537})}), V{65536});
  EXPECT_EQ(value("neg", {i32({-2147483648.0})}), V{-2147483648.0});
  EXPECT_EQ(value("abs", {i32({-2147483648.0, -5})}), (V{-2147483648.0, 5}));
  EXPECT_EQ(value("square", {i64({100000})}), V{1e10});
  EXPECT_EQ(value("sum", {i32({2147483647, 2})}), V{-2147483647.0});
}

TEST(References, Rounding) {
  EXPECT_EQ(value("add", {f32({1}), f32({1e-9})}, "", ToFloat()), V{1});
  EXPECT_EQ(value("sum", {f32({1, 1e-9, 1e-9})}, "", ToFloat()), V{1});
  EXPECT_EQ(value("div", {f32({1}), f32({3})}, "", ToFloat()), V{1.0F / 3.0F});
}

TEST(References, Functions) {
  V x = {-2, -0.5, 0, 0.5, 3};
  auto check = [&](const char *name, auto function) {
    SCOPED_TRACE(name);
    V expected;
    for (double v : x)
      expected.push_back(function(v));
    expectNear(value(name, {f32(x)}), expected);
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  check("exp", [](double v) { return std::exp(v); });
  check("log", [](double v) { return std::log(v); });
  check("sqrt", [](double v) { return std::sqrt(v); });
  check("rsqrt", [](double v) { return 1 / std::sqrt(v); });
  check("sin", [](double v) { return std::sin(v); });
  check("cos", [](double v) { return std::cos(v); });
  check("tanh", [](double v) { return std::tanh(v); });
  check("floor", [](double v) { return std::floor(v); });
  check("ceil", [](double v) { return std::ceil(v); });
  check("sigmoid", sigmoid);
  check("relu", [](double v) { return v < 0 ? 0 : v; });
  check("leaky_relu", [](double v) { return v < 0 ? 0.01 * v : v; });
  check("silu", [&](double v) { return v * sigmoid(v); });
  check("gelu", [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2)); });
  check("erf", [](double v) { return std::erf(v); });
  check("gelu_tanh", [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * std::pow(v, 3))));
  });
  check("softplus", [](double v) { return std::log(1 + std::exp(v)); });
  expectNear(value("sigmoid", {f32({-1000, 1000, -kInf, kInf})}), {0, 1, 0, 1});
  expectNear(value("softplus", {f32({-1000, 1000})}), {0, 1000});
  expectNear(value("relu", {f32({kNan, -kInf})}), {kNan, 0});
  expectNear(value("leaky_relu", {f32({-2, 2})}, "slope=0.5"), {-1, 2});
}

TEST(References, Logic) {
  RefTensor a = f32({1, 2, kNan}), b = f32({2, 2, kNan});
  EXPECT_EQ(value("eq", {a, b}), (V{0, 1, 0}));
  EXPECT_EQ(value("ne", {a, b}), (V{1, 0, 1}));
  EXPECT_EQ(value("lt", {a, b}), (V{1, 0, 0}));
  EXPECT_EQ(value("le", {a, b}), (V{1, 1, 0}));
  EXPECT_EQ(value("gt", {a, b}), (V{0, 0, 0}));
  EXPECT_EQ(value("ge", {a, b}), (V{0, 1, 0}));
  RefTensor p = bools({0, 0, 1, 1}), q = bools({0, 1, 0, 1});
  EXPECT_EQ(value("and", {p, q}), (V{0, 0, 0, 1}));
  EXPECT_EQ(value("or", {p, q}), (V{0, 1, 1, 1}));
  EXPECT_EQ(value("not", {q}), (V{1, 0, 1, 0}));
  EXPECT_EQ(value("where", {bools({1, 0}), f32({1, 2}), f32({}, {9})}), (V{1, 9}));
}

TEST(References, Casts) {
  EXPECT_EQ(value("f32", {i32({1, -2})}), (V{1, -2}));
  EXPECT_EQ(value("f32", {bools({1, 0})}), (V{1, 0}));
  EXPECT_EQ(value("i32", {f32({1.9, -1.9, kNan, 1e20, -1e20, kInf})}),
            (V{1, -1, 0, 2147483647.0, -2147483648.0, 2147483647.0}));
  EXPECT_EQ(value("i32", {i64({4294967297.0})}), V{1});
  EXPECT_EQ(value("i64", {i32({-3})}), V{-3});
  EXPECT_EQ(value("bool", {f32({0, -0.0, 0.1, kNan})}), (V{0, 0, 1, 1}));
  EXPECT_EQ(value("f32", {i64({16777217})}, "", ToFloat()), V{16777216});
}

TEST(References, Reductions) {
  RefTensor x = f32({2, 3}, {1, 2, 3, 6, 5, 4});
  EXPECT_EQ(value("sum", {x}), V{21});
  EXPECT_EQ(value("sum", {x}, "axis=0"), (V{7, 7, 7}));
  EXPECT_EQ(value("sum", {x}, "axis=-1"), (V{6, 15}));
  EXPECT_EQ(value("reduce_sum", {x}, "axis=1, keepdims=1"), (V{6, 15}));
  EXPECT_EQ(value("max", {x}, "axis=1"), (V{3, 6}));
  EXPECT_EQ(value("min", {x}, "axis=0"), (V{1, 2, 3}));
  EXPECT_EQ(value("mean", {x}, "axis=1"), (V{2, 5}));
  EXPECT_EQ(value("mean", {x}), V{3.5});
  EXPECT_EQ(value("argmax", {x}), (V{2, 0}));
  EXPECT_EQ(value("argmax", {x}, "axis=0"), (V{1, 1, 1}));
  EXPECT_EQ(value("argmax", {f32({3, 7, 7})}), V{1});
  EXPECT_EQ(value("argmax", {f32({3, kNan, kInf})}), V{1});
  expectNear(value("max", {f32({3, kNan, 1})}), {kNan});
  expectNear(value("logsumexp", {f32({1, 2})}), {std::log(std::exp(1) + std::exp(2))});
  expectNear(value("logsumexp", {f32({1000, 1000})}), {1000 + std::log(2)});
  expectNear(value("logsumexp", {f32({-kInf, -kInf})}), {-kInf});
  EXPECT_EQ(value("sum", {f32({2, 0}, {})}, "axis=1"), (V{0, 0}));
  EXPECT_EQ(value("max", {f32({2, 0}, {})}, "axis=1"), (V{-kInf, -kInf}));
  EXPECT_EQ(value("sum", {f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, "axis=1"), (V{4, 6, 12, 14}));
}

TEST(References, TopK) {
  Outcome top = evaluate("top_k", {f32({3, 9, kNan, 9, -kInf})}, "k=4");
  expectNear(top.results[0].data, {kNan, 9, 9, 3});
  EXPECT_EQ(top.results[1].data, (V{2, 1, 3, 0}));
  top = evaluate("top_k", {i32({-1, -1, -2})}, "k=3");
  EXPECT_EQ(top.results[0].data, (V{-1, -1, -2}));
  EXPECT_EQ(top.results[1].data, (V{0, 1, 2}));
  top = evaluate("top_k", {f32({2, 3}, {1, 5, 2, 4, 5, 3})}, "k=1, axis=0");
  EXPECT_EQ(top.results[0].data, (V{4, 5, 3}));
  EXPECT_EQ(top.results[1].data, (V{1, 0, 1}));
  RefTensor places = of(DType::I32, {2, 2}, {2, -1, 1, 9});
  EXPECT_EQ(value("take_along", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), places}), (V{3, 1, 5, 6}));
  places = of(DType::I32, {1, 3}, {1, 0, 1});
  EXPECT_EQ(value("take_along", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), places}, "axis=0"), (V{4, 2, 6}));
}

TEST(References, Filters) {
  expectNear(value("top_k_filter", {f32({1, kNan, -kInf, 3})}, "k=2"), {-kInf, kNan, -kInf, 3});
  expectNear(value("top_k_filter", {f32({1, 2})}, "k=9"), {1, 2});
  expectNear(value("top_p_filter", {f32({1, kInf, 2}), f32({}, {0.9})}), {-kInf, kInf, -kInf});
  expectNear(value("top_p_filter", {f32({2, 1, 2}), f32({}, {0})}), {2, -kInf, 2});
  EXPECT_EQ(value("argsort", {f32({2, kNan, -kInf, 2})}), (V{2, 0, 3, 1}));
}

TEST(References, Attention) {
  // Scores of log 1 and log 3 weigh a quarter and three quarters.
  RefTensor q = f32({1, 1}, {1}), k = f32({2, 1}, {0, std::log(3)}), v = f32({2, 1}, {4, 8});
  expectNear(value("attention", {q, k, v}), {7});
  expectNear(value("attention", {f32({1}), k, v}), {7});
  expectNear(value("attention", {q, k, v}, "scale=2.0"), {7.6});
  RefTensor both = f32({2, 1}, {1, 1});
  expectNear(value("attention", {both, k, v}, "causal=1"), {4, 7});
  expectNear(value("attention", {q, k, v}, "causal=1"), {7});
  expectNear(value("attention", {both, f32({1, 1}, {1}), f32({1, 1}, {5})}, "causal=1"), {0, 5});
  RefTensor see = of(DType::Bool, {2, 2}, {0, 1, 0, 0});
  expectNear(value("masked_attention", {both, k, v, see}), {8, 0});
  expectNear(value("masked_attention", {q, k, v, f32({std::log(3), 0})}), {6});
}

TEST(References, Rope) {
  RefTensor x = f32({2, 4}, {1, 2, 3, 4, 1, 0, 0, 1});
  double c = std::cos(1), s = std::sin(1), c2 = std::cos(0.01), s2 = std::sin(0.01);
  expectNear(value("rope", {x}), {1, 2, 3, 4, c, -s2, s, c2});
  expectNear(value("rope", {f32({1, 0})}, "start=-1"), {c, -s});
  expectNear(value("rope", {f32({0, 1, 0, 0})}, "start=100, base=100.0"),
             {0, std::cos(10), 0, std::sin(10)});
}

TEST(References, Movement) {
  EXPECT_EQ(value("concat", {f32({1, 2}), f32({3})}), (V{1, 2, 3}));
  EXPECT_EQ(value("concat", {f32({2, 1}, {1, 2}), f32({2, 2}, {3, 4, 5, 6})}, "axis=1"),
            (V{1, 3, 4, 2, 5, 6}));
  Outcome split = evaluate("split", {f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, "parts=2, axis=-1");
  EXPECT_EQ(split.results[0].data, (V{1, 2, 5, 6}));
  EXPECT_EQ(split.results[1].data, (V{3, 4, 7, 8}));
  std::vector<RefTensor> list = {f32({1, 2}), f32({3, 4}), f32({5, 6})};
  EXPECT_EQ(evaluate("stack", list, "", Exact(), true).results[0].data, (V{1, 2, 3, 4, 5, 6}));
  Outcome stacked = evaluate("stack", list, "axis=1", Exact(), true);
  EXPECT_EQ(stacked.results[0].data, (V{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(stacked.results[0].shape, (std::vector<int64_t>{2, 3}));
  // In the order of a fold: 1e17 + 1 is 1e17 in doubles.
  std::vector<RefTensor> summed = {f32({1e17, 2}), f32({1, 3}), f32({-1e17, 4}), f32({1, 5})};
  EXPECT_EQ(evaluate("fold_add", summed, "", Exact(), true).results[0].data, (V{1, 14}));
  EXPECT_EQ(evaluate("fold_mul", summed, "", Exact(), true).results[0].data, (V{-1e34, 120}));
  EXPECT_EQ(evaluate("fold_maximum", summed, "", Exact(), true).results[0].data, (V{1e17, 5}));
  // The element comes first: what a comparison gives of two zeros tells.
  std::vector<RefTensor> zeros = {f32({0.0}), f32({-0.0})};
  auto sign = [&](std::string_view attrs) {
    return std::signbit(evaluate("fold_maximum", zeros, attrs, Exact(), true).results[0].data[0]);
  };
  EXPECT_EQ(sign(""), std::signbit(value("maximum", {zeros[0], zeros[1]})[0]));
  EXPECT_EQ(sign("reversed=1"), std::signbit(value("maximum", {zeros[1], zeros[0]})[0]));
  EXPECT_EQ(evaluate("fold_minimum", summed, "", Exact(), true).results[0].data, (V{-1e17, 2}));
  EXPECT_EQ(value("transpose", {f32({2, 3}, {1, 2, 3, 4, 5, 6})}), (V{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(value("transpose", {f32({2, 1, 2}, {1, 2, 3, 4})}, "axis1=0, axis2=2"),
            (V{1, 3, 2, 4}));
  EXPECT_EQ(value("reshape", {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, "dims=[3, 2]"),
            (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(value("broadcast_to", {f32({2, 1}, {1, 2})}, "dims=[2, 2, 2]"),
            (V{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(value("expand_dims", {f32({1, 2})}, "axis=1"), (V{1, 2}));
  EXPECT_EQ(value("squeeze", {f32({1, 2}, {1, 2})}), (V{1, 2}));
}

TEST(References, Indexing) {
  RefTensor table = f32({3, 2}, {0, 1, 10, 11, 20, 21});
  EXPECT_EQ(value("index", {table, hostInt(1)}), (V{10, 11}));
  EXPECT_EQ(value("embedding", {table, i32({2, 0})}), (V{20, 21, 0, 1}));
  EXPECT_EQ(value("take", {table, i32({-5, 7})}), (V{0, 1, 20, 21}));
  V outside = value("gather", {table, i32({-1, 3})});
  EXPECT_TRUE(outside.size() == 4 &&
              std::all_of(outside.begin(), outside.end(), [](double x) { return std::isnan(x); }));
  EXPECT_EQ(value("gather", {i32({5, 6}), i32({2, 1})}), (V{-2147483648.0, 6}));
  EXPECT_EQ(value("element", {table, hostInt(1)}, "axis=1"), (V{1, 11, 21}));
  EXPECT_EQ(value("pick", {f32({4, 5, 6}), hostInt(2)}), V{6});
  EXPECT_EQ(value("row", {table, hostInt(2)}), (V{20, 21}));
  EXPECT_EQ(value("slice", {table}, "start=1, size=2"), (V{10, 11, 20, 21}));
  EXPECT_EQ(value("slice", {table}, "start=1, size=1, axis=-1"), (V{1, 11, 21}));
  EXPECT_EQ(evaluate("index", {table, hostInt(3)}).error,
            "index 3 is out of range for an extent of 3");
  EXPECT_EQ(evaluate("element", {table, hostInt(-1)}).error,
            "index -1 is out of range for an extent of 3");
  EXPECT_EQ(value("gather", {of(DType::Bool, {0}, {}), i32({0})}), V{0});
  EXPECT_EQ(value("gather", {f32({0, 2}, {}), i32({})}), V{});
}

TEST(References, Products) {
  RefTensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {7, 8, 9, 10, 11, 12});
  EXPECT_EQ(value("matmul", {a, b}), (V{58, 64, 139, 154}));
  EXPECT_EQ(value("matmul", {f32({1, 2, 3}), b}), (V{58, 64}));
  EXPECT_EQ(value("matmul", {a, f32({1, 10, 100})}), (V{321, 654}));
  EXPECT_EQ(value("matmul", {f32({1, 2}), f32({3, 4})}), V{11});
  EXPECT_EQ(value("dot", {f32({1, 2}), f32({3, 4})}), V{11});
  EXPECT_EQ(value("outer", {f32({1, 2}), f32({3, 4})}), (V{3, 4, 6, 8}));
  EXPECT_EQ(value("matmul", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 2, 1}, {5, 6, 7, 8})}),
            (V{17, 53}));
  EXPECT_EQ(value("matmul", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {5, 6})}), (V{17, 39}));
  EXPECT_EQ(value("matmul", {f32({1, 2}), f32({2, 2, 1}, {5, 6, 7, 8})}), (V{17, 23}));
  EXPECT_EQ(value("matmul", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({5, 6})}), (V{17, 39}));
  EXPECT_EQ(value("matmul", {f32({1, 1, 2}, {1, 2}), f32({2, 2, 1}, {5, 6, 7, 8})}), (V{17, 23}));
  EXPECT_EQ(value("matmul", {f32({2, 0}, {}), f32({0, 2}, {})}), (V{0, 0, 0, 0}));
}

TEST(References, Normalise) {
  double e1 = std::exp(1), e2 = std::exp(2);
  expectNear(value("softmax", {f32({1, 2})}), {e1 / (e1 + e2), e2 / (e1 + e2)});
  expectNear(value("softmax", {f32({1000, 1000})}), {0.5, 0.5});
  expectNear(value("softmax", {f32({2, 2}, {0, 5, 0, 5})}, "axis=0"), {0.5, 0.5, 0.5, 0.5});
  expectNear(value("log_softmax", {f32({1, 2})}),
             {std::log(e1 / (e1 + e2)), std::log(e2 / (e1 + e2))});
  expectNear(value("layer_norm", {f32({1, 3}), f32({2, 10}), f32({0.5, -1})}, "eps=0.0"),
             {-2 + 0.5, 10 - 1});
  expectNear(value("rms_norm", {f32({3, 4}), f32({1, 2})}, "eps=0.0"),
             {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
  double loss = std::log(e1 + e2) - 2;
  expectNear(value("cross_entropy", {f32({1, 2}), hostInt(1)}), {loss});
  expectNear(value("cross_entropy", {f32({2, 2}, {1, 2, 2, 1}), i32({1, 0})}), {loss, loss});
  EXPECT_TRUE(std::isnan(value("cross_entropy", {f32({1, 2}), of(DType::I32, {}, {9})})[0]));
  EXPECT_EQ(evaluate("cross_entropy", {f32({1, 2}), hostInt(2)}).error,
            "label 2 is out of range for 2 classes");
}

TEST(References, Constants) {
  EXPECT_EQ(value("zeros", {}, "dims=[2]"), (V{0, 0}));
  EXPECT_EQ(value("ones", {}, "dims=[1, 2]"), (V{1, 1}));
  EXPECT_EQ(value("full", {}, "value=0.5, dims=[2]"), (V{0.5, 0.5}));
  EXPECT_EQ(value("iota", {}, "size=3"), (V{0, 1, 2}));
  EXPECT_EQ(value("scalar", {hostInt(7)}), V{7});
  EXPECT_EQ(value("one_hot", {hostInt(1)}, "size=3"), (V{0, 1, 0}));
  EXPECT_EQ(value("one_hot", {i32({2, 5})}, "size=3"), (V{0, 0, 1, 0, 0, 0}));
}

/// The known answers that the authors of Philox give (Random123, kat_vectors).
TEST(References, Philox) {
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(References, Random) {
  // Upper and lower half of the key matter, and the row-major number of the element.
  int64_t key = 0x299f31d0a4093822;
  auto unit = [&](uint32_t index, size_t word) {
    return (philox({index, 0, 0, 0}, {0xa4093822, 0x299f31d0})[word] >> 8) * 0x1p-24;
  };
  RefTensor k = hostInt(key);
  EXPECT_EQ(value("uniform_first", {i32({0, 7}), i32({0}), k}), (V{unit(0, 0), unit(7, 0)}));
  EXPECT_EQ(value("uniform_second", {i32({-1}), i32({0}), k}), V{unit(0xffffffff, 1)});
  // Numbers of more than a word, as row 70,000 of 65,537 columns has them.
  EXPECT_EQ(value("number_above", {i32({0}), i32({70000}), i32({65537}), i32({65535})}), V{1});
  EXPECT_EQ(value("number_above", {i32({3}), i32({-1}), i32({16}), i32({15})}), V{3 * 16 + 15});
  EXPECT_EQ(value("number_above", {i32({0}), i32({-1}), i32({1}), i32({1})}), V{1});
  double above = (philox({5, 1, 0, 0}, {0xa4093822, 0x299f31d0})[0] >> 8) * 0x1p-24;
  EXPECT_EQ(value("uniform_first", {i32({5}), i32({1}), k}), V{above});
  EXPECT_EQ(value("random", {k}, "dims=[2, 2]"),
            (V{unit(0, 0), unit(1, 0), unit(2, 0), unit(3, 0)}));
  expectNear(value("random_normal", {k}, "dims=[]"),
             {std::sqrt(-2 * std::log(1 - unit(0, 0))) * std::cos(2 * M_PI * unit(0, 1))});

  size_t n = 20000;
  V drawn = value("random_normal", {k}, "dims=[20000]");
  double sum = 0, squares = 0;
  for (double x : drawn)
    sum += x, squares += x * x;
  EXPECT_NEAR(sum / n, 0, 0.03);
  EXPECT_NEAR(squares / n, 1, 0.04);

  RefTensor ones = f32(V(n, 1));
  V dropped = value("dropout", {ones, k}, "p=0.2");
  EXPECT_NEAR(std::count(dropped.begin(), dropped.end(), 0) / double(n), 0.2, 0.02);
  EXPECT_EQ(std::count(dropped.begin(), dropped.end(), 1.25),
            std::count_if(dropped.begin(), dropped.end(), [](double x) { return x != 0; }));
  EXPECT_EQ(value("dropout", {ones, k}, "p=0.0"), ones.data);

  // Rows of logits for the probabilities 1/7, 2/7 and 4/7.
  V logits;
  for (size_t i = 0; i < n; ++i)
    for (double p : {1, 2, 4})
      logits.push_back(std::log(p) + 3);
  V sampled = value("sample", {f32({static_cast<int64_t>(n), 3}, logits), k});
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(std::count(sampled.begin(), sampled.end(), i) / double(n), (1 << i) / 7.0, 0.02);
  EXPECT_EQ(value("sample", {f32({1, kNan, 3}), k}), V{1});
}

} // namespace
} // namespace sheaf::ops::test

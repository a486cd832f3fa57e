// Agreement of values, and what rounding may make of them (docs/numerics.md).

#include "compiler/oracle/Compare.h"
#include "compiler/oracle/Perturbed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace sheaf::oracle {
namespace {

Value f32(std::vector<double> data) {
  ops::RefTensor t;
  t.shape = {static_cast<int64_t>(data.size())};
  t.data = std::move(data);
  return makeTensor(std::move(t));
}

Value i32(std::vector<double> data) {
  ops::RefTensor t;
  t.dtype = ops::DType::I32;
  t.shape = {static_cast<int64_t>(data.size())};
  t.data = std::move(data);
  return makeTensor(std::move(t));
}

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST(Compare, EqualValues) {
  Value v = makeTuple({int64_t(3), 2.5, true, f32({1, -2}), makeList({makeData(1, {int64_t(0)})})});
  Comparison c = compare(v, v);
  EXPECT_TRUE(c.ok);
  ASSERT_EQ(c.tensors.size(), 2u);
  EXPECT_EQ(c.tensors[0].maxAbs, 2.5);
  EXPECT_EQ(c.tensors[1].maxAbs, 2);
  EXPECT_EQ(c.worst(), 0);
}

TEST(Compare, ToleranceScalesWithTheTensor) {
  EXPECT_TRUE(compare(f32({0, 0.5}), f32({0.9e-5, 0.5})).ok);
  EXPECT_FALSE(compare(f32({0, 0.5}), f32({1.1e-5, 0.5})).ok);
  EXPECT_TRUE(compare(f32({0, 1000}), f32({0.9e-2, 1000})).ok);
  EXPECT_FALSE(compare(f32({0, 1000}), f32({1.1e-2, 1000})).ok);
  EXPECT_TRUE(compare(f32({1}), f32({1.01}), 2e-2).ok);
}

TEST(Compare, FloatsInOrder) {
  Value v = makeTuple({int64_t(3), 2.5, i32({7}), f32({1, -2}),
                       makeList({makeData(1, {f32({4})}), makeData(0, {})}), true});
  std::vector<std::vector<double>> expected = {{2.5}, {1, -2}, {4}};
  EXPECT_EQ(floatsOf(v), expected);
  EXPECT_EQ(compare(v, v).tensors.size(), expected.size());
}

TEST(Perturbed, RoundsEitherWayButNotWhatIsExact) {
  const ops::Op &add = *ops::OpTable::get().find("add"), &mul = *ops::OpTable::get().find("mul");
  ops::RefTensors none{std::vector<const ops::RefTensor *>()};
  std::set<double> seen, ofOthers;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    PerturbedArithmetic some(seed, add, none, Precision::F32),
        same(seed, add, none, Precision::F32);
    EXPECT_EQ(some.round(0.1), same.round(0.1));
    for (double exact : {0.0, 1.0, -3.5, 0x1p-140, 16777216.0})
      EXPECT_EQ(some.round(exact), exact);
    seen.insert(some.round(0.1));
    ofOthers.insert(some.round(0.1) -
                    PerturbedArithmetic(seed, mul, none, Precision::F32).round(0.1));
    EXPECT_EQ(some.round(1e39), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isfinite(some.round(3.4028234e38)));
    EXPECT_EQ(some.roundStored(65520, ops::DType::F16), std::numeric_limits<double>::infinity());
    EXPECT_EQ(some.roundStored(65519, ops::DType::F16), 65504);
    EXPECT_EQ(some.roundFactor(0.1), 0.1);
  }
  // Both neighbours, and not the same ones in another operator.
  EXPECT_EQ(seen, (std::set<double>{static_cast<double>(std::nextafter(0.1F, 0.0F)),
                                    static_cast<double>(0.1F)}));
  EXPECT_GT(ofOthers.size(), 1u);
}

TEST(Compare, Messages) {
  Value a = makeTuple({int64_t(1), makeList({f32({1, 2}), f32({3, 4})})});
  Value b = makeTuple({int64_t(1), makeList({f32({1, 2}), f32({3, 5})})});
  EXPECT_EQ(compare(a, b).message, "at .1[1][1]: expected 4, got 5");
  EXPECT_EQ(compare(int64_t(1), int64_t(2)).message, "expected 1, got 2");
  EXPECT_EQ(compare(true, false).message, "expected true, got false");
  EXPECT_EQ(compare(int64_t(1), 2.0).message, "expected an int, got a float");
  EXPECT_EQ(compare(f32({1}), f32({1, 2})).message, "expected f32[1], got f32[2]");
  EXPECT_EQ(compare(f32({1}), i32({1})).message, "expected f32[1], got i32[1]");
  EXPECT_EQ(compare(i32({1, 7}), i32({1, 8})).message, "at [1]: expected 7, got 8");
  EXPECT_EQ(compare(makeData(0, {}), makeData(1, {})).message,
            "expected constructor 0, got constructor 1");
  EXPECT_EQ(compare(makeList({}), makeList({int64_t(1)})).message,
            "expected a list of 0, got a list of 1");
}

TEST(Compare, NotFinite) {
  EXPECT_TRUE(compare(f32({kNan, kInf, -kInf}), f32({-kNan, kInf, -kInf})).ok);
  EXPECT_FALSE(compare(f32({kInf}), f32({-kInf})).ok);
  EXPECT_FALSE(compare(f32({kInf}), f32({1e30})).ok);
  EXPECT_FALSE(compare(f32({1}), f32({kNan})).ok);
  EXPECT_FALSE(compare(f32({kNan}), f32({1})).ok);
  EXPECT_EQ(compare(f32({kInf, 2}), f32({kInf, 2})).tensors[0].maxAbs, 2);
}

TEST(Compare, ListsOfDifferentBuild) {
  Value a = makeList({int64_t(1), int64_t(2), int64_t(3)});
  Value b = concat(makeList({int64_t(1)}), makeList({int64_t(2), int64_t(3)}));
  EXPECT_TRUE(compare(a, b).ok);
}

TEST(Compare, DeepValues) {
  Value a = makeData(0, {}), b = makeData(0, {});
  for (int64_t i = 0; i < 500'000; ++i) {
    a = makeData(1, {i, a});
    b = makeData(1, {i, b});
  }
  EXPECT_TRUE(compare(a, b).ok);
}

} // namespace
} // namespace sheaf::oracle

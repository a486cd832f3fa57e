// Runs of the oracle that take what another arithmetic has read.

#include "tests/oracle/program_test.h"

#include "compiler/oracle/Replay.h"

#include <bit>
#include <cmath>

namespace sheaf::oracle {
namespace {

rt::Slot slotOf(double x) { return std::bit_cast<rt::Slot>(x); }

Value vectorOf(std::vector<double> data, ops::DType dtype = ops::DType::F32) {
  ops::RefTensor t;
  t.dtype = dtype;
  t.shape = {static_cast<int64_t>(data.size())};
  t.data = std::move(data);
  return makeTensor(std::move(t));
}

class ReplayTest : public ProgramTest {
protected:
  Value run(std::vector<Value> args, std::vector<rt::LoggedRead> log) {
    replay_.emplace(paths_.empty() ? readPaths() : paths_, near_, true);
    replay_->expect(log);
    OracleOptions options;
    options.replay = &*replay_;
    oracle_.emplace(*program_, weights_, Precision::F64, options);
    return oracle_->run("main", std::move(args)).at(0);
  }

  double distance(size_t i) { return replay_->reads()[i].distance; }

  double near_ = 1e-5;
  std::vector<std::string> paths_; ///< if others than those of all reads
  std::optional<Replay> replay_;
  std::optional<Oracle> oracle_;
};

constexpr const char *kThreshold = R"(
  func.func @main(%x: tensor<1xf32>) -> i64 {
    %zero = arith.constant 0 : i64
    %e = sheaf.apply "index"(%x, %zero) {} : (tensor<1xf32>, i64) -> tensor<f32>
    %r = sheaf.read %e : (tensor<f32>) -> f64
    %half = arith.constant 5.000000e-01 : f64
    %d = arith.subf %r, %half : f64
    %none = arith.constant 0.000000e+00 : f64
    %c = arith.cmpf ogt, %d, %none : f64
    %k = sheaf.convert %c : i1 to i64
    return %k : i64
  })";

TEST_F(ReplayTest, FloatsAreTakenAndComparedWithTheirOwn) {
  parse(kThreshold);
  EXPECT_EQ(std::get<int64_t>(run({vectorOf({0.75})}, {})), 1);
  EXPECT_EQ(replay_->reads().size(), 0u);
  // A comparison turns around, after host arithmetic.
  EXPECT_EQ(std::get<int64_t>(run({vectorOf({0.5 + 1e-9})}, {{0, slotOf(0.5)}})), 0);
  EXPECT_NEAR(distance(0), 1e-9, 1e-15);
  EXPECT_EQ(replay_->turned(), 1);
  EXPECT_FALSE(replay_->leftOver());
  // It does not.
  EXPECT_EQ(std::get<int64_t>(run({vectorOf({2})}, {{0, slotOf(1)}})), 1);
  EXPECT_EQ(distance(0), 0.5);
  EXPECT_EQ(replay_->turned(), 0);
  run({vectorOf({2})}, {{0, slotOf(std::nan(""))}});
  EXPECT_TRUE(std::isinf(distance(0)));
  run({vectorOf({2})}, {{0, slotOf(2)}, {0, slotOf(3)}});
  EXPECT_EQ(replay_->leftOver()->value, slotOf(3));
}

constexpr const char *kPlaces = R"(
  func.func @main(%x: tensor<5xf32>, %t: tensor<5xf32>) -> tuple<i64, i64, tensor<f32>, tensor<2xi32>> {
    %values, %places = sheaf.apply "top_k"(%x) {axis = 0 : i64, k = 2 : i64}
        : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    %some = sheaf.apply "index"(%t, %places) {} : (tensor<5xf32>, tensor<2xi32>) -> tensor<2xf32>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %p0 = sheaf.apply "index"(%places, %zero) {} : (tensor<2xi32>, i64) -> tensor<i32>
    %p1 = sheaf.apply "index"(%places, %one) {} : (tensor<2xi32>, i64) -> tensor<i32>
    %r0 = sheaf.read %p0 : (tensor<i32>) -> i64
    %r1 = sheaf.read %p1 : (tensor<i32>) -> i64
    %s = sheaf.apply "index"(%some, %zero) {} : (tensor<2xf32>, i64) -> tensor<f32>
    %all = sheaf.tuple(%r0, %r1, %s, %places) : (i64, i64, tensor<f32>, tensor<2xi32>) -> tuple<i64, i64, tensor<f32>, tensor<2xi32>>
    return %all : tuple<i64, i64, tensor<f32>, tensor<2xi32>>
  })";

TEST_F(ReplayTest, WhatFollowsFromADecisionTurnsAroundWithIt) {
  parse(kPlaces);
  Value table = vectorOf({10, 11, 12, 13, 14});
  Value all = run({vectorOf({1, 3, 3.002, 0, 2.998}), table}, {{0, 1}, {1, 4}});
  // 3 is taken before 3.002, and then 2.998 before that.
  EXPECT_NEAR(distance(0), 0.001 / 3.002, 1e-12);
  EXPECT_NEAR(distance(1), 0.002 / 3.002, 1e-12);
  EXPECT_EQ(replay_->turned(), 2);
  // It had been taken of a table already.
  EXPECT_EQ(tensor(cell(all).children[2]).data, std::vector<double>({11}));
  EXPECT_EQ(tensor(cell(all).children[3]).data, std::vector<double>({1, 4}));
  // No place at all, and one twice.
  run({vectorOf({1, 3, 3.002, 0, 2.998}), table}, {{0, 7}, {1, 1}});
  EXPECT_TRUE(std::isinf(distance(0)));
  EXPECT_EQ(distance(1), 0);
  run({vectorOf({1, 3, 3.002, 0, 2.998}), table}, {{0, 2}, {1, 2}});
  EXPECT_TRUE(std::isinf(distance(0)) || std::isinf(distance(1)));
}

TEST_F(ReplayTest, IntsOfResultsAreDecisions) {
  parse(R"(
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %one: tensor<i64>) -> tuple<tensor<i64>, tensor<4xi1>> {
      %a = sheaf.apply "argmax"(%x) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<4xf32>) -> tensor<i32>
      %b = sheaf.apply "i64"(%a) {} : (tensor<i32>) -> tensor<i64>
      %c = sheaf.apply "add"(%b, %one) {} : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %less = sheaf.apply "lt"(%x, %y) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %all = sheaf.tuple(%c, %less) : (tensor<i64>, tensor<4xi1>) -> tuple<tensor<i64>, tensor<4xi1>>
      return %all : tuple<tensor<i64>, tensor<4xi1>>
    })");
  ops::RefTensor place;
  place.dtype = ops::DType::I64;
  place.data = {1};
  Value expected =
      run({vectorOf({1, 5, 5 - 1e-6, 0}), vectorOf({1 + 1e-6, 9, 0, 1}), makeTensor(place)}, {});
  place.data = {3};
  Value actual = makeTuple({makeTensor(place), vectorOf({0, 1, 0, 0}, ops::DType::Bool)});
  replay_->compareResult(expected, actual);
  ASSERT_EQ(replay_->reads().size(), 5u);
  EXPECT_NEAR(distance(0), 0.5e-6 / 5, 1e-12);
  // By the numbers that meet, not by the 9 beside them.
  EXPECT_NEAR(distance(1), 0.5e-6, 1e-12);
  EXPECT_NEAR(distance(4), 0.5, 1e-12);
  EXPECT_EQ(tensor(cell(expected).children[0]).data, std::vector<double>({3}));
  EXPECT_EQ(tensor(cell(expected).children[1]).data, std::vector<double>({0, 1, 0, 0}));
  EXPECT_EQ(replay_->turned(), 3);
}

TEST_F(ReplayTest, ReadsThatContradictEachOtherAreWrong) {
  parse(R"(
    func.func @main(%x: tensor<4xf32>) -> i64 {
      %a = sheaf.apply "argmax"(%x) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<4xf32>) -> tensor<i32>
      %r0 = sheaf.read %a : (tensor<i32>) -> i64
      %r1 = sheaf.read %a : (tensor<i32>) -> i64
      %s = arith.addi %r0, %r1 : i64
      return %s : i64
    })");
  Value x = vectorOf({0, 1, 1 - 1e-9, 0});
  run({x}, {{0, 2}, {1, 2}});
  EXPECT_LT(distance(0), 1e-9);
  EXPECT_EQ(distance(1), 0);
  // Either may be, but not both.
  run({x}, {{0, 2}, {1, 1}});
  EXPECT_TRUE(std::isinf(distance(0)) || std::isinf(distance(1)));
  run({x}, {{0, 1}, {1, 2}});
  EXPECT_TRUE(std::isinf(distance(0)) || std::isinf(distance(1)));
}

TEST_F(ReplayTest, PlacesMayBeReadInAnyOrder) {
  std::string text = kPlaces;
  size_t first = text.find("%r0 = "), second = text.find("%r1 = ");
  std::string r0 = text.substr(first, second - first),
              r1 = text.substr(second, text.find("%s = ") - second);
  text.replace(first, r0.size() + r1.size(), r1 + r0);
  parse(text.c_str());
  Value table = vectorOf({10, 11, 12, 13, 14});
  // By the oracle 2 and then 1.
  Value all = run({vectorOf({1, 3, 3.002, 0, 2.998}), table}, {{0, 2}, {1, 1}});
  EXPECT_NEAR(distance(0), 0.001 / 3.002, 1e-12);
  EXPECT_EQ(distance(1), 0);
  EXPECT_EQ(tensor(cell(all).children[3]).data, std::vector<double>({1, 2}));
  // One of them twice.
  run({vectorOf({1, 3, 3.002, 0, 2.998}), table}, {{0, 1}, {1, 1}});
  EXPECT_TRUE(std::isinf(distance(0)) || std::isinf(distance(1)));
}

/// Many decisions, all of them near, that are counted.
std::string counted(int64_t size) {
  std::string n = std::to_string(size) + "x";
  return "func.func @main(%x: tensor<" + n + "f32>, %y: tensor<" + n + R"(f32>) -> i64 {
      %less = sheaf.apply "lt"(%x, %y) {} : (tensor<)" +
         n + "f32>, tensor<" + n + "f32>) -> tensor<" + n + R"(i1>
      %ints = sheaf.apply "i32"(%less) {} : (tensor<)" +
         n + "i1>) -> tensor<" + n + R"(i32>
      %sum = sheaf.apply "sum"(%ints) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<)" +
         n + R"(i32>) -> tensor<i32>
      %r = sheaf.read %sum : (tensor<i32>) -> i64
      return %r : i64
    })";
}

TEST_F(ReplayTest, DecisionsTurnAroundTogether) {
  parse(counted(64).c_str());
  Value zeros = vectorOf(std::vector<double>(64, 0)), ones = vectorOf(std::vector<double>(64, 1));
  std::vector<double> few(64, 1);
  for (size_t i = 0; i < 5; ++i)
    few[10 * i] = 1e-6 * static_cast<double>(i + 1);
  run({zeros, vectorOf(few)}, {{0, 61}});
  EXPECT_NEAR(distance(0), 1.5e-6, 1e-12);
  run({zeros, vectorOf(few)}, {{0, 59}});
  EXPECT_NEAR(distance(0), 2.5e-6, 1e-12);
  EXPECT_TRUE(replay_->reads()[0].isComplete);
  // There are no more than five that are near. One that is not is told as it is.
  run({zeros, vectorOf(few)}, {{0, 58}});
  EXPECT_EQ(distance(0), 0.5);
  run({zeros, vectorOf(few)}, {{0, 57}});
  EXPECT_TRUE(std::isinf(distance(0)));
  EXPECT_TRUE(replay_->reads()[0].isComplete);
  run({zeros, ones}, {{0, 63}});
  EXPECT_EQ(distance(0), 0.5);
}

TEST_F(ReplayTest, ThatNotAllCouldBeTriedIsSaid) {
  parse(counted(16384).c_str());
  std::vector<double> zeros(16384, 0);
  // More than there are.
  run({vectorOf(zeros), vectorOf(zeros)}, {{0, 20000}});
  EXPECT_TRUE(std::isinf(distance(0)));
  EXPECT_FALSE(replay_->reads()[0].isComplete);
}

TEST_F(ReplayTest, PlacesAreToldApartByTheCallsToThem) {
  parse(R"(
    func.func private @value(%x: tensor<f32>) -> f64 {
      %r = sheaf.read %x : (tensor<f32>) -> f64 loc("m.sheaf":1:5)
      return %r : f64
    }
    func.func @main(%x: tensor<f32>) -> f64 {
      %a = func.call @value(%x) : (tensor<f32>) -> f64 loc("m.sheaf":2:1)
      %b = func.call @value(%x) : (tensor<f32>) -> f64 loc("m.sheaf":3:1)
      %c = func.call @value(%x) : (tensor<f32>) -> f64 loc("m.sheaf":4:1)
      %d = arith.subf %c, %b : f64
      return %d : f64
    })");
  // The first was dropped after inlining, the last was not inlined.
  paths_ = {"m.sheaf:1:5", "m.sheaf:1:5<m.sheaf:3:1"};
  ops::RefTensor x;
  x.data = {1};
  Value one = makeTensor(x);
  // That of the first call finds the place of those that were not inlined, and takes nothing there
  // that another lacks: all of them read the same.
  EXPECT_EQ(std::get<double>(run({one}, {{0, slotOf(1.5)}, {1, slotOf(1.25)}})), 1 - 1.25);
  EXPECT_EQ(replay_->reads().size(), 2u);
  paths_ = {"m.sheaf:1:5<m.sheaf:4:1", "m.sheaf:1:5<m.sheaf:3:1"};
  EXPECT_EQ(std::get<double>(run({one}, {{0, slotOf(1.5)}, {1, slotOf(1.25)}})), 0.25);
  EXPECT_FALSE(replay_->leftOver());
}

} // namespace
} // namespace sheaf::oracle

// Gradients by the oracle on hand-written Programs: what a tape must carry. Rules are compared with
// differences by tests/gradients.

#include "tests/oracle/program_test.h"

#include "compiler/oracle/Gradient.h"
#include "compiler/oracle/Replay.h"

#include <bit>
#include <cmath>

namespace sheaf::oracle {
namespace {

TensorPtr weightOf(std::vector<int64_t> shape, std::vector<double> data) {
  ops::RefTensor t;
  t.shape = std::move(shape);
  t.data = std::move(data);
  return std::make_shared<const ops::RefTensor>(std::move(t));
}

class GradientTest : public ProgramTest {
protected:
  double run(std::vector<Value> args, double weight = 1, OracleOptions options = {}) {
    GradientOracle oracle(*program_, Precision::F64, options);
    oracle.setWeights(weights_);
    return oracle.addGradients("loss", std::move(args), 7, 0, weight, gradients_);
  }

  ParamGradients gradients_;
};

using Elements = std::vector<double>;

TEST_F(GradientTest, GradientsOfRunsAreAdded) {
  parse(R"(
    sheaf.param @w : tensor<f32> init("ones", [])
    func.func @loss(%x: f64) -> tensor<f32> {
      %w = sheaf.param_ref @w : tensor<f32>
      %a = sheaf.apply "scalar"(%x) {} : (f64) -> tensor<f32>
      %y = sheaf.apply "mul"(%w, %a) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %z = sheaf.apply "mul"(%y, %w) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %z : tensor<f32>
    })");
  weights_["w"] = weightOf({}, {3});
  EXPECT_EQ(run({2.0}), 18);
  EXPECT_EQ(gradients_["w"].elements, Elements{12});
  run({1.0}, 0.5);
  EXPECT_EQ(gradients_["w"].elements, Elements{15});
  EXPECT_FALSE(gradients_["w"].isSparse);
}

/// f(n, x) = n == 0 ? x : f(n - 1, x) * w, through as many open calls.
TEST_F(GradientTest, ManyOpenCalls) {
  parse(R"(
    sheaf.param @w : tensor<f32> init("ones", [])
    func.func @power(%n: i64) -> tensor<f32> {
      %w = sheaf.param_ref @w : tensor<f32>
      %one = arith.constant 1 : i64
      %done = arith.cmpi eq, %n, %one : i64
      %r = scf.if %done -> (tensor<f32>) {
        scf.yield %w : tensor<f32>
      } else {
        %m = arith.subi %n, %one : i64
        %p = func.call @power(%m) : (i64) -> tensor<f32>
        %q = sheaf.apply "mul"(%p, %w) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
        scf.yield %q : tensor<f32>
      }
      return %r : tensor<f32>
    }
    func.func @loss(%n: i64) -> tensor<f32> {
      %r = func.call @power(%n) : (i64) -> tensor<f32>
      return %r : tensor<f32>
    })");
  weights_["w"] = weightOf({}, {1 + 5e-7});
  EXPECT_NEAR(run({int64_t(200'000)}), std::exp(0.1), 1e-6);
  EXPECT_NEAR(gradients_["w"].elements.at(0) / (2e5 * std::exp(0.1)), 1, 1e-6);
}

TEST_F(GradientTest, ListsAndReads) {
  parse(R"(
    sheaf.param @w : tensor<2xf32> init("ones", [])
    func.func @loss(%xs: !sheaf.list<tensor<2xf32>>) -> tensor<f32> {
      %w = sheaf.param_ref @w : tensor<2xf32>
      %init = sheaf.apply "full"() {value = 0.0 : f64} : () -> tensor<2xf32>
      %ys = sheaf.scan %init, %xs : (tensor<2xf32>, !sheaf.list<tensor<2xf32>>) -> !sheaf.list<tensor<2xf32>> {
      ^bb0(%acc: tensor<2xf32>, %x: tensor<2xf32>):
        %p = sheaf.apply "mul"(%w, %x) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        %s = sheaf.apply "add"(%acc, %p) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        sheaf.yield %s : tensor<2xf32>
      }
      %r = sheaf.reverse %ys : !sheaf.list<tensor<2xf32>>
      %zero = arith.constant 0 : i64
      %last = sheaf.list_get %r[%zero] : (!sheaf.list<tensor<2xf32>>) -> tensor<2xf32>
      %d = sheaf.apply "matmul"(%last, %w) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
      %c = sheaf.read %d : (tensor<f32>) -> f64
      %k = sheaf.apply "scalar"(%c) {} : (f64) -> tensor<f32>
      %loss = sheaf.apply "mul"(%d, %k) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    })");
  weights_["w"] = weightOf({2}, {2, 3});
  // d = sum of x * w * w over both; what is read is constant.
  Value xs = makeList({Value(weightOf({2}, {1, 0})), Value(weightOf({2}, {4, 1}))});
  double d = 5 * 4 + 1 * 9;
  EXPECT_EQ(run({xs}), d * d);
  EXPECT_EQ(gradients_["w"].elements, (Elements{d * 2 * 5 * 2, d * 2 * 1 * 3}));
  gradients_.clear();
  Replay replay(readPaths(), 1e-5);
  replay.expect(std::vector<rt::LoggedRead>{{0, std::bit_cast<rt::Slot>(1.0)}});
  OracleOptions options;
  options.replay = &replay;
  EXPECT_EQ(run({xs}, 1, options), d);
  EXPECT_EQ(gradients_["w"].elements, (Elements{20, 6}));
}

TEST_F(GradientTest, RowsOfTables) {
  parse(R"(
    sheaf.param @table : tensor<4x2xf32> init("ones", [])
    sheaf.param @other : tensor<2xf32> init("ones", [])
    func.func @loss(%i: i64, %k: tensor<2xi32>) -> tensor<f32> {
      %t = sheaf.param_ref @table : tensor<4x2xf32>
      %row = sheaf.apply "index"(%t, %i) {} : (tensor<4x2xf32>, i64) -> tensor<2xf32>
      %some = sheaf.apply "index"(%t, %k) {} : (tensor<4x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
      %p = sheaf.apply "mul"(%some, %row) {} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
      %s = sheaf.apply "sum"(%p) {keepdims = 0 : i64} : (tensor<2x2xf32>) -> tensor<f32>
      return %s : tensor<f32>
    })");
  weights_["table"] = weightOf({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  weights_["other"] = weightOf({2}, {0, 0});
  ops::RefTensor k;
  k.dtype = ops::DType::I32;
  k.shape = {2};
  k.data = {3, 3};
  EXPECT_EQ(run({int64_t(1), makeTensor(k)}), 2 * (3 * 7 + 4 * 8));
  EXPECT_EQ(gradients_["table"].elements, (Elements{0, 0, 14, 16, 0, 0, 6, 8}));
  EXPECT_TRUE(gradients_["table"].isSparse);
  EXPECT_EQ(gradients_["table"].parts, (std::set<int64_t>{1, 3}));
  EXPECT_TRUE(gradients_["other"].elements.empty());
}

TEST_F(GradientTest, AnInstanceThatFailsAddsNothing) {
  parse(R"(
    sheaf.param @w : tensor<f32> init("ones", [])
    func.func @loss(%x: i1) -> tensor<f32> {
      %w = sheaf.param_ref @w : tensor<f32>
      %y = sheaf.apply "mul"(%w, %w) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      sheaf.check %x, "no"
      return %y : tensor<f32>
    })");
  weights_["w"] = weightOf({}, {3});
  EXPECT_THROW(run({false}), RunError);
  EXPECT_TRUE(gradients_["w"].elements.empty());
  run({true});
  EXPECT_EQ(gradients_["w"].elements, Elements{6});
}

} // namespace
} // namespace sheaf::oracle

// The oracle on hand-written Programs.

#include "tests/oracle/program_test.h"

#include "compiler/oracle/Compare.h"
#include "tests/deep.h"

#include <cmath>

namespace sheaf::oracle {
namespace {

Value tensorOf(std::vector<int64_t> shape, std::vector<double> data,
               ops::DType dtype = ops::DType::F32) {
  ops::RefTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.data = std::move(data);
  return makeTensor(std::move(t));
}

Value vec(std::vector<double> data) {
  int64_t n = static_cast<int64_t>(data.size());
  return tensorOf({n}, std::move(data));
}

class OracleTest : public ProgramTest {
protected:
  std::vector<Value> runAll(std::vector<Value> args, Precision precision = Precision::F64,
                            OracleOptions options = {}) {
    Oracle oracle(*program_, weights_, precision, options);
    return oracle.run("main", std::move(args), 7);
  }

  Value run(std::vector<Value> args, Precision precision = Precision::F64,
            OracleOptions options = {}) {
    return runAll(std::move(args), precision, options).at(0);
  }

  std::string errorOf(std::vector<Value> args, OracleOptions options = {}) {
    try {
      runAll(std::move(args), Precision::F64, options);
    } catch (const RunError &error) {
      return error.what();
    }
    return "no error";
  }

  void weight(const std::string &name, const Value &value) {
    weights_[name] = std::get<TensorPtr>(value);
  }
};

#define EXPECT_AGREES(expected, actual)                                                            \
  do {                                                                                             \
    Comparison c = compare(expected, actual);                                                      \
    EXPECT_TRUE(c.ok) << c.message;                                                                \
  } while (false)

TEST_F(OracleTest, OperatorsAndParameters) {
  parse(R"(
    sheaf.param @w : tensor<2x3xf32> init("glorot", [])
    sheaf.param @b : tensor<3xf32> init("zeros", [])
    func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
      %w = sheaf.param_ref @w : tensor<2x3xf32>
      %b = sheaf.param_ref @b : tensor<3xf32>
      %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<2xf32>, tensor<2x3xf32>) -> tensor<3xf32>
      %s = sheaf.apply "add"(%p, %b) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      return %s : tensor<3xf32>
    })");
  weight("w", tensorOf({2, 3}, {1, 2, 3, 4, 5, 6}));
  weight("b", vec({0.5, 0, -1}));
  EXPECT_AGREES(vec({9.5, 12, 14}), run({vec({1, 2})}));
}

TEST_F(OracleTest, StoppedGradientsCanBeHeld) {
  parse(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %s = sheaf.apply "stop_gradient"(%x) {} : (tensor<2xf32>) -> tensor<2xf32>
      %p = sheaf.apply "mul"(%x, %s) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %t = sheaf.apply "stop_gradient"(%p) {} : (tensor<2xf32>) -> tensor<2xf32>
      %y = sheaf.apply "add"(%s, %t) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  std::vector<TensorPtr> told;
  OracleOptions options;
  options.onStopGradient = [&](TensorPtr x) {
    told.push_back(x);
    return told.size() == 1 ? std::get<TensorPtr>(Value(vec({10, 20}))) : x;
  };
  EXPECT_AGREES(vec({20, 60}), run({vec({1, 2})}, Precision::F64, options));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0]->data, (std::vector<double>{1, 2}));
  EXPECT_EQ(told[1]->data, (std::vector<double>{10, 40}));
}

TEST_F(OracleTest, WeightsAreChecked) {
  parse(R"(sheaf.param @w : tensor<2x3xf32> init("glorot", []))");
  auto message = [&] {
    try {
      Oracle oracle(*program_, weights_, Precision::F64);
    } catch (const UserError &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(), "no weight is given for parameter 'w'");
  weight("w", vec({1}));
  EXPECT_EQ(message(), "the weight for parameter 'w' has extents [1], not [2, 3]");
}

TEST_F(OracleTest, Precision) {
  parse(R"(
    func.func @main(%x: tensor<1xf32>, %y: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xbf16>) {
      %s = sheaf.apply "add"(%x, %y) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %h = sheaf.apply "bf16"(%s) {} : (tensor<1xf32>) -> tensor<1xbf16>
      return %s, %h : tensor<1xf32>, tensor<1xbf16>
    })");
  std::vector<Value> args = {vec({1}), vec({std::ldexp(1, -30)})};
  EXPECT_EQ(tensor(runAll(args, Precision::F64)[0]).data[0], 1 + std::ldexp(1, -30));
  EXPECT_EQ(tensor(runAll(args, Precision::F32)[0]).data[0], 1);
  args = {vec({1}), vec({std::ldexp(1, -9)})};
  EXPECT_EQ(tensor(runAll(args, Precision::F32)[1]).data[0], 1 + std::ldexp(1, -9));
  EXPECT_EQ(tensor(runAll(args, Precision::Bf16)[1]).data[0], 1);
}

const char *kTree = R"(
    sheaf.data @Tree [#sheaf.ctor<"Leaf", ["x"], [tensor<2xf32>]>,
                      #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Tree>, !sheaf.data<@Tree>]>]
    func.func @sum(%t: !sheaf.data<@Tree>) -> tensor<2xf32> {
      %s = sheaf.match %t [0, 1] : (!sheaf.data<@Tree>) -> tensor<2xf32> {
      ^bb0(%x: tensor<2xf32>):
        sheaf.yield %x : tensor<2xf32>
      }, {
      ^bb0(%l: !sheaf.data<@Tree>, %r: !sheaf.data<@Tree>):
        %a = func.call @sum(%l) : (!sheaf.data<@Tree>) -> tensor<2xf32>
        %b = func.call @sum(%r) : (!sheaf.data<@Tree>) -> tensor<2xf32>
        %c = sheaf.apply "add"(%a, %b) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        sheaf.yield %c : tensor<2xf32>
      }
      return %s : tensor<2xf32>
    }
    func.func @main(%t: !sheaf.data<@Tree>) -> tensor<2xf32> {
      %s = func.call @sum(%t) : (!sheaf.data<@Tree>) -> tensor<2xf32>
      return %s : tensor<2xf32>
    })";

Value leaf(double x) { return makeData(0, {vec({x, 2 * x})}); }

TEST_F(OracleTest, RecursionOverData) {
  parse(kTree);
  Value tree = makeData(1, {makeData(1, {leaf(1), leaf(2)}), leaf(4)});
  EXPECT_AGREES(vec({7, 14}), run({tree}));
  EXPECT_AGREES(vec({3, 6}), run({leaf(3)}));
}

TEST_F(OracleTest, AMillionOpenCalls) {
  parse(kTree);
  Value tree = leaf(0), one = leaf(1);
  for (int i = 0; i < kDeep; ++i)
    tree = makeData(1, {one, tree});
  EXPECT_AGREES(vec({1.0 * kDeep, 2.0 * kDeep}), run({tree}));
}

TEST_F(OracleTest, DepthLimit) {
  parse(kTree);
  Value tree = leaf(0);
  for (int i = 0; i < 100; ++i)
    tree = makeData(1, {tree, tree});
  EXPECT_EQ(errorOf({tree}, {.maxDepth = 50}).substr(0, 61),
            "instance 7: test.sheaf:10:14: the recursion is deeper than 50");
}

TEST_F(OracleTest, TailCallsTakeNoStack) {
  parse(R"(
    func.func @loop(%n: i64, %sum: i64) -> i64 {
      %zero = arith.constant 0 : i64
      %done = arith.cmpi eq, %n, %zero : i64
      %r = scf.if %done -> (i64) {
        scf.yield %sum : i64
      } else {
        %one = arith.constant 1 : i64
        %m = arith.subi %n, %one : i64
        %s = arith.addi %sum, %n : i64
        %r1 = func.call @loop(%m, %s) : (i64, i64) -> i64
        scf.yield %r1 : i64
      }
      return %r : i64
    }
    func.func @main(%n: i64) -> i64 {
      %zero = arith.constant 0 : i64
      %r = func.call @loop(%n, %zero) : (i64, i64) -> i64
      return %r : i64
    })");
  EXPECT_EQ(std::get<int64_t>(run({int64_t(100'000)}, Precision::F64, {.maxDepth = 3})),
            int64_t(100'000) * 100'001 / 2);
}

TEST_F(OracleTest, MutualRecursion) {
  parse(R"(
    func.func @even(%n: i64) -> i1 {
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %yes = arith.constant true
      %done = arith.cmpi eq, %n, %zero : i64
      %r = scf.if %done -> (i1) {
        scf.yield %yes : i1
      } else {
        %m = arith.subi %n, %one : i64
        %o = func.call @odd(%m) : (i64) -> i1
        scf.yield %o : i1
      }
      return %r : i1
    }
    func.func @odd(%n: i64) -> i1 {
      %e = func.call @even(%n) : (i64) -> i1
      %yes = arith.constant true
      %o = arith.xori %e, %yes : i1
      return %o : i1
    }
    func.func @main(%n: i64) -> i1 {
      %r = func.call @even(%n) : (i64) -> i1
      return %r : i1
    })");
  // even(n) = n == 0 or not even(n - 1)
  EXPECT_EQ(std::get<bool>(run({int64_t(10)})), true);
  EXPECT_EQ(std::get<bool>(run({int64_t(7)})), false);
}

TEST_F(OracleTest, Loops) {
  parse(R"(
    func.func @main(%xs: !sheaf.list<i64>, %k: i64)
        -> (!sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>) {
      %one = arith.constant 1 : i64
      %m = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%x: i64):
        %y = arith.muli %x, %k : i64
        sheaf.yield %y : i64
      }
      %f = sheaf.filter %m : (!sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%x: i64):
        %big = arith.cmpi sgt, %x, %k : i64
        sheaf.yield %big : i1
      }
      %s = sheaf.fold %one, %f : (i64, !sheaf.list<i64>) -> i64 {
      ^bb0(%acc: i64, %x: i64):
        %a = arith.muli %acc, %x : i64
        sheaf.yield %a : i64
      }
      %c = sheaf.scan %one, %xs : (i64, !sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%acc: i64, %x: i64):
        %inner = sheaf.range %acc, %x : !sheaf.list<i64>
        %n = sheaf.len %inner : !sheaf.list<i64>
        %a = arith.addi %acc, %n : i64
        sheaf.yield %a : i64
      }
      return %m, %f, %s, %c : !sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>
    })");
  auto list = [](std::vector<int64_t> v) { return makeList({v.begin(), v.end()}); };
  auto results = runAll({list({1, 2, 3, 4}), int64_t(3)});
  EXPECT_AGREES(list({3, 6, 9, 12}), results[0]);
  EXPECT_AGREES(list({6, 9, 12}), results[1]);
  EXPECT_EQ(std::get<int64_t>(results[2]), 6 * 9 * 12);
  EXPECT_AGREES(list({1, 2, 3, 4}), results[3]);
  results = runAll({list({}), int64_t(3)});
  EXPECT_AGREES(list({}), results[0]);
  EXPECT_EQ(std::get<int64_t>(results[2]), 1);
  EXPECT_AGREES(list({}), results[3]);
}

TEST_F(OracleTest, Lists) {
  parse(R"(
    func.func @main(%a: i64, %b: i64, %xs: !sheaf.list<i64>)
        -> tuple<!sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>> {
      %l = sheaf.list(%a, %b) : (i64, i64) -> !sheaf.list<i64>
      %c = sheaf.cons %b, %l : i64, !sheaf.list<i64>
      %d = sheaf.append %c, %a : !sheaf.list<i64>, i64
      %e = sheaf.list_concat %d, %xs : !sheaf.list<i64>
      %one = arith.constant 1 : i64
      %g = sheaf.list_get %e[%one] : (!sheaf.list<i64>) -> i64
      %n = sheaf.len %e : !sheaf.list<i64>
      %t = sheaf.list_slice %e[%one, %n] : !sheaf.list<i64>
      %r = sheaf.reverse %t : !sheaf.list<i64>
      %z = sheaf.zip(%t, %r) : (!sheaf.list<i64>, !sheaf.list<i64>) -> !sheaf.list<tuple<i64, i64>>
      %all = sheaf.tuple(%e, %t, %g, %r, %z) : (!sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>) -> tuple<!sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>>
      return %all : tuple<!sheaf.list<i64>, !sheaf.list<i64>, i64, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>>
    })");
  auto list = [](std::vector<int64_t> v) { return makeList({v.begin(), v.end()}); };
  auto pair = [](int64_t a, int64_t b) { return makeTuple({a, b}); };
  Value expected =
      makeTuple({list({2, 1, 2, 1, 9}), list({1, 2, 1, 9}), int64_t(1), list({9, 1, 2, 1}),
                 makeList({pair(1, 9), pair(2, 1), pair(1, 2), pair(9, 1)})});
  EXPECT_AGREES(expected, run({int64_t(1), int64_t(2), list({9})}));
}

TEST_F(OracleTest, RunErrors) {
  parse(R"(
    func.func @main(%which: i64, %xs: !sheaf.list<i64>, %x: tensor<?xf32>, %y: tensor<?xf32>) -> i64 {
      %0 = arith.constant 0 : i64
      %1 = arith.constant 1 : i64
      %2 = arith.constant 2 : i64
      %3 = arith.constant 3 : i64
      %4 = arith.constant 4 : i64
      %5 = arith.constant 5 : i64
      %is0 = arith.cmpi eq, %which, %0 : i64
      scf.if %is0 {
        %r = sheaf.list_get %xs[%5] : (!sheaf.list<i64>) -> i64
      }
      %is1 = arith.cmpi eq, %which, %1 : i64
      scf.if %is1 {
        %r = sheaf.list_slice %xs[%2, %1] : !sheaf.list<i64>
      }
      %is2 = arith.cmpi eq, %which, %2 : i64
      scf.if %is2 {
        %r = sheaf.rem %1, %0
      }
      %is3 = arith.cmpi eq, %which, %3 : i64
      scf.if %is3 {
        sheaf.check %is2, "n == m does not hold"
      }
      %is4 = arith.cmpi eq, %which, %4 : i64
      scf.if %is4 {
        %r = sheaf.apply "add"(%x, %y) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      }
      %is5 = arith.cmpi eq, %which, %5 : i64
      scf.if %is5 {
        %r = sheaf.apply "index"(%x, %5) {} : (tensor<?xf32>, i64) -> tensor<f32>
      }
      return %0 : i64
    })");
  auto error = [&](int64_t which) {
    std::string text = errorOf({which, makeList({int64_t(1)}), vec({1, 2}), vec({1, 2, 3})});
    size_t at = text.find(": ", text.find("test.sheaf"));
    return at == std::string::npos ? text : text.substr(at + 2);
  };
  EXPECT_EQ(error(0), "index 5 is out of range for a list of 1");
  EXPECT_EQ(error(1), "slice 2:1 is out of range for a list of 1");
  EXPECT_EQ(error(2), "division by zero");
  EXPECT_EQ(error(3), "n == m does not hold");
  EXPECT_EQ(error(4), "cannot add f32[2] and f32[3]: the extents of axis 0 differ (2, 3)");
  EXPECT_EQ(error(5), "index 5 is out of range for an extent of 2");
  EXPECT_EQ(error(6), "no error");
}

TEST_F(OracleTest, PerInstanceDims) {
  parse(R"(
    func.func @main(%x: tensor<?x2xf32>, %n: i64) -> (tensor<?xf32>, tensor<?x?xf32>, i64, tensor<?x2xf32>) {
      %s = sheaf.apply "sum"(%x) {axis = 1, keepdims = 0} : (tensor<?x2xf32>) -> tensor<?xf32>
      %z = sheaf.apply "full"(%n, %n) {value = 1.5} : (i64, i64) -> tensor<?x?xf32>
      %d = sheaf.dim %x, 0 : tensor<?x2xf32>
      %rows = sheaf.rows %x : (tensor<?x2xf32>) -> !sheaf.list<tensor<2xf32>>
      %back = sheaf.reverse %rows : !sheaf.list<tensor<2xf32>>
      %t = sheaf.apply "stack"(%back) {axis = 0} : (!sheaf.list<tensor<2xf32>>) -> tensor<?x2xf32>
      return %s, %z, %d, %t : tensor<?xf32>, tensor<?x?xf32>, i64, tensor<?x2xf32>
    })");
  auto results = runAll({tensorOf({3, 2}, {1, 2, 3, 4, 5, 6}), int64_t(2)});
  EXPECT_AGREES(vec({3, 7, 11}), results[0]);
  EXPECT_AGREES(tensorOf({2, 2}, {1.5, 1.5, 1.5, 1.5}), results[1]);
  EXPECT_EQ(std::get<int64_t>(results[2]), 3);
  EXPECT_AGREES(tensorOf({3, 2}, {5, 6, 3, 4, 1, 2}), results[3]);
  results = runAll({tensorOf({0, 2}, {}), int64_t(0)});
  EXPECT_AGREES(vec({}), results[0]);
  EXPECT_AGREES(tensorOf({0, 2}, {}), results[3]);
}

TEST_F(OracleTest, TokensAndScalars) {
  parse(R"(
    sheaf.param @table : tensor<3x2xf32> init("zeros", [])
    func.func @main(%t: !sheaf.token<"">, %ts: tensor<?xi32, "">, %x: f64)
        -> (tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>, f64, i64) {
      %table = sheaf.param_ref @table : tensor<3x2xf32>
      %a = sheaf.apply "embedding"(%table, %t) {} : (tensor<3x2xf32>, !sheaf.token<"">) -> tensor<2xf32>
      %b = sheaf.apply "embedding"(%table, %ts) {} : (tensor<3x2xf32>, tensor<?xi32, "">) -> tensor<?x2xf32>
      %s = sheaf.apply "scalar"(%x) {} : (f64) -> tensor<f32>
      %c = sheaf.apply "mul"(%a, %s) {} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %n = sheaf.convert %t : !sheaf.token<""> to i64
      %f = sheaf.convert %n : i64 to f64
      %g = arith.addf %f, %x : f64
      %i = sheaf.convert %g : f64 to i64
      return %a, %b, %c, %g, %i : tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>, f64, i64
    })");
  weight("table", tensorOf({3, 2}, {0, 1, 10, 11, 20, 21}));
  auto results = runAll({int64_t(2), tensorOf({2}, {1, 0}, ops::DType::I32), -0.5});
  EXPECT_AGREES(vec({20, 21}), results[0]);
  EXPECT_AGREES(tensorOf({2, 2}, {10, 11, 0, 1}), results[1]);
  EXPECT_AGREES(vec({-10, -10.5}), results[2]);
  EXPECT_EQ(std::get<double>(results[3]), 1.5);
  EXPECT_EQ(std::get<int64_t>(results[4]), 1);
  EXPECT_EQ(errorOf({int64_t(3), tensorOf({0}, {}, ops::DType::I32), 1.0}),
            "instance 7: test.sheaf:6:12: index 3 is out of range for an extent of 3");
}

TEST_F(OracleTest, TuplesAndMatchDefault) {
  parse(R"(
    sheaf.data @D [#sheaf.ctor<"A", ["n"], [i64]>, #sheaf.ctor<"B", [], []>, #sheaf.ctor<"C", [], []>]
    func.func @main(%d: !sheaf.data<@D>) -> i64 {
      %r:2 = sheaf.match %d [1, 0] : (!sheaf.data<@D>) -> (i64, i64) {
        %x = arith.constant 10 : i64
        sheaf.yield %x, %x : i64, i64
      }, {
      ^bb0(%n: i64):
        %c = arith.constant 5 : i64
        %e = sheaf.construct 0(%c) : (i64) -> !sheaf.data<@D>
        %m = func.call @main(%e) : (!sheaf.data<@D>) -> i64
        sheaf.yield %n, %m : i64, i64
      }, {
        %x = arith.constant -1 : i64
        sheaf.yield %x, %x : i64, i64
      }
      %t = sheaf.tuple(%r#0, %r#1) : (i64, i64) -> tuple<i64, i64>
      %f = sheaf.get %t[0] : (tuple<i64, i64>) -> i64
      return %f : i64
    })");
  EXPECT_EQ(std::get<int64_t>(run({makeData(1, {})})), 10);
  EXPECT_EQ(std::get<int64_t>(run({makeData(2, {})})), -1);
  // Constructor 0 recurses for ever.
  EXPECT_NE(errorOf({makeData(0, {int64_t(3)})}, {.maxDepth = 1000}), "no error");
}

TEST_F(OracleTest, TooMuchIsAnError) {
  parse(R"(
    func.func @main(%n: i64) -> tensor<?xf32> {
      %0 = arith.constant 0 : i64
      %neg = arith.cmpi slt, %n, %0 : i64
      scf.if %neg {
        %l = sheaf.range %n, %0 : !sheaf.list<i64>
      }
      %z = sheaf.apply "zeros"(%n) {} : (i64) -> tensor<?xf32>
      return %z : tensor<?xf32>
    })");
  EXPECT_EQ(errorOf({int64_t(1) << 60}),
            "instance 7: test.sheaf:8:12: f32[1152921504606846976] is too large");
  EXPECT_EQ(errorOf({-(int64_t(1) << 60)}),
            "instance 7: test.sheaf:6:14: a range from -1152921504606846976 to 0 is too long");
  EXPECT_EQ(errorOf({int64_t(-1)}),
            "instance 7: test.sheaf:8:12: cannot make f32[-1] with 'zeros': an extent is -1");
}

/// Values that stay alive across loops and calls keep their slots.
TEST_F(OracleTest, ValuesLiveAsLongAsTheyAreUsed) {
  parse(R"(
    func.func @twice(%x: i64) -> i64 {
      %y = arith.addi %x, %x : i64
      return %y : i64
    }
    func.func @main(%a: i64, %xs: !sheaf.list<i64>) -> i64 {
      %b = arith.addi %a, %a : i64
      %m = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%x: i64):
        %unused = arith.muli %x, %x : i64
        %c = arith.addi %x, %b : i64
        %d = func.call @twice(%c) : (i64) -> i64
        %inner = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
        ^bb0(%y: i64):
          %e = arith.addi %y, %d : i64
          %f = func.call @twice(%e) : (i64) -> i64
          sheaf.yield %f : i64
        }
        %s = sheaf.fold %c, %inner : (i64, !sheaf.list<i64>) -> i64 {
        ^bb0(%acc: i64, %y: i64):
          %g = arith.addi %acc, %y : i64
          sheaf.yield %g : i64
        }
        sheaf.yield %s : i64
      }
      %t = sheaf.fold %a, %m : (i64, !sheaf.list<i64>) -> i64 {
      ^bb0(%acc: i64, %y: i64):
        %g = arith.addi %acc, %y : i64
        sheaf.yield %g : i64
      }
      return %t : i64
    })");
  auto list = makeList({int64_t(1), int64_t(2), int64_t(3)});
  int64_t a = 5, expected = a;
  for (int64_t x : {1, 2, 3}) {
    int64_t c = x + 2 * a, d = 2 * c;
    expected += c;
    for (int64_t y : {1, 2, 3})
      expected += 2 * (y + d);
  }
  EXPECT_EQ(std::get<int64_t>(run({a, list})), expected);
}

} // namespace
} // namespace sheaf::oracle

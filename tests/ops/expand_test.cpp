// Expansions: an operator and what it expands into mean the same, for static and for per-instance
// extents, and every chain of expansions ends in operators that kernels or the host know.

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"
#include "compiler/ops/Verify.h"
#include "compiler/oracle/Compare.h"
#include "compiler/oracle/Oracle.h"
#include "tests/ops/types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sheaf::ops::test {
namespace {

using oracle::Value;

class ExpandTest : public testing::Test {
protected:
  ExpandTest() {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  /// A function that applies `op` to arguments of these types; with `dynamic`, all extents of the
  /// tensors are `?`. `dims` are the constants of an Extents parameter.
  void build(llvm::StringRef op, const std::vector<std::string> &operands, CallArgs args,
             bool dynamic) {
    mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
    module_ = mlir::ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module_->getBody());
    mlir::SmallVector<mlir::Type> types;
    for (const std::string &text : operands)
      types.push_back(mlirType(type(text), dynamic));
    auto function = mlir::func::FuncOp::create(b, "main", b.getFunctionType(types, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    auto results = apply(b, op, function.getArguments(), args);
    mlir::func::ReturnOp::create(b, results);
    function.setType(b.getFunctionType(types, mlir::ValueRange(results).getTypes()));
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  }

  mlir::Type mlirType(const OperandType &operand, bool dynamic) {
    mlir::Builder b(&context_);
    if (const HostKind *host = operand.host())
      return *host == HostKind::Int     ? mlir::Type(b.getI64Type())
             : *host == HostKind::Float ? mlir::Type(b.getF64Type())
             : *host == HostKind::Bool  ? mlir::Type(b.getI1Type())
                                        : mlir::Type(ir::TokenType::get(&context_, ""));
    TensorType tensor = *operand.tensor();
    if (dynamic)
      for (Dim &dim : tensor.dims)
        dim = Dim::fresh();
    return tensorType(&context_, tensor);
  }

  void expandAll() {
    std::set<std::string> seen;
    for (int round = 0;; ++round) {
      ASSERT_LT(round, 10) << "the chain of expansions does not end";
      std::vector<ir::ApplyOp> work;
      module_->walk([&](ir::ApplyOp op) {
        if (std::holds_alternative<Expand>(OpTable::get().find(op.getOp())->batch))
          work.push_back(op);
      });
      if (work.empty())
        break;
      for (ir::ApplyOp op : work) {
        mlir::ImplicitLocOpBuilder b(op.getLoc(), op);
        auto values = std::get<Expand>(OpTable::get().find(op.getOp())->batch).rewrite(b, op);
        ASSERT_EQ(values.size(), op->getNumResults());
        for (auto [value, result] : llvm::zip(values, op->getResults()))
          ASSERT_EQ(value.getType(), result.getType());
        op->replaceAllUsesWith(values);
        op.erase();
      }
      ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
    }
  }

  Value randomValue(const OperandType &operand, int64_t limit) {
    auto number = [&](bool isFloat) {
      return isFloat ? std::uniform_real_distribution<>(-2, 2)(random_)
                     : static_cast<double>(random_() % static_cast<uint64_t>(limit));
    };
    if (const HostKind *host = operand.host()) {
      if (*host == HostKind::Float)
        return number(true);
      return static_cast<int64_t>(number(false));
    }
    RefTensor t;
    t.dtype = operand.tensor()->dtype;
    for (const Dim &dim : operand.tensor()->dims)
      t.shape.push_back(dim.constant());
    for (int64_t i = 0; i < t.size(); ++i)
      t.data.push_back(number(isFloat(t.dtype)));
    return oracle::makeTensor(t);
  }

  std::vector<Value> run(const std::vector<Value> &args) {
    return oracle::Oracle(*module_, {}, oracle::Precision::F64).run("main", args);
  }

  /// Checks one call; ints are drawn below `limit`.
  void check(llvm::StringRef op, const std::vector<std::string> &operands, CallArgs args = {},
             int64_t limit = 3, const std::vector<bool> &dynamics = {false, true}) {
    for (bool dynamic : dynamics) {
      SCOPED_TRACE(op.str() + (dynamic ? " dynamic" : " static"));
      std::vector<Value> values;
      for (const std::string &operand : operands)
        values.push_back(randomValue(type(operand), limit));
      build(op, operands, args, dynamic);
      std::vector<Value> expected = run(values);
      expandAll();
      std::vector<Value> actual = run(values);
      ASSERT_EQ(expected.size(), actual.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        auto comparison = oracle::compare(expected[i], actual[i], 1e-12);
        EXPECT_TRUE(comparison.ok) << comparison.message;
      }
    }
    covered_.insert(op.str());
  }

  Extent extent(int64_t n) { return mlir::Builder(&context_).getI64IntegerAttr(n); }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::mt19937 random_{17};
  std::set<std::string> covered_;
};

TEST_F(ExpandTest, ExpansionsKeepTheMeaning) {
  using I = int64_t;
  for (const char *op : {"sum", "max", "min", "mean", "logsumexp", "norm"}) {
    check(op, {"f32[3, 5]"});
    check(op, {"f32[3, 5]"}, {{"axis", I(0)}});
    check(op, {"f32[3, 5]"}, {{"axis", I(-1)}, {"keepdims", I(1)}});
    check(op, {"f32[2, 3, 5]"}, {{"axis", I(1)}});
    check(op, {"bf16[4]"});
    check(op, {"f32"});
  }
  check("sum", {"i32[3, 2]"});
  check("max", {"i32[3, 2]"}, {{"axis", I(1)}}, 1000);
  for (const char *op : {"softmax", "log_softmax"}) {
    check(op, {"f32[5]"});
    check(op, {"f32[3, 5]"});
    check(op, {"f16[3, 5]"}, {{"axis", I(0)}});
  }
  check("layer_norm", {"f32[5]", "f32[5]", "f32[5]"});
  check("layer_norm", {"f32[3, 5]", "f32[5]", "f32[5]"}, {{"eps", 0.1}});
  check("layer_norm", {"bf16[3, 5]", "bf16[5]", "bf16[5]"});
  check("rms_norm", {"f32[2, 3, 5]", "f32[5]"});
  check("cross_entropy", {"f32[5]", "int"});
  check("cross_entropy", {"f32[5]", "token"});
  check("cross_entropy", {"f32[4, 3]", "i32[4]"});
  check("cross_entropy", {"f32[4, 3]", "i64[4]"}, {}, 9);
  check("cross_entropy", {"f32[3]", "token[]"});
  check("cross_entropy", {"bf16[2, 2, 3]", "i32[2, 2]"});
  check("cross_entropy", {"f32[4, 3]", "i32[4]"}, {{"label_smoothing", 0.2}});
  check("weighted_cross_entropy", {"f32[5]", "int", "f32[5]"}, {{"label_smoothing", 0.1}});
  check("weighted_cross_entropy", {"bf16[4, 3]", "i64[4]", "bf16[3]"}, {}, 9);
  check("log_prob", {"f32[5]", "int"});
  check("log_prob", {"f32[4, 3]", "i32[4]"});
  check("stop_gradient", {"bf16[2, 3]"});
  check("leaky_relu", {"f32[6]"});
  check("leaky_relu", {"f16[6]"}, {{"slope", 0.25}});
  check("masked_matmul", {"f32[3, 5]", "f32[5, 2]", "bool[3, 5]"});
  check("masked_matmul", {"bf16[2, 3, 5]", "bf16[5, 2]", "bool[5]"});
  check("masked_matmul", {"f32[1, 5]", "f32[2, 5, 4]", "bool[3, 1]"});
  check("attention", {"f32[3, 4]", "f32[5, 4]", "f32[5, 2]"});
  check("attention", {"f32[4]", "f32[5, 4]", "f32[5, 2]"}, {{"scale", 2.0}});
  check("attention", {"bf16[2, 3, 4]", "bf16[2, 3, 4]", "bf16[2, 3, 4]"}, {{"causal", I(1)}});
  check("attention", {"f32[2, 3, 4]", "f32[1, 6, 4]", "f32[6, 4]"}, {{"causal", I(1)}});
  check("attention", {"f32[4, 3]", "f32[2, 3]", "f32[2, 3]"}, {{"causal", I(1)}});
  check("attention", {"f32[2, 3]", "f32[0, 3]", "f32[0, 5]"});
  check("masked_attention", {"f32[3, 4]", "f32[5, 4]", "f32[5, 2]", "f32[5]"});
  check("masked_attention", {"f32[3, 4]", "f32[5, 4]", "f32[5, 2]", "bool[3, 5]"}, {}, 2);
  check("masked_attention", {"f32[3, 4]", "f32[5, 4]", "f32[5, 2]", "bool[3, 1]"}, {}, 2);
  check("masked_attention", {"f16[2, 3, 4]", "f16[2, 3, 4]", "f16[2, 3, 4]", "f16[2, 1, 3]"});
  check("masked_attention", {"f32[4]", "f32[5, 4]", "f32[5, 2]", "bool[5]"}, {}, 2);
  // The last extent of rope's operand is known when the model is compiled.
  check("rope", {"f32[6]"}, {{"start", I(3)}}, 3, {false});
  check("rope", {"f32[2, 3, 4]"}, {{"base", 500.0}}, 3, {false});
  check("rope", {"f16[5, 2]"}, {{"start", extent(-2)}}, 3, {false});
  check("top_k", {"f32[7]"}, {{"k", I(3)}});
  check("top_k", {"i32[4, 5]"}, {{"k", I(5)}});
  check("top_k", {"bf16[4, 5, 2]"}, {{"k", I(2)}, {"axis", I(1)}});
  check("append", {"f32[4, 2]", "f32[2]"});
  check("append", {"i32[3]", "i32"});
  check("argsort", {"bf16[4, 5, 2]"}, {{"axis", I(1)}, {"descending", I(1)}});
  check("top_k_filter", {"f32[3, 7]"}, {{"k", I(2)}});
  check("top_k_filter", {"f32[7]"}, {{"k", extent(3)}});
  check("top_k_filter", {"bf16[3, 2]"}, {{"k", I(2)}});
  check("top_p_filter", {"f32[3, 7]", "f32"});
  check("top_p_filter", {"bf16[7]", "bf16"});
  // The number of taps is known when the model is compiled.
  check("conv1d", {"f32[7, 3]", "f32[3, 3, 2]"}, {{"padding", I(1)}}, 3, {false});
  check("conv1d", {"f32[2, 9, 4]", "f32[2, 2, 6]"},
        {{"stride", I(3)}, {"dilation", I(4)}, {"groups", I(2)}}, 3, {false});
  check("conv1d", {"bf16[5, 4]", "bf16[3, 1, 4]"}, {{"stride", I(2)}, {"groups", I(4)}}, 3,
        {false});
  check("conv1d", {"f32[0, 4]", "f32[2, 4, 3]"}, {{"padding", I(1)}}, 3, {false});
  check("max_pool1d", {"f32[7, 3]"}, {{"size", I(3)}, {"stride", I(2)}, {"padding", I(1)}});
  check("avg_pool1d", {"bf16[2, 7, 3]"}, {{"size", I(3)}});
  check("sort", {"f32[7]"});
  check("sort", {"i32[4, 5]"}, {{"descending", I(1)}});
  check("sort", {"bf16[4, 5, 2]"}, {{"axis", I(1)}});
  check("cumsum", {"f32[7]"});
  check("cumsum", {"i64[3, 4]"}, {{"axis", I(-1)}});
  check("cumsum", {"f32[3, 4, 2]"}, {{"axis", I(1)}});
  check("segment_sum", {"f32[5, 2]", "i32[5]"}, {{"size", I(2)}});
  check("segment_sum", {"i32[5]", "token[5]"}, {{"size", extent(4)}});
  check("segment_sum", {"f32[5, 2, 3]", "i64[5]"}, {{"size", I(3)}});
  check("scatter_add", {"f32[3, 2]", "i32[5]", "f32[5, 2]"});
  check("scatter_add", {"f32[2]", "i32[5]", "f32[5]"});
  check("pad", {"f32[5]"}, {{"before", I(1)}, {"after", I(0)}});
  check("pad", {"i32[3, 4]"},
        {{"before", extent(2)}, {"after", I(1)}, {"axis", I(1)}, {"value", 7.0}});
  check("pad", {"bool[3]"}, {{"before", I(0)}, {"after", I(2)}, {"value", 1.0}}, 2);
  check("tril", {"f32[4, 3]"});
  check("tril", {"i32[2, 3, 4]"}, {{"k", I(-1)}});
  check("triu", {"bool[4, 4]"}, {{"k", I(1)}}, 2);
  check("mse", {"f32[3, 4]", "f32[4]"});
  check("mse", {"f32", "f32"});
  check("huber", {"f32[3, 1]", "f32[4]"});
  check("huber", {"f32[9]", "f32[9]"}, {{"delta", 0.25}});
  check("entropy", {"f32[3, 4]"});
  check("entropy", {"f32[3, 4]"}, {{"axis", I(0)}});
  check("kl_div", {"f32[3, 4]", "f32[3, 4]"}, {{"axis", I(0)}});
  check("kl_div", {"f32[4]", "f32[4]"});
  check("dot", {"f32[4]", "f32[4]"});
  check("outer", {"f32[4]", "f32[3]"});
  check("expand_dims", {"f32[4, 3]"}, {{"axis", I(1)}});
  check("expand_dims", {"f32"}, {{"axis", I(-1)}});
  check("squeeze", {"f32[1, 3]"});
  check("squeeze", {"f32[3, 1]"}, {{"axis", I(-1)}});
  check("index", {"f32[4, 3]", "int"});
  check("index", {"f32[4]", "int"});
  check("index", {"f32[4, 3]", "i32[2, 2]"});
  check("index", {"f32[4]", "token[3]"});
  check("gather", {"bf16[4, 3]", "i64[2]"});
  check("gather", {"f32[0, 3]", "i32[2]"});
  check("gather", {"token[4]", "i32[2]"});
  check("embedding", {"f32[4, 3]", "token"});
  check("embedding", {"f32[4, 3]", "token[5]"});
  check("element", {"f32[4, 3]", "int"}, {{"axis", I(1)}});
  check("element", {"f32[4, 3, 2]", "token"});
  check("slice", {"f32[5, 3]"}, {{"start", I(1)}, {"size", I(3)}});
  check("slice", {"f32[5, 3]"}, {{"start", extent(2)}, {"size", extent(1)}, {"axis", I(1)}});
  check("zeros", {}, {{"dims", std::vector<Extent>{extent(2), extent(3)}}});
  check("ones", {}, {{"dims", std::vector<Extent>{}}});
  check("one_hot", {"int"}, {{"size", I(4)}});
  check("one_hot", {"i32[3]"}, {{"size", I(4)}}, 6);
  check("one_hot", {"token[2, 2]"}, {{"size", extent(3)}});
  constexpr I anyKey = I(1) << 32;
  for (const char *op : {"random", "random_normal"}) {
    check(op, {"int"}, {{"dims", std::vector<Extent>{}}}, anyKey);
    check(op, {"int"}, {{"dims", std::vector<Extent>{extent(5)}}}, anyKey);
    check(op, {"int"}, {{"dims", std::vector<Extent>{extent(2), extent(3), extent(4)}}}, anyKey);
  }
  check("dropout", {"f32[3, 5]", "int"}, {{"p", 0.3}}, anyKey);
  check("dropout", {"bf16[4]", "int"}, {{"p", 0.9}}, anyKey);
  check("dropout", {"f32", "int"}, {{"p", 0.0}}, anyKey);
  check("sample", {"f32[5]", "int"}, {}, anyKey);
  check("sample", {"f16[2, 3, 5]", "int"}, {}, anyKey);

  for (const Op &op : OpTable::get().all())
    if (std::holds_alternative<Expand>(op.batch))
      EXPECT_TRUE(covered_.contains(op.name)) << op.name << " is not tested";
}

/// Extents that are values: the function's i64 arguments.
TEST_F(ExpandTest, ExtentOperands) {
  auto buildWith = [&](auto make) {
    mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
    module_ = mlir::ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module_->getBody());
    mlir::SmallVector<mlir::Type> types(2, b.getI64Type());
    auto function = mlir::func::FuncOp::create(b, "main", b.getFunctionType(types, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    mlir::Value result = make(b, function.getArgument(0), function.getArgument(1));
    mlir::func::ReturnOp::create(b, result);
    function.setType(b.getFunctionType(types, result.getType()));
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  };
  auto check = [&](int64_t m, int64_t n, std::vector<int64_t> shape) {
    std::vector<Value> args = {m, n};
    Value before = run(args)[0];
    EXPECT_EQ(oracle::tensor(before).shape, shape);
    expandAll();
    auto comparison = oracle::compare(before, run(args)[0]);
    EXPECT_TRUE(comparison.ok) << comparison.message;
  };
  buildWith([](auto &b, mlir::Value m, mlir::Value n) {
    return applyOne(b, "zeros", {}, {{"dims", std::vector<Extent>{m, n}}});
  });
  check(2, 0, {2, 0});
  buildWith([](auto &b, mlir::Value m, mlir::Value n) {
    return applyOne(b, "one_hot", m, {{"size", Extent(n)}});
  });
  check(1, 4, {4});
  buildWith([](auto &b, mlir::Value m, mlir::Value n) {
    mlir::Value x = applyOne(b, "iota", {}, {{"size", Extent(m)}});
    return applyOne(b, "slice", x, {{"start", Extent(n)}, {"size", Extent(n)}});
  });
  check(5, 2, {2});
  buildWith([](auto &b, mlir::Value key, mlir::Value n) {
    return applyOne(b, "random", key, {{"dims", std::vector<Extent>{b.getI64IntegerAttr(3), n}}});
  });
  check(-77, 4, {3, 4});
}

TEST_F(ExpandTest, ChecksOfDynamicPositions) {
  auto sliceWith = [&](Extent start, bool startIsArgument) {
    mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
    module_ = mlir::ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module_->getBody());
    mlir::SmallVector<mlir::Type> types = {mlirType(type("f32[5]"), true), b.getI64Type(),
                                           b.getI64Type()};
    auto function = mlir::func::FuncOp::create(b, "main", b.getFunctionType(types, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    if (startIsArgument)
      start = function.getArgument(1);
    auto result = applyOne(b, "slice", function.getArgument(0),
                           {{"start", start}, {"size", Extent(function.getArgument(2))}});
    mlir::func::ReturnOp::create(b, result);
    function.setType(b.getFunctionType(types, result.getType()));
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  };
  Value x = randomValue(type("f32[5]"), 1);
  auto outcome = [&](int64_t start, int64_t size) -> std::string {
    try {
      run({x, start, size});
    } catch (const RunError &error) {
      return error.message();
    }
    return "fine";
  };
  for (bool startIsArgument : {false, true}) {
    sliceWith(extent(1), startIsArgument);
    expandAll();
    EXPECT_EQ(outcome(1, 4), "fine");
    EXPECT_EQ(outcome(1, 0), "fine");
    EXPECT_EQ(outcome(1, 5), "a slice of 5 from 1 on is out of range for axis 0 of a tensor");
    EXPECT_EQ(outcome(1, -1), "a slice of -1 from 1 on is out of range for axis 0 of a tensor");
    EXPECT_EQ(outcome(1, INT64_MAX),
              "a slice of 9223372036854775807 from 1 on is out of range for axis 0 of a tensor");
  }
  EXPECT_EQ(outcome(5, 0), "fine");
  EXPECT_EQ(outcome(6, 0), "a slice of 0 from 6 on is out of range for axis 0 of a tensor");
  EXPECT_EQ(outcome(-1, 2), "a slice of 2 from -1 on is out of range for axis 0 of a tensor");

  build("index", {"f32[4, 3]", "int"}, {}, false);
  expandAll();
  Value table = randomValue(type("f32[4, 3]"), 1);
  auto indexed = [&](int64_t i) -> std::string {
    try {
      run({table, i});
    } catch (const RunError &error) {
      return error.message();
    }
    return "fine";
  };
  EXPECT_EQ(indexed(3), "fine");
  EXPECT_EQ(indexed(4), "index 4 is out of range for axis 0 of a tensor, whose extent is 4");
  EXPECT_EQ(indexed(-1), "index -1 is out of range for axis 0 of a tensor, whose extent is 4");
}

} // namespace
} // namespace sheaf::ops::test

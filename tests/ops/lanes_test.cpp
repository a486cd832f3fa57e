// Elementwise emitters: the arith and math operations they make mean what the references say.
// Lanes are scalars here, and the oracle interprets the operations.

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"
#include "compiler/ops/Verify.h"
#include "compiler/oracle/Oracle.h"
#include "tests/ops/types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sheaf::ops::test {
namespace {

struct ExactLanes : Arithmetic {
  double round(double x) const override { return x; }
};

class LanesTest : public testing::Test {
protected:
  LanesTest() {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  /// The lanes of an element type: f32 for all floats.
  mlir::Type laneType(DType dtype) {
    return elementType(&context_, isFloat(dtype) ? DType::F32 : dtype);
  }

  static std::vector<double> samples(const Op &op, DType dtype) {
    // Pairs and the logarithm of a frequency's ratio; larger ones would make angles without digits.
    if (op.name.starts_with("rope_"))
      return {0, 0.25, 1, 3};
    double inf = std::numeric_limits<double>::infinity();
    if (isFloat(dtype))
      return {0, 1, -1, 0.5, -2.5, 3.75, 100, -100, inf, -inf, std::nan("")};
    if (dtype == DType::Bool)
      return {0, 1};
    if (dtype == DType::I32)
      return {0, 1, -1, 7, -12, 2147483647.0, -2147483648.0};
    return {0, 1, -1, 7, -12, 4294967299.0};
  }

  oracle::Value lane(double x, DType dtype) {
    if (isFloat(dtype))
      return x;
    if (dtype == DType::Bool)
      return x != 0;
    return static_cast<int64_t>(x);
  }

  static double number(const oracle::Value &value) {
    if (auto *x = std::get_if<double>(&value))
      return *x;
    if (auto *x = std::get_if<bool>(&value))
      return *x;
    return static_cast<double>(std::get<int64_t>(value));
  }

  /// Compares emitter and reference on all combinations of samples.
  void check(const Op &op, const std::vector<DType> &dtypes) {
    std::vector<OperandType> types;
    mlir::SmallVector<mlir::Type> lanes;
    std::string trace = op.name;
    for (DType dtype : dtypes) {
      types.push_back({TensorType{dtype, {}, {}}, false});
      lanes.push_back(laneType(dtype));
      trace += " " + std::string(dtypeName(dtype));
    }
    SCOPED_TRACE(trace);
    ShapeResult shape = op.shape(types, {}, StrictOracle());
    if (!shape.error.empty())
      return;
    ++checked_;
    DType to = shape.types[0].dtype;

    mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module->getBody());
    auto function = mlir::func::FuncOp::create(b, "main", b.getFunctionType(lanes, laneType(to)));
    b.setInsertionPointToStart(function.addEntryBlock());
    mlir::Value result = std::get<Elementwise>(op.batch).emit(b, function.getArguments());
    ASSERT_EQ(result.getType(), laneType(to));
    mlir::func::ReturnOp::create(b, result);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
    oracle::Oracle interpreter(*module, {}, oracle::Precision::F64);

    std::vector<size_t> at(dtypes.size(), 0);
    while (true) {
      std::vector<RefTensor> operands(dtypes.size());
      std::vector<oracle::Value> args;
      std::string values;
      for (size_t i = 0; i < dtypes.size(); ++i) {
        double x = samples(op, dtypes[i])[at[i]];
        operands[i].dtype = dtypes[i];
        operands[i].data = {x};
        args.push_back(lane(x, dtypes[i]));
        values += " " + std::to_string(x);
      }
      std::vector<RefTensor> expected(1);
      expected[0].dtype = to;
      expected[0].data = {0};
      ASSERT_EQ(op.reference(operands, {}, ExactLanes(), expected), "");
      double x = expected[0].data[0], y = number(interpreter.run("main", args)[0]);
      bool isNarrow = to == DType::BF16 || to == DType::F16;
      double tolerance = (isNarrow ? 1e-2 : 1e-6) * std::max(1.0, std::fabs(x));
      // References do not round to the narrow type, and so do not overflow with it.
      bool overflows = to == DType::F16 && std::fabs(x) > 65504;
      EXPECT_TRUE(overflows || x == y || (std::isnan(x) && std::isnan(y)) ||
                  std::fabs(x - y) <= tolerance)
          << "of" << values << ": reference " << x << ", lanes " << y;
      size_t i = 0;
      while (i < at.size() && ++at[i] == samples(op, dtypes[i]).size())
        at[i++] = 0;
      if (i == at.size())
        break;
    }
  }

  mlir::MLIRContext context_;
  int checked_ = 0;
};

/// What has a host operand, and what takes numbers of two words, for which there is no interpreter:
/// tests/kernels has these.
bool isTestedInKernels(const Op &op) {
  return op.name == "scalar" || op.name == "token_tensor" || op.name == "number_above" ||
         op.draws();
}

TEST_F(LanesTest, AgreeWithReferences) {
  const DType all[] = {DType::F32, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool};
  for (const Op &op : OpTable::get().all()) {
    if (!std::holds_alternative<Elementwise>(op.batch) || isTestedInKernels(op))
      continue;
    int before = checked_;
    for (DType dtype : all) {
      std::vector<DType> dtypes(op.params.size(), dtype);
      if (op.name == "where")
        dtypes[0] = DType::Bool;
      check(op, dtypes);
    }
    EXPECT_GT(checked_, before) << op.name;
  }
}

TEST_F(LanesTest, VectorsAreEmittedToo) {
  mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getLoc());
  for (const Op &op : OpTable::get().all()) {
    auto *rule = std::get_if<Elementwise>(&op.batch);
    if (!rule || isTestedInKernels(op))
      continue;
    b.setInsertionPointToEnd(module->getBody());
    std::vector<OperandType> types(op.params.size(), {TensorType{DType::F32, {}, {}}, false});
    if (op.name == "where")
      types[0] = {TensorType{DType::Bool, {}, {}}, false};
    if (op.name == "and" || op.name == "or" || op.name == "not")
      types.assign(op.params.size(), {TensorType{DType::Bool, {}, {}}, false});
    mlir::SmallVector<mlir::Type> lanes;
    for (const OperandType &type : types)
      lanes.push_back(mlir::VectorType::get({8}, laneType(type.tensor()->dtype)));
    auto function = mlir::func::FuncOp::create(b, "f_" + op.name, b.getFunctionType(lanes, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    rule->emit(b, function.getArguments());
    mlir::func::ReturnOp::create(b, mlir::ValueRange());
  }
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
}

TEST_F(LanesTest, ScalarsTakeHostLanes) {
  const auto &rule = std::get<Elementwise>(OpTable::get().find("scalar")->batch);
  mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module->getBody());
  mlir::Type i64 = mlir::VectorType::get({4}, b.getI64Type());
  mlir::Type f64 = mlir::VectorType::get({4}, b.getF64Type());
  mlir::Type f32 = mlir::VectorType::get({4}, b.getF32Type());
  auto function = mlir::func::FuncOp::create(b, "f", b.getFunctionType({i64, f64}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  EXPECT_EQ(rule.emit(b, function.getArgument(0)).getType(), i64);
  EXPECT_EQ(rule.emit(b, function.getArgument(1)).getType(), f32);
  const auto &ofTokens = std::get<Elementwise>(OpTable::get().find("token_tensor")->batch);
  EXPECT_EQ(ofTokens.emit(b, function.getArgument(0)).getType(),
            mlir::VectorType::get({4}, b.getI32Type()));
}

} // namespace
} // namespace sheaf::ops::test

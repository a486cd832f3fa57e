// A gradient that is exactly 0 where it arrives at an elementwise operator gives exactly 0 to its
// operands, whatever these are; any other gradient is passed on as IEEE 754 has it.

#include "compiler/ir/Program.h"
#include "compiler/ops/Gradient.h"
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

class ExactZeros : public testing::Test {
protected:
  ExactZeros() {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  /// A function of the operands and of the result's gradient: what the record makes of it. False if
  /// the operator does not take such operands.
  bool build(const Op &op, const std::vector<std::string> &operands) {
    std::vector<OperandType> types;
    mlir::SmallVector<mlir::Type> arguments;
    for (const std::string &text : operands) {
      types.push_back(type(text));
      arguments.push_back(tensorType(&context_, *types.back().tensor()));
    }
    ShapeResult shape = op.shape(types, {}, StrictOracle());
    if (!shape.error.empty() || !isFloat(shape.types[0].dtype))
      return false;
    arguments.push_back(tensorType(&context_, shape.types[0]));
    mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
    module_ = mlir::ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module_->getBody());
    auto function = mlir::func::FuncOp::create(b, "main", b.getFunctionType(arguments, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    auto all = function.getArguments();
    mlir::Value y = applyOne(b, op.name, all.drop_back());
    GradientCall call{y.getDefiningOp<ir::ApplyOp>(), {all.back()}, {}};
    for (const OperandType &each : types)
      call.wanted.push_back(isFloat(each.tensor()->dtype));
    mlir::SmallVector<mlir::Value> outputs;
    for (mlir::Value gradient : op.gradient.rule(b, call))
      if (gradient)
        outputs.push_back(gradient);
    mlir::func::ReturnOp::create(b, outputs);
    function.setType(b.getFunctionType(arguments, mlir::ValueRange(outputs).getTypes()));
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module_)));
    return !outputs.empty();
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(ExactZeros, PassEveryElementwiseOperator) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> samples = {0,    -0.0,  1,   -1,   0.5,         -2.5,
                                       1e30, -1e30, inf, -inf, std::nan("")};
  int tested = 0;
  for (const Op &op : OpTable::get().all()) {
    if (!std::holds_alternative<Elementwise>(op.batch) || op.gradient.kind != Gradient::Rule)
      continue;
    SCOPED_TRACE(op.name);
    size_t count = op.params.size(), cases = 1;
    for (size_t i = 0; i < count; ++i)
      cases *= samples.size();
    std::vector<std::string> operands(count, "f32[" + std::to_string(cases) + "]");
    if (op.name == "where")
      operands[0] = "bool[" + std::to_string(cases) + "]";
    ASSERT_TRUE(build(op, operands));
    std::vector<oracle::Value> arguments;
    auto tensorOf = [&](bool isBool, auto element) {
      RefTensor t;
      t.dtype = isBool ? DType::Bool : DType::F32;
      t.shape = {static_cast<int64_t>(cases)};
      for (size_t i = 0; i < cases; ++i)
        t.data.push_back(element(i));
      return oracle::makeTensor(t);
    };
    size_t stride = 1;
    for (size_t i = 0; i < count; ++i, stride *= samples.size()) {
      bool isBool = operands[i].starts_with("bool");
      arguments.push_back(tensorOf(isBool, [&](size_t at) {
        double x = samples[at / stride % samples.size()];
        return isBool ? double(x > 0) : x;
      }));
    }
    for (double zero : {0.0, -0.0}) {
      arguments.push_back(tensorOf(false, [&](size_t) { return zero; }));
      auto gradients = oracle::Oracle(*module_, {}, oracle::Precision::F64).run("main", arguments);
      for (size_t g = 0; g < gradients.size(); ++g)
        for (size_t i = 0; i < cases; ++i)
          EXPECT_EQ(oracle::tensor(gradients[g]).data[i], 0)
              << "gradient " << g << " of case " << i;
      arguments.pop_back();
    }
    ++tested;
  }
  EXPECT_GE(tested, 20);
}

} // namespace
} // namespace sheaf::ops::test

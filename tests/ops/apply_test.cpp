// The form of sheaf.apply: what verifyApply accepts and how it is taken apart.

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"
#include "compiler/ops/Verify.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

namespace sheaf::ops {
namespace {

class ApplyTest : public testing::Test {
protected:
  ApplyTest() {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  /// What the verifier says of `op (operand types) {attrs} -> (result types)`.
  std::string verify(llvm::StringRef op, llvm::StringRef operands, llvm::StringRef attrs,
                     llvm::StringRef results) {
    auto types = [&](llvm::StringRef text) {
      auto type = mlir::parseType(("(" + text + ") -> ()").str(), &context_);
      return llvm::SmallVector<mlir::Type>(mlir::cast<mlir::FunctionType>(type).getInputs());
    };
    auto dictionary = mlir::cast<mlir::DictionaryAttr>(
        mlir::parseAttribute(("{" + attrs + "}").str(), &context_));
    return verifyApply(op, types(operands), dictionary, types(results));
  }

  mlir::MLIRContext context_;
};

TEST_F(ApplyTest, Accepts) {
  auto fine = [&](llvm::StringRef op, llvm::StringRef operands, llvm::StringRef attrs,
                  llvm::StringRef results) {
    EXPECT_EQ(verify(op, operands, attrs, results), "") << op.str();
  };
  fine("add", "tensor<4xf32>, tensor<4xf32>", "", "tensor<4xf32>");
  fine("add", "tensor<?xf32>, tensor<4xf32>", "", "tensor<4xf32>");
  fine("add", "tensor<?xf32>, tensor<4xf32>", "", "tensor<?xf32>");
  fine("add", "tensor<?xf32>, tensor<?xf32>", "", "tensor<?xf32>");
  fine("add", "tensor<?x1xf32>, tensor<?xf32>", "", "tensor<?x?xf32>");
  fine("matmul", "tensor<?x?xf32>, tensor<4x3xf32>", "", "tensor<?x3xf32>");
  fine("sum", "tensor<?x4xf32>", "keepdims = 0", "tensor<f32>");
  fine("sum", "tensor<?x4xf32>", "axis = 1, keepdims = 0", "tensor<?xf32>");
  fine("split", "tensor<?xf32>", "axis = 0, parts = 2", "tensor<?xf32>, tensor<?xf32>");
  fine("concat", "tensor<?xf32>, tensor<4xf32>, tensor<2xf32>", "axis = 0", "tensor<?xf32>");
  fine("stack", "!sheaf.list<tensor<?xf32>>", "axis = 0", "tensor<?x?xf32>");
  fine("fold_add", "tensor<4xf32>, !sheaf.list<tensor<4xf32>>", "reversed = 0", "tensor<4xf32>");
  fine("fold_mul", "tensor<i32>, !sheaf.list<tensor<i32>>", "reversed = 1", "tensor<i32>");
  fine("zeros", "", "", "tensor<3xf32>");
  fine("zeros", "i64", "", "tensor<?x3xf32>");
  fine("full", "i64, i64", "value = 1.0", "tensor<?x?xf32>");
  fine("reshape", "tensor<?x4xf32>, i64", "", "tensor<?xf32>");
  fine("slice", "tensor<8xf32>", "axis = 0, start = 1, size = 3", "tensor<3xf32>");
  fine("slice", "tensor<8xf32>, i64", "axis = 0, start = 1", "tensor<?xf32>");
  fine("slice", "tensor<8xf32>, i64", "axis = 0, size = 3", "tensor<3xf32>");
  fine("slice", "tensor<8xf32>, i64, i64", "axis = 0", "tensor<?xf32>");
  fine("index", "tensor<8x2xf32>, i64", "", "tensor<2xf32>");
  fine("index", "tensor<8x2xf32>, !sheaf.token<\"\">", "", "tensor<2xf32>");
  fine("gather", "tensor<8x2xf32>, tensor<?xi32, \"word\">", "", "tensor<?x2xf32>");
  fine("slice", "tensor<?xi32, \"word\">", "axis = 0, start = 1, size = 3",
       "tensor<3xi32, \"word\">");
  fine("scalar", "f64", "", "tensor<f32>");
  fine("token_tensor", "!sheaf.token<\"word\">", "", "tensor<i32, \"word\">");
  fine("iota", "", "size = 3", "tensor<3xi32>");
  fine("iota", "i64", "", "tensor<?xi32>");
  fine("softmax", "tensor<?xf32>", "axis = 0", "tensor<?xf32>");
  fine("layer_norm", "tensor<4xf32>, tensor<4xf32>, tensor<4xf32>", "eps = 1.0e-5",
       "tensor<4xf32>");
}

TEST_F(ApplyTest, Refuses) {
  auto refuses = [&](llvm::StringRef message, llvm::StringRef op, llvm::StringRef operands,
                     llvm::StringRef attrs, llvm::StringRef results) {
    EXPECT_EQ(verify(op, operands, attrs, results), message.str()) << op.str();
  };
  refuses("is not an operator", "frobnicate", "", "", "");
  refuses("is made by sheaf.rows", "rows", "tensor<4x2xf32>", "", "tensor<2xf32>");
  refuses("operand 'b' is not a tensor", "add", "tensor<4xf32>", "", "tensor<4xf32>");
  refuses("operand 'b' is not a tensor", "add", "tensor<4xf32>, f64", "", "tensor<4xf32>");
  refuses("has 3 operands, 2 of them used", "add", "tensor<4xf32>, tensor<4xf32>, tensor<4xf32>",
          "", "tensor<4xf32>");
  refuses("cannot add f32[4] and f32[5]: the extents of axis 0 differ (4, 5)", "add",
          "tensor<4xf32>, tensor<5xf32>", "", "tensor<4xf32>");
  refuses("result 0 is tensor<5xf32>, not tensor<4xf32>", "add", "tensor<4xf32>, tensor<4xf32>", "",
          "tensor<5xf32>");
  refuses("result 0 is tensor<4xbf16>, not tensor<4xf32>", "add", "tensor<4xf32>, tensor<4xf32>",
          "", "tensor<4xbf16>");
  refuses("has 2 results, not 1", "add", "tensor<4xf32>, tensor<4xf32>", "",
          "tensor<4xf32>, tensor<4xf32>");
  refuses("attribute 'axis' is not an int", "softmax", "tensor<4xf32>", "", "tensor<4xf32>");
  refuses("attribute 'axis' is negative", "softmax", "tensor<4xf32>", "axis = -1", "tensor<4xf32>");
  refuses("attribute 'axis' is not an int", "sum", "tensor<4xf32>", "axis = 1.0, keepdims = 0",
          "tensor<f32>");
  refuses("attribute 'eps' is not a float", "rms_norm", "tensor<4xf32>, tensor<4xf32>", "",
          "tensor<4xf32>");
  refuses("has no parameter 'colour'", "exp", "tensor<4xf32>", "colour = 1", "tensor<4xf32>");
  refuses("the operand for extent 'dims' is missing or not an i64", "zeros", "", "",
          "tensor<?xf32>");
  refuses("the operand for extent 'size' is missing or not an i64", "slice", "tensor<8xf32>, i64",
          "axis = 0", "tensor<?xf32>");
  refuses("cannot fold list<f32[3]> from f32[4]", "fold_add",
          "tensor<4xf32>, !sheaf.list<tensor<3xf32>>", "reversed = 0", "tensor<4xf32>");
  refuses("cannot fold list<bf16[4]> without rounding", "fold_maximum",
          "tensor<4xbf16>, !sheaf.list<tensor<4xbf16>>", "reversed = 0", "tensor<4xbf16>");
  refuses("operand 'list' is not a list", "stack", "tensor<4xf32>", "axis = 0", "tensor<?x4xf32>");
  refuses("operand 0 is neither a tensor nor a host scalar", "neg", "tensor<4xf64>", "",
          "tensor<4xf64>");
  refuses("result 0 is tensor<3xi32>, not tensor<3xi32, \"word\">", "slice",
          "tensor<?xi32, \"word\">", "axis = 0, start = 1, size = 3", "tensor<3xi32>");
}

TEST_F(ApplyTest, BuildsWhatItTakesApart) {
  mlir::ImplicitLocOpBuilder b(mlir::UnknownLoc::get(&context_), &context_);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module->getBody());
  mlir::Type x = mlir::RankedTensorType::get({mlir::ShapedType::kDynamic, 4}, b.getF32Type());
  auto function = mlir::func::FuncOp::create(
      b, "f", b.getFunctionType({x, b.getI64Type(), b.getI64Type()}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  mlir::Value tensor = function.getArgument(0), m = function.getArgument(1),
              n = function.getArgument(2);

  auto partsOf = [&](mlir::Value result) {
    auto op = result.getDefiningOp<ir::ApplyOp>();
    return std::get<ApplyParts>(takeApart(*OpTable::get().find(op.getOp()), op->getOperandTypes(),
                                          op.getAttrs(), op->getResultTypes()));
  };
  mlir::Value shaped =
      applyOne(b, "reshape", tensor, {{"dims", std::vector<Extent>{b.getI64IntegerAttr(2), m, n}}});
  EXPECT_EQ(shaped.getType(),
            mlir::RankedTensorType::get({2, mlir::ShapedType::kDynamic, mlir::ShapedType::kDynamic},
                                        b.getF32Type()));
  ApplyParts parts = partsOf(shaped);
  ASSERT_EQ(parts.operands.size(), 1u);
  ASSERT_EQ(parts.extents.size(), 2u);
  EXPECT_EQ(parts.extents[0].param, "dims");
  EXPECT_EQ(parts.extents[0].position, 1u);
  EXPECT_EQ(parts.extents[0].operand, 1u);
  EXPECT_EQ(parts.extents[1].position, 2u);
  EXPECT_EQ(parts.extents[1].operand, 2u);

  mlir::Value part = applyOne(b, "slice", tensor, {{"start", Extent(m)}, {"size", int64_t(2)}});
  parts = partsOf(part);
  ASSERT_EQ(parts.extents.size(), 1u);
  EXPECT_EQ(parts.extents[0].param, "start");
  EXPECT_FALSE(parts.extents[0].position);
  EXPECT_EQ(std::get<int64_t>(parts.attrs.at("size")), 2);
  EXPECT_EQ(std::get<int64_t>(parts.attrs.at("axis")), 0);

  mlir::Value scaled = applyOne(b, "mul", {tensor, promote(b, m, DType::F32)});
  EXPECT_EQ(scaled.getType(), x);
  EXPECT_EQ(promote(b, n, DType::I32).getType(), mlir::RankedTensorType::get({}, b.getI32Type()));
  EXPECT_EQ(number(b, 0.5, DType::BF16).getType(),
            mlir::RankedTensorType::get({}, b.getBF16Type()));
  EXPECT_EQ(apply(b, "split", scaled, {{"parts", int64_t(2)}, {"axis", int64_t(-1)}}).size(), 2u);
  mlir::func::ReturnOp::create(b, mlir::ValueRange());
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
}

} // namespace
} // namespace sheaf::ops

// What every record must have.

#include "compiler/ops/Op.h"

#include <gtest/gtest.h>

#include <set>

namespace sheaf::ops {
namespace {

TEST(OpTable, IsSortedAndFindsEverything) {
  std::string last;
  for (const Op &op : OpTable::get().all()) {
    EXPECT_LT(last, op.name);
    EXPECT_EQ(OpTable::get().find(op.name), &op);
    last = op.name;
  }
  EXPECT_EQ(OpTable::get().find("nonsense"), nullptr);
  EXPECT_EQ(OpTable::get().find(""), nullptr);
}

TEST(OpTable, RecordsAreComplete) {
  for (const Op &op : OpTable::get().all()) {
    SCOPED_TRACE(op.name);
    EXPECT_FALSE(op.summary.empty());
    EXPECT_NE(op.summary.back(), '.');
    EXPECT_TRUE(op.shape);
    EXPECT_TRUE(op.reference);
    if (auto *elementwise = std::get_if<Elementwise>(&op.batch))
      EXPECT_TRUE(elementwise->emit);
    if (auto *expand = std::get_if<Expand>(&op.batch))
      EXPECT_TRUE(expand->rewrite);
    EXPECT_EQ(std::holds_alternative<Product>(op.batch), static_cast<bool>(op.productFlop));
    std::set<std::string> names;
    bool rest = false;
    for (const Param &param : op.params) {
      EXPECT_TRUE(param.kind != ParamKind::Key || &param == &op.params.back());
      EXPECT_TRUE(names.insert(param.name).second) << param.name;
      bool isArgument = param.kind == ParamKind::Static || param.kind == ParamKind::Number ||
                        param.kind == ParamKind::Extent;
      EXPECT_TRUE(isArgument || (!param.defaultValue && !param.optional)) << param.name;
      EXPECT_FALSE(param.defaultValue && param.optional) << param.name;
      // What takes all remaining positional arguments is followed by named ones only.
      EXPECT_TRUE(!rest || param.defaultValue || param.optional || param.kind == ParamKind::Key)
          << param.name;
      rest = rest || param.kind == ParamKind::Tensors || param.kind == ParamKind::Extents;
    }
  }
}

TEST(OpTable, SaysHowEveryOperatorIsDifferentiated) {
  for (const Op &op : OpTable::get().all()) {
    SCOPED_TRACE(op.name);
    EXPECT_NE(op.gradient.kind, Gradient::Unstated);
    EXPECT_EQ(op.gradient.kind == Gradient::Rule, static_cast<bool>(op.gradient.rule));
    EXPECT_EQ(op.gradient.kind == Gradient::Expansion, std::holds_alternative<Expand>(op.batch));
    // What has no operand that is a tensor, or draws, has nothing to give a gradient to.
    bool anyTensor = false;
    for (const Param &param : op.params)
      anyTensor = anyTensor || param.kind == ParamKind::Tensor ||
                  param.kind == ParamKind::Tensors || param.kind == ParamKind::List;
    if (!anyTensor && op.gradient.kind != Gradient::Expansion)
      EXPECT_EQ(op.gradient.kind, Gradient::None);
  }
}

TEST(OpTable, Signatures) {
  auto signature = [](const char *name) { return OpTable::get().find(name)->signature(); };
  EXPECT_EQ(signature("softmax"), "softmax(x, axis=-1)");
  EXPECT_EQ(signature("sum"), "sum(x, axis=none, keepdims=0)");
  EXPECT_EQ(signature("layer_norm"), "layer_norm(x, gain, bias, eps=1e-05)");
  EXPECT_EQ(signature("attention"), "attention(q, k, v, causal=0, scale=1/sqrt(d))");
  EXPECT_EQ(signature("concat"), "concat(tensors..., axis=0)");
  EXPECT_EQ(signature("random"), "random(dims...)");
  EXPECT_EQ(OpTable::get().find("softmax")->family, "Normalise");
}

TEST(OpTable, ProductFlop) {
  const Op &matmul = *OpTable::get().find("matmul");
  auto flop = [&](std::vector<int64_t> a, std::vector<int64_t> b) {
    std::vector<std::vector<int64_t>> shapes = {std::move(a), std::move(b)};
    return matmul.productFlop(shapes);
  };
  EXPECT_EQ(flop({5}, {5}), 10);
  EXPECT_EQ(flop({5}, {5, 7}), 70);
  EXPECT_EQ(flop({3, 5}, {5}), 30);
  EXPECT_EQ(flop({3, 5}, {5, 7}), 210);
  EXPECT_EQ(flop({2, 3, 5}, {5, 7}), 420);
  EXPECT_EQ(flop({2, 1, 3, 5}, {4, 5, 7}), 2 * 4 * 210);
  EXPECT_EQ(flop({4, 3, 5}, {5}), 120);
}

TEST(OpTable, CanonicalAttributes) {
  TensorType matrix{DType::F32, {Dim(2), Dim(3)}, {}};
  std::vector<OperandType> operands = {{matrix, false}};
  auto axis = [&](const char *op, Attrs attrs, const char *name = "axis") {
    return std::get<int64_t>(
        canonicalAttrs(*OpTable::get().find(op), operands, std::move(attrs)).at(name));
  };
  EXPECT_EQ(axis("softmax", {}), 1);
  EXPECT_EQ(axis("softmax", {{"axis", int64_t(-2)}}), 0);
  EXPECT_EQ(axis("transpose", {}, "axis1"), 0);
  EXPECT_EQ(axis("transpose", {}, "axis2"), 1);
  EXPECT_EQ(axis("expand_dims", {{"axis", int64_t(-1)}}), 2);
  EXPECT_EQ(axis("split", {{"axis", int64_t(-1)}, {"parts", int64_t(3)}}), 1);
  Attrs sum = canonicalAttrs(*OpTable::get().find("sum"), operands, {});
  EXPECT_FALSE(sum.contains("axis"));
  EXPECT_EQ(std::get<int64_t>(sum.at("keepdims")), 0);
}

TEST(OpTable, HostScalarsTakeTheTensorsType) {
  auto promoted = [](const char *op, std::vector<OperandType> operands, size_t i) {
    return OpTable::get().find(op)->promoted(operands, i);
  };
  OperandType bf16{TensorType{DType::BF16, {Dim(2)}, {}}, false};
  OperandType i32{TensorType{DType::I32, {Dim(2)}, {}}, false};
  OperandType boolean{TensorType{DType::Bool, {Dim(2)}, {}}, false};
  OperandType anInt{HostKind::Int, false}, aFloat{HostKind::Float, false};
  EXPECT_EQ(promoted("add", {bf16, anInt}, 1), DType::BF16);
  EXPECT_EQ(promoted("add", {aFloat, bf16}, 0), DType::BF16);
  EXPECT_EQ(promoted("add", {i32, anInt}, 1), DType::I32);
  EXPECT_EQ(promoted("add", {anInt, anInt}, 1), DType::I64);
  EXPECT_EQ(promoted("add", {anInt, aFloat}, 0), DType::F32);
  EXPECT_EQ(promoted("exp", {anInt}, 0), DType::F32);
  EXPECT_EQ(promoted("where", {boolean, anInt, bf16}, 1), DType::BF16);
  EXPECT_EQ(promoted("where", {boolean, anInt, aFloat}, 1), DType::F32);
  EXPECT_EQ(promoted("where", {OperandType{HostKind::Bool, false}, bf16, bf16}, 0), DType::Bool);
}

} // namespace
} // namespace sheaf::ops

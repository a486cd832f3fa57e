//===- model_types_test.cpp - What the runtime is told of types -----------===//

#include "compiler/model/ModelTypes.h"
#include "compiler/ops/Verify.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace sheaf;

namespace {

class ModelTypes : public testing::Test {
protected:
  mlir::ModuleOp parse(const char *text) {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    return *module_;
  }

private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(ModelTypes, EntryWithDataListsAndTensors) {
  host::ModelTypes model = host::describeEntry(parse(R"(
    sheaf.data @"Rose<f32[n]>" [#sheaf.ctor<"Rose", ["value", "kids"],
        [tensor<?xf32>, !sheaf.list<!sheaf.data<@"Rose<f32[n]>">>]>]
    func.func @main(%t: !sheaf.data<@"Rose<f32[n]>"> {sheaf.name = "tree"},
                    %w: tensor<?x4xi32, "word"> {sheaf.name = "words", sheaf.dims = ["n", "four"]},
                    %x: !sheaf.list<tuple<i64, !sheaf.token<"tag">>>) -> (i1, f64) {
      %b = arith.constant true
      %f = arith.constant 0.0 : f64
      return %b, %f : i1, f64
    })"),
                                               "main");
  const rt::TypeTable &table = model.types;
  EXPECT_EQ(model.entry.argNames, (std::vector<std::string>{"tree", "words", "arg2"}));
  ASSERT_EQ(model.entry.argTypes.size(), 3u);

  const rt::TypeDesc &tree = table.types[model.entry.argTypes[0]];
  ASSERT_EQ(tree.kind, rt::TypeKind::Data);
  const rt::DataDesc &rose = table.data[tree.data];
  EXPECT_EQ(rose.name, "Rose<f32[n]>");
  ASSERT_EQ(rose.ctors.size(), 1u);
  EXPECT_EQ(rose.ctors[0].fieldNames, (std::vector<std::string>{"value", "kids"}));
  const rt::TypeDesc &kids = table.types[rose.ctors[0].fieldTypes[1]];
  ASSERT_EQ(kids.kind, rt::TypeKind::List);
  EXPECT_EQ(table.types[kids.children[0]].kind, rt::TypeKind::Data);
  EXPECT_EQ(table.types[kids.children[0]].data, tree.data);

  const rt::TypeDesc &words = table.types[model.entry.argTypes[1]];
  EXPECT_EQ(words.kind, rt::TypeKind::Tensor);
  EXPECT_EQ(words.shape, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(words.dimNames, (std::vector<std::string>{"n", "four"}));
  EXPECT_TRUE(words.isToken);
  EXPECT_EQ(words.vocab, "word");
  EXPECT_EQ(words.dtype, rt::DType::I32);
  EXPECT_EQ(table.slots(model.entry.argTypes[1]), 2);

  const rt::TypeDesc &pairs = table.types[model.entry.argTypes[2]];
  ASSERT_EQ(pairs.kind, rt::TypeKind::List);
  const rt::TypeDesc &pair = table.types[pairs.children[0]];
  ASSERT_EQ(pair.kind, rt::TypeKind::Tuple);
  EXPECT_EQ(table.types[pair.children[0]].kind, rt::TypeKind::Int);
  EXPECT_EQ(table.types[pair.children[1]].kind, rt::TypeKind::Token);
  EXPECT_EQ(table.types[pair.children[1]].vocab, "tag");

  const rt::TypeDesc &result = table.types[model.entry.resultType];
  ASSERT_EQ(result.kind, rt::TypeKind::Tuple);
  EXPECT_EQ(table.types[result.children[0]].kind, rt::TypeKind::Bool);
  EXPECT_EQ(table.types[result.children[1]].kind, rt::TypeKind::Float);
}

TEST_F(ModelTypes, LengthsOfLists) {
  host::ModelTypes model = host::describeEntry(parse(R"(
    sheaf.data @Scene [#sheaf.ctor<"Scene", ["name", "points"],
        [!sheaf.list<!sheaf.token<"">>, !sheaf.list<!sheaf.list<f64>>]>]
        {sheaf.lengths = ["?", "4", "?"]}
    func.func @main(%s: !sheaf.data<@Scene> {sheaf.name = "scene"},
                    %x: !sheaf.list<tensor<?xf32>>
                        {sheaf.dims = ["n"], sheaf.lengths = ["2*n"]}) -> i64 {
      %i = arith.constant 0 : i64
      return %i : i64
    })"),
                                               "main");
  const rt::TypeTable &table = model.types;
  const rt::DataDesc &scene = table.data[table.types[model.entry.argTypes[0]].data];
  const rt::TypeDesc &name = table.types[scene.ctors[0].fieldTypes[0]];
  EXPECT_FALSE(name.length);
  const rt::TypeDesc &points = table.types[scene.ctors[0].fieldTypes[1]];
  EXPECT_EQ(points.length, 4);
  EXPECT_EQ(points.dimNames, std::vector<std::string>{"4"});
  EXPECT_FALSE(table.types[points.children[0]].length);
  const rt::TypeDesc &rows = table.types[model.entry.argTypes[1]];
  EXPECT_EQ(rows.length, -1);
  EXPECT_EQ(rows.dimNames, std::vector<std::string>{"2*n"});
  EXPECT_EQ(table.slots(model.entry.argTypes[1]), 1);
}

TEST_F(ModelTypes, ParametersGetRows) {
  host::ParamLayout layout = host::layoutParams(parse(R"(
    sheaf.param @a : tensor<10x50xf32> init("normal", [0.1])
    sheaf.param @b : tensor<f32> init("zeros", [])
    sheaf.param @c : tensor<3xf32> init("constant", [2.0]) {sheaf.synthetic}
  )"));
  ASSERT_EQ(layout.params.size(), 3u);
  EXPECT_EQ(layout.params[0].name, "a");
  EXPECT_EQ(layout.params[0].initArgs, (std::vector<double>{0.1}));
  EXPECT_EQ(layout.params[0].id, 0u);
  EXPECT_EQ(layout.params[1].id, 40u);
  EXPECT_EQ(layout.params[2].id, 41u);
  EXPECT_FALSE(layout.params[1].synthetic);
  EXPECT_TRUE(layout.params[2].synthetic);
  EXPECT_EQ(layout.granules, 42u);
}

} // namespace

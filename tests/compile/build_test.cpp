// What the C interface says of nodes that are used wrongly: nothing of it opens a compiler.
#include "sheaf/builder.h"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

using Type = sheaf_built_type;
using Pattern = sheaf_built_pattern;
using Expr = sheaf_built_expr;
using Statement = sheaf_built_statement;

const sheaf_place kHere = {"m.toy", 3, 4, 3, 9};

class Build : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(sheaf_model_builder_create("m", &b), SHEAF_OK);
    ASSERT_EQ(sheaf_model_builder_create("other", &other), SHEAF_OK);
  }
  void TearDown() override {
    sheaf_model_builder_release(b);
    sheaf_model_builder_release(other);
    sheaf_model_builder_release(nullptr);
  }

  /// The message of a call that must be refused.
  static std::string refused(sheaf_status status) {
    EXPECT_EQ(status, SHEAF_INVALID);
    return status == SHEAF_OK ? "it was accepted" : sheaf_error_message();
  }
  Expr name(const char *of, sheaf_model_builder *in = nullptr) {
    Expr expr{};
    EXPECT_EQ(sheaf_build_name(in ? in : b, of, &kHere, &expr), SHEAF_OK);
    return expr;
  }
  Type number() {
    Type type{};
    EXPECT_EQ(sheaf_build_host_type(b, SHEAF_INT, nullptr, &type), SHEAF_OK);
    return type;
  }
  Pattern any() {
    Pattern pattern{};
    EXPECT_EQ(sheaf_build_wildcard(b, nullptr, &pattern), SHEAF_OK);
    return pattern;
  }
  std::string binary(Expr lhs, Expr rhs, int32_t op = SHEAF_ADD) {
    Expr expr{17};
    sheaf_status status = sheaf_build_binary(b, op, lhs, rhs, &kHere, &expr);
    EXPECT_EQ(expr.id == 17, status != SHEAF_OK);
    return status == SHEAF_OK ? "" : refused(status);
  }

  sheaf_model_builder *b = nullptr, *other = nullptr;
};

TEST_F(Build, NodesAreOfOneBuilder) {
  EXPECT_EQ(binary(name("x"), {}), "rhs is missing: its id is 0");
  EXPECT_EQ(binary(name("x", other), name("y")), "lhs is no node of this builder");
  EXPECT_EQ(binary(name("x"), {name("y").id + 7}), "rhs is no node of this builder");
  EXPECT_EQ(binary({name("x").id & ~uint64_t(UINT32_MAX)}, name("y")),
            "lhs is no node of this builder");
  EXPECT_EQ(binary({number().id}, name("y")), "lhs is a type, not an expression");
  EXPECT_EQ(binary({any().id}, name("y")), "lhs is a pattern, not an expression");
  Statement check{};
  ASSERT_EQ(sheaf_build_check(b, name("x"), nullptr, nullptr, &check), SHEAF_OK);
  EXPECT_EQ(binary({check.id}, name("y")), "lhs is a statement, not an expression");
  sheaf_dim_form dim{};
  dim.size = sizeof dim;
  dim.name = "n";
  ASSERT_EQ(sheaf_build_dim(b, &dim, nullptr), SHEAF_OK);
  EXPECT_EQ(binary({check.id + 1 + 1}, name("y")), "lhs is a declaration, not an expression");
}

TEST_F(Build, AnExpressionStandsInOnePlace) {
  Expr x = name("x");
  std::string message = "m.toy:3:4: rhs stands in the model already, and an expression stands in "
                        "one place: build it for each, or name it with let";
  EXPECT_EQ(binary(x, x), message);
  sheaf_error error{};
  error.size = sizeof error;
  ASSERT_EQ(sheaf_error_last(&error), SHEAF_OK);
  EXPECT_STREQ(error.file, "m.toy");
  EXPECT_EQ(error.line, 3);
  // What was refused has used nothing.
  EXPECT_EQ(binary(x, name("y")), "");
  EXPECT_EQ(binary(name("y"), x), message);
  // As extents do, and statements.
  sheaf_extent extent{SHEAF_EXTENT_EXPR, 0, nullptr, x};
  Type type{};
  EXPECT_EQ(refused(sheaf_build_tokens_type(b, nullptr, &extent, 1, nullptr, &type)).find("m.toy"),
            0u);
  Statement twice[2] = {};
  ASSERT_EQ(sheaf_build_run(b, name("f"), &kHere, &twice[0]), SHEAF_OK);
  twice[1] = twice[0];
  Expr block{};
  EXPECT_NE(refused(sheaf_build_block(b, twice, 2, name("x"), nullptr, &block))
                .find("a statement stands in the model already"),
            std::string::npos);
  EXPECT_EQ(sheaf_build_block(b, twice, 1, name("x"), nullptr, &block), SHEAF_OK);
  // Types and patterns may.
  Type number = this->number(), pair{};
  Type numbers[] = {number, number};
  EXPECT_EQ(sheaf_build_tuple_type(b, numbers, 2, nullptr, &pair), SHEAF_OK);
}

TEST_F(Build, SharedNodesAreOfBoundedSize) {
  Type type = number();
  Pattern pattern = any();
  std::string ofType, ofPattern;
  for (int i = 0; i < 64 && ofType.empty(); ++i) {
    Type both[] = {type, type};
    if (sheaf_status status = sheaf_build_tuple_type(b, both, 2, nullptr, &type))
      ofType = refused(status);
  }
  for (int i = 0; i < 64 && ofPattern.empty(); ++i)
    if (sheaf_status status = sheaf_build_cons_pattern(b, pattern, pattern, nullptr, &pattern))
      ofPattern = refused(status);
  EXPECT_EQ(ofType, "a type is too large: written out it has more than 65536 parts");
  EXPECT_EQ(ofPattern, "a pattern is too large: written out it has more than 65536 parts");
  type = number();
  for (int i = 1; i < 500; ++i)
    ASSERT_EQ(sheaf_build_list_type(b, type, nullptr, nullptr, &type), SHEAF_OK);
  EXPECT_EQ(refused(sheaf_build_list_type(b, type, nullptr, nullptr, &type)),
            "a type is nested too deeply: at most 500 levels are allowed");
}

TEST_F(Build, WhatStandsInATypeCounts) {
  // A type whose extent has a function of that type, again and again.
  auto deeper = [&](Type within, Type &type) {
    Expr function{};
    sheaf_built_parameter param{"x", {}, within};
    EXPECT_EQ(sheaf_build_lambda(b, &param, 1, name("x"), nullptr, &function), SHEAF_OK);
    sheaf_extent extent{SHEAF_EXTENT_EXPR, 0, nullptr, function};
    return sheaf_build_tensor_type(b, {kDLFloat, 32, 1}, &extent, 1, nullptr, &type);
  };
  Type type = number();
  sheaf_status status = SHEAF_OK;
  for (int i = 0; i < 1000 && status == SHEAF_OK; ++i)
    status = deeper(type, type);
  EXPECT_EQ(refused(status), "a type is nested too deeply: at most 500 levels are allowed");
  type = number();
  status = SHEAF_OK;
  for (int i = 0; i < 64 && status == SHEAF_OK; ++i) {
    Type both[] = {type, type};
    status = sheaf_build_tuple_type(b, both, 2, nullptr, &type);
    if (status == SHEAF_OK)
      status = deeper(type, type);
  }
  EXPECT_EQ(refused(status), "a type is too large: written out it has more than 65536 parts");
}

TEST_F(Build, UnknownMembersOfEnumerations) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(binary(name("x"), name("y"), SHEAF_MATMUL + 1), "op is 15");
  EXPECT_EQ(binary(name("x"), name("y"), -1), "op is -1");
  Expr expr{};
  EXPECT_EQ(refused(sheaf_build_unary(b, 2, name("x"), nullptr, &expr)), "op is 2");
  Type type{};
  EXPECT_EQ(refused(sheaf_build_host_type(b, SHEAF_TOKEN, nullptr, &type)),
            "the kind of a host type is 3");
  EXPECT_EQ(refused(sheaf_build_host_type(b, kLeast, nullptr, &type)),
            "the kind of a host type is -2147483648");
  sheaf_extent extent{SHEAF_EXTENT_PACK + 1, 0, "n", {}};
  EXPECT_EQ(refused(sheaf_build_tensor_type(b, {kDLFloat, 32, 1}, &extent, 1, nullptr, &type)),
            "an extent's kind is 5");
  EXPECT_EQ(refused(sheaf_build_tensor_type(b, {kDLFloat, 64, 1}, nullptr, 0, nullptr, &type)),
            "tensors have no elements of DLDataType {2, 64, 1}");
  EXPECT_EQ(refused(sheaf_build_tensor_type(b, {kDLFloat, 32, 4}, nullptr, 0, nullptr, &type)),
            "tensors have no elements of DLDataType {2, 32, 4}");
  sheaf_config_value value{SHEAF_CONFIG_TEXT + 1, 0, nullptr};
  const char *member = "act";
  sheaf_config_form check{sizeof check, &member, 1, &value, 1, "other", nullptr};
  EXPECT_EQ(refused(sheaf_build_config_check(b, &check, nullptr)), "the kind of a value is 4");
  value.kind = SHEAF_CONFIG_TEXT;
  EXPECT_EQ(refused(sheaf_build_config_check(b, &check, nullptr)), "the text of a value is null");
}

TEST_F(Build, NullAndEmpty) {
  Expr expr{};
  Type type{};
  Pattern pattern{};
  EXPECT_EQ(refused(sheaf_build_name(nullptr, "x", nullptr, &expr)), "builder is null");
  EXPECT_EQ(refused(sheaf_build_name(b, nullptr, nullptr, &expr)), "name is null");
  EXPECT_EQ(refused(sheaf_build_name(b, "x", nullptr, nullptr)), "where the node goes is null");
  EXPECT_EQ(refused(sheaf_build_text(b, nullptr, nullptr, &expr)), "value is null");
  EXPECT_EQ(refused(sheaf_build_list(b, nullptr, 1, nullptr, &expr)), "elements is null");
  EXPECT_EQ(refused(sheaf_build_named_type(b, nullptr, nullptr, 0, nullptr, nullptr, &type)),
            "name is null");
  EXPECT_EQ(refused(sheaf_build_tensor_type(b, {kDLFloat, 32, 1}, nullptr, 1, nullptr, &type)),
            "extents is null");
  sheaf_extent extent{SHEAF_EXTENT_NAME, 0, "", {}};
  EXPECT_EQ(refused(sheaf_build_list_type(b, number(), &extent, nullptr, &type)),
            "the name of an extent is empty");
  EXPECT_EQ(refused(sheaf_build_binding(b, nullptr, nullptr, &pattern)), "name is null");
  EXPECT_EQ(refused(sheaf_build_match(b, name("x"), nullptr, 3, nullptr, &expr)), "arms is null");
  EXPECT_EQ(refused(sheaf_build_use(b, "", nullptr, nullptr)), "file is empty");
  EXPECT_EQ(refused(sheaf_build_dim(b, nullptr, nullptr)), "form is null");
  EXPECT_EQ(refused(sheaf_model_builder_create("", &other)), "name is empty");
  EXPECT_EQ(refused(sheaf_model_builder_create("m", nullptr)), "builder is null");
  EXPECT_EQ(refused(sheaf_model_builder_finish(b, nullptr)), "source is null");
  EXPECT_EQ(refused(sheaf_model_builder_finish(nullptr, nullptr)), "builder is null");
  EXPECT_EQ(refused(sheaf_model_builder_text(b, "m", nullptr, 3)), "text is null");
  EXPECT_EQ(refused(sheaf_source_text(nullptr, nullptr)), "source is null");
  sheaf_source_release(nullptr);
}

TEST_F(Build, WhatDoesNotGoTogether) {
  Expr expr{};
  sheaf_built_index item{name("i"), name("a"), {}};
  EXPECT_EQ(refused(sheaf_build_index(b, name("x"), &item, 1, nullptr, &expr)),
            "an item is an index and a slice");
  sheaf_built_parameter both{"x", any(), {}}, neither{};
  EXPECT_EQ(refused(sheaf_build_lambda(b, &both, 1, name("x"), nullptr, &expr)),
            "a parameter has a name and a pattern");
  EXPECT_EQ(refused(sheaf_build_lambda(b, &neither, 1, name("x"), nullptr, &expr)),
            "a parameter has neither a name nor a pattern");
  EXPECT_EQ(sheaf_model_builder_text(b, "a.toy", "a", 1), SHEAF_OK);
  EXPECT_EQ(refused(sheaf_model_builder_text(b, "a.toy", "b", 1)),
            "a.toy: its text is given twice");
  EXPECT_EQ(refused(sheaf_build_layer_end(b)), "there is no layer to end");
  sheaf_layer_form layer{sizeof layer, "L", nullptr, 0};
  ASSERT_EQ(sheaf_build_layer(b, &layer, nullptr), SHEAF_OK);
  EXPECT_EQ(refused(sheaf_build_layer(b, &layer, nullptr)),
            "a layer has no layers in it: sheaf_build_layer_end() ends the one before");
  sheaf_source *source = nullptr;
  EXPECT_EQ(refused(sheaf_model_builder_finish(b, &source)),
            "a layer has not ended: sheaf_build_layer_end() ends it");
  EXPECT_EQ(source, nullptr);
}

TEST_F(Build, Places) {
  Expr expr{};
  auto at = [&](sheaf_place place) {
    sheaf_status status = sheaf_build_name(b, "x", &place, &expr);
    return status == SHEAF_OK ? std::string() : refused(status);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(at({"a", 1, 1, 0, 0}), "");
  EXPECT_EQ(at({"a", kMost, kMost, 0, 0}), "");
  EXPECT_EQ(at({"a", 2, 9, 3, 1}), "");
  EXPECT_EQ(at({nullptr, 1, 1, 0, 0}), "the file of a place is null");
  EXPECT_EQ(at({"", 1, 1, 0, 0}), "the file of a place is empty");
  EXPECT_EQ(at({"a", 0, 1, 0, 0}), "a place is at 0:1: lines and columns count from 1");
  EXPECT_EQ(at({"a", 1, -1, 0, 0}), "a place is at 1:-1: lines and columns count from 1");
  EXPECT_EQ(at({"a", 2, 5, 2, 4}), "a place ends before it begins");
  EXPECT_EQ(at({"a", 2, 5, 3, 0}), "a place ends before it begins");
}

TEST_F(Build, FormsGrow) {
  sheaf_dim_form dim{};
  dim.name = "n";
  EXPECT_EQ(refused(sheaf_build_dim(b, &dim, nullptr)),
            "options.size is 0: set it to sizeof(sheaf_dim_form)");
  dim.size = offsetof(sheaf_dim_form, config); // of an older header, where nothing may be read
  dim.config_count = 1;
  EXPECT_EQ(sheaf_build_dim(b, &dim, nullptr), SHEAF_OK) << sheaf_error_message();
  struct {
    sheaf_dim_form known;
    uint64_t later;
  } newer{};
  newer.known.size = sizeof newer;
  newer.known.name = "m";
  EXPECT_EQ(sheaf_build_dim(b, &newer.known, nullptr), SHEAF_OK);
  newer.later = 1;
  EXPECT_NE(refused(sheaf_build_dim(b, &newer.known, nullptr)).find("a member of sheaf_dim_form"),
            std::string::npos);
}

TEST_F(Build, AFinishedBuilderBuildsNothing) {
  Expr x = name("x"), expr{};
  sheaf_source *source = nullptr;
  ASSERT_EQ(sheaf_model_builder_finish(b, &source), SHEAF_OK);
  std::string message = "the builder has finished: another one builds the next model";
  EXPECT_EQ(refused(sheaf_build_unary(b, SHEAF_NEGATE, x, nullptr, &expr)), message);
  EXPECT_EQ(refused(sheaf_model_builder_text(b, "a", "b", 1)), message);
  EXPECT_EQ(refused(sheaf_build_layer_end(b)), message);
  sheaf_source *again = nullptr;
  EXPECT_EQ(refused(sheaf_model_builder_finish(b, &again)), message);
  EXPECT_EQ(again, nullptr);

  // With what else it does not go.
  ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  sheaf_compile_options options{};
  options.size = sizeof options;
  options.source = source;
  options.text = "fn main(x: int) -> int = x\n";
  sheaf_model *model = nullptr;
  EXPECT_EQ(refused(sheaf_compile(&options, &model, nullptr)),
            "options has a source and a path or a text");
  options.text = nullptr;
  options.name = "n";
  EXPECT_EQ(refused(sheaf_compile(&options, &model, nullptr)),
            "options has a name, which is a text's: a source has that of its builder");
  options.name = nullptr;
  EXPECT_EQ(sheaf_compile(&options, &model, nullptr), SHEAF_NOT_COMPILED); // it has no main
  options.size = offsetof(sheaf_compile_options, source);                  // of an older header
  EXPECT_EQ(refused(sheaf_compile(&options, &model, nullptr)),
            "options has no path, no text and no source");
  EXPECT_EQ(model, nullptr);
  sheaf_source_release(source);
}

/// Refused when it is compiled, or with a place: by the compiler's own builder.
TEST_F(Build, TheCompilerSaysTheRest) {
  ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  auto compiled = [](sheaf_model_builder *builder) {
    sheaf_source *source = nullptr;
    EXPECT_EQ(sheaf_model_builder_finish(builder, &source), SHEAF_OK);
    sheaf_compile_options options{};
    options.size = sizeof options;
    options.source = source;
    sheaf_model *model = nullptr;
    sheaf_status status = sheaf_compile(&options, &model, nullptr);
    const char *text = nullptr;
    if (status == SHEAF_NOT_COMPILED) {
      EXPECT_EQ(sheaf_source_text(source, &text), SHEAF_NOT_COMPILED);
      EXPECT_EQ(text, nullptr);
    }
    sheaf_source_release(source);
    return status;
  };
  auto main = [&](sheaf_model_builder *builder, Expr body) {
    sheaf_fn_form fn{};
    fn.size = sizeof fn;
    fn.name = "main";
    fn.body = body;
    EXPECT_EQ(sheaf_build_fn(builder, &fn, &kHere), SHEAF_OK);
  };
  // Nested more deeply than the parser allows, too deeply for a stack if anyone recursed.
  Expr expr = name("x");
  for (int i = 0; i < 100000; ++i)
    ASSERT_EQ(sheaf_build_unary(b, SHEAF_NEGATE, expr, &kHere, &expr), SHEAF_OK);
  main(b, expr);
  EXPECT_EQ(compiled(b), SHEAF_NOT_COMPILED);
  EXPECT_STREQ(sheaf_error_message(), "m.toy:3:4: error: nested too deeply");

  Expr infinite{};
  ASSERT_EQ(sheaf_build_float(other, HUGE_VAL, &kHere, &infinite), SHEAF_OK);
  main(other, infinite);
  EXPECT_EQ(compiled(other), SHEAF_NOT_COMPILED);
  EXPECT_STREQ(sheaf_error_message(), "m.toy:3:4: error: a number of a model is finite");

  // More files than there is room for places in.
  sheaf_model_builder *third = nullptr;
  ASSERT_EQ(sheaf_model_builder_create("m", &third), SHEAF_OK);
  for (int i = 0; i < 60; ++i) {
    std::string file = "f" + std::to_string(i);
    sheaf_place at{file.c_str(), 1, 1, 0, 0};
    ASSERT_EQ(sheaf_build_int(third, 1, &at, &expr), SHEAF_OK);
  }
  EXPECT_EQ(compiled(third), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "a model is built in 48 files at most");
  sheaf_model_builder_release(third);
}

TEST_F(Build, FromAnyThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j)
        EXPECT_EQ(binary(name("x"), name("y")), "");
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

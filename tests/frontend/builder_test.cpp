//===- builder_test.cpp - Models that a program builds --------------------===//

#include "compiler/frontend/Builder.h"

#include "compiler/driver/Compiler.h"
#include "compiler/frontend/AstPrinter.h"
#include "runtime/io/read.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace sheaf {
namespace {

using B = ModelBuilder;
using E = B::E;

constexpr auto f32 = rt::DType::F32;

/// models/treelstm.sheaf; with `wrong` a sum of `encode` has other extents on its sides.
B treeLstm(bool wrong = false) {
  B b("treelstm.cpp");
  b.dim("hidden", b.number(256));
  b.dim("vocab");
  b.dim("classes", b.number(5));
  auto tree = b.named("Tree"), token = b.token();
  b.data("Tree", {{"Leaf", {{"word", token}}}, {"Node", {{"left", tree}, {"right", tree}}}});
  auto mul = [&](E x, E y) { return b.binary(BinaryOp::Mul, x, y); };
  auto add = [&](E x, E y) { return b.binary(BinaryOp::Add, x, y); };
  auto matmul = [&](E x, E y) { return b.binary(BinaryOp::MatMul, x, y); };
  auto times = [&](int n) { return mul(b.number(n), b.name("hidden")); };
  b.param("embedding", b.tensor(f32, {"vocab", "hidden"}), "normal", {b.number(0.1)});
  b.param("leaf_w", b.tensor(f32, {"hidden", times(3)}), "glorot");
  b.param("leaf_b", b.tensor(f32, {times(wrong ? 2 : 3)}), "zeros");
  b.param("node_w", b.tensor(f32, {times(2), times(5)}), "glorot");
  b.param("node_b", b.tensor(f32, {times(5)}), "zeros");
  b.param("out_w", b.tensor(f32, {"hidden", "classes"}), "glorot");
  b.param("out_b", b.tensor(f32, {"classes"}), "zeros");

  auto name = [&](const char *of) { return b.name(of); };
  auto names = [&](std::initializer_list<const char *> all) {
    std::vector<B::P> parts;
    for (const char *one : all)
      parts.push_back(std::string_view(one) == "_" ? b.any() : b.bind(one));
    return b.matchTuple(parts);
  };
  auto sigmoid = [&](const char *of) { return b.call("sigmoid", {name(of)}); };
  auto tanh = [&](const char *of) { return b.call("tanh", {name(of)}); };
  auto state = [&] { return b.tuple({mul(sigmoid("o"), tanh("c")), name("c")}); };
  auto affine = [&](E x, const char *w, const char *bias) {
    return add(matmul(x, name(w)), name(bias));
  };
  E leaf =
      b.block({b.let(names({"i", "o", "u"}),
                     b.call("split",
                            {affine(b.index(name("embedding"), {name("word")}), "leaf_w", "leaf_b"),
                             b.number(3)})),
               b.let("c", mul(sigmoid("i"), tanh("u")))},
              state());
  E node =
      b.block({b.let(names({"hl", "cl"}), b.call("encode", {name("l")})),
               b.let(names({"hr", "cr"}), b.call("encode", {name("r")})),
               b.let(names({"i", "o", "u", "fl", "fr"}),
                     b.call("split",
                            {affine(b.call("concat", {name("hl"), name("hr")}), "node_w", "node_b"),
                             b.number(5)})),
               b.let("c", add(add(mul(sigmoid("i"), tanh("u")), mul(sigmoid("fl"), name("cl"))),
                              mul(sigmoid("fr"), name("cr"))))},
              state());
  auto hidden = b.tensor(f32, {"hidden"}), scores = b.tensor(f32, {"classes"});
  b.fn("encode", {{"t", tree}}, b.tupleOf({hidden, hidden}),
       b.match(name("t"), {{b.construct("Leaf", {b.bind("word")}), leaf},
                           {b.construct("Node", {b.bind("l"), b.bind("r")}), node}}));
  b.fn("main", {{"t", tree}}, scores,
       b.block({b.let(names({"h", "_"}), b.call("encode", {name("t")}))},
               affine(name("h"), "out_w", "out_b")));
  auto count = b.host(HostTypeKind::Int);
  b.fn("loss", {{"t", tree}, {"label", count}}, b.tensor(f32, {}),
       b.call("cross_entropy", {b.call("main", {name("t")}), name("label")}));
  b.fn("answer", {{"t", tree}}, count,
       b.call("read", {b.call("argmax", {b.call("main", {name("t")})})}));
  b.fn("accuracy", {{"t", tree}, {"label", count}}, b.host(HostTypeKind::Bool),
       b.binary(BinaryOp::Eq, b.call("answer", {name("t")}), name("label")));
  return b;
}

SourceFile treeLstmText() {
  std::ifstream file(SHEAF_MODELS "/treelstm.sheaf");
  std::stringstream text;
  text << file.rdbuf();
  return {"treelstm.sheaf", text.str()};
}

/// The bits of what a model gives for some trees.
std::vector<std::vector<float>> resultsOf(const SourceFile &source) {
  driver::CompileOptions options;
  options.dims = {{"hidden", 16}, {"vocab", 6}};
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> compiled = driver::compile(source, options, diags);
  EXPECT_EQ(diags.render(), "");
  if (!compiled)
    return {};
  const rt::Model &model = compiled->model();
  io::Vocabularies vocabularies;
  vocabularies.set("", io::Vocabulary::ofSize(6));
  io::VocabularyReader tokens(vocabularies);
  io::SourceText data{"d.jsonl",
                      "{\"Node\":[{\"Leaf\":[1]},{\"Node\":[{\"Leaf\":[2]},{\"Leaf\":[5]}]}]}\n"
                      "{\"Leaf\":[3]}\n{\"Node\":[{\"Leaf\":[4]},{\"Leaf\":[4]}]}\n"};
  io::Dataset set = io::readDataset(data, model.types, model.entry, tokens);
  rt::Session session(model, {});
  session.initParams(3);
  std::vector<rt::Instance> instances;
  for (int64_t i = 0; i < set.size(); ++i)
    instances.push_back(set.instance(i));
  std::vector<std::vector<float>> results;
  for (const rt::Outcome &outcome : session.run(instances)) {
    EXPECT_TRUE(outcome.ok());
    results.emplace_back(5);
    session.tensor(model.entry.resultType, outcome.slots).copyTo(results.back().data());
  }
  return results;
}

/// Messages without places.
std::vector<std::string> messagesOf(const SourceFile &source) {
  driver::CompileOptions options;
  Diagnostics diags(source);
  driver::check(source, options, diags);
  std::vector<std::string> messages;
  for (const Diagnostic &one : diags.all())
    messages.push_back(one.message + "|" + one.help);
  return messages;
}

TEST(Builder, ATreeLstmIsThatOfTheText) {
  SourceFile built = treeLstm().finish(), text = treeLstmText();
  EXPECT_EQ(printModule(built.syntax()->module), printModule(text.syntax()->module));
  std::vector<std::vector<float>> results = resultsOf(built);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_NE(results[0], results[1]);
  EXPECT_EQ(results, resultsOf(text));
}

TEST(Builder, MessagesAreThoseOfTheTextAtThePlacesOfTheBuilder) {
  SourceFile built = treeLstm(/*wrong=*/true).finish();
  SourceFile text("m.sheaf", printModule(built.syntax()->module));
  EXPECT_EQ(messagesOf(built), messagesOf(text));
  EXPECT_EQ(messagesOf(built).size(), 1u);
  Diagnostics diags(built);
  driver::check(built, {}, diags);
  // The lambda `add` makes the sum. Its file's text is not known, so no line of it is shown.
  std::string all = diags.render(), place = all.substr(0, all.find(": error"));
  EXPECT_NE(place.find("builder_test.cpp:"), std::string::npos) << all;
  EXPECT_EQ(all.find('^'), std::string::npos) << all;
}

TEST(Builder, PlacesAreInTextsThatAreGiven) {
  B b("m.py");
  b.addText("m.py", "x = param(3)\ny = \xC3\xA4(x) + z\n");
  auto at = [](uint32_t line, uint32_t column, uint32_t end) {
    return BuildPlace("m.py", {line, column}, {line, end});
  };
  auto number = b.host(HostTypeKind::Int);
  b.fn("main", {{"x", number}}, number,
       b.binary(BinaryOp::Add, b.name("x", at(2, 7, 8)), b.name("z", at(2, 12, 13)), at(2, 5, 13)));
  SourceFile source = std::move(b).finish();
  Diagnostics diags(source);
  EXPECT_FALSE(driver::check(source, {}, diags));
  EXPECT_EQ(diags.render(), "m.py:2:12: error: there is no 'z' here\n"
                            "y = \xC3\xA4(x) + z\n           ^\n");
}

TEST(Builder, WhatCannotBeSaidIsAnError) {
  auto errorOf = [](const std::function<E(B &)> &body) {
    B b("m");
    auto number = b.host(HostTypeKind::Int);
    b.fn("main", {{"x", number}}, number, body(b));
    std::vector<std::string> messages = messagesOf(std::move(b).finish());
    return messages.empty() ? std::string() : messages.front();
  };
  auto startsWith = [&](const std::function<E(B &)> &body, const char *message) {
    std::string error = errorOf(body);
    EXPECT_TRUE(error.starts_with(message)) << error;
  };
  EXPECT_EQ(errorOf([](B &b) { return b.name("x"); }), "");
  EXPECT_EQ(errorOf([](B &b) { return b.number(-3); }), "");
  for (const char *wrong : {"", "a b", "match", "x.y", "1x", "x // y"})
    startsWith([&](B &b) { return b.name(wrong); }, "'");
  startsWith([](B &b) { return b.number(INT64_MIN); }, "this integer is too large");
  startsWith([](B &b) { return b.number(1.0 / 0.0); }, "a number of a model is finite");
  startsWith([](B &b) { return b.match(b.name("x"), {}); }, "a match has at least one arm");
  startsWith([](B &b) { return b.index(b.name("x"), {}); }, "an index is missing");
  startsWith([](B &b) { return b.block({b.run(b.name("x"))}, b.name("x")); }, "only a call");
  startsWith([](B &b) { return b.block({b.let("X", b.name("x"))}, b.name("x")); }, "'X' begins");
  startsWith(
      [](B &b) {
        E x = b.name("x");
        return b.binary(BinaryOp::Add, x, x);
      },
      "this expression stands in two places");
  startsWith(
      [](B &b) {
        E x = b.name("x");
        for (uint32_t i = 0; i < maxNesting; ++i)
          x = b.unary(UnaryOp::Negate, x);
        return x;
      },
      "nested too deeply");
  startsWith(
      [](B &b) {
        return b.block({b.check(b.binary(BinaryOp::Lt, b.name("y"), b.number(1)))}, b.name("x"));
      },
      "there is no 'y' here");
}

TEST(Builder, EveryFormIsThatOfTheText) {
  B b("forms");
  auto number = b.host(HostTypeKind::Int), truth = b.host(HostTypeKind::Bool);
  auto x = [&] { return b.name("x"); };
  b.checkConfig({"act", "hidden_act"}, {"gelu", 2.0, true, std::monostate()}, "other", "gelu");
  b.dim("n", b.number(8), {"n_embd"});
  b.dim("m", b.binary(BinaryOp::Add, b.name("n"), b.number(1)));
  b.data("Rose",
         {{"Rose",
           {{"value", b.named("T")}, {"children", b.listOf(b.named("Rose", {b.named("T")}))}}}},
         {"T"});
  b.constant("eps", b.number(-1e-5), b.tensor(f32, {}), {"eps"});
  b.layer("Cell", {"k"}, [&] {
    b.param("w", b.tensor(f32, {"k", "n"}), "uniform", {{"lo", b.number(-1)}, {"hi", b.number(1)}},
            {"weight", "kernel"});
    b.fn("run", {{"x", b.tensor(f32, {"k"})}}, nullptr,
         b.binary(BinaryOp::MatMul, x(), b.name("w")));
  });
  b.constant("cell", b.call("Cell", {b.number(8)}), nullptr, {}, {"cell"});
  b.fn("generic", {{"f", b.functionOf({b.named("T"), number}, b.named("T"))}, {"x", b.named("T")}},
       b.named("T"), b.call("f", {x(), b.number(2)}), {.typeParams = {"T"}, .emits = nullptr});
  b.fn("rows",
       {{"x", b.tensor(f32, {B::Extent::pack("r"), "k"})},
        {"y", b.tokens({B::Extent::unknown()}, "word")},
        {"z", b.listOf(b.token("word"), 3)}},
       b.tupleOf({number, b.tokens({B::Extent::unknown()}, "word")}),
       b.block({b.run(b.call("emit", {b.number(1)})), b.check(b.truth(true), "always")},
               b.tuple({b.call("len", {b.name("z")}), b.name("y")})),
       {.typeParams = {}, .emits = number});
  b.fn("forms",
       {{"x", b.listOf(number)}, {b.matchTuple({b.bind("p"), b.any()}), b.tupleOf({truth, truth})}},
       number,
       b.match(x(),
               {{b.matchList({}), b.number(0)},
                {b.matchList({b.matchNumber(-1)}), b.number(1)},
                {b.cons(b.bind("h"), b.any()), b.name("h"), b.unary(UnaryOp::Not, b.name("p"))},
                {b.any(),
                 b.ifElse(b.name("p"), b.index(x(), {b.number(0)}),
                          b.ifElse(b.truth(false), b.number(2),
                                   b.call("len", {b.index(x(), {B::Index::slice(b.number(1),
                                                                                nullptr)})})))}}));
  b.fn("main", {{"x", b.tensor(f32, {"n"})}}, b.tensor(f32, {"n"}),
       b.block({b.let("f", b.lambda({{"a"}, {"b", number}}, b.name("a")), nullptr),
                b.let("l", b.list({b.number(1), b.number(2)}), b.listOf(number))},
               b.call("einsum", {b.text("n,nm->m"), b.call(b.field(b.name("cell"), "run"), {x()}),
                                 b.call("f", {b.field(b.name("cell"), "w"), b.number(0)})})));
  SourceFile built = std::move(b).finish();
  EXPECT_EQ(built.syntax()->errors, 0u);
  SourceFile text("forms", R"(
check config "act" else config "hidden_act" else "gelu" == "gelu" | 2.0 | true | null, "other"
dim n = config "n_embd" else 8, m = n + 1
data Rose<T> = Rose(value: T, children: list<Rose<T>>)
let eps : f32 = config "eps" else -1e-5
layer Cell(k) {
  param w : f32[k, n] = uniform(lo=-1, hi=1) as "weight" | "kernel"
  fn run(x: f32[k]) = x @ w
}
let cell = Cell(8) as "cell"
fn generic<T>(f: (T, int) -> T, x: T) -> T = f(x, 2)
fn rows(x: f32[*r, k], y: token<word>[?], z: list<token<word>>[3]) -> (int, token<word>[?]) emits int = {
  emit(1)
  check true, "always"
  (len(z), y)
}
fn forms(x: list<int>, (p, _): (bool, bool)) -> int = match x {
  [] => 0
  [-1] => 1
  h :: _ if !p => h
  _ => if p { x[0] } else if false { 2 } else { len(x[1:]) }
}
fn main(x: f32[n]) -> f32[n] = {
  let f = |a, b: int| a
  let l: list<int> = [1, 2]
  einsum("n,nm->m", cell.run(x), f(cell.w, 0))
}
)");
  Diagnostics diags(text);
  diags.take(text.syntax()->findings, text.syntax()->errors);
  EXPECT_EQ(diags.render(), "");
  EXPECT_EQ(printModule(built.syntax()->module), printModule(text.syntax()->module));
}

TEST(Builder, FilesAreUsed) {
  B b("m");
  b.use("scale");
  b.use("scale", "s");
  auto number = b.host(HostTypeKind::Int);
  b.fn("main", {{"x", number}}, number,
       b.call("twice", {b.call(b.field(b.name("s"), "twice"), {b.name("x")})}));
  SourceFile source =
      std::move(b).finish([](const std::string &used, const std::string &) -> UsedFile {
        return {used, "fn twice(x: int) -> int = x + x + y", {}};
      });
  EXPECT_EQ(source.fileCount(), 2u);
  Diagnostics diags(source);
  EXPECT_FALSE(driver::check(source, {}, diags));
  EXPECT_TRUE(diags.render().starts_with("scale:1:35: error: there is no 'y' here\n"))
      << diags.render();
  EXPECT_EQ(diags.errorCount(), 1u) << diags.render();
}

} // namespace
} // namespace sheaf

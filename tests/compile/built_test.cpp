// Models that a program builds, against the same as texts.
#include "tests/artefact/message_of.h"

#include "sheaf/builder.hpp"
#include "sheaf/train.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace fs = std::filesystem;

namespace {

using B = sheaf::ModelBuilder;
using E = B::E;
using T = B::T;

class Built : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  }
};

/// The bits of what a model gives for each line of `data`, alone and in one batch.
std::vector<std::vector<float>> resultsOf(const sheaf::CompileOptions &options,
                                          const std::string &data) {
  sheaf::Model model = sheaf::compile(options);
  std::string path = fs::temp_directory_path() / ("sheaf-built-" + std::to_string(getpid()));
  std::ofstream(path) << data;
  sheaf::Values values = sheaf::readValues(model, path);
  fs::remove(path);
  std::vector<std::vector<float>> all, alone;
  sheaf::Session session;
  auto run = [&](const sheaf::Batch &batch, std::vector<std::vector<float>> &to) {
    sheaf::Result result = session.run(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(result.error(i), "");
      sheaf::Tensor tensor = result[i].tensor();
      to.emplace_back(tensor.data<float>(), tensor.data<float>() + tensor.size());
    }
  };
  sheaf::Batch batch(model);
  batch.add(values);
  run(batch, all);
  for (uint64_t i = 0; i < values.size(); ++i) {
    sheaf::Batch one(model);
    one.add(values, {i});
    run(one, alone);
  }
  EXPECT_EQ(all, alone);
  return all;
}

/// Compiles what was built, what it is as a text, and the text that a person wrote.
void expectSame(sheaf::Source built, const std::string &text, const std::string &data,
                std::size_t instances, sheaf::CompileOptions options = {}) {
  options.seed = 3;
  options.source = built;
  std::vector<std::vector<float>> results = resultsOf(options, data);
  ASSERT_EQ(results.size(), instances);
  EXPECT_NE(results[0], results[1]);
  options.source.reset();
  options.text = text;
  EXPECT_EQ(results, resultsOf(options, data));
  options.text = built.text();
  EXPECT_EQ(results, resultsOf(options, data)) << built.text();
}

E add(B &b, E x, E y, sheaf::Place at = B::Here::current()) {
  return b.binary(SHEAF_ADD, x, y, at);
}
E mul(B &b, E x, E y) { return b.binary(SHEAF_MUL, x, y); }
E matmul(B &b, E x, E y) { return b.binary(SHEAF_MATMUL, x, y); }

/// models/treelstm.sheaf without what measures it.
sheaf::Source treeLstm() {
  B b("treelstm.cpp");
  b.dim("hidden", b.number(256));
  b.dim("vocab");
  b.dim("classes", b.number(5));
  T tree = b.named("Tree"), token = b.token();
  b.data("Tree", {{"Leaf", {{"word", token}}}, {"Node", {{"left", tree}, {"right", tree}}}});
  auto times = [&](int n) { return mul(b, b.number(n), b.name("hidden")); };
  b.param("embedding", b.tensor(sheaf::f32, {"vocab", "hidden"}), "normal", {b.number(0.1)});
  b.param("leaf_w", b.tensor(sheaf::f32, {"hidden", times(3)}), "glorot");
  b.param("leaf_b", b.tensor(sheaf::f32, {times(3)}), "zeros");
  b.param("node_w", b.tensor(sheaf::f32, {times(2), times(5)}), "glorot");
  b.param("node_b", b.tensor(sheaf::f32, {times(5)}), "zeros");
  b.param("out_w", b.tensor(sheaf::f32, {"hidden", "classes"}), "glorot");
  b.param("out_b", b.tensor(sheaf::f32, {"classes"}), "zeros");

  auto name = [&](const char *of) { return b.name(of); };
  auto names = [&](std::initializer_list<const char *> all) {
    std::vector<B::P> parts;
    for (const char *one : all)
      parts.push_back(std::string(one) == "_" ? b.any() : b.bind(one));
    return b.matchTuple(parts);
  };
  auto sigmoid = [&](const char *of) { return b.call("sigmoid", {name(of)}); };
  auto tanh = [&](const char *of) { return b.call("tanh", {name(of)}); };
  auto state = [&] { return b.tuple({mul(b, sigmoid("o"), tanh("c")), name("c")}); };
  auto affine = [&](E x, const char *w, const char *bias) {
    return add(b, matmul(b, x, name(w)), name(bias));
  };
  E word = b.index(name("embedding"), {name("word")});
  E leaf = b.block({b.let(names({"i", "o", "u"}),
                          b.call("split", {affine(word, "leaf_w", "leaf_b"), b.number(3)})),
                    b.let("c", mul(b, sigmoid("i"), tanh("u")))},
                   state());
  E both = b.call("concat", {name("hl"), name("hr")});
  E node = b.block(
      {b.let(names({"hl", "cl"}), b.call("encode", {name("l")})),
       b.let(names({"hr", "cr"}), b.call("encode", {name("r")})),
       b.let(names({"i", "o", "u", "fl", "fr"}),
             b.call("split", {affine(both, "node_w", "node_b"), b.number(5)})),
       b.let("c", add(b, add(b, mul(b, sigmoid("i"), tanh("u")), mul(b, sigmoid("fl"), name("cl"))),
                      mul(b, sigmoid("fr"), name("cr"))))},
      state());
  T hidden = b.tensor(sheaf::f32, {"hidden"});
  b.fn("encode", {{"t", tree}}, b.tupleOf({hidden, hidden}),
       b.match(name("t"), {{b.construct("Leaf", {b.bind("word")}), leaf},
                           {b.construct("Node", {b.bind("l"), b.bind("r")}), node}}));
  b.fn("main", {{"t", tree}}, b.tensor(sheaf::f32, {"classes"}),
       b.block({b.let(names({"h", "_"}), b.call("encode", {name("t")}))},
               affine(name("h"), "out_w", "out_b")));
  return std::move(b).finish();
}

TEST_F(Built, ATreeLstmHasTheBitsOfTheText) {
  sheaf::CompileOptions options;
  options.dims = {{"hidden", 16}, {"vocab", 6}};
  std::ostringstream text;
  text << std::ifstream(SHEAF_MODELS "/treelstm.sheaf").rdbuf();
  expectSame(treeLstm(), text.str(),
             "{\"Node\":[{\"Leaf\":[1]},{\"Node\":[{\"Leaf\":[2]},{\"Leaf\":[5]}]}]}\n"
             "{\"Leaf\":[3]}\n{\"Node\":[{\"Leaf\":[4]},{\"Leaf\":[4]}]}\n",
             3, options);
}

TEST_F(Built, LoopsAndClosuresHaveTheBitsOfTheText) {
  B b("loops.cpp");
  T vector = b.tensor(sheaf::f32, {"n"}), number = b.host(SHEAF_INT);
  auto x = [&] { return b.name("x"); };
  auto steps = [&] { return b.name("steps"); };
  b.dim("n", b.number(5));
  b.param("w", b.tensor(sheaf::f32, {"n", "n"}), "glorot");
  b.fn("twice", {{"f", b.functionOf({vector}, vector)}, {"x", vector}}, vector,
       b.call("f", {b.call("f", {x()})}));
  E energy = b.call("read", {b.call("sum", {mul(b, x(), x())})});
  b.fn("settle", {{"x", vector}, {"steps", number}}, vector,
       b.ifElse(b.binary(SHEAF_OR, b.binary(SHEAF_EQ, steps(), b.number(0)),
                         b.binary(SHEAF_LT, energy, b.number(0.01))),
                x(),
                b.call("settle", {b.call("tanh", {matmul(b, x(), b.name("w"))}),
                                  b.binary(SHEAF_SUB, steps(), b.number(1))})));
  E settled = b.call("twice", {b.lambda({{"y"}}, b.call("settle", {b.name("y"), steps()})), x()});
  E step = b.lambda({{"sum"}, {b.matchTuple({b.bind("i"), b.bind("x")})}},
                    add(b, mul(b, b.name("sum"), b.name("decay")),
                        mul(b, settled, b.call("f32", {b.name("i")}))));
  b.fn("main", {{"xs", b.listOf(vector)}, {"steps", number}}, vector,
       b.block({b.check(b.binary(SHEAF_GE, steps(), b.number(0)), "no steps"),
                b.let("decay", b.number(0.5))},
               b.call("fold", {step, b.call("zeros", {b.name("n")}),
                               b.call("enumerate", {b.name("xs")})})));
  expectSame(std::move(b).finish(), R"(
dim n = 5
param w : f32[n, n] = glorot
fn twice(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = f(f(x))
fn settle(x: f32[n], steps: int) -> f32[n] =
  if steps == 0 || read(sum(x * x)) < 0.01 { x } else { settle(tanh(x @ w), steps - 1) }
fn main(xs: list<f32[n]>, steps: int) -> f32[n] = {
  check steps >= 0, "no steps"
  let decay = 0.5
  fold(|sum, (i, x)| sum * decay + twice(|y| settle(y, steps), x) * f32(i), zeros(n),
       enumerate(xs))
}
)",
             "{\"xs\":[[1,2,3,4,5],[0.5,0.25,-1,2,-2],[0,0,0.001,0,0]],\"steps\":3}\n"
             "{\"xs\":[[1,2,3,4,5],[0.5,0.25,-1,2,-2]],\"steps\":1}\n"
             "{\"xs\":[],\"steps\":2}\n",
             3);
}

TEST_F(Built, LayersDataAndPatternsHaveTheBitsOfTheText) {
  B b("shapes.cpp");
  T vector = b.tensor(sheaf::f32, {"n"}), of = b.named("T"), truth = b.host(SHEAF_BOOL);
  T shape = b.named("Shape", {vector});
  auto name = [&](const char *of) { return b.name(of); };
  b.dim("n", b.number(4));
  b.data("Shape",
         {{"Point", {}},
          {"Line", {{"ends", b.tupleOf({of, of})}}},
          {"Path", {{"points", b.listOf(of)}}}},
         {"T"});
  b.layer("Linear", {"k", "m"}, [&] {
    b.param("w", b.tensor(sheaf::f32, {"k", "m"}), "uniform", {b.number(0.5)}, {"weight"});
    b.fn("run", {{"x", b.tensor(sheaf::f32, {"k"})}}, b.tensor(sheaf::f32, {"m"}),
         matmul(b, name("x"), name("w")));
  });
  auto linear = [&] { return b.call("Linear", {name("n"), name("n")}); };
  b.constant("first", linear(), {}, {}, {"fc"});
  b.constant("others", mul(b, b.list({linear()}), b.number(2)));
  b.constant("quarter", b.number(0.25));
  auto run = [&](E layer, E x) { return b.call(b.field(layer, "run"), {x}); };
  auto other = [&](int i) { return b.index(name("others"), {b.number(i)}); };
  auto on = [&](B::P pattern, B::P second) { return b.matchTuple({pattern, second}); };
  auto path = [&](B::P points) { return b.construct("Path", {points}); };
  b.fn(
      "total", {{"s", shape}, {"far", truth}}, vector,
      b.match(
          b.tuple({name("s"), name("far")}),
          {{on(b.construct("Point"), b.any()), b.call("zeros", {name("n")})},
           {on(b.construct("Line", {b.matchTuple({b.bind("a"), b.bind("b")})}), b.matchTruth(true)),
            b.binary(SHEAF_SUB, run(name("first"), name("a")), name("b"))},
           {on(b.construct("Line", {b.matchTuple({b.bind("a"), b.any()})}), b.matchTruth(false)),
            run(other(1), name("a"))},
           {on(path(b.matchList({})), b.any()), b.call("ones", {name("n")})},
           {on(path(b.matchList({b.bind("x")})), b.any()), run(other(0), name("x"))},
           {on(path(b.cons(b.bind("x"), b.bind("xs"))), b.bind("f")), name("x"),
            b.binary(SHEAF_AND, name("f"),
                     b.binary(SHEAF_GT, b.call("len", {name("xs")}), b.number(2)))},
           {on(path(b.cons(b.bind("x"), b.bind("xs"))), b.bind("f")),
            add(b, mul(b, name("x"), name("quarter")),
                b.call("total", {b.call("Path", {name("xs")}), b.unary(SHEAF_NOT, name("f"))}))}}));
  b.fn("main", {{"s", shape}, {"far", truth}}, vector, b.call("total", {name("s"), name("far")}));
  expectSame(std::move(b).finish(), R"(
dim n = 4
data Shape<T> = Point | Line(ends: (T, T)) | Path(points: list<T>)
layer Linear(k, m) {
  param w : f32[k, m] = uniform(0.5) as "weight"
  fn run(x: f32[k]) -> f32[m] = x @ w
}
let first = Linear(n, n) as "fc"
let others = [Linear(n, n)] * 2
let quarter = 0.25
fn total(s: Shape<f32[n]>, far: bool) -> f32[n] = match (s, far) {
  (Point, _) => zeros(n)
  (Line((a, b)), true) => first.run(a) - b
  (Line((a, _)), false) => others[1].run(a)
  (Path([]), _) => ones(n)
  (Path([x]), _) => others[0].run(x)
  (Path(x :: xs), f) if f && len(xs) > 2 => x
  (Path(x :: xs), f) => x * quarter + total(Path(xs), !f)
}
fn main(s: Shape<f32[n]>, far: bool) -> f32[n] = total(s, far)
)",
             "{\"s\":{\"Point\":[]},\"far\":true}\n"
             "{\"s\":{\"Line\":[[[1,2,3,4],[4,3,2,1]]]},\"far\":true}\n"
             "{\"s\":{\"Line\":[[[1,2,3,4],[4,3,2,1]]]},\"far\":false}\n"
             "{\"s\":{\"Path\":[[]]},\"far\":false}\n"
             "{\"s\":{\"Path\":[[[1,2,3,4]]]},\"far\":false}\n"
             "{\"s\":{\"Path\":[[[1,2,3,4],[0,1,0,1],[2,2,2,2],[1,1,1,1]]]},\"far\":false}\n"
             "{\"s\":{\"Path\":[[[1,2,3,4],[0,1,0,1],[2,2,2,2],[1,1,1,1]]]},\"far\":true}\n",
             7);
}

/// Every form, and each member of every enumeration.
TEST_F(Built, DeclarationsThatShareAPlaceAreAllThere) {
  B b("loop.cpp");
  T vector = b.tensor(sheaf::f32, {3});
  E sum = b.name("x");
  for (const char *name : {"w2", "w0", "w1"}) {
    b.param(name, vector, "normal", {b.number(0.5)});
    sum = add(b, mul(b, sum, b.name(name)), b.name(name));
  }
  b.fn("main", {{"x", vector}}, vector, sum);
  expectSame(std::move(b).finish(),
             "param w2 : f32[3] = normal(0.5)\nparam w0 : f32[3] = normal(0.5)\n"
             "param w1 : f32[3] = normal(0.5)\n"
             "fn main(x: f32[3]) -> f32[3] = ((x * w2 + w2) * w0 + w0) * w1 + w1\n",
             "{\"x\": [1, 2, 3]}\n{\"x\": [0, -1, 5]}\n", 2);
}

TEST_F(Built, EveryFormIsThatOfTheText) {
  B b("forms");
  T number = b.host(SHEAF_INT), truth = b.host(SHEAF_BOOL), of = b.named("T");
  auto x = [&] { return b.name("x"); };
  b.use("lib/lstm.sheaf", "lstm");
  b.use("lib/linear.sheaf");
  b.checkConfig({"act", "hidden_act"}, {"gelu", 2.0, true, std::monostate()}, "other", "gelu");
  b.checkConfig({"bias"}, {false}, "no bias");
  b.dim("n", b.number(8), {"n_embd"});
  b.dim("m", add(b, b.name("n"), b.number(1)));
  b.data("Rose", {{"Rose", {{"value", of}, {"children", b.listOf(b.named("Rose", {of}))}}}}, {"T"});
  b.constant("eps", b.number(-1e-5), b.tensor(sheaf::f32), {"eps"});
  b.layer("Cell", {"k"}, [&] {
    b.param("w", b.tensor(sheaf::f32, {"k", "n"}), "uniform",
            {{"lo", b.number(-1)}, {"hi", b.number(1)}}, {"weight", "kernel"});
    b.fn("run", {{"x", b.tensor(sheaf::f32, {"k"})}}, {}, matmul(b, x(), b.name("w")));
  });
  b.constant("cell", b.call("Cell", {b.number(8)}), {}, {}, {"cell"});
  b.fn("generic", {{"f", b.functionOf({of, number}, of)}, {"x", of}}, of,
       b.call("f", {x(), b.number(2)}), {.typeParams = {"T"}});
  b.fn("elements",
       {{"a", b.tensor(sheaf::f16)},
        {"b", b.tensor(sheaf::bf16, {3})},
        {"c", b.tensor(sheaf::i32, {3})},
        {"d", b.tensor(sheaf::i64, {3})},
        {"e", b.tensor(sheaf::boolean)},
        {"f", b.host(SHEAF_FLOAT)},
        {"g", b.token()},
        {"h", b.named("LSTM", {}, "lstm")}},
       b.tupleOf({}), b.tuple({}));
  b.fn("rows",
       {{"x", b.tensor(sheaf::f32, {B::Extent::pack("r"), "k"})},
        {"y", b.tokens({B::Extent::unknown()}, "word")},
        {"z", b.listOf(b.token("word"), 3)}},
       b.tupleOf({number, b.tokens({B::Extent::unknown()}, "word")}),
       b.block({b.run(b.call("emit", {b.number(1)})), b.check(b.truth(true), "a \"b\"\n\\"),
                b.check(b.truth(true))},
               b.tuple({b.call("len", {b.name("z")}), b.name("y")})),
       {.typeParams = {}, .emits = number});
  b.fn("patterns",
       {{"x", b.listOf(number)}, {b.matchTuple({b.bind("p"), b.any()}), b.tupleOf({truth, truth})}},
       number,
       b.match(x(), {{b.matchList({}), b.number(0)},
                     {b.matchList({b.matchNumber(-1)}), b.number(1)},
                     {b.cons(b.bind("h"), b.any()), b.name("h"), b.unary(SHEAF_NOT, b.name("p"))},
                     {b.construct("Leaf", {b.matchTruth(false)}, "lstm"), b.number(4)},
                     {b.any(), b.ifElse(b.name("p"), b.index(x(), {b.number(0)}),
                                        b.ifElse(b.truth(false), b.number(2), b.number(3)))}}));
  using Slice = B::Index;
  b.fn("slices", {{"x", b.listOf(number)}}, {},
       b.list({b.index(x(), {Slice::slice(b.number(1), {})}),
               b.index(x(), {Slice::slice({}, b.number(2)), Slice::slice({}, {}), b.number(0)}),
               b.index(x(), {Slice::slice(b.number(1), b.number(2))})}));
  std::vector<E> all{b.unary(SHEAF_NEGATE, x())};
  for (int op = SHEAF_OR; op <= SHEAF_MATMUL; ++op)
    all.push_back(b.binary(static_cast<sheaf_binary>(op), x(), b.name("y")));
  b.fn("operators", {{"x", number}, {"y", number}}, {}, b.list(all));
  b.fn("main", {{"x", b.tensor(sheaf::f32, {"n"})}}, b.tensor(sheaf::f32, {"n"}),
       b.block({b.let("f", b.lambda({{"a"}, {"b", number}}, b.name("a"))),
                b.let("l", b.list({b.number(1), b.number(2)}), b.listOf(number))},
               b.call("einsum", {b.text("n,nm->m"), b.call(b.field(b.name("cell"), "run"), {x()}),
                                 b.call("f", {b.field(b.name("cell"), "w"), b.number(0)})})));
  EXPECT_EQ(std::move(b).finish().text(), R"(use "lib/lstm.sheaf" as lstm
use "lib/linear.sheaf"

check config "act" else config "hidden_act" else "gelu" == "gelu" | 2 | true | null, "other"
check config "bias" == false, "no bias"

dim n = config "n_embd" else 8
dim m = n + 1

data Rose<T> = Rose(value: T, children: list<Rose<T>>)

let eps: f32 = config "eps" else -1e-05

layer Cell(k) {
  param w : f32[k, n] = uniform(lo=-1, hi=1) as "weight" | "kernel"
  fn run(x: f32[k]) = x @ w
}

let cell = Cell(8) as "cell"

fn generic<T>(f: (T, int) -> T, x: T) -> T = f(x, 2)

fn elements(a: f16, b: bf16[3], c: i32[3], d: i64[3], e: bool[], f: float, g: token, h: lstm.LSTM) -> () =
  ()

fn rows(x: f32[*r, k], y: token<word>[?], z: list<token<word>>[3]) -> (int, token<word>[?]) emits int = {
  emit(1)
  check true, "a \"b\"\n\\"
  check true
  (len(z), y)
}

fn patterns(x: list<int>, (p, _): (bool, bool)) -> int = match x {
  [] => 0
  [-1] => 1
  h :: _ if !p => h
  lstm.Leaf(false) => 4
  _ => if p { x[0] } else if false { 2 } else { 3 }
}

fn slices(x: list<int>) = [x[1:], x[:2, :, 0], x[1:2]]

fn operators(x: int, y: int) =
  [-x, x || y, x && y, x == y, x != y, x < y, x <= y, x > y, x >= y, x :: y, x + y, x - y, x * y, x / y, x % y, x @ y]

fn main(x: f32[n]) -> f32[n] = {
  let f = |a, b: int| a
  let l: list<int> = [1, 2]
  einsum("n,nm->m", cell.run(x), f(cell.w, 0))
}
)");
}

TEST_F(Built, TypesAndPatternsAreShared) {
  B b("shared.cpp");
  T vector = b.tensor(sheaf::f32, {2}), number = b.host(SHEAF_INT);
  T pair = b.tupleOf({vector, vector});
  B::P x = b.bind("x"), rest = b.any();
  B::P first = b.matchTuple({x, rest});
  b.data("Two", {{"Vectors", {{"of", pair}}}, {"Numbers", {{"of", b.tupleOf({number, number})}}}});
  b.fn("main", {{"t", b.named("Two")}, {first, pair}}, vector,
       b.block({b.let("y", b.name("x"))},
               b.match(b.name("t"),
                       {{b.construct("Vectors", {first}), add(b, b.name("x"), b.name("y"))},
                        {b.construct("Numbers", {first}),
                         mul(b, b.name("y"), b.call("f32", {b.name("x")}))}})));
  expectSame(std::move(b).finish(), R"(
data Two = Vectors(of: (f32[2], f32[2])) | Numbers(of: (int, int))
fn main(t: Two, (x, _): (f32[2], f32[2])) -> f32[2] = {
  let y = x
  match t {
    Vectors((x, _)) => x + y
    Numbers((x, _)) => y * f32(x)
  }
}
)",
             "{\"t\":{\"Vectors\":[[[1,2],[3,4]]]},\"arg1\":[[5,6],[7,8]]}\n"
             "{\"t\":{\"Numbers\":[[3,4]]},\"arg1\":[[5,6],[7,8]]}\n",
             2);
}

/// What is as deep as it may be does not end the stack of who walks it.
TEST_F(Built, NodesAreAsDeepAsIsAllowed) {
  auto compiled = [](bool isDeepType) {
    B b("deep.cpp");
    T number = b.host(SHEAF_INT), type = number;
    B::P pattern = b.any();
    E sum = b.name("n");
    for (int i = 1; i < 480; ++i) {
      type = b.listOf(type);
      pattern = b.cons(b.any(), pattern);
      sum = add(b, b.number(1), sum);
    }
    E other = b.block({b.let("n", b.call("len", {b.name("xs")}))}, sum);
    b.fn("main", {{"xs", b.listOf(isDeepType ? type : number)}}, number,
         b.match(b.name("xs"), {{pattern, b.number(0)}, {b.any(), other}}));
    sheaf::CompileOptions options;
    options.source = std::move(b).finish();
    return sheaf::compile(options);
  };
  EXPECT_EQ(compiled(false).arguments(), 1u);
  std::string message = messageOf([&] { compiled(true); }, SHEAF_NOT_COMPILED);
  EXPECT_NE(message.find("error: this type is too large"), std::string::npos) << message;
}

/// Two places that are not the same, and what is shown of them.
TEST_F(Built, ErrorsAreAtThePlacesOfWhoBuilds) {
  B b("toy/model.toy");
  b.addText("toy/model.toy", "net x\n  = \xC3\xA4(x) * y\n");
  auto at = [](int64_t line, int64_t column, int64_t end) {
    return sheaf::Place("toy/model.toy", line, column, line, end);
  };
  T vector = b.tensor(sheaf::f32, {3}, at(1, 5, 6));
  E x = b.name("x", at(2, 7, 8)), y = b.name("y", at(2, 12, 13));
  b.fn("main", {{"x", vector}}, vector, b.binary(SHEAF_MUL, x, y, at(2, 5, 13)), at(1, 1, 6));
  int line = __LINE__ + 1;
  b.fn("wide", {{"x", vector}}, b.tensor(sheaf::f32, {4}), b.name("x"));
  b.fn("a b", {{"x", vector}}, vector, b.name("x"), sheaf::Place("unseen.toy", 7, 600));
  sheaf::CompileOptions options;
  options.source = std::move(b).finish();
  try {
    sheaf::compile(options);
    FAIL() << "nothing was thrown";
  } catch (const sheaf::CompileError &error) {
    ASSERT_EQ(error.diagnostics().size(), 3u) << error.text();
    const sheaf::Diagnostic &none = error.diagnostics()[0];
    EXPECT_EQ(none.text, "toy/model.toy:2:12: error: there is no 'y' here\n"
                         "  = \xC3\xA4(x) * y\n           ^\n");
    EXPECT_EQ(error.place().file, "toy/model.toy");
    EXPECT_EQ(error.place().line, 2);
    EXPECT_EQ(none.endColumn, 13);
    const sheaf::Diagnostic &type = error.diagnostics()[1];
    EXPECT_EQ(type.file, __FILE__);
    EXPECT_EQ(type.line, line) << type.text;
    EXPECT_NE(type.message.find("f32[4]"), std::string::npos) << type.text;
    EXPECT_EQ(error.diagnostics()[2].file, "unseen.toy");
    EXPECT_EQ(error.diagnostics()[2].line, 7);
  }
}

TEST_F(Built, OneIsCompiledManyTimes) {
  B b("uses");
  b.use("scale");
  b.dim("n", b.number(2));
  T vector = b.tensor(sheaf::f32, {"n"});
  b.fn("main", {{"x", vector}}, vector, b.call("scale", {b.name("x")}));
  sheaf::CompileOptions options;
  options.source = std::move(b).finish();
  std::string factor;
  options.resolve = [&](const std::string &used, const std::string &by) {
    EXPECT_EQ(used + " " + by, "scale uses");
    return sheaf::UsedFile{"scale", "fn scale(x: f32[n]) -> f32[n] = x * " + factor};
  };
  using Floats = std::vector<std::vector<float>>;
  factor = "2.0";
  EXPECT_EQ(resultsOf(options, "[1, 2]\n"), (Floats{{2, 4}}));
  factor = "3.0";
  options.dims = {{"n", 3}};
  EXPECT_EQ(resultsOf(options, "[1, 2, 3]\n"), (Floats{{3, 6, 9}}));
  EXPECT_NE(sheaf::explain(options).text, "");
  options.resolve = nullptr;
  EXPECT_NE(messageOf([&] { sheaf::compile(options); }, SHEAF_NOT_COMPILED).find("scale"),
            std::string::npos);
}

} // namespace

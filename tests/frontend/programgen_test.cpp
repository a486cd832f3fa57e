// Programs made from source: they verify, and have the form that later stages rely on.

#include "compiler/frontend/ProgramGen.h"
#include "compiler/ir/Program.h"
#include "compiler/ops/Verify.h"
#include "tests/frontend/parsed.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sheaf {
namespace {

class Generated : public Parsed {
public:
  explicit Generated(std::string text, const std::string &entry = "main", bool training = false)
      : Parsed(std::move(text)), context(registry()) {
    CheckOptions options;
    options.entry = entry;
    CheckedModule checked = check(module, options, diags);
    if (checked.ok)
      program = generateProgram(checked, context, entry, diags, training);
  }

  bool verifies() {
    return program && mlir::succeeded(mlir::verify(*program)) && !diags.hasErrors();
  }
  std::string text() {
    std::string out;
    llvm::raw_string_ostream stream(out);
    program->print(stream);
    return out;
  }
  mlir::func::FuncOp function(llvm::StringRef name) {
    return program->lookupSymbol<mlir::func::FuncOp>(name);
  }
  template <typename Op> int count() {
    int n = 0;
    program->walk([&](Op) { ++n; });
    return n;
  }
  int functions() { return count<mlir::func::FuncOp>(); }
  /// How many applies of an operator there are.
  int applies(llvm::StringRef name) {
    int n = 0;
    program->walk([&](ir::ApplyOp op) { n += op.getOp() == name; });
    return n;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> program;

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry result;
    ops::registerDialects(result);
    return result;
  }
};

#define ASSERT_PROGRAM(generated) ASSERT_TRUE((generated).verifies()) << (generated).diags.render()

const char *generatedTreeLstm = R"(
dim hidden = 256, vocab = 20000, classes = 5

data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)

param embedding : f32[vocab, hidden] = normal(0.1)
param leaf_w    : f32[hidden, 3*hidden] = glorot
param leaf_b    : f32[3*hidden] = zeros
param node_w    : f32[2*hidden, 5*hidden] = glorot
param node_b    : f32[5*hidden] = zeros
param out_w     : f32[hidden, classes] = glorot
param out_b     : f32[classes] = zeros

fn encode(t: Tree) -> (f32[hidden], f32[hidden]) = match t {
  Leaf(word) => {
    let (i, o, u) = split(embedding[word] @ leaf_w + leaf_b, 3)
    let c = sigmoid(i) * tanh(u)
    (sigmoid(o) * tanh(c), c)
  }
  Node(l, r) => {
    let (hl, cl) = encode(l)
    let (hr, cr) = encode(r)
    let (i, o, u, fl, fr) = split(concat(hl, hr) @ node_w + node_b, 5)
    let c = sigmoid(i) * tanh(u) + sigmoid(fl) * cl + sigmoid(fr) * cr
    (sigmoid(o) * tanh(c), c)
  }
}

fn main(t: Tree) -> f32[classes] = { let (h, _) = encode(t); h @ out_w + out_b }
)";

const char *generatedTagger = R"(
dim hidden = 256, vocab = 20000, tags = 9

layer LSTM(input, state) {
  param w : f32[input + state, 4*state] = glorot
  param b : f32[4*state] = zeros
  fn step((h, c): (f32[state], f32[state]), x: f32[input]) -> (f32[state], f32[state]) = {
    let (i, f, o, u) = split(concat(x, h) @ w + b, 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(u)
    (sigmoid(o) * tanh(c2), c2)
  }
  fn run(xs: list<f32[input]>) -> list<f32[state]> =
    map(|(h, _)| h, scan(step, (zeros(state), zeros(state)), xs))
}

let forward = LSTM(hidden, hidden)
let backward = LSTM(hidden, hidden)
param embedding : f32[vocab, hidden] = normal(0.1)
param out_w     : f32[2*hidden, tags] = glorot

fn main(words: list<token>) -> list<f32[tags]> = {
  let xs = map(|w| embedding[w], words)
  let fs = forward.run(xs)
  let bs = reverse(backward.run(reverse(xs)))
  map(|(f, b)| concat(f, b) @ out_w, zip(fs, bs))
}
)";

TEST(ProgramGen, TreeLstm) {
  Generated program(generatedTreeLstm);
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.functions(), 2);
  EXPECT_EQ(program.count<ir::ParamOp>(), 7);
  EXPECT_EQ(program.count<ir::MatchOp>(), 1);
  auto main = program.function("main");
  ASSERT_TRUE(main && main.isPublic());
  EXPECT_TRUE(program.function("encode").isPrivate());
  EXPECT_EQ(main.getArgAttrOfType<mlir::StringAttr>(0, "sheaf.name").getValue(), "t");
  // The text form reads back.
  auto again = mlir::parseSourceString<mlir::ModuleOp>(program.text(), &program.context);
  ASSERT_TRUE(again);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*again)));
  // Every op knows its place; a function is named there as its file names it.
  program.program->walk([&](mlir::Operation *op) {
    mlir::Location place = op->getLoc();
    if (mlir::isa<mlir::func::FuncOp>(op)) {
      ASSERT_TRUE(mlir::isa<mlir::NameLoc>(place));
      place = mlir::cast<mlir::NameLoc>(place).getChildLoc();
    }
    EXPECT_TRUE(mlir::isa<mlir::FileLineColLoc>(place));
  });
}

TEST(ProgramGen, Tagger) {
  Generated program(generatedTagger);
  ASSERT_PROGRAM(program);
  std::vector<std::string> params;
  program.program->walk([&](ir::ParamOp op) { params.push_back(op.getSymName().str()); });
  EXPECT_EQ(params, (std::vector<std::string>{"forward.w", "forward.b", "backward.w", "backward.b",
                                              "embedding", "out_w"}));
  EXPECT_TRUE(program.function("forward.step"));
  EXPECT_TRUE(program.function("backward.run"));
}

TEST(ProgramGen, GenericFoldHasAnInstanceForEachType) {
  Generated program(R"(
    data Rose<T> = Rose(value: T, children: list<Rose<T>>)
    fn size<T>(t: Rose<T>) -> int = match t {
      Rose(_, []) => 1
      Rose(_, kids) => fold(|n, k| n + size(k), 1, kids)
    }
    fn main(a: Rose<token>, b: Rose<(int, f32[2])>) -> int = size(a) + size(b)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.functions(), 3);
  EXPECT_TRUE(program.function("size<token>"));
  EXPECT_TRUE(program.function("size<(int, f32[2])>"));
  EXPECT_TRUE(program.program->lookupSymbol<ir::DataOp>("Rose<(int, f32[2])>"));
}

TEST(ProgramGen, PerInstanceDims) {
  Generated program(R"(
    dim h = 8, classes = 3
    param emb : f32[100, h] = normal(0.1)
    param out : f32[h, classes] = glorot
    fn tag(words: token[n]) -> f32[n, classes] = emb[words] @ out + ones(n, classes)
    fn main(words: token[n]) -> f32[n, classes] = tag(words)
  )");
  ASSERT_PROGRAM(program);
  auto main = program.function("main");
  auto dims = main.getArgAttrOfType<mlir::ArrayAttr>(0, "sheaf.dims");
  ASSERT_TRUE(dims);
  EXPECT_EQ(mlir::cast<mlir::StringAttr>(dims[0]).getValue(), "n");
  auto resultDims = main.getResultAttrOfType<mlir::ArrayAttr>(0, "sheaf.dims");
  EXPECT_EQ(resultDims.size(), 2u);
  EXPECT_EQ(program.count<ir::DimOp>(), 1);
}

TEST(ProgramGen, LengthsOfLists) {
  Generated program(R"(
    dim k = 3
    data Scene = Scene(marks: list<int>, points: list<list<f32[2]>[k]>)
    fn main(s: Scene, xs: list<f32[n]>[2*n], ys: list<int>) -> (int, list<int>[k]) =
      (len(xs), range(k))
  )");
  ASSERT_PROGRAM(program);
  auto main = program.function("main");
  auto texts = [](mlir::ArrayAttr array) {
    std::vector<std::string> found;
    if (array)
      for (auto text : array.getAsRange<mlir::StringAttr>())
        found.push_back(text.getValue().str());
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(main.getArgAttrOfType<mlir::ArrayAttr>(0, "sheaf.lengths")), Texts());
  EXPECT_EQ(texts(main.getArgAttrOfType<mlir::ArrayAttr>(1, "sheaf.lengths")), Texts{"2*n"});
  EXPECT_EQ(texts(main.getArgAttrOfType<mlir::ArrayAttr>(2, "sheaf.lengths")), Texts());
  EXPECT_EQ(texts(main.getResultAttrOfType<mlir::ArrayAttr>(0, "sheaf.lengths")), Texts{"3"});
  auto data = program.program->lookupSymbol<ir::DataOp>("Scene");
  ASSERT_TRUE(data);
  EXPECT_EQ(texts(data->getAttrOfType<mlir::ArrayAttr>("sheaf.lengths")), (Texts{"?", "?", "3"}));
  // Of the length, and that elements have one extent.
  EXPECT_EQ(program.count<ir::CheckOp>(), 2);
}

TEST(ProgramGen, ConstantDimsMakeClones) {
  Generated program(R"(
    dim h = 8
    fn square(x: f32[n, n]) -> f32[n, n] = x @ x
    fn main(a: f32[h, h], b: f32[2*h, 2*h], c: f32[m, m]) -> (f32[h, h], f32[2*h, 2*h], f32[m, m]) =
      (square(square(a)), square(b), square(c))
  )");
  ASSERT_PROGRAM(program);
  // Three squares; the entry's two m's need a check, so it has a function around it.
  EXPECT_EQ(program.functions(), 5);
  EXPECT_EQ(program.count<ir::CheckOp>(), 1);
}

TEST(ProgramGen, RecursionMayChangeADim) {
  Generated program(R"(
    dim h = 8
    fn grow(x: f32[n], k: int) -> f32[?] = if k == 0 { x } else { grow(concat(x, x), k - 1) }
    fn main(x: f32[h]) -> f32[?] = grow(x, 3)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.functions(), 3); // main, for 8, for any
}

TEST(ProgramGen, MutualRecursionMayChangeADim) {
  Generated program(R"(
    fn a(x: f32[n], k: int) -> f32[?] = if k == 0 { x } else { b(concat(x, x), k - 1) }
    fn b(x: f32[n], k: int) -> f32[?] = if k == 0 { x } else { a(concat(x, zeros(1)), k - 1) }
    fn main(k: int) -> f32[?] = a(ones(2), k)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_LE(program.functions(), 5);
}

TEST(ProgramGen, TypesOfRecursionMayChangeTheirDims) {
  Generated program(R"(
    fn last<T>(x: T, k: int) -> T = if k == 0 { x } else { last(x, k - 1) }
    fn go(x: f32[n], k: int) -> f32[?] = if k == 0 { last(x, 2) } else { go(last(concat(x, x), 1), k - 1) }
    fn main(k: int) -> f32[?] = go(ones(2), k)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_LE(program.functions(), 6);
}

TEST(ProgramGen, ClosuresBecomeFunctions) {
  Generated program(R"(
    dim h = 8
    param w : f32[h, h] = glorot
    fn twice(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = f(f(x))
    fn both(f: (f32[n]) -> f32[n], g: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] =
      twice(|y| g(f(y)), x)
    fn main(x: f32[h], s: float, k: int) -> f32[h] = {
      let scale = |y: f32[h]| y * s + k
      both(scale, |y| scale(y) @ w, x) + fold(|a, i| scale(a) + i, x, range(k))
    }
  )");
  ASSERT_PROGRAM(program);
  // main, both, twice, scale, and two lambdas that are passed.
  EXPECT_EQ(program.functions(), 6);
}

TEST(ProgramGen, RecursionOverAFunctionParameterEnds) {
  Generated program(R"(
    dim h = 4
    fn repeat(f: (f32[n]) -> f32[n], x: f32[n], k: int) -> f32[n] =
      if k == 0 { x } else { repeat(f, f(x), k - 1) }
    fn fresh(f: (f32[n]) -> f32[n], x: f32[n], k: int) -> f32[n] =
      if k == 0 { f(x) } else { fresh(|y| y + x, x, k - 1) }
    fn main(x: f32[h], k: int) -> f32[h] = repeat(|y| tanh(y) * k, fresh(tanh, x, k), k)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_LE(program.functions(), 7);
}

TEST(ProgramGen, LayersInLists) {
  Generated program(R"(
    dim h = 4
    layer Block(d) {
      param w : f32[d, d] = glorot
      fn run(x: f32[d]) -> f32[d] = relu(x @ w) + x
    }
    layer Deep(d) {
      let blocks = [Block(d)] * 2
      fn run(x: f32[d]) -> f32[d] = fold(|y, l| l.run(y), x, blocks)
    }
    let encoder = [Deep(h)] * 3
    fn pick(l: Block<d>, x: f32[d]) -> f32[d] = l.run(x)
    fn main(x: f32[h], i: int) -> (f32[h], f32[h], f32[h], list<f32[h]>) =
      (fold(|y, l| l.run(y), x, encoder), encoder[i].run(x), pick(encoder[1].blocks[i], x),
       map(|l| l.blocks[0].w[0], encoder))
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.count<ir::ParamOp>(), 6);
  EXPECT_TRUE(program.program->lookupSymbol<ir::ParamOp>("encoder.2.blocks.1.w"));
  EXPECT_EQ(program.count<ir::CheckOp>(), 2); // one for each index known at run time
}

TEST(ProgramGen, NestedMatches) {
  Generated program(R"(
    data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)
    fn total(t: Tree) -> int = match t { Leaf(x) => x; Node(l, r) => total(l) + total(r) }
    fn f(t: Tree, xs: list<Tree>, k: int) -> int = match (t, xs, k) {
      (Leaf(0), _, _) => 1
      (Leaf(x), [Leaf(y)], _) => x + y
      (Node(Leaf(a), Leaf(b)), Leaf(c) :: _, 3) if a > b => a + b + c
      (Node(l, _), first :: rest, n) => total(l) + total(first) + len(rest) + n
      (_, [], n) => n
      (other, x :: _, 7) => total(other) * total(x) - total(x) + total(other) * 2
      (other, _ :: _, _) => total(other)
    }
    fn main(t: Tree, xs: list<Tree>, k: int) -> int = f(t, xs, k)
  )");
  ASSERT_PROGRAM(program);
}

TEST(ProgramGen, LongMatchesAreNotNestedDeeply) {
  std::string text = "fn main(x: int) -> int = match x {\n";
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("  {} => {}\n", i * 3, i);
  text += "  _ => 0\n}\n";
  Generated program(text);
  ASSERT_PROGRAM(program);
  int deepest = 0;
  program.program->walk([&](mlir::scf::IfOp op) {
    int depth = 0;
    for (mlir::Operation *up = op; up; up = up->getParentOp())
      ++depth;
    deepest = std::max(deepest, depth);
  });
  EXPECT_LE(deepest, 16);
}

TEST(ProgramGen, ChecksAreKept) {
  Generated program(R"(
    fn main(x: f32[n], y: f32[m]) -> f32[n] = { check n == m, "unequal"; x + y }
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.count<ir::CheckOp>(), 1);
}

TEST(ProgramGen, BranchesThatCannotBeTaken) {
  Generated program(R"(
    fn f(x: f32[n], y: f32[m]) -> f32[n] = if n == m { x + y } else { x }
    fn main(a: f32[2], b: f32[3]) -> f32[2] = f(a, b) + f(a, a)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.count<mlir::scf::IfOp>(), 0);
}

TEST(ProgramGen, ChecksThatCannotHold) {
  Generated program(R"(
    fn f(x: f32[n], y: f32[m]) -> f32[n] = { check n == m, "unequal"; x + y }
    fn main(a: f32[2], b: f32[3]) -> f32[2] = f(a, b)
  )");
  EXPECT_FALSE(program.program);
  ASSERT_EQ(program.diags.all().size(), 1u);
  EXPECT_EQ(program.diags.all().front().message,
            "this check never holds in one of the calls of this function: unequal");
}

TEST(ProgramGen, OperatorsThatOneCallDoesNotFit) {
  const char *best = "fn best(x: f32[n]) -> f32[2] = { let (v, _) = top_k(x, 2); v }\n";
  Generated program(std::string(best) + "fn main(x: f32[3]) -> f32[2] = best(x) + best(zeros(1))");
  EXPECT_FALSE(program.program);
  ASSERT_EQ(program.diags.all().size(), 1u);
  EXPECT_EQ(program.diags.all().front().message,
            "cannot take the 2 greatest of f32[1]: axis 0 has 1, in one of the calls of this "
            "function");
  Generated guarded(std::string(best) + R"(
    fn some(x: f32[n]) -> f32[2] = if n > 1 { best(x) } else { zeros(2) }
    fn main(x: f32[3]) -> f32[2] = some(x) + some(zeros(1))
  )");
  ASSERT_PROGRAM(guarded);
}

TEST(ProgramGen, ASignatureNeedsNoSizes) {
  Parsed file(R"(
    dim vocab, half = vocab / 2
    data Node = Node(word: token, x: f32[half])
    param w : f32[vocab / 4, vocab % 8] = zeros
    fn main(nodes: list<Node>, x: f32[n]) -> f32[2] = { let (v, _) = top_k(w[0], 2); v }
  )");
  CheckOptions options;
  options.requireDimValues = false;
  CheckedModule checked = check(file.module, options, file.diags);
  ASSERT_TRUE(checked.ok);
  for (DeclaredDim &dim : checked.dims)
    dim.value = 1;
  mlir::MLIRContext context;
  auto program = generateSignature(checked, context, "main", file.diags);
  ASSERT_TRUE(program);
  auto main = program->lookupSymbol<mlir::func::FuncOp>("main");
  ASSERT_TRUE(main);
  EXPECT_EQ(main.getNumArguments(), 2u);
  EXPECT_TRUE(program->lookupSymbol<ir::DataOp>("Node"));
  EXPECT_TRUE(program->getOps<ir::ParamOp>().empty());
}

TEST(ProgramGen, DimsOfListElementsAreFoundAndChecked) {
  Generated program(R"(
    dim h = 4
    fn heights(xs: list<f32[n, h]>) -> int = n
    fn main(xs: list<f32[n, h]>, y: f32[m]) -> (int, f32[n]) = (heights(xs) + m, zeros(n))
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.count<ir::FoldOp>(), 2); // what n is, and whether all agree
}

TEST(ProgramGen, DivisionsOfExtentsAreChecked) {
  Generated program(R"(
    fn main(x: f32[n]) -> f32[n/2] = zeros(n/2)
  )");
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.count<ir::CheckOp>(), 1);
}

TEST(ProgramGen, OtherEntry) {
  Generated program("fn first(x: int) -> int = x\nfn second(x: int) -> int = first(x)", "second");
  ASSERT_PROGRAM(program);
  EXPECT_TRUE(program.function("second").isPublic());
  EXPECT_EQ(program.functions(), 2);
}

TEST(ProgramGen, ConstantsAndFields) {
  Generated program(R"(
    dim h = 4
    data Item = Item(word: token, weight: float, m: f32[?, h])
    let scale = 0.5
    let table = ones(h) * scale
    fn main(item: Item) -> (f32[?, h], float) =
      (item.m * table + item.m * item.weight, { let Item(_, w, _) = item; w * scale })
  )");
  ASSERT_PROGRAM(program);
}

TEST(ProgramGen, InitialiserArguments) {
  Generated program(R"(
    dim h = 4
    layer L(n) { param w : f32[n] = uniform(-1 / n, 2.0 / h) }
    let l = L(8)
    fn main(x: f32[8]) -> f32[8] = x + l.w
  )");
  ASSERT_PROGRAM(program);
  program.program->walk([&](ir::ParamOp op) {
    EXPECT_EQ(mlir::cast<mlir::FloatAttr>(op.getInitArgs()[0]).getValueAsDouble(), -0.125);
    EXPECT_EQ(mlir::cast<mlir::FloatAttr>(op.getInitArgs()[1]).getValueAsDouble(), 0.5);
  });
}

/// Which functions have a key, and the sites that keys are split by, in order.
TEST(ProgramGen, KeysGoWhereDrawsAre) {
  const char *text = R"(
    fn plain(x: f32[3]) -> f32[3] = tanh(x)
    fn deep(x: f32[3]) -> f32[3] = plain(x) + random(3)
    fn twice(f: (f32[3]) -> f32[3], x: f32[3]) -> f32[3] = f(f(x))
    fn main(x: f32[3], n: int) -> list<f32[3]> = {
      let a = twice(plain, x)
      let b = twice(|y| deep(y), a)
      map(|i| if i == 0 { plain(b) } else { deep(b) }, map(|i| i + 1, range(n)))
    }
  )";
  Generated program(text);
  ASSERT_PROGRAM(program);
  mlir::func::FuncOp main = program.function("main");
  ASSERT_EQ(main.getNumArguments(), 3u);
  EXPECT_TRUE(ir::takesKey(main));
  EXPECT_EQ(main.getArgAttrOfType<mlir::StringAttr>(1, "sheaf.name"), "x");
  EXPECT_EQ(program.function("plain").getNumArguments(), 1u);
  EXPECT_EQ(program.function("deep").getNumArguments(), 2u);
  EXPECT_EQ(program.function("twice").getNumArguments(), 1u);
  EXPECT_EQ(program.function("twice.1").getNumArguments(), 2u);
  std::vector<uint64_t> sites, arguments;
  int numbered = 0;
  main.walk([&](mlir::Operation *op) {
    if (auto split = mlir::dyn_cast<ir::SplitKeyOp>(op)) {
      sites.push_back(split.getSite());
      numbered += split.getIndex() != nullptr;
    }
    if (auto map = mlir::dyn_cast<ir::MapOp>(op))
      arguments.push_back(map.getBody().getNumArguments());
  });
  // twice 0, plain as a function 1, twice 2, deep 3, map 4, plain 5, deep 6, map 7.
  EXPECT_EQ(sites, (std::vector<uint64_t>{2, 4, 6}));
  EXPECT_EQ(numbered, 1);
  // The inner map does not draw and does not ask for the number of the element.
  EXPECT_EQ(arguments, (std::vector<uint64_t>{1, 2}));
}

TEST(ProgramGen, DropoutIsForTraining) {
  const char *text = "fn f(x: f32[3]) -> f32[3] = dropout(tanh(x), 0.5)\n"
                     "fn main(x: f32[3]) -> f32[3] = f(x)";
  Generated program(text);
  ASSERT_PROGRAM(program);
  EXPECT_EQ(program.applies("dropout"), 0);
  EXPECT_EQ(program.applies("tanh"), 1);
  EXPECT_EQ(program.count<ir::SplitKeyOp>(), 0);
  EXPECT_FALSE(ir::takesKey(program.function("main")));

  Generated training(text, "main", /*training=*/true);
  ASSERT_PROGRAM(training);
  EXPECT_EQ(training.applies("dropout"), 1);
  EXPECT_EQ(training.count<ir::SplitKeyOp>(), 2);
  EXPECT_TRUE(ir::takesKey(training.function("main")));
}

/// An entry that checks its data first hands the key on.
TEST(ProgramGen, KeysPassTheEntry) {
  Generated program("fn main(xs: list<f32[n]>, k: f32[n]) -> f32[n] = k + random(n)");
  ASSERT_PROGRAM(program);
  mlir::func::FuncOp main = program.function("main");
  EXPECT_TRUE(ir::takesKey(main));
  EXPECT_EQ(main.getNumArguments(), 3u);
  EXPECT_EQ(main.getArgAttrOfType<mlir::StringAttr>(2, "sheaf.name"), "k");
}

} // namespace
} // namespace sheaf

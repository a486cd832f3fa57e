// Tests of the parser and the printer of syntax trees on programs without errors.

#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Operators.h"
#include "tests/frontend/parsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sheaf {
namespace {

const char *const treeLstm = R"(
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

const char *const tagger = R"(
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

const char *const rose = R"(
data Rose<T> = Rose(value: T, children: list<Rose<T>>)

fn size<T>(t: Rose<T>) -> int = match t {
  Rose(_, []) => 1
  Rose(_, kids) => fold(|n, k| n + size(k), 1, kids)
}
)";

/// What the three programs leave out.
const char *const zoo = R"(
dim vocab; dim n, m = n * 2 + 1   # a dim may have no default
dim c = config "a"  else config "b.c" else m, config = config "d", e = config
data Color = Red | Green() | Blue(depth: int,)
data Big = FirstConstructor(first: f32[n], second: f32[m]) | SecondConstructor(third: token<word>)
  | ThirdConstructor(fourth: bool, fifth: bool[], sixth: bool[n])
param a : bf16[n, ?] = uniform(lo=-1, hi=1.5e-3)
param s : f32 = constant(0) as "scale" | ""
let encoder = [Block(n)] * 12 as "layers"
let named: Block = Block(n)
let eps = config "eps" else config "a.b"  else 1e-5
check config "act" else config "b" else "x"=="x"|-1|0.5
  | true | null, "said"
check config "c" == null
layer Outer(k) {
  let inner = Inner(k, 2 * k)
  param g : f32[k] = ones
  fn run(x: f32[k]) = inner.run(x) * g
}
layer Bare { param w : f32 = zeros }
fn apply<A, B>(f: (A, B) -> list<B>, unit: (), g: () -> int, a: A) -> (A, (int, float)) = a
fn block(words: token<word>[n], pair: token) -> f32[n] { words }
fn loud(emits: int) -> () emits list<int> { emit([emits]); (|y| y)(1)
  let z = emits; emit([z]) }
fn quiet(x: int) emits f32[?] = ()
fn other(layer: list<Block>, data: i64[n - 1, (n + 1) * 2 / 3 % 4], x: f16) = {
  check n == m, "say \"no\"\n"
  check n + 1 < m
  let y: f32[n] = -layer[3].run(x)[1, :, a:b, 2:, :c]
  let zero = || ()
  let long = x
    + y
    * softmax(x, axis=0)
    .sum()
  let f = |x: f32[n], (a, _): (int, int)| { a }
  let t = if a && !b || c { 1 } else if d { -2 } else { let q = 1_000; q }
  let l = 1 :: 2 :: [] == [1, 2] && (a < b) == (c < d)
  match (x, y) {
    (0, -1) if a => 1, (true, false) => 2; (_, [])
      => 3
    (Red, [a, Blue(d)]) => 4
    ((p :: q) :: r, Green()) => match r { _ => (|| 5)() }
    _ => (-x).sum()
  }
}
)";

//===----------------------------------------------------------------------===//
// Whole programs and the round trip
//===----------------------------------------------------------------------===//

void expectRoundTrip(const std::string &text) {
  Parsed first(text);
  ASSERT_EQ(first.diags.render(), "") << text;
  std::string printed = printModule(first.module);
  Parsed second(printed);
  ASSERT_EQ(second.diags.render(), "") << printed;
  EXPECT_EQ(printModule(second.module), printed);
  EXPECT_EQ(second.module.callSiteCount, first.module.callSiteCount);
}

TEST(Parser, RoundTripOfPrograms) {
  for (const char *program : {treeLstm, tagger, rose, zoo, "", "\xEF\xBB\xBF# only a comment"})
    expectRoundTrip(program);
}

TEST(Parser, RoundTripWithWindowsLineEndings) {
  std::string text;
  for (char c : std::string(treeLstm))
    text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  expectRoundTrip(text);
  EXPECT_EQ(printModule(Parsed(text).module), printModule(Parsed(treeLstm).module));
}

TEST(Printer, NormalForm) {
  EXPECT_EQ(printModule(Parsed(zoo).module), R"(dim vocab
dim n
dim m = n * 2 + 1
dim c = config "a" else config "b.c" else m
dim config = config "d"
dim e = config

data Color = Red | Green | Blue(depth: int)
data Big =
  | FirstConstructor(first: f32[n], second: f32[m])
  | SecondConstructor(third: token<word>)
  | ThirdConstructor(fourth: bool, fifth: bool[], sixth: bool[n])

param a : bf16[n, ?] = uniform(lo=-1, hi=0.0015)
param s : f32 = constant(0) as "scale" | ""

let encoder = [Block(n)] * 12 as "layers"
let named: Block = Block(n)
let eps = config "eps" else config "a.b" else 1e-05

check config "act" else config "b" else "x" == "x" | -1 | 0.5 | true | null, "said"
check config "c" == null

layer Outer(k) {
  let inner = Inner(k, 2 * k)
  param g : f32[k] = ones
  fn run(x: f32[k]) = inner.run(x) * g
}

layer Bare() {
  param w : f32 = zeros
}

fn apply<A, B>(f: (A, B) -> list<B>, unit: (), g: () -> int, a: A) -> (A, (int, float)) = a

fn block(words: token<word>[n], pair: token) -> f32[n] = { words }

fn loud(emits: int) -> () emits list<int> = {
  emit([emits])
  (|y| y)(1)
  let z = emits
  emit([z])
}

fn quiet(x: int) emits f32[?] = ()

fn other(layer: list<Block>, data: i64[n - 1, (n + 1) * 2 / 3 % 4], x: f16) = {
  check n == m, "say \"no\"\n"
  check n + 1 < m
  let y: f32[n] = -layer[3].run(x)[1, :, a:b, 2:, :c]
  let zero = || ()
  let long = x + y * softmax(x, axis=0).sum()
  let f = |x: f32[n], (a, _): (int, int)| { a }
  let t = if a && !b || c { 1 } else if d { -2 } else {
    let q = 1000
    q
  }
  let l = 1 :: 2 :: [] == [1, 2] && (a < b) == (c < d)
  match (x, y) {
    (0, -1) if a => 1
    (true, false) => 2
    (_, []) => 3
    (Red, [a, Blue(d)]) => 4
    ((p :: q) :: r, Green()) => match r {
      _ => (|| 5)()
    }
    _ => (-x).sum()
  }
}
)");
}

TEST(Printer, BreaksLongFunctions) {
  std::string head =
      "fn run(first: list<f32[input]>, second: list<f32[input]>) -> list<f32[state]>";
  std::string body = "map(|(h, _)| h, zip(first, second))";
  EXPECT_EQ(printModule(Parsed(head + " = " + body).module), head + " =\n  " + body + "\n");
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// The structure of an expression, with all parentheses.
std::string shape(const Expr &expr) {
  if (const auto *binary = expr.as<BinaryExpr>())
    return fmt::format("({} {} {})", spellingOf(binary->op), shape(*binary->lhs),
                       shape(*binary->rhs));
  if (const auto *unary = expr.as<UnaryExpr>())
    return fmt::format("({} {})", unary->op == UnaryOp::Not ? "!" : "neg", shape(*unary->operand));
  std::string children;
  forEachChild(expr, [&](const Expr &child) { children += " " + shape(child); });
  switch (expr.kind) {
  case ExprKind::Call:
    return "(call" + children + ")";
  case ExprKind::Index:
    return "(index" + children + ")";
  case ExprKind::Field:
    return "(." + expr.to<FieldExpr>().field.name + children + ")";
  case ExprKind::List:
    return "(list" + children + ")";
  case ExprKind::Tuple:
    return "(tuple" + children + ")";
  case ExprKind::Block:
    return "(block" + children + ")";
  case ExprKind::If:
    return "(if" + children + ")";
  case ExprKind::Match:
    return "(match" + children + ")";
  case ExprKind::Lambda:
    return "(lambda" + children + ")";
  default:
    return printExpr(expr);
  }
}

/// The structure of `text` as the body of a function, after checking that it prints to itself.
std::string shapeOf(const std::string &text) {
  Parsed parsed("fn f() = " + text);
  if (parsed.diags.hasErrors() || parsed.module.decls.size() != 1)
    return parsed.diags.render();
  const Expr &body = *parsed.module.decls[0]->to<FnDecl>().body;
  Parsed again("fn f() = " + printExpr(body));
  EXPECT_EQ(again.diags.render(), "");
  EXPECT_EQ(shape(*again.module.decls[0]->to<FnDecl>().body), shape(body)) << printExpr(body);
  return shape(body);
}

TEST(Expressions, Precedence) {
  const std::pair<const char *, const char *> cases[] = {
      {"a || b && c == d :: e + f * g", "(|| a (&& b (== c (:: d (+ e (* f g))))))"},
      {"a * b + c :: d == e && f || g", "(|| (&& (== (:: (+ (* a b) c) d) e) f) g)"},
      {"a - b - c + d", "(+ (- (- a b) c) d)"},
      {"a - (b - c)", "(- a (- b c))"},
      {"a * b / c % d @ e", "(@ (% (/ (* a b) c) d) e)"},
      {"a * (b @ c)", "(* a (@ b c))"},
      {"a :: b :: c", "(:: a (:: b c))"},
      {"(a :: b) :: c", "(:: (:: a b) c)"},
      {"a || b || c", "(|| (|| a b) c)"},
      {"(a < b) == c", "(== (< a b) c)"},
      {"a != (b >= c)", "(!= a (>= b c))"},
      {"a <= b && c > d", "(&& (<= a b) (> c d))"},
      {"-a * b", "(* (neg a) b)"},
      {"-(a * b)", "(neg (* a b))"},
      {"a * -b", "(* a (neg b))"},
      {"a - -b", "(- a (neg b))"},
      {"--a", "(neg (neg a))"},
      {"!!a && !b", "(&& (! (! a)) (! b))"},
      {"-a.b(c)[d]", "(neg (index (call (.b a) c) d))"},
      {"(-a).b", "(.b (neg a))"},
      {"(a + b)(c)", "(call (+ a b) c)"},
      {"f(a)(b)", "(call (call f a) b)"},
      {"layer[3].run(x)", "(call (.run (index layer 3)) x)"},
      {"|x| x + 1", "(lambda (+ x 1))"},
      {"(|x| x) + 1", "(+ (lambda x) 1)"},
      {"a + |x| x + 1", "(+ a (lambda (+ x 1)))"},
      {"|| a || b", "(lambda (|| a b))"},
      {"a || || b", "(|| a (lambda b))"},
      {"|x| |y| x", "(lambda (lambda x))"},
      {"if a { b } else { c } + 1", "(+ (if a (block b) (block c)) 1)"},
      {"1 + match a { _ => b }", "(+ 1 (match a b))"},
      {"{ a } * 2", "(* (block a) 2)"},
      {"f(|x| x, y)", "(call f (lambda x) y)"},
      {"((a))", "a"},
      {"()", "(tuple)"},
      {"(a, b,)", "(tuple a b)"},
      {"[]", "(list)"},
      {"[a, (b, c),]", "(list a (tuple b c))"},
      {"x[a, b:c, :]", "(index x a b c)"},
      {"3.f", "(.f 3)"},
      {"1.5e3 + 2e-1 + 1_0.2_5", "(+ (+ 1500.0 0.2) 10.25)"},
      {"t.e", "(.e t)"},
  };
  for (auto [text, expected] : cases)
    EXPECT_EQ(shapeOf(text), expected) << text;
}

TEST(Expressions, Newlines) {
  const std::pair<const char *, const char *> cases[] = {
      // An infix operator or a dot joins lines, on either side.
      {"a +\n b", "(+ a b)"},
      {"a\n + b", "(+ a b)"},
      {"a\n\n // comment\n * b", "(* a b)"},
      {"a\n :: b", "(:: a b)"},
      {"a\n || b", "(|| a b)"},
      {"a -\n b", "(- a b)"},
      {"a\n .b(c)\n .d", "(.d (call (.b a) c))"},
      // A minus, a parenthesis or a bracket begins a new expression.
      {"{ let x = a\n -b }", "(block a (neg b))"},
      {"{ let x = a\n (b, c) }", "(block a (tuple b c))"},
      {"{ let x = a\n [b] }", "(block a (list b))"},
      {"{ let x = a\n |b| b }", "(block a (lambda b))"},
      // Inside brackets newlines are blank, inside braces within them they are not.
      {"(a\n -b)", "(- a b)"},
      {"[a\n (b)\n [c]]", "(list (index (call a b) c))"},
      {"f({ let x = a\n -b }\n , c)", "(call f (block a (neg b)) c)"},
      {"f({ g(\n a\n -b)\n })", "(call f (block (call g (- a b))))"},
      {"{ let x = (a\n) \n (b) }", "(block a b)"},
      // Where an operand must follow, newlines are blank.
      {"\n a", "a"},
      {"-\n a", "(neg a)"},
      {"|x|\n a", "(lambda a)"},
      {"{ let x =\n a; x }", "(block a x)"},
      {"match a {\n x =>\n b\n }", "(match a b)"},
      // Braces and else may begin a line.
      {"if a\n{\n b\n}\nelse\n{\n c\n}", "(if a (block b) (block c))"},
      {"if a { b }\n else if c { d }\n else { e }", "(if a (block b) (if c (block d) (block e)))"},
      {"match a\n{ _ => b }", "(match a b)"},
      // Arms.
      {"match a { 1 => b, 2 => c; 3 => d\n -1 => e\n (x, y) => f\n [] => g }",
       "(match a b c d e f g)"},
      {"{ let a = 1; let b = 2; ; a }", "(block 1 2 a)"},
  };
  for (auto [text, expected] : cases)
    EXPECT_EQ(shapeOf(text), expected) << text;
}

TEST(Expressions, SoftKeywordsAreNames) {
  EXPECT_EQ(shapeOf("f(layer, data, param, dim=dim, token=list)"),
            "(call f layer data param dim list)");
  EXPECT_EQ(shapeOf("{ let layer = data\n layer }"), "(block data layer)");
  EXPECT_EQ(shapeOf("match x { data if param => layer }"), "(match x param layer)");
}

TEST(Expressions, CallSites) {
  Parsed parsed("fn f() = a(b(), c(d()))(e())\nfn g() = h()");
  std::vector<std::string> sites(parsed.module.callSiteCount);
  auto visit = [&](auto &self, const Expr &expr) -> void {
    if (const auto *call = expr.as<CallExpr>())
      sites.at(call->siteId) = parsed.source.slice(call->range);
    forEachChild(expr, [&](const Expr &child) { self(self, child); });
  };
  for (const Decl *decl : parsed.module.decls)
    visit(visit, *decl->to<FnDecl>().body);
  EXPECT_EQ(sites, (std::vector<std::string>{"a(b(), c(d()))", "b()", "c(d())", "d()",
                                             "a(b(), c(d()))(e())", "e()", "h()"}));
}

TEST(Expressions, RangesAndLiterals) {
  Parsed parsed("fn f() = (a + b) * \"x\\ty\\\\\" # end\n");
  const auto &product = parsed.module.decls[0]->to<FnDecl>().body->to<BinaryExpr>();
  EXPECT_EQ(parsed.source.slice(product.range), "(a + b) * \"x\\ty\\\\\"");
  EXPECT_EQ(parsed.source.slice(product.opRange), "*");
  EXPECT_EQ(parsed.source.slice(product.lhs->range), "a + b");
  EXPECT_EQ(product.rhs->to<StringLiteralExpr>().value, "x\ty\\");
  EXPECT_EQ(product.height, 3u);
  EXPECT_EQ(parsed.source.slice(parsed.module.decls[0]->range), "fn f() = (a + b) * \"x\\ty\\\\\"");
}

//===----------------------------------------------------------------------===//
// Declarations, types and patterns
//===----------------------------------------------------------------------===//

TEST(Declarations, Structure) {
  Parsed parsed(zoo);
  const std::vector<const Decl *> &decls = parsed.module.decls;
  EXPECT_EQ(decls[1]->to<DimDecl>().value, nullptr);
  EXPECT_NE(decls[2]->to<DimDecl>().value, nullptr);
  ASSERT_EQ(decls[3]->to<DimDecl>().config.size(), 2u);
  EXPECT_EQ(decls[3]->to<DimDecl>().config[1].name, "b.c");
  EXPECT_NE(decls[3]->to<DimDecl>().value, nullptr);
  EXPECT_EQ(decls[4]->to<DimDecl>().value, nullptr);
  const auto &color = decls[6]->to<DataDecl>();
  EXPECT_EQ(color.constructors.size(), 3u);
  EXPECT_EQ(color.constructors[2].fields[0].name.name, "depth");
  EXPECT_EQ(parsed.source.slice(color.constructors[2].range), "Blue(depth: int,)");
  const auto &param = decls[8]->to<ParamDecl>();
  EXPECT_TRUE(param.type->to<TensorTypeExpr>().dims[1].isUnknown());
  EXPECT_EQ(param.init.args[0].name->name, "lo");
  EXPECT_EQ(decls[9]->to<ParamDecl>().stored.names, (std::vector<std::string>{"scale", ""}));
  EXPECT_EQ(decls[12]->to<LetDecl>().config.size(), 2u);
  const auto &check = decls[13]->to<CheckDecl>();
  ASSERT_EQ(check.values.size(), 5u);
  EXPECT_EQ(check.absent->value, check.values[0].value);
  EXPECT_EQ(std::get<double>(check.values[1].value), -1);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(check.values[4].value));
  EXPECT_FALSE(decls[14]->to<CheckDecl>().absent);
  const auto &outer = decls[15]->to<LayerDecl>();
  ASSERT_EQ(outer.members.size(), 3u);
  EXPECT_TRUE(outer.members[0]->is<LetDecl>());
  EXPECT_TRUE(outer.members[1]->is<ParamDecl>());
  EXPECT_EQ(outer.members[2]->as<FnDecl>()->result, nullptr);
  EXPECT_EQ(outer.members[2]->as<LetDecl>(), nullptr);
}

/// The type of a parameter, printed.
std::string typeOf(const std::string &text) {
  Parsed parsed("fn f(x: " + text + ") = x");
  if (parsed.diags.hasErrors())
    return parsed.diags.render();
  return printType(*parsed.module.decls[0]->to<FnDecl>().params[0].type);
}

TEST(Types, PrintBack) {
  for (const char *type : {"f32",
                           "bf16[n]",
                           "f16[n, m + 1]",
                           "i32[2 * n]",
                           "i64[-n / 2]",
                           "bool",
                           "bool[]",
                           "bool[n]",
                           "int",
                           "float",
                           "token",
                           "token<word>",
                           "token[n]",
                           "token<word>[n, m]",
                           "token[]",
                           "list<f32[?, h]>",
                           "list<list<list<int>>>",
                           "list<list<f32[n]>[2 * n]>[?]",
                           "()",
                           "(int, f32[n])",
                           "Tree",
                           "Rose<f32[h]>",
                           "Pair<A, list<B>>",
                           "() -> int",
                           "(int) -> int",
                           "(int, (f32, f32)) -> list<Tree>",
                           "(int) -> (int) -> int",
                           "((int) -> int, int)"})
    EXPECT_EQ(typeOf(type), type);
  EXPECT_EQ(typeOf("f32[]"), "f32");
  EXPECT_EQ(typeOf("(int)"), "int");
  EXPECT_EQ(typeOf("(\nint\n,\nf32[\nn])"), "(int, f32[n])");
}

TEST(Types, AngleBracketBeforeEquals) {
  expectRoundTrip("fn f(x: int) -> list<list<int>>= x\nfn g() = { let x: list<int>= y; x }");
}

TEST(Patterns, Kinds) {
  Parsed parsed("fn f() = match x { y => 1; Y => 2; Y() => 3; -0 => 4; a :: b :: c => 5 }");
  ASSERT_EQ(parsed.diags.render(), "");
  const auto &arms = parsed.module.decls[0]->to<FnDecl>().body->to<MatchExpr>().arms;
  EXPECT_TRUE(arms[0].pattern->is<BindingPattern>());
  EXPECT_FALSE(arms[1].pattern->to<ConstructorPattern>().hasArgList);
  EXPECT_TRUE(arms[2].pattern->to<ConstructorPattern>().hasArgList);
  EXPECT_EQ(arms[3].pattern->to<IntPattern>().value, 0);
  EXPECT_TRUE(arms[4].pattern->to<ConsPattern>().tail->is<ConsPattern>());
}

//===----------------------------------------------------------------------===//
// Hostile input
//===----------------------------------------------------------------------===//

std::string repeated(const std::string &text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(Nesting, IsLimited) {
  struct {
    const char *before, *open, *middle, *close, *after;
  } const nests[] = {
      {"fn f() = ", "(", "x", ")", ""},
      {"fn f() = ", "[", "x", "]", ""},
      {"fn f() = ", "{ ", "x", " }", ""},
      {"fn f() = ", "g(", "x", ")", ""},
      {"fn f() = ", "-", "x", "", ""},
      {"fn f() = ", "x + ", "x", "", ""},
      {"fn f() = ", "x :: ", "x", "", ""},
      {"fn f() = ", "", "x", "()", ""},
      {"fn f() = ", "", "x", ".y", ""},
      {"fn f() = ", "", "x", "[0]", ""},
      {"fn f() = ", "|x| ", "x", "", ""},
      {"fn f() = ", "if a { b } else ", "{ c }", "", ""},
      {"fn f() = ", "{ let x = ", "x", "; x }", ""},
      {"fn f() = ", "match x { _ => ", "x", " }", ""},
      {"fn f() = match x { ", "A(", "x", ")", " => x }"},
      {"fn f() = match x { ", "a :: ", "x", "", " => x }"},
      {"fn f(x: ", "list<", "int", ">", ") = x"},
      {"fn f(x: ", "(", "int", ")", ") = x"},
      {"fn f(x: ", "() -> ", "int", "", ") = x"},
      {"fn f(x: f32[", "(", "n", ")", "]) = x"},
  };
  for (const auto &nest : nests) {
    auto text = [&](int levels) {
      return nest.before + repeated(nest.open, levels) + nest.middle +
             repeated(nest.close, levels) + nest.after;
    };
    expectRoundTrip(text(240));
    Parsed tooDeep(text(5000));
    ASSERT_EQ(tooDeep.diags.all().size(), 1u) << nest.open << nest.close;
    EXPECT_EQ(tooDeep.diags.all()[0].message, "nested too deeply");
    printModule(tooDeep.module);
  }
}

TEST(Nesting, HeightsMultiplyNowhere) {
  // Each pair of parentheses adds a chain to the left: few levels, a high tree.
  std::string text = "fn f() = " + repeated("(", 100) + "x" + repeated("+ 1 + 2 + 3 + 4 + 5)", 100);
  EXPECT_EQ(Parsed(text).diags.all()[0].message, "nested too deeply");
}

TEST(Nesting, UnclosedBracketsEndQuickly) {
  for (const char *open : {"(", "[", "{", "({[", "fn f() {", "layer L {", "match x { _ => ", "f(|"})
    EXPECT_TRUE(Parsed("fn f() = " + repeated(open, 20000)).diags.hasErrors());
}

/// Any edit of a program gives errors or a program that prints and parses back.
TEST(Mutations, NeitherCrashNorHang) {
  const std::vector<std::string> programs = {treeLstm, tagger, rose, zoo};
  const std::vector<std::string> scraps = {
      "(",    ")",      "[",    "]",    "{",    "}",     "|",  "||",     ",",
      ";",    "\n",     "=",    "=>",   "->",   "::",    ":",  ".",      "-",
      "+",    "<",      ">",    ">=",   "let ", "fn ",   "if", "_",      "?",
      "data", "param ", "dim ", "else", "1.5",  "\"s\"", "&",  "layer ", "match x {"};
  std::mt19937 random(20240229);
  int valid = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text = programs[random() % programs.size()];
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      size_t at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text.erase(at, 1 + random() % 4);
        break;
      case 1:
        text.insert(at, scraps[random() % scraps.size()]);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 30));
        break;
      case 3:
        text[at] = static_cast<char>(random() % 256);
        break;
      }
    }
    Parsed parsed(text);
    std::string printed = printModule(parsed.module);
    if (parsed.diags.hasErrors()) {
      EXPECT_NE(parsed.diags.render(), "");
      continue;
    }
    ++valid;
    Parsed again(printed);
    ASSERT_EQ(again.diags.render(), "") << text;
    ASSERT_EQ(printModule(again.module), printed) << text;
  }
  EXPECT_GT(valid, 50);
}

} // namespace
} // namespace sheaf

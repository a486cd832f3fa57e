// Programs that are right, the types that the checker gives them, and what it makes of large ones.

#include "compiler/frontend/Checker.h"
#include "compiler/ir/Components.h"
#include "tests/frontend/parsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sheaf {
namespace {

struct Checked : Parsed {
  explicit Checked(std::string text, CheckOptions options = {})
      : Parsed(std::move(text)), result(check(module, withoutEntry(std::move(options)), diags)) {}

  static CheckOptions withoutEntry(CheckOptions options) {
    options.requireEntry = false;
    return options;
  }
  std::string signature(const std::string &name) const {
    const FnInfo *fn = result.findFunction(name);
    return fn ? result.signature(*fn) : "none";
  }

  CheckedModule result;
};

#define EXPECT_SOUND(checked)                                                                      \
  EXPECT_TRUE((checked).result.ok && (checked).diags.all().empty()) << (checked).diags.render()

TEST(Checker, InfersResults) {
  Checked checked(R"(
    dim h = 4
    param w : f32[h, 2*h] = glorot
    fn a(x: f32[h]) = x @ w
    fn b(x: f32[n, h]) = x @ w
    fn c(x: f32[n]) = concat(x, x, x)
    fn d(xs: list<f32[n]>) = stack(xs)
    fn e(x: f32[n, h]) = (rows(x), n + 1, 2.5, n == 3)
    fn f(xs: list<int>) = map(|x| [x], xs)
    fn g(x: int) = if x > 0 { a(zeros(h)) } else { zeros(2*h) }
    fn i(words: list<token<word>>) = zip(words, range(len(words)))
    fn j(x: f32[h]) = split(x, 2)
    fn k(x: f32[2*n]) = 1
    fn l(x: f32[n]) = sum(x)
  )");
  EXPECT_FALSE(checked.result.ok); // 'k'
  Checked again(R"(
    dim h = 4
    param w : f32[h, 2*h] = glorot
    fn a(x: f32[h]) = x @ w
    fn b(x: f32[n, h]) = x @ w
    fn c(x: f32[n]) = concat(x, x, x)
    fn d(xs: list<f32[n]>) = stack(xs)
    fn e(x: f32[n, h]) = (rows(x), n + 1, 2.5, n == 3)
    fn f(xs: list<int>) = map(|x| [x], xs)
    fn g(x: int) = if x > 0 { a(zeros(h)) } else { zeros(2*h) }
    fn i(words: list<token<word>>) = zip(words, range(len(words)))
    fn j(x: f32[h]) = split(x, 2)
    fn l(x: f32[n]) = sum(x)
  )");
  EXPECT_SOUND(again);
  EXPECT_EQ(again.signature("a"), "fn a(x: f32[h]) -> f32[2*h]");
  EXPECT_EQ(again.signature("b"), "fn b(x: f32[n, h]) -> f32[n, 2*h]");
  EXPECT_EQ(again.signature("c"), "fn c(x: f32[n]) -> f32[3*n]");
  EXPECT_EQ(again.signature("d"), "fn d(xs: list<f32[n]>) -> f32[?, n]");
  EXPECT_EQ(again.signature("e"), "fn e(x: f32[n, h]) -> (list<f32[h]>[n], int, float, bool)");
  EXPECT_EQ(again.signature("f"), "fn f(xs: list<int>) -> list<list<int>[1]>");
  EXPECT_EQ(again.signature("g"), "fn g(x: int) -> f32[2*h]");
  EXPECT_EQ(again.signature("i"), "fn i(words: list<token<word>>) -> list<(token<word>, int)>");
  EXPECT_EQ(again.signature("l"), "fn l(x: f32[n]) -> f32");
  EXPECT_EQ(again.result.vocabularies(), std::vector<std::string>{"word"});
}

TEST(Checker, LiteralsTakeTheTypeThatIsWanted) {
  Checked checked(R"(
    fn a(x: float) -> float = 2 * x + 1
    fn b(x: f32[n]) -> f32[n] = 2 * x + 1 - x / n
    fn c() -> list<float> = [1, 2.5, -3]
    fn d(x: int) -> float = if x == 0 { 1 } else { float(x) / 2 }
    fn e(xs: list<float>) -> float = fold(|acc, x| acc + x, 0, xs)
    fn f() -> (int, float) = { let x = 1; let y = 1; (x + 2, y + 2.0) }
    fn g(x: float) -> float = max(x, 0)
    fn i(c: bool) -> f32 = if c { 0.0 } else { -1 }
    fn j() -> (bf16, i32, bool[], f32) = (1.5, -2, true, i(false))
    fn k(x: f32, y: i64) -> f32 = x * f32(y)
    fn l() -> f32 = k(1, 2)
    fn m(xs: list<f32[n]>) = fold(|total, x| total + sum(x), 0.0, xs)
    fn o(xs: list<f32[n]>) = fold(|(total, all, i), x| (total + sum(x), concat(all, x), i + 1),
                                  (0, zeros(0), 0), xs)
    fn p(x: f32[n]) -> f32 = { let (best, _) = loop(|(_, i)| i < n, |(best, i)| (maximum(best, x[i]), i + 1), (-1.0, 0)); best }
    fn q(xs: list<list<f32>>) = fold(|a, ys| fold(|b, y| a + b + y, 0, ys), 0, xs)
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("m"), "fn m(xs: list<f32[n]>) -> f32");
  EXPECT_EQ(checked.signature("o"), "fn o(xs: list<f32[n]>) -> (f32, f32[?], int)");
  EXPECT_EQ(checked.signature("q"), "fn q(xs: list<list<f32>>) -> f32");
}

TEST(Checker, LoopsFindTheTypeOfWhatTheyCarry) {
  Checked checked(R"(
    dim h = 4
    fn a(x: f32[h], n: int) = loop(|(_, i)| i < n, |(x, i)| (tanh(x), i + 1), (x, 0))
    fn b(x: f32[n, h]) = loop(|x| len(x) < 9, |x| concat(x, x), x)
    fn c(x: f32[n, h], y: f32[m]) =
      loop(|(x, _, _)| len(x) > 1, |(x, y, z)| (x[1:], y + y, append(z, y)), (x, y, []))
    fn d(x: f32[h]) = fold(|acc, k| concat(acc, x), zeros(0), range(3))
    fn e(xs: list<f32[n]>) = scan(|(acc, k), x| (concat(acc, x), k + 1), (zeros(1), 0), xs)
    fn o(x: f32[h], y: f32[?]) = fold(|acc, k| concat(acc, x), y, range(3))
    fn p(x: f32[h]) = fold(|acc, k| concat(acc, x), d(x), range(3))
    fn q(x: f32[*r, n]) -> f32[*r, ?] = {
      let (_, y) = loop(|(k, _)| k < 3, |(k, y)| (k + 1, concat(y, x, axis=-1)), (0, x))
      y
    }
    fn s(x: f32[h], y: f32[2, 3, h]) = (q(x), q(y))
    fn f(n: int) = loop(|x: float| x < 3.0, |x| x * 2.0, 1)
    fn g(n: int) = loop(|x: f32[?]| len(x) < n, |x| concat(x, ones(1)), zeros(2))
    fn i() -> f32[?] = loop(|x| len(x) < 4, |x| concat(x, x), zeros(2))
    fn j(n: int) = loop(|(i, x)| i < n, |(i, x)| {
      let (_, y) = loop(|(k, _)| k < i, |(k, y)| (k + 1, concat(y, x)), (0, x))
      (i + 1, y)
    }, (0, zeros(1)))
    fn twice<T>(f: (T) -> T, x: T) -> T = loop(|_| false, f, x)
    fn k(x: int) = twice(inc, x)
    fn inc(x: int) = l(x) + 1
    fn l(x: int) = x + 1
    fn m(xs: list<f32[?, h]>) = fold(|(all, last), x| (concat(all, x), x), (zeros(0, h), zeros(0, h)), xs)
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("a"), "fn a(x: f32[h], n: int) -> (f32[h], int)");
  EXPECT_EQ(checked.signature("b"), "fn b(x: f32[n, h]) -> f32[?, h]");
  EXPECT_EQ(checked.signature("c"),
            "fn c(x: f32[n, h], y: f32[m]) -> (f32[?, h], f32[m], list<f32[m]>)");
  EXPECT_EQ(checked.signature("d"), "fn d(x: f32[h]) -> f32[?]");
  EXPECT_EQ(checked.signature("e"), "fn e(xs: list<f32[n]>) -> list<(f32[?], int)>");
  EXPECT_EQ(checked.signature("f"), "fn f(n: int) -> float");
  EXPECT_EQ(checked.signature("g"), "fn g(n: int) -> f32[?]");
  EXPECT_EQ(checked.signature("j"), "fn j(n: int) -> (int, f32[?])");
  EXPECT_EQ(checked.signature("k"), "fn k(x: int) -> int");
  EXPECT_EQ(checked.signature("m"), "fn m(xs: list<f32[?, h]>) -> (f32[?, h], f32[?, h])");
  EXPECT_EQ(checked.signature("o"), "fn o(x: f32[h], y: f32[?]) -> f32[?]");
  EXPECT_EQ(checked.signature("p"), "fn p(x: f32[h]) -> f32[?]");
  EXPECT_EQ(checked.signature("s"), "fn s(x: f32[h], y: f32[2, 3, h]) -> (f32[?], f32[2, 3, ?])");
}

TEST(Checker, ExtentsOfShapesAndRoundedQuotients) {
  Checked checked(R"(
    dim h = 7
    fn a(x: f32[n, m]) -> f32[m, n] = zeros(shape(x, -1), shape(x, 0))
    fn b(x: f32[n]) -> f32[n] = zeros(floor_div(2*n, 2))
    fn c() -> f32[3] = zeros(floor_div(h, 2))
    fn d(k: int) = range(floor_mod(k, 5))
    fn e(x: f32[n, m]) = zeros(shape(x, 0) + shape(x, 1))
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("e"), "fn e(x: f32[n, m]) -> f32[m + n]");
}

TEST(Checker, FunctionsOfAnyRank) {
  Checked checked(R"(
    layer Linear(n, m) {
      param w : f32[n, m] = glorot
      fn run(x: f32[*rows, n]) -> f32[*rows, m] = x @ w
    }
    let l = Linear(3, 4)
    fn a(x: f32[3]) = l.run(x)
    fn b(x: f32[k, 3]) = l.run(x)
    fn c(x: f32[2, k, 3]) = l.run(x)
    fn d(xs: list<f32[k, 3]>) = map(l.run, xs)
    fn same(x: f32[*any], y: f32[*any]) -> f32[*any] = x + y
    fn e(x: f32, y: f32[2, n, m]) = (same(x, x), same(y, y))
    fn both(x: f32[*rows, n], f: (f32[*rows, n]) -> f32[*rows, m]) -> f32[*rows, m] = f(x)
    fn g(x: f32[k, 3]) = both(x, l.run)
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("a"), "fn a(x: f32[3]) -> f32[4]");
  EXPECT_EQ(checked.signature("b"), "fn b(x: f32[k, 3]) -> f32[k, 4]");
  EXPECT_EQ(checked.signature("c"), "fn c(x: f32[2, k, 3]) -> f32[2, k, 4]");
  EXPECT_EQ(checked.signature("d"), "fn d(xs: list<f32[k, 3]>) -> list<f32[k, 4]>");
  EXPECT_EQ(checked.signature("e"), "fn e(x: f32, y: f32[2, n, m]) -> (f32, f32[2, n, m])");
  EXPECT_EQ(checked.signature("g"), "fn g(x: f32[k, 3]) -> f32[k, 4]");
  EXPECT_EQ(checked.signature("same"), "fn same(x: f32[*any], y: f32[*any]) -> f32[*any]");
}

// What does not fit is tried a few times for each loop, not for each way through loops in loops.
TEST(Checker, LoopsInLoopsAreCheckedInTime) {
  for (const char *inner : {"concat(x, x)", "x + missing"}) {
    std::string body = inner;
    for (int i = 0; i < 60; ++i)
      body = "loop(|x| len(x) < 9, |x| " + body + ", x)";
    Parsed parsed("fn main(x: f32[n]) = " + body);
    CheckedModule checked = check(parsed.module, {}, parsed.diags);
    EXPECT_EQ(checked.ok, body.find("missing") == std::string::npos) << parsed.diags.render();
    EXPECT_LE(parsed.diags.errorCount(), 1u);
  }
}

TEST(Checker, DimsArePolynomials) {
  Checked checked(R"(
    dim a = 4, b = 8, c = 2*a
    fn f(x: f32[n + n, m]) -> f32[n + n, m] = x
    fn g(x: f32[n], y: f32[m]) -> f32[m + 2*n] = concat(x, y, x)
    fn h(x: f32[2*a]) -> f32[b] = x
    fn i(x: f32[c]) -> f32[b] = x
    fn j(x: f32[n]) -> f32[(n + 1)*n] = zeros(n*n + n)
    fn k(x: f32[n, 2]) -> f32[2*n] = reshape(x, n * 2)
    fn l(x: f32[n]) -> f32[n/2] = zeros(n/2)
    fn m(x: f32[n]) -> f32[n] = { let k = n; zeros(k) }
    fn o(k: int) -> f32[?] = { let x = zeros(k); let y = ones(k); x + y }
  )");
  EXPECT_FALSE(checked.result.ok); // 'f': n stands only in n + n
  Checked again(R"(
    dim a = 4, b = 8, c = 2*a
    fn g(x: f32[n], y: f32[m]) -> f32[m + 2*n] = concat(x, y, x)
    fn h(x: f32[2*a]) -> f32[b] = x
    fn i(x: f32[c]) -> f32[b] = x
    fn j(x: f32[n]) -> f32[(n + 1)*n] = zeros(n*n + n)
    fn k(x: f32[n, 2]) -> f32[2*n] = reshape(x, n * 2)
    fn l(x: f32[n]) -> f32[n/2] = zeros(n/2)
    fn m(x: f32[n]) -> f32[n] = { let k = n; zeros(k) }
    fn o(k: int) -> f32[?] = { let x = zeros(k); let y = ones(k); x + y }
    fn p(x: f32[n], y: f32[m]) -> f32[n] = { check n == m, "same"; x + y }
    fn q(x: f32[n], y: f32[m]) -> f32[n] = if n == m { x + y } else { x }
    fn r(x: f32[n], y: f32[m]) -> f32[b] = { check n + m == b && m == n; concat(x, y) }
    fn s(x: f32[n]) -> f32[b] = { check n == b; x }
  )");
  EXPECT_SOUND(again);
}

TEST(Checker, UnknownExtents) {
  Checked checked(R"(
    dim h = 4
    data Tree = Leaf(x: f32[?, h]) | Node(l: Tree, r: Tree)
    fn leaves(t: Tree) -> f32[?, h] = match t {
      Leaf(x) => x
      Node(l, r) => concat(leaves(l), leaves(r))
    }
    fn named(t: Tree) -> (f32[?, h], int) = { let x: f32[rows, h] = leaves(t); (x + zeros(rows, h), rows) }
    fn join(c: bool) -> f32[?] = { let x = if c { stack([1.0 * zeros(2)])[0] } else { zeros(2) }; x }
    fn total(ts: list<Tree>) -> f32[?, h] = fold(|acc, t| concat(acc, leaves(t)), zeros(1, h), ts)
    fn widths(ts: list<Tree>) -> list<int> = map(|t| len(leaves(t)), ts)
    fn all(ts: list<Tree>) -> list<f32[?, h]> = map(leaves, ts)
    fn given(xs: list<f32[?, h]>) -> list<f32[?]> = map(|x: f32[m, h]| ones(m), xs)
    fn lists() -> list<f32[?]> = [zeros(1), zeros(2)]
    fn grown(xs: list<f32[?]>, n: int) -> list<f32[?]> = append(zeros(n) :: xs, zeros(3))
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("widths"), "fn widths(ts: list<Tree>) -> list<int>");
}

TEST(Checker, GenericsAndFunctions) {
  Checked checked(R"(
    data Rose<T> = Rose(value: T, children: list<Rose<T>>)
    data Option<T> = None | Some(value: T)
    fn size<T>(t: Rose<T>) -> int = match t {
      Rose(_, []) => 1
      Rose(_, kids) => fold(|n, k| n + size(k), 1, kids)
    }
    fn compose<A, B, C>(f: (A) -> B, g: (B) -> C, x: A) -> C = g(f(x))
    fn repeat<T>(f: (T) -> T, x: T, n: int) -> T = if n == 0 { x } else { repeat(f, f(x), n - 1) }
    fn first<T>(xs: list<T>) -> Option<T> = match xs { [] => None; x :: _ => Some(x) }
    fn use(x: f32[n], t: Rose<token>) = (
      compose(|y| y * size(t), tanh, x),
      repeat(|y| concat(y, y)[0:n], x, 3),
      first([1, 2]), first(map(Some, [x])))
    fn depth<T>(t: Rose<T>) -> int = 1 + fold(|a, b| max(a, b), 0, map(depth, t.children))
    fn even(n: int) -> bool = if n == 0 { true } else { odd(n - 1) }
    fn odd(n: int) -> bool = if n == 0 { false } else { even(n - 1) }
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("use"),
            "fn use(x: f32[n], t: Rose<token>) -> (f32[n], f32[n], Option<int>, "
            "Option<Option<f32[n]>>)");
  EXPECT_TRUE(checked.result.findFunction("even")->recursive);
  EXPECT_EQ(checked.result.findFunction("even")->component,
            checked.result.findFunction("odd")->component);
  EXPECT_FALSE(checked.result.findFunction("use")->recursive);
}

TEST(Checker, Layers) {
  Checked checked(R"(
    dim h = 4
    layer Linear(n, m) {
      param w : f32[n, m] = normal(1 / n)
      fn run(x: f32[n]) -> f32[m] = x @ w
    }
    layer Mlp(d) {
      let first = Linear(d, 4*d)
      let rest = [Linear(4*d, 4*d)] * 2
      let last = Linear(4*d, d)
      fn run(x: f32[d]) -> f32[d] = last.run(fold(|y, l| relu(l.run(y)), first.run(x), rest))
    }
    let mlp = Mlp(h)
    let many = [Mlp(h), Mlp(h)]
    let same = many
    fn a(x: f32[h]) = many[1].rest[0].w
    fn b(x: f32[h], i: int) = same[i].run(mlp.run(x))
    fn c(ls: list<Mlp<n>>, x: f32[n]) -> f32[n] = fold(|y, l| l.run(y), x, ls)
    fn d(x: f32[h]) = c(reverse(many)[0:1], x)
    fn e(xs: list<f32[h]>) = map(mlp.run, xs)
  )");
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.signature("a"), "fn a(x: f32[h]) -> f32[4*h, 4*h]");
  EXPECT_EQ(checked.signature("e"), "fn e(xs: list<f32[h]>) -> list<f32[h]>");
}

TEST(Checker, NamesHideThoseOutside) {
  Checked checked(R"(
    dim n = 4
    fn tanh(x: int) -> int = x + 1
    fn f(map: int) -> int = tanh(map) + n
    layer L(n) { fn g(x: f32[n]) -> f32[n] = x }
    let l = L(2)
    fn h(x: f32[2]) -> f32[2] = l.g(x)
    fn k(x: int) -> int = { let x = x + 1; let x = x * 2; x }
  )");
  EXPECT_SOUND(checked);
}

TEST(Checker, MatchesAreSeenThrough) {
  Checked checked(R"(
    data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)
    fn a(t: Tree, u: Tree) -> int = match (t, u) {
      (Leaf(_), _) => 1
      (Node(_, _), Leaf(_)) => 2
      (Node(Leaf(_), _), Node(_, _)) => 3
      (Node(Node(_, _), _), Node(_, _)) => 4
    }
    fn b(xs: list<(bool, int)>) -> int = match xs {
      [] => 0
      (true, n) :: _ if n > 3 => n
      [(_, 0)] => 1
      (false, _) :: _ => 2
      _ :: (_, n) :: _ => n
      [(true, n)] => n
    }
    fn c(x: bool, y: bool) -> int = match (x, y) {
      (true, false) => 1
      (false, true) => 2
      (true, true) => 3
      (false, false) => 4
    }
  )");
  EXPECT_SOUND(checked);
}

TEST(Checker, DimsInAnyOrder) {
  const char *text = "dim a = 2*b - c, b = c + 1\nfn f(x: f32[a]) -> f32[5] = x\ndim c = 3";
  Checked checked(text);
  EXPECT_SOUND(checked);
  EXPECT_EQ(checked.result.dims[0].value, 5);
  CheckOptions options;
  options.dims["c"] = 10;
  Checked given("dim a = 2*b - c, b = c + 1\nfn f(x: f32[a]) -> f32[12] = x\ndim c = 3", options);
  EXPECT_SOUND(given);
  // Without a value there are those of others.
  options.dims = {};
  options.requireDimValues = false;
  Checked symbolic("dim a = b + 1, b = vocab, vocab, c = 2*d, d = 4", options);
  EXPECT_SOUND(symbolic);
  EXPECT_EQ(symbolic.result.dims[0].value, std::nullopt);
  EXPECT_EQ(symbolic.result.dims[3].value, 8);
  // Longer than any stack.
  std::string chain = "dim d0 = 1";
  for (int i = 1; i < 20000; ++i)
    chain = "dim d" + std::to_string(i) + " = d" + std::to_string(i - 1) + " + 1\n" + chain;
  Checked deep(chain);
  EXPECT_SOUND(deep);
  EXPECT_EQ(deep.result.dims[0].value, 20000);
}

TEST(Checker, DimsWithoutValues) {
  const char *text = "dim vocab, h = 4\nfn f(x: f32[vocab]) -> f32[vocab] = x";
  Parsed parsed(text);
  EXPECT_EQ(dimsWithoutValue(parsed.module, {}), std::vector<std::string>{"vocab"});
  CheckOptions options;
  options.requireDimValues = false;
  Checked symbolic(text, options);
  EXPECT_SOUND(symbolic);
  EXPECT_EQ(symbolic.result.dims[0].value, std::nullopt);
  options.dims["vocab"] = 10;
  Checked given(text, options);
  EXPECT_SOUND(given);
  EXPECT_EQ(given.result.dims[0].value, 10);
  EXPECT_EQ(dimsWithoutValue(parsed.module, options), std::vector<std::string>{});
}

//===----------------------------------------------------------------------===//
// Large and hostile programs
//===----------------------------------------------------------------------===//

TEST(Checker, ManyFunctionsWithoutResultTypes) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += fmt::format("fn f{}(x: int) = f{}(x)\n", i, i + 1);
  text += "fn f20000(x: int) -> int = x\n";
  // Calls forward: to check the first takes all.
  Checked forward(text);
  ASSERT_FALSE(forward.result.ok);
  EXPECT_EQ(forward.diags.all().front().message,
            "functions without a result type call each other too deeply here");
}

TEST(Checker, TypesThatGrow) {
  std::string text = "fn f(x: int) -> int = {\n  let a0 = (x, x)\n";
  for (int i = 1; i < 200; ++i)
    text += fmt::format("  let a{} = (a{}, a{})\n", i, i - 1, i - 1);
  text += "  x\n}\n";
  Checked checked(text);
  ASSERT_FALSE(checked.result.ok);
  EXPECT_EQ(checked.diags.errorCount(), 1u);
  EXPECT_EQ(checked.diags.all().front().message, "this type is too large");
}

TEST(Checker, ExtentsThatGrow) {
  std::string product = "(a + b + c + d)";
  for (int i = 0; i < 40; ++i)
    product += " * (a + b + c + d)";
  Checked checked("fn f(x: f32[a, b, c, d], y: f32[" + product + "]) -> int = 1");
  ASSERT_FALSE(checked.result.ok);
  EXPECT_EQ(checked.diags.all().front().message, "this extent is too large an expression");
}

TEST(Checker, LongMatches) {
  std::string text = "fn f(x: int) -> int = match x {\n";
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("  {} => {}\n", i, i + 1);
  text += "  _ => 0\n}\n";
  Checked checked(text);
  EXPECT_SOUND(checked);
}

TEST(Checker, LongListPatterns) {
  std::string text = "fn f(xs: list<int>) -> int = match xs {\n  [x";
  for (int i = 0; i < 5000; ++i)
    text += ", _";
  text += "] => x\n  _ => 0\n}\n";
  Checked checked(text);
  EXPECT_SOUND(checked);
}

TEST(Checker, HardCoverage) {
  // Each row leaves out one column of a wide tuple: naive checks take exponential time.
  std::string text = "fn f(x: (";
  constexpr int width = 30;
  for (int i = 0; i < width; ++i)
    text += i ? ", bool" : "bool";
  text += ")) -> int = match x {\n";
  for (int i = 0; i < width; ++i) {
    text += "  (";
    for (int k = 0; k < width; ++k)
      text += fmt::format("{}{}", k ? ", " : "",
                          k == i                 ? "true"
                          : k == (i + 7) % width ? "false"
                                                 : "_");
    text += ") => 1\n";
  }
  text += "  _ => 0\n}\n";
  Checked checked(text);
  if (!checked.result.ok) {
    EXPECT_EQ(checked.diags.all().front().message,
              "the patterns of this match are too complex to check");
  }
}

TEST(Components, OfAGraph) {
  Components components = findComponents({{1}, {2, 3}, {1}, {3}, {}});
  EXPECT_EQ(components.of[1], components.of[2]);
  EXPECT_NE(components.of[0], components.of[1]);
  EXPECT_EQ(components.cyclic, (std::vector<bool>{false, true, true, true, false}));
  EXPECT_EQ(components.order, (std::vector<unsigned>{3, 1, 2, 0, 4}));
}

} // namespace
} // namespace sheaf

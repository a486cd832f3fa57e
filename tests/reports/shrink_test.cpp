// What is left of texts when all goes that a question does not need.

#include "compiler/frontend/Checker.h"
#include "compiler/reduce/Shrink.h"
#include "tests/frontend/parsed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sheaf::reduce {
namespace {

/// What is left of a program that is without errors and has `word`, blanks made one.
std::string programWith(const std::string &word, const std::string &text) {
  auto keeps = [&](const Pieces &pieces) {
    Parsed parsed(textOf(pieces));
    if (!parsed.diags.hasErrors())
      check(parsed.module, {}, parsed.diags);
    return !parsed.diags.hasErrors() && textOf(pieces).find(word) != std::string::npos;
  };
  Pieces whole = programPieces(text);
  EXPECT_TRUE(keeps(whole)) << text;
  std::string left;
  for (const Piece &piece : shrink(whole, keeps))
    left += (left.empty() ? "" : " ") + piece.text;
  return left;
}

TEST(Shrink, ConstructorsGoWithTheirArms) {
  EXPECT_EQ(programWith("sigmoid", R"(
dim hidden = 8, unused = 4, classes = 3
data Expr = Num(v: int) | Add(l: Expr, r: Expr) | Mul(l: Expr, r: Expr) | Zero
data Other =
  First(x: int, y: f32)
  | Second(z: Other)
param table: f32[10, hidden] = normal(1.0)
fn enc(e: Expr) -> f32[hidden] = match e {
  Num(v) => sigmoid(table[v])
  Add(l, r) => enc(l) + enc(r)
  Mul(l, r) => enc(l) * enc(r)
  Zero => zeros(hidden)
}
fn other(o: Other) -> int = match o {
  First(x, y) => x
  Second(z) => other(z)
}
fn main(e: Expr, o: Other) -> (f32[hidden], int) = {
  let h = enc(e)
  (h, other(o))
}
)"),
            "data Expr = Num ( v : int ) fn enc ( e : Expr ) -> f32 [ ] = match e { Num ( v ) => "
            "sigmoid ( v ) } fn main ( e : Expr ) -> f32 [ ] = enc ( e )");
}

TEST(Shrink, OfDimsTheFirstGoesToo) {
  EXPECT_EQ(
      programWith("[c]", "dim a = 1, b = 2, c = 3\nfn main(x: f32[c], y: f32[a]) -> f32[c] = x"),
      "fn main ( x : f32 [ c ] ) -> f32 [ c ] = x");
}

TEST(Shrink, ResultsGoFromTypeAndTuple) {
  EXPECT_EQ(programWith("exp", R"(
fn main(x: f32[4], y: f32[2]) -> (f32[4], f32[2], f32[]) = {
  let a = x + 1.0
  let b = exp(a)
  (a, y, sum(b))
}
)"),
            "fn main ( x : f32 [ ] ) -> f32 [ ] = { let b = exp ( x ) x }");
}

TEST(Shrink, TreesAndJson) {
  auto left = [](const std::string &text, const std::string &word) {
    return textOf(shrink(dataPieces(text), [&](const Pieces &pieces) {
      std::string now = textOf(pieces);
      return std::count(now.begin(), now.end(), '(') == std::count(now.begin(), now.end(), ')') &&
             std::count(now.begin(), now.end(), '{') == std::count(now.begin(), now.end(), '}') &&
             now.find(word) != std::string::npos;
    }));
  };
  EXPECT_EQ(left("(3 (2 It) (4 (2 is) (3 good)))", "good"), "good");
  EXPECT_EQ(left(R"({"a": [1, 2, 30], "b": {"c": "d", "e": []}})", "\"d\""), "\"b\":\"c\": \"d\"");
}

} // namespace
} // namespace sheaf::reduce

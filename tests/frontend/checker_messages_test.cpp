// Every kind of mistake that the checker finds, with its messages as they must read.

#include "compiler/frontend/Checker.h"
#include "tests/frontend/parsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {
namespace {

struct BadProgram {
  const char *text;
  /// In source order, each as `line:column: message [help] {line:column: note}`.
  std::vector<std::string> messages;
};

std::vector<std::string> messagesOf(const Parsed &parsed) {
  auto placed = [&](SourceRange range, const std::string &message) {
    LineColumn at = parsed.source.lineColumn(range.begin);
    return fmt::format("{}:{}: {}", at.line, at.column, message);
  };
  std::vector<std::pair<uint32_t, std::string>> messages;
  for (const Diagnostic &diagnostic : parsed.diags.all()) {
    std::string text =
        placed(diagnostic.range,
               (diagnostic.severity == Severity::Warning ? "warning: " : "") + diagnostic.message);
    if (!diagnostic.help.empty())
      text += " [" + diagnostic.help + "]";
    for (const DiagnosticNote &note : diagnostic.notes)
      text += " {" + placed(note.range, note.message) + "}";
    messages.emplace_back(diagnostic.range.begin, text);
  }
  std::sort(messages.begin(), messages.end());
  std::vector<std::string> texts;
  for (auto &[offset, text] : messages)
    texts.push_back(std::move(text));
  return texts;
}

// clang-format off
const BadProgram badPrograms[] = {
    {"fn main(x: int) -> float = x",
     {"1:28: the result of 'main' must be 'float', but this is 'int' [write float(...)]"}},
    {"dim hidden = 256, classes = 5\nfn main(x: f32[hidden]) -> f32[classes] = x",
     {"2:43: the result of 'main' must be 'f32[classes]', but this is 'f32[hidden]' (f32[5] against f32[256])"}},
    {"dim hidden = 256\nfn main(x: f32[hidden], y: f32[2*hidden]) -> f32[hidden] = x + y",
     {"2:64: cannot add f32[hidden] and f32[2*hidden]: the extents of axis 0 differ (hidden = 256, 2*hidden = 512)"}},
    {"dim hidden = 256\nfn main(x: f32[hiden]) -> f32[hidden] = x",
     {"2:16: warning: 'hiden' is not declared, so it is a per-instance dim here [did you mean 'hidden'?]",
      "2:41: the result of 'main' must be 'f32[hidden]', but this is 'f32[hiden]'"}},
    {"fn main(x: int) -> int = y",
     {"1:26: there is no 'y' here"}},
    {"fn main(count: int) -> int = coutn + 1",
     {"1:30: there is no 'coutn' here [did you mean 'count'?]"}},
    {"fn main(x: int) -> int = fib(x)",
     {"1:26: there is no function 'fib'"}},
    {"fn encode(x: int) -> int = x\nfn main(x: int) -> int = encod(x)",
     {"2:26: there is no function 'encod' [did you mean 'encode'?]"}},
    {"fn main(x: int, y: float) -> float = x + y",
     {"1:38: '+' needs two values of one type, but these are 'int' and 'float' [write float(...) around the left side]"}},
    {"fn main(x: int) -> int = if x { 1 } else { 2 }",
     {"1:29: the condition of 'if' must be 'bool', but this is 'int'"}},
    {"fn main(x: f32[4]) -> int = if x > 0.0 { 1 } else { 2 }",
     {"1:32: the condition of 'if' must be 'bool', but this is 'bool[4]' [where(c, a, b) chooses between tensors, element by element; a decision takes one element, which 'read' gives as a host value]"}},
    {"fn main(x: bool) -> int = if x { 1 } else { 2.5 }",
     {"1:45: the result of 'main' must be 'int', but this is 'float' [write int(...)]"}},
    {"fn main(b: bool) -> int = { let x = if b { 1 } else { true }; 3 }",
     {"1:53: the branches of 'if' must have one type, but this is 'bool' and before it stands 'int'"}},
    {"fn f(x: int, y: int) -> int = x + y\nfn main(x: int) -> int = f(x)",
     {"2:26: 'f' takes 2 arguments, but 1 is given (missing: 'y')"}},
    {"fn f(x: int, y: int) -> int = x + y\nfn main(x: int) -> int = f(x, 1, 2)",
     {"2:26: 'f' takes 2 arguments, but 3 are given"}},
    {"fn f(x: int, y: int) -> int = x + y\nfn main(x: int) -> int = f(x, z=1)",
     {"2:31: 'f' has no argument 'z' [its arguments are x, y]"}},
    {"fn f(x: int) = if x == 0 { 0 } else { f(x - 1) }\nfn main(x: int) -> int = f(x)",
     {"1:39: 'f' is recursive, so its result type must be written [fn f(...) -> TYPE = ...] {1:4: 'f' is declared here}"}},
    {"fn f(x: int) = g(x)\nfn g(x: int) = f(x)\nfn main(x: int) -> int = f(x)",
     {"2:16: 'f' is recursive, so its result type must be written [fn f(...) -> TYPE = ...] {1:4: 'f' is declared here}"}},
    {"fn f(x: int) -> (int) -> int = |y| y + x\nfn main(x: int) -> int = 1",
     {"1:17: a function type can stand only as the type of a parameter [functions can be passed as arguments, but not returned nor stored]"}},
    {"fn f(x: int) = |y: int| y + x\nfn main(x: int) -> int = 1",
     {"1:16: 'f' cannot return a function [functions can be passed as arguments, but not returned]"}},
    {"fn main(x: int) -> int = { let fs = [|y: int| y]; 1 }",
     {"1:38: a list cannot hold a function"}},
    {"fn main(x: int) -> int = { let fs = (|y: int| y, 1); 1 }",
     {"1:38: a tuple cannot hold a function"}},
    {"fn main(x: int) -> int = { let f = |y| y; f(x) }",
     {"1:37: the type of this parameter is not known here [write it: |x: TYPE| ...]"}},
    {"fn main(x: int) -> int = x(3)",
     {"1:26: 'x' is 'int', which cannot be called"}},
    {"fn main(x: int, x: int) -> int = x",
     {"1:17: 'x' is already the name of another part here [give the two different names]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = match t {\n  Leaf(x) => x\n}",
     {"2:27: this match does not cover Node(_, _) [add an arm: Node(_, _) => ...]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = match t {\n  Leaf(x) => x\n  Node(Leaf(_), _) => 1\n  Node(_, Leaf(3)) => 2\n}",
     {"2:27: this match does not cover Node(Node(_, _), Node(_, _)) [add an arm: Node(Node(_, _), Node(_, _)) => ...]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = match t {\n  Leaf(x) => x\n  Node(_, _) => 1\n  Node(Leaf(x), _) => 2\n}",
     {"5:3: this arm is never reached: the arms before it cover all it matches"}},
    {"fn main(xs: list<int>) -> int = match xs {\n  [] => 0\n  [x] => x\n  x :: y :: [] => x\n}",
     {"1:33: this match does not cover _ :: _ :: _ :: _ [add an arm: _ :: _ :: _ :: _ => ...]"}},
    {"fn main(xs: list<(bool, int)>) -> int = match xs {\n  [] => 0\n  (true, _) :: _ => 1\n}",
     {"1:41: this match does not cover (false, _) :: _ [add an arm: (false, _) :: _ => ...]"}},
    {"fn main(x: int) -> int = match x { 0 => 1; 1 => 2 }",
     {"1:26: this match does not cover 2 [add an arm: _ => ...]"}},
    {"fn main(x: int) -> int = match x { 0 => 1; 0 => 2; _ => 3 }",
     {"1:44: this arm is never reached: the arms before it cover all it matches"}},
    {"fn main(x: int) -> int = match x { n if n > 0 => 1; n if n <= 0 => 2 }",
     {"1:26: this match does not cover _ [add an arm: _ => ...]"}},
    {"fn main(b: bool) -> int = match b { true => 1 }",
     {"1:27: this match does not cover false [add an arm: false => ...]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = { let Leaf(x) = t; x }",
     {"2:33: the pattern of a 'let' must match every value, but not Node(_, _) [use match]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = match t { Leaf(x, y) => x; Node(_, _) => 1 }",
     {"2:37: constructor 'Leaf' has 1 field, but the pattern has 2 [write Leaf(x)]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(t: Tree) -> int = match t { Leef(x) => x; Node(_, _) => 1 }",
     {"2:37: there is no constructor 'Leef' [did you mean 'Leaf'?]"}},
    {"data A = A1 | A2\ndata B = B1 | B2\nfn main(a: A) -> int = match a { A1 => 1; B2 => 2 }",
     {"3:43: constructor 'B2' makes a 'B', but the value is 'A' [the constructors of 'A' are A1, A2]"}},
    {"fn main(x: int) -> int = match x { (a, b) => a }",
     {"1:36: this pattern matches a tuple of 2, but the value is 'int'"}},
    {"fn main(x: (int, int)) -> int = { let (a, b, c) = x; a }",
     {"1:39: this pattern matches a tuple of 3, but the value is '(int, int)'"}},
    {"fn main(x: (int, int)) -> int = { let (a, a) = x; a }",
     {"1:43: 'a' is already the name of another part here [give the two different names]"}},
    {"data Tree = Leaf(x: int) | Node(l: Tree, r: Tree)\nfn main(x: int) -> Tree = Node(Leaf(x), 3)",
     {"2:41: field 'r' of 'Node' must be 'Tree', but this is 'int'"}},
    {"data Tree = Leaf(x: int) | Node(left: Tree, right: Tree)\nfn main(x: int) -> Tree = Node(Leaf(x))",
     {"2:27: 'Node' takes 2 arguments, but 1 is given (missing: 'right')"}},
    {"data Bad = Bad(x: Bad)\nfn main(x: int) -> int = x",
     {"1:6: type 'Bad' has no finite values: each of its constructors needs another 'Bad' first [add a constructor that ends the recursion, or use list<...>]"}},
    {"data Nest<T> = Nil | Cons(x: T, rest: Nest<(T, T)>)\nfn main(x: int) -> int = x",
     {"1:6: type 'Nest' contains itself as 'Nest<(T, T)>', with larger and larger arguments [a recursive type must use its parameters as they are]"}},
    {"fn f<T>(x: T, n: int) -> int = if n == 0 { 0 } else { f([x], n - 1) }\nfn main(x: int) -> int = f(x, 3)",
     {"1:55: this recursive call of 'f' is at 'list<T>' for 'T', a larger type at each call [a generic function must call itself with its own type parameters]"}},
    {"fn f(g: (int) -> int, n: int) -> int = if n == 0 { g(0) } else { f(|x| g(g(x)), n - 1) }\nfn main(x: int) -> int = f(|y| y + 1, x)",
     {"1:68: this recursive call of 'f' passes a function that uses a function parameter of 'f', a larger function at each call [pass the parameter on as it is]"}},
    {"dim a = 3\ndim a = 4\nfn main(x: int) -> int = x",
     {"2:5: 'a' is already declared {1:5: the first declaration is here}"}},
    {"dim a\nfn main(x: int) -> int = x",
     {"1:5: dim 'a' has no value [give it one here ('dim a = 256') or with --dim a=256]"}},
    {"dim a = 0\nfn main(x: int) -> int = x",
     {"1:9: dim 'a' is 0, but a dim is from 1 to 2147483647"}},
    {"dim a = b, b = 3\nfn main(x: int) -> int = x",
     {"1:9: the value of dim 'a' is not known here: 'b' has none yet [declare the dims it is made of before it]"}},
    {"dim hidden = 10\nfn main(x: f32[hidden]) -> f32[hidden/3] = x[0:3]",
     {"2:32: 'hidden' = 10 is not divisible by '3' [division of extents must leave no remainder]"}},
    {"dim hidden = 10\nfn main(x: f32[hidden]) -> int = { let (a, b, c) = split(x, 3); 1 }",
     {"2:58: cannot split axis 0 of f32[hidden] into 3 equal parts: hidden = 10 is not a multiple of 3"}},
    {"fn main(x: f32[n]) -> f32[m] = x",
     {"1:27: no argument of 'main' tells what dim 'm' is [write '?' for an extent that only the result knows, or declare it: dim m = ...]"}},
    {"fn f(x: f32[n+1]) -> f32[n] = x[0:2]\nfn main(x: int) -> int = x",
     {"1:13: dim 'n' stands only inside expressions, so no argument tells what it is [let one argument have the extent 'n' itself, or declare it: dim n = ...]",
      "1:31: the result of 'f' must be 'f32[n]', but this is 'f32[2]'"}},
    {"fn add2(x: f32[n], y: f32[n]) -> f32[n] = x + y\nfn main(a: f32[n], b: f32[m]) -> f32[n] = add2(a, b)",
     {"2:51: argument 'y' of 'add2' must be 'f32[n]', but this is 'f32[m]'"}},
    {"fn main(a: f32[n], b: f32[m]) -> f32[n] = a + b",
     {"1:47: cannot add f32[n] and f32[m]: the extents of axis 0 differ (n, m) [if they are always equal, say so before: check n == m]"}},
    {"fn first(xs: list<f32[n]>) -> f32[n] = xs[0]\nfn main(xs: list<f32[?]>) -> f32[?] = first(xs)",
     {"2:45: argument 'xs' of 'first' must be 'list<f32[n]>', but this is 'list<f32[?]>' [an extent '?' may differ from element to element]"}},
    {"dim h = 4\nfn main(xs: list<f32[?, h]>) -> f32[?, h] = fold(|acc, x| concat(acc, x), zeros(1, h), xs)",
     {}},
    {"dim h = 4\nfn main(xs: list<f32[h]>) -> f32[h] = fold(|acc, x| acc + x, xs, zeros(h))",
     {"2:66: the third argument of 'fold' must be a list, but this is 'f32[h]' [it is written fold(f, start, xs)]"}},
    {"dim h = 4\nfn main(a: f32[h], b: f32[h]) -> f32[h] = max(a, b)",
     {"2:50: argument 'axis' of 'max' must be 'int', but this is 'f32[h]' (int against f32[4]) [max reduces x along an axis; element by element it is maximum(a, b)]"}},
    {"fn main(x: f32[4]) -> f32[4] = zeros(3)",
     {"1:32: the result of 'main' must be 'f32[4]', but this is 'f32[3]'"}},
    {"dim h = 4\nfn main(a: f32[h], b: f32[h]) -> f32[] = sum(a, b)",
     {"2:49: argument 'axis' of 'sum' must be 'int', but this is 'f32[h]' (int against f32[4]) [it is written sum(x, axis=..., keepdims=...)]"}},
    {"fn main(xs: list<int>) -> float = fold(|acc, x| acc + float(x), 0, xs)",
     {}},
    {"fn main(xs: list<int>) -> list<int> = map(|x, y| x, xs)",
     {"1:43: the function of 'map' takes 1 argument, but this one has 2 parameters"}},
    {"fn main(xs: list<int>) -> list<int> = map(xs, |x| x)",
     {"1:47: the second argument of 'map' must be a list, but this is a function [the function comes first]"}},
    {"fn main(xs: list<int>) -> list<int> = filter(|x| x + 1, xs)",
     {"1:50: the result of the function of 'filter' must be 'bool', but this is 'int'"}},
    {"fn main(xs: list<int>) -> int = xs[-1]",
     {"1:36: an index counts from the front, so it cannot be negative [the last element is xs[len(xs) - 1]]"}},
    {"fn main(xs: list<int>) -> int = xs[true]",
     {"1:36: an index must be 'int', but this is 'bool'"}},
    {"fn main(xs: list<int>) -> list<int> = xs + xs",
     {"1:39: '+' cannot be applied to 'list<int>' [concat(a, b) joins lists, append(xs, x) adds an element]"}},
    {"fn main(xs: list<int>) -> list<float> = 1.5 :: xs",
     {"1:48: the list after '::' must be 'list<float>', but this is 'list<int>'"}},
    {"fn main(x: int) -> int = { let xs = [1, true]; x }",
     {"1:41: the elements of a list have one type, but this is 'bool' and those before it are 'int'"}},
    {"fn main(x: f32[3, 4]) -> f32[3] = x[0, 1, 2]",
     {"1:35: 'f32[3, 4]' has 2 axes, but 3 are indexed"}},
    {"fn main(x: f32[3, 4]) -> f32[4] = x[\"a\"]",
     {"1:37: a string cannot stand here [there are no string values]"}},
    {"fn main(x: f32[3, 4], y: f32[3]) -> f32[3] = x @ y",
     {"1:50: cannot multiply f32[3, 4] by f32[3]: the inner extents differ (4, 3) [transpose the left side: transpose(a) @ b]"}},
    {"fn main(x: f32[3], k: int) -> f32[3] = softmax(x, axis=k)",
     {"1:56: argument 'axis' of 'softmax' must be known at compile time [write a number, or a dim of the file (dim k = ...)]"}},
    {"fn main(x: f32[3]) -> f32[3] = softmax(x, axes=0)",
     {"1:43: 'softmax' has no argument 'axes' [did you mean 'axis'?]"}},
    {"fn main(x: f32[n, 3]) -> f32[n] = sum(x, dim=1)",
     {"1:42: 'sum' has no argument 'dim' [did you mean 'axis'?]"}},
    {"fn main(x: f32[n, 3]) -> f32[3, n] = x.T",
     {"1:40: a value of type 'f32[n, 3]' has no fields [transpose(x) exchanges the last two axes]"}},
    {"fn main(x: f32[n]) -> f32 = x.sum",
     {"1:31: a value of type 'f32[n]' has no fields [it is called as a function: sum(x)]"}},
    {"fn main(x: f32[n, 3]) -> f32[n, 3] = max(x, 0)",
     {"1:38: the result of 'main' must be 'f32[n, 3]', but this is 'f32[3]' [max reduces x along an axis; element by element it is maximum(a, b)]"}},
    {"fn main(x: f32, y: f32) -> f32[2] = [x, y]",
     {"1:37: the result of 'main' must be 'f32[2]', but this is 'list<f32>' [stack(list) makes one tensor of a list of tensors]"}},
    {"fn main(x: f32[n]) -> f32[n+1] = concat(x, [1.0])",
     {"1:44: argument 'tensors' of 'concat' must be a tensor, but this is 'list<float>' [stack([f32(a), f32(b)]) makes a tensor of numbers]"}},
    {"dim h = 4\nparam w : f32[2*h, h] = glorot\nfn main(x: f32[h]) -> f32[h] = x @ w",
     {"3:36: cannot multiply f32[h] by f32[2*h, h]: the inner extents differ (h = 4, 2*h = 8) [concat(x, y, axis=-1) of tensors with h each has 2 times as many]"}},
    {"fn main(x: f32[3]) -> f32 = x[7]",
     {"1:31: index 7 is out of range for axis 0 of f32[3]"}},
    {"dim k = 2\nfn main(x: f32[n, k]) -> f32[n] = x[:, k]",
     {"2:40: index 2 is out of range for axis 1 of f32[n, k] (k = 2)"}},
    {"fn main(x: f32[3]) -> f32 = cross_entropy(x, 3)",
     {"1:46: label 3 is out of range for 3 classes"}},
    {"dim k = 3\nfn main(x: int) -> f32[?] = zeros(1 + k / 2)",
     {"2:35: k / 2 leaves a remainder (3 / 2), but an extent must be divided exactly [let k: int = ... rounds the quotient, and k can be an extent]"}},
    {"fn main(x: f32[3]) -> f32[3] = tanh(x, x)",
     {"1:40: 'tanh' takes no more arguments [it is written tanh(x)]"}},
    {"fn main(x: f32[3]) -> f32[3] = layer_norm(x)",
     {"1:32: 'layer_norm' is missing its argument 'gain' [it is written layer_norm(x, gain, bias, eps=...)]"}},
    {"fn main(xs: list<f32[3]>) -> f32[3] = tanh(xs)",
     {"1:44: argument 'x' of 'tanh' must be a tensor, but this is 'list<f32[3]>' [stack(list) makes one tensor of a list of tensors]"}},
    {"fn main(x: f32[3]) -> f32[3] = stack(x)",
     {"1:38: argument 'list' of 'stack' must be a list, but this is 'f32[3]'"}},
    {"param w : f32[3, n] = glorot\nfn main(x: int) -> int = x",
     {"1:18: there is no dim 'n' here [declare it: dim n = ...]"}},
    {"param w : f32[3] = glorit\nfn main(x: int) -> int = x",
     {"1:20: there is no initialiser 'glorit' [did you mean 'glorot'?]"}},
    {"param w : f32[3] = normal\nfn main(x: int) -> int = x",
     {"1:20: initialiser 'normal' is written normal(std) or normal(mean, std)"}},
    {"param w : int = zeros\nfn main(x: int) -> int = x",
     {"1:11: param 'w' must be a tensor, but its type is 'int'"}},
    {"param w : f32[3] = identity\nfn main(x: int) -> int = x",
     {"1:20: initialiser 'identity' needs a matrix, but 'w' is 'f32[3]'"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nfn main(x: f32[3]) -> f32[3] = { let l = L(3); l.run(x) }",
     {"3:42: layer 'L' cannot be made inside a function: its params would have no names [let x = L(...), outside functions]"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet l = L(3, 4)\nfn main(x: f32[3]) -> f32[3] = l.run(x)",
     {"3:9: layer 'L' takes 1 dim, but 2 are given"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet l = L(3)\nfn main(x: f32[4]) -> f32[4] = l.run(x)",
     {"4:38: argument 'x' of 'run' must be 'f32[3]', but this is 'f32[4]'"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet l = L(3)\nfn main(x: f32[3]) -> f32[3] = l.rum(x)",
     {"4:34: layer 'L' has no function 'rum' [did you mean 'run'?]"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet l = L(3)\nfn main(x: f32[3]) -> f32[3] = x @ l.v",
     {"4:38: layer 'L' has no member 'v'"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet ls = [L(3), L(4)]\nfn main(x: f32[3]) -> f32[3] = ls[0].run(x)",
     {"3:17: the elements of a list have one type, but this is 'L(4)' and those before it are 'L(3)'"}},
    {"layer L(n) { let inner = L(n) }\nlet l = L(3)\nfn main(x: f32[3]) -> f32[3] = x",
     {"1:7: layer 'L' contains itself, so it would have endlessly many params"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nfn main(x: f32[3]) -> f32[3] = L.run(x)",
     {"3:32: 'L' is a layer; an instance of it is made by a call [let x = L(...), outside functions]"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  fn run(x: f32[n]) -> f32[n] = x @ w }\nlet l = L(3)\nfn main(x: f32[3], b: bool) -> f32[3] = { let m = if b { l } else { l }; m.run(x) }",
     {"4:56: the branches of 'if' cannot give a layer [call it inside instead]"}},
    {"let f = |x: int| x\nfn main(x: int) -> int = x",
     {"1:9: a 'let' outside functions cannot hold a function [declare it with fn: fn f(...) = ...]"}},
    {"let a = b\nlet b = a\nfn main(x: int) -> int = x",
     {"2:9: the value of 'a' depends on itself"}},
    {"fn foo(x: int) -> int = x",
     {"1:1: there is no function 'main' to begin with [declare fn main(...) -> ... = ..., or name another function with --entry]"}},
    {"fn main<T>(x: T) -> T = x",
     {"1:4: 'main' is where a run begins, so it cannot be generic [say what type 'T' is]"}},
    {"fn main(f: (int) -> int) -> int = f(3)",
     {"1:12: 'main' is where a run begins, so it cannot take a function"}},
    {"fn f(x: Tre) -> int = 1\ndata Tree = Leaf\nfn main(x: int) -> int = x",
     {"1:9: there is no type 'Tre' [did you mean 'Tree'?]"}},
    {"data Rose<T> = Rose(v: T, kids: list<Rose<T>>)\nfn main(x: Rose) -> int = 1",
     {"2:12: type 'Rose' takes 1 type argument, but 0 are given"}},
    {"data P = P(x: f32[n])\nfn main(x: P) -> int = 1",
     {"1:19: there is no dim 'n' here [declare it: dim n = ..., or write '?' for an extent that may differ]"}},
    {"fn f<T>(x: T) -> T = x + x\nfn main(x: int) -> int = f(x)",
     {"1:22: '+' cannot be applied to 'T' ['T' may be any type]"}},
    {"fn main(x: int) -> int = { let a: f32[3] = x; let b = a + 1; b }",
     {"1:44: 'a' must be 'f32[3]', but this is 'int'",
      "1:62: the result of 'main' must be 'int', but this is 'f32[3]' ['read' waits for the element of a tensor and gives it as a host value]"}},
    {"dim a = 4, b = 8\nfn main(x: f32[a]) -> f32[a] = { check a == b; x }",
     {"2:40: this check never holds: 4 is not 8"}},
    {"fn main(x: f32[n]) -> f32[2] = { check n == 3; x }",
     {"1:48: the result of 'main' must be 'f32[2]', but this is 'f32[n]'"}},
    {"fn main(x: int) -> int = x.size",
     {"1:28: a value of type 'int' has no fields"}},
    {"data P = P(left: int, right: int)\nfn main(p: P) -> int = p.lift",
     {"2:26: 'P' has no field 'lift' [did you mean 'left'?]"}},
    {"fn main(t: (int, int)) -> int = t[0]",
     {"1:33: a value of type '(int, int)' cannot be indexed [take the tuple apart: let (a, b) = ...]"}},
    {"fn main(x: token) -> int = x + 1",
     {"1:28: '+' needs two values of one type, but these are 'token' and 'int' [int(t) gives the number of a token]"}},
    {"fn main(x: token<word>) -> token<tag> = x",
     {"1:41: the result of 'main' must be 'token<tag>', but this is 'token<word>'"}},
    {"fn main(x: f32[3]) -> i32[3] = x",
     {"1:32: the result of 'main' must be 'i32[3]', but this is 'f32[3]'"}},
    {"fn main(x: f32[3], y: i32[3]) -> f32[3] = x + y",
     {"1:47: cannot add f32[3] and i32[3]: the element types differ [convert one of them with f32(...) or i32(...)]"}},
    {"fn apply(f: ((int) -> int) -> int) -> int = f(|x| x)\nfn main(x: int) -> int = x",
     {"1:14: a function type can stand only as the type of a parameter [functions can be passed as arguments, but not returned nor stored]"}},
    {"fn main(x: int) -> int = \"a\"",
     {"1:26: a string cannot stand here [there are no string values]"}},
    {"fn main(x: int) -> int = -(x == 1)",
     {"1:26: '-' cannot be applied to 'bool'"}},
    {"fn main(x: float) -> float = x % 2.0",
     {"1:30: '%' cannot be applied to 'float'"}},
    {"fn main(x: bool, y: bool) -> bool = x < y",
     {"1:37: '<' cannot be applied to 'bool'"}},
    {"fn main(x: f32[2]) -> int = len(3)",
     {"1:33: the argument of 'len' must be a list, but this is 'int'"}},
    {"fn main(x: f32[2]) -> list<f32> = rows(x)",
     {"1:40: the argument of 'rows' must be a tensor of 2 or more axes, but this is 'f32[2]'"}},
    {"fn main(x: f32[4]) -> f32[2, 3] = reshape(x, 2, 3)",
     {"1:43: cannot reshape f32[4] to f32[2, 3]: the numbers of elements differ (4, 6)"}},
    {"fn f(x: int) -> int = x\nfn f(x: int) -> int = x\nfn main(x: int) -> int = x",
     {"2:4: 'f' is already declared {1:4: the first declaration is here}"}},
    {"data T = A(x: int) | A(y: int)\nfn main(x: int) -> int = x",
     {"1:22: 'A' is already declared {1:10: the first declaration is here}"}},
    {"fn g(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = f(x)\nfn main(x: f32[4]) -> f32[4] = g(|y| concat(y, y), x)",
     {"2:38: the result of argument 'f' of 'g' must be 'f32[4]', but this is 'f32[8]'"}},
    {"fn main(x: f32[4]) -> f32[4] = { let y: f32[m, m] = x; y }",
     {"1:53: 'y' must be 'f32[m, m]', but this is 'f32[4]'"}},
    {"fn main(x: float) -> f32 = x",
     {"1:28: the result of 'main' must be 'f32', but this is 'float' [write f32(...)]"}},
    {"fn main(x: int) -> int = zip([x])",
     {"1:26: 'zip' takes 2 or more arguments, but 1 is given"}},
    {"fn main(xs: list<int>, ys: list<float>) -> list<int> = concat(xs, ys)",
     {"1:67: an argument of 'concat' must be 'list<int>', but this is 'list<float>'"}},
    {"fn main(xs: list<int>) -> list<int> = append(xs, 1.5)",
     {"1:50: the second argument of 'append' must be 'int', but this is 'float' [write int(...)]"}},
    {"fn main(x: int) -> int = range(1, 2, 3)",
     {"1:26: 'range' takes 1 or 2 arguments, but 3 are given"}},
    {"fn main(x: int) -> list<int> = range(1.5)",
     {"1:38: an argument of 'range' must be 'int', but this is 'float' [write int(...)]"}},
    {"fn main(x: f32[3]) -> f32[3] = map(|y| y, x)",
     {"1:43: the second argument of 'map' must be a list, but this is 'f32[3]'"}},
    {"fn main(x: int) -> int = max(x, 1.5)",
     {"1:26: 'max' needs two values of one type, but these are 'int' and 'float' [write float(...) around the int]"}},
    {"fn main(x: f32[n]) -> f32[2*n] = concat(x, x, x)",
     {"1:34: the result of 'main' must be 'f32[2*n]', but this is 'f32[3*n]'"}},
    {"fn main(x: f32[n, m]) -> f32[m, n] = x @ x",
     {"1:42: cannot multiply f32[n, m] by f32[n, m]: the inner extents differ (m, n) [transpose the right side: a @ transpose(b)]"}},
    {"dim h = 4\ndata P = P(m: f32[?, h])\nfn main(p: P, q: P) -> f32[?, h] = p.m + q.m",
     {"3:42: cannot add f32[?, h] and f32[?, h]: the extents of axis 0 differ (?, ?) [each '?' is an extent of its own; name them, as in let a: f32[n, h] = ..., and compare the names: check n == m]"}},
    {"dim h = 4\nfn grow(x: f32[n], k: int) -> f32[n] = if k == 0 { x } else { grow(concat(x, x), k - 1) }\nfn main(x: f32[h]) -> f32[h] = grow(x, 3)",
     {"2:63: the result of 'grow' must be 'f32[n]', but this is 'f32[2*n]'"}},
    {"fn main(x: int) -> int = { check x; x }",
     {"1:34: the condition of 'check' must be 'bool', but this is 'int'"}},
    {"fn main(x: int) -> int = { let (a, 3) = (x, x); a }",
     {"1:32: the pattern of a 'let' must match every value, but not (_, 0) [use match]"}},
    {"fn main((a, 3): (int, int)) -> int = a",
     {"1:9: the pattern of a parameter must match every value, but not (_, 0) [use match]"}},
    {"fn main(xs: list<(int, int)>) -> list<int> = map(|(a, 1)| a, xs)",
     {"1:51: the pattern of a parameter must match every value, but not (_, 0) [use match]"}},
    {"layer L(n) { param w : f32[n, n] = glorot\n  param w : f32[n] = zeros }\nfn main(x: int) -> int = x",
     {"2:9: 'w' is already declared in layer 'L' {1:20: the first declaration is here}"}},
    {"layer L(n) { fn run(x: f32[n]) -> f32[n] = x }\nlet l = L(2)\nfn f(m: L, x: f32[2]) -> f32[2] = m.run(x)\nfn main(x: f32[2]) -> f32[2] = f(l, x)",
     {"3:9: layer 'L' has 1 dim, but 0 are given"}},
    {"layer L(n) { fn run(x: f32[n]) -> f32[n] = x }\nlet l = L(2)\nfn main(x: int) -> list<int> = map(|p| p, [(l, 1)])",
     {"3:45: a tuple cannot hold a layer"}},
    {"fn main(x: f32[0]) -> int = 1",
     {"1:16: an extent is at least 1, but this is 0"}},
    {"fn main(x: f32[3]) -> f32[3] = x.relu()",
     {"1:34: a value of type 'f32[3]' has no functions [write relu(...)]"}},
    {"fn main(a: bool, b: int) -> bool = a && b",
     {"1:36: '&&' needs two values of one type, but these are 'bool' and 'int'"}},
    {"fn main(a: bool[3], b: int) -> bool[3] = !a && b",
     {"1:48: cannot apply 'and' to bool[3] and an int: the element types differ"}},
    {"fn main(x: list<int>) -> int = match x { a :: b => a; [] => 0; _ => 1 }",
     {"1:64: this arm is never reached: the arms before it cover all it matches"}},
    {"data T = A | B\nfn main(t: T) -> int = match t { A() => 1; B => C }",
     {"2:49: there is no 'C' here"}},
    {"data T = A | B(x: int)\nfn main(t: T) -> T = B",
     {"2:22: constructor 'B' needs its fields [write B(x)]"}},
    {"fn main(x: f32[3]) -> f32[3] = full(x, 3)",
     {"1:37: argument 'value' of 'full' must be a constant number"}},
    {"fn main(x: f32[3]) -> f32[3] = zeros(1.5)",
     {"1:38: argument 'dims' of 'zeros' must be 'int', but this is 'float' [write int(...)]"}},
    {"fn main(x: int) -> f32[3] = one_hot(x, 3) + nothing",
     {"1:45: there is no 'nothing' here"}},
    {"let c = random(3)\nfn main(x: f32[3]) -> f32[3] = x + c",
     {"1:9: 'c' is a constant, so it cannot be random [draw inside a function]"}},
    {"fn f() -> f32[3] = dropout(ones(3), 0.5)\nfn g() -> f32[3] = f()\nlet c = 2 * g()\nfn main(x: f32[3]) -> f32[3] = x + c",
     {"3:9: 'c' is a constant, so it cannot be random [draw inside a function]"}},
    {"layer L(n) {\n  let noise = map(|x| random(n), [1, 2])\n  fn run(x: f32[n]) -> f32[n] = x + noise[0] }\nlet l = L(3)\nfn main(x: f32[3]) -> f32[3] = l.run(x)",
     {"2:15: 'noise' is a constant, so it cannot be random [draw inside a function]"}},
    {"param w : f32[3] = random(3)\nfn main(x: f32[3]) -> f32[3] = x + w",
     {"1:20: there is no initialiser 'random' [the initialisers are zeros, ones, constant, normal, uniform, glorot, he, orthogonal and identity]"}},
    {"fn main(x: f32[3]) -> f32[3] = random(x)",
     {"1:39: argument 'dims' of 'random' must be 'int', but this is 'f32[3]' ['read' waits for the element of a tensor and gives it as a host value]"}},
    {"fn main(x: f32[n]) -> f32[n] = x + random(3)",
     {"1:36: cannot add f32[n] and f32[3]: the extents of axis 0 differ (n, 3) [if they are always equal, say so before: check n == 3]"}},
    {"fn main(x: f32[3]) -> f32[3] = dropout(x)",
     {"1:32: 'dropout' is missing its argument 'p' [it is written dropout(x, p)]"}},
    {"fn main(x: f32[3]) -> f32[3] = dropout(x, 0.5, 7)",
     {"1:48: 'dropout' takes no more arguments [it is written dropout(x, p)]"}},
    {"fn main(x: f32[3]) -> f32[3] = dropout(x, 0.5, key=7)",
     {"1:48: 'dropout' has no argument 'key'"}},
    {"fn main(x: f32[3]) -> f32[3] = dropout(x, 1)",
     {"1:32: the probability 'p' of 'dropout' must be at least 0 and below 1"}},
    {"fn main(x: f32) -> i32 = sample(x)",
     {"1:33: cannot sample from f32: it has no axes"}},
};
// clang-format on

class CheckerMessages : public testing::TestWithParam<BadProgram> {};

TEST_P(CheckerMessages, ReadAsWritten) {
  Parsed parsed(GetParam().text);
  ASSERT_FALSE(parsed.diags.hasErrors()) << parsed.diags.render();
  CheckedModule checked = check(parsed.module, {}, parsed.diags);
  EXPECT_EQ(messagesOf(parsed), GetParam().messages) << GetParam().text;
  EXPECT_EQ(checked.ok, !parsed.diags.hasErrors());
}

INSTANTIATE_TEST_SUITE_P(All, CheckerMessages, testing::ValuesIn(badPrograms));

TEST(CheckerOptions, DimsFromOutsideAreChecked) {
  Parsed parsed("dim hidden = 4\nfn main(x: f32[hidden]) -> f32[hidden] = x");
  CheckOptions options;
  options.dims = {{"hiden", 8}, {"hidden", -1}};
  check(parsed.module, options, parsed.diags);
  EXPECT_EQ(messagesOf(parsed),
            (std::vector<std::string>{
                "1:1: a value is given for dim 'hiden', which the file does not declare [did you "
                "mean 'hidden'?]",
                "1:5: dim 'hidden' is -1, but a dim is from 1 to 2147483647"}));
}

TEST(CheckerOptions, OtherEntries) {
  Parsed parsed("fn first(x: int) -> int = x\nfn second(x: int) -> int = x");
  CheckOptions options;
  options.entry = "frist";
  check(parsed.module, options, parsed.diags);
  EXPECT_EQ(messagesOf(parsed),
            (std::vector<std::string>{
                "1:1: there is no function 'frist' to begin with [did you mean 'first'?]"}));
}

TEST(CheckerMessagesMany, StopAtTheLimit) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += fmt::format("fn f{}(x: int) -> float = x\n", i);
  Parsed parsed(text);
  check(parsed.module, {}, parsed.diags);
  EXPECT_EQ(parsed.diags.all().size(), 20u);
  EXPECT_TRUE(parsed.diags.tooManyErrors());
}

} // namespace
} // namespace sheaf

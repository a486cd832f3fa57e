// Every message of the parser, as it must read.

#include "compiler/frontend/AstPrinter.h"
#include "tests/frontend/parsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {
namespace {

struct Unparsable {
  const char *text;
  /// In source order, each as `line:column: message [help] {line:column note}`.
  std::vector<std::string> errors;
};

std::vector<std::string> errorsIn(const Parsed &parsed) {
  auto placed = [&](SourceRange range, const std::string &message) {
    LineColumn at = parsed.source.lineColumn(range.begin);
    return fmt::format("{}:{}: {}", at.line, at.column, message);
  };
  std::vector<std::pair<uint32_t, std::string>> errors;
  for (const Diagnostic &diagnostic : parsed.diags.all()) {
    std::string error = placed(diagnostic.range, diagnostic.message);
    if (!diagnostic.help.empty())
      error += " [" + diagnostic.help + "]";
    for (const DiagnosticNote &note : diagnostic.notes)
      error += " {" + placed(note.range, note.message) + "}";
    errors.emplace_back(diagnostic.range.begin, error);
  }
  std::sort(errors.begin(), errors.end());
  std::vector<std::string> texts;
  for (auto &[offset, text] : errors)
    texts.push_back(std::move(text));
  return texts;
}

const Unparsable unparsable[] = {
    {"dim", {"1:4: expected the name of a dim but found end of file"}},
    {"dim 3 = 4", {"1:5: expected the name of a dim but found '3'"}},
    {"dim hidden 256", {"1:12: expected '=' after the name of a dim but found '256'"}},
    {"dim a = 1 dim b = 2", {"1:11: expected end of line after a declaration but found 'dim'"}},
    {"dim a = 1,", {"1:11: expected the name of a dim but found end of file"}},
    {"dim match = 3",
     {"1:5: 'match' is a keyword and cannot be a name [choose another name, such as 'match_']"}},
    {"param", {"1:6: expected the name of a param but found end of file"}},
    {"param w = zeros",
     {"1:9: expected ':' and the type of the param but found '=' [a param is written param "
      "name : type = initialiser]"}},
    {"param w : f32[n]",
     {"1:17: expected '=' and an initialiser but found end of file [a param says how it "
      "begins, as in '= zeros' or '= glorot']"}},
    {"param w : f32[n] = 0.5",
     {"1:20: expected an initialiser but found '0.5' [write a name, as in 'zeros', "
      "'normal(0.1)' or 'constant(1)']"}},
    {"param w : f32[n] zeros",
     {"1:18: expected '=' and an initialiser but found 'zeros' [a param says how it begins, "
      "as in '= zeros' or '= glorot']"}},
    {"data T", {"1:7: expected '=' and the constructors but found end of file"}},
    {"data T = ", {"1:9: expected a constructor but found end of file"}},
    {"data T = A, B",
     {"1:11: expected '|' or end of line but found ',' [constructors are separated by '|']"}},
    {"data T = a(x: int)", {"1:10: the constructor 'a' must begin with a capital letter"}},
    {"data T = A(int)",
     {"1:15: expected ':' after the name of a field but found ')' [a field is written name: "
      "Type]"}},
    {"data T = A(x int) | B(y: int z: int)",
     {"1:14: expected ':' after the name of a field but found 'int' [a field is written name: "
      "Type]",
      "1:30: expected ',' or ')' but found 'z' [is a ',' missing before it?] {1:22: '(' was "
      "opened here}"}},
    {"data T<A = X", {"1:10: expected ',' or '>' but found '=' {1:7: '<' was opened here}"}},
    {"fn", {"1:3: expected the name of a function but found end of file"}},
    {"fn f = 3",
     {"1:6: expected '(' and the parameters but found '=' [a function is written fn f(x: T) "
      "-> R = body]"}},
    {"fn f(x) = x",
     {"1:7: expected ':' and a type after the parameter but found ')' [a parameter is written "
      "name: Type]"}},
    {"fn f(x: ) = x", {"1:9: expected a type but found ')'"}},
    {"fn f(x: int y: int) = x",
     {"1:13: expected ',' or ')' but found 'y' [is a ',' missing before it?] {1:5: '(' was "
      "opened here}"}},
    {"fn f(x: int -> int) = x",
     {"1:13: '->' must follow types in parentheses [a function type is written (A) -> B]"}},
    {"fn f(x: int): int = x",
     {"1:13: expected '=' or '{' before the body of the function but found ':' [the type of "
      "the result is written '-> Type']"}},
    {"fn f(x: int) => x",
     {"1:14: expected '=' or '{' before the body of the function but found '=>' [a function "
      "is written fn f(x: T) -> R = body]"}},
    {"fn f(x: int = 3) = x",
     {"1:13: expected ',' or ')' but found '=' [parameters have no default values]"}},
    {"fn f() -> int -> int = 3",
     {"1:15: '->' must follow types in parentheses [a function type is written (A) -> B]"}},
    {"fn f(x: int) == x",
     {"1:14: expected '=' or '{' before the body of the function but found '==' [a function "
      "is written fn f(x: T) -> R = body]"}},
    {"fn f(x: int) x", {"1:14: expected '=' or '{' before the body of the function but found 'x'"}},
    {"fn f(x: int) -> = x", {"1:17: expected a type but found '='"}},
    {"fn f(x: [int]) = x", {"1:9: expected a type but found '[' [a list is written list<T>]"}},
    {"fn f(x: list) = x",
     {"1:13: expected '<' after 'list' but found ')' [a list is written list<T>]"}},
    {"fn f(x: int[3], y: float[2], z: Tree[n], l: list<int>[4, n]) = x",
     {"1:12: the type 'int' takes no dims [a tensor of them is written i32[n] or i64[n]]",
      "1:25: the type 'float' takes no dims [a tensor of them is written f32[n]]",
      "1:37: the type 'Tree' takes no dims [only tensors, tokens and lists have dims; a list is "
      "written list<T> or list<T>[n]]",
      "1:54: a list has one length, not 2 [a list of n elements is written list<T>[n]]"}},
    {"fn f(x: f32[a == 2]) = x",
     {"1:15: expected ',' or ']' but found '==' {1:12: '[' was opened here}"}},
    {"fn f(x: f32[g(a)], y: f32[a @ b], z: f32[!a], w: f32[1.5]) = x",
     {"1:13: this cannot be a dim [a dim is made of names, integers, + - * / and %]",
      "1:27: this cannot be a dim [a dim is made of names, integers, + - * / and %]",
      "1:42: this cannot be a dim [a dim is made of names, integers, + - * / and %]",
      "1:54: this cannot be a dim [a dim is made of names, integers, + - * / and %]"}},
    {"fn f(xs: list<token>) -> token[len(xs)] = x",
     {"1:32: this cannot be a dim [name the length where the list's type is written: list<T>[n], "
      "and then n]"}},
    {"fn if(x: int) = x",
     {"1:4: 'if' is a keyword and cannot be a name [choose another name, such as 'if_']"}},
    {"fn f(x: int) =", {"1:15: expected an expression but found end of file"}},
    {"fn f(x: int) = x +", {"1:19: expected an expression but found end of file"}},
    {"fn f() = x + * y", {"1:14: expected an expression but found '*'"}},
    {"fn f() = x ** y", {"1:13: expected an expression but found '*' [there is no operator '**']"}},
    {"fn f() = x; y",
     {"1:13: expected a declaration but found 'y' [a file is made of use, dim, data, param, let, "
      "layer, fn and check declarations]"}},
    {"layer", {"1:6: expected the name of a layer but found end of file"}},
    {"layer L(3) { }", {"1:9: expected the name of a dim but found '3'"}},
    {"layer L(a) param w : f32 = zeros",
     {"1:12: expected '{' and the members of the layer but found 'param'"}},
    {"layer L(a) {\n"
     "  w : f32 = zeros\n"
     "}",
     {"2:3: expected a declaration but found 'w' [a layer is made of param, let and fn "
      "declarations]"}},
    {"layer L(a) {\n"
     "  data D = A\n"
     "  param w : f32 = zeros\n"
     "}",
     {"2:3: a 'data' cannot stand in a layer [move it out of the layer]"}},
    {"layer L(a) {\n"
     "  param w : f32 = zeros\n"
     "data D = A",
     {"3:1: expected '}' before 'data' {1:12: '{' was opened here}"}},
    {"let", {"1:4: expected a name but found end of file"}},
    {"let x", {"1:6: expected '=' but found end of file ['let' needs a value: let x = ...]"}},
    {"let x 3", {"1:7: expected '=' but found '3' ['let' needs a value: let x = ...]"}},
    {"let (a, b) = c",
     {"1:5: expected a name but found '(' [a 'let' outside functions gives one name]"}},
    {"import torch",
     {"1:1: expected a declaration but found 'import' [another file is used by: use "
      "\"lib/lstm.sheaf\"]"}},
    {"def f(x): x",
     {"1:1: expected a declaration but found 'def' [functions are declared with 'fn']"}},
    {"class Net { }",
     {"1:1: expected a declaration but found 'class' [layers are declared with 'layer', types "
      "with 'data']"}},
    {"3 + 4",
     {"1:1: expected a declaration but found '3' [a file is made of use, dim, data, param, let, "
      "layer, fn and check declarations]"}},
    {"}", {"1:1: expected a declaration but found '}' [this '}' closes nothing]"}},
    {"fn f() = if x { 1 }",
     {"1:10: this 'if' has no 'else' [an 'if' has a value: add 'else { ... }']"}},
    {"fn f() = if x { 1 } else 2",
     {"1:26: expected '{' or 'if' after 'else' but found '2' [both branches stand in braces]"}},
    {"fn f() = if x then 1 else 2",
     {"1:15: expected '{' but found 'then' [write 'if c { a } else { b }']"}},
    {"fn f() = if x = y { 1 } else { 2 }", {"1:15: expected '{' but found '=' ['==' compares]"}},
    {"fn f() = if (a = b) { 1 } else { 2 }",
     {"1:16: expected ',' or ')' but found '=' ['==' compares]"}},
    {"fn f() = a = b",
     {"1:12: expected end of line after a declaration but found '=' ['==' compares]"}},
    {"fn f() = if x 1 else 2", {"1:15: expected '{' but found '1'"}},
    {"fn f() = else { 2 }",
     {"1:10: expected an expression but found 'else' [an 'else' follows the '}' of its 'if']"}},
    {"fn f() = { let x = if y { 1 }\n"
     " elif z { 2 } else { 3 }\n"
     " x }",
     {"2:2: expected 'else' but found 'elif' [write 'else if']"}},
    {"fn f() = match x { }",
     {"1:10: this 'match' has no arms [an arm is written pattern => value]"}},
    {"fn f() = match x", {"1:17: expected '{' and the arms but found end of file"}},
    {"fn f() = match x { 1 -> 2 }",
     {"1:22: expected '=>' after the pattern but found '->' [an arm is written pattern => "
      "value]"}},
    {"fn f() = match x { 1 = 2 }",
     {"1:22: expected '=>' after the pattern but found '=' [an arm is written pattern => "
      "value]"}},
    {"fn f() = match x { 1: 2, 2 => 3 }",
     {"1:21: expected '=>' after the pattern but found ':' [an arm is written pattern => "
      "value]"}},
    {"fn f() = match x { 1 => 2 3 => 4 }",
     {"1:27: expected end of line or ',' after an arm but found '3'"}},
    {"fn f() = match x {\n"
     "  | A => 3\n"
     "}",
     {"2:3: expected a pattern but found '|' [arms do not begin with '|']"}},
    {"fn f() = match x { a if => 3 }", {"1:25: expected an expression but found '=>'"}},
    {"fn f() = match x { 0.5 => 3 }",
     {"1:20: a pattern cannot be a float [test it in a guard: x if x < 0.5 => ...]"}},
    {"fn f() = match x { \"a\" => 3 }", {"1:20: a pattern cannot be a string"}},
    {"fn f() = match x { node(a) => 3 }",
     {"1:20: 'node' cannot be a constructor [constructors begin with a capital letter]"}},
    {"fn f() = match x { A(a b) => 3 }",
     {"1:24: expected ',' or ')' but found 'b' [is a ',' missing before it?] {1:21: '(' was "
      "opened here}"}},
    {"fn f() = match x { - => 3 }", {"1:22: expected an integer but found '=>'"}},
    {"fn f() = match x { + => 3, 4 => + }",
     {"1:20: expected a pattern but found '+'",
      "1:33: expected an expression but found '+' [there is no unary '+']"}},
    {"fn f() = match x { let => 3 }",
     {"1:20: 'let' is a keyword and cannot be a name [choose another name, such as 'let_']"}},
    {"fn f() = { }",
     {"1:12: expected an expression before the end of the block but found '}' [the last line "
      "of a block is its value; '()' is the value of nothing]"}},
    {"fn f() = { let x = 3 }",
     {"1:22: expected an expression before the end of the block but found '}' [the last line "
      "of a block is its value; '()' is the value of nothing]"}},
    {"fn f() = { let x; x }",
     {"1:17: expected '=' but found ';' ['let' needs a value: let x = ...]"}},
    {"fn f() = { let x\n"
     " x }",
     {"1:17: expected '=' but found end of line ['let' needs a value: let x = ...]"}},
    {"fn f() = { let = 3; x }", {"1:16: expected a pattern but found '='"}},
    {"fn f() = { let a, b = g(); a }",
     {"1:17: expected '=' but found ',' [a tuple is taken apart in parentheses: let (a, b) = "
      "...]"}},
    {"fn f() = { let x == 3; x }",
     {"1:18: expected '=' but found '==' ['=' gives a value, '==' compares]"}},
    {"fn f() = { let x: = 3; x }", {"1:19: expected a type but found '='"}},
    {"fn f() = { let fn = 3; x }",
     {"1:16: 'fn' is a keyword and cannot be a name [choose another name, such as 'fn_']"}},
    {"fn f() = { x = 3; x }",
     {"1:14: expected end of line after an expression but found '=' [a name is introduced "
      "with 'let': let x = ...]"}},
    {"fn f() = { g(x) + 1\n"
     "  x }",
     {"1:12: the value of this expression is not used [name it with 'let', or make it the "
      "last line of the block]"}},
    {"fn f() = { let a = b\n"
     "  - c\n"
     "  a }",
     {"2:3: the value of this expression is not used ['-' at the start of a line begins a new "
      "expression]"}},
    {"fn f() = { let a = b\n"
     "  (c)\n"
     "  a }",
     {"2:3: the value of this expression is not used ['(' at the start of a line begins a new "
      "expression]"}},
    {"fn f() = { let a = b let c = d; a }",
     {"1:22: expected end of line after a statement but found 'let'"}},
    {"fn f(x: f32[*]) = x", {"1:14: expected the name of the extents after '*' but found ']'"}},
    {"fn f(x: list<int>[*n]) = x", {"1:19: a list has one length, so '*' cannot stand here"}},
    {"fn f() = { check a == b \"no\"; a }",
     {"1:25: expected ',' before the message but found a string"}},
    {"fn f() = { check a == b, no; a }",
     {"1:26: expected a message in double quotes but found 'no'"}},
    {"fn f() = { return a }",
     {"1:19: expected end of line after an expression but found 'a' [there is no 'return': "
      "the last line of a block is its value]"}},
    {"fn f() = { for i in x { i } }",
     {"1:16: expected end of line after an expression but found 'i' [over a list go map, "
      "fold, scan and filter; loop(...) goes on while a condition holds]"}},
    {"fn f() = { while x { i } }",
     {"1:18: expected end of line after an expression but found 'x' [a loop is written "
      "loop(|x| CONDITION, |x| STEP, start)]"}},
    {"fn f() = a and b",
     {"1:12: expected end of line after a declaration but found 'and' [write '&&' for 'and']"}},
    {"fn f() = not a",
     {"1:14: expected end of line after a declaration but found 'a' [write '!' for 'not']"}},
    {"fn f() = a or b",
     {"1:12: expected end of line after a declaration but found 'or' [write '||' for 'or']"}},
    {"fn f() = let x = 3",
     {"1:10: expected an expression but found 'let' ['let' stands in a block: { let ...; "
      "value }]"}},
    {"fn f() = fn(x) x",
     {"1:10: expected an expression but found 'fn' [functions are declared outside functions; "
      "a lambda is written |x| body]"}},
    {"fn f() = lambda x: x",
     {"1:17: expected end of line after a declaration but found 'x' [a lambda is written |x| "
      "body]"}},
    {"fn f() = map(x => x + 1, xs)",
     {"1:16: expected ',' or ')' but found '=>' [a lambda is written |x| body] "
      "{1:13: '(' was opened here}"}},
    {"fn f() = fold(xs, 0, (acc, x) => acc + x)",
     {"1:31: expected an operator or the end of the expression but found '=>' [a lambda is written "
      "|x| body]"}},
    {"fn f() = _",
     {"1:10: expected an expression but found '_' ['_' is a pattern and has no value]"}},
    {"fn f() = { x += 1 }",
     {"1:15: expected an expression but found '=' [values never change; a new one has a name of "
      "its own: let y = x + 1]"}},
    {"fn f() = a if b else c",
     {"1:12: expected end of line after a declaration but found 'if' [a choice is written if c { "
      "a } else { b }]"}},
    {"fn f(x: f32(n)) = x",
     {"1:12: expected '[' before the dims of a tensor but found '(' [it is written f32[n, h]]"}},
    {"fn f() = +a", {"1:10: expected an expression but found '+' [there is no unary '+']"}},
    {"fn f() = a < b < c", {"1:16: comparisons cannot be chained [compare twice: a < b && b < c]"}},
    {"fn f() = g(a b)",
     {"1:14: expected ',' or ')' but found 'b' [is a ',' missing before it?] {1:11: '(' was "
      "opened here}"}},
    {"fn f() = g(a, b",
     {"1:16: expected ',' or ')' but found end of file {1:11: '(' was opened here}"}},
    {"fn f() = g(a,, b)", {"1:14: expected an expression but found ','"}},
    {"fn f() = g(a; b)", {"1:13: expected ',' or ')' but found ';' {1:11: '(' was opened here}"}},
    {"fn f() = [a, b)", {"1:15: expected ',' or ']' but found ')' {1:10: '[' was opened here}"}},
    {"fn f() = [1 2]",
     {"1:13: expected ',' or ']' but found '2' [is a ',' missing before it?] {1:10: '[' was "
      "opened here}"}},
    {"fn f() = {\n"
     "  let a = g(x, y\n"
     "  let b = 2\n"
     "  a\n"
     "}\n"
     "fn g() = )",
     {"3:3: expected ',' or ')' but found 'let' {2:12: '(' was opened here}",
      "6:10: expected an expression but found ')'"}},
    {"fn f() = {\n"
     "  let a = 2\n"
     "fn g() = 3",
     {"3:1: expected '}' before 'fn' {1:10: '{' was opened here}"}},
    {"fn f() = {\n"
     "  fn g() = 3\n"
     "  g()\n"
     "}",
     {"2:3: a 'fn' cannot stand inside a function [move it out, or write a lambda: let f = "
      "|x| body]"}},
    {"fn f() = {\n"
     "  dim n = 3\n"
     "  n\n"
     "}",
     {"2:3: a 'dim' cannot stand inside a function [move it out of the function]"}},
    {"fn f() = match x {\n"
     "  A => 3\n"
     "fn g() = 3",
     {"3:1: expected '}' before 'fn' {1:18: '{' was opened here}"}},
    {"fn f() = x[]", {"1:12: expected an index but found ']'"}},
    {"fn f() = x[1",
     {"1:13: expected ',' or ']' but found end of file {1:11: '[' was opened here}"}},
    {"fn f() = x[a:b:c]",
     {"1:15: expected ',' or ']' but found ':' [a slice is written begin:end, without a step]"}},
    {"fn f() = (a,)", {"1:10: a tuple has at least two elements [leave out the comma]"}},
    {"fn f() = g(a=1, b)",
     {"1:17: an argument without a name follows one with a name [write the named arguments "
      "last]"}},
    {"fn f() = g(a: 1)",
     {"1:13: expected ',' or ')' but found ':' [a named argument is written name=value]"}},
    {"fn f() = t.0",
     {"1:12: expected a name after '.' but found '0' [a tuple is taken apart by a pattern: "
      "let (a, b) = ...]"}},
    {"fn f() = t.", {"1:12: expected a name after '.' but found end of file"}},
    {"fn f() = t.match",
     {"1:12: 'match' is a keyword and cannot be a name [choose another name, such as 'match_']"}},
    {"fn f() = |x y| x",
     {"1:13: expected ',' or '|' after a parameter but found 'y' {1:10: '|' was opened here}"}},
    {"fn f() = |x, 3",
     {"1:15: expected ',' or '|' after a parameter but found end of file {1:10: '|' was opened "
      "here}"}},
    {"fn f() = \"abc",
     {"1:10: this string has no closing '\"' [a string ends on the line it begins]"}},
    {"fn f() = \"a\\q\"",
     {"1:12: unknown escape in a string [the escapes are \\n, \\t, \\\" and \\\\]"}},
    {"fn f() = 'a'",
     {"1:10: unexpected character ''' [strings stand in double quotes]",
      "1:12: unexpected character ''' [strings stand in double quotes]"}},
    {"fn f() = a $ b\n"
     "fn g() = a & b",
     {"1:12: unexpected character '$'", "2:12: '&' is not an operator [write '&&' for 'and']"}},
    {"fn f() = a /* no */ + b\n"
     "fn g() = +",
     {"1:12: there are no block comments [begin each line of the comment with '//']",
      "2:10: expected an expression but found '+' [there is no unary '+']"}},
    {"fn f() = 3x",
     {"1:10: this is neither a number nor a name [a name cannot begin with a digit]"}},
    {"fn f() = .5", {"1:10: a number cannot begin with '.' [write '0.5']"}},
    {"fn f() = 99999999999999999999",
     {"1:10: this integer is too large [the largest is 9223372036854775807]"}},
    {"fn f() = 1e999", {"1:10: this number is too large for a float"}},
    {"fn f() = a × b", {"1:12: unexpected character '×' [write '*']"}},
    {"fn f(é: int) = 3",
     {"1:6: unexpected characters outside ASCII [names are made of the letters a-z and A-Z, "
      "digits and '_']"}},
    {"fn f() = a b", {"1:12: expected end of line after a declaration but found 'b'"}},
    {"fn f() = a ? b : c",
     {"1:12: expected end of line after a declaration but found '?' [a choice is written if c "
      "{ a } else { b }]"}},
    {"fn f() = aVeryLongNameThatGoesOnAndOnAndOnForMoreThanFortyCharacters "
     "aVeryLongNameThatGoesOnAndOnAndOnForMoreThanFortyCharacters",
     {"1:70: expected end of line after a declaration but found "
      "'aVeryLongNameThatGoesOnAndOnAndOnForMore...'"}},
    {"let x = A ->", {"1:11: expected end of line after a declaration but found '->'"}},
    {"fn main(t: Tree) -> f32[n = { t }",
     {"1:27: expected ',' or ']' but found '=' {1:24: '[' was opened here}"}},
    {"fn f() = {\n"
     "  let a = b\n"
     "  (c, d)\n"
     "  [e]\n"
     "  a\n"
     "}",
     {"3:3: the value of this expression is not used ['(' at the start of a line begins a new "
      "expression]",
      "4:3: the value of this expression is not used ['[' at the start of a line begins a new "
      "expression]"}},
    {"fn f() = {\n"
     "  return a\n"
     "}",
     {"2:10: expected end of line after an expression but found 'a' [there is no 'return': "
      "the last line of a block is its value]"}},
    {"fn f(x: int,\n"
     " y int,\n"
     " z: [T]) -> int = {\n"
     "  let a =\n"
     "  let b = 1\n"
     "  c = 2\n"
     "  match b {\n"
     "    1 => +\n"
     "    2 -> 3\n"
     "    3 => 4\n"
     "  }\n"
     "}\n"
     "param w : f32 = 3\n"
     "layer L(n) {\n"
     "  param w = 3\n"
     "  fn g() = )\n"
     "  let q\n"
     "}\n"
     "fn h() = [1, 2",
     {"2:4: expected ':' and a type after the parameter but found 'int' [a parameter is "
      "written name: Type]",
      "3:5: expected a type but found '[' [a list is written list<T>]",
      "4:10: expected an expression but found end of line",
      "6:5: expected end of line after an expression but found '=' [a name is introduced with "
      "'let': let c = ...]",
      "8:10: expected an expression but found '+' [there is no unary '+']",
      "9:7: expected '=>' after the pattern but found '->' [an arm is written pattern => "
      "value]",
      "13:17: expected an initialiser but found '3' [write a name, as in 'zeros', "
      "'normal(0.1)' or 'constant(1)']",
      "15:11: expected ':' and the type of the param but found '=' [a param is written param "
      "name : type = initialiser]",
      "16:12: expected an expression but found ')'",
      "17:8: expected '=' but found end of line ['let' needs a value: let q = ...]",
      "19:15: expected ',' or ']' but found end of file {19:10: '[' was opened here}"}},
    {"fn f() = g(|x| {\n"
     "  let y = \n"
     "  y\n"
     "}, {\n"
     " z = 3\n"
     " z })",
     {"4:1: expected an expression before the end of the block but found '}' [the last line "
      "of a block is its value; '()' is the value of nothing]",
      "5:4: expected end of line after an expression but found '=' [a name is introduced with "
      "'let': let z = ...]"}},
    {"fn f() = {\n"
     "  let a = (1, 2\n"
     "  check a == b\n"
     "  let c = [1, {\n"
     "    let d = 3\n"
     "    d }\n"
     "  a\n"
     "}\n"
     "fn g() = +",
     {"3:3: expected ',' or ')' but found 'check' {2:11: '(' was opened here}",
      "7:3: expected ',' or ']' but found 'a' [is a ',' missing before it?] {4:11: '[' was "
      "opened here}",
      "9:10: expected an expression but found '+' [there is no unary '+']"}},
    {"layer L(n) {\n"
     "  fn f() = {\n"
     "    let a = 3\n"
     "  fn g() = 4\n"
     "}\n"
     "fn h() = ]",
     {"4:3: expected '}' before 'fn' {2:12: '{' was opened here}",
      "6:10: expected an expression but found ']'"}},
    {"data A = B(x: , y: int, z)\n"
     "data C = | D\n"
     "data E = F || G",
     {"1:15: expected a type but found ','",
      "1:26: expected ':' after the name of a field but found ')' [a field is written name: "
      "Type]",
      "3:12: expected end of line after a declaration but found '||'"}},
    {"fn f() = a # é “ is fine in a comment\n"
     "fn g() = \"é\" + )",
     {"2:16: expected an expression but found ')'"}},
    {"dim a = 1;; dim b = ; dim c = )",
     {"1:21: expected an expression but found ';'", "1:31: expected an expression but found ')'"}},
};

TEST(ParserMessages, ReadAsExpected) {
  for (const Unparsable &bad : unparsable) {
    Parsed parsed(bad.text);
    EXPECT_EQ(errorsIn(parsed), bad.errors) << bad.text;
    // What is left of the tree has no holes.
    printModule(parsed.module);
  }
}

TEST(ParserMessages, StopAfterTooMany) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "dim a = )\n";
  Parsed parsed(text, 5);
  EXPECT_EQ(parsed.diags.all().size(), 5u);
  EXPECT_EQ(parsed.diags.errorCount(), 6u);
}

} // namespace
} // namespace sheaf

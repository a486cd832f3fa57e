// Shape rules: result types and exact messages.

#include "tests/ops/types.h"

#include <gtest/gtest.h>

namespace sheaf::ops::test {
namespace {

struct Case {
  const char *op;
  std::vector<std::string> operands;
  const char *attributes;
  const char *expected;
};

void check(const std::vector<Case> &cases) {
  for (const Case &c : cases) {
    std::string call = c.op;
    for (const std::string &operand : c.operands)
      call += " " + operand;
    EXPECT_EQ(shapeOf(c.op, c.operands, c.attributes), c.expected) << call << " " << c.attributes;
  }
}

TEST(Shapes, Elementwise) {
  check({
      {"add", {"f32[hidden]", "f32[hidden]"}, "", "f32[hidden]"},
      {"add", {"f32[n, hidden]", "f32[hidden]"}, "", "f32[n, hidden]"},
      {"add", {"f32[n, 1]", "f32[m]"}, "", "f32[n, m]"},
      {"add", {"f32[n]", "f32[one]"}, "", "f32[n]"},
      {"add", {"f32[n]", "int"}, "", "f32[n]"},
      {"add", {"float", "bf16[n]"}, "", "bf16[n]"},
      {"add", {"i32[n]", "int"}, "", "i32[n]"},
      {"add", {"int", "float"}, "", "f32"},
      {"add", {"f32", "f32[n]"}, "", "f32[n]"},
      {"add",
       {"f32[hidden]", "f32[2*hidden]"},
       "",
       "error: cannot add f32[hidden] and f32[2*hidden]: the extents of axis 0 differ (hidden = "
       "256, 2*hidden = 512) [1]"},
      {"add",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot add f32[n] and f32[m]: the extents of axis 0 differ (n, m) [1]"},
      {"add",
       {"f32[n]", "f32[hidden]"},
       "",
       "error: cannot add f32[n] and f32[hidden]: the extents of axis 0 differ (n, hidden = 256) "
       "[1]"},
      {"add",
       {"f32[3, n]", "f32[m]"},
       "",
       "error: cannot add f32[3, n] and f32[m]: the last extents differ (n, m) [1]"},
      {"add",
       {"f32[n, 3, 2]", "f32[4, 2]"},
       "",
       "error: cannot add f32[n, 3, 2] and f32[4, 2]: the extents of axis -2 (from the end) differ "
       "(3, 4) [1]"},
      {"add",
       {"f32[n]", "bf16[n]"},
       "",
       "error: cannot add f32[n] and bf16[n]: the element types differ [1] (help: convert one of "
       "them with f32(...) or bf16(...))"},
      {"add",
       {"i32[n]", "float"},
       "",
       "error: cannot add i32[n] and a float: the tensor's elements are ints [1] (help: convert "
       "the tensor with f32(...), or the float with int(...))"},
      {"add",
       {"bool[n]", "bool[n]"},
       "",
       "error: cannot add bool[n] and bool[n]: 'add' takes numbers, not bool[n] [0] (help: convert "
       "it with f32(...))"},
      {"add",
       {"token[n]", "int"},
       "",
       "error: cannot add token[n] and an int: 'add' takes numbers, not token[n] [0]"},
      {"add",
       {"f32[n]", "bool"},
       "",
       "error: cannot add f32[n] and a bool: the element types differ [1]"},
      {"add",
       {"f32[n]", "token"},
       "",
       "error: cannot add f32[n] and a token: a token is not a number [1] (help: convert it with "
       "int(...))"},
      {"add",
       {"list<f32[n]>", "f32[n]"},
       "",
       "error: cannot add list<f32[n]> and f32[n]: a list is not a tensor [0]"},
      {"add",
       {"f32[?]", "f32[?]"},
       "",
       "error: cannot add f32[?] and f32[?]: the extents of axis 0 differ (?, ?) [1]"},
      {"sub",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot subtract f32[m] from f32[n]: the extents of axis 0 differ (n, m) [1]"},
      {"mul",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot multiply f32[n] and f32[m] element by element: the extents of axis 0 differ "
       "(n, m) [1]"},
      {"div",
       {"i32[n]", "i32[n]"},
       "",
       "error: cannot divide i32[n] by i32[n]: 'div' takes floats, not i32[n] [0] (help: convert "
       "it with f32(...))"},
      {"div",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot divide f32[n] by f32[m]: the extents of axis 0 differ (n, m) [1]"},
      {"pow", {"f32[n]", "int"}, "", "f32[n]"},
      {"neg", {"f32[n]"}, "", "f32[n]"},
      {"neg",
       {"bool[n]"},
       "",
       "error: cannot negate bool[n]: 'neg' takes numbers [0] (help: convert it with f32(...))"},
      {"maximum",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot apply 'maximum' to f32[n] and f32[m]: the extents of axis 0 differ (n, m) "
       "[1]"},
      {"minimum", {"i64[n]", "i64"}, "", "i64[n]"},
      {"clamp", {"f32[n]", "int", "float"}, "", "f32[n]"},
      {"clamp",
       {"i32[n]", "int", "float"},
       "",
       "error: cannot apply 'clamp' to i32[n], an int and a float: the tensor's elements are ints "
       "[2] (help: convert the tensor with f32(...), or the float with int(...))"},
      {"exp", {"f16[n, m]"}, "", "f16[n, m]"},
      {"exp",
       {"i32[n]"},
       "",
       "error: cannot apply 'exp' to i32[n]: 'exp' takes floats [0] (help: convert it with "
       "f32(...))"},
      {"exp", {"int"}, "", "f32"},
      {"exp", {"token[n]"}, "", "error: cannot apply 'exp' to token[n]: 'exp' takes floats [0]"},
      {"relu", {"i32[n]"}, "", "i32[n]"},
      {"eq", {"token<word>[n]", "token<word>[n]"}, "", "bool[n]"},
      {"eq",
       {"token<word>[n]", "token<tag>[n]"},
       "",
       "error: cannot compare token<word>[n] with token<tag>[n]: the vocabularies differ [1]"},
      {"eq",
       {"token[n]", "i32[n]"},
       "",
       "error: cannot compare token[n] with i32[n]: tokens are not numbers [1] (help: convert the "
       "tokens with i32(...))"},
      {"eq", {"bool[n]", "bool"}, "", "bool[n]"},
      {"lt",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot compare f32[n] with f32[m]: the extents of axis 0 differ (n, m) [1]"},
      {"lt",
       {"bool[n]", "bool[n]"},
       "",
       "error: cannot compare bool[n] with bool[n]: 'lt' takes numbers, not bool[n] [0] (help: "
       "convert it with f32(...))"},
      {"and", {"bool[n]", "bool[1]"}, "", "bool[n]"},
      {"and",
       {"f32[n]", "bool[n]"},
       "",
       "error: cannot apply 'and' to f32[n] and bool[n]: 'and' takes bools, not f32[n] [0]"},
      {"not", {"bool[n]"}, "", "bool[n]"},
      {"not", {"i32[n]"}, "", "error: cannot apply 'not' to i32[n]: 'not' takes bools [0]"},
      {"where", {"bool[n]", "f32[n]", "float"}, "", "f32[n]"},
      {"where", {"bool[n, 1]", "f32[m]", "int"}, "", "f32[n, m]"},
      {"where", {"bool", "f32[n]", "f32[n]"}, "", "f32[n]"},
      {"where",
       {"f32[n]", "f32[n]", "f32[n]"},
       "",
       "error: cannot apply 'where' to f32[n], f32[n] and f32[n]: 'where' takes a bool condition "
       "[0]"},
      {"where",
       {"bool[n]", "f32[n]", "i32[n]"},
       "",
       "error: cannot apply 'where' to bool[n], f32[n] and i32[n]: the element types differ [2] "
       "(help: convert one of them with f32(...) or i32(...))"},
      {"where",
       {"bool[n]", "f32[m]", "f32[m]"},
       "",
       "error: cannot apply 'where' to bool[n], f32[m] and f32[m]: the extents of axis 0 differ "
       "(n, m) [1]"},
      {"leaky_relu", {"f32[n]"}, "", "f32[n]"},
      {"leaky_relu",
       {"i32[n]"},
       "",
       "error: cannot apply 'leaky_relu' to i32[n]: its elements are not floats [0] (help: convert "
       "it with f32(...))"},
  });
}

TEST(Shapes, Casts) {
  check({
      {"f32", {"i32[n]"}, "", "f32[n]"},
      {"f32", {"bool[n, 2]"}, "", "f32[n, 2]"},
      {"f32", {"int"}, "", "f32"},
      {"bf16", {"f32[n]"}, "", "bf16[n]"},
      {"i32", {"token[n]"}, "", "i32[n]"},
      {"f32",
       {"token[n]"},
       "",
       "error: cannot convert token[n] to f32: tokens are not numbers [0] (help: convert it with "
       "i32(...) first)"},
      {"bool", {"f32[n]"}, "", "bool[n]"},
      {"i64",
       {"token"},
       "",
       "error: cannot convert a token to i64 [0] (help: convert it with int(...) first)"},
      {"f32", {"list<f32[n]>"}, "", "error: cannot convert list<f32[n]> to f32 [0]"},
  });
}

TEST(Shapes, Reductions) {
  check({
      {"sum", {"f32[n, hidden]"}, "", "f32"},
      {"sum", {"f32[n, hidden]"}, "axis=0", "f32[hidden]"},
      {"sum", {"f32[n, hidden]"}, "axis=-1, keepdims=1", "f32[n, 1]"},
      {"sum",
       {"f32[n, hidden]"},
       "axis=2",
       "error: axis 2 is out of range for f32[n, hidden], which has 2 axes"},
      {"sum",
       {"f32[n, hidden]"},
       "axis=-3",
       "error: axis -3 is out of range for f32[n, hidden], which has 2 axes"},
      {"sum", {"f32"}, "", "f32"},
      {"sum",
       {"bool[n]"},
       "",
       "error: cannot take the sum of bool[n]: its elements are not numbers [0] (help: convert it "
       "with f32(...))"},
      {"sum",
       {"token[n]"},
       "",
       "error: cannot take the sum of token[n]: its elements are not numbers [0]"},
      {"sum", {"int"}, "", "error: cannot take the sum of an int: it is not a tensor [0]"},
      {"sum", {"i32[n]"}, "keepdims=2", "error: keepdims is 0 or 1, not 2"},
      {"max", {"i32[n, 3]"}, "axis=1", "i32[n]"},
      {"mean", {"f32[n, hidden]"}, "axis=1", "f32[n]"},
      {"mean",
       {"i32[n]"},
       "",
       "error: cannot take the mean of i32[n]: its elements are not floats [0] (help: convert it "
       "with f32(...))"},
      {"logsumexp", {"f32[n, hidden]"}, "axis=-1", "f32[n]"},
      {"argmax", {"f32[n, hidden]"}, "", "i32[n]"},
      {"argmax", {"f32[n, hidden]"}, "axis=0, keepdims=1", "i32[1, hidden]"},
      {"argmax", {"f32[n, 0]"}, "", "i32[n]"},
      {"argmax", {"f32"}, "", "error: axis -1 is out of range for f32, which has 0 axes"},
      {"reduce_sum", {"f32[n, 4]"}, "axis=1, keepdims=1", "f32[n, 1]"},
  });
}

TEST(Shapes, Movement) {
  check({
      {"concat", {"f32[hidden]", "f32[2*hidden]"}, "", "f32[3*hidden]"},
      {"concat", {"f32[n, 4]", "f32[m, 4]"}, "", "f32[m + n, 4]"},
      {"concat", {"f32[n, 4]", "f32[n, 5]"}, "axis=1", "f32[n, 9]"},
      {"concat",
       {"f32[n, 4]", "f32[n, 5]"},
       "",
       "error: cannot join f32[n, 4] and f32[n, 5] along axis 0: the extents of axis 1 differ (4, "
       "5) [1] (help: to join them along the last axis write axis=-1)"},
      {"concat",
       {"f32[n, 4]", "f32[4]"},
       "",
       "error: cannot join f32[n, 4] and f32[4] along axis 0: the numbers of axes differ [1]"},
      {"concat",
       {"f32[n]", "i32[n]"},
       "",
       "error: cannot join f32[n] and i32[n] along axis 0: the element types differ [1]"},
      {"concat", {"f32[n]", "float"}, "", "error: cannot join a float: it is not a tensor [1]"},
      {"concat",
       {"f32[n]"},
       "axis=1",
       "error: axis 1 is out of range for f32[n], which has 1 axis"},
      {"concat", {}, "", "error: 'concat' needs at least one tensor"},
      {"concat", {"f32", "f32"}, "", "error: axis 0 is out of range for f32, which has 0 axes"},
      {"split", {"f32[4*hidden]"}, "parts=4", "f32[hidden]; f32[hidden]; f32[hidden]; f32[hidden]"},
      {"split",
       {"f32[5*hidden]"},
       "parts=3",
       "error: cannot split axis 0 of f32[5*hidden] into 3 equal parts: 5*hidden = 1280 is not a "
       "multiple of 3 [0]"},
      {"split", {"f32[hidden]"}, "parts=2", "f32[128]; f32[128]"},
      {"split",
       {"f32[n]"},
       "parts=2",
       "error: cannot split axis 0 of f32[n] into 2 equal parts: n is not known to be "
       "a multiple of 2 [0] (help: slice(x, start, size) takes parts whose extents are checked at "
       "run time)"},
      {"split", {"f32[2*n, 3]"}, "parts=2", "f32[n, 3]; f32[n, 3]"},
      {"split", {"f32[n, 6]"}, "parts=2, axis=-1", "f32[n, 3]; f32[n, 3]"},
      {"split",
       {"f32[n, 6]"},
       "parts=3",
       "error: cannot split axis 0 of f32[n, 6] into 3 equal parts: n is not known to "
       "be a multiple of 3 [0] (help: for the last axis write axis=-1)"},
      {"split", {"f32[6]"}, "parts=0", "error: cannot split f32[6] into 0 parts"},
      {"split",
       {"f32[6]"},
       "parts=5000",
       "error: cannot split f32[6] into 5000 parts: at most 4096 are possible"},
      {"split",
       {"f32[6]"},
       "parts=2, axis=1",
       "error: axis 1 is out of range for f32[6], which has 1 axis"},
      {"split",
       {"list<f32[6]>"},
       "parts=2",
       "error: cannot split list<f32[6]>: it is not a tensor [0]"},
      {"stack", {"list<f32[hidden]>"}, "", "f32[?, hidden]"},
      {"stack", {"list<f32[n, 2]>"}, "axis=-1", "f32[n, 2, ?]"},
      {"stack", {"list<f32[n, 2]>[2*n]"}, "axis=1", "f32[n, 2*n, 2]"},
      {"stack",
       {"list<f32[?]>"},
       "",
       "error: cannot stack list<f32[?]>: the elements' extents may differ [0] (help: give the "
       "elements a type without '?')"},
      {"stack",
       {"f32[n]"},
       "",
       "error: cannot stack f32[n]: 'stack' takes a list of tensors [0] (help: write stack([a, "
       "b]))"},
      {"stack",
       {"list<int>"},
       "",
       "error: cannot stack list<int>: 'stack' takes a list of tensors [0]"},
      {"stack",
       {"list<f32[n]>"},
       "axis=3",
       "error: axis 3 is out of range for a new axis of f32[n]: it is at most 1"},
      {"transpose", {"f32[n, m]"}, "", "f32[m, n]"},
      {"transpose", {"f32[n, m, 3]"}, "", "f32[n, 3, m]"},
      {"transpose", {"f32[n, m, 3]"}, "axis1=0, axis2=2", "f32[3, m, n]"},
      {"transpose",
       {"f32[n]"},
       "",
       "error: cannot transpose f32[n]: it has 1 axis, and at least 2 are needed [0]"},
      {"transpose",
       {"f32[n, m]"},
       "axis1=4",
       "error: axis 4 is out of range for f32[n, m], which has 2 axes"},
      {"reshape", {"f32[2*n, 3]"}, "dims=[n, 6]", "f32[n, 6]"},
      {"reshape",
       {"f32[n, 3]"},
       "dims=[n, 4]",
       "error: cannot reshape f32[n, 3] to f32[n, 4]: the numbers of elements differ (3*n, 4*n) "
       "[0]"},
      {"reshape", {"f32[hidden]"}, "dims=[2, 128]", "f32[2, 128]"},
      {"reshape",
       {"f32[hidden]"},
       "dims=[3, 128]",
       "error: cannot reshape f32[hidden] to f32[3, 128]: the numbers of elements differ (hidden = "
       "256, 384) [0]"},
      {"reshape", {"f32[1]"}, "dims=[]", "f32"},
      {"broadcast_to", {"f32[n]"}, "dims=[m, n]", "f32[m, n]"},
      {"broadcast_to", {"f32[n, 1]"}, "dims=[n, 4]", "f32[n, 4]"},
      {"broadcast_to", {"float"}, "dims=[n]", "f32[n]"},
      {"broadcast_to",
       {"f32[n]"},
       "dims=[n, m]",
       "error: cannot broadcast f32[n] to f32[n, m]: the last extents differ (n, m) [0]"},
      {"broadcast_to",
       {"f32[n, m]"},
       "dims=[m]",
       "error: cannot broadcast f32[n, m] to f32[m]: it has more axes [0]"},
      {"broadcast_to",
       {"f32[3]"},
       "dims=[1]",
       "error: cannot broadcast f32[3] to f32[1]: the extents of axis 0 differ (3, 1) [0]"},
      {"expand_dims", {"f32[n]"}, "", "f32[1, n]"},
      {"expand_dims", {"f32[n]"}, "axis=-1", "f32[n, 1]"},
      {"expand_dims",
       {"f32[n]"},
       "axis=2",
       "error: axis 2 is out of range for a new axis of f32[n]: it is at most 1"},
      {"squeeze", {"f32[1, n]"}, "", "f32[n]"},
      {"squeeze", {"f32[n, one]"}, "axis=1", "f32[n]"},
      {"squeeze",
       {"f32[n]"},
       "",
       "error: cannot squeeze axis 0 of f32[n]: its extent is n, not 1 [0]"},
  });
}

TEST(Shapes, Indexing) {
  check({
      {"index", {"f32[n, hidden]", "int"}, "", "f32[hidden]"},
      {"index", {"f32[n, hidden]", "token"}, "", "f32[hidden]"},
      {"index", {"f32[n, hidden]", "token[m]"}, "", "f32[m, hidden]"},
      {"index", {"f32[n, hidden]", "i32[m, 2]"}, "", "f32[m, 2, hidden]"},
      {"index", {"f32[n]", "int"}, "", "f32"},
      {"index",
       {"f32[n]", "float"},
       "",
       "error: cannot index f32[n] with a float: the index is an int, a token or a tensor of ints "
       "[1]"},
      {"index",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot index f32[n] with f32[m]: the index is an int, a token or a tensor of ints "
       "[1]"},
      {"index", {"f32", "int"}, "", "error: cannot index f32: it has no axes [0]"},
      {"index", {"int", "int"}, "", "error: cannot index an int: it is not a tensor [0]"},
      {"embedding", {"f32[n, hidden]", "token<word>[m]"}, "", "f32[m, hidden]"},
      {"gather", {"f32[n, hidden]", "i64"}, "", "f32[hidden]"},
      {"gather",
       {"f32[n, hidden]", "int"},
       "",
       "error: cannot gather with an int: the indices are a tensor of ints or tokens [1]"},
      {"element", {"f32[n, hidden]", "int"}, "axis=1", "f32[n]"},
      {"element",
       {"f32[n, hidden]", "i32"},
       "",
       "error: cannot index f32[n, hidden] with i32: the index is an int or a token [1]"},
      {"element",
       {"f32[n, hidden]", "int"},
       "axis=2",
       "error: axis 2 is out of range for f32[n, hidden], which has 2 axes"},
      {"row", {"f32[n, hidden]", "int"}, "", "f32[hidden]"},
      {"row", {"f32[n]", "int"}, "", "error: cannot take a row of f32[n] [0]"},
      {"rows", {"f32[n, hidden]"}, "", "f32[hidden]"},
      {"rows",
       {"f32[n]"},
       "",
       "error: cannot take the rows of f32[n]: it has 1 axis, and at least 2 are needed [0]"},
      {"slice", {"f32[n, hidden]"}, "start=0, size=2", "f32[2, hidden]"},
      {"slice", {"f32[n, 10]"}, "start=2, size=8, axis=1", "f32[n, 8]"},
      {"slice",
       {"f32[n, 10]"},
       "start=3, size=8, axis=-1",
       "error: cannot slice axis 1 of f32[n, 10]: the end 11 is beyond its extent 10 [0]"},
      {"slice",
       {"f32[hidden]"},
       "start=hidden - 1, size=2",
       "error: cannot slice axis 0 of f32[hidden]: the end hidden + 1 = 257 is beyond its extent "
       "hidden = 256 [0]"},
      {"slice", {"f32[2*hidden]"}, "start=hidden, size=hidden", "f32[hidden]"},
      {"slice", {"f32[n]"}, "start=m, size=n - m", "f32[n - m]"},
      {"slice",
       {"f32[n]"},
       "start=-1, size=2",
       "error: cannot slice axis 0 of f32[n]: the start is -1 [0]"},
      {"slice",
       {"f32[n]"},
       "start=1, size=-2",
       "error: cannot slice axis 0 of f32[n]: the size is -2 [0]"},
      {"slice",
       {"f32[n]"},
       "start=1, size=n",
       "error: cannot slice axis 0 of f32[n]: the end n + 1 is beyond its extent n [0]"},
      {"slice",
       {"f32"},
       "start=0, size=1",
       "error: axis 0 is out of range for f32, which has 0 axes"},
  });
}

TEST(Shapes, Products) {
  check({
      {"matmul", {"f32[hidden]", "f32[hidden, 4*hidden]"}, "", "f32[4*hidden]"},
      {"matmul", {"f32[n, k]", "f32[k, m]"}, "", "f32[n, m]"},
      {"matmul", {"f32[n, k]", "f32[k]"}, "", "f32[n]"},
      {"matmul", {"f32[k]", "f32[k]"}, "", "f32"},
      {"matmul", {"f32[b, n, k]", "f32[b, k, m]"}, "", "f32[b, n, m]"},
      {"matmul", {"f32[b, n, k]", "f32[k, m]"}, "", "f32[b, n, m]"},
      {"matmul", {"f32[a, 1, n, k]", "f32[c, k, m]"}, "", "f32[a, c, n, m]"},
      {"matmul", {"f32[k]", "f32[b, k, m]"}, "", "f32[b, m]"},
      {"matmul", {"f32[b, n, k]", "f32[k]"}, "", "f32[b, n]"},
      {"matmul", {"bf16[n, k]", "bf16[k, m]"}, "", "bf16[n, m]"},
      {"masked_matmul", {"f32[n, k]", "f32[k, m]", "bool[n, k]"}, "", "f32[n, m]"},
      {"masked_matmul", {"f32[b, n, k]", "f32[k, m]", "bool[n, 1]"}, "", "f32[b, n, m]"},
      {"masked_matmul", {"f32[1, k]", "f32[k, m]", "bool[n, k]"}, "", "f32[n, m]"},
      {"matmul",
       {"f32[hidden]", "f32[2*hidden, 4*hidden]"},
       "",
       "error: cannot multiply f32[hidden] by f32[2*hidden, 4*hidden]: the inner extents differ "
       "(hidden = 256, 2*hidden = 512) [1] (help: concat(x, y, axis=-1) of tensors with hidden "
       "each "
       "has 2 times as many)"},
      {"matmul",
       {"f32[n, k]", "f32[m, k]"},
       "",
       "error: cannot multiply f32[n, k] by f32[m, k]: the inner extents differ (k, m) [1] (help: "
       "transpose the right side: a @ transpose(b))"},
      {"matmul",
       {"f32[k, n]", "f32[k, m]"},
       "",
       "error: cannot multiply f32[k, n] by f32[k, m]: the inner extents differ (n, k) [1] (help: "
       "transpose the left side: transpose(a) @ b)"},
      {"matmul",
       {"f32[a, n, k]", "f32[b, k, m]"},
       "",
       "error: cannot multiply f32[a, n, k] by f32[b, k, m]: the batch extents differ (a, b) [1]"},
      {"matmul",
       {"f32[n]", "float"},
       "",
       "error: cannot multiply f32[n] by a float: a float is not a tensor [1] (help: scale a "
       "tensor with '*')"},
      {"matmul",
       {"f32", "f32[n]"},
       "",
       "error: cannot multiply f32 by f32[n]: f32 has no axes [0] (help: scale a tensor with '*')"},
      {"matmul",
       {"f32[n]", "bf16[n]"},
       "",
       "error: cannot multiply f32[n] by bf16[n]: the element types differ [1] (help: convert one "
       "of them with f32(...) or bf16(...))"},
      {"matmul",
       {"i32[n]", "i32[n]"},
       "",
       "error: cannot multiply i32[n] by i32[n]: the elements of i32[n] are not floats [0] (help: "
       "convert it with f32(...))"},
      {"matmul",
       {"list<f32[n]>", "f32[n]"},
       "",
       "error: cannot multiply list<f32[n]> by f32[n]: list<f32[n]> is not a tensor [0]"},
      {"dot", {"f32[n]", "f32[n]"}, "", "f32"},
      {"dot",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot multiply f32[n] by f32[m]: the inner extents differ (n, m) [1]"},
      {"dot",
       {"f32[n, 2]", "f32[2]"},
       "",
       "error: cannot take the dot product of f32[n, 2] and f32[2]: f32[n, 2] is not a vector [0]"},
      {"outer", {"f32[n]", "f32[m]"}, "", "f32[n, m]"},
      {"outer",
       {"f32[n, 2]", "f32[m]"},
       "",
       "error: cannot take the outer product of f32[n, 2] and f32[m]: f32[n, 2] is not a vector "
       "[0]"},
  });
}

TEST(Shapes, Normalise) {
  check({
      {"softmax", {"f32[n, hidden]"}, "", "f32[n, hidden]"},
      {"softmax",
       {"f32[n]"},
       "axis=1",
       "error: axis 1 is out of range for f32[n], which has 1 axis"},
      {"softmax",
       {"i32[n]"},
       "",
       "error: cannot take the softmax of i32[n]: its elements are not floats [0] (help: convert "
       "it with f32(...))"},
      {"log_softmax", {"bf16[n]"}, "", "bf16[n]"},
      {"layer_norm", {"f32[n, hidden]", "f32[hidden]", "f32[hidden]"}, "", "f32[n, hidden]"},
      {"layer_norm",
       {"f32[n, hidden]", "f32[n]", "f32[hidden]"},
       "",
       "error: cannot scale f32[n, hidden] by f32[n] in 'layer_norm': the last extents differ "
       "(hidden = 256, n) [1]"},
      {"layer_norm",
       {"f32[n, hidden]", "f32[hidden]", "f32[hidden, 1]"},
       "",
       "error: cannot shift f32[n, hidden] by f32[hidden, 1] in 'layer_norm': it is not a vector "
       "[2]"},
      {"layer_norm",
       {"f32[n, hidden]", "f32[hidden]", "bf16[hidden]"},
       "",
       "error: cannot shift f32[n, hidden] by bf16[hidden] in 'layer_norm': the element types "
       "differ [2]"},
      {"layer_norm",
       {"f32", "f32[hidden]", "f32[hidden]"},
       "",
       "error: cannot normalise f32: it has no axes [0]"},
      {"rms_norm", {"f32[hidden]", "f32[hidden]"}, "", "f32[hidden]"},
      {"rms_norm",
       {"f32[hidden]", "float"},
       "",
       "error: cannot scale or shift in 'rms_norm' by a float: it is not a tensor [1]"},
      {"cross_entropy", {"f32[k]", "int"}, "", "f32"},
      {"cross_entropy", {"f32[k]", "token"}, "", "f32"},
      {"cross_entropy", {"f32[n, k]", "i32[n]"}, "", "f32[n]"},
      {"cross_entropy", {"f32[k]", "i32[]"}, "", "f32"},
      {"cross_entropy",
       {"f32[n, k]", "int"},
       "",
       "error: cannot take the cross entropy of f32[n, k] and an int: one label goes with one row "
       "of logits [1]"},
      {"cross_entropy",
       {"f32[n, k]", "i32[m]"},
       "",
       "error: cannot take the cross entropy of f32[n, k] and i32[m]: the extents of axis 0 differ "
       "(n, m) [1]"},
      {"cross_entropy",
       {"f32[n, k]", "i32[n, k]"},
       "",
       "error: cannot take the cross entropy of f32[n, k] and i32[n, k]: there must be one label "
       "for each row of logits [1]"},
      {"cross_entropy",
       {"f32[k]", "float"},
       "",
       "error: cannot take the cross entropy of f32[k] and a float: the label is an int, a token "
       "or a tensor of ints [1]"},
      {"cross_entropy",
       {"f32", "int"},
       "",
       "error: cannot take the cross entropy of f32 and an int: the logits have no axes [0]"},
      {"cross_entropy",
       {"i32[k]", "int"},
       "",
       "error: cannot take the cross entropy of i32[k]: its elements are not floats [0] (help: "
       "convert it with f32(...))"},
  });
}

TEST(Shapes, Constants) {
  check({
      {"zeros", {}, "dims=[n, 2]", "f32[n, 2]"},
      {"zeros", {}, "dims=[]", "f32"},
      {"zeros", {}, "dims=[-1]", "error: cannot make f32[-1] with 'zeros': an extent is -1"},
      {"ones", {}, "dims=[hidden]", "f32[hidden]"},
      {"full", {}, "value=0.5, dims=[n]", "f32[n]"},
      {"iota", {}, "size=n", "i32[n]"},
      {"iota", {}, "size=-2", "error: cannot make -2 ints with 'iota'"},
      {"scalar", {"int"}, "", "i64"},
      {"scalar", {"float"}, "", "f32"},
      {"scalar", {"bool"}, "", "bool[]"},
      {"scalar", {"token"}, "", "error: cannot make a tensor of a token with 'scalar' [0]"},
      {"scalar", {"f32[n]"}, "", "error: cannot make a tensor of f32[n] with 'scalar' [0]"},
      {"token_tensor", {"token"}, "", "token[]"},
      {"token_tensor",
       {"int"},
       "",
       "error: cannot make a tensor of an int with 'token_tensor' [0]"},
      {"one_hot", {"int"}, "size=hidden", "f32[hidden]"},
      {"one_hot", {"i32[n]"}, "size=3", "f32[n, 3]"},
      {"one_hot", {"token[n]"}, "size=m", "f32[n, m]"},
      {"one_hot",
       {"float"},
       "size=3",
       "error: cannot make 'one_hot' of a float: the index is an int, a token or a tensor of ints "
       "[0]"},
      {"one_hot",
       {"f32[n]"},
       "size=3",
       "error: cannot make 'one_hot' of f32[n]: the index is an int, a token or a tensor of ints "
       "[0]"},
      {"one_hot", {"int"}, "size=-3", "error: cannot make 'one_hot' with an extent of -3"},
  });
}

TEST(Shapes, Attention) {
  check({
      {"attention", {"f32[n, h]", "f32[m, h]", "f32[m, 7]"}, "causal=1", "f32[n, 7]"},
      {"attention", {"f32[h]", "f32[m, h]", "f32[m, 7]"}, "", "f32[7]"},
      {"attention", {"bf16[8, n, h]", "bf16[1, m, h]", "bf16[m, h]"}, "", "bf16[8, n, h]"},
      {"attention",
       {"f32[n, h]", "f32[m, hidden]", "f32[m, h]"},
       "",
       "error: cannot attend with f32[n, h] to f32[m, hidden] and f32[m, h]: the last extents of "
       "queries and keys differ (h = 4, hidden = 256) [1]"},
      {"attention",
       {"f32[n, h]", "f32[m, h]", "f32[n, h]"},
       "",
       "error: cannot attend with f32[n, h] to f32[m, h] and f32[n, h]: there must be one value "
       "for each key (m, n) [2]"},
      {"attention",
       {"f32[n, h]", "f32[h]", "f32[n, h]"},
       "",
       "error: cannot attend with f32[n, h] to f32[h] and f32[n, h]: the keys have 1 axis, and at "
       "least 2 are needed [1]"},
      {"attention",
       {"f32[n, h]", "f16[n, h]", "f32[n, h]"},
       "",
       "error: cannot attend with f32[n, h] to f16[n, h] and f32[n, h]: the element types differ "
       "[1]"},
      {"attention",
       {"f32[2, n, h]", "f32[3, n, h]", "f32[n, h]"},
       "",
       "error: cannot attend with f32[2, n, h] to f32[3, n, h] and f32[n, h]: the batch extents "
       "differ (2, 3) [1]"},
      {"attention",
       {"int", "f32[n, h]", "f32[n, h]"},
       "",
       "error: cannot attend with an int: it is not a tensor [0]"},
      {"attention",
       {"f32[h]", "f32[n, h]", "f32[n, h]"},
       "causal=1",
       "error: cannot attend causally with f32[h]: a single query has no place among the keys [0]"},
      {"attention",
       {"f32[n, h]", "f32[n, h]", "f32[n, h]"},
       "causal=2",
       "error: causal is 0 or 1, not 2"},
      {"masked_attention", {"f32[n, h]", "f32[m, h]", "f32[m, h]", "bool[n, m]"}, "", "f32[n, h]"},
      {"masked_attention", {"f32[n, h]", "f32[m, h]", "f32[m, h]", "f32[m]"}, "", "f32[n, h]"},
      {"masked_attention",
       {"f32[n, h]", "f32[m, h]", "f32[m, h]", "i32[m]"},
       "",
       "error: cannot mask scores f32[n, m] with i32[m]: a mask is of bools (whether a query sees "
       "a key) or of f32 (added to the scores) [3]"},
      {"masked_attention",
       {"f32[n, h]", "f32[m, h]", "f32[m, h]", "bool[m, n]"},
       "",
       "error: cannot mask scores f32[n, m] with bool[m, n]: the extents of axis 1 differ (m, n) "
       "[3]"},
      {"masked_attention",
       {"f32[n, h]", "f32[m, h]", "f32[m, h]", "bool[2, n, m]"},
       "",
       "error: cannot mask scores f32[n, m] with bool[2, n, m]: the mask has more elements than "
       "there are scores [3]"},
      {"rope", {"f32[2, n, hidden]"}, "start=n, base=100.0", "f32[2, n, hidden]"},
      {"rope", {"f32[3]"}, "", "error: cannot rotate f32[3]: the last extent 3 is not even [0]"},
      {"rope",
       {"f32[4, n]"},
       "",
       "error: cannot rotate f32[4, n]: the last extent must be known when the model is compiled "
       "[0] (help: a dim of the file or of the layer around is known then; a dim that a call's "
       "arguments bring is not)"},
      {"rope", {"f32"}, "", "error: cannot rotate f32: it has no axes [0]"},
      {"rope", {"f32[4]"}, "base=0.5", "error: the base of 'rope' is from 1 to 2^32"},
  });
}

TEST(Shapes, Selection) {
  check({
      {"top_k", {"f32[n, hidden]"}, "k=5", "f32[n, 5]; i32[n, 5]"},
      {"top_k", {"i64[n, hidden]"}, "k=5, axis=0", "i64[5, hidden]; i32[5, hidden]"},
      {"top_k",
       {"f32[n, h]"},
       "k=5",
       "error: cannot take the 5 greatest of f32[n, h]: axis 1 has h = 4 [0]"},
      {"top_k",
       {"f32[h]"},
       "k=0",
       "error: cannot take the 0 greatest of f32[h]: at least 1 must be taken"},
      {"top_k",
       {"token[n]"},
       "k=1",
       "error: cannot take the 1 greatest of token[n]: its elements are not numbers [0]"},
      {"top_k",
       {"bool[n]"},
       "k=1",
       "error: cannot take the 1 greatest of bool[n]: its elements are not numbers [0] (help: "
       "convert it with f32(...))"},
      {"take_along", {"f32[n, h]", "i32[n, 2]"}, "", "f32[n, 2]"},
      {"take_along", {"bf16[n, h]", "i64[m, h]"}, "axis=0", "bf16[m, h]"},
      {"take_along",
       {"f32[n, h]", "i32[h]"},
       "",
       "error: cannot take elements of f32[n, h] at i32[h]: the numbers of axes differ [1]"},
      {"take_along",
       {"f32[n, h]", "i32[m, 2]"},
       "",
       "error: cannot take elements of f32[n, h] at i32[m, 2]: the extents of axis 0 differ (n, m) "
       "[1]"},
      {"take_along",
       {"f32[n]", "f32[n]"},
       "",
       "error: cannot take elements of f32[n] at f32[n]: the places are a tensor of ints [1]"},
  });
}

TEST(Shapes, Random) {
  check({
      {"random", {"int"}, "dims=[n, 4]", "f32[n, 4]"},
      {"random_normal", {"int"}, "dims=[]", "f32"},
      {"random", {"int"}, "dims=[-1]", "error: cannot make f32[-1] with 'random': an extent is -1"},
      {"dropout", {"bf16[n, h]", "int"}, "p=0.5", "bf16[n, h]"},
      {"dropout",
       {"i32[n]", "int"},
       "p=0.5",
       "error: cannot apply 'dropout' to i32[n]: its elements are not floats [0] (help: convert it "
       "with f32(...))"},
      {"dropout",
       {"f32[n]", "int"},
       "p=1.0",
       "error: the probability 'p' of 'dropout' must be at least 0 and below 1"},
      {"sample", {"f32[n, 4]", "int"}, "", "i32[n]"},
      {"sample", {"f32[h]", "int"}, "", "i32"},
      {"sample", {"f32", "int"}, "", "error: cannot sample from f32: it has no axes [0]"},
      {"sample",
       {"f32[n, 0]", "int"},
       "",
       "error: cannot sample from f32[n, 0]: it has no elements [0]"},
      {"sample",
       {"i32[n]", "int"},
       "",
       "error: cannot sample from i32[n]: its elements are not floats [0] (help: convert it with "
       "f32(...))"},
  });
}

TEST(Shapes, LossesAndDistributions) {
  check({
      {"mse", {"f32[n, h]", "f32[h]"}, "", "f32"},
      {"mse", {"f32[n]", "float"}, "", "f32"},
      {"mse",
       {"i32[n]", "i32[n]"},
       "",
       "error: cannot take the mean squared error of i32[n] and i32[n]: 'mse' takes floats, not "
       "i32[n] [0] (help: convert it with f32(...))"},
      {"huber", {"f32[n, 1]", "f32[h]"}, "delta=0.5", "f32[n, h]"},
      {"huber", {"f32[n]", "f32[n]"}, "delta=0.0", "error: delta of 'huber' is greater than 0"},
      {"bce_with_logits", {"bf16[n]", "bf16[n]"}, "", "bf16[n]"},
      {"xlogy", {"f32[n]", "float"}, "", "f32[n]"},
      {"entropy", {"f32[n, h]"}, "", "f32[n]"},
      {"entropy", {"f32[n, h]"}, "axis=0", "f32[h]"},
      {"kl_div", {"f32[h]", "f32[h]"}, "", "f32"},
      {"kl_div",
       {"f32[n]", "f32[m]"},
       "",
       "error: cannot take the divergence of f32[n] and f32[m]: the extents of axis 0 differ (n, "
       "m) "
       "[1]"},
      {"norm", {"f32[n, h]"}, "axis=1, keepdims=1", "f32[n, 1]"},
  });
}

TEST(Shapes, ScansAndPlacement) {
  check({
      {"sort", {"f32[n, h]"}, "", "f32[n, h]; i32[n, h]"},
      {"sort", {"i32[n]"}, "descending=2", "error: descending is 0 or 1, not 2"},
      {"sort", {"token[n]"}, "", "error: cannot sort token[n]: its elements are not numbers [0]"},
      {"cumsum", {"i64[n, h]"}, "axis=-1", "i64[n, h]"},
      {"cumsum",
       {"bool[n]"},
       "",
       "error: cannot take running sums of bool[n]: its elements are not numbers [0] (help: "
       "convert "
       "it with f32(...))"},
      {"segment_sum", {"f32[n, h]", "token[n]"}, "size=m", "f32[m, h]"},
      {"segment_sum",
       {"f32[n, h]", "i32[m]"},
       "size=3",
       "error: cannot add up rows of f32[n, h] by i32[m]: there must be one number for each row "
       "(n, "
       "m) [1]"},
      {"scatter_add", {"f32[m, h]", "i32[n]", "f32[n, h]"}, "", "f32[m, h]"},
      {"scatter_add",
       {"f32[m, h]", "i32[n]", "f32[n, m]"},
       "",
       "error: cannot add rows of f32[n, m] to f32[m, h]: the extents of axis 1 differ (h = 4, m) "
       "[2]"},
      {"flip", {"token[n, h]"}, "axis=1", "token[n, h]"},
      {"pad", {"f32[n, h]"}, "before=1, after=m", "f32[m + n + 1, h]"},
      {"pad", {"f32[n]"}, "before=-1, after=0", "error: cannot pad f32[n] with -1 elements"},
      {"tril", {"f32[2, n, h]"}, "k=1", "f32[2, n, h]"},
      {"triu", {"f32[n]"}, "", "error: cannot take a triangle of f32[n]: it is no matrix [0]"},
  });
}

TEST(Shapes, Convolution) {
  check({
      {"conv1d", {"f32[n, 3]", "f32[5, 3, 8]"}, "padding=2", "f32[n, 8]"},
      {"conv1d", {"f32[n, 4]", "f32[2, 2, h]"}, "groups=2", "f32[n - 1, h]"},
      {"conv1d", {"f32[2, 9, 4]", "f32[3, 4, 6]"}, "stride=2, dilation=2", "f32[2, 3, 6]"},
      {"conv1d", {"f32[n, 4]", "f32[3, 4, 6]"}, "stride=2", "f32[?, 6]"},
      {"conv1d",
       {"f32[n, 4]", "f32[3, 4, 6]"},
       "stride=0",
       "error: the stride of 'conv1d' is at least 1, not 0"},
      {"conv1d",
       {"f32[n, 4]", "f32[3, 4, 6]"},
       "padding=-1",
       "error: the padding of 'conv1d' is at least 0, not -1"},
      {"conv1d",
       {"f32[n, 4]", "f32[3, 3, 6]"},
       "",
       "error: cannot convolve f32[n, 4] with f32[3, 3, 6]: there are 4 channels, and the weight "
       "is for 3 [1]"},
      {"conv1d",
       {"f32[3, n]", "f32[3, 3, 6]"},
       "",
       "error: cannot convolve f32[3, n] with f32[3, 3, 6]: there are n channels, and the weight "
       "is for 3 [1] (help: channels are the last axis: transpose the sequence)"},
      {"conv1d",
       {"f32[n, 4]", "f32[3, 2, 5]"},
       "groups=2",
       "error: cannot convolve f32[n, 4] with f32[3, 2, 5]: 5 channels do not come out of 2 "
       "groups alike [1]"},
      {"conv1d",
       {"f32[n, 4]", "f32[m, 4, 5]"},
       "",
       "error: cannot convolve f32[n, 4] with f32[m, 4, 5]: the number of taps, the weight's first "
       "extent, must be known when the model is compiled [1]"},
      {"conv1d",
       {"f32[2, 4]", "f32[4, 4, 5]"},
       "",
       "error: cannot convolve f32[2, 4] with f32[4, 4, 5]: a window of 4 does "
       "not fit into a sequence of 2 with 0 before and after it [0]"},
      {"conv1d",
       {"f32[n]", "f32[4, 4, 5]"},
       "",
       "error: cannot convolve f32[n]: it has 1 axis, and places and channels are needed [0]"},
      {"max_pool1d", {"bf16[n, h]"}, "size=1", "bf16[n, h]"},
      {"max_pool1d", {"f32[9, h]"}, "size=2", "f32[4, h]"},
      {"avg_pool1d", {"f32[2, n, h]"}, "size=3, stride=1, padding=1", "f32[2, n, h]"},
      {"avg_pool1d",
       {"f32[n, h]"},
       "size=3, padding=2",
       "error: the padding of 'avg_pool1d' is at most half its size, not 2 of 3"},
      {"max_pool1d",
       {"i32[n, h]"},
       "size=2",
       "error: cannot pool i32[n, h]: its elements are not floats [0] (help: convert it with "
       "f32(...))"},
  });
}

TEST(Shapes, Append) {
  check({
      {"append", {"f32[n, h]", "f32[h]"}, "", "f32[n + 1, h]"},
      {"append", {"f32[2]", "float"}, "", "f32[3]"},
      {"append", {"token[n]", "token[]"}, "", "token[n + 1]"},
      {"append", {"f32", "f32"}, "", "error: cannot append f32 to f32: it has no axes [0]"},
      {"append",
       {"f32[n, h]", "f32[n, h]"},
       "",
       "error: cannot append f32[n, h] to f32[n, h]: a part of it has 1 axis [1] (help: concat "
       "joins tensors with equally many axes)"},
      {"append",
       {"f32[n, h]", "f32[n]"},
       "",
       "error: cannot append f32[n] to f32[n, h]: the extents of axis 0 of the part differ (h = 4, "
       "n) [1]"},
      {"append",
       {"f32[n, h]", "i32[h]"},
       "",
       "error: cannot append i32[h] to f32[n, h]: the element types differ [1]"},
  });
}

TEST(Shapes, LabelsAndFilters) {
  check({
      {"argsort", {"f32[n, h]"}, "axis=0", "i32[n, h]"},
      {"cross_entropy", {"f32[n, h]", "i32[n]"}, "label_smoothing=0.1", "f32[n]"},
      {"cross_entropy",
       {"f32[h]", "int"},
       "label_smoothing=1.5",
       "error: the label smoothing of a cross entropy is from 0 to 1"},
      {"weighted_cross_entropy", {"f32[h]", "int", "f32[h]"}, "", "f32"},
      {"weighted_cross_entropy",
       {"f32[n, h]", "i32[n]", "f32[n]"},
       "",
       "error: cannot weight the classes of f32[n, h] by f32[n]: the extents differ (h = 4, n) "
       "[2]"},
      {"top_k_filter", {"f32[n, h]"}, "k=m", "f32[n, h]"},
      {"top_k_filter", {"f32[h]"}, "k=0", "error: 'top_k_filter' keeps at least 1 element, not 0"},
      {"top_k_filter", {"f32"}, "k=2", "error: cannot filter f32: it has no axes [0]"},
      {"top_p_filter", {"f32[n, h]", "float"}, "", "f32[n, h]"},
      {"top_p_filter",
       {"f32[n, h]", "f32[n]"},
       "",
       "error: the share that 'top_p_filter' keeps is a float, not f32[n] [1]"},
  });
}

} // namespace
} // namespace sheaf::ops::test

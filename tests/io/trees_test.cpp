#include "tests/deep.h"
#include "tests/io/io_test_support.h"

namespace sheaf::io::test {
namespace {

struct TreesTest : ::testing::Test {
  Bench bench;
  uint32_t tree = 0;

  void binary() {
    tree = bench.types.binaryTree();
    bench.main = entry({{"t", tree}});
    bench.vocabularies.set("", vocabulary({"It", "is", "good", "7", "\\/", "-LRB-"}));
  }
};

TEST_F(TreesTest, Binary) {
  binary();
  EXPECT_EQ(
      bench.roundTrip("(3 (2 It) (4 (2 is) (3 good)))\n\n  ( 1 ( 2  It )( 3 is ) )  \n(2 good)"),
      R"({"t":{"Node":[{"Leaf":["It"]},{"Node":[{"Leaf":["is"]},{"Leaf":["good"]}]}]}})"
      "\n"
      R"({"t":{"Node":[{"Leaf":["It"]},{"Leaf":["is"]}]}})"
      "\n"
      R"({"t":{"Leaf":["good"]}})");
  Dataset data = bench.read("(2 It)\n\n(2 is)\n", "f.txt");
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.name(1), "f.txt:3");
  EXPECT_EQ(data.instance(1).index, 1);
}

TEST_F(TreesTest, WordsAsTheyStand) {
  binary();
  EXPECT_EQ(bench.roundTrip("((7) (-LRB-))"),
            R"({"t":{"Node":[{"Leaf":["7"]},{"Leaf":["-LRB-"]}]}})");
  EXPECT_EQ(bench.roundTrip("(-1 (2 \\/) (\t2 new))"),
            R"({"t":{"Node":[{"Leaf":["\\/"]},{"Leaf":["<unk>"]}]}})");
}

TEST_F(TreesTest, BadTrees) {
  binary();
  auto error = [&](const std::string &text) { return bench.error("(2 It)\n" + text, "f.txt"); };
  EXPECT_EQ(error("x"), "f.txt:2:1: expected '(' to begin a tree, found 'x'");
  EXPECT_EQ(error("()"), "f.txt:2:2: expected a label, a word or a subtree, found ')'");
  EXPECT_EQ(error("("), "f.txt:2:2: expected a label, a word or a subtree, found the end of the "
                        "tree");
  EXPECT_EQ(error("(2"), "f.txt:2:3: expected a word, a subtree or ')', found the end of the tree");
  EXPECT_EQ(error("(2 It"),
            "f.txt:2:6: expected ')' after the word 'It', found the end of the tree");
  EXPECT_EQ(error("(2 It is)"), "f.txt:2:7: expected ')' after the word 'It', found 'is'");
  EXPECT_EQ(error("(NP (2 It) (2 is))"), "f.txt:2:2: expected an integer label, found 'NP'");
  EXPECT_EQ(error("(2.5 It)"), "f.txt:2:2: expected an integer label, found '2.5'");
  EXPECT_EQ(error("(99999999999999999999 It)"),
            "f.txt:2:2: expected an integer label, found '99999999999999999999'");
  EXPECT_EQ(error("(3 (2 It) is)"), "f.txt:2:11: expected '(' or ')' after a subtree, found 'is' "
                                    "(a node has one word or subtrees, not both)");
  EXPECT_EQ(error("(3 (2 It) (2 is)"),
            "f.txt:2:17: expected ')': 1 node is not closed, the innermost begins at column 1");
  EXPECT_EQ(error("(3 (2 It) (2 (2 is) (2 is)"),
            "f.txt:2:27: expected ')': 2 nodes are not closed, "
            "the innermost begins at column 11");
  EXPECT_EQ(error("(2 It))"), "f.txt:2:7: expected the end of the line after the tree, found ')'");
  EXPECT_EQ(error("(2 It) (2 is)"),
            "f.txt:2:8: expected the end of the line after the tree, found '('");
  EXPECT_EQ(error("(3 (2 It))"), "f.txt:2:1: no constructor of 'Tree' takes 1 subtree: (3 (2 It))\n"
                                 "  data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)");
  EXPECT_EQ(error("(3 (2 It) (3 (2 a) (2 b) (2 c)))"),
            "f.txt:2:11: no constructor of 'Tree' takes 3 subtrees: (3 (2 a) (2 b) (2 c)))\n"
            "  data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)");
}

TEST_F(TreesTest, Strict) {
  binary();
  bench.strict = true;
  EXPECT_EQ(bench.error("(2 It)\n(3 (2 It) (2 bad))", "f.txt"),
            "f.txt:2:14: the word 'bad' is not in the vocabulary of 'token'");
}

TEST_F(TreesTest, LabelsAndArities) {
  Types &types = bench.types;
  uint32_t t = types.data("T"), word = types.token("word"), label = types.integer();
  uint32_t kids = types.list(t);
  types.ctor(t, "Many", {{"kids", kids}, {"label", label}});
  types.ctor(t, "Pair", {{"a", t}, {"label", label}, {"b", t}});
  types.ctor(t, "One", {{"only", t}});
  types.ctor(t, "Word", {{"label", label}, {"w", word}});
  types.ctor(t, "Other", {{"n", label}});
  bench.main = entry({{"label", label}, {"t", t}});
  bench.vocabularies.set("word", vocabulary({"a", "b"}));
  EXPECT_EQ(TreeBinding(types.table, t).explain(),
            "(2 word) builds Word, with its label\n"
            "a node of 1 subtree builds One\n"
            "a node of 2 subtrees builds Pair, with its label\n"
            "a node of any other number of subtrees builds "
            "Many, with its label\n");
  EXPECT_EQ(bench.roundTrip("(9 (1 (2 a) (3 b) (4 a)) (5 ((6 b))))").substr(0, 30),
            R"({"label":9,"t":{"Pair":[{"Many)");
  EXPECT_EQ(
      bench.roundTrip("(9 (1 (2 a) (3 b) (4 a)) (5 (6 b)))"),
      R"({"label":9,"t":{"Pair":[{"Many":[[{"Word":[2,"a"]},{"Word":[3,"b"]},{"Word":[4,"a"]}],)"
      R"(1]},9,{"One":[{"Word":[6,"b"]}]}]}})");
  EXPECT_EQ(bench.roundTrip("(5 a)"), R"({"label":5,"t":{"Word":[5,"a"]}})");
  EXPECT_EQ(bench.error("((2 a) (3 b))"),
            "data:1:1: this node has no label, but 'Pair' of 'T' has a field 'label: int'");
  EXPECT_EQ(bench.error("(1 (a) (3 b))"),
            "data:1:4: this node has no label, but 'Word' of 'T' has a field 'label: int'");
  EXPECT_EQ(bench.error("((2 a))"), "data:1:1: this tree has no label at its root, but 'main' has "
                                    "the parameter 'label: int'");
}

TEST_F(TreesTest, ChildLists) {
  Types &types = bench.types;
  uint32_t t = types.data("T"), word = types.token(), kids = types.list(t);
  types.ctor(t, "Leaf", {{"w", word}});
  types.ctor(t, "Node", {{"kids", kids}});
  bench.main = entry({{"t", t}});
  bench.vocabularies.set("", vocabulary({"a"}));
  EXPECT_EQ(bench.roundTrip("(((a)) (a) (1 a))"),
            R"({"t":{"Node":[[{"Node":[[{"Leaf":["a"]}]]},{"Leaf":["a"]},{"Leaf":["a"]}]]}})");
}

TEST_F(TreesTest, ChildListsOfALength) {
  Types &types = bench.types;
  uint32_t t = types.data("T"), word = types.token();
  types.ctor(t, "Leaf", {{"w", word}});
  types.ctor(t, "Three", {{"kids", types.list(t, 3, "3")}});
  types.ctor(t, "Two", {{"l", t}, {"r", t}});
  bench.main = entry({{"t", t}});
  bench.vocabularies.set("", vocabulary({"a"}));
  EXPECT_EQ(bench.roundTrip("((a) (a) ((a) (a)))"),
            R"({"t":{"Three":[[{"Leaf":["a"]},{"Leaf":["a"]},)"
            R"({"Two":[{"Leaf":["a"]},{"Leaf":["a"]}]}]]}})");
  EXPECT_EQ(bench.error("((a) (a) (a) (a))"),
            "data:1:1: no constructor of 'T' takes 4 subtrees: ((a) (a) (a) (a))\n"
            "  data T = Leaf(w: token) | Three(kids: list<T>[3]) | Two(l: T, r: T)");
}

TEST_F(TreesTest, Ambiguous) {
  auto error = [](const std::function<void(Types &, uint32_t)> &fill) {
    Types types;
    uint32_t t = types.data("T");
    fill(types, t);
    return userError([&] { TreeBinding(types.table, t); });
  };
  EXPECT_EQ(error([](Types &types, uint32_t t) {
              types.ctor(t, "A", {{"w", types.token()}});
              types.ctor(t, "B", {{"label", types.integer()}, {"w", types.token("tag")}});
            }),
            "bracket trees do not say which constructor of 'T' to build: both 'A' and 'B' fit a "
            "word node such as (2 word)\n"
            "  data T = A(w: token) | B(label: int, w: token<tag>)");
  EXPECT_EQ(error([](Types &types, uint32_t t) {
              types.ctor(t, "A", {{"w", types.token()}});
              types.ctor(t, "N", {{"l", t}, {"r", t}});
              types.ctor(t, "M", {{"l", t}, {"r", t}, {"label", types.integer()}});
            }),
            "bracket trees do not say which constructor of 'T' to build: both 'N' and 'M' fit an "
            "inner node with 2 children such as (3 (2 word) (2 word))\n"
            "  data T = A(w: token) | N(l: T, r: T) | M(l: T, r: T, label: int)");
  EXPECT_EQ(error([](Types &types, uint32_t t) {
              types.ctor(t, "A", {{"w", types.token()}});
              types.ctor(t, "N", {{"k", types.list(t)}});
              types.ctor(t, "M", {{"k", types.list(t)}});
            }),
            "bracket trees do not say which constructor of 'T' to build: both 'N' and 'M' fit an "
            "inner node such as (3 (2 a) (2 b) (2 c))\n"
            "  data T = A(w: token) | N(k: list<T>) | M(k: list<T>)");
  EXPECT_EQ(error([](Types &types, uint32_t t) {
              types.ctor(t, "N", {{"l", t}, {"r", t}});
              types.ctor(t, "Nil", {});
            }),
            "bracket trees cannot build 'T': no constructor is for a word node such as (2 word); "
            "it would have one field of type token and perhaps 'label: int'\n"
            "  data T = N(l: T, r: T) | Nil");
}

TEST_F(TreesTest, EntriesThatTreesDoNotFit) {
  binary();
  uint32_t number = bench.types.integer();
  bench.main = entry({{"t", tree}, {"n", number}});
  EXPECT_EQ(bench.error("(2 It)", "f"),
            "f: bracket trees cannot give the parameter 'n: int' of 'main'; they give one data "
            "type and 'label: int'\n  (read as trees; a format says otherwise)");
  bench.main = entry({{"label", number}});
  EXPECT_EQ(bench.error("(2 It)", "f"),
            "f: bracket trees need a parameter of a data type (or list<token>, which takes their "
            "words); 'main' has none\n  (read as trees; a format says otherwise)");
  bench.main = entry({{"t", tree}});
  bench.vocabularies = {};
  EXPECT_EQ(bench.error("(2 It)", "f"), "f: no vocabulary for 'token'\n"
                                        "  (read as trees; a format says otherwise)");
}

TEST_F(TreesTest, MillionDeep) {
  binary();
  std::string left, right;
  for (int64_t i = 0; i < kDeep; ++i) {
    left += "(1 ";
    right += "(1 (2 It) ";
  }
  left += "(2 is)";
  right += "(2 is)";
  for (int64_t i = 0; i < kDeep; ++i)
    left += " (2 good))";
  right += std::string(kDeep, ')');
  Dataset data = bench.read(left + "\n" + right + "\n");
  ASSERT_EQ(data.size(), 2);
  for (int64_t side = 0; side < 2; ++side) {
    auto node = std::bit_cast<const rt::Slot *>(data.args(side)[0]);
    int64_t depth = 0;
    for (; node[0] == 1; ++depth)
      node = std::bit_cast<const rt::Slot *>(node[1 + side]);
    EXPECT_EQ(depth, kDeep);
    EXPECT_EQ(node[1], 2);
  }
  std::string json = bench.roundTrip(left);
  EXPECT_EQ(bench.roundTrip(json, "x.jsonl"), json);
  left.pop_back();
  EXPECT_EQ(bench.error(left), "data:1:" + std::to_string(left.size() + 1) +
                                   ": expected ')': 1 node is not closed, the innermost begins at "
                                   "column 1");
}

} // namespace
} // namespace sheaf::io::test

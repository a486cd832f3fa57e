#include "tests/io/io_test_support.h"

#include "runtime/io/listops.h"

#include <algorithm>

namespace sheaf::io::test {
namespace {

std::string make(int64_t n, const ListOpsOptions &options = {}) {
  ListOps trees(options);
  std::string text;
  for (int64_t i = 0; i < n; ++i)
    trees.append(text);
  return text;
}

/// The value of an expression given as its words, by its definition.
int value(const std::vector<std::string> &words) {
  struct Call {
    std::string op;
    std::vector<int> args;
  };
  std::vector<Call> calls{{"", {}}};
  for (const std::string &word : words) {
    if (word[0] == '[') {
      calls.push_back({word, {}});
      continue;
    }
    if (word != "]") {
      calls.back().args.push_back(std::stoi(word));
      continue;
    }
    Call call = calls.back();
    calls.pop_back();
    std::vector<int> &args = call.args;
    EXPECT_LE(args.size(), 5u);
    std::sort(args.begin(), args.end());
    int sum = 0;
    for (int a : args)
      sum += a;
    size_t n = args.size();
    calls.back().args.push_back(call.op == "[MAX"   ? args.back()
                                : call.op == "[MIN" ? args.front()
                                : call.op == "[SM"  ? sum % 10
                                                    : (args[(n - 1) / 2] + args[n / 2]) / 2);
  }
  EXPECT_EQ(calls.size(), 1u);
  return calls[0].args.at(0);
}

TEST(ListOps, EveryLabelIsItsValue) {
  std::string text = make(500);
  LineReader lines(text);
  std::string_view line;
  int64_t nested = 0;
  while (lines.next(line)) {
    struct Node {
      int64_t label;
      std::vector<std::string> words;
    };
    std::vector<Node> done;
    TreeEvents events(line);
    for (auto kind = events.next(); kind != TreeEvents::End; kind = events.next()) {
      if (kind == TreeEvents::Open)
        continue;
      Node node{events.label().value(), {}};
      ASSERT_GE(node.label, 0);
      ASSERT_LE(node.label, 9);
      if (kind == TreeEvents::Word) {
        node.words = {std::string(events.word())};
        nested += node.words[0][0] == '[';
        ASSERT_EQ(node.label, std::isdigit(node.words[0][0]) ? std::stoi(node.words[0]) : 0);
      } else {
        ASSERT_EQ(events.children(), 2);
        bool isWhole = done.back().words == std::vector<std::string>{"]"};
        for (const Node &child : {done[done.size() - 2], done.back()})
          node.words.insert(node.words.end(), child.words.begin(), child.words.end());
        std::vector<std::string> closed = node.words;
        if (!isWhole)
          closed.push_back("]");
        ASSERT_EQ(node.label, value(closed)) << line;
        done.resize(done.size() - 2);
      }
      done.push_back(std::move(node));
    }
    ASSERT_EQ(done.size(), 1u);
  }
  EXPECT_EQ(lines.number(), 500);
  EXPECT_GT(nested, 700); // expressions inside expressions do occur
}

TEST(ListOps, TheSameEverywhere) {
  EXPECT_EQ(make(2), make(3).substr(0, make(2).size()));
  EXPECT_EQ(make(50), make(50));
  ListOpsOptions other;
  other.seed = 1;
  EXPECT_NE(make(50), make(50, other));
  ListOpsOptions flat;
  flat.maxDepth = 1;
  EXPECT_EQ(make(2, flat), "(6 (6 (6 (6 (6 (5 (0 [MAX) (5 5)) (6 6)) (2 2)) (5 5)) (0 0)) (0 ]))\n"
                           "(2 (2 (2 (5 (6 (0 [MIN) (6 6)) (5 5)) (2 2)) (4 4)) (0 ]))\n");
}

TEST(ListOps, Limits) {
  ListOpsOptions deep;
  deep.nested = 1;
  deep.maxDepth = 1000;
  deep.maxWords = 5000;
  std::string text = make(1, deep);
  EXPECT_LT(text.size(), 1'000'000u);
  auto error = [](auto set) {
    ListOpsOptions options;
    set(options);
    return userError([&] { ListOps{options}; });
  };
  EXPECT_EQ(error([](auto &o) { o.maxDepth = 0; }), "max-depth 0: expected 1 to 1000");
  EXPECT_EQ(error([](auto &o) { o.maxArgs = 1; }), "max-args 1: expected 2 to 100");
  EXPECT_EQ(error([](auto &o) { o.nested = 1.5; }), "nested 1.5: expected 0 to 1");
}

} // namespace
} // namespace sheaf::io::test

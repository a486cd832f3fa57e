//===- ShareTree.cpp - Shares of time, as a tree --------------------------===//
#include "compiler/report/ShareTree.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>

namespace sheaf::driver {

namespace {

/// Of all: less is left out.
constexpr double kShownPart = 0.005;

struct Node {
  double ms = 0; ///< with all below
  double own = 0;
  std::map<std::string, std::unique_ptr<Node>> below;
};

} // namespace

std::string shareTree(const std::vector<Spent> &all, const std::string &separator, bool fromRoot) {
  Node root;
  for (const auto &[way, ms] : all) {
    root.ms += ms;
    Node *node = &root;
    for (const std::string &name : way) {
      std::unique_ptr<Node> &next = node->below[name];
      if (!next)
        next = std::make_unique<Node>();
      node = next.get();
      node->ms += ms;
    }
    node->own += ms;
  }
  std::string out;
  size_t hidden = 0;
  struct Shown {
    const Node *node;
    std::string name;
    size_t depth;
  };
  std::vector<Shown> stack{{&root, "", 0}};
  while (!stack.empty()) {
    Shown now = std::move(stack.back());
    stack.pop_back();
    const Node *node = now.node;
    if (node != &root) {
      if (node->ms < kShownPart * root.ms) {
        ++hidden;
        continue;
      }
      while (node->own == 0 && node->below.size() == 1) {
        now.name += separator + node->below.begin()->first;
        node = node->below.begin()->second.get();
      }
      out +=
          fmt::format("  {:>5.1f}% {:>9.3f} ms  {}{}\n", root.ms > 0 ? node->ms / root.ms * 100 : 0,
                      node->ms, std::string(2 * (now.depth - 1), ' '), now.name);
    }
    std::vector<Shown> below;
    for (const auto &[name, child] : node->below)
      below.push_back({child.get(), fromRoot && node != &root ? now.name + separator + name : name,
                       now.depth + 1});
    // The longest comes off the stack first.
    std::sort(below.begin(), below.end(), [](const Shown &a, const Shown &b) {
      return std::tie(a.node->ms, b.name) < std::tie(b.node->ms, a.name);
    });
    std::move(below.begin(), below.end(), std::back_inserter(stack));
  }
  if (hidden)
    out += fmt::format("  and {} with less than {:.1f}% each\n", hidden, kShownPart * 100);
  return out;
}

} // namespace sheaf::driver

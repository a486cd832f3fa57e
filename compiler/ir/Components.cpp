//===- Components.cpp - Strongly connected components ---------------------===//

#include "compiler/ir/Components.h"

#include <algorithm>

namespace sheaf {

// Tarjan's algorithm with its own stack: call chains of a program may be long.
Components findComponents(const std::vector<std::vector<unsigned>> &next) {
  constexpr unsigned none = ~0u;
  size_t count = next.size();
  Components result{std::vector<unsigned>(count, none), std::vector<bool>(count, false), {}};
  std::vector<unsigned> index(count, none), low(count, 0), open;
  struct Frame {
    unsigned node;
    size_t edge;
  };
  std::vector<Frame> frames;
  unsigned nextIndex = 0, nextComponent = 0;
  auto enter = [&](unsigned node) {
    index[node] = low[node] = nextIndex++;
    open.push_back(node);
    frames.push_back({node, 0});
  };
  for (unsigned root = 0; root < count; ++root) {
    if (index[root] != none)
      continue;
    enter(root);
    while (!frames.empty()) {
      unsigned node = frames.back().node;
      if (frames.back().edge < next[node].size()) {
        unsigned to = next[node][frames.back().edge++];
        if (to == node)
          result.cyclic[node] = true;
        if (index[to] == none)
          enter(to);
        else if (result.of[to] == none)
          low[node] = std::min(low[node], index[to]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty())
        low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      if (low[node] != index[node])
        continue;
      size_t begin = open.size();
      while (open[--begin] != node) {
      }
      bool several = open.size() - begin > 1;
      for (size_t i = begin; i < open.size(); ++i) {
        result.of[open[i]] = nextComponent;
        if (several)
          result.cyclic[open[i]] = true;
        result.order.push_back(open[i]);
      }
      open.resize(begin);
      ++nextComponent;
    }
  }
  return result;
}

} // namespace sheaf

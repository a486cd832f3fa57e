//===- CheckerGraph.h - Strongly connected components -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERGRAPH_H
#define SHEAF_COMPILER_FRONTEND_CHECKERGRAPH_H

#include <vector>

namespace sheaf {

struct Components {
  std::vector<unsigned> of; ///< the number of each node's component
  std::vector<bool> cyclic; ///< of each node: it can reach itself
};

/// Of the graph with edges from each node to `next[node]`.
Components findComponents(const std::vector<std::vector<unsigned>> &next);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERGRAPH_H

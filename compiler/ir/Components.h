//===- Components.h - Strongly connected components -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_IR_COMPONENTS_H
#define SHEAF_COMPILER_IR_COMPONENTS_H

#include <vector>

namespace sheaf {

struct Components {
  /// The number of each node's component; what a component leads to has lower numbers.
  std::vector<unsigned> of;
  std::vector<bool> cyclic;    ///< of each node: it can reach itself
  std::vector<unsigned> order; ///< all nodes by component
};

/// Of the graph with edges from each node to `next[node]`.
Components findComponents(const std::vector<std::vector<unsigned>> &next);

} // namespace sheaf

#endif // SHEAF_COMPILER_IR_COMPONENTS_H

//===- ShareTree.h - Shares of time, as a tree ------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_SHARETREE_H
#define SHEAF_COMPILER_REPORT_SHARETREE_H

#include <string>
#include <utility>
#include <vector>

namespace sheaf::driver {

/// A way from the root inwards, and the milliseconds that are spent there.
using Spent = std::pair<std::vector<std::string>, double>;

/// A line for each node with what is spent at it and below, the longest first, each below its
/// parent. What has no other part is one node; what has less than half a percent is left out, and
/// counted. A node is called by the names from its parent's inwards, joined by `separator`; or,
/// where it has to be known by itself, by all from the root.
std::string shareTree(const std::vector<Spent> &all, const std::string &separator, bool fromRoot);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_SHARETREE_H

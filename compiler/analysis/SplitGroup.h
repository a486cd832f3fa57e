//===- SplitGroup.h - Cuts long groups of tensor code -----------*- C++ -*-===//
//
// A long group is a stack of layers, however the program says it. It is cut where few tensors go
// on, so that layers of one form become equal blocks, which are compiled once, whatever their
// number, and no block becomes so long that its kernel takes long to compile.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_SPLITGROUP_H
#define SHEAF_COMPILER_ANALYSIS_SPLITGROUP_H

#include "compiler/analysis/Grouping.h"

namespace sheaf::passes {

/// The pieces of a group, in order; the group itself when it is not long or has no place to cut.
/// What several pieces need and is computed where it is read, such as scalars, views of weights,
/// masks and biases by distance, is made in each.
std::vector<Group> splitGroup(const Group &group);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_SPLITGROUP_H

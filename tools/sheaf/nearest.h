//===- nearest.h - What a misspelt word was meant to be ---------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_NEAREST_H
#define SHEAF_TOOLS_SHEAF_NEAREST_H

#include <string>
#include <vector>

namespace sheaf::tool {

/// "; did you mean 'x'?" with the candidate nearest to a misspelt word; empty if none is near.
std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_NEAREST_H

//===- nearest.cpp - What a misspelt word was meant to be -----------------===//
#include "tools/sheaf/nearest.h"

#include "runtime/model/spelling.h"

#include <algorithm>

namespace sheaf::tool {

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  const std::string *best = nullptr;
  size_t least = std::max<size_t>(word.size() / 3, 2) + 1;
  for (const std::string &candidate : candidates) {
    size_t d = editDistance(word, candidate);
    if (d < least) {
      least = d;
      best = &candidate;
    }
  }
  return best ? "; did you mean '" + *best + "'?" : "";
}

} // namespace sheaf::tool

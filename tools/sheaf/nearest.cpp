//===- nearest.cpp - What a misspelt word was meant to be -----------------===//
#include "tools/sheaf/nearest.h"

#include <algorithm>
#include <numeric>

namespace sheaf::tool {

namespace {

/// Levenshtein distance.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])});
      diagonal = row[j + 1];
      row[j + 1] = next;
    }
  }
  return row.back();
}

} // namespace

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  const std::string *best = nullptr;
  size_t least = std::max<size_t>(word.size() / 3, 2) + 1;
  for (const std::string &candidate : candidates) {
    size_t d = distance(word, candidate);
    if (d < least) {
      least = d;
      best = &candidate;
    }
  }
  return best ? "; did you mean '" + *best + "'?" : "";
}

} // namespace sheaf::tool

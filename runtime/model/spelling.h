//===- spelling.h - How near two names are ----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_SPELLING_H
#define SHEAF_RUNTIME_MODEL_SPELLING_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// Edits that make one name the other: a letter more, less or another, or two exchanged. More than
/// `limit` where the lengths alone tell.
inline size_t editDistance(std::string_view a, std::string_view b, size_t limit = SIZE_MAX / 2) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit)
    return limit + 1;
  std::vector<size_t> row(b.size() + 1), before(b.size() + 1), older;
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    older = std::exchange(before, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row.back();
}

} // namespace sheaf

#endif // SHEAF_RUNTIME_MODEL_SPELLING_H

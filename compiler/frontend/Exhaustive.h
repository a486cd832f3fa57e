//===- Exhaustive.h - What the arms of a match cover ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_EXHAUSTIVE_H
#define SHEAF_COMPILER_FRONTEND_EXHAUSTIVE_H

#include "compiler/frontend/CheckerTree.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

/// What a match's arms cover (Maranget's algorithm over nested patterns). `rows` are the arms
/// without a guard, in order: an arm with a guard covers nothing for sure.
class Coverage {
public:
  explicit Coverage(std::vector<const typed::Pattern *> rows) : rows(std::move(rows)) {}

  /// Values, written as patterns, that no row matches: one for each head that the first column's
  /// values can have, where those are few enough to write down. Empty: all values are matched.
  std::vector<std::string> missing();
  /// Whether some value matches `pattern` and none of the first `count` rows.
  bool isUseful(const typed::Pattern &pattern, size_t count);
  /// The question took too many steps to answer; the answers given mean nothing then.
  bool gaveUp() const { return steps > mostSteps; }

private:
  using Row = std::vector<const typed::Pattern *>; ///< null: any value
  using Witness = std::vector<std::string>;

  bool missing(std::vector<Row> matrix, size_t width, Witness &witness);
  bool useful(std::vector<Row> matrix, Row row);

  static constexpr size_t mostSteps = 5'000'000;
  std::vector<const typed::Pattern *> rows;
  size_t steps = 0;
  // Of the first `indexed` rows, if they match ints: which row has a value, or any, first.
  size_t indexed = 0;
  size_t firstWild = SIZE_MAX;
  std::map<int64_t, size_t> ints;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_EXHAUSTIVE_H

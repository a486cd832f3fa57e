//===- held_rows.h - Rows that are given back one by one --------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_BACKWARD_HELD_ROWS_H
#define SHEAF_RUNTIME_BACKWARD_HELD_ROWS_H

#include "runtime/backward/row_chunks.h"

#include <bit>
#include <map>

namespace sheaf::rt {

/// Hands out rows of a row space; what is given back is handed out again for about the same size.
class HeldRows {
public:
  /// `poison`: what is given back is filled with NaN patterns.
  HeldRows(RowSpace &rows, bool poison) : rows_(rows), chunks_(rows, poison), poison_(poison) {}

  /// The row space was reset.
  void forget() {
    chunks_.forget();
    free_.clear();
  }

  /// The first of `granules` granules, or RowSpace::kFull.
  uint64_t allocate(uint32_t granules) {
    std::vector<uint32_t> &free = free_[roundUp(granules)];
    if (free.empty())
      return chunks_.allocate(roundUp(granules));
    uint32_t row = free.back();
    free.pop_back();
    return row;
  }
  void giveBack(uint32_t row, uint32_t granules) {
    if (poison_)
      rows_.memory().fill({row, granules}, 0xFF);
    free_[roundUp(granules)].push_back(row);
  }

private:
  /// To three leading bits, so that rows of many sizes need few lists and waste a quarter at most.
  static uint32_t roundUp(uint32_t granules) {
    uint32_t unit = std::bit_floor(granules | 1) / 4;
    return unit > 1 ? (granules + unit - 1) / unit * unit : granules;
  }

  RowSpace &rows_;
  RowChunks chunks_;
  bool poison_;
  std::map<uint32_t, std::vector<uint32_t>> free_; ///< by size
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_BACKWARD_HELD_ROWS_H

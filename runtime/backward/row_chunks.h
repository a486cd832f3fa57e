//===- row_chunks.h - Rows that are used again ------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_BACKWARD_ROW_CHUNKS_H
#define SHEAF_RUNTIME_BACKWARD_ROW_CHUNKS_H

#include "runtime/memory/rows.h"

#include <vector>

namespace sheaf::rt {

/// Hands out rows of a row space by the chunk, which are given back all at once.
class RowChunks {
public:
  /// `poison`: what is given back is filled with NaN patterns.
  RowChunks(RowSpace &rows, bool poison) : rows_(rows), poison_(poison) {}

  /// The row space was reset.
  void forget() {
    free_.clear();
    used_.clear();
    next_ = end_ = 0;
  }

  /// The first of `granules` granules, or RowSpace::kFull.
  uint64_t allocate(int64_t granules) {
    auto count = static_cast<uint64_t>(granules);
    if (count > end_ - next_ && !nextChunk(count))
      return RowSpace::kFull;
    next_ += count;
    return next_ - count;
  }

  void giveBack() {
    if (poison_)
      for (const Chunk &chunk : used_)
        rows_.memory().fill({chunk.begin, chunk.granules}, 0xFF);
    free_.insert(free_.end(), used_.begin(), used_.end());
    used_.clear();
    next_ = end_ = 0;
  }

private:
  static constexpr uint64_t kChunkGranules = (uint64_t(64) << 10) / kGranuleBytes;
  struct Chunk {
    uint64_t begin, granules;
  };

  bool nextChunk(uint64_t least) {
    Chunk chunk{};
    for (size_t i = free_.size(); i-- > 0;)
      if (free_[i].granules >= least) {
        chunk = free_[i];
        free_[i] = free_.back();
        free_.pop_back();
        break;
      }
    if (chunk.granules == 0) {
      chunk.granules = std::max(least, kChunkGranules);
      chunk.begin = rows_.allocate(static_cast<int64_t>(chunk.granules));
      if (chunk.begin == RowSpace::kFull) {
        chunk.granules = least;
        chunk.begin = rows_.allocate(static_cast<int64_t>(least));
      }
      if (chunk.begin == RowSpace::kFull)
        return false;
    }
    used_.push_back(chunk);
    next_ = chunk.begin;
    end_ = chunk.begin + chunk.granules;
    return true;
  }

  RowSpace &rows_;
  bool poison_;
  uint64_t next_ = 0, end_ = 0;
  std::vector<Chunk> free_, used_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_BACKWARD_ROW_CHUNKS_H

//===- granule_bits.h - A bit for each granule ------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_GRANULE_BITS_H
#define SHEAF_RUNTIME_MEMORY_GRANULE_BITS_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace sheaf::rt {

/// A bit for each granule of a mini-batch, from the first on.
class GranuleBits {
public:
  void reset(uint64_t granules) {
    size_ = granules;
    words_.assign((granules + 63) / 64, 0);
  }
  void set(uint64_t begin, uint64_t end) {
    end = std::min(end, size_);
    while (begin < end) {
      uint64_t bit = begin % 64, count = std::min(end - begin, 64 - bit);
      words_[begin / 64] |= (~uint64_t(0) >> (64 - count)) << bit;
      begin += count;
    }
  }
  uint64_t size() const { return size_; }
  /// The first granule from `begin` on that is set (or is not), or size().
  uint64_t next(uint64_t begin, bool isSet) const {
    while (begin < size_) {
      uint64_t word = (isSet ? words_[begin / 64] : ~words_[begin / 64]) >> begin % 64;
      if (word)
        return std::min(begin + static_cast<uint64_t>(std::countr_zero(word)), size_);
      begin = (begin / 64 + 1) * 64;
    }
    return size_;
  }
  /// The last granule before `end` that is set; `begin` is.
  uint64_t last(uint64_t begin, uint64_t end) const {
    end = std::min(end, size_);
    while (--end > begin) {
      uint64_t word = words_[end / 64] << (63 - end % 64);
      if (word)
        return std::max(begin, end - static_cast<uint64_t>(std::countl_zero(word)));
      end = end / 64 * 64;
      if (end <= begin)
        break;
    }
    return begin;
  }
  bool any(uint64_t begin, uint64_t end) const {
    end = std::min(end, size_);
    while (begin < end) {
      uint64_t count = std::min(end - begin, 64 - begin % 64);
      if (words_[begin / 64] >> begin % 64 & (~uint64_t(0) >> (64 - count)))
        return true;
      begin += count;
    }
    return false;
  }

private:
  std::vector<uint64_t> words_;
  uint64_t size_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_GRANULE_BITS_H

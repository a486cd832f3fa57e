//===- promised_rows.h - Rows without memory --------------------*- C++ -*-===//
//
// What a record that has not run makes needs no memory yet, only a name. Where the whole of a flush
// is known before its first kernel runs, rows are promised: they are given ids beyond all that have
// memory, and a place when it is known how long they are needed (schedule/row_plan.h).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEMORY_PROMISED_ROWS_H
#define SHEAF_RUNTIME_MEMORY_PROMISED_ROWS_H

#include "runtime/memory/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace sheaf::rt {

class PromisedRows {
public:
  /// The first id. Those with memory are below (RowSpace::kMaxGranules), and all have 32 bits.
  static constexpr uint64_t kFirst = uint64_t(1) << 31;
  static constexpr uint64_t kMost = uint64_t(1) << 31;
  static constexpr uint64_t kFull = UINT64_MAX;
  static constexpr bool has(uint64_t id) { return id >= kFirst; }

  /// Its own memory is charged to `count`.
  PromisedRows(MemoryMeter &meter, MemoryKind &count) : meter_(meter), count_(count) {}
  ~PromisedRows() { meter_.uncharge(count_, charged_); }
  PromisedRows(const PromisedRows &) = delete;

  /// The id of the first of so many granules, or kFull.
  uint64_t allocate(uint64_t granules) {
    // What begins after it may have no size, and belongs to no one then.
    if (granules >= kMost - size_ ||
        ((size_ + granules) / kUnit >= units_.size() && !grow(size_ + granules))) [[unlikely]]
      return kFull;
    units_[size_ / kUnit].starts |= uint64_t(1) << size_ % kUnit;
    uint64_t id = kFirst + size_;
    size_ += granules;
    return id;
  }
  uint64_t granules() const { return size_; }
  /// Bytes that were asked for in vain to name so many granules more; 0: there are no more names.
  uint64_t bytesToName(uint64_t granules) const {
    return granules >= kMost - size_ ? 0 : bytesFor(leastUnits(size_ + granules));
  }
  bool isEmpty() const { return size_ == 0 && (units_.empty() || units_[0].starts == 0); }

  /// From now until the next allocate(): allocations are numbered in their order, those of no size
  /// as what comes after them. Returns how many there are.
  uint32_t number() {
    uint32_t count = 0;
    for (size_t i = 0; i < units_.size() && i * kUnit <= size_; ++i) {
      units_[i].before = count;
      count += bitsOf(units_[i].starts);
    }
    return count;
  }
  /// Which allocation a granule belongs to.
  uint32_t numberOf(uint64_t id) const {
    uint64_t at = id - kFirst;
    const Unit &unit = units_[at / kUnit];
    return unit.before + bitsOf(unit.starts & (kAll >> (kUnit - 1 - at % kUnit))) - 1;
  }
  /// Calls `visit(granule)` with the first of each allocation, counted from kFirst, in their order.
  template <typename Visit> void forEachStart(Visit visit) const {
    for (size_t i = 0; i < units_.size() && i * kUnit <= size_; ++i)
      for (uint32_t bits = units_[i].starts; bits; bits &= bits - 1)
        visit(i * kUnit + static_cast<uint64_t>(std::countr_zero(bits)));
  }

  /// Each has what the other had. Of one session, and one count.
  void swap(PromisedRows &other) noexcept {
    std::swap(charged_, other.charged_);
    std::swap(size_, other.size_);
    units_.swap(other.units_);
  }

  void forget() {
    if (isEmpty())
      return;
    std::fill_n(units_.begin(), std::min(units_.size(), size_ / kUnit + 1), Unit());
    size_ = 0;
  }
  /// The same, and gives the memory for them back.
  void release() {
    std::exchange(units_, {}); // an assignment of {} would keep the memory
    size_ = 0;
    meter_.uncharge(count_, std::exchange(charged_, 0));
  }

private:
  /// So few granules that a table counts their bits: not all processors that this is compiled for
  /// do.
  static constexpr uint64_t kUnit = 16;
  static constexpr uint32_t kAll = (uint32_t(1) << kUnit) - 1;
  struct Unit {
    uint32_t before = 0; ///< allocations before it
    uint32_t starts = 0; ///< a bit a granule: one begins
  };
  /// Not less than a part of what there is: all of it is copied each time.
  size_t leastUnits(uint64_t last) const {
    return std::max<size_t>(units_.size() + units_.size() / 8, last / kUnit + 1);
  }
  uint64_t bytesFor(size_t units) const { return (units - units_.size()) * sizeof(Unit); }
  static uint32_t bitsOf(uint32_t bits) {
    static constexpr std::array<uint8_t, 256> table = [] {
      std::array<uint8_t, 256> counts{};
      for (uint32_t i = 0; i < counts.size(); ++i)
        counts[i] = static_cast<uint8_t>(std::popcount(i));
      return counts;
    }();
    return uint32_t(table[bits & 0xFF]) + table[bits >> 8];
  }

  /// Makes room for all granules up to this one.
  [[gnu::cold]] bool grow(uint64_t last) {
    size_t units = std::max<size_t>({1024, 2 * units_.size(), leastUnits(last)});
    if (!meter_.charge(count_, bytesFor(units))) {
      units = leastUnits(last);
      if (!meter_.charge(count_, bytesFor(units)))
        return false;
    }
    charged_ += bytesFor(units);
    try {
      units_.reserve(units); // resize() alone takes more
      units_.resize(units);
    } catch (const std::bad_alloc &) {
      return false;
    }
    return true;
  }

  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  uint64_t size_ = 0;
  std::vector<Unit> units_; ///< of kUnit granules each
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_PROMISED_ROWS_H

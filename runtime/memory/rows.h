//===- rows.h - The row space of a session ----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_ROWS_H
#define SHEAF_RUNTIME_MEMORY_ROWS_H

#include "runtime/memory/granule_bits.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/promised_rows.h"
#include "runtime/memory/row_memory.h"

#include <span>

namespace sheaf::rt {

/// Granules [0, paramGranules) hold the parameters for the life of the session; what follows is
/// handed out by moving `next` and taken back at the end of the mini-batch. Rows that outlive the
/// mini-batch are handed out from the other end of the range. Rows are not cleared.
///
/// Of what was handed out, reclaim() takes back what no one needs, while the mini-batch goes on.
/// What lay between leaves holes; these are filled first, the largest before all others, each from
/// its beginning on. What fits into none is taken after the last row.
///
/// In address sanitizer builds granules that are not handed out are poisoned. With `guards` (the
/// hostile setting) allocations are filled with NaN patterns and followed by a guard granule.
class RowSpace {
public:
  /// Ids of rows with memory are non-negative 32-bit numbers, so that kernels may extend them
  /// either way; those of promised rows (promised_rows.h), which host code sees, only fit 32 bits.
  static constexpr uint64_t kMaxGranules = uint64_t(1) << 31;

  /// `memory` must outlive this.
  RowSpace(uint32_t paramGranules, RowMemory &memory, MemoryMeter &meter, MemoryKind &count,
           bool guards);
  ~RowSpace() { meter_.attach(nullptr); }
  RowSpace(const RowSpace &) = delete;
  RowSpace &operator=(const RowSpace &) = delete;

  /// As the host sees it: what it wrote there itself, and what was copied out.
  uint8_t *address(uint64_t granule) const { return host_ + granule * kGranuleBytes; }
  RowMemory &memory() const { return memory_; }

  /// The first of `granules` fresh granules, or kFull. Negative sizes never fit.
  static constexpr uint64_t kFull = UINT64_MAX;
  uint64_t allocate(int64_t granules) {
    if (isNear(granules)) [[likely]]
      return allocateNear(granules);
    return allocateSlow(granules, promised_);
  }
  /// Whether they are there to be taken, without further ado.
  bool isNear(int64_t granules) const {
    return !checked_ && static_cast<uint64_t>(granules) <= limit_ - next_;
  }
  uint64_t allocateNear(int64_t granules) {
    uint64_t id = next_;
    next_ = id + static_cast<uint64_t>(granules);
    return id;
  }

  /// From now on allocate() only promises rows, in `promised`; null: not any more.
  void promise(PromisedRows *promised);
  bool promises() const { return promised_ != nullptr; }
  /// The same as allocate() for rows that are written at once.
  uint64_t allocateNow(int64_t granules) {
    return promised_ ? allocateSlow(granules, nullptr) : allocate(granules);
  }
  /// Takes the last allocation of those with memory back.
  void giveBackLast(uint64_t id, uint64_t granules);

  /// `granules` that reset() does not take back, or kFull. The caller has charged them.
  uint64_t keep(int64_t granules);
  /// Bytes that are kept when so many more are.
  uint64_t keptBytesWith(int64_t granules) const {
    return (capacity_ - keptBegin_ + static_cast<uint64_t>(granules) + guard()) * kGranuleBytes;
  }
  /// Kept granules are those from here on.
  uint64_t keptBegin() const { return keptBegin_; }
  /// Takes all that is kept back; releaseKept() lets its pages go, too.
  void forgetKept();
  void releaseKept();

  /// Addresses without memory, from a page's on, or kFull (shared_rows.h). They are handed out, and
  /// count as rows that lie there do but for their bytes.
  uint64_t takeBare(uint64_t granules);
  /// As many of those in use as there are granules have memory that is theirs, or have none any
  /// more. False when the budget does not have it.
  bool takeMemory(uint64_t granules);
  void giveMemory(uint64_t granules) { setBare(bare_ + granules); }
  /// So many have memory of their own again, as all rows, when reclaim() or reset() is done.
  void giveBare(uint64_t granules) { leaving_ += granules; }

  /// Looks at the byte budget again: other memory of the session grew or shrank.
  void updateLimit();

  /// Brings the counter of row bytes up to date.
  void account();

  /// Granules of this mini-batch with the holes between them, and what the limit still allows.
  uint64_t first() const { return first_; }
  uint64_t used() const { return next() - first_; }
  /// Of those, what takes memory.
  uint64_t held() const { return used() - bare_; }
  /// And what takes none.
  uint64_t bare() const { return bare_; }
  /// The granule after the last one of this mini-batch.
  uint64_t next() const { return std::max(end_, next_); }
  uint64_t left() const { return endLimit_ - next(); }
  /// Of the rows below next(), what reclaim() found free.
  uint64_t reclaimed() const { return reclaimed_; }
  /// Of that, what was not handed out again.
  uint64_t inHoles() const { return reclaimed_ - std::min(reclaimed_, handedOut()); }
  /// Granules that were handed out since the mini-batch or reclaim() began.
  uint64_t handedOut() const { return handedOut_ + (next_ - begin_); }
  /// The same of memory alone.
  uint64_t made() const { return handedOut() - bareOut_; }
  uint64_t capacity() const { return capacity_; }

  /// The guards that were written over, as (granule of the allocation, granules). Empty when well.
  struct Damage {
    uint64_t id;
    uint64_t granules;
  };
  std::vector<Damage> damagedGuards() const;

  /// Takes back all granules of the mini-batch that `live`, which has a bit for each, does not
  /// have.
  void reclaim(GranuleBits &live);

  /// Takes all rows of the mini-batch back, and with them all that stayed of earlier ones but
  /// `stay`. Pages that the recent past did not need are released. Rows of the next mini-batch lie
  /// in one piece as long as there is one for them, or where there is room.
  void reset(std::span<const RowRange> stay = {}, bool inOnePiece = true);
  /// What was handed out since reset() or reclaim(), guards included.
  std::vector<RowRange> ranges() const;

private:
  uint64_t allocateSlow(int64_t granules, PromisedRows *promised);
  uint64_t take(uint64_t granules);
  void goTo(uint64_t begin, uint64_t end);
  void writeGuard(uint64_t granule);
  void setBare(uint64_t granules);
  void giveLeaving();
  uint64_t guard() const { return guards_ ? 1 : 0; }

  RowMemory &memory_;
  uint8_t *host_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t first_;
  uint64_t next_;     ///< where the next rows go: in a hole, or after all rows
  uint64_t limit_;    ///< of the hole, or endLimit_
  uint64_t begin_;    ///< next_ has moved on from here
  uint64_t end_;      ///< after the last row, unless next_ is
  uint64_t tail_;     ///< what is taken after all that stayed begins here
  uint64_t endLimit_; ///< what may be handed out at most
  uint64_t handedOut_ = 0;
  uint64_t bare_ = 0;    ///< of used(): granules without memory of their own
  uint64_t bareOut_ = 0; ///< of handedOut(), without what got memory since
  uint64_t leaving_ = 0; ///< of bare_, until the next reclaim() or reset()
  uint64_t reclaimed_ = 0;
  uint64_t peak_ = 0; ///< of used(), since reset()
  struct Hole {
    uint64_t begin, end;
    uint64_t granules() const { return end - begin; }
  };
  std::vector<Hole> holes_; ///< the largest first
  size_t hole_ = 0;         ///< next_ is in this one, unless there are no more
  std::vector<Hole> spare_; ///< holes for when there is nothing else
  uint64_t capacity_;       ///< of the memory, in granules
  uint64_t keptBegin_;      ///< kept granules are those from here to capacity_
  uint64_t keptTouched_;    ///< the least that keptBegin_ was since their pages were released
  uint64_t touched_;        ///< granules from here on have never been handed out, or were released
  uint64_t recentPeak_ = 0;
  uint64_t mostOfRun_ = 0; ///< handed out to one mini-batch, of late
  uint64_t poisonEnd_;     ///< poisoning has reached this granule
  bool guards_;
  PromisedRows *promised_ = nullptr;
  bool checked_; ///< guards_, poisoning or promises: every allocation goes the slow way
  std::vector<Damage> guarded_, guardedKept_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_ROWS_H

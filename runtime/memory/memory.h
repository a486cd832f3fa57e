//===- memory.h - Reserved ranges, the byte budget, bump arenas -*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_MEMORY_H
#define SHEAF_RUNTIME_MEMORY_MEMORY_H

#include "runtime/measure/counters.h"
#include "runtime/memory/held_memory.h"
#include "runtime/model/file_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sheaf::rt {

/// Bytes of memory this process may use: the machine's, or its control group's if that is less.
uint64_t availableMemory();

/// A range of addresses whose pages are committed by touching them.
class Reservation {
public:
  Reservation() = default;
  /// Reserves `bytes`, or as much as the machine grants by halving, but not less than `least`.
  /// Throws UserError when not even that is granted.
  Reservation(uint64_t bytes, uint64_t least, const char *what);
  ~Reservation();
  Reservation(const Reservation &) = delete;
  Reservation &operator=(const Reservation &) = delete;

  uint8_t *data() const { return data_; }
  uint64_t size() const { return size_; }
  void swap(Reservation &other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  /// Puts bytes of a file at the beginning. Pages that nothing writes to are shared with all who
  /// map the file; what is written stays here. Throws UserError.
  void map(const FileRange &from, uint64_t bytes);
  /// releasePages() of the bytes [begin, end) of it.
  void release(uint64_t begin, uint64_t end);
  /// Makes the page at this offset fault.
  void guardPage(uint64_t begin);

private:
  uint8_t *data_ = nullptr;
  uint64_t size_ = 0;
};

uint64_t pageBytes();
/// Gives the whole pages inside [begin, end) back; they read as zero afterwards.
void releasePages(uint8_t *begin, uint8_t *end);

class RowSpace;

/// The byte budget that the allocators of one session share.
class MemoryMeter {
public:
  /// `kinds`: of all that is charged, and must outlive this; null: no one asks what is held.
  explicit MemoryMeter(uint64_t limit, const MemoryUse *kinds = nullptr)
      : limit_(limit), kinds_(kinds) {}

  uint64_t limit() const { return limit_; }
  /// Bytes of everything but the rows of a mini-batch, and with them.
  uint64_t usedBesideRows() const { return used_; }
  uint64_t used() const;
  HeldMemory held() const;

  /// Takes bytes from the budget; false when it does not have them.
  bool charge(MemoryKind &kind, uint64_t bytes);
  void uncharge(MemoryKind &kind, uint64_t bytes);

  /// The row space shares the budget: it is asked for its use, and told when its share shrinks.
  /// Null: it is there no more.
  void attach(RowSpace *rows) { rows_ = rows; }

private:
  uint64_t limit_;
  uint64_t used_ = 0;
  const MemoryUse *kinds_;
  RowSpace *rows_ = nullptr;
};

/// Memory handed out by moving a pointer and taken back all at once. Chunks are kept and used
/// again; those that the recent past did not need are freed at a reset.
class BumpArena {
public:
  /// `alignment`: of every allocation, a power of two up to 64. `chunkBytes`: of the first chunk;
  /// later ones double up to 8 MB. `redzones` leaves poisoned bytes between allocations (address
  /// sanitizer builds only).
  BumpArena(MemoryMeter &meter, MemoryKind &count, size_t alignment, size_t chunkBytes,
            bool redzones);
  ~BumpArena();
  BumpArena(const BumpArena &) = delete;
  BumpArena &operator=(const BumpArena &) = delete;

  /// Uninitialised memory, or null when the budget or the machine does not allow it.
  void *allocate(size_t bytes) {
    size_t size = (bytes + alignment_ - 1) & ~(alignment_ - 1);
    if (!kSlowOnly && size <= static_cast<size_t>(end_ - cursor_)) [[likely]] {
      uint8_t *p = cursor_;
      cursor_ += size;
      return p;
    }
    return allocateSlow(bytes);
  }
  /// Lengthens the latest allocation, which ends at `end`, in place if its chunk has room.
  bool extend(const void *end, size_t more);

  void reset();
  /// Gives back what was not used since.
  void giveBack();
  uint64_t capacity() const { return capacity_; }
  /// A new arena of this kind.
  std::unique_ptr<BumpArena> emptyLike() const;
  /// Each has what the other had. Of arenas of one kind.
  void swap(BumpArena &other) noexcept;

private:
  struct Chunk {
    uint8_t *data;
    size_t size;
  };
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  static constexpr bool kSlowOnly = true;
#else
  static constexpr bool kSlowOnly = false;
#endif
#else
  static constexpr bool kSlowOnly = false;
#endif

  void *allocateSlow(size_t bytes);
  bool nextChunk(size_t atLeast);
  void freeChunk(const Chunk &chunk);

  MemoryMeter &meter_;
  MemoryKind &count_;
  size_t alignment_;
  size_t chunkBytes_;
  size_t redzone_;
  uint8_t *cursor_ = nullptr;
  uint8_t *end_ = nullptr;
  std::vector<Chunk> chunks_;
  size_t current_ = 0; ///< chunks before this one are full
  uint64_t capacity_ = 0;
  uint64_t recentPeak_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_MEMORY_H

//===- heap.h - Where lists and data of a mini-batch live -------*- C++ -*-===//
//
// Memory is handed out by moving a pointer, block by block. Nothing moves. While instances wait,
// whoever knows all that is still needed (live_values.h) marks it, and blocks in which nothing is
// marked are handed out again: a value that lives keeps its block. A value that is larger than a
// block has consecutive ones to itself.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEMORY_HEAP_H
#define SHEAF_RUNTIME_MEMORY_HEAP_H

#include "runtime/memory/memory.h"
#include "runtime/memory/sanitizer.h"
#include "runtime/model/layout.h"

namespace sheaf::rt {

class Heap {
public:
  /// `bytes` of address space, or as much as there is. `hostile`: blocks are small, and what is
  /// given back is filled with garbage.
  Heap(MemoryMeter &meter, MemoryKind &count, uint64_t bytes, bool hostile);
  ~Heap();
  Heap(const Heap &) = delete;

  /// Uninitialised memory for slots, or null when the budget or the machine does not allow it.
  void *allocate(size_t bytes) {
    size_t size = (bytes + alignof(Slot) - 1) & ~(alignof(Slot) - 1);
    if (!kPoisoning && size - 1 < static_cast<size_t>(end_ - cursor_)) [[likely]] {
      uint8_t *p = cursor_;
      cursor_ += size;
      return p;
    }
    return allocateSlow(bytes);
  }

  /// Takes everything back. Memory that the recent past did not need goes back to the machine.
  void reset();

  /// Forgets all marks. May throw std::bad_alloc.
  void beginMarking();
  /// What `p` points into, its first byte or any other, is needed. What is not of this heap is
  /// none of its business.
  void mark(const void *p) {
    auto offset = static_cast<uint64_t>(static_cast<const uint8_t *>(p) - space_.data());
    if (offset < used_ * blockBytes_)
      markBlock(offset / blockBytes_);
  }
  /// Takes back all blocks without a mark.
  void reclaim();
  /// Memory is short: what is charged and not in use is given back, and from now on no more is
  /// charged than is used. Whether there was any.
  bool giveBack();

  /// A new heap of this kind. Throws UserError when the machine refuses the addresses.
  std::unique_ptr<Heap> emptyLike() const;
  /// Each has what the other had, at the same addresses. Of heaps of one kind.
  void swap(Heap &other) noexcept;

  /// Bytes of blocks that were handed out since reset() or reclaim().
  uint64_t handedOut() const { return handedOut_ * blockBytes_; }
  /// Bytes that reclaim() left in use, and those that it found free.
  uint64_t live() const { return (used_ - free_) * blockBytes_; }
  uint64_t reclaimed() const { return free_ * blockBytes_; }

private:
  void *allocateSlow(size_t bytes);
  /// The first of so many consecutive blocks; false when there is no memory.
  bool take(uint64_t blocks, uint64_t &first);
  bool commit(uint64_t blocks);
  void markBlock(uint64_t block);
  void vacate(uint64_t begin, uint64_t end);
  void shrink(uint64_t blocks);
  uint8_t *address(uint64_t block) const { return space_.data() + block * blockBytes_; }

  MemoryMeter &meter_;
  MemoryKind &count_;
  bool hostile_;
  bool exact_; ///< whether no more is charged than is used
  uint64_t blockBytes_;
  size_t redzone_;
  Reservation space_;
  uint8_t *cursor_ = nullptr, *end_ = nullptr; ///< in the block that values go to
  uint64_t committed_ = 0;                     ///< blocks that are charged
  uint64_t used_ = 0;                          ///< blocks below here are in use, or holes
  uint64_t peak_ = 0, recentPeak_ = 0;         ///< of used_
  uint64_t handedOut_ = 0, free_ = 0;
  /// By block of a larger value: how many before it are of the same value.
  std::vector<uint32_t> before_;
  std::vector<bool> marked_;
  struct Hole {
    uint64_t begin, end;
  };
  std::vector<Hole> holes_;       ///< the next to be used last
  uint64_t largest_ = UINT64_MAX; ///< no hole has more blocks
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_HEAP_H

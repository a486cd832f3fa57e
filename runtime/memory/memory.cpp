#include "runtime/memory/memory.h"

#include "runtime/memory/rows.h"
#include "runtime/memory/sanitizer.h"
#include "runtime/model/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <sys/mman.h>
#include <unistd.h>

namespace sheaf::rt {

uint64_t pageBytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void releasePages(uint8_t *begin, uint8_t *end) {
  auto page = static_cast<uintptr_t>(pageBytes());
  auto from = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  auto to = reinterpret_cast<uintptr_t>(end) / page * page;
  if (from < to)
    madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
}

uint64_t availableMemory() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * pageBytes();
  // Version 2 and version 1 of control groups; the files are absent or say "max" without a limit.
  for (const char *path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    uint64_t limit;
    if (file >> limit)
      bytes = std::min(bytes, limit);
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Reservation
//===----------------------------------------------------------------------===//

Reservation::Reservation(uint64_t bytes, uint64_t least, const char *what) {
  uint64_t page = pageBytes();
  bytes = std::max((bytes + page - 1) / page * page, page);
  least = std::max((least + page - 1) / page * page, page);
  for (;; bytes = std::max(bytes / 2 / page * page, least)) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
      data_ = static_cast<uint8_t *>(p);
      size_ = bytes;
      return;
    }
    if (bytes <= least)
      throw UserError("the machine refuses " + bytesText(bytes) + " of address space for " + what);
  }
}

Reservation::~Reservation() {
  if (data_)
    munmap(data_, size_);
}

void Reservation::map(const FileRange &from, uint64_t bytes) {
  if (bytes && mmap(data_, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, from.file,
                    static_cast<off_t>(from.offset)) == MAP_FAILED)
    throw UserError(std::string("the machine does not map weights from a file: ") +
                    std::strerror(errno));
}

void Reservation::release(uint64_t begin, uint64_t end) {
  releasePages(data_ + begin, data_ + end);
}

void Reservation::guardPage(uint64_t begin) { mprotect(data_ + begin, pageBytes(), PROT_NONE); }

//===----------------------------------------------------------------------===//
// MemoryMeter
//===----------------------------------------------------------------------===//

uint64_t MemoryMeter::used() const { return used_ + (rows_ ? rows_->held() * kGranuleBytes : 0); }

HeldMemory MemoryMeter::held() const {
  // The counter of rows is brought up to date now and then only.
  return {kinds_, used(), limit_, used() - used_};
}

bool MemoryMeter::charge(MemoryKind &kind, uint64_t bytes) {
  uint64_t before = used();
  if (before > limit_ || bytes > limit_ - before)
    return false;
  used_ += bytes;
  kind.now += bytes;
  kind.peak = std::max(kind.peak, kind.now);
  if (rows_)
    rows_->updateLimit();
  return true;
}

void MemoryMeter::uncharge(MemoryKind &kind, uint64_t bytes) {
  used_ -= bytes;
  kind.now -= bytes;
  if (rows_)
    rows_->updateLimit();
}

//===----------------------------------------------------------------------===//
// BumpArena
//===----------------------------------------------------------------------===//

namespace {
constexpr size_t kLargestChunk = size_t(8) << 20;
}

BumpArena::BumpArena(MemoryMeter &meter, MemoryKind &count, size_t alignment, size_t chunkBytes,
                     bool redzones)
    : meter_(meter), count_(count), alignment_(alignment), chunkBytes_(chunkBytes),
      redzone_(redzones && kPoisoning ? 32 : 0) {}

std::unique_ptr<BumpArena> BumpArena::emptyLike() const {
  return std::make_unique<BumpArena>(meter_, count_, alignment_, chunkBytes_, redzone_ > 0);
}

void BumpArena::swap(BumpArena &other) noexcept {
  std::swap(cursor_, other.cursor_);
  std::swap(end_, other.end_);
  chunks_.swap(other.chunks_);
  std::swap(current_, other.current_);
  std::swap(capacity_, other.capacity_);
}

BumpArena::~BumpArena() {
  for (const Chunk &chunk : chunks_)
    freeChunk(chunk);
}

void BumpArena::freeChunk(const Chunk &chunk) {
  unpoison(chunk.data, chunk.size);
  std::free(chunk.data);
  meter_.uncharge(count_, chunk.size);
  capacity_ -= chunk.size;
}

void *BumpArena::allocateSlow(size_t bytes) {
  if (bytes > SIZE_MAX / 4)
    return nullptr;
  size_t size = (bytes + alignment_ - 1) & ~(alignment_ - 1);
  if (size + redzone_ > static_cast<size_t>(end_ - cursor_) && !nextChunk(size + redzone_))
    return nullptr;
  uint8_t *p = cursor_;
  cursor_ += size + redzone_;
  unpoison(p, bytes);
  return p;
}

bool BumpArena::nextChunk(size_t atLeast) {
  // A chunk too small for this request is left for later ones of this mini-batch's smaller kind
  // only after a reset; requests that large are rare.
  while (current_ < chunks_.size()) {
    const Chunk &chunk = chunks_[current_++];
    if (chunk.size >= atLeast) {
      cursor_ = chunk.data;
      end_ = chunk.data + chunk.size;
      return true;
    }
  }
  size_t size = chunks_.empty() ? chunkBytes_ : std::min(chunks_.back().size * 2, kLargestChunk);
  size = std::max((atLeast + 63) / 64 * 64, size);
  if (!meter_.charge(count_, size)) {
    size = (atLeast + 63) / 64 * 64;
    if (!meter_.charge(count_, size))
      return false;
  }
  auto *data = static_cast<uint8_t *>(std::aligned_alloc(64, size));
  if (!data) {
    meter_.uncharge(count_, size);
    return false;
  }
  poison(data, size);
  chunks_.push_back({data, size});
  current_ = chunks_.size();
  capacity_ += size;
  cursor_ = data;
  end_ = data + size;
  return true;
}

bool BumpArena::extend(const void *end, size_t more) {
  if (redzone_ || end != cursor_ || more % alignment_ != 0 ||
      more > static_cast<size_t>(end_ - cursor_))
    return false;
  unpoison(cursor_, more);
  cursor_ += more;
  return true;
}

void BumpArena::giveBack() {
  recentPeak_ = 0;
  while (chunks_.size() > current_) {
    freeChunk(chunks_.back());
    chunks_.pop_back();
  }
}

void BumpArena::reset() {
  uint64_t used = 0;
  for (size_t i = 0; i < current_; ++i)
    used += chunks_[i].size;
  recentPeak_ = std::max(used, recentPeak_ - recentPeak_ / 8);
  // Hysteresis: a few small mini-batches after a large one must not free what the next large one
  // allocates again.
  while (!chunks_.empty() && capacity_ > 4 * recentPeak_ + (uint64_t(4) << 20)) {
    freeChunk(chunks_.back());
    chunks_.pop_back();
  }
  if (kPoisoning)
    for (const Chunk &chunk : chunks_)
      poison(chunk.data, chunk.size);
  current_ = 0;
  cursor_ = end_ = nullptr;
}

} // namespace sheaf::rt

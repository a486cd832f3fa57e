#include "runtime/memory/heap.h"

#include <cstring>
#include <new>

namespace sheaf::rt {

namespace {

/// A value that lives keeps so much; what is left of a block when a value does not fit is lost.
constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kHostileBlockBytes = 128;
/// Memory is charged in steps of this at first, of as much as there is later, at most of that.
constexpr uint64_t kLeastStep = uint64_t(64) << 10, kMostStep = uint64_t(8) << 20;
constexpr uint64_t kLeastSpace = uint64_t(16) << 20;
/// Neither null nor a place of any heap.
constexpr int kGarbage = 0xCB;

} // namespace

Heap::Heap(MemoryMeter &meter, MemoryKind &count, uint64_t bytes, bool hostile)
    : meter_(meter), count_(count), hostile_(hostile), exact_(hostile),
      blockBytes_(hostile ? kHostileBlockBytes : kBlockBytes),
      redzone_(hostile && kPoisoning ? 32 : 0), space_(bytes, kLeastSpace, "lists and data") {}

std::unique_ptr<Heap> Heap::emptyLike() const {
  return std::make_unique<Heap>(meter_, count_, space_.size(), hostile_);
}

void Heap::swap(Heap &other) noexcept {
  std::swap(exact_, other.exact_);
  space_.swap(other.space_);
  std::swap(cursor_, other.cursor_);
  std::swap(end_, other.end_);
  std::swap(committed_, other.committed_);
  std::swap(used_, other.used_);
  std::swap(peak_, other.peak_);
  std::swap(recentPeak_, other.recentPeak_);
  std::swap(handedOut_, other.handedOut_);
  std::swap(free_, other.free_);
  before_.swap(other.before_);
  marked_.swap(other.marked_);
  holes_.swap(other.holes_);
  std::swap(largest_, other.largest_);
}

Heap::~Heap() {
  unpoison(space_.data(), committed_ * blockBytes_);
  meter_.uncharge(count_, committed_ * blockBytes_);
}

void *Heap::allocateSlow(size_t bytes) {
  if (bytes > SIZE_MAX / 4)
    return nullptr;
  // What has no size has a place of its own, too.
  size_t size = std::max(bytes, sizeof(Slot));
  size = ((size + alignof(Slot) - 1) & ~(alignof(Slot) - 1)) + redzone_;
  if (size > static_cast<size_t>(end_ - cursor_)) {
    uint64_t blocks = std::max<uint64_t>(1, (size + blockBytes_ - 1) / blockBytes_), first;
    if (!take(blocks, first))
      return nullptr;
    if (blocks > 1) {
      unpoison(address(first), bytes);
      return address(first);
    }
    cursor_ = address(first);
    end_ = cursor_ + blockBytes_;
  }
  uint8_t *p = cursor_;
  cursor_ += size;
  unpoison(p, bytes);
  return p;
}

bool Heap::take(uint64_t blocks, uint64_t &first) {
  auto hole = holes_.rend();
  if (blocks <= largest_) {
    hole = std::find_if(holes_.rbegin(), holes_.rend(),
                        [&](const Hole &h) { return h.end - h.begin >= blocks; });
    // What is large must not look at all holes each time.
    if (hole == holes_.rend())
      largest_ = blocks - 1;
  }
  if (hole != holes_.rend()) {
    first = hole->begin;
    hole->begin += blocks;
    free_ -= blocks;
    if (hole->begin == hole->end)
      holes_.erase(std::next(hole).base());
  } else {
    if (blocks > committed_ - used_ && !commit(blocks - (committed_ - used_)))
      return false;
    first = used_;
    used_ += blocks;
    peak_ = std::max(peak_, used_);
  }
  if (blocks > 1) {
    uint64_t most = std::min<uint64_t>(blocks, UINT32_MAX);
    for (uint64_t i = 0; i < most; ++i)
      before_[first + i] = static_cast<uint32_t>(i);
  }
  handedOut_ += blocks;
  return true;
}

/// Charges at least so many blocks more.
bool Heap::commit(uint64_t blocks) {
  uint64_t room = space_.size() / blockBytes_ - committed_;
  if (blocks > room || blocks > UINT32_MAX)
    return false;
  uint64_t step = std::clamp(committed_ * blockBytes_, kLeastStep, kMostStep) / blockBytes_;
  step = std::min(std::max(step, blocks), room);
  if (exact_ || !meter_.charge(count_, step * blockBytes_)) {
    step = blocks;
    if (!meter_.charge(count_, step * blockBytes_))
      return false;
  }
  try {
    before_.resize(committed_ + step);
  } catch (const std::bad_alloc &) {
    meter_.uncharge(count_, step * blockBytes_);
    return false;
  }
  poison(address(committed_), step * blockBytes_);
  committed_ += step;
  return true;
}

void Heap::beginMarking() { marked_.assign(used_, false); }

void Heap::markBlock(uint64_t block) {
  if (marked_[block])
    return;
  block -= before_[block];
  marked_[block] = true;
  for (++block; block < used_ && before_[block] > 0; ++block)
    marked_[block] = true;
}

void Heap::vacate(uint64_t begin, uint64_t end) {
  std::fill(before_.begin() + static_cast<ptrdiff_t>(begin),
            before_.begin() + static_cast<ptrdiff_t>(end), 0);
  size_t bytes = (end - begin) * blockBytes_;
  if (hostile_) {
    unpoison(address(begin), bytes);
    memset(address(begin), kGarbage, bytes);
  }
  poison(address(begin), bytes);
}

void Heap::reclaim() {
  // No more into a block with a mark: what lives stays together.
  cursor_ = end_ = nullptr;
  holes_.clear();
  largest_ = UINT64_MAX;
  handedOut_ = free_ = 0;
  for (uint64_t at = 0; at < used_;) {
    uint64_t begin = at;
    while (at < used_ && !marked_[at])
      ++at;
    if (at > begin) {
      vacate(begin, at);
      if (at == used_) {
        used_ = begin;
        break;
      }
      holes_.push_back({begin, at});
      free_ += at - begin;
    }
    while (at < used_ && marked_[at])
      ++at;
  }
  std::reverse(holes_.begin(), holes_.end());
}

void Heap::shrink(uint64_t blocks) {
  unpoison(address(blocks), (committed_ - blocks) * blockBytes_);
  space_.release(blocks * blockBytes_, committed_ * blockBytes_);
  meter_.uncharge(count_, (committed_ - blocks) * blockBytes_);
  committed_ = blocks;
  before_.resize(committed_);
}

bool Heap::giveBack() {
  exact_ = true;
  recentPeak_ = 0;
  if (committed_ == used_)
    return false;
  shrink(used_);
  return true;
}

void Heap::reset() {
  vacate(0, used_);
  // Hysteresis: a few small mini-batches after a large one must not give back what the next large
  // one needs again.
  recentPeak_ = std::max(peak_, recentPeak_ - recentPeak_ / 8);
  uint64_t most = 4 * recentPeak_ + (uint64_t(4) << 20) / blockBytes_;
  if (committed_ > most)
    shrink(most);
  cursor_ = end_ = nullptr;
  holes_.clear();
  used_ = peak_ = handedOut_ = free_ = 0;
}

} // namespace sheaf::rt

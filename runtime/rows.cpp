#include "runtime/rows.h"

#include "runtime/sanitizer.h"

#include <cstring>

#include <sys/mman.h>

namespace sheaf::rt {

namespace {
constexpr uint8_t kGuardByte = 0xA5;
constexpr uint64_t kReleaseSlack = (uint64_t(64) << 20) / kGranuleBytes;
constexpr uint64_t kPoisonBlock = (uint64_t(1) << 20) / kGranuleBytes;
} // namespace

RowSpace::RowSpace(uint32_t paramGranules, uint64_t reserveBytes, MemoryMeter &meter,
                   MemoryKind &count, bool guards, const std::optional<FileRange> &params)
    : space_(std::min(reserveBytes, kMaxGranules * kGranuleBytes),
             (uint64_t(paramGranules) + 1) * kGranuleBytes, "rows"),
      meter_(meter), count_(count), first_(paramGranules), next_(first_), touched_(first_),
      poisonEnd_(first_), guards_(guards), checked_(guards || kPoisoning) {
  capacity_ = keptBegin_ = keptTouched_ = space_.size() / kGranuleBytes;
  // Kernels gather rows from everywhere: on small pages many of their reads miss the TLB.
  madvise(space_.data(), space_.size(), MADV_HUGEPAGE);
  if (params)
    space_.map(*params, uint64_t(paramGranules) * kGranuleBytes);
  // The guard of the parameters.
  if (guards_) {
    first_ = next_ = touched_ = std::min<uint64_t>(first_ + 1, capacity_);
    writeGuard(paramGranules);
  }
  meter_.attach(this);
  updateLimit();
}

void RowSpace::updateLimit() {
  uint64_t others = meter_.usedBesideRows();
  uint64_t bytes = meter_.limit() > others ? meter_.limit() - others : 0;
  limit_ = std::max(next_, std::min(keptBegin_, first_ + bytes / kGranuleBytes));
}

void RowSpace::account() {
  count_.now = used() * kGranuleBytes;
  count_.peak = std::max(count_.peak, count_.now);
}

void RowSpace::writeGuard(uint64_t granule) {
  unpoison(address(granule), kGranuleBytes);
  memset(address(granule), kGuardByte, kGranuleBytes);
  poison(address(granule), kGranuleBytes);
}

uint64_t RowSpace::allocateSlow(int64_t granulesArg) {
  uint64_t granules = static_cast<uint64_t>(granulesArg);
  uint64_t left = limit_ - next_;
  if (left < guard() || granules > left - guard())
    return kFull;
  uint64_t id = next_;
  next_ += granules + guard();
  if (kPoisoning) {
    // Shadow memory is written block by block ahead of `next_`, never for the whole reservation.
    uint64_t want = std::min(next_ + kPoisonBlock, keptBegin_);
    if (poisonEnd_ < want) {
      poison(address(poisonEnd_), (want - poisonEnd_) * kGranuleBytes);
      poisonEnd_ = want;
    }
    unpoison(address(id), granules * kGranuleBytes);
  }
  if (guards_) {
    memset(address(id), 0xFF, granules * kGranuleBytes);
    writeGuard(id + granules);
    guarded_.push_back({id, granules});
  }
  return id;
}

uint64_t RowSpace::keep(int64_t granulesArg) {
  uint64_t granules = static_cast<uint64_t>(granulesArg);
  uint64_t left = keptBegin_ - next_;
  if (left < guard() || granules > left - guard())
    return kFull;
  keptBegin_ -= granules + guard();
  keptTouched_ = std::min(keptTouched_, keptBegin_);
  limit_ = std::min(limit_, keptBegin_);
  unpoison(address(keptBegin_), granules * kGranuleBytes);
  if (guards_) {
    memset(address(keptBegin_), 0xFF, granules * kGranuleBytes);
    writeGuard(keptBegin_ + granules);
    guardedKept_.push_back({keptBegin_, granules});
  }
  return keptBegin_;
}

void RowSpace::forgetKept() {
  poison(address(keptBegin_), (capacity_ - keptBegin_) * kGranuleBytes);
  keptBegin_ = capacity_;
  guardedKept_.clear();
  updateLimit();
}

void RowSpace::releaseKept() {
  forgetKept();
  space_.release(keptTouched_ * kGranuleBytes, capacity_ * kGranuleBytes);
  keptTouched_ = capacity_;
}

std::vector<RowSpace::Damage> RowSpace::damagedGuards() const {
  std::vector<Damage> result;
  uint8_t expected[kGranuleBytes];
  memset(expected, kGuardByte, sizeof expected);
  auto check = [&](uint64_t id, uint64_t granules) {
    uint8_t *guard = address(id + granules);
    unpoison(guard, kGranuleBytes);
    if (memcmp(guard, expected, sizeof expected) != 0)
      result.push_back({id, granules});
    poison(guard, kGranuleBytes);
  };
  if (guards_)
    check(0, first_ - 1);
  for (const std::vector<Damage> *some : {&guarded_, &guardedKept_})
    for (const Damage &allocation : *some)
      check(allocation.id, allocation.granules);
  return result;
}

void RowSpace::reset() {
  account();
  touched_ = std::max(touched_, next_);
  recentPeak_ = std::max(used(), recentPeak_ - recentPeak_ / 8);
  uint64_t keep = first_ + 4 * recentPeak_ + kReleaseSlack;
  if (touched_ > keep) {
    space_.release(keep * kGranuleBytes, touched_ * kGranuleBytes);
    touched_ = keep;
  }
  if (kPoisoning)
    poison(address(first_),
           (std::min(next_, poisonEnd_) - std::min(first_, poisonEnd_)) * kGranuleBytes);
  next_ = first_;
  guarded_.clear();
  account();
  updateLimit();
}

} // namespace sheaf::rt

#include "runtime/memory/rows.h"

#include "runtime/memory/sanitizer.h"

#include <cstring>
#include <utility>

namespace sheaf::rt {

namespace {
constexpr uint8_t kGuardByte = 0xA5;
constexpr uint64_t kReleaseSlack = (uint64_t(64) << 20) / kGranuleBytes;
/// In granules: no hole is made of less.
constexpr uint64_t kLeastHole = 4;
constexpr uint64_t kPoisonBlock = (uint64_t(1) << 20) / kGranuleBytes;
} // namespace

RowSpace::RowSpace(uint32_t paramGranules, RowMemory &memory, MemoryMeter &meter, MemoryKind &count,
                   bool guards)
    : memory_(memory), host_(memory.host()), meter_(meter), count_(count), first_(paramGranules),
      next_(first_), begin_(first_), end_(first_), tail_(first_), touched_(first_),
      poisonEnd_(first_), guards_(guards), checked_(guards || kPoisoning) {
  capacity_ = keptBegin_ = keptTouched_ = memory.capacity();
  // The guard of the parameters.
  if (guards_) {
    first_ = next_ = begin_ = end_ = tail_ = touched_ = std::min<uint64_t>(first_ + 1, capacity_);
    writeGuard(paramGranules);
  }
  meter_.attach(this);
  updateLimit();
}

void RowSpace::updateLimit() {
  uint64_t others = meter_.usedBesideRows();
  uint64_t bytes = meter_.limit() > others ? meter_.limit() - others : 0;
  endLimit_ = std::max(next(), std::min(keptBegin_, first_ + bare_ + bytes / kGranuleBytes));
  if (hole_ == holes_.size())
    limit_ = endLimit_;
  // Pages that earlier mini-batches touched wait for later ones, as long as nothing else has taken
  // what the budget has for them.
  uint64_t pageGranules = pageBytes() / kGranuleBytes;
  uint64_t keep = (endLimit_ + pageGranules - 1) / pageGranules * pageGranules;
  if (touched_ > keep) {
    memory_.release({keep, touched_ - keep});
    touched_ = keep;
  }
}

void RowSpace::account() {
  count_.now = held() * kGranuleBytes;
  count_.peak = std::max(count_.peak, count_.now);
}

void RowSpace::writeGuard(uint64_t granule) {
  unpoison(address(granule), kGranuleBytes);
  memory_.fill({granule, 1}, kGuardByte);
  poison(address(granule), kGranuleBytes);
}

void RowSpace::goTo(uint64_t begin, uint64_t end) {
  handedOut_ += next_ - begin_;
  end_ = next();
  next_ = begin_ = begin;
  limit_ = end;
}

/// Where so many granules are, guard included, or kFull.
uint64_t RowSpace::take(uint64_t granules) {
  auto fits = [&] { return granules <= limit_ - next_; };
  if (!fits() && hole_ < holes_.size()) {
    // The next hole is the largest of all that are left.
    if (hole_ + 1 < holes_.size() && granules <= holes_[hole_ + 1].granules()) {
      ++hole_;
      goTo(holes_[hole_].begin, holes_[hole_].end);
    } else if (hole_ + 1 == holes_.size() && limit_ - next_ < kLeastHole) {
      ++hole_;
      goTo(end_, endLimit_);
    } else if (granules <= endLimit_ - end_) {
      end_ += granules;
      handedOut_ += granules;
      return end_ - granules;
    }
  }
  if (!fits() && !spare_.empty()) {
    holes_ = std::exchange(spare_, {});
    hole_ = 0;
    for (const Hole &hole : holes_)
      reclaimed_ += hole.granules();
    goTo(holes_[0].begin, holes_[0].end);
    return take(granules);
  }
  if (!fits())
    return kFull;
  next_ += granules;
  return next_ - granules;
}

uint64_t RowSpace::allocateSlow(int64_t granulesArg, PromisedRows *promised) {
  uint64_t granules = static_cast<uint64_t>(granulesArg);
  if (granules > kMaxGranules)
    return kFull;
  if (promised) // no plan has room for what no memory ever holds
    return granules <= endLimit_ - first_ ? promised->allocate(granules) : kFull;
  uint64_t id = take(granules + guard());
  if (id == kFull)
    return kFull;
  if (kPoisoning) {
    // Shadow memory is written block by block ahead of the rows, never for the whole reservation.
    uint64_t want = std::min(next() + kPoisonBlock, keptBegin_);
    if (poisonEnd_ < want) {
      poison(address(poisonEnd_), (want - poisonEnd_) * kGranuleBytes);
      poisonEnd_ = want;
    }
    unpoison(address(id), granules * kGranuleBytes);
  }
  if (guards_) {
    memory_.fill({id, granules}, 0xFF);
    writeGuard(id + granules);
    guarded_.push_back({id, granules});
  }
  return id;
}

uint64_t RowSpace::takeBare(uint64_t granules) {
  uint64_t page = pageBytes() / kGranuleBytes;
  setBare(bare_ + granules);
  uint64_t id = granules <= kMaxGranules
                    ? allocateSlow(static_cast<int64_t>(granules + page - 1), nullptr)
                    : kFull;
  if (id == kFull)
    setBare(bare_ - granules);
  else
    bareOut_ += granules;
  return id == kFull ? kFull : (id + page - 1) / page * page;
}

bool RowSpace::takeMemory(uint64_t granules) {
  uint64_t used = meter_.used();
  if (used > meter_.limit() || granules > (meter_.limit() - used) / kGranuleBytes)
    return false;
  setBare(bare_ - granules);
  bareOut_ -= granules; // below 0 when the addresses are older: then this is what was made
  return true;
}

void RowSpace::setBare(uint64_t granules) {
  account();
  bare_ = granules;
  updateLimit();
}

void RowSpace::giveLeaving() {
  bare_ -= std::exchange(leaving_, 0);
  bareOut_ = 0;
}

void RowSpace::reclaim(GranuleBits &live) {
  account();
  touched_ = std::max(touched_, next());
  peak_ = std::max(peak_, used());
  // A guard lives as long as any of the rows before it.
  std::erase_if(guarded_, [&](const Damage &allocation) {
    uint64_t end = allocation.id + allocation.granules;
    if (!live.any(allocation.id - first_, end - first_))
      return true;
    live.set(end - first_, end - first_ + 1);
    return false;
  });
  holes_.clear();
  reclaimed_ = 0;
  uint64_t at = 0, end = 0;
  while (at < live.size()) {
    uint64_t begin = live.next(at, false);
    if (begin > at)
      end = begin;
    at = live.next(begin, true);
    if (guards_) { // whoever reads them shall notice
      unpoison(address(first_ + begin), (at - begin) * kGranuleBytes);
      memory_.fill({first_ + begin, at - begin}, 0xFF);
    }
    poison(address(first_ + begin), (at - begin) * kGranuleBytes);
    if (at < live.size() && at - begin >= kLeastHole) {
      holes_.push_back({first_ + begin, first_ + at});
      reclaimed_ += at - begin;
    }
  }
  std::sort(holes_.begin(), holes_.end(), [](const Hole &a, const Hole &b) {
    return a.granules() != b.granules() ? a.granules() > b.granules() : a.begin < b.begin;
  });
  begin_ = next_ = end_ = tail_ = first_ + end;
  handedOut_ = 0;
  giveLeaving();
  hole_ = holes_.size();
  updateLimit();
  if (!holes_.empty()) {
    hole_ = 0;
    goTo(holes_[0].begin, holes_[0].end);
  }
  account();
}

void RowSpace::promise(PromisedRows *promised) {
  promised_ = promised;
  checked_ = guards_ || kPoisoning || promised;
}

void RowSpace::giveBackLast(uint64_t id, uint64_t granules) {
  account();
  touched_ = std::max(touched_, next());
  peak_ = std::max(peak_, used());
  poison(address(id), granules * kGranuleBytes);
  if (guards_)
    guarded_.pop_back();
  uint64_t end = id + granules + guard();
  if (next_ == end) {
    next_ = id;
  } else if (end_ == end) { // beside the hole that is being filled
    end_ = id;
    handedOut_ -= end - id;
  }
}

uint64_t RowSpace::keep(int64_t granulesArg) {
  uint64_t granules = static_cast<uint64_t>(granulesArg);
  uint64_t left = keptBegin_ - next();
  if (left < guard() || granules > left - guard())
    return kFull;
  keptBegin_ -= granules + guard();
  keptTouched_ = std::min(keptTouched_, keptBegin_);
  touched_ = std::min(touched_, keptBegin_); // what is released of others ends here
  endLimit_ = std::min(endLimit_, keptBegin_);
  limit_ = std::min(limit_, keptBegin_);
  unpoison(address(keptBegin_), granules * kGranuleBytes);
  if (guards_) {
    memory_.fill({keptBegin_, granules}, 0xFF);
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
  memory_.release({keptTouched_, capacity_ - keptTouched_});
  keptTouched_ = capacity_;
}

std::vector<RowSpace::Damage> RowSpace::damagedGuards() const {
  std::vector<Damage> result;
  uint8_t expected[kGranuleBytes];
  memset(expected, kGuardByte, sizeof expected);
  auto check = [&](uint64_t id, uint64_t granules) {
    uint8_t *guard = address(id + granules);
    unpoison(guard, kGranuleBytes);
    memory_.copyOut({id + granules, 1});
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

std::vector<RowRange> RowSpace::ranges() const {
  std::vector<RowRange> ranges;
  auto add = [&](uint64_t begin, uint64_t end) {
    if (end > begin)
      ranges.push_back({begin, end - begin});
  };
  for (size_t i = 0; i < hole_; ++i)
    add(holes_[i].begin, holes_[i].end);
  if (hole_ < holes_.size())
    add(holes_[hole_].begin, next_);
  add(tail_, hole_ < holes_.size() ? end_ : next());
  return ranges;
}

void RowSpace::reset(std::span<const RowRange> stay, bool inOnePiece) {
  account();
  touched_ = std::max(touched_, next());
  recentPeak_ = std::max({used(), peak_, recentPeak_ - recentPeak_ / 8});
  peak_ = 0;
  mostOfRun_ = std::max(handedOut(), mostOfRun_ - mostOfRun_ / 8);
  // (A guard stands after all rows of its allocation, also where few of them stay.)
  uint64_t end = guards_ && !stay.empty() ? next() : first_;
  for (const RowRange &range : stay)
    end = std::max(end, range.end());
  uint64_t keep = std::max(first_ + 4 * recentPeak_ + kReleaseSlack, end);
  if (touched_ > keep) {
    memory_.release({keep, touched_ - keep});
    touched_ = keep;
  }
  if (kPoisoning)
    poison(address(end), (std::min(std::max(next(), end), poisonEnd_) - std::min(end, poisonEnd_)) *
                             kGranuleBytes);
  next_ = begin_ = end_ = tail_ = end;
  handedOut_ = reclaimed_ = 0;
  giveLeaving();
  holes_.clear();
  spare_.clear();
  hole_ = 0;
  if (stay.empty()) {
    guarded_.clear();
    account();
    updateLimit();
    return;
  }
  GranuleBits live;
  live.reset(end - first_);
  for (const RowRange &range : stay)
    live.set(range.begin - first_, range.end() - first_);
  reclaim(live);
  if (!inOnePiece)
    return;
  // As if nothing had stayed, rows lie one after the other.
  if (!holes_.empty()) {
    const Hole &hole = holes_[0];
    if (hole.granules() >= 2 * mostOfRun_) {
      goTo(hole.begin, hole.end);
      return account();
    }
  }
  spare_ = std::exchange(holes_, {});
  reclaimed_ = 0;
  next_ = begin_ = end_ = tail_ = std::min(tail_, keptBegin_);
  account();
  updateLimit();
}

} // namespace sheaf::rt

#include "runtime/walk/collector.h"

#include <algorithm>
#include <new>

namespace sheaf::rt {

namespace {

/// So many bytes of rows take far longer to compute than it takes to look what is needed, and what
/// no read depends on runs in large launches still.
constexpr uint64_t kLeast = uint64_t(4) << 20;
/// When memory is short, less; but looking must not be all that is done.
constexpr uint64_t kLeastWhenShort = uint64_t(64) << 10;
/// Bytes for each value that is looked at: where very many wait, none of these is in a cache, and
/// to look takes as long as to make a small row.
constexpr uint64_t kBytesLooked = 256;
constexpr uint64_t kBytesLookedWhenShort = 8;
/// Where it would hold others up, it may wait until so many times as much was made.
constexpr uint64_t kOverdue = 8;

} // namespace

/// The next collection is due when as many rows were handed out as are `needed` now (in granules),
/// or as much as was `looked` at, so that looking costs each row a constant, and holes suffice; and
/// as the weights have, which each launch of what no read depends on reads. Or it is due at half of
/// what memory allows. For lists and data the same holds.
void Collector::plan(uint64_t needed, uint64_t looked) {
  const RowSpace &rows = recorder_.rowSpace;
  const Heap &heap = recorder_.heap;
  uint64_t least = std::max(kLeast, model_.paramGranules * uint64_t(kGranuleBytes));
  auto due = [&](uint64_t live, uint64_t reclaimed, uint64_t times) {
    uint64_t left = rows.left() * kGranuleBytes + reclaimed;
    uint64_t most = std::max({kLeastWhenShort, looked * kBytesLookedWhenShort, left / 2});
    uint64_t enough = times * std::max({least, live, looked * kBytesLooked});
    return always_ ? 0 : std::min({enough, most, left});
  };
  uint64_t rowBytes = needed * kGranuleBytes, rowHoles = rows.reclaimed() * kGranuleBytes;
  at_ = due(rowBytes, rowHoles, 1) / kGranuleBytes;
  overdueAt_ = due(rowBytes, rowHoles, kOverdue) / kGranuleBytes;
  heapAt_ = heapOverdueAt_ = UINT64_MAX;
  if (model_.rootsHoldAll) {
    heapAt_ = due(heap.live(), heap.reclaimed(), 1);
    heapOverdueAt_ = due(heap.live(), heap.reclaimed(), kOverdue);
  }
}

bool Collector::mark(const std::function<void(LiveValues &)> &addResults) {
  try {
    live_.begin(recorder_.rowSpace, model_.rootsHoldAll ? &recorder_.heap : nullptr);
    recorder_.tasks.forEachWaiting([&](const Task &task) {
      live_.keep(task);
      live_.add(task.roots);
    });
    addResults(live_);
  } catch (const std::bad_alloc &) {
    live_.end();
    plan(recorder_.rowSpace.used(), live_.looked());
    heapAt_ = std::max(heapAt_, 2 * recorder_.heap.handedOut());
    heapOverdueAt_ = std::max(heapOverdueAt_, heapAt_);
    return false;
  }
  return true;
}

void Collector::giveBack(Schedule &schedule, Scheduler &scheduler, Policy policy) {
  recorder_.buckets.reset(schedule, /*goesOn=*/true);
  recorder_.known.forgetSeen();
  if (recorder_.known.gaveWay() && !live_.meetsKept())
    recorder_.known.forgetKept();
  recorder_.grown.keep(live_.bits());
  recorder_.rowSpace.reclaim(live_.bits());
  if (model_.rootsHoldAll)
    recorder_.heap.reclaim();
  scheduler.beginRun(recorder_.rowSpace);
  const GranuleBits &bits = live_.bits();
  uint64_t needed = 0;
  for (uint64_t at = bits.next(0, true); at < bits.size();) {
    uint64_t end = bits.next(at, false);
    needed += end - at;
    // What stays was made by none of the records to come; only other policies ask.
    if (reorders(policy))
      scheduler.addInputs(recorder_.rowSpace.first() + at);
    at = bits.next(end, true);
  }
  live_.end();
  // What rows have in common is needed once.
  plan(needed - std::min(needed, recorder_.rowSpace.bare()), live_.looked());
}

} // namespace sheaf::rt

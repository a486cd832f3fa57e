#include "runtime/collector.h"

#include <algorithm>
#include <new>

namespace sheaf::rt {

namespace {

/// In granules: so many rows take far longer to compute than it takes to look what is needed, and
/// what no read depends on runs in large launches still.
constexpr uint64_t kLeast = (uint64_t(4) << 20) / kGranuleBytes;
/// When memory is short, less; but looking must not be all that is done.
constexpr uint64_t kLeastWhenShort = (uint64_t(64) << 10) / kGranuleBytes;
/// Of lists and data, for each value that is looked at.
constexpr uint64_t kHeapBytesLooked = 64;

} // namespace

/// The next collection is due when as many granules were handed out as are `needed` now, or as much
/// as was `looked` at, so that looking costs each row a constant, and holes suffice; and as the
/// weights have, which each launch of what no read depends on reads. Or it is due at half of what
/// memory allows. For lists and data the same holds, in bytes.
void Collector::plan(uint64_t needed, uint64_t looked) {
  const RowSpace &rows = recorder_.rowSpace;
  const Heap &heap = recorder_.heap;
  uint64_t most = std::max({kLeastWhenShort, looked / 8, (rows.left() + rows.reclaimed()) / 2});
  uint64_t wanted = std::max({kLeast, needed, looked, static_cast<uint64_t>(model_.paramGranules)});
  at_ = always_ ? 0 : std::min(wanted, most);
  most = std::max({kLeastWhenShort * kGranuleBytes, looked * kHeapBytesLooked / 8,
                   (rows.left() * kGranuleBytes + heap.reclaimed()) / 2});
  wanted = std::max({kLeast * kGranuleBytes, heap.live(), looked * kHeapBytesLooked,
                     model_.paramGranules * uint64_t(kGranuleBytes)});
  heapAt_ = !model_.rootsHoldAll ? UINT64_MAX : always_ ? 0 : std::min(wanted, most);
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
    return false;
  }
  return true;
}

void Collector::giveBack(Schedule &schedule, Scheduler &scheduler, Policy policy) {
  recorder_.buckets.reset(schedule, /*goesOn=*/true);
  recorder_.known.forgetSeen();
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
    if (policy != Policy::Depth)
      scheduler.addInputs(recorder_.rowSpace.first() + at);
    at = bits.next(end, true);
  }
  live_.end();
  plan(needed, live_.looked());
}

} // namespace sheaf::rt

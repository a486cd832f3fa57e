//===- collector.h - What is given back in a run ---------------*- C++ -*-===//
//
// When to look for what is still needed, and how the rest is given back: docs/design/memory.md.
// What is needed, LiveValues finds (live_values.h).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_COLLECTOR_H
#define SHEAF_RUNTIME_WALK_COLLECTOR_H

#include "runtime/schedule/policy.h"
#include "runtime/walk/live_values.h"
#include "runtime/walk/recorder.h"

#include <functional>

namespace sheaf::rt {

class Collector {
public:
  /// `always`: at every wait (the hostile setting). All arguments must outlive it.
  Collector(const Model &model, const TypeFacts &facts, Recorder &recorder, MemoryMeter &meter,
            MemoryKind &count, bool always)
      : model_(model), recorder_(recorder), always_(always), live_(model, facts, meter, count) {}

  /// A mini-batch begins.
  void beginRun() { plan(0, 0); }
  /// Whether so much was made since that it is time to look; `promised` granules had places for a
  /// while, but their records are there still.
  bool isDue(uint64_t promised = 0) const {
    return recorder_.rowSpace.made() + promised >= at_ || recorder_.heap.handedOut() >= heapAt_;
  }
  /// Whether so much was made that whoever is at work stops for it: several times as much, as far
  /// as memory allows.
  bool isOverdue() const {
    return recorder_.rowSpace.made() >= overdueAt_ || recorder_.heap.handedOut() >= heapOverdueAt_;
  }

  /// Marks what is needed: by all that wait, and what `addResults` adds. All that is recorded has
  /// run. False when there is no memory to look; nothing is given back then.
  bool mark(const std::function<void(LiveValues &)> &addResults);
  /// Gives back all records, which `schedule` shows, and all rows, lists and data that are not
  /// marked. `scheduler` is told of the rows that are if the `policy` asks for it.
  void giveBack(Schedule &schedule, Scheduler &scheduler, Policy policy);

private:
  void plan(uint64_t needed, uint64_t looked);

  const Model &model_;
  Recorder &recorder_;
  bool always_;
  LiveValues live_;
  uint64_t at_ = 0;     ///< granules handed out: then it is time
  uint64_t heapAt_ = 0; ///< or so many bytes of lists and data
  uint64_t overdueAt_ = 0, heapOverdueAt_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_COLLECTOR_H

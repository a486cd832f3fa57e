//===- row_observer.h - Who is told what rows are held ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_ROW_OBSERVER_H
#define SHEAF_RUNTIME_SCHEDULE_ROW_OBSERVER_H

#include "runtime/schedule/schedule.h"

#include <span>

namespace sheaf::rt {

class RowPlan;

/// Told by a session before each flush runs, and when rows were given back. All numbers are of
/// granules, without what is kept from one mini-batch to the next.
class RowObserver {
public:
  virtual ~RowObserver() = default;
  /// A mini-batch begins, or begins again: nothing is held.
  virtual void begun() = 0;
  /// The rows of these launches have places by this plan, beside `others`.
  virtual void planned(std::span<const ScheduledBucket> launches, const RowPlan &plan,
                       uint64_t others) = 0;
  /// Each of these records has rows of its own, from `keptBegin` on those that are kept; with all
  /// others that are not, so many are held.
  virtual void recorded(std::span<const ScheduledBucket> launches, uint64_t held,
                        uint64_t keptBegin) = 0;
  /// Of all that was held, so many are left.
  virtual void collected(uint64_t held) = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_ROW_OBSERVER_H

//===- launch_counts.h - What launches add to counters ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_DEVICE_LAUNCH_COUNTS_H
#define SHEAF_RUNTIME_DEVICE_LAUNCH_COUNTS_H

#include "runtime/measure/counters.h"
#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <bit>

namespace sheaf::rt {

/// Counts launches of one sequence; the sums are there when it ends its life.
class LaunchCounts {
public:
  explicit LaunchCounts(Counters &counters) : counters_(counters) {}
  ~LaunchCounts() {
    counters_.records += records_;
    counters_.launches += launches_;
    counters_.flop += flop_;
  }
  LaunchCounts(const LaunchCounts &) = delete;

  /// `flop`: KernelDesc::flop of all its records.
  void add(const ScheduledBucket &bucket, double flop) {
    auto records = static_cast<uint64_t>(bucket.count);
    KernelCounters &kernel = counters_.kernels[bucket.kernel];
    kernel.records += records;
    kernel.launches += 1;
    kernel.maxRecords = std::max(kernel.maxRecords, records);
    kernel.flop += flop;
    records_ += records;
    ++launches_;
    flop_ += flop;
    auto &sizes = counters_.launchSizes;
    ++sizes[std::min<size_t>(static_cast<size_t>(std::bit_width(records | 1)), sizes.size()) - 1];
  }

private:
  Counters &counters_;
  uint64_t records_ = 0, launches_ = 0;
  double flop_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_LAUNCH_COUNTS_H

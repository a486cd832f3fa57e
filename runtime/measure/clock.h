//===- clock.h - The clock of counters and traces ---------------*- C++ -*-===//
//
// Read once a launch and once a stretch of recording, always: what it costs is what counting costs.
// Where Linux itself keeps time by the processor's time stamp counter, that is read here without
// the ordering and the scaling of clock_gettime, at about half the price (bench/counting.py).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEASURE_CLOCK_H
#define SHEAF_RUNTIME_MEASURE_CLOCK_H

#include <chrono>
#include <cstdint>

namespace sheaf::rt {

/// How ticks of the time stamp counter become nanoseconds.
struct TickScale {
  uint64_t first = 0; ///< tick 0 of ours
  /// Nanoseconds a tick, times 2^32. 0: the counter does not serve, the system's clock does.
  uint64_t nanoseconds = 0;
};

/// Measures the scale against the system's clock, which takes kCalibrationNs.
TickScale measureTickScale();
inline constexpr uint64_t kCalibrationNs = 50'000;

/// The scale of this machine, measured at the first call: one from then on, so that times compare.
inline const TickScale &tickScale() {
  static const TickScale scale = measureTickScale();
  return scale;
}

/// Nanoseconds of a steady clock that starts anywhere. Two threads' times compare. Not an ordering
/// of memory: a few instructions around it may have run on the other side.
inline uint64_t clockNow() {
#ifdef __x86_64__
  if (const TickScale &scale = tickScale(); scale.nanoseconds != 0) [[likely]]
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(__builtin_ia32_rdtsc() - scale.first) *
         scale.nanoseconds) >>
        32);
#endif
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEASURE_CLOCK_H

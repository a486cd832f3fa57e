//===- Timing.h - What benchmarks share -------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_MEASURE_TIMING_H
#define SHEAF_COMPILER_MEASURE_TIMING_H

#include <sched.h>

#include <cstdint>
#include <vector>

namespace sheaf::driver {

/// Of a clock that only goes forward.
double seconds();
/// Processor time of this process, of all its threads.
double processorSeconds();

/// Of at least one value; the mean of the two in the middle when there are two.
double median(std::vector<double> values);
/// Of at least one value: the one below which so large a share of the others is, from 0 to 1.
double quantile(std::vector<double> values, double share);

/// How much longer one thing takes than another, by repetitions of both in turn.
struct Ratio {
  double median = 0;
  double low = 0, high = 0; ///< of the median: 95 %
  int64_t pairs = 0;
};

/// Of the ratios of at least one pair.
Ratio ratioOf(std::vector<double> ratios);

/// Keeps the calling thread on the core it runs on, as long as it lives.
class Pin {
public:
  Pin();
  ~Pin();
  Pin(const Pin &) = delete;
  Pin &operator=(const Pin &) = delete;

private:
  cpu_set_t before_;
  bool pinned_;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_MEASURE_TIMING_H

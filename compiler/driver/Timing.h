//===- Timing.h - What benchmarks share -------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_TIMING_H
#define SHEAF_COMPILER_DRIVER_TIMING_H

#include <sched.h>

#include <vector>

namespace sheaf::driver {

/// Of a clock that only goes forward.
double seconds();

/// Of at least one value; the mean of the two in the middle when there are two.
double median(std::vector<double> values);

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

#endif // SHEAF_COMPILER_DRIVER_TIMING_H

//===- Timing.cpp - What benchmarks share ---------------------------------===//
#include "compiler/driver/Timing.h"

#include "runtime/clock.h"

#include <algorithm>

namespace sheaf::driver {

double seconds() { return static_cast<double>(rt::clockNow()) * 1e-9; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Pin::Pin() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  pinned_ = sched_getaffinity(0, sizeof before_, &before_) == 0 &&
            sched_setaffinity(0, sizeof one, &one) == 0;
}

Pin::~Pin() {
  if (pinned_)
    sched_setaffinity(0, sizeof before_, &before_);
}

} // namespace sheaf::driver

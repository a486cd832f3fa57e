//===- Timing.cpp - What benchmarks share ---------------------------------===//
#include "compiler/measure/Timing.h"

#include "runtime/measure/clock.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace sheaf::driver {

double seconds() { return static_cast<double>(rt::clockNow()) * 1e-9; }

double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Ratio ratioOf(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  // The median's interval by order: half a normal deviate of the binomial distribution either way.
  double n = static_cast<double>(ratios.size()), reach = 0.98 * std::sqrt(n);
  auto at = [&](double place) {
    return ratios[static_cast<size_t>(std::clamp(place, 0.0, n - 1))];
  };
  return {median(ratios), at(n / 2 - reach), at(n / 2 + reach),
          static_cast<int64_t>(ratios.size())};
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

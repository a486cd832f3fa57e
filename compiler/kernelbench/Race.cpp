//===- Race.cpp - Times candidates in turn --------------------------------===//
#include "compiler/kernelbench/Race.h"

#include "compiler/driver/Timing.h"

#include <algorithm>

namespace sheaf::kernelbench {

using driver::seconds;

size_t Race::add(std::function<void()> run) {
  run();
  double start = seconds();
  run();
  double once = std::max(seconds() - start, 1e-8);
  candidates_.push_back({std::move(run), std::max(1, static_cast<int>(0.5e-3 / once)), 1e9});
  return candidates_.size() - 1;
}

void Race::run() {
  for (int64_t i = 0; i < rounds_; ++i)
    for (Candidate &candidate : candidates_) {
      double start = seconds();
      for (int j = 0; j < candidate.times; ++j)
        candidate.run();
      candidate.best = std::min(candidate.best, (seconds() - start) / candidate.times);
    }
}

double runWithPeak(Race &race, driver::PeakProbe &probe) {
  double peak = 0;
  auto measure = [&] {
    for (int i = 0; i < 5; ++i)
      peak = std::max(peak, probe.measure());
  };
  measure();
  race.run();
  measure();
  return peak;
}

} // namespace sheaf::kernelbench

//===- Race.cpp - Times candidates in turn --------------------------------===//
#include "compiler/kernelbench/Race.h"

#include <algorithm>

namespace sheaf::kernelbench {

using driver::seconds;

size_t Race::add(std::function<void()> run) {
  run();
  double start = seconds();
  run();
  double once = std::max(seconds() - start, 1e-8);
  candidates_.push_back({std::move(run), std::max(1, static_cast<int>(0.5e-3 / once)), {}});
  return candidates_.size() - 1;
}

void Race::run(driver::PeakProbe *probe) {
  for (int64_t i = 0; i < rounds_; ++i) {
    if (probe)
      peak_ = std::max(peak_, probe->measure());
    for (Candidate &candidate : candidates_) {
      candidate.run();
      double start = seconds();
      for (int j = 0; j < candidate.times; ++j)
        candidate.run();
      candidate.seconds.push_back((seconds() - start) / candidate.times);
    }
  }
}

double Race::best(size_t candidate) const {
  return std::ranges::min(candidates_[candidate].seconds);
}

double Race::peak(driver::PeakProbe &probe, size_t candidate, double gflop) {
  peak_ = probe.measureUpTo(gflop / best(candidate), peak_);
  return peak_;
}

driver::Ratio Race::ratio(size_t longer, size_t shorter) const {
  std::vector<double> ratios = candidates_[longer].seconds;
  std::ranges::transform(ratios, candidates_[shorter].seconds, ratios.begin(), std::divides<>());
  return driver::ratioOf(std::move(ratios));
}

} // namespace sheaf::kernelbench

//===- Race.h - Times candidates in turn ------------------------*- C++ -*-===//
#ifndef SHEAF_KERNELBENCH_RACE_H
#define SHEAF_KERNELBENCH_RACE_H

#include "compiler/driver/Peak.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace sheaf::kernelbench {

/// Times candidates in turns of about half a millisecond; the best turn of each counts.
class Race {
public:
  explicit Race(int64_t rounds) : rounds_(rounds) {}

  /// Its number. Runs it a few times.
  size_t add(std::function<void()> run);
  void run();
  /// Seconds of one run.
  double best(size_t candidate) const { return candidates_[candidate].best; }

private:
  struct Candidate {
    std::function<void()> run;
    int times; ///< a turn
    double best;
  };
  int64_t rounds_;
  std::vector<Candidate> candidates_;
};

/// Runs the race; GFLOP/s of the best of several probes of the peak before and behind it.
double runWithPeak(Race &race, driver::PeakProbe &probe);

} // namespace sheaf::kernelbench

#endif // SHEAF_KERNELBENCH_RACE_H

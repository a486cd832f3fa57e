//===- Race.h - Times candidates in turn ------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELBENCH_RACE_H
#define SHEAF_COMPILER_KERNELBENCH_RACE_H

#include "compiler/measure/Peak.h"
#include "compiler/measure/Timing.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace sheaf::kernelbench {

/// Times candidates in turns of about half a millisecond, each after a run that does not count: the
/// others may have evicted from the caches what it reads.
class Race {
public:
  explicit Race(int64_t rounds) : rounds_(rounds) {}

  /// Its number. Runs it a few times.
  size_t add(std::function<void()> run);
  /// Takes the peak in every round, too, if there is a probe.
  void run(driver::PeakProbe *probe = nullptr);

  /// Seconds of one run, of the best turn.
  double best(size_t candidate) const;
  /// How much longer one takes than the other, by the turns of each round.
  driver::Ratio ratio(size_t longer, size_t shorter) const;
  /// The highest that was probed: GFLOP/s. It is probed again while a candidate, which computes so
  /// many GFLOP, was faster in its best turn.
  double peak(driver::PeakProbe &probe, size_t candidate, double gflop);

private:
  struct Candidate {
    std::function<void()> run;
    int times;                   ///< a turn
    std::vector<double> seconds; ///< of one run, by round
  };
  int64_t rounds_;
  std::vector<Candidate> candidates_;
  double peak_ = 0;
};

} // namespace sheaf::kernelbench

#endif // SHEAF_COMPILER_KERNELBENCH_RACE_H

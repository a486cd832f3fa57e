//===- slices.h - How much of a flush runs at a time ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_SLICES_H
#define SHEAF_RUNTIME_SESSION_SLICES_H

#include "runtime/measure/counters.h"
#include "runtime/model/model.h"
#include "runtime/schedule/schedule.h"

namespace sheaf::rt {

/// Cuts what is pending into slices that take about so long, by what records of the same kernels
/// took before: of a launch the reading of its weights, and then so much for each unit of work. A
/// launch is cut between two records: no result depends on it.
class Slices {
public:
  /// `tiny`: a launch a slice, and of it a few records (the hostile setting).
  Slices(const Model &model, uint64_t nanoseconds, bool tiny);

  /// The next slice begins. `counters`: as they are.
  void begin(const Counters &counters);
  /// Whether it takes anything more.
  bool hasRoom() const { return isEmpty_ || (!tiny_ && left_ > 0); }
  /// How many of the launch's records, from the first on, it has room for; 0: it is full. Any slice
  /// has a record, and a launch that is cut takes twice as long at least as reading its weights.
  int64_t take(const ScheduledBucket &launch);
  /// What was taken has run, in so many nanoseconds by the clock.
  void end(const Counters &counters, uint64_t nanoseconds);

private:
  struct Kernel {
    double weights; ///< nanoseconds that reading them takes
    double nanosecondsPerWork = kFirstGuess;
    bool isMeasured = false;
    double work = 0; ///< in this slice
    uint64_t launches = 0;
    uint64_t before = 0; ///< KernelCounters::nanoseconds when it began
  };
  /// So many FLOP take as long as what is not counted of a record.
  static constexpr double kWorkOfRecord = 1000;
  /// 10 GFLOP/s: less than any core has, for a slice too long delays others.
  static constexpr double kFirstGuess = 0.1;
  /// What is over beside weights is never less than at 1 TFLOP/s.
  static constexpr double kLeast = 0.001;
  static constexpr double kNanosecondsPerByte = 0.1;
  static constexpr int64_t kTiny = 16;

  const Model &model_;
  double nanoseconds_;
  bool tiny_;
  double left_ = 0; ///< nanoseconds
  bool isEmpty_ = true;
  std::vector<Kernel> kernels_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_SLICES_H

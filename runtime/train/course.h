//===- course.h - What a training has come to -------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_COURSE_H
#define SHEAF_RUNTIME_TRAIN_COURSE_H

#include "runtime/train/trainer.h"

#include <cstdint>
#include <optional>

namespace sheaf::rt {

/// What a training remembers from step to step beside weights and the optimiser's state, and what
/// follows from it. Resumed with these numbers it goes on as if nothing had happened.
struct Course {
  int64_t steps = 0;               ///< made
  int64_t changes = 0;             ///< of these, those that changed a parameter
  std::optional<double> firstLoss; ///< of the first step that had one that is finite
  std::optional<double> best;      ///< the greatest measure of an epoch
  int64_t epochsSinceBest = 0;
  std::optional<double> measure; ///< of the epoch that ended with the last step
  // Of the epoch that runs, or waits to be measured.
  double lossSum = 0;
  int64_t instances = 0;
  int64_t skipped = 0;      ///< steps
  int64_t epochChanges = 0; ///< steps
  bool unmeasured = false;  ///< all its steps are made, but it was not measured

  void add(const TrainingStep &step);

  /// The mean over the instances of the epoch that did not fail; of none: nothing.
  std::optional<double> loss() const;

  /// Whether the epoch's loss is not finite, or so much greater than in the first step that the
  /// training can be taken to run away.
  bool diverges() const;

  /// Ends the epoch with what it is measured by, the greater the better; nothing where there is no
  /// such number. Returns whether it is the best so far.
  bool endEpoch(std::optional<double> value);
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_COURSE_H

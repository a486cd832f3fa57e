//===- average.h - The mean of parameters over steps ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_AVERAGE_H
#define SHEAF_RUNTIME_TRAIN_AVERAGE_H

#include "runtime/session/session.h"

namespace sheaf::rt {

/// An exponential moving average of a session's f32 parameters. The first update takes them as they
/// are; update t makes d * average + (1 - d) * parameter of it, with d = min(decay, t / (t + 9)),
/// so that the first steps are soon forgotten.
class WeightAverage {
public:
  /// `decay`: from 0 to less than 1.
  WeightAverage(const Session &session, double decay);

  /// After a step that changed parameters.
  void update();

  /// What stands for a parameter: its average, or itself when it has none.
  TensorView param(size_t index) const;

  int64_t updates() const { return updates_; }
  void setUpdates(int64_t updates) { updates_ = updates; }
  /// The average in row layout; null for parameters that have none. Zero until the first update.
  uint8_t *row(size_t index) { return averages_[index].get(); }

private:
  const Session &session_;
  double decay_;
  int64_t updates_ = 0;
  std::vector<AlignedBytes> averages_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_AVERAGE_H

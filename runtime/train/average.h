//===- average.h - The mean of parameters over steps ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_AVERAGE_H
#define SHEAF_RUNTIME_TRAIN_AVERAGE_H

#include "runtime/session/session.h"

#include <functional>
#include <span>
#include <vector>

namespace sheaf::rt {

/// An exponential moving average of a session's f32 parameters. The first update takes them as they
/// are; update t makes d * average + (1 - d) * parameter of it, with d = min(decay, t / (t + 9)),
/// so that the first steps are soon forgotten.
class WeightAverage {
public:
  /// `decay`: from 0 to less than 1.
  WeightAverage(Session &session, double decay);
  ~WeightAverage();
  WeightAverage(const WeightAverage &) = delete;

  /// After a step that changed parameters.
  void update();

  /// What stands for a parameter: its average, or itself when it has none.
  TensorView param(size_t index) const;

  int64_t updates() const { return updates_; }
  void setUpdates(int64_t updates) { updates_ = updates; }
  /// The average in row layout, as it is now; empty for parameters that have none. Zero until the
  /// first update.
  std::span<const uint8_t> state(size_t index) const;
  /// Calls `write` with it; false for those that have none.
  bool setState(size_t index, const std::function<void(uint8_t *)> &write);

private:
  Session &session_;
  double decay_;
  int64_t updates_ = 0;
  std::vector<uint32_t> averages_; ///< buffers of the device; 0: none
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_AVERAGE_H

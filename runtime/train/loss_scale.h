//===- loss_scale.h - Gradients kept within 16-bit floats -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_LOSS_SCALE_H
#define SHEAF_RUNTIME_TRAIN_LOSS_SCALE_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sheaf::rt {

/// What losses are multiplied with before the backward pass, and gradients divided by after: small
/// gradients then do not vanish in f16 rows (Micikevicius and others 2018). Dynamic: halved when a
/// gradient overflows, which skips the step, and doubled after `kPatience` steps without. Powers of
/// two, so that f32 gradients keep their bits.
class LossScale {
public:
  static constexpr double kFirst = 65536, kMost = 16777216;
  static constexpr int64_t kPatience = 2000;

  /// A fixed scale.
  explicit LossScale(double scale) : scale_(scale) {}
  static LossScale dynamic() {
    LossScale scale(kFirst);
    scale.dynamic_ = true;
    return scale;
  }

  double scale() const { return scale_; }
  bool isDynamic() const { return dynamic_; }
  /// After a step.
  void update(bool overflowed) {
    if (!dynamic_)
      return;
    steps_ = overflowed ? 0 : steps_ + 1;
    if (overflowed)
      scale_ = std::max(scale_ / 2, 1.0);
    else if (steps_ == kPatience) {
      scale_ = std::min(scale_ * 2, kMost);
      steps_ = 0;
    }
  }

  /// Steps since the scale was changed: with it, what a checkpoint needs.
  int64_t steps() const { return steps_; }
  void restore(double scale, int64_t steps) { scale_ = scale, steps_ = steps; }

private:
  double scale_;
  int64_t steps_ = 0;
  bool dynamic_ = false;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_LOSS_SCALE_H

#include "runtime/train/course.h"

#include <algorithm>
#include <cmath>

namespace sheaf::rt {

void Course::add(const TrainingStep &step) {
  steps = step.number + 1;
  lossSum += step.loss * static_cast<double>(step.instances);
  instances += step.instances;
  skipped += step.skipped;
  changes += step.changed;
  epochChanges += step.changed;
  measure.reset();
  if (!firstLoss && step.instances > 0 && std::isfinite(step.loss))
    firstLoss = step.loss;
}

std::optional<double> Course::loss() const {
  return instances > 0 ? std::optional(lossSum / static_cast<double>(instances)) : std::nullopt;
}

bool Course::diverges() const {
  std::optional<double> now = loss();
  if (!now)
    return false;
  // Of a loss near 0 a multiple means nothing.
  constexpr double times = 10;
  return !std::isfinite(*now) ||
         (firstLoss && *now - *firstLoss > times * std::max(std::fabs(*firstLoss), 1.0));
}

bool Course::endEpoch(std::optional<double> value) {
  lossSum = 0;
  instances = skipped = epochChanges = 0;
  unmeasured = false;
  measure = value && std::isfinite(*value) ? value : std::nullopt;
  bool isBest = measure && (!best || *measure > *best);
  if (isBest)
    best = measure;
  epochsSinceBest = isBest ? 0 : epochsSinceBest + 1;
  return isBest;
}

} // namespace sheaf::rt

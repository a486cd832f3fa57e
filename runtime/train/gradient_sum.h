//===- gradient_sum.h - Gradients of several mini-batches -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H
#define SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

#include "runtime/backward/param_gradient.h"
#include "runtime/model/layout.h"
#include "runtime/model/value.h"

#include <span>

namespace sheaf::rt {

struct Model;

/// Adds up the gradients of mini-batches that make one step, in their order. They outlive the runs
/// that they come from.
class GradientSum {
public:
  explicit GradientSum(const Model &model);

  void add(std::span<const ParamGradient> gradients);
  std::span<const ParamGradient> gradients() const { return sums_; }
  /// Begins anew.
  void clear();

private:
  const Model &model_;
  std::vector<ParamGradient> sums_;
  std::vector<AlignedBytes> bytes_; ///< by parameter; zero where its sum holds nothing
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

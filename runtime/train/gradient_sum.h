//===- gradient_sum.h - Gradients of several mini-batches -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H
#define SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

#include "runtime/backward/param_gradient.h"
#include "runtime/model/layout.h"
#include "runtime/model/value.h"

#include <span>
#include <vector>

namespace sheaf::rt {

class Device;
struct Model;

/// Adds up the gradients of mini-batches that make one step, in their order. They outlive the runs
/// that they come from.
class GradientSum {
public:
  /// On the host.
  explicit GradientSum(const Model &model);
  /// In memory of a device, which must outlive it and adds them.
  GradientSum(const Model &model, Device &device);
  ~GradientSum();
  GradientSum(const GradientSum &) = delete;

  void add(std::span<const ParamGradient> gradients);
  /// Of a device without values on the host (ParamGradient::data); show() brings them.
  std::span<const ParamGradient> gradients() const { return sums_; }
  void show();
  /// Begins anew.
  void clear();

private:
  void make(size_t param);
  void submit(std::span<const ParamGradient> gradients, bool adds);

  const Model &model_;
  Device *device_ = nullptr;
  std::vector<ParamGradient> sums_;
  std::vector<AlignedBytes> bytes_; ///< by parameter; zero where its sum holds nothing
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

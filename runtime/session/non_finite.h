//===- non_finite.h - Where NaN and infinity come from ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_NON_FINITE_H
#define SHEAF_RUNTIME_SESSION_NON_FINITE_H

#include "runtime/model/members.h"
#include "runtime/model/model.h"
#include "runtime/model/value.h"
#include "runtime/schedule/schedule.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::rt {

/// "NaN", "infinity" or "-infinity".
std::string nonFiniteName(double value);

/// A record's result that is not finite.
struct NonFinite {
  uint32_t kernel = 0;
  double value = 0;
};

/// The first record of a schedule with a result that is not finite. `rows`: granule 0. With
/// `among` only of the results whose bits are set: one for each result of each record, in the order
/// of the schedule.
std::optional<NonFinite> firstNonFinite(const Model &model, const Schedule &schedule,
                                        const uint8_t *rows,
                                        const std::vector<bool> *among = nullptr);

/// Looks through results of any type, iteratively.
class NonFiniteSearch {
public:
  /// Finds the tensor of type `type` that stands in `slots`: Session::tensor.
  using TensorAccess = std::function<TensorView(uint32_t type, const Slot *slots)>;

  /// `types` must outlive this.
  NonFiniteSearch(const TypeTable &types, TensorAccess tensors);

  struct Found {
    double value = 0;
    std::optional<TensorHandle> tensor; ///< that holds it; none: a float
    uint64_t granules = 0;              ///< of the tensor
  };
  /// The first number in a value that is not finite, in the order in which it is written.
  std::optional<Found> find(uint32_t type, const Slot *slots);

private:
  std::optional<Found> look(uint32_t type, const Slot *slots);

  const TypeTable &types_;
  TensorAccess tensors_;
  std::vector<int64_t> slots_; ///< by type
  std::vector<bool> holds_;    ///< by type: whether values have floats
  std::vector<Members> open_;  ///< still to be looked at
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_NON_FINITE_H

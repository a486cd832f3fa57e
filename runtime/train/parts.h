//===- parts.h - How the instances of a step are divided --------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_PARTS_H
#define SHEAF_RUNTIME_TRAIN_PARTS_H

#include "runtime/model/layout.h"

#include <span>
#include <vector>

namespace sheaf::rt {

/// What instances cost, by their data alone: the values inside their arguments, so many as words
/// or nodes, and 16 elements of a tensor like a value. Never measured, so that the same data are
/// divided alike everywhere.
class InstanceCosts {
public:
  /// Of instances whose arguments have these types.
  InstanceCosts(const TypeTable &types, std::span<const uint32_t> argTypes);

  /// `args`: Instance::args. At least 1. Values that hold the same ones many times over count as
  /// kMost at most.
  uint64_t of(const Slot *args) const;
  static constexpr uint64_t kMost = uint64_t(1) << 20;

private:
  const TypeTable &types_;
  std::vector<uint32_t> argTypes_;
  std::vector<int64_t> slots_; ///< by type
  std::vector<bool> isFlat_;   ///< by type: nothing inside it has to be looked at
};

/// Cuts instances with these costs, in their order, into `parts` neighbours of about the same cost:
/// part i is [result[i], result[i + 1]). `parts`: from 1 to as many as there are instances; none is
/// empty.
std::vector<size_t> cutByCost(std::span<const uint64_t> costs, size_t parts);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_PARTS_H

//===- packing.h - Which packed weights a model's kernels need --*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_PACKING_H
#define SHEAF_RUNTIME_CPU_PACKING_H

#include "runtime/cpu/kernel_code.h"

#include <optional>

namespace sheaf::rt {

/// The packed copies of a model, in order of their first use, and which copy every use of a weight
/// reads: equal uses share one. Those that only joined kernels use (KernelDesc::joined) come last.
struct PackedCopies {
  struct Copy {
    const WeightUse *use;
    int64_t depth; ///< extent of the contraction, as it is packed
    uint64_t bytes;
  };
  std::vector<Copy> copies;
  size_t always = 0;                       ///< those after are of joined kernels alone
  std::vector<std::vector<int64_t>> which; ///< [kernel][use]: index into copies, -1: raw
  std::vector<std::vector<size_t>> of;     ///< [param]: indices into copies
  std::vector<bool> isRaw;                 ///< [param]: some kernel reads its rows

  /// `model` must outlive this. Throws InternalError when a use does not fit its parameters.
  explicit PackedCopies(const Model &model);
  /// PackedBytes::onlyIn
  std::vector<size_t> onlyIn(size_t param) const;
};

/// Bytes of each packed copy but those of joined kernels alone. Throws like PackedCopies.
std::vector<uint64_t> packedSizes(const Model &model);

/// Bytes of the packed copy that a use of kind Panels asks for, if that is a number at all; about
/// those that a library takes.
std::optional<uint64_t> packedBytes(const WeightUse &use);

/// Panels of a use (kernel_code.h, WeightUse).
int64_t panelCount(const WeightUse &use);

/// Columns of a panel of factors: as many as registers can hold sums of.
constexpr int64_t kMostPackedBlock = 512;

/// `n`, or what is next above it that is a multiple of `multiple`.
inline int64_t alignUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_PACKING_H

//===- weights.h - Parameters in the form kernels read ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_WEIGHTS_H
#define SHEAF_RUNTIME_CPU_WEIGHTS_H

#include "runtime/cpu/kernel_code.h"
#include "runtime/memory/memory.h"
#include "runtime/model/value.h"

#include <memory>
#include <optional>
#include <span>

namespace sheaf::rt {

/// Rows of a parameter as a matrix: leading axes and rows together.
struct MatrixRows {
  std::optional<size_t> param; ///< none: all rows of all parameters
  int64_t begin = 0, end = 0;
};

/// The weight uses of all kernels of a model. Equal uses share one packed copy. What only kernels
/// with KernelDesc::joined use is not made before it is asked for.
class PackedWeights {
public:
  /// `rows`: granule 0. Throws InternalError when a use does not fit its parameters.
  PackedWeights(const Model &model, uint8_t *rows, MemoryMeter &meter, MemoryKind &count);
  ~PackedWeights();

  /// Reads the parameters and writes every packed copy. The first time it allocates them; throws
  /// UserError when the memory limit forbids it.
  void pack();
  /// Makes the copies that joined kernels use, which pack() and packRows() then keep. False when
  /// the memory limit forbids it.
  bool packJoined();

  /// Whether packRows() may be called: after the first pack(), which made the copies.
  bool packsRows() const;
  /// What pack() writes for these rows of a parameter.
  void packRows(size_t param, int64_t begin, int64_t end);
  /// Whether it may be called by several threads for rows of different units of so many.
  bool packsApart(size_t param, int64_t unit) const;

  /// What pack() writes of a parameter, now. Whether kernels read nothing else of it: then pack()
  /// does not read it again. Throws like pack().
  bool keep(size_t param);

  /// Instead of the first pack(): the copies are there, in the order of packedSizes() (packing.h).
  void use(std::span<const std::span<const uint8_t>> copies);

  /// In the order of CpuKernel::weights. Addresses never change after a pack(), but for products
  /// of libraries, which each pack() makes anew.
  std::span<const void *const> of(size_t kernel) const { return uses_[kernel]; }

  /// The number of the largest packed copy that a kernel reads, less than copyCount(); -1: none.
  int64_t largestCopy(size_t kernel) const;
  size_t copyCount() const { return packed_.size(); }

  /// In the order of packedSizes().
  std::vector<std::span<const uint8_t>> copies() const;

private:
  using ForeignProduct = std::unique_ptr<LibraryProduct, void (*)(LibraryProduct *)>;
  struct Packed {
    const WeightUse *use;
    int64_t depth; ///< extent of the contraction
    uint64_t size;
    AlignedBytes own;               ///< null: in a file, or not made yet
    const uint8_t *bytes = nullptr; ///< null: not made yet
    ForeignProduct foreign{nullptr, nullptr};
  };
  void packRange(Packed &packed, const MatrixRows &changed);
  void makeForeign(Packed &packed);
  void make(Packed &packed);
  void allocate(Packed &packed);
  void charge(const Packed &packed);
  void publish();

  const Model &model_;
  uint8_t *rows_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  std::vector<Packed> packed_;
  size_t always_ = 0;                         ///< those after are of joined kernels alone
  std::vector<std::vector<size_t>> copiesOf_; ///< [param]: indices into packed_
  std::vector<std::vector<size_t>> onlyIn_;   ///< [param]: PackedBytes::onlyIn
  std::vector<bool> isKept_;                  ///< [param]: its copies are what there is of it
  std::vector<std::vector<int64_t>> which_;   ///< [kernel][use]: index into packed_, -1: raw
  std::vector<std::vector<const void *>> uses_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_WEIGHTS_H

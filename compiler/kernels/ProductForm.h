//===- ProductForm.h - What a kernel's products are like --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_PRODUCTFORM_H
#define SHEAF_COMPILER_KERNELS_PRODUCTFORM_H

#include <limits>

namespace sheaf::kernels {

/// Of all products of a kernel together: why they may be far from the peak. Extents that only
/// records know are taken for as much as the estimates of work take them for.
struct ProductForm {
  /// Multiply-adds for each element that they make, on the mean; infinity: not known.
  double sumLength = std::numeric_limits<double>::infinity();
  double lanes = 1; ///< most of the lanes of their vectors that hold elements: 0 to 1
  /// Of rows and weights, for each multiply-add of a tile's vectors; 0: by the processor's tiles,
  /// or a library.
  double loads = 0;
  double unpacked = 0; ///< of the multiply-adds those whose right operand is no packed weight
  /// Of the multiply-adds those of matrices by vectors, and of vectors: they sum along rows, and
  /// load both factors of each.
  double alongRows = 0;
  /// Records that a tile takes together, where its rows are records; 0: its rows are not.
  double tileRows = 0;
};

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PRODUCTFORM_H

//===- ProductForm.h - What a kernel's products are like --------*- C++ -*-===//
#ifndef SHEAF_KERNELS_PRODUCTFORM_H
#define SHEAF_KERNELS_PRODUCTFORM_H

namespace sheaf::kernels {

/// Of all products of a kernel together: why they may be far from the peak.
struct ProductForm {
  double sumLength = 0; ///< multiply-adds for each element that they make, on the mean
  double lanes = 0;     ///< most of the lanes of their vectors that hold elements: 0 to 1
  /// Of rows and weights, for each multiply-add of a tile's vectors; 0: by the processor's tiles,
  /// or a library.
  double loads = 0;
  double unpacked = 0; ///< of the multiply-adds those whose right operand is no packed weight
};

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_PRODUCTFORM_H

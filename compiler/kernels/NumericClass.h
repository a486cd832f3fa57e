//===- NumericClass.h - Which orders of sums products may have --*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_NUMERICCLASS_H
#define SHEAF_COMPILER_KERNELS_NUMERICCLASS_H

#include <string>

namespace sheaf::kernels {

/// Which orders of sums a product may have.
enum class NumericClass {
  Exact, ///< one chain for each element, whatever else is in the batch
  Any    ///< that of whoever computes a block, for all its row counts
};

/// What one implementation said of a product.
struct Verdict {
  std::string implementation; ///< generated, oneDNN, ...
  std::string reason;         ///< why it refused, or was not asked any more; empty: it is taken
};

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_NUMERICCLASS_H

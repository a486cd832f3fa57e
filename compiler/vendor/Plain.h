//===- Plain.h - A product by a plain loop ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VENDOR_PLAIN_H
#define SHEAF_COMPILER_VENDOR_PLAIN_H

#include "runtime/model/library.h"

#include <algorithm>

namespace sheaf::vendor {

/// Where a library refuses at run time: right, and slow.
inline void plainProduct(const rt::ProductShape &shape, int64_t m, const float *a,
                         const float *weights, float *c) {
  for (int64_t row = 0; row < m; ++row) {
    float *out = c + row * shape.cStride;
    std::fill_n(out, shape.n, 0.0F);
    for (int64_t k = 0; k < shape.k; ++k)
      for (int64_t i = 0; i < shape.n; ++i)
        out[i] += a[row * shape.aStride + k] * weights[k * shape.n + i];
  }
}

} // namespace sheaf::vendor

#endif // SHEAF_COMPILER_VENDOR_PLAIN_H

//===- Loops.cpp - What kernels are compared with beside libraries --------===//
#include "compiler/kernelbench/Loops.h"

#include <algorithm>

// The loops are to run as wide as the machine is, whatever the program is compiled for.
#if defined(__x86_64__)
#define SHEAF_WIDE [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define SHEAF_WIDE
#endif

namespace sheaf::kernelbench {

// The rational approximation of Eigen and MLIR.
SHEAF_WIDE void biasTanh(int64_t m, int64_t n, const float *bias, float *c) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < n; ++i) {
      float x = c[row * n + i] + bias[i];
      x = std::min(std::max(x, -7.90531110763549805f), 7.90531110763549805f);
      float x2 = x * x;
      float p = -2.76076847742355e-16f;
      p = p * x2 + 2.00018790482477e-13f;
      p = p * x2 + -8.60467152213735e-11f;
      p = p * x2 + 5.12229709037114e-08f;
      p = p * x2 + 1.48572235717979e-05f;
      p = p * x2 + 6.37261928875436e-04f;
      p = p * x2 + 4.89352455891786e-03f;
      float q = 1.19825839466702e-06f;
      q = q * x2 + 1.18534705686654e-04f;
      q = q * x2 + 2.26843463243900e-03f;
      q = q * x2 + 4.89352518554385e-03f;
      c[row * n + i] = x * p / q;
    }
}

SHEAF_WIDE void copySum(const float *x, const float *y, float *out, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = y ? x[i] + y[i] : x[i];
}

SHEAF_WIDE float readAll(const float *data, int64_t count) {
  using Vector [[gnu::vector_size(64), gnu::aligned(4)]] = float;
  Vector sums[8] = {};
  for (int64_t i = 0; i + 128 <= count; i += 128)
#pragma unroll
    for (int64_t j = 0; j < 8; ++j)
      sums[j] += *reinterpret_cast<const Vector *>(data + i + 16 * j);
  Vector sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  float total = 0;
  for (int i = 0; i < 16; ++i)
    total += sum[i];
  return total;
}

} // namespace sheaf::kernelbench

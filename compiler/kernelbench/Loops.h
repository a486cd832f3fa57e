//===- Loops.h - What kernels are compared with beside libraries *- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELBENCH_LOOPS_H
#define SHEAF_COMPILER_KERNELBENCH_LOOPS_H

#include <cstdint>

namespace sheaf::kernelbench {

/// C = tanh(C + bias) for m rows: the epilogue of a library that has none.
void biasTanh(int64_t m, int64_t n, const float *bias, float *c);

/// out = x, or x + y where y is given.
void copySum(const float *x, const float *y, float *out, int64_t count);

/// The sum of so many floats, read at the speed of the memory that holds them.
float readAll(const float *data, int64_t count);

} // namespace sheaf::kernelbench

#endif // SHEAF_COMPILER_KERNELBENCH_LOOPS_H

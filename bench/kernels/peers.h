//===- peers.h - Products by the vendors' libraries -------------*- C++ -*-===//
#ifndef SHEAF_BENCH_KERNELS_PEERS_H
#define SHEAF_BENCH_KERNELS_PEERS_H

#include <cstdint>
#include <memory>
#include <vector>

namespace sheaf::bench {

/// C[m,n] = A[m,k] W[k,n] for one W, by a library at its best: weights in the form that it likes
/// most, one thread. All matrices are f32, row-major and contiguous.
class Peer {
public:
  virtual ~Peer() = default;
  virtual const char *name() const = 0;
  /// Chooses among the library's ways for this m; takes as long as it likes.
  virtual void prepare(int64_t m, const float *a, float *c) = 0;
  /// As last prepared.
  virtual void product(const float *a, float *c) = 0;
  /// tanh(A W + bias) in one call of the library. False: it has none.
  virtual bool prepareFused(int64_t, const float *, float *) { return false; }
  virtual void fused(const float *, float *) {}
};

/// One for each library that this program was built with.
std::vector<std::unique_ptr<Peer>> makePeers(int64_t k, int64_t n, const float *weights,
                                             const float *bias);

/// C[n,n] = A[n,n] B[n,n] for small n by libxsmm; null without it.
class SmallProduct {
public:
  virtual ~SmallProduct() = default;
  virtual void product(const float *a, const float *b, float *c) = 0;
};
std::unique_ptr<SmallProduct> makeSmallProduct(int64_t n);

/// C = tanh(C + bias) for m rows: the epilogue of a library that has none.
void biasTanh(int64_t m, int64_t n, const float *bias, float *c);

/// out = x, or x + y where y is given.
void copySum(const float *x, const float *y, float *out, int64_t count);

/// The sum of so many floats, read at the speed of the memory that holds them.
float readAll(const float *data, int64_t count);

} // namespace sheaf::bench

#endif // SHEAF_BENCH_KERNELS_PEERS_H

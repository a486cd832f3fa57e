//===- Peak.h - What one core can do at most --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_PEAK_H
#define SHEAF_COMPILER_DRIVER_PEAK_H

#include "compiler/driver/Jit.h"

#include <cstdint>
#include <memory>

namespace sheaf::driver {

/// Measures the peak of the calling core: a loop of f32 multiply-adds between registers, with the
/// widest vectors of the processor that code is made for and as many chains as hide their latency.
class PeakProbe {
public:
  /// `lanes` f32 a vector, `registers` vector registers; without `fused`, multiply then add.
  PeakProbe(const Processor &processor, int64_t lanes, int64_t registers, bool fused);

  /// One probe of about a millisecond: GFLOP/s.
  double measure();

private:
  /// Returns a number made of all chains, so that none of them is dead.
  using Loop = float (*)(int64_t iterations, float factor, float summand);

  double run(int64_t iterations);

  std::unique_ptr<Jit> jit_;
  Loop loop_ = nullptr;
  double flopPerIteration_ = 0;
  int64_t iterations_ = 0;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_PEAK_H

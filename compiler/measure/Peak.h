//===- Peak.h - What one core can do at most --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_MEASURE_PEAK_H
#define SHEAF_COMPILER_MEASURE_PEAK_H

#include "compiler/driver/Compiler.h"

#include <cstdint>
#include <memory>

namespace sheaf::driver {

/// Measures the peak of the calling core: a loop of multiply-adds between registers, with the
/// widest vectors of the processor that code is made for and as many chains as hide their latency.
/// In bf16 it is the best of what sums products of bf16 in f32: pairs, tiles, and the loop in f32.
class PeakProbe {
public:
  PeakProbe(const rt::Target &target, Precision precision);

  /// One probe of about a millisecond: GFLOP/s.
  double measure();
  /// Probes again, a few hundred times at most, while no probe has reached what was: `highest` is
  /// the best before. Gives the best.
  double measureUpTo(double reached, double highest);

private:
  /// Returns a number made of all chains, so that none of them is dead.
  using Loop = float (*)(int64_t iterations, float factor, float summand);

  struct Candidate {
    std::unique_ptr<Jit> jit;
    Loop loop = nullptr;
    double flopPerIteration = 0;
    int64_t iterations = 0; ///< of a millisecond

    double run(int64_t count) const; ///< seconds
    double measure() const;          ///< GFLOP/s
  };
  /// Links a module whose function `peak` is a Loop, and finds how long it takes.
  static Candidate makeCandidate(const rt::Target &target, CodeModule code,
                                 double flopPerIteration);

  Candidate best_;
};

/// Milliseconds in which this core copies so many bytes, half of them read and half written, over
/// and over in the same place: the best of a few.
double copyMs(double bytes);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_MEASURE_PEAK_H

//===- Conditioning.h - What a program's conditioning excuses ---*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_CONDITIONING_H
#define SHEAF_COMPILER_DRIVER_CONDITIONING_H

#include "compiler/driver/Replayed.h"

#include <memory>

namespace sheaf::driver {

/// A result by the oracle, and as compiled.
struct Results {
  oracle::Value expected, actual;
};

/// Where the oracle in f64 and a compiled program are farther apart than the tolerance: whether it
/// is the program that loses so much, in any arithmetic of its precision.
class Conditioning {
public:
  /// `maxCalls`: of an instance that has no result. The model must outlive this.
  Conditioning(const CompiledModel &model, oracle::Weights weights, uint64_t sampleSeed,
               int64_t maxCalls)
      : model_(model), weights_(std::move(weights)), sampleSeed_(sampleSeed), maxCalls_(maxCalls) {}

  /// Whether what an instance read, and the result, if there is one, are within 4 times the
  /// difference of the wide oracle to a narrow one that took the same reads. Where a distance or
  /// difference of the narrow one is infinite it tells nothing; an infinite one of the wide oracle
  /// is excused where the narrow one decides, or computes, as the compiled program did.
  /// `wide`: of this instance.
  bool excuses(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
               const oracle::Replay &wide, const Results *results);

private:
  bool isSameUnrounded(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                       const oracle::Replay &wide, const Results *results);

  const CompiledModel &model_;
  oracle::Weights weights_;
  uint64_t sampleSeed_;
  int64_t maxCalls_;
  std::unique_ptr<Replayed> narrow_;    ///< made when it is asked
  std::unique_ptr<Replayed> unrounded_; ///< likewise, in bf16
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_CONDITIONING_H

//===- Conditioning.h - What a program's conditioning excuses ---*- C++ -*-===//
//
// A program may lose more to rounding than the tolerance: a difference of near-equals times a
// thousand. How much is measured: the oracle runs several times in the program's precision, with
// every rounding going either way (oracle/Perturbed.h). One run is a sample, which may happen to be
// near the truth; the worst of several, times kFactor, is what compiled code may be off.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_VERIFY_CONDITIONING_H
#define SHEAF_COMPILER_VERIFY_CONDITIONING_H

#include "compiler/verify/Replayed.h"

#include <memory>

namespace sheaf::driver {

/// Perturbed runs at most; no more than are needed to excuse what is there.
inline constexpr uint64_t kPerturbedRuns = 16;
/// What is allowed, of the worst of them.
inline constexpr double kConditioningFactor = 4;

/// The greatest error of numbers in perturbed runs, and where they are not finite.
class Deviation {
public:
  explicit Deviation(std::vector<double> exact) : exact_(std::move(exact)) {}

  void add(std::vector<double> perturbed);
  /// Whether these are within `allowed`, an absolute error, or within kConditioningFactor of the
  /// worst. One that is infinitely far is excused where some run has the same there.
  bool excuses(std::span<const double> actual, double allowed) const;
  double bound() const { return kConditioningFactor * worst_; }
  const std::vector<double> &exact() const { return exact_; }

private:
  std::vector<double> exact_;
  double worst_ = 0;
  std::vector<std::vector<double>> notFinite_; ///< runs with numbers, or of such, that are not
};

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

  /// Whether what an instance read, and the result, if there is one, are within what perturbed runs
  /// that took the same reads allow. Where a distance of such a run is infinite it tells nothing;
  /// an infinite one of the wide oracle is excused where a run decides, or computes, as the
  /// compiled program did. `wide`: of this instance.
  bool excuses(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
               const oracle::Replay &wide, const Results *results);
  /// The greatest error that it allowed, of max(1, max|b|) of a tensor of a result.
  double greatestBound() const { return greatestBound_; }

private:
  bool isSameUnrounded(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                       const oracle::Replay &wide, const Results *results);

  const CompiledModel &model_;
  oracle::Weights weights_;
  uint64_t sampleSeed_;
  int64_t maxCalls_;
  double greatestBound_ = 0;
  std::unique_ptr<Replayed> narrow_;    ///< made when it is asked
  std::unique_ptr<Replayed> unrounded_; ///< likewise, in bf16
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_CONDITIONING_H

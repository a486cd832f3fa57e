//===- LossDifferences.h - Finite differences of a loss ---------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_LOSSDIFFERENCES_H
#define SHEAF_COMPILER_VERIFY_LOSSDIFFERENCES_H

#include "compiler/driver/Compiler.h"
#include "compiler/oracle/Oracle.h"
#include "compiler/oracle/Replay.h"
#include "runtime/session/session.h"

#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// What an argument is called beside parameters: its elements are those of its tensors of f32 in
/// all instances, one instance after the other, each depth first and left to right.
inline std::string inputName(const std::string &argument) { return "input " + argument; }

/// Elements [begin, end) of a parameter or an argument, and which way each of them goes; `signs`
/// has one for each element of the whole.
struct Direction {
  const std::string &param;
  std::span<const double> signs;
  size_t begin, end;
};

/// How fast a loss grows on either side of a point.
struct Slopes {
  double left = 0, right = 0;
};

/// The mean loss of instances by the oracle in f64, and its differences. What is constant to
/// gradients, numbers that the compiled program reads and results of `stop_gradient`, stays what it
/// was with the weights as they are.
class LossDifferences {
public:
  using Reads = std::vector<rt::LoggedRead>;

  /// None of the instances may fail. `reads`: what each instance reads. The model must outlive
  /// this. Throws as Oracle::run does.
  LossDifferences(const CompiledModel &model, std::vector<rt::Instance> instances,
                  oracle::Weights weights, std::vector<Reads> reads, uint64_t sampleSeed);

  /// By differences to a loss a step to either side.
  Slopes slopes(const Direction &direction, double step);
  /// By the central difference.
  double slope(const Direction &direction, double step);

private:
  double lossAt(const Direction &direction, double by);
  /// `input`: a direction in an argument, by which its elements change.
  double lossWith(const oracle::Weights &weights, const Direction *input = nullptr, double by = 0);

  const CompiledModel &model_;
  std::vector<rt::Instance> instances_;
  oracle::Weights weights_;
  std::vector<Reads> reads_;                            ///< by instance
  std::vector<std::vector<oracle::TensorPtr>> stopped_; ///< likewise
  bool notesStopped_ = true;
  size_t instance_ = 0, nextStopped_ = 0;
  oracle::Replay replay_;
  oracle::Oracle oracle_;
  double loss_ = 0;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_LOSSDIFFERENCES_H

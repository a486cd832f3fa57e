//===- TilingSearch.h - Which tiling of each kernel is best -----*- C++ -*-===//
//
// The search of the tuner, apart from what it times: kernels of one program are tried at once, each
// with a tiling of its own, and judged one by one.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_BENCH_TILINGSEARCH_H
#define SHEAF_COMPILER_BENCH_TILINGSEARCH_H

#include "compiler/kernels/Tuning.h"
#include "compiler/measure/Timing.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sheaf::driver {

/// By key of the kernel.
using Tunings = std::map<std::string, kernels::Tuning>;

/// A tiling is chosen if the interval of its ratio lies above this, and the median of the ratios
/// wherever in memory it was timed; or the default stays.
inline constexpr double kLeastGain = 1.01;

struct SearchedKernel {
  std::string key;
  /// What a tuning comes to; equal texts are equal tilings.
  std::function<std::string(const kernels::Tuning &)> tiling;
};

/// The time of the default over that of the trial, pair by pair.
struct Pairs {
  std::map<std::string, std::vector<double>> ratios; ///< by key; kernels that never ran have none
  std::vector<double> all;                           ///< of all kernels together
};

struct Trial {
  std::vector<Pairs> places; ///< rows and weights lay elsewhere in memory for each
  double startSeconds = 0;   ///< until the first pair began: compiling, comparing
  double pairSeconds = 0;    ///< of one pair, on the mean
};

struct TrialOptions {
  Tunings tunings; ///< kernels that are not named have the default
  size_t places = 1;
  size_t leastPairs = 0, mostPairs = 0; ///< in each place
  double seconds = 0;                   ///< for all of it; `leastPairs` are made in any case
};

struct SearchOptions {
  /// One trial at least is made, of the first kernel; what else would not end in time, by what was
  /// made before, is not begun.
  double seconds = 30;
  std::function<Trial(const TrialOptions &)> measure;
  std::function<double()> elapsed; ///< seconds since the search's time began
  /// Told when a trial has ended, how many have and how many there may be. May be empty.
  std::function<void(size_t done, size_t total)> progress;
};

/// What was found for a kernel.
struct Choice {
  kernels::Tuning tuning;   ///< the default where nothing was clearly faster
  size_t tried = 0;         ///< tilings beside the default
  size_t left = 0;          ///< that there was no time for
  bool unconfirmed = false; ///< one seemed to be faster; there was no time to time it anew
  /// Of the best, chosen or not, to the default. No pairs: nothing seemed to be faster.
  Ratio ratio;
  double least = 0; ///< median of the ratios in the place where it gained least
};

struct SearchResult {
  std::map<std::string, Choice> choices;
  size_t trials = 0;
  /// Of all kernels, with the choices. No pairs: they are all the default, or there was no time.
  Ratio all;
};

/// Tiles first, then, with the best of them, how many rows are near; the best of each kernel is
/// timed anew, and the choices together once more. Where time is short the first kernels come
/// first.
SearchResult searchTilings(const std::vector<SearchedKernel> &kernels,
                           const SearchOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_BENCH_TILINGSEARCH_H

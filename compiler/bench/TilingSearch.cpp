//===- TilingSearch.cpp - Which tiling of each kernel is best -------------===//
#include "compiler/bench/TilingSearch.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

namespace sheaf::driver {

namespace {

using kernels::Tuning;

/// Shares of the time that are over when trials end, and the timing anew of the best; what is left
/// is for all choices together.
constexpr double kTrying = 0.6, kConfirming = 0.8;

struct Effort {
  size_t places, leastPairs, mostPairs;
};
/// A trial only has to find what is worth confirming; a claim needs 20 pairs at least, and chance
/// has to be kind in five places.
constexpr Effort kOfTrial{1, 5, 40}, kOfClaim{5, 5, 40};
/// What a trial must gain to be worth confirming.
constexpr double kWorthIt = 1.005;
/// What a kernel of a trial takes to begin with, until one has been tried: the largest are compiled
/// in about a second.
constexpr double kStartSeconds = 1;

class Search {
public:
  Search(const std::vector<SearchedKernel> &kernels, const SearchOptions &options)
      : options_(options) {
    for (const SearchedKernel &kernel : kernels)
      states_.push_back({kernel, {kernel.tiling({})}, {}, {}, 1, {}});
  }

  SearchResult run() {
    for (State &state : states_)
      queue(state, kernels::tilesToTry());
    tryQueued(/*later=*/kernels::nearToTry().size());
    for (State &state : states_) {
      std::vector<Tuning> tunings;
      for (int64_t near : kernels::nearToTry())
        tunings.push_back({state.best.vectors, state.best.rows, near, state.best.implementation});
      queue(state, tunings);
    }
    tryQueued(/*later=*/0);
    result_.trials = done_;
    confirm();
    for (State &state : states_)
      result_.choices[state.kernel.key] = state.choice;
    return std::move(result_);
  }

private:
  struct State {
    const SearchedKernel &kernel;
    std::set<std::string> seen; ///< tilings
    std::deque<Tuning> queued;
    Tuning best;
    double gain; ///< of the best
    Choice choice;
  };
  static constexpr size_t kClaims = 2;

  /// Those that come to something new.
  static void queue(State &state, const std::vector<Tuning> &tunings) {
    for (const Tuning &tuning : tunings)
      if (state.seen.insert(state.kernel.tiling(tuning)).second)
        state.queued.push_back(tuning);
  }

  size_t rounds() const {
    size_t most = 0;
    for (const State &state : states_)
      most = std::max(most, state.queued.size());
    return most;
  }

  Trial measure(const Tunings &tunings, const Effort &effort, double seconds) {
    Trial trial = options_.measure(
        {tunings, effort.places, effort.leastPairs, effort.mostPairs, std::max(seconds, 0.0)});
    double start = trial.startSeconds / static_cast<double>(tunings.size());
    kernelSeconds_ = done_ > 0 ? std::max(kernelSeconds_, start) : start;
    pairSeconds_ = std::max(pairSeconds_, trial.pairSeconds);
    startSeconds_ = std::min(startSeconds_, trial.startSeconds);
    ++done_;
    if (options_.progress)
      options_.progress(done_, std::max(total_, done_));
    return trial;
  }

  /// What the pairs of an effort take at least, and one more in each place, which does not count.
  double secondsOf(const Effort &effort) const {
    return pairSeconds_ * static_cast<double>(effort.places * (effort.leastPairs + 1));
  }

  /// What has been compiled for a trial comes from the store.
  double claimSeconds() const { return startSeconds_ + secondsOf(kOfClaim); }
  bool hasTimeForClaim() const { return options_.elapsed() + claimSeconds() <= options_.seconds; }

  static std::vector<double> ratiosOf(const Trial &trial, const std::string &key) {
    std::vector<double> all;
    for (const Pairs &pairs : trial.places)
      if (auto ratios = pairs.ratios.find(key); ratios != pairs.ratios.end())
        all.insert(all.end(), ratios->second.begin(), ratios->second.end());
    return all;
  }

  static double leastOf(const Trial &trial, const std::string &key) {
    double least = std::numeric_limits<double>::infinity();
    for (const Pairs &pairs : trial.places)
      if (auto ratios = pairs.ratios.find(key); ratios != pairs.ratios.end())
        least = std::min(least, median(ratios->second));
    return least;
  }

  /// Each trial takes the next tiling of every kernel, or of as many as there is time for. `later`:
  /// rounds that are to follow.
  void tryQueued(size_t later) {
    while (size_t left = rounds()) {
      total_ = done_ + left + later + kClaims;
      double end = options_.seconds * kTrying;
      if (done_ > 0)
        end = std::min(end, options_.seconds - claimSeconds());
      double seconds = end - options_.elapsed();
      double most = (seconds - secondsOf(kOfTrial)) / kernelSeconds_;
      if (done_ > 0 && most < 1)
        break;
      Tunings tunings;
      std::vector<State *> tried;
      for (State &state : states_)
        if (!state.queued.empty() &&
            (tried.empty() || static_cast<double>(tried.size() + 1) <= most)) {
          tunings[state.kernel.key] = state.queued.front();
          tried.push_back(&state);
        }
      Trial trial = measure(tunings, kOfTrial, seconds / static_cast<double>(left + later));
      for (State *state : tried) {
        Tuning tuning = state->queued.front();
        state->queued.pop_front();
        std::vector<double> ratios = ratiosOf(trial, state->kernel.key);
        if (ratios.empty())
          continue;
        ++state->choice.tried;
        if (double gain = median(std::move(ratios)); gain > state->gain) {
          state->gain = gain;
          state->best = tuning;
        }
      }
    }
    for (State &state : states_) {
      state.choice.left += state.queued.size();
      state.queued.clear();
    }
  }

  /// The best of many is the luckiest, too: only pairs made anew say how good it is.
  void confirm() {
    Tunings best;
    for (const State &state : states_)
      if (state.gain >= kWorthIt)
        best[state.kernel.key] = state.best;
    if (best.empty())
      return;
    if (!hasTimeForClaim()) {
      for (State &state : states_)
        state.choice.unconfirmed = best.contains(state.kernel.key);
      return;
    }
    double end = std::min(options_.seconds * kConfirming, options_.seconds - claimSeconds());
    Trial trial = measure(best, kOfClaim, end - options_.elapsed());
    Tunings chosen;
    for (State &state : states_) {
      std::vector<double> ratios = ratiosOf(trial, state.kernel.key);
      if (!best.contains(state.kernel.key) || ratios.empty())
        continue;
      state.choice.ratio = ratioOf(std::move(ratios));
      state.choice.least = leastOf(trial, state.kernel.key);
      if (state.choice.ratio.low > kLeastGain && state.choice.least > kLeastGain)
        chosen[state.kernel.key] = state.choice.tuning = state.best;
    }
    if (chosen.empty() || !hasTimeForClaim())
      return;
    trial = measure(chosen, kOfClaim, options_.seconds - options_.elapsed());
    std::vector<double> all;
    for (const Pairs &pairs : trial.places)
      all.insert(all.end(), pairs.all.begin(), pairs.all.end());
    if (!all.empty())
      result_.all = ratioOf(std::move(all));
  }

  const SearchOptions &options_;
  std::vector<State> states_;
  SearchResult result_;
  size_t total_ = 0, done_ = 0;
  /// Of what was made: the most that a kernel took to begin with, and a pair; the least that a
  /// trial took to begin with.
  double kernelSeconds_ = kStartSeconds, pairSeconds_ = 0,
         startSeconds_ = std::numeric_limits<double>::infinity();
};

} // namespace

SearchResult searchTilings(const std::vector<SearchedKernel> &kernels,
                           const SearchOptions &options) {
  return Search(kernels, options).run();
}

} // namespace sheaf::driver

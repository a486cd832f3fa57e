//===- search_test.cpp - The tuner's search, with times that are made up --===//
#include "compiler/bench/TilingSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace sheaf::driver;
using sheaf::kernels::Tuning;

namespace {

/// Kernels whose speed is a function of their tuning. Time passes as pairs are made.
class Machine {
public:
  using Speed = std::function<double(const Tuning &)>; ///< times as fast as the default

  void add(const std::string &key, Speed speed,
           std::function<std::string(const Tuning &)> tiling = &Tuning::text) {
    speeds_[key] = std::move(speed);
    kernels_.push_back({key, std::move(tiling)});
  }

  SearchResult search(double seconds) {
    SearchOptions options;
    options.seconds = seconds;
    options.elapsed = [&] { return now; };
    options.measure = [&](const TrialOptions &trial) { return measure(trial); };
    options.progress = [&](size_t done, size_t total) {
      EXPECT_EQ(done, ++steps);
      EXPECT_LE(done, total);
    };
    return searchTilings(kernels_, options);
  }

  double now = 0;
  double compileSeconds = 0.1; ///< a kernel
  double pairSeconds = 0.01;
  double noise = 0;      ///< standard deviation of the logarithm of a time
  double placeNoise = 0; ///< the same of what a place in memory makes of all times there
  size_t steps = 0;
  std::map<std::string, size_t> timed; ///< trials with another tuning, by key
  std::minstd_rand random{1};

private:
  double time(double speed) {
    return std::exp(std::normal_distribution<double>(0, 1)(random) * noise) / speed;
  }

  Trial measure(const TrialOptions &options) {
    double begin = now, places = static_cast<double>(options.places);
    Trial trial;
    trial.startSeconds = compileSeconds * static_cast<double>(options.tunings.size());
    trial.pairSeconds = pairSeconds;
    now += trial.startSeconds;
    for (const auto &[key, tuning] : options.tunings)
      ++timed[key];
    for (size_t place = 0; place < options.places; ++place)
      addPairs(options, begin + options.seconds * static_cast<double>(place + 1) / places,
               trial.places.emplace_back());
    return trial;
  }

  void addPairs(const TrialOptions &options, double end, Pairs &pairs) {
    std::map<std::string, double> luck;
    for (const auto &[key, speed] : speeds_)
      luck[key] = std::exp(std::normal_distribution<double>(0, 1)(random) * placeNoise);
    for (size_t i = 0; i < options.leastPairs || (i < options.mostPairs && now < end); ++i) {
      now += pairSeconds;
      double own = 0, other = 0;
      for (const auto &[key, speed] : speeds_) {
        auto tuning = options.tunings.find(key);
        double a = time(1);
        double b = luck[key] * time(tuning == options.tunings.end() ? 1 : speed(tuning->second));
        pairs.ratios[key].push_back(a / b);
        own += a, other += b;
      }
      pairs.all.push_back(own / other);
    }
  }

  std::vector<SearchedKernel> kernels_;
  std::map<std::string, Speed> speeds_;
};

TEST(Search, FindsTheFastestTileAndHowMuchIsNearWithIt) {
  Machine machine;
  machine.noise = 0.02;
  machine.add("a", [](const Tuning &t) {
    return (t.vectors == 3 ? 1.2 : 0.9) * (t.near == 200 ? 1.1 : 1);
  });
  machine.add("b", [](const Tuning &t) { return t.vectors == 1 && t.rows == 14 ? 1.3 : 0.8; });
  SearchResult found = machine.search(60);
  EXPECT_EQ(found.choices.at("a").tuning, (Tuning{3, 0, 200}));
  // How much is near makes no difference to it.
  EXPECT_EQ(found.choices.at("b").tuning.vectors, 1);
  EXPECT_EQ(found.choices.at("b").tuning.rows, 14);
  EXPECT_NEAR(found.choices.at("a").ratio.median, 1.32, 0.03);
  EXPECT_GE(found.choices.at("a").ratio.pairs, 20);
  EXPECT_EQ(found.choices.at("a").left, 0u);
  EXPECT_EQ(found.choices.at("a").tried,
            sheaf::kernels::tilesToTry().size() + sheaf::kernels::nearToTry().size());
  EXPECT_NEAR(found.all.median, 2 / (1 / 1.32 + 1 / 1.3), 0.03);
}

TEST(Search, KeepsTheDefaultWhereNothingIsClearlyFaster) {
  Machine machine;
  machine.add("slower", [](const Tuning &) { return 0.7; });
  machine.add("hardly", [](const Tuning &) { return 1.008; });
  SearchResult found = machine.search(60);
  EXPECT_EQ(found.choices.at("slower").tuning, Tuning());
  EXPECT_EQ(found.choices.at("slower").ratio.pairs, 0);
  EXPECT_EQ(found.choices.at("hardly").tuning, Tuning());
  EXPECT_NEAR(found.choices.at("hardly").ratio.median, 1.008, 1e-9);
  EXPECT_EQ(found.all.pairs, 0);
}

TEST(Search, IsNotFooledByNoise) {
  int fooled = 0, kept = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Machine machine;
    machine.random.seed(seed);
    machine.noise = 0.1;
    machine.add("equal", [](const Tuning &) { return 1; });
    machine.add("faster", [](const Tuning &t) { return t.vectors == 8 ? 1.15 : 1; });
    SearchResult found = machine.search(30);
    fooled += found.choices.at("equal").tuning != Tuning();
    kept += found.choices.at("faster").tuning.vectors == 8;
  }
  EXPECT_LE(fooled, 10);
  EXPECT_GE(kept, 180);
}

TEST(Search, IsNotFooledByAPlaceInMemory) {
  int fooled = 0, kept = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Machine machine;
    machine.random.seed(seed);
    machine.noise = 0.01;
    machine.placeNoise = 0.1;
    machine.add("equal", [](const Tuning &) { return 1; });
    machine.add("faster", [](const Tuning &t) { return t.vectors == 8 ? 2 : 0.5; });
    SearchResult found = machine.search(30);
    fooled += found.choices.at("equal").tuning != Tuning();
    kept += found.choices.at("faster").tuning.vectors == 8;
  }
  EXPECT_LE(fooled, 12);
  EXPECT_EQ(kept, 200);
}

TEST(Search, EndsInTime) {
  for (double seconds : {0.001, 0.3, 1.0, 3.0, 5.0, 20.0}) {
    Machine machine;
    machine.add("a", [](const Tuning &t) { return t.vectors == 4 ? 1.5 : 0.9; });
    SearchResult found = machine.search(seconds);
    const Choice &choice = found.choices.at("a");
    // One trial is made in any case; a pair may end after the time.
    EXPECT_LE(machine.now, std::max(seconds, 0.15) + 0.0101) << seconds;
    EXPECT_GE(choice.tried, 1u);
    EXPECT_EQ(found.trials, choice.tried);
    // What cannot be confirmed is not chosen, and that is told.
    EXPECT_EQ(choice.unconfirmed, seconds < 1) << seconds;
    EXPECT_EQ(choice.tuning.vectors, seconds < 1 ? 0 : 4) << seconds;
    EXPECT_EQ(found.all.pairs > 0, seconds > 1) << seconds;
    if (seconds < 1)
      EXPECT_GT(choice.left, 0u);
  }
}

TEST(Search, TriesTheFirstKernelsWhereTimeIsShort) {
  for (double seconds : {0.5, 60.0}) {
    Machine machine;
    machine.compileSeconds = 0.3;
    for (const char *key : {"a", "b", "c", "d"})
      machine.add(key, [](const Tuning &t) { return t.vectors == 4 ? 1.5 : 0.9; });
    SearchResult found = machine.search(seconds);
    EXPECT_LE(machine.now, seconds);
    if (seconds < 1) {
      EXPECT_EQ(found.choices.at("a").tried, 1u);
      EXPECT_EQ(found.choices.at("b").tried + found.choices.at("c").tried, 0u);
      continue;
    }
    // Where there is enough, all are tried at once.
    EXPECT_EQ(found.trials,
              sheaf::kernels::tilesToTry().size() + sheaf::kernels::nearToTry().size());
    for (const char *key : {"a", "b", "c", "d"}) {
      EXPECT_EQ(found.choices.at(key).left, 0u);
      EXPECT_EQ(found.choices.at(key).tuning.vectors, 4);
    }
  }
}

TEST(Search, TriesEachTilingOnce) {
  Machine machine;
  // Whatever is asked for, there are three.
  machine.add(
      "few", [](const Tuning &t) { return t.vectors > 4 ? 1.1 : 1; },
      [](const Tuning &t) { return std::to_string(std::min<int64_t>(t.vectors / 4, 2)); });
  machine.add("one", [](const Tuning &) { return 2; }, [](const Tuning &) { return "1"; });
  SearchResult found = machine.search(60);
  EXPECT_EQ(found.choices.at("few").tried, 2u);
  EXPECT_EQ(machine.timed["few"], 2u + 2); // and the claims
  EXPECT_EQ(found.choices.at("one").tried, 0u);
  EXPECT_EQ(found.choices.at("one").tuning, Tuning());
  EXPECT_EQ(machine.timed["one"], 0u);
}

TEST(Search, OfNothing) {
  Machine machine;
  SearchResult found = machine.search(1);
  EXPECT_EQ(found.trials, 0u);
  EXPECT_EQ(machine.steps, 0u);
}

} // namespace

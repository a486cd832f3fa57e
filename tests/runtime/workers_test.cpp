#include "runtime/device/workers.h"

#include "runtime/cpu/flush.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

using namespace sheaf::rt;

namespace {

struct Job {
  Workers::Team *team;
  std::vector<int> *cells;
  int rounds;
};

// Every thread writes its cell, meets the others, and checks all cells.
void lockstep(void *argument, unsigned thread) {
  Job &job = *static_cast<Job *>(argument);
  for (int round = 1; round <= job.rounds; ++round) {
    (*job.cells)[thread] += 1;
    job.team->barrier().wait();
    for (int cell : *job.cells)
      if (cell != round)
        std::abort();
    job.team->barrier().wait();
  }
}

TEST(Workers, BarriersKeepThreadsInStep) {
  for (unsigned threads : {1u, 2u, 4u}) {
    Workers workers(threads);
    for (int job = 0; job < 20; ++job) {
      Workers::Team team(workers);
      team.gather();
      ASSERT_EQ(team.threads(), threads);
      std::vector<int> cells(threads);
      Job argument{&team, &cells, threads > 2 ? 20 : 500};
      team.run(lockstep, &argument);
      EXPECT_EQ(cells, std::vector<int>(threads, argument.rounds));
    }
  }
}

TEST(Workers, WakeAfterSleeping) {
  Workers workers(2);
  Workers::Team team(workers);
  team.gather();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i * 3));
    std::vector<int> cells(2);
    Job argument{&team, &cells, 3};
    team.run(lockstep, &argument);
    EXPECT_EQ(cells, std::vector<int>(2, 3));
  }
}

TEST(Workers, ThreadsWithoutAJobEnd) {
  for (int i = 0; i < 20; ++i)
    Workers workers(3);
}

TEST(Workers, DenormalsAreKeptOnEveryThread) {
  Workers workers(2);
  Workers::Team team(workers);
  team.gather();
  float results[2] = {};
  struct Argument {
    float *results;
    volatile float tiny;
  } argument{results, 1e-38f};
  team.run(
      [](void *p, unsigned thread) {
        auto *a = static_cast<Argument *>(p);
        a->results[thread] = a->tiny * 0.125f;
      },
      &argument);
  EXPECT_GT(results[0], 0);
  EXPECT_EQ(results[0], results[1]);
}

Division decide(int64_t records, uint32_t panels, double ns, unsigned threads = 2,
                bool force = false) {
  return divide({records, panels, ns, threads, force});
}

TEST(Divide, Policy) {
  // One thread, or too little work.
  EXPECT_EQ(decide(1000, 16, 1e6, 1).pieces, 1u);
  EXPECT_EQ(decide(1000, 16, 700).pieces, 1u);
  // Many records: by records.
  EXPECT_EQ(decide(8, 16, 1e5).by, Division::Records);
  EXPECT_EQ(decide(8, 16, 1e5).pieces, 2u);
  // Few: by panels.
  EXPECT_EQ(decide(7, 16, 1e5).by, Division::Panels);
  EXPECT_EQ(decide(1, 16, 1e5).pieces, 2u);
  // Few and no panels: by records only if they are long.
  EXPECT_EQ(decide(2, 0, 5000).pieces, 1u);
  EXPECT_EQ(decide(2, 1, 50000).by, Division::Records);
  EXPECT_EQ(decide(1, 1, 1e9).pieces, 1u);
  // More threads: no piece below 0.4 microseconds.
  EXPECT_EQ(decide(1000, 0, 2000, 16).pieces, 5u);
  EXPECT_EQ(decide(1000, 0, 1e6, 16).pieces, 16u);
  EXPECT_EQ(decide(16, 3, 1e6, 16).by, Division::Records);
  EXPECT_EQ(decide(16, 3, 1e6, 16).pieces, 4u);
  // No thread without work for the sake of tiles, if records are long.
  EXPECT_EQ(decide(8, 0, 1e6, 8).pieces, 8u);
  EXPECT_EQ(decide(12, 0, 1e6, 8).pieces, 8u);
  EXPECT_EQ(decide(8, 0, 5000, 8).pieces, 2u);
  EXPECT_EQ(decide(16, 32, 1e6, 16).by, Division::Panels);
  // Hostile: whatever can be divided.
  EXPECT_EQ(decide(2, 0, 1, 2, true).by, Division::Records);
  EXPECT_EQ(decide(1, 4, 1, 2, true).by, Division::Panels);
  EXPECT_EQ(decide(1, 1, 1, 2, true).pieces, 1u);
}

TEST(Workers, WhoComesTooLateIsNotWaitedFor) {
  Workers workers(4);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::atomic<int>> done(7);
    workers.forEach(done.size(), /*little=*/false, [&](size_t i) { ++done[i]; });
    for (const std::atomic<int> &count : done)
      ASSERT_EQ(count, 1);
    // Jobs of all come between.
    if (round % 50 == 0) {
      Workers::Team team(workers);
      team.gather();
      std::vector<int> cells(4);
      Job argument{&team, &cells, 2};
      team.run(lockstep, &argument);
      ASSERT_EQ(cells, std::vector<int>(4, 2));
    }
  }
}

TEST(Workers, TeamsDivideThreads) {
  Workers workers(4);
  auto sizes = [](std::initializer_list<Workers::Team *> teams) {
    for (int i = 0; i < 2; ++i) // what one leaves the next one takes
      for (Workers::Team *team : teams)
        team->gather();
    std::vector<unsigned> all;
    for (Workers::Team *team : teams)
      all.push_back(team->threads());
    std::sort(all.rbegin(), all.rend()); // who comes first has what is over
    return all;
  };
  Workers::Team first(workers);
  EXPECT_EQ(sizes({&first}), (std::vector<unsigned>{4}));
  EXPECT_FALSE(first.isUneven());
  {
    Workers::Team second(workers);
    second.gather();
    EXPECT_EQ(second.threads(), 1u); // what others have they keep until they gather anew
    EXPECT_TRUE(first.isUneven());
    EXPECT_EQ(sizes({&first, &second}), (std::vector<unsigned>{2, 2}));
    EXPECT_FALSE(first.isUneven() || second.isUneven());
    Workers::Team third(workers);
    EXPECT_EQ(sizes({&first, &second, &third}), (std::vector<unsigned>{2, 1, 1}));
    Workers::Team fourth(workers), fifth(workers);
    EXPECT_EQ(sizes({&first, &second, &third, &fourth, &fifth}), std::vector<unsigned>(5, 1));
  }
  // In a while: waking threads costs more than those that go at once.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(first.isUneven());
  EXPECT_EQ(sizes({&first}), (std::vector<unsigned>{4}));
}

TEST(Workers, CallersRunJobsBesideEachOther) {
  Workers workers(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        Workers::Team team(workers);
        for (int job = 0; job < 3; ++job) {
          team.gather();
          std::vector<int> cells(team.threads());
          Job argument{&team, &cells, 5};
          team.run(lockstep, &argument);
          if (cells != std::vector<int>(team.threads(), 5))
            std::abort();
        }
        std::vector<std::atomic<int>> done(5);
        workers.forEach(done.size(), /*little=*/false, [&](size_t i) { ++done[i]; });
        for (const std::atomic<int> &count : done)
          if (count != 1)
            std::abort();
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  Workers::Team team(workers);
  team.gather();
  EXPECT_EQ(team.threads(), 3u); // all were given back
}

TEST(Patience, LosesWhatGoesBeyondTheWorkOfAll) {
  EXPECT_LE(Patience::lost(100e3, 50e3, 2), 0);
  EXPECT_LE(Patience::lost(200e3, 51e3, 2), 0); // an unequal part
  EXPECT_NEAR(Patience::lost(4e6, 50e3, 2), 3.8e6, 0.1e6);
}

TEST(Patience, WorksAloneForAsLongAsWasLost) {
  Patience patience;
  patience.together(-1);
  EXPECT_TRUE(patience.worthIt());
  patience.together(4e6);
  double alone = 0;
  for (; !patience.worthIt(); alone += 100e3)
    patience.alone(100e3);
  EXPECT_NEAR(alone, 4e6, 0.1e6);
}

TEST(Patience, LosesLittleWhereTheOthersNeverCome) {
  for (double slice : {1e6, 4e6, 100e6}) {
    Patience patience;
    double lost = 0, alone = 0;
    for (int i = 0; i < 1000000; ++i)
      if (patience.worthIt()) {
        patience.together(slice);
        lost += slice;
      } else {
        patience.alone(100e3);
        alone += 100e3;
      }
    EXPECT_LT(lost, alone / 10) << slice;
    // And comes back to them when they do.
    while (!patience.worthIt())
      patience.alone(100e3);
    patience.together(-1);
    EXPECT_TRUE(patience.worthIt());
    patience.together(slice);
    for (alone = 0; !patience.worthIt(); alone += 100e3)
      patience.alone(100e3);
    EXPECT_LT(alone, slice + 0.2e6);
  }
}

} // namespace

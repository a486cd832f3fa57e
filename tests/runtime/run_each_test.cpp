// What fails for want of memory beside others runs again with fewer of them.
#include "runtime/session/session.h"

#include <gtest/gtest.h>

namespace {

using namespace sheaf::rt;

/// A machine with room for so many units; instance i takes as many as `sizes` says.
struct Machine {
  std::vector<uint64_t> sizes;
  uint64_t room;
  std::vector<size_t> runs = {}; ///< how many instances each had
  uint64_t again = 0;

  std::vector<Outcome> outcomes = {};

  /// The first ones have room; one that has none alone fails.
  std::span<const Outcome> run(std::span<const Instance> some) {
    runs.push_back(some.size());
    outcomes.clear();
    uint64_t taken = 0;
    for (const Instance &each : some) {
      again += each.isAgain;
      Outcome &outcome = outcomes.emplace_back();
      outcome.delivered = each.delivered + 1;
      taken += sizes[static_cast<size_t>(each.index)];
      if (taken > room)
        outcome.error.emplace(each.index, "too large", sheaf::RunError::Cause::Memory);
    }
    return outcomes;
  }
};

struct Visited {
  std::vector<int> times;
  std::vector<bool> ok;
  std::vector<uint64_t> delivered;
};

Visited runOn(Machine &machine) {
  std::vector<Instance> instances(machine.sizes.size());
  for (size_t i = 0; i < instances.size(); ++i)
    instances[i].index = static_cast<int64_t>(i);
  Visited visited{std::vector<int>(instances.size()), std::vector<bool>(instances.size()),
                  std::vector<uint64_t>(instances.size())};
  runEach(
      std::span<const Instance>(instances),
      [&](std::span<const Instance> some) { return machine.run(some); },
      [&](size_t number, const Outcome &outcome) {
        ++visited.times[number];
        visited.ok[number] = outcome.ok();
        visited.delivered[number] = outcome.delivered;
      });
  return visited;
}

TEST(RunEach, DividesWhatHasNoRoomTogether) {
  Machine machine{std::vector<uint64_t>(256, 1), 40};
  Visited visited = runOn(machine);
  EXPECT_EQ(visited.times, std::vector<int>(256, 1));
  EXPECT_EQ(visited.ok, std::vector<bool>(256, true));
  // Not one by one: 216 had no room; of groups of 54 some have, and so on.
  EXPECT_LT(machine.runs.size(), 16u);
  EXPECT_EQ(machine.runs.front(), 256u);
  EXPECT_GE(machine.again, 216u);
  EXPECT_EQ(visited.delivered[0], 1u);
  EXPECT_GT(visited.delivered[255], 1u) << "what was delivered is told to the next run";
}

TEST(RunEach, FailsOnlyWhatHasNoRoomAlone) {
  Machine machine{{5, 50, 5, 5, 41, 5, 40}, 40};
  Visited visited = runOn(machine);
  EXPECT_EQ(visited.times, std::vector<int>(7, 1));
  EXPECT_EQ(visited.ok, (std::vector<bool>{true, false, true, true, false, true, true}));
}

TEST(RunEach, RunsNothingOfNothing) {
  Machine machine{{}, 1};
  runOn(machine);
  EXPECT_TRUE(machine.runs.empty());
}

} // namespace

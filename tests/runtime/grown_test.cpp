// Room behind tensors that grow: who may append in place, and what stays when rows are given back.

#include "runtime/walk/grown.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

struct GrownTest : testing::Test {
  MemoryMeter meter{uint64_t(1) << 20};
  MemoryKind count;
  GrownRows grown{meter, count, /*hostile=*/false};
};

TEST_F(GrownTest, OnlyTheLongestVersionGrowsInPlace) {
  EXPECT_FALSE(grown.take(100, 4, 4)); // nothing is known of it
  grown.note(100, 4, 12);
  EXPECT_FALSE(grown.take(101, 3, 1)); // a view of its later rows
  EXPECT_TRUE(grown.take(100, 4, 4));
  EXPECT_FALSE(grown.take(100, 4, 4)); // what it was before
  EXPECT_FALSE(grown.take(100, 8, 5)); // no room for so much
  EXPECT_TRUE(grown.take(100, 8, 4));
  EXPECT_FALSE(grown.take(100, 12, 1));
}

TEST_F(GrownTest, RoomGrowsWithWhatIsThere) {
  EXPECT_EQ(grown.capacityFor(4, 4), 68);
  EXPECT_EQ(grown.capacityFor(4000, 4), 8000);
  EXPECT_EQ(grown.capacityFor(4000, 3000), 8000); // many rows at once
  EXPECT_EQ(GrownRows(meter, count, /*hostile=*/true).capacityFor(4000, 4), 4004);
}

TEST_F(GrownTest, RoomStaysWithTheTensor) {
  grown.note(100, 4, 12);
  grown.note(120, 4, 8);
  EXPECT_GT(count.now, 0u);
  GranuleBits live;
  live.reset(64); // from granule 90 on
  live.set(10, 14);
  live.set(31, 33); // rows of the other, but not its first
  grown.keep(live, 90);
  EXPECT_EQ(live.next(10, false), 22u);
  EXPECT_EQ(live.next(22, true), 31u);
  EXPECT_TRUE(grown.take(100, 4, 8));
  EXPECT_FALSE(grown.take(120, 4, 4));
  grown.forget();
  EXPECT_EQ(count.now, 0u);
  EXPECT_FALSE(grown.take(100, 12, 1));
}

TEST_F(GrownTest, TheLongestThatIsNeededGrowsWhereLongerOnesWere) {
  grown.note(100, 4, 100);
  EXPECT_TRUE(grown.take(100, 4, 80));
  EXPECT_FALSE(grown.take(100, 4, 4));
  for (uint64_t first : {0, 3, 40, 63, 64, 99}) { // of the bits
    GranuleBits live;
    live.reset(300);
    live.set(100 - first, 104 - first);
    grown.keep(live, first);
    EXPECT_EQ(live.next(100 - first, false), 200 - first);
    EXPECT_EQ(grown.capacity(100), 100);
    EXPECT_TRUE(grown.take(100, 4, 80)) << first;
    EXPECT_FALSE(grown.take(100, 4, 80)) << first;
    live.reset(300);
    live.set(100 - first, 170 - first); // of those that it was, one that is shorter
    grown.keep(live, first);
    EXPECT_FALSE(grown.take(100, 84, 4)) << first;
    EXPECT_TRUE(grown.take(100, 70, 14)) << first;
  }
}

TEST_F(GrownTest, WithoutMemoryNothingIsNoted) {
  MemoryMeter none{0};
  MemoryKind nothing;
  GrownRows poor{none, nothing, false};
  poor.note(100, 4, 12);
  EXPECT_FALSE(poor.take(100, 4, 4));
}

} // namespace
} // namespace sheaf::rt

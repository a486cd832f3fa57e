// Room behind tensors that grow: who may append in place, who goes on elsewhere and has rows in
// common, and what stays when rows are given back.

#include "runtime/walk/grown.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

struct GrownTest : testing::Test {
  MemoryMeter meter{uint64_t(64) << 20};
  MemoryKind rowBytes, count;
  HostRows memory{0, uint64_t(128) << 20};
  RowSpace rows{0, memory, meter, rowBytes, /*guards=*/false};
  GrownRows grown{rows, meter, count, /*hostile=*/false};
  uint64_t page = pageBytes() / kGranuleBytes;

  /// A tensor of `granules` that has gone elsewhere with room for more: the granule of it.
  uint32_t grow(int64_t granules, int64_t more) {
    return static_cast<uint32_t>(grown.goOn({100, 0}, granules, more, 0).id);
  }
  GranuleBits liveBits(std::initializer_list<RowRange> ranges) const {
    GranuleBits live;
    live.reset(rows.used());
    for (const RowRange &range : ranges)
      live.set(range.begin - rows.first(), range.end() - rows.first());
    return live;
  }
  /// The tensor went on from there, and what is not there was copied.
  uint32_t branch(TensorHandle whole, int64_t granules, int64_t more, uint32_t depth) {
    GrownRows::Place place = grown.goOn(whole, granules, more, depth);
    auto id = static_cast<uint32_t>(place.id);
    there = place.there;
    placeDepth = place.depth;
    memcpy(rows.address(place.id + static_cast<uint64_t>(there)),
           rows.address(whole.id + static_cast<uint64_t>(there)),
           static_cast<size_t>(granules - there) * kGranuleBytes);
    grown.copied(whole.id, granules, {id, std::max(place.depth, depth + 1)});
    return id;
  }
  int64_t there = 0; ///< of the last one
  uint32_t placeDepth = 0;
};

TEST_F(GrownTest, OnlyTheLongestVersionGrowsInPlace) {
  EXPECT_FALSE(grown.take(100, 4, 4)); // nothing is known of it
  uint32_t id = grow(0, 4);
  EXPECT_EQ(grown.capacity(id), 68);
  EXPECT_FALSE(grown.take(id + 1, 3, 1)); // a view of its later rows
  EXPECT_TRUE(grown.take(id, 4, 4));
  EXPECT_FALSE(grown.take(id, 4, 4));  // what it was before
  EXPECT_FALSE(grown.take(id, 8, 61)); // no room for so much
  EXPECT_TRUE(grown.take(id, 8, 60));
  EXPECT_FALSE(grown.take(id, 68, 1));
}

TEST_F(GrownTest, RoomGrowsWithWhatIsThere) {
  EXPECT_EQ(grown.capacityFor(4, 4), 68);
  EXPECT_EQ(grown.capacityFor(4000, 4), 8000);
  EXPECT_EQ(grown.capacityFor(4000, 3000), 8000); // many rows at once
  EXPECT_EQ(GrownRows(rows, meter, count, /*hostile=*/true).capacityFor(4000, 4), 4004);
}

TEST_F(GrownTest, RoomStaysWithTheTensor) {
  uint32_t one = grow(0, 4), other = grow(0, 4);
  EXPECT_GT(count.now, 0u);
  GranuleBits live = liveBits({{one, 4}, {other + 1, 2}}); // of the other, but not its first
  grown.keep(live);
  EXPECT_EQ(live.next(one - rows.first(), false), one + 68 - rows.first());
  EXPECT_TRUE(grown.take(one, 4, 8));
  EXPECT_FALSE(grown.take(other, 4, 4));
  grown.forget();
  EXPECT_EQ(count.now, 0u);
  EXPECT_FALSE(grown.take(one, 12, 1));
}

TEST_F(GrownTest, TheLongestThatIsNeededGrowsWhereLongerOnesWere) {
  for (int64_t before : {0, 3, 40, 63, 64, 99}) { // of the bits
    rows.allocate(before);
    uint32_t id = grow(0, 100);
    EXPECT_TRUE(grown.take(id, 100, 80));
    EXPECT_FALSE(grown.take(id, 100, 4));
    GranuleBits live = liveBits({{id, 100}});
    grown.keep(live);
    EXPECT_EQ(live.next(id - rows.first(), false),
              id - rows.first() + static_cast<uint64_t>(grown.capacity(id)));
    EXPECT_TRUE(grown.take(id, 100, 80)) << before;
    EXPECT_FALSE(grown.take(id, 100, 80)) << before;
    live = liveBits({{id, 170}}); // of those that it was, one that is shorter
    grown.keep(live);
    EXPECT_FALSE(grown.take(id, 180, 4)) << before;
    EXPECT_TRUE(grown.take(id, 170, 14)) << before;
  }
}

TEST_F(GrownTest, WithoutMemoryNothingIsNoted) {
  MemoryMeter none{0};
  MemoryKind nothing;
  GrownRows poor{rows, none, nothing, false};
  uint64_t id = poor.goOn({100, 0}, 0, 4, 0).id;
  ASSERT_NE(id, RowSpace::kFull);
  EXPECT_FALSE(poor.take(static_cast<uint32_t>(id), 4, 4));
}

TEST_F(GrownTest, TheSecondThatGoesOnMakesACopyForTheOthers) {
  if (!memory.pages())
    GTEST_SKIP() << "the machine shows no page twice";
  grown.shareWhen(When::Always);
  auto length = static_cast<int64_t>(20 * page + 3);
  uint32_t id = grow(length - 1, 1);
  EXPECT_EQ(id % page, 0u); // so that it can have common pages
  memset(rows.address(id), 1, static_cast<size_t>(length) * kGranuleBytes);
  EXPECT_TRUE(grown.take(id, length, 8)); // the first of them
  uint32_t second = branch({id, 5}, length, 8, 5);
  EXPECT_EQ(there, 0);
  uint32_t third = branch({id, 5}, length, 8, 5);
  EXPECT_EQ(there, static_cast<int64_t>(20 * page));
  EXPECT_EQ(placeDepth, 6u); // when the copy has been made
  EXPECT_EQ(grown.counts.shared, 1u);
  EXPECT_EQ(grown.counts.bytes, 20 * pageBytes());
  EXPECT_EQ(rows.address(third)[0], 1);
  rows.address(second)[7] = 2; // it is the same memory
  EXPECT_EQ(rows.address(third)[7], 2);
  rows.address(second)[7] = 1;
  branch({id, 2}, length, 8, 2);
  EXPECT_EQ(there, 0); // it would have to wait for the copy

  // When nothing runs the first has the pages, too, whoever else needs them.
  uint64_t held = rows.held();
  GranuleBits live = liveBits({{id, static_cast<uint64_t>(length)}, {third, 1}});
  grown.keep(live);
  rows.reclaim(live);
  EXPECT_TRUE(grown.takeJoined());
  EXPECT_LT(rows.held(), held - 20 * page);
  EXPECT_TRUE(grown.take(id, length, 8)); // after what is common
  uint32_t fourth = branch({id, 0}, length, 8, 0);
  EXPECT_EQ(there, static_cast<int64_t>(20 * page));
  EXPECT_EQ(rows.address(fourth)[0], 1);
}

TEST_F(GrownTest, WhatIsCommonIsNeverWritten) {
  if (!memory.pages())
    GTEST_SKIP() << "the machine shows no page twice";
  grown.shareWhen(When::Always);
  auto length = static_cast<int64_t>(8 * page);
  uint32_t id = grow(length - 1, 1);
  EXPECT_TRUE(grown.take(id, length, 1));
  uint32_t second = branch({id, 0}, length, 8, 0);
  EXPECT_TRUE(grown.take(second, length + 8, static_cast<int64_t>(page)));
  auto longer = length + 8 + static_cast<int64_t>(page);
  EXPECT_TRUE(grown.take(second, longer, 8));
  branch({second, 0}, longer, 8, 0);
  EXPECT_EQ(there, static_cast<int64_t>(9 * page));
  // A shorter version of it is the longest that is needed: others have what came after its rows.
  GranuleBits live = liveBits({{second, static_cast<uint64_t>(length + 8)}});
  grown.keep(live);
  rows.reclaim(live);
  EXPECT_FALSE(grown.take(second, length + 8, 8));
  branch({second, 0}, length + 8, 8, 0);
  EXPECT_EQ(there, length);
}

TEST_F(GrownTest, ACopyThatWasNotMadeIsNoOnes) {
  if (!memory.pages())
    GTEST_SKIP() << "the machine shows no page twice";
  grown.shareWhen(When::Always);
  auto length = static_cast<int64_t>(8 * page);
  uint32_t id = grow(length - 1, 1);
  memset(rows.address(id), 1, static_cast<size_t>(length) * kGranuleBytes);
  EXPECT_TRUE(grown.take(id, length, 1));
  uint32_t second = branch({id, 0}, length, 8, 0);
  rows.address(second)[100] = 2; // as if it had not been
  GranuleBits live = liveBits({{id, static_cast<uint64_t>(length)}, {second, 1}});
  grown.keep(live);
  rows.reclaim(live);
  EXPECT_FALSE(grown.takeJoined());
  EXPECT_EQ(rows.address(id)[100], 1);
  EXPECT_TRUE(grown.take(id, length, 1));
  branch({id, 0}, length, 8, 0);
  EXPECT_EQ(there, 0);
  grown.forgetCopies();
  branch({id, 0}, length, 8, 0);
  EXPECT_EQ(there, 0);
}

TEST_F(GrownTest, ABranchOfABranchIsCopiedUntilItHasGrown) {
  if (!memory.pages())
    GTEST_SKIP() << "the machine shows no page twice";
  grown.shareWhen(When::Worth);
  auto length = static_cast<int64_t>(256 * page); // 1 MB
  uint32_t id = grow(length - 1, 1);
  EXPECT_TRUE(grown.take(id, length, 1));
  branch({id, 0}, length, 8, 0);
  uint32_t sample = branch({id, 0}, length, 8, 0);
  EXPECT_EQ(there, length);
  // It grows by a step, and two go on from it: one may, and the other is copied.
  int64_t now = length + 8;
  EXPECT_TRUE(grown.take(sample, now, 8));
  uint32_t beam = branch({sample, 0}, now, 8, 0);
  EXPECT_EQ(there, 0);
  EXPECT_TRUE(grown.take(beam, now + 8, 8));
  branch({beam, 0}, now + 8, 8, 0);
  EXPECT_EQ(there, 0);
  // Where its room ends it goes on with its own rows, and is as old as before.
  now += 8;
  int64_t capacity = grown.capacity(sample);
  EXPECT_TRUE(grown.take(sample, now, capacity - now));
  now = capacity;
  sample = branch({sample, 0}, now, length / 8, 0);
  EXPECT_GT(there, length);
  now += length / 8;
  EXPECT_TRUE(grown.take(sample, now, 8));
  branch({sample, 0}, now, 8, 0);
  EXPECT_GT(there, length);
  // Where memory is short the branches of a beam have their rows in common, too.
  MemoryKind others;
  ASSERT_TRUE(meter.charge(others, meter.limit() / 2));
  EXPECT_TRUE(grown.take(sample, now + 8, 8));
  branch({sample, 0}, now + 8, 8, 0);
  EXPECT_GT(there, length);
  meter.uncharge(others, others.now);
}

TEST_F(GrownTest, FewRowsAndPromisedOnesAreCopied) {
  for (When when : {When::Never, When::Worth}) {
    grown.shareWhen(when);
    uint32_t id = grow(511, 1);
    EXPECT_TRUE(grown.take(id, 512, 1));
    for (int i = 0; i < 3; ++i) {
      branch({id, 0}, 512, 8, 0);
      EXPECT_EQ(there, 0);
    }
  }
}

} // namespace
} // namespace sheaf::rt

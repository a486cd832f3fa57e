//===- heap_test.cpp - Memory of lists and data ---------------------------===//

#include "runtime/memory/heap.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace sheaf::rt {
namespace {

struct Value {
  Slot *slots;
  std::vector<Slot> expected;
};

Value make(Heap &heap, size_t slots, Slot first) {
  Value value{static_cast<Slot *>(heap.allocate(slots * sizeof(Slot))), {}};
  value.expected.resize(slots);
  std::iota(value.expected.begin(), value.expected.end(), first);
  if (value.slots)
    std::copy(value.expected.begin(), value.expected.end(), value.slots);
  return value;
}

void check(const std::vector<Value> &values) {
  for (const Value &value : values)
    ASSERT_TRUE(std::equal(value.expected.begin(), value.expected.end(), value.slots));
}

class HeapTest : public testing::TestWithParam<bool> {
protected:
  MemoryMeter meter{uint64_t(1) << 30};
  MemoryKind count;
  Heap heap{meter, count, uint64_t(1) << 30, GetParam()};
};

TEST_P(HeapTest, GivesBackWhatIsNotInUse) {
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(heap.allocate(4000));
  heap.reset();
  uint64_t kept = count.now;
  EXPECT_GT(kept, uint64_t(2) << 20);
  Value value = make(heap, 100, 5);
  EXPECT_TRUE(heap.giveBack());
  EXPECT_FALSE(heap.giveBack());
  EXPECT_LE(count.now, uint64_t(4096));
  check({value});
  // Exactly what is used from now on, and after a reset.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 1000; ++i)
      ASSERT_TRUE(heap.allocate(4000));
    EXPECT_LE(count.now, uint64_t(1001) * 4096);
    heap.reset();
  }
}

TEST_P(HeapTest, WhatIsMarkedStays) {
  std::mt19937 random(1);
  std::vector<Value> live;
  Slot next = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 300; ++i) {
      // Now and then larger than a block.
      size_t slots = random() % 50 == 0 ? random() % 3000 : random() % 20;
      live.push_back(make(heap, slots, next));
      ASSERT_TRUE(live.back().slots);
      next += static_cast<Slot>(slots);
    }
    check(live);
    // Any slot of a value marks all of it.
    std::shuffle(live.begin(), live.end(), random);
    live.resize(live.size() / 4);
    heap.beginMarking();
    for (const Value &value : live)
      if (!value.expected.empty())
        heap.mark(value.slots + random() % value.expected.size());
    heap.mark(nullptr);
    heap.mark(&live);
    heap.reclaim();
    EXPECT_EQ(heap.handedOut(), 0u);
    std::erase_if(live, [](const Value &value) { return value.expected.empty(); });
    check(live);
  }
  heap.reset();
  EXPECT_EQ(heap.live(), 0u);
}

TEST_P(HeapTest, ALoopThatDropsWhatItMadeTakesLittle) {
  Value last = make(heap, 3, 0);
  for (int step = 0; step < 20000; ++step) {
    make(heap, static_cast<size_t>(step % 200), step);
    make(heap, step % 100 ? 1 : 2000, step);
    Value made = make(heap, 3, step);
    if (step % 10 == 0) {
      heap.beginMarking();
      heap.mark(last.slots);
      heap.reclaim();
      EXPECT_LE(heap.live(), 4096u);
    }
    check({last});
    if (step % 10 == 9)
      last = made;
  }
  EXPECT_LT(count.peak, uint64_t(1) << 18);
}

TEST_P(HeapTest, ManySmallOnesBetweenThoseThatLive) {
  // One of 4096 lives: little of the memory is held by those.
  std::vector<Value> live;
  for (Slot i = 0; i < 1 << 17; ++i) {
    Value value = make(heap, 2, i);
    if (i % 4096 == 0)
      live.push_back(value);
  }
  uint64_t peak = count.peak;
  heap.beginMarking();
  for (const Value &value : live)
    heap.mark(value.slots);
  heap.reclaim();
  EXPECT_LE(heap.live(), peak / 8);
  // The holes are used first.
  for (Slot i = 0; i < 1 << 16; ++i)
    make(heap, 2, i);
  EXPECT_EQ(count.peak, peak);
  check(live);
}

TEST_P(HeapTest, TheBudgetIsKept) {
  MemoryMeter little(uint64_t(100) << 10);
  Heap heap(little, count, uint64_t(1) << 30, GetParam());
  EXPECT_EQ(heap.allocate(uint64_t(1) << 20), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX / 2), nullptr);
  uint64_t got = 0;
  while (heap.allocate(80))
    got += 80;
  EXPECT_GT(got, uint64_t(50) << 10);
  EXPECT_LE(little.used(), little.limit());
  heap.reset();
  EXPECT_NE(heap.allocate(80), nullptr);
}

TEST_P(HeapTest, AMiniBatchLeavesMemoryForTheNextAndNoMore) {
  auto fill = [&](uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / 800; ++i)
      ASSERT_TRUE(heap.allocate(800));
  };
  fill(uint64_t(100) << 20);
  heap.reset();
  EXPECT_GE(count.now, uint64_t(100) << 20);
  for (int i = 0; i < 40; ++i) {
    fill(1000);
    heap.reset();
  }
  EXPECT_LT(count.now, uint64_t(10) << 20);
  fill(uint64_t(20) << 20);
}

INSTANTIATE_TEST_SUITE_P(Blocks, HeapTest, testing::Bool(),
                         [](const auto &info) { return info.param ? "hostile" : "plain"; });

} // namespace
} // namespace sheaf::rt

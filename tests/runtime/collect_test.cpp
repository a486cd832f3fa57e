// What is reached from roots, and rows that are taken back and handed out again.
#include "runtime/walk/live_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <set>

#include <sys/mman.h>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

TEST(GranuleBits, AsASetOfNumbers) {
  std::mt19937 random(1);
  for (uint64_t size : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    GranuleBits bits;
    bits.reset(size);
    std::set<uint64_t> expected;
    for (int i = 0; i < 20; ++i) {
      uint64_t begin = random() % (size + 3), end = begin + random() % 70 * (random() % 3);
      bits.set(begin, end);
      for (uint64_t k = begin; k < std::min(end, size); ++k)
        expected.insert(k);
      for (uint64_t k = 0; k <= size; ++k) {
        uint64_t set = k, clear = k;
        while (set < size && !expected.contains(set))
          ++set;
        while (clear < size && expected.contains(clear))
          ++clear;
        EXPECT_EQ(bits.next(k, true), set);
        EXPECT_EQ(bits.next(k, false), clear);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

class Rows : public testing::TestWithParam<bool> {
protected:
  Rows()
      : meter(uint64_t(1) << 20), memory(3, uint64_t(1) << 30),
        rows(3, memory, meter, count, GetParam()) {}
  uint64_t allocate(int64_t granules) {
    uint64_t id = rows.allocate(granules);
    if (id != RowSpace::kFull)
      memset(rows.address(id), 0x11, static_cast<size_t>(granules) * kGranuleBytes);
    return id;
  }

  MemoryMeter meter;
  MemoryKind count;
  HostRows memory;
  RowSpace rows;
};

/// Kernels read whole vectors, beyond the end of the last slice of a row.
TEST_P(Rows, WhatFollowsTheLastRowMayBeRead) {
  uint64_t id = rows.keep(6);
  ASSERT_NE(id, RowSpace::kFull);
  auto behind = reinterpret_cast<uintptr_t>(rows.address(rows.capacity()));
  unsigned char isThere = 0;
  for (uintptr_t at : {behind, behind + kGranuleBytes - 1})
    EXPECT_EQ(mincore(reinterpret_cast<void *>(at / pageBytes() * pageBytes()), 1, &isThere), 0);
}

/// Pages wait for the next mini-batch as long as the budget has them; what is kept stays.
TEST_P(Rows, WhatOthersTakeOfTheBudgetIsGivenBack) {
  MemoryMeter own(uint64_t(4) << 20);
  MemoryKind others;
  HostRows small(3, uint64_t(1) << 20);
  RowSpace space(3, small, own, count, GetParam());
  uint64_t id = space.allocate(12000);
  ASSERT_NE(id, RowSpace::kFull);
  memset(space.address(id), 0x11, 12000 * kGranuleBytes);
  space.reset();
  uint64_t kept = space.keep(6000);
  ASSERT_NE(kept, RowSpace::kFull);
  ASSERT_LT(kept, id + 12000);
  memset(space.address(kept), 0x22, 6000 * kGranuleBytes);
  ASSERT_TRUE(own.charge(others, 6000 * kGranuleBytes));
  auto page = [&](uint64_t granule) {
    auto at = reinterpret_cast<uintptr_t>(space.address(granule)) / pageBytes() * pageBytes();
    unsigned char isThere = 0;
    EXPECT_EQ(mincore(reinterpret_cast<void *>(at), 1, &isThere), 0);
    return (isThere & 1) != 0;
  };
  EXPECT_TRUE(page(id + 5000));
  ASSERT_TRUE(own.charge(others, own.limit() - own.used() - (uint64_t(100) << 10)));
  EXPECT_TRUE(page(id));
  EXPECT_FALSE(page(id + 5000));
  for (uint64_t granule = kept; granule < kept + 6000; ++granule)
    ASSERT_EQ(*space.address(granule), 0x22) << granule;
  own.uncharge(others, others.now);
}

TEST_P(Rows, HolesAreFilledBeforeMoreIsTaken) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < 100; ++i)
    ids.push_back(allocate(16));
  uint64_t used = rows.used();
  // Every tenth stays; of the last ones none.
  GranuleBits live;
  auto reclaim = [&] {
    live.reset(rows.used());
    for (size_t i = 0; i < 90; i += 10)
      live.set(ids[i] - rows.first(), ids[i] - rows.first() + 16);
    rows.reclaim(live);
  };
  reclaim();
  EXPECT_TRUE(rows.damagedGuards().empty());
  EXPECT_LT(rows.used(), used);
  EXPECT_EQ(rows.handedOut(), 0u);
  uint64_t low = rows.used();
  std::set<uint64_t> taken;
  auto take = [&](uint64_t id, uint64_t granules) {
    for (uint64_t k = id; k < id + granules; ++k) {
      EXPECT_TRUE(taken.insert(k).second);
      EXPECT_FALSE(live.any(k - rows.first(), k - rows.first() + 1));
    }
  };
  for (size_t i = 0; i < 72; ++i)
    take(allocate(16), 16);
  EXPECT_EQ(rows.used(), low); // eight holes of nine each
  EXPECT_GE(rows.handedOut(), 72u * 16);
  // What no hole holds stands after all others; small ones go on in holes.
  reclaim();
  taken.clear();
  take(allocate(9 * 17 + 1), 9 * 17 + 1);
  EXPECT_GT(rows.used(), low);
  uint64_t behind = rows.used();
  for (size_t i = 0; i < 72; ++i)
    take(allocate(16), 16);
  EXPECT_EQ(rows.used(), behind);
  for (size_t i = 0; i < 100; ++i)
    take(allocate(16), 16);
  EXPECT_GT(rows.used(), behind);
  EXPECT_TRUE(rows.damagedGuards().empty());
  rows.reset();
  EXPECT_EQ(rows.used(), 0u);
  EXPECT_EQ(allocate(1), rows.first());
}

TEST_P(Rows, RangesStayThroughAReset) {
  uint64_t first = allocate(10);
  allocate(70);
  std::vector<RowRange> stay = rows.ranges();
  auto isOutside = [&](uint64_t id, uint64_t granules) {
    return std::all_of(stay.begin(), stay.end(), [&](const RowRange &range) {
      return id + granules <= range.begin || id >= range.end();
    });
  };
  ASSERT_EQ(stay.size(), 1u);
  EXPECT_EQ(stay[0].begin, first);
  memset(rows.address(first), 0x22, kGranuleBytes);
  rows.reset(stay);
  EXPECT_EQ(rows.handedOut(), 0u);
  EXPECT_TRUE(rows.ranges().empty());
  uint64_t id = allocate(90);
  EXPECT_TRUE(isOutside(id, 90));
  std::vector<RowRange> second = rows.ranges();
  // The first goes: its hole is too small to be begun with, but it is there in need.
  stay = second;
  rows.reset(stay);
  id = allocate(50);
  EXPECT_GT(id, stay[0].begin);
  std::set<uint64_t> taken;
  bool filled = false;
  for (; id != RowSpace::kFull; id = allocate(16)) {
    EXPECT_TRUE(isOutside(id, 16));
    EXPECT_TRUE(taken.insert(id).second);
    filled |= id < stay[0].begin;
  }
  EXPECT_TRUE(filled);
  std::vector<RowRange> all = rows.ranges();
  EXPECT_GE(all.size(), 2u);
  for (uint64_t each : taken)
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const RowRange &range) {
      return each >= range.begin && each + 16 <= range.end();
    }));
  EXPECT_TRUE(rows.damagedGuards().empty());
  rows.reset();
  EXPECT_EQ(allocate(1), rows.first());
}

TEST_P(Rows, TheLimitIsThatOfAllRows) {
  // 1 MB; half of it stays, in every other place.
  std::vector<uint64_t> ids;
  for (uint64_t id; (id = allocate(63)) != RowSpace::kFull;)
    ids.push_back(id);
  EXPECT_GE(ids.size(), 255u);
  GranuleBits live;
  live.reset(rows.used());
  for (size_t i = 0; i < ids.size(); i += 2)
    live.set(ids[i] - rows.first(), ids[i] - rows.first() + 63);
  rows.reclaim(live);
  size_t more = 0;
  EXPECT_EQ(allocate(200), RowSpace::kFull);
  EXPECT_EQ(allocate(-1), RowSpace::kFull);
  while (allocate(63) != RowSpace::kFull)
    ++more;
  EXPECT_GE(more, ids.size() / 2);
  EXPECT_LE(rows.used() * kGranuleBytes, meter.limit());
}

TEST_P(Rows, ManySizesAtRandom) {
  std::mt19937 random(7);
  struct Block {
    uint64_t id, granules;
    uint8_t mark;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 100; ++i) {
      int64_t granules = 1 + int64_t(random() % (random() % 8 ? 20 : 200));
      uint64_t id = rows.allocate(granules);
      if (id == RowSpace::kFull)
        break;
      uint8_t mark = static_cast<uint8_t>(random());
      memset(rows.address(id), mark, static_cast<size_t>(granules) * kGranuleBytes);
      blocks.push_back({id, static_cast<uint64_t>(granules), mark});
    }
    // What is needed has not been written over.
    GranuleBits live;
    live.reset(rows.used());
    std::erase_if(blocks, [&](const Block &) { return random() % 2; });
    for (const Block &block : blocks) {
      for (uint64_t k = 0; k < block.granules * kGranuleBytes; ++k)
        ASSERT_EQ(rows.address(block.id)[k], block.mark);
      live.set(block.id - rows.first(), block.id - rows.first() + block.granules);
    }
    EXPECT_TRUE(rows.damagedGuards().empty());
    rows.reclaim(live);
  }
}

INSTANTIATE_TEST_SUITE_P(Guards, Rows, testing::Bool());

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

// data Chain = End | Link(value: f32[?], next: Chain)
enum : uint32_t { kInt, kVector, kPair, kList, kPairs, kChain, kFixed };

Model rootModel() {
  Model model;
  auto &types = model.types.types;
  types.resize(7);
  types[kVector].kind = TypeKind::Tensor;
  types[kVector].shape = {-1};
  types[kPair].kind = TypeKind::Tuple;
  types[kPair].children = {kInt, kVector};
  types[kList].kind = TypeKind::List;
  types[kList].children = {kVector};
  types[kPairs].kind = TypeKind::List;
  types[kPairs].children = {kPair};
  types[kChain].kind = TypeKind::Data;
  types[kFixed].kind = TypeKind::Tensor;
  types[kFixed].shape = {3, 17};
  model.types.data.push_back(
      {"Chain", {{"End", {}, {}}, {"Link", {"value", "next"}, {kVector, kChain}}}});
  model.roots.emplace();
  return model;
}

class Roots : public testing::Test {
protected:
  Roots()
      : meter(uint64_t(1) << 30), memory(10, uint64_t(1) << 30),
        rows(10, memory, meter, count, false),
        heap(meter, count, uint64_t(1) << 30, /*hostile=*/true), lists(heap, /*chained=*/true),
        facts(model.types), live(model, facts, meter, count) {}

  /// The slots of a vector of `granules` granules.
  std::vector<Slot> vector(int64_t granules) {
    uint64_t id = rows.allocate(granules);
    return {TensorHandle{static_cast<uint32_t>(id), 5}.pack(), granules * 16};
  }
  void begin() {
    live.begin(rows, &heap);
    expected.reset(rows.used());
  }
  void expect(const std::vector<Slot> &vector) {
    uint64_t at = TensorHandle::unpack(vector[0]).id - rows.first();
    expected.set(at, at + static_cast<uint64_t>(vector[1] / 16));
  }
  void check() {
    for (uint64_t k = 0; k < expected.size(); ++k)
      ASSERT_EQ(live.bits().any(k, k + 1), expected.any(k, k + 1)) << "granule " << k;
  }
  const RootFrame *frame(int64_t place, std::vector<Slot> slots, const RootFrame *caller) {
    slots.insert(slots.begin(), {std::bit_cast<Slot>(caller), place});
    return reinterpret_cast<const RootFrame *>(frames.emplace_back(std::move(slots)).data());
  }

  Model model = rootModel();
  MemoryMeter meter;
  MemoryKind count;
  HostRows memory;
  RowSpace rows;
  Heap heap;
  Lists lists;
  TypeFacts facts;
  LiveValues live;
  GranuleBits expected;
  std::deque<std::vector<Slot>> frames;
};

TEST_F(Roots, TensorsOfEveryShape) {
  std::vector<Slot> a = vector(3), b = vector(2), c = vector(4);
  uint64_t fixed = rows.allocate(6); // 3 rows of two granules
  vector(5);
  begin();
  live.add(kVector, b.data());
  expect(b);
  Slot handle = TensorHandle{static_cast<uint32_t>(fixed), 0}.pack();
  live.add(kFixed, &handle);
  expected.set(fixed - rows.first(), fixed - rows.first() + 6);
  // A part of one, a parameter, what is kept at the other end, one without elements.
  std::vector<Slot> part{TensorHandle{TensorHandle::unpack(c[0]).id + 1, 0}.pack(), 32};
  live.add(kVector, part.data());
  expect(part);
  for (Slot id : {Slot(2), static_cast<Slot>(rows.capacity()) - 4})
    live.add(kVector, std::vector<Slot>{id, 16}.data());
  live.add(kFixed, std::vector<Slot>{2}.data());
  check();
}

TEST_F(Roots, ListsInPiecesAndTheirTails) {
  // Ten lists with one tail; the elements of a list that no one has are not needed.
  std::vector<std::vector<Slot>> vectors;
  ListObject *tail = lists.make(2, 0);
  for (int i = 0; i < 600; ++i) {
    vectors.push_back(vector(1));
    tail = lists.cons(vectors.back().data(), tail);
  }
  ListObject *dropped = tail;
  tail = lists.slice(tail, 200, 600); // without the last 200
  std::vector<ListObject *> all;
  std::vector<Slot> others;
  for (int i = 0; i < 10; ++i) {
    std::vector<Slot> head = vector(2);
    all.push_back(lists.cons(head.data(), tail));
    vectors.push_back(head);
  }
  (void)dropped;
  begin();
  for (ListObject *list : all) {
    Slot slot = std::bit_cast<Slot>(list);
    live.add(kList, &slot);
    // A tail of a tail
    slot = std::bit_cast<Slot>(lists.slice(list, 300, list->size));
    live.add(kList, &slot);
  }
  for (size_t i = 0; i < vectors.size(); ++i)
    if (i < 400 || i >= 600)
      expect(vectors[i]);
  check();
  // The elements that were dropped are in blocks of their own.
  heap.reclaim();
  EXPECT_GT(heap.reclaimed(), 0u);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i]->size, 401);
    EXPECT_EQ(all[i]->elements[0], vectors[600 + i][0]);
    const ListObject *flat = lists.flat(all[i]);
    for (size_t k = 0; k < 400; ++k)
      ASSERT_EQ(flat->elements[2 * (400 - k)], vectors[k][0]);
  }
}

TEST_F(Roots, SharedDataOfAnyDepth) {
  // Two chains, each a million long, which share their ends.
  std::vector<Slot> first = vector(1), other = vector(1);
  auto link = [&](const std::vector<Slot> &value, Slot next) {
    auto *object = static_cast<Slot *>(heap.allocate(4 * sizeof(Slot)));
    object[0] = 1;
    object[1] = value[0];
    object[2] = value[1];
    object[3] = next;
    return std::bit_cast<Slot>(object);
  };
  static const Slot end = 0;
  Slot chain = std::bit_cast<Slot>(&end);
  std::vector<Slot> middle;
  for (int i = 0; i < 100000; ++i)
    chain = link(i == 50000 ? middle = vector(3) : first, chain);
  Slot a = link(other, chain), b = link(first, chain);
  vector(4);
  begin();
  live.add(kChain, &a);
  live.add(kChain, &b);
  expect(first);
  expect(other);
  expect(middle);
  check();
}

TEST_F(Roots, FramesWithListsThatAreBeingMadeAndForks) {
  model.roots = {{{RootDesc::Value, kVector}, {RootDesc::List, kPair}},
                 {{RootDesc::Fork, kPair}, {RootDesc::Value, kList}, {RootDesc::Forks, kPair}}};
  std::vector<Slot> a = vector(1), b = vector(2), c = vector(3), d = vector(4), e = vector(5),
                    unused = vector(6);
  // Of eight places two are written.
  ListObject *made = lists.make(3, 8);
  std::fill_n(made->elements, 24, Slot(-1));
  for (auto [i, of] : {std::pair(0, &b), std::pair(1, &c)}) {
    made->elements[3 * i] = i;
    std::copy_n(of->data(), 2, made->elements + 3 * i + 1);
  }
  ListObject *list = lists.cons(d.data(), lists.make(2, 0));
  // Of four calls one has ended, one ran at once, one still runs, one failed.
  Task ended, runs, failed;
  ended.state = Task::Done;
  runs.state = Task::Waiting;
  failed.state = Task::Failed;
  Slot endedResults[] = {1, e[0], e[1]}, inlined[] = {2, d[0], d[1]}, none[] = {-1, -1, -1};
  Slot forks[] = {std::bit_cast<Slot>(&runs),   std::bit_cast<Slot>(&none[0]),
                  std::bit_cast<Slot>(&ended),  std::bit_cast<Slot>(&endedResults[0]),
                  std::bit_cast<Slot>(&failed), std::bit_cast<Slot>(&none[0])};
  const RootFrame *outer = frame(1,
                                 {0, std::bit_cast<Slot>(&inlined[0]), std::bit_cast<Slot>(list),
                                  std::bit_cast<Slot>(&forks[0]), 3},
                                 nullptr);
  const RootFrame *inner = frame(0, {a[0], a[1], std::bit_cast<Slot>(made), 2}, outer);
  begin();
  live.add(inner);
  for (const auto *needed : {&a, &b, &c, &d, &e})
    expect(*needed);
  check();
  begin();
  live.add(static_cast<const RootFrame *>(nullptr));
  check();
}

} // namespace

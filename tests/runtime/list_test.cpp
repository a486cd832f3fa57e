#include "runtime/walk/list.h"

#include "runtime/model/abi.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

using namespace sheaf::rt;

namespace {

struct Fixture {
  MemoryMeter meter{UINT64_MAX};
  MemoryKind count;
  Heap heap{meter, count, uint64_t(1) << 32, /*hostile=*/true};
  Lists lists;
  explicit Fixture(bool chained) : lists(heap, chained) {}

  std::vector<Slot> contents(const ListObject *list) const {
    std::vector<Slot> result;
    for (; list; list = list->buffer ? list->buffer->rest : nullptr)
      result.insert(result.end(), list->elements,
                    list->elements + firstPiece(list) * list->elementSlots);
    return result;
  }
};

class Chained : public testing::TestWithParam<bool> {};

// Every operation on any earlier list, checked against plain vectors; all lists stay as they were.
TEST_P(Chained, BehavesLikePlainVectors) {
  for (int64_t elementSlots : {1, 2, 3}) {
    Fixture f(GetParam());
    std::mt19937_64 random(static_cast<uint64_t>(elementSlots));
    std::vector<ListObject *> lists{f.lists.make(elementSlots, 0)};
    std::vector<std::vector<Slot>> expected{{}};
    auto element = [&] {
      std::vector<Slot> e(static_cast<size_t>(elementSlots));
      for (Slot &slot : e)
        slot = static_cast<Slot>(random() % 1000);
      return e;
    };
    for (int step = 0; step < 4000; ++step) {
      // Mostly build on recent lists, sometimes on old ones.
      auto pick = [&] {
        size_t back =
            random() % 4 ? random() % std::min<size_t>(lists.size(), 4) : random() % lists.size();
        return lists.size() - 1 - back;
      };
      size_t i = pick();
      ListObject *list = lists[i], *made = nullptr;
      std::vector<Slot> now = expected[i];
      switch (random() % 8) {
      case 0:
      case 1: {
        auto e = element();
        made = f.lists.cons(e.data(), list);
        now.insert(now.begin(), e.begin(), e.end());
        break;
      }
      case 2: {
        auto e = element();
        made = f.lists.append(list, e.data());
        now.insert(now.end(), e.begin(), e.end());
        break;
      }
      case 3: {
        size_t j = pick();
        if (now.size() + expected[j].size() > 600)
          continue;
        made = f.lists.concat(list, lists[j]);
        now.insert(now.end(), expected[j].begin(), expected[j].end());
        break;
      }
      case 4: {
        int64_t lo = list->size ? int64_t(random() % uint64_t(list->size + 1)) : 0;
        int64_t hi = lo + int64_t(random() % uint64_t(list->size - lo + 1));
        if (random() % 2)
          hi = list->size;
        made = f.lists.slice(list, lo, hi);
        now.assign(expected[i].begin() + lo * elementSlots,
                   expected[i].begin() + hi * elementSlots);
        break;
      }
      case 5: {
        made = f.lists.reverse(list);
        now.clear();
        for (int64_t k = list->size; k-- > 0;)
          now.insert(now.end(), expected[i].begin() + k * elementSlots,
                     expected[i].begin() + (k + 1) * elementSlots);
        break;
      }
      case 6:
        made = f.lists.flat(list);
        ASSERT_EQ(firstPiece(made), made->size);
        break;
      case 7:
        if (list->size == 0)
          continue;
        made = f.lists.slice(list, 1, list->size);
        now.erase(now.begin(), now.begin() + elementSlots);
        break;
      }
      ASSERT_NE(made, nullptr);
      ASSERT_EQ(made->size * elementSlots, int64_t(now.size()));
      ASSERT_EQ(made->elementSlots, elementSlots);
      if (made->size > 0) {
        ASSERT_EQ(made->elements[0], now[0]) << "the first element is always in place";
      }
      lists.push_back(made);
      expected.push_back(now);
    }
    for (size_t i = 0; i < lists.size(); ++i)
      ASSERT_EQ(f.contents(lists[i]), expected[i]) << "list " << i;
  }
}

// Inputs have no buffer and are never written.
TEST_P(Chained, InputsAreOnlyRead) {
  Fixture f(GetParam());
  Slot slots[4] = {1, 2, 3, 4};
  ListObject input{slots + 1, 2, 1, nullptr};
  Slot nine = 9;
  EXPECT_EQ(f.contents(f.lists.cons(&nine, &input)), (std::vector<Slot>{9, 2, 3}));
  EXPECT_EQ(f.contents(f.lists.append(&input, &nine)), (std::vector<Slot>{2, 3, 9}));
  ListObject *tail = f.lists.slice(&input, 1, 2);
  EXPECT_EQ(f.contents(f.lists.cons(&nine, tail)), (std::vector<Slot>{9, 3}));
  EXPECT_EQ(f.contents(f.lists.concat(&input, &input)), (std::vector<Slot>{2, 3, 2, 3}));
  EXPECT_EQ(f.contents(&input), (std::vector<Slot>{2, 3}));
  EXPECT_EQ(slots[0], 1);
  EXPECT_EQ(slots[3], 4);
}

TEST_P(Chained, EmptyAndImpossible) {
  Fixture f(GetParam());
  ListObject *empty = f.lists.make(2, 0);
  EXPECT_EQ(empty->size, 0);
  EXPECT_EQ(f.lists.concat(empty, empty)->size, 0);
  EXPECT_EQ(f.lists.reverse(empty)->size, 0);
  EXPECT_EQ(f.lists.slice(empty, 0, 0)->size, 0);
  EXPECT_EQ(f.lists.make(1, -1), nullptr);
  EXPECT_EQ(f.lists.make(1, INT64_MAX / 2), nullptr);
  EXPECT_EQ(f.lists.make(int64_t(1) << 20, int64_t(1) << 44), nullptr);
  MemoryMeter meter(8192);
  MemoryKind count;
  Heap heap(meter, count, uint64_t(1) << 30, /*hostile=*/false);
  Lists lists(heap, GetParam());
  EXPECT_EQ(lists.make(1, 4096), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Lists, Chained, testing::Bool(),
                         [](const auto &info) { return info.param ? "chained" : "copied"; });

//===----------------------------------------------------------------------===//
// Growth rates: bytes used by n operations, which bound the slots copied
//===----------------------------------------------------------------------===//

template <typename F> uint64_t bytesFor(bool chained, int64_t n, F f) {
  Fixture fixture(chained);
  f(fixture.lists, n);
  return fixture.heap.handedOut();
}

void conses(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < n; ++i)
    list = lists.cons(&i, list);
  ASSERT_EQ(lists.flat(list)->elements[0], n - 1);
  ASSERT_EQ(list->elements[n - 1], 0);
}

void appends(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < n; ++i)
    list = lists.append(list, &i);
  ASSERT_EQ(list->elements[n - 1], n - 1);
}

void tails(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, n);
  for (Slot i = 0; i < n; ++i)
    list->elements[i] = i;
  for (Slot i = 0; i < n; ++i) {
    ASSERT_EQ(list->elements[0], i);
    list = lists.slice(list, 1, list->size);
  }
  ASSERT_EQ(list->size, 0);
}

void queue(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < 50; ++i)
    list = lists.append(list, &i);
  for (Slot i = 0; i < n; ++i) {
    list = lists.append(list, &i);
    list = lists.slice(list, 1, list->size);
  }
  ASSERT_EQ(list->size, 50);
}

void bothEnds(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < n; ++i)
    list = i % 2 ? lists.append(list, &i) : lists.cons(&i, list);
  ASSERT_EQ(list->size, n);
}

void concats(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < n; ++i) {
    Slot pair[2] = {i, i};
    ListObject *two = lists.make(1, 2);
    std::copy_n(pair, 2, two->elements);
    list = i % 2 ? lists.concat(list, two) : lists.concat(two, list);
  }
  ASSERT_EQ(list->size, 2 * n);
}

// A stack that is popped and pushed at height n.
void stackMachine(Lists &lists, int64_t n) {
  ListObject *list = lists.make(1, 0);
  for (Slot i = 0; i < n; ++i)
    list = lists.cons(&i, list);
  for (Slot i = 0; i < n; ++i) {
    int64_t many = 1 + i % 9;
    list = lists.slice(list, many, list->size);
    for (Slot k = 0; k < many; ++k)
      list = lists.cons(&k, list);
  }
  ASSERT_EQ(list->size, n);
}

void checkLinear(bool chained, void (*f)(Lists &, int64_t), const char *what) {
  uint64_t small = bytesFor(chained, 100000, f), large = bytesFor(chained, 1000000, f);
  EXPECT_LT(large, 16 * small) << what;
  EXPECT_LT(large, uint64_t(1000000) * 1200) << what;
}

TEST(ListGrowth, LinearInBytes) {
  for (bool chained : {false, true}) {
    checkLinear(chained, conses, "cons");
    checkLinear(chained, appends, "append");
    checkLinear(chained, tails, "tail");
    checkLinear(chained, queue, "append and tail");
    checkLinear(chained, bothEnds, "cons and append");
    checkLinear(chained, concats, "concat");
  }
  checkLinear(true, stackMachine, "pop and push");
}

// Many lists built on one: each costs what it adds.
TEST(ListGrowth, BranchesShareTheirTail) {
  auto branches = [](Lists &lists, int64_t n) {
    ListObject *base = lists.make(1, n);
    std::fill_n(base->elements, n, 5);
    for (Slot i = 0; i < 1000; ++i) {
      ListObject *list = base;
      for (int k = 0; k < 20; ++k)
        list = lists.cons(&i, list);
      ASSERT_EQ(list->size, n + 20);
      ASSERT_EQ(list->elements[0], i);
    }
  };
  uint64_t bytes = bytesFor(true, 100000, branches);
  EXPECT_LT(bytes, uint64_t(16) << 20);
}

} // namespace

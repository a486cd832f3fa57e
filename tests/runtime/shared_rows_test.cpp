// Pages that several rooms of rows show: what each reads, what stays, and what it counts for.

#include "runtime/memory/shared_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace sheaf::rt {
namespace {

/// The machine's pages, of which so many mappings are allowed, as if that were its limit.
class FewPages final : public RowPages {
public:
  explicit FewPages(uint8_t *rows) : pages_(HostPages::make(rows)) {}

  uint64_t most = UINT64_MAX;  ///< mappings
  uint64_t shows = UINT64_MAX; ///< so many more times pages are shown
  bool restores = true;
  uint64_t mappings = 0;

  bool isThere() const { return pages_ != nullptr; }
  uint64_t pageGranules() const override { return pages_->pageGranules(); }
  bool take(uint64_t count) override {
    if (mappings + count > most || !pages_->take(count))
      return false;
    mappings += count;
    return true;
  }
  void giveBack(uint64_t count) override {
    mappings -= count;
    pages_->giveBack(count);
  }
  bool show(uint64_t at, uint64_t page, uint64_t pages, bool mayWrite) override {
    return shows > 0 && shows-- > 0 && pages_->show(at, page, pages, mayWrite);
  }
  void hide(uint64_t at, uint64_t pages) override { pages_->hide(at, pages); }
  bool restore(uint64_t at, uint64_t pages) override {
    return restores && pages_->restore(at, pages);
  }
  void drop(uint64_t page, uint64_t pages) override { pages_->drop(page, pages); }

private:
  std::unique_ptr<HostPages> pages_;
};

class Memory final : public RowMemory {
public:
  uint8_t *host() const override { return rows_.host(); }
  uint64_t capacity() const override { return rows_.capacity(); }
  void fill(const RowRange &rows, uint8_t byte) override { rows_.fill(rows, byte); }
  void release(const RowRange &rows) override { rows_.release(rows); }
  void copyOut(const RowRange &) override {}
  RowPages *pages() override { return &few; }

private:
  HostRows rows_{0, uint64_t(64) << 20};

public:
  FewPages few{rows_.host()};
};

struct SharedRowsTest : testing::TestWithParam<bool> {
  void SetUp() override {
    if (!memory.few.isThere())
      GTEST_SKIP() << "the machine shows no page twice";
  }

  int64_t granules(uint64_t pages) const { return static_cast<int64_t>(pages * page); }
  uint8_t *at(uint64_t id, uint64_t number) { return rows.address(id + number * page); }
  /// Writes `value` into each of a room's pages from `begin` on.
  void write(uint64_t id, uint64_t begin, uint64_t end, uint8_t value) {
    for (uint64_t i = begin; i < end; ++i)
      memset(at(id, i), value, pageBytes());
  }
  /// What all bytes of a page are.
  int read(uint64_t id, uint64_t number) {
    const uint8_t *bytes = at(id, number);
    return memcmp(bytes, bytes + 1, pageBytes() - 1) == 0 ? bytes[0] : -1;
  }
  /// Keeps rooms, of so many pages, and takes back all other rows.
  void keep(const std::map<uint64_t, uint64_t> &rooms) {
    GranuleBits live;
    live.reset(rows.used());
    for (auto [id, pages] : rooms)
      live.set(id - rows.first(), id - rows.first() + 1);
    shared.keep(live);
    for (auto [id, pages] : rooms)
      EXPECT_GE(live.next(id - rows.first(), false), id - rows.first() + pages * page);
    rows.reclaim(live);
  }
  uint64_t pagesHeld() const { return rows.held() / page; }

  Memory memory;
  MemoryMeter meter{uint64_t(32) << 20};
  MemoryKind rowBytes, count;
  RowSpace rows{0, memory, meter, rowBytes, GetParam()};
  SharedRows shared{rows, meter, count, GetParam()};
  uint64_t page = pageBytes() / kGranuleBytes;
};

TEST_P(SharedRowsTest, PagesAreSharedAndEachCountsOnce) {
  uint64_t a = shared.make(8, 0, 0);
  ASSERT_NE(a, RowSpace::kFull);
  EXPECT_EQ(a % page, 0u);
  EXPECT_TRUE(shared.has(a));
  if (GetParam())
    EXPECT_EQ(read(a, 7), 0xFF); // whoever reads it shall notice
  write(a, 0, 8, 1);
  uint64_t before = pagesHeld();
  uint64_t b = shared.make(10, a, 5);
  ASSERT_NE(b, RowSpace::kFull);
  EXPECT_LE(pagesHeld(), before + 6); // with what lies before a page
  write(b, 5, 10, 2);
  write(a, 5, 8, 3); // which b does not have
  EXPECT_EQ(read(b, 0), 1);
  EXPECT_EQ(read(b, 4), 1);
  EXPECT_EQ(read(b, 5), 2);
  EXPECT_EQ(read(a, 5), 3);
  write(a, 0, 1, 4); // it is the same memory
  EXPECT_EQ(read(b, 0), 4);
}

TEST_P(SharedRowsTest, APageIsThereAsLongAsAnyRoomShowsIt) {
  for (bool first : {true, false}) {
    uint64_t begin = count.now, held = rows.held();
    uint64_t a = shared.make(8, 0, 0);
    write(a, 0, 8, 1);
    uint64_t b = shared.make(8, a, 6);
    write(b, 6, 8, 2);
    uint64_t c = shared.make(9, b, 7); // a branch of a branch
    write(c, 7, 9, 3);
    std::map<uint64_t, uint64_t> rooms{{a, 8}, {b, 8}, {c, 9}};
    for (uint64_t gone : first ? std::vector{a, b} : std::vector{b, a}) {
      rooms.erase(gone);
      keep(rooms);
      EXPECT_FALSE(shared.has(gone));
      EXPECT_EQ(read(c, 0), 1);
      EXPECT_EQ(read(c, 5), 1);
      EXPECT_EQ(read(c, 6), 2);
      EXPECT_EQ(read(c, 8), 3);
    }
    // Addresses are used again at once, with other pages.
    uint64_t d = shared.make(8, 0, 0);
    write(d, 0, 8, 9);
    EXPECT_EQ(read(c, 0), 1);
    EXPECT_EQ(read(c, 6), 2);
    rooms[d] = 8;
    keep(rooms);
    // 9 pages of c, 8 of d, and what lies beside them.
    EXPECT_LE(pagesHeld(), 9u + 8 + 2 * 2);
    keep({});
    EXPECT_EQ(count.now, begin);
    EXPECT_EQ(rows.held(), held);
    EXPECT_EQ(rows.used(), rows.held());
    EXPECT_EQ(memory.few.mappings, 0u);
  }
}

TEST_P(SharedRowsTest, RowsThatWereRoomsAreRowsAgain) {
  uint64_t a = shared.make(16, 0, 0);
  write(a, 0, 16, 1);
  uint64_t b = shared.make(16, a, 12);
  shared.forget();
  rows.reset();
  EXPECT_EQ(rows.held(), 0u);
  EXPECT_EQ(count.now, 0u);
  uint64_t plain = rows.allocate(granules(40));
  ASSERT_NE(plain, RowSpace::kFull);
  memset(rows.address(plain), 7, 40 * pageBytes());
  memset(at(b, 0), 8, pageBytes());
  EXPECT_EQ(read(a, 0), 7); // they are two
  EXPECT_EQ(read(b, 0), 8);
}

TEST_P(SharedRowsTest, EqualRowsBecomeCommon) {
  uint64_t id = (rows.allocate(granules(9)) + page - 1) / page * page;
  memset(rows.address(id), 5, 8 * pageBytes());
  uint64_t copy = shared.make(8, 0, 0);
  write(copy, 0, 8, 5);
  uint64_t held = pagesHeld();
  ASSERT_TRUE(shared.join(id, copy, 6));
  EXPECT_EQ(pagesHeld(), held - 6);
  memset(at(id, 6), 6, pageBytes()); // the rest is its own
  EXPECT_EQ(read(copy, 6), 5);
  EXPECT_EQ(shared.worthSharing(id, 8, 0), 6u);
  uint64_t other = shared.make(8, id, 6);
  write(other, 6, 8, 7);
  keep({{id, 6}, {other, 8}});
  EXPECT_EQ(read(id, 0), 5);
  EXPECT_EQ(read(other, 5), 5);
  keep({{other, 8}});
  EXPECT_EQ(read(other, 0), 5);
}

TEST_P(SharedRowsTest, WhatAValueHoldsIsKnown) {
  uint64_t a = shared.make(8, 0, 0), b = shared.make(10, a, 5);
  std::vector<RowRange> ofA, ofB;
  shared.addMemory({a, 8 * page}, ofA);
  shared.addMemory({b, 10 * page}, ofB);
  ASSERT_EQ(ofA.size(), 1u);
  ASSERT_EQ(ofB.size(), 2u);
  EXPECT_EQ(ofA[0].granules, 8 * page);
  EXPECT_EQ(ofB[0].begin, ofA[0].begin);
  EXPECT_EQ(ofB[0].granules, 5 * page);
  EXPECT_EQ(ofB[1].granules, 5 * page);
  std::vector<RowRange> inside;
  shared.addMemory({b + 4 * page + 1, page}, inside);
  ASSERT_EQ(inside.size(), 2u);
  EXPECT_EQ(inside[0].begin, ofB[0].end() - page + 1);
  EXPECT_EQ(inside[1].begin, ofB[1].begin);
  EXPECT_EQ(inside[1].granules, 1u);
}

TEST_P(SharedRowsTest, ShortPiecesAreNotWorthAMapping) {
  uint64_t a = shared.make(20, 0, 0), b = shared.make(22, a, 20), c = shared.make(40, b, 21);
  EXPECT_EQ(shared.worthSharing(a, 20, 8), 20u);
  EXPECT_EQ(shared.worthSharing(a, 4, 8), 0u);
  EXPECT_EQ(shared.worthSharing(a, 30, 8), 20u);
  EXPECT_EQ(shared.worthSharing(c, 40, 8), 40u);
  EXPECT_EQ(shared.worthSharing(c, 22, 8), 20u); // of 20, 1 and 19
  EXPECT_EQ(shared.worthSharing(c, 22, 0), 22u);
  EXPECT_EQ(shared.worthSharing(a + page, 4, 0), 0u);
}

TEST_P(SharedRowsTest, WhatIsRefusedLeavesNothing) {
  uint64_t a = shared.make(8, 0, 0);
  write(a, 0, 8, 1);
  uint64_t b = shared.make(8, a, 4);
  uint64_t held = rows.held(), counted = count.now;
  memory.few.most = memory.few.mappings + 1;
  EXPECT_EQ(shared.make(8, b, 4), RowSpace::kFull); // two are needed
  EXPECT_EQ(rows.held(), held);
  EXPECT_EQ(count.now, counted);
  memory.few.most = UINT64_MAX;
  for (uint64_t shows : {0, 1}) {
    memory.few.shows = shows;
    EXPECT_EQ(shared.make(8, b, 4), RowSpace::kFull);
    EXPECT_LE(rows.held(), held + 2 * page); // beside the addresses, which stay
    EXPECT_EQ(count.now, counted);
  }
  memory.few.shows = UINT64_MAX;
  uint64_t much = (uint64_t(64) << 20) / pageBytes();
  EXPECT_EQ(shared.make(much, a, 4), RowSpace::kFull); // memory
  uint64_t c = shared.make(8, b, 4);
  ASSERT_NE(c, RowSpace::kFull);
  EXPECT_EQ(read(c, 3), 1);
  // Addresses that the machine does not give back are used for rooms alone.
  memory.few.restores = false;
  keep({});
  EXPECT_EQ(count.now, counted - 2 * 224 - 224); // no room is left
  uint64_t plain = rows.allocate(granules(4));
  memset(rows.address(plain), 3, 4 * pageBytes());
  EXPECT_THROW(shared.forget(), std::bad_alloc);
  memory.few.restores = true;
  shared.forget();
  rows.reset();
  EXPECT_EQ(rows.held(), 0u);
}

// Rooms that come and go in any order, of each other, against a model of what each has to hold.
TEST_P(SharedRowsTest, RandomRooms) {
  std::mt19937 random(1);
  auto below = [&](uint64_t n) {
    return std::uniform_int_distribution<uint64_t>(0, n - 1)(random);
  };
  struct Held {
    std::vector<uint8_t> pages;
    uint64_t shared = 0; ///< of the first ones, which nothing may be written to
  };
  std::map<uint64_t, Held> rooms;
  uint8_t next = 0;
  for (int step = 0; step < 600; ++step) {
    uint64_t from = 0, common = 0, size = 1 + below(12);
    if (!rooms.empty() && below(4) > 0) {
      auto it = std::next(rooms.begin(), static_cast<ptrdiff_t>(below(rooms.size())));
      from = it->first;
      common = shared.worthSharing(from, below(it->second.pages.size() + 1), below(3));
      it->second.shared = std::max(it->second.shared, common);
    }
    uint64_t id = shared.make(common + size, from, common);
    if (id != RowSpace::kFull) {
      Held held;
      if (common > 0)
        held.pages.assign(rooms.at(from).pages.begin(),
                          rooms.at(from).pages.begin() + static_cast<ptrdiff_t>(common));
      held.shared = common;
      for (uint64_t i = common; i < common + size; ++i) {
        held.pages.push_back(++next);
        write(id, i, i + 1, next);
      }
      EXPECT_TRUE(rooms.emplace(id, held).second);
    }
    rows.allocate(static_cast<int64_t>(below(200)));
    // One that may still be written to, after what others have.
    if (!rooms.empty()) {
      auto &[at, held] = *std::next(rooms.begin(), static_cast<ptrdiff_t>(below(rooms.size())));
      for (uint64_t i = held.shared; i < held.pages.size(); ++i)
        write(at, i, i + 1, held.pages[i] = ++next);
    }
    if (below(3) == 0) {
      std::map<uint64_t, uint64_t> stay;
      std::erase_if(rooms,
                    [&](auto &) { return below(3) == 0 || (rooms.size() > 40 && below(2)); });
      for (auto &[at, held] : rooms)
        stay[at] = held.pages.size();
      keep(stay);
    }
    for (auto &[at, held] : rooms)
      for (uint64_t i = 0; i < held.pages.size(); ++i)
        ASSERT_EQ(read(at, i), held.pages[i]) << step;
    ASSERT_EQ(rows.damagedGuards().size(), 0u);
  }
  keep({});
  EXPECT_EQ(count.now, 0u);
  EXPECT_EQ(rows.used(), rows.held());
  EXPECT_EQ(memory.few.mappings, 0u);
}

INSTANTIATE_TEST_SUITE_P(, SharedRowsTest, testing::Bool(),
                         [](auto &info) { return info.param ? "Hostile" : "Plain"; });

} // namespace
} // namespace sheaf::rt

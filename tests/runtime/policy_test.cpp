//===- policy_test.cpp - Other orders than that of depth ------------------===//

#include "runtime/schedule/policy.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

namespace sheaf::rt {
namespace {

/// Kernels: A and B read one row of 4 floats and make one; Pair reads two; Copy makes a row at a
/// place that it is given; All reads a stack of n rows.
enum : uint32_t { kA, kB, kPair, kCopy, kAll, kA2 };

Model model() {
  Model model;
  model.paramGranules = 2;
  auto kernel = [&](std::vector<RecordWord> layout) {
    KernelDesc &desc = model.kernels.emplace_back();
    desc.layout = std::move(layout);
    desc.words = static_cast<uint32_t>(desc.layout.size());
  };
  RecordWord row{RecordWord::Row, "x", {4}}, out{RecordWord::Out, "out"};
  kernel({row, out});
  kernel({row, out});
  kernel({row, row, out});
  kernel({row, out});
  kernel({{RecordWord::Row, "xs", {-1, 4}}, {RecordWord::Extent, "xs.0"}, out});
  kernel({row, out});
  model.kernels[kA2].family = kA;
  return model;
}

/// Records as host code would make them.
struct Book {
  Model described = model();
  MemoryMeter meter, rowMeter{uint64_t(1) << 30};
  MemoryKind kind, rowKind;
  HostRows memory;
  RowSpace rows;
  RowWords words{described};
  Scheduler scheduler;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int32_t>> buckets; ///< (depth, kernel)
  std::deque<std::vector<int32_t>> drained;
  std::map<int32_t, std::set<int32_t>> needs; ///< by the rows that a record makes
  Schedule schedule;

  explicit Book(uint64_t limit = uint64_t(1) << 30)
      : meter(limit), memory(described.paramGranules, uint64_t(1) << 24),
        rows(described.paramGranules, memory, rowMeter, rowKind, false),
        scheduler(described, words, meter, kind) {
    scheduler.beginRun(rows);
  }

  /// Makes a record of these words, with its own rows; returns where they begin.
  int32_t record(uint32_t kernel, uint32_t depth, std::vector<int32_t> words,
                 std::set<int32_t> needed, int64_t granules = 1) {
    auto id = static_cast<int32_t>(rows.allocate(granules));
    place(kernel, depth, std::move(words), std::move(needed), id);
    return id;
  }
  void place(uint32_t kernel, uint32_t depth, std::vector<int32_t> words, std::set<int32_t> needed,
             int32_t id) {
    words.push_back(id);
    std::vector<int32_t> &bucket = buckets[{depth, kernel}];
    bucket.insert(bucket.end(), words.begin(), words.end());
    needs[id] = std::move(needed);
  }
  int32_t one(uint32_t kernel, uint32_t depth, int32_t of) {
    return record(kernel, depth, {of}, {of});
  }
  /// A chain of `kernel` from depth `depth` on.
  int32_t chain(uint32_t kernel, uint32_t depth, int length, int32_t from) {
    for (int i = 0; i < length; ++i)
      from = one(kernel, depth++, from);
    return from;
  }

  /// Runs what was recorded; checks that all is there once and after what it needs.
  void flush(Policy policy) {
    size_t begin = schedule.size();
    std::set<int32_t> open;
    for (auto &[key, words] : buckets) {
      drained.push_back(std::move(words));
      uint32_t n = described.kernels[key.second].words;
      auto count = static_cast<int64_t>(drained.back().size() / n);
      schedule.push_back({key.first, key.second, drained.back().data(), count});
      for (int64_t i = 0; i < count; ++i)
        open.insert(drained.back()[static_cast<size_t>((i + 1) * n - 1)]);
    }
    buckets.clear();
    scheduler.arrange(policy, schedule, begin, rows);
    for (size_t i = begin; i < schedule.size();) {
      // Launches of one depth may run at the same time.
      std::set<int32_t> made;
      uint32_t depth = schedule[i].depth;
      EXPECT_TRUE(i == begin || schedule[i - 1].depth < depth);
      for (; i < schedule.size() && schedule[i].depth == depth; ++i) {
        uint32_t n = described.kernels[schedule[i].kernel].words;
        for (int64_t r = 0; r < schedule[i].count; ++r) {
          int32_t id = schedule[i].records[(r + 1) * n - 1];
          EXPECT_TRUE(open.contains(id) && made.insert(id).second) << id;
          for (int32_t other : needs[id])
            EXPECT_FALSE(open.contains(other)) << id << " before " << other;
        }
      }
      for (int32_t id : made)
        open.erase(id);
    }
    EXPECT_TRUE(open.empty());
  }
  std::vector<uint32_t> kernels() const {
    std::vector<uint32_t> result;
    for (const ScheduledBucket &launch : schedule)
      result.push_back(launch.kernel);
    return result;
  }
};

/// Three instances of A then B, one of six A and then B.
void unequal(Book &book) {
  for (int i = 0; i < 3; ++i)
    book.one(kB, 1, book.one(kA, 0, 0));
  book.one(kB, 6, book.chain(kA, 0, 6, 0));
}

TEST(Policy, LookAheadWaitsForTheLongestChain) {
  Book depth, agenda, ahead;
  for (Book *book : {&depth, &agenda, &ahead})
    unequal(*book);
  depth.flush(Policy::Depth);
  agenda.flush(Policy::Agenda);
  ahead.flush(Policy::LookAhead);
  EXPECT_EQ(depth.schedule.size(), 8u);
  // The records of B stand, on average, lower than what is left of A.
  EXPECT_EQ(agenda.kernels(), (std::vector<uint32_t>{kA, kB, kA, kA, kA, kA, kA, kB}));
  EXPECT_EQ(ahead.kernels(), (std::vector<uint32_t>{kA, kA, kA, kA, kA, kA, kB}));
  EXPECT_EQ(ahead.schedule.back().count, 4);
  for (Book *book : {&depth, &agenda, &ahead})
    EXPECT_EQ(book->scheduler.dependences(book->schedule, book->rows)->leastLaunches, 7u);
}

TEST(Policy, AgendaTakesTheLowestOnAverage) {
  Book book;
  // Depth runs B at 1 and 2, the agenda once.
  book.one(kB, 2, book.chain(kA, 0, 2, 0));
  book.one(kB, 1, book.one(kA, 0, 0));
  book.flush(Policy::Agenda);
  EXPECT_EQ(book.kernels(), (std::vector<uint32_t>{kA, kA, kB}));
}

TEST(Policy, LaunchesThatDoNotNeedEachOtherShareADepth) {
  for (Policy policy : {Policy::Agenda, Policy::LookAhead, Policy::Search}) {
    Book book;
    int32_t a = book.one(kA, 0, 0), b = book.one(kB, 0, 0);
    book.record(kPair, 1, {a, b}, {a, b});
    book.flush(policy);
    ASSERT_EQ(book.schedule.size(), 3u);
    EXPECT_EQ(book.schedule[0].depth, book.schedule[1].depth);
    EXPECT_LT(book.schedule[1].depth, book.schedule[2].depth);
  }
}

TEST(Policy, OneFamilyRunsInOneLaunch) {
  Book book;
  book.one(kA, 0, 0);
  book.one(kA2, 3, book.chain(kB, 0, 3, 0));
  book.one(kA2, 0, 0);
  book.flush(Policy::LookAhead);
  EXPECT_EQ(book.kernels(), (std::vector<uint32_t>{kB, kB, kB, kA}));
  EXPECT_EQ(book.schedule.back().count, 3);
}

TEST(Policy, AStackNeedsAllItsRows) {
  for (Policy policy : {Policy::Agenda, Policy::LookAhead, Policy::Search}) {
    Book book;
    // Two stacks one after the other; rows of the first are ready at depths 1 to 4.
    int32_t rows[4];
    for (int i = 0; i < 4; ++i)
      rows[i] = book.chain(kA, 0, i + 1, 0);
    auto first = static_cast<int32_t>(book.rows.allocate(4));
    for (int i = 0; i < 4; ++i)
      book.place(kCopy, static_cast<uint32_t>(i) + 1, {rows[i]}, {rows[i]}, first + i);
    auto second = static_cast<int32_t>(book.rows.allocate(1));
    book.place(kCopy, 0, {1}, {}, second);
    int32_t of = book.record(kAll, 5, {first, 4}, {first, first + 1, first + 2, first + 3});
    book.record(kAll, 1, {second, 1}, {second});
    // One row of it needs that alone.
    book.record(kB, 3, {first + 1}, {first + 1});
    book.one(kB, 6, of);
    book.flush(policy);
    EXPECT_EQ(book.scheduler.dependences(book.schedule, book.rows)->leastLaunches, 4u + 1 + 1 + 1);
  }
}

TEST(Policy, RecordsWithoutRowsMayStandAnywhere) {
  for (Policy policy : {Policy::Agenda, Policy::LookAhead, Policy::Search}) {
    Book book;
    int32_t a = book.one(kA, 0, 0);
    // An empty stack's results have no rows: they begin where the next record's do.
    int32_t empty = book.record(kAll, 1, {a, 0}, {}, 0);
    int32_t b = book.record(kB, 1, {a}, {a});
    ASSERT_EQ(empty, b);
    book.needs[b] = {a};
    book.one(kA, 2, b);
    size_t begin = book.schedule.size();
    for (auto &[key, words] : book.buckets) {
      book.drained.push_back(words);
      book.schedule.push_back({key.first, key.second, book.drained.back().data(), 1});
    }
    book.scheduler.arrange(policy, book.schedule, begin, book.rows);
    std::vector<uint32_t> order = book.kernels();
    std::erase(order, kAll); // needs nothing, and nothing needs it
    EXPECT_EQ(order, (std::vector<uint32_t>{kA, kB, kA}));
    book.buckets.clear();
  }
}

TEST(Policy, WhatInstancesBringIsReady) {
  Book book;
  book.chain(kA, 0, 3, 0);
  auto input = static_cast<int32_t>(book.rows.allocate(2));
  book.scheduler.addInputs(static_cast<uint64_t>(input));
  // Its row stands after those of the chain, which it does not need.
  book.one(kB, 0, input + 1);
  book.flush(Policy::LookAhead);
  EXPECT_EQ(book.scheduler.dependences(book.schedule, book.rows)->leastLaunches, 4u);
  EXPECT_EQ(book.schedule[0].depth, book.schedule[1].depth);
}

TEST(Policy, EarlierFlushesAreReady) {
  for (Policy policy : {Policy::Agenda, Policy::LookAhead, Policy::Search}) {
    Book book;
    int32_t a = book.chain(kA, 0, 2, 0);
    book.flush(policy);
    size_t begin = book.schedule.size();
    book.one(kB, 2, a);
    book.one(kA, 2, a);
    book.flush(policy);
    ASSERT_EQ(book.schedule.size(), begin + 2);
    EXPECT_EQ(book.schedule[begin].depth, book.schedule[begin + 1].depth);
    EXPECT_EQ(book.scheduler.dependences(book.schedule, book.rows)->leastLaunches, 4u);
  }
}

TEST(Policy, KeptRowsOfTheMiniBatchAreFollowed) {
  Book book;
  auto kept = static_cast<int32_t>(book.rows.keep(1));
  book.place(kB, 0, {1}, {}, kept);
  book.one(kA, 1, kept);
  book.flush(Policy::LookAhead);
  EXPECT_EQ(book.kernels(), (std::vector<uint32_t>{kB, kA}));
}

/// Whether all of a graph runs in this sequence of families.
bool suffices(const std::vector<uint32_t> &families, const std::vector<uint32_t> &familyOf,
              const std::vector<std::vector<uint32_t>> &needs) {
  std::vector<bool> ran(familyOf.size());
  size_t count = 0;
  for (uint32_t family : families) {
    std::vector<uint32_t> now;
    for (uint32_t record = 0; record < ran.size(); ++record)
      if (!ran[record] && familyOf[record] == family &&
          std::all_of(needs[record].begin(), needs[record].end(),
                      [&](uint32_t other) { return ran[other]; }))
        now.push_back(record);
    for (uint32_t record : now)
      ran[record] = true;
    count += now.size();
  }
  return count == ran.size();
}

/// Instances of different lengths; a node reads one or two of the last of its instance.
struct RandomGraph {
  std::vector<uint32_t> familyOf;
  std::vector<std::vector<uint32_t>> needs;

  RandomGraph(Book &book, std::mt19937 &random, uint32_t most) {
    auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    std::map<int32_t, uint32_t> numberOf;
    for (uint32_t instance = 0, instances = 1 + below(most); instance < instances; ++instance) {
      std::vector<std::pair<int32_t, uint32_t>> made; // rows and their depth
      for (uint32_t i = 0, length = 1 + below(20); i < length; ++i) {
        uint32_t kernel = below(3);
        std::vector<int32_t> words;
        std::set<int32_t> reads;
        uint32_t depth = 0;
        for (uint32_t row = 0; row < (kernel == kPair ? 2 : 1); ++row) {
          if (made.empty()) {
            words.push_back(0);
            continue;
          }
          auto [id, at] =
              made[made.size() - 1 - below(std::min<uint32_t>(3, uint32_t(made.size())))];
          words.push_back(id);
          reads.insert(id);
          depth = std::max(depth, at + 1);
        }
        int32_t id = book.record(kernel, depth, words, reads);
        made.emplace_back(id, depth);
        numberOf[id] = static_cast<uint32_t>(familyOf.size());
        familyOf.push_back(kernel);
        std::vector<uint32_t> &needed = needs.emplace_back();
        for (int32_t other : reads)
          needed.push_back(numberOf[other]);
      }
    }
  }
};

TEST(Policy, NoLaunchCouldBeLeftOut) {
  uint64_t depthLaunches = 0, aheadLaunches = 0, searchLaunches = 0;
  std::mt19937 random(1);
  for (int number = 0; number < 40; ++number) {
    size_t ahead = 0;
    std::mt19937 begin = random;
    for (Policy policy : {Policy::LookAhead, Policy::Search}) {
      Book book;
      random = begin;
      RandomGraph graph(book, random, 12);
      size_t depth = book.buckets.size();
      book.flush(policy);
      std::vector<uint32_t> order = book.kernels();
      EXPECT_TRUE(suffices(order, graph.familyOf, graph.needs));
      for (size_t i = 0; i < order.size(); ++i) {
        std::vector<uint32_t> without = order;
        without.erase(without.begin() + static_cast<ptrdiff_t>(i));
        EXPECT_FALSE(suffices(without, graph.familyOf, graph.needs))
            << "graph " << number << ", launch " << i;
      }
      if (policy == Policy::LookAhead) {
        depthLaunches += depth;
        aheadLaunches += ahead = order.size();
      } else {
        EXPECT_LE(order.size(), ahead) << "graph " << number;
        searchLaunches += order.size();
      }
    }
  }
  EXPECT_LT(aheadLaunches * 3, depthLaunches * 2);
  EXPECT_LT(searchLaunches * 100, aheadLaunches * 97);
}

/// The fewest launches that a graph can do with, by trying all orders, breadth first.
size_t fewestLaunches(const RandomGraph &graph) {
  std::set<uint64_t> reached = {0};
  uint64_t all = (uint64_t(1) << graph.familyOf.size()) - 1;
  for (size_t length = 0;; ++length) {
    if (reached.contains(all))
      return length;
    std::set<uint64_t> longer;
    for (uint64_t ran : reached)
      for (uint32_t family = 0; family < 3; ++family) {
        uint64_t then = ran;
        for (size_t record = 0; record < graph.familyOf.size(); ++record)
          if (graph.familyOf[record] == family &&
              std::all_of(graph.needs[record].begin(), graph.needs[record].end(),
                          [&](uint32_t other) { return ran >> other & 1; }))
            then |= uint64_t(1) << record;
        longer.insert(then);
      }
    reached = std::move(longer);
  }
}

TEST(Policy, SearchFindsTheFewestLaunchesOfSmallGraphs) {
  size_t graphs = 0, aheadMore = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Book ahead, search;
    std::mt19937 random(seed), again(seed);
    RandomGraph graph(ahead, random, 4), same(search, again, 4);
    if (graph.familyOf.size() > 60)
      continue;
    ++graphs;
    size_t fewest = fewestLaunches(graph);
    ahead.flush(Policy::LookAhead);
    search.flush(Policy::Search);
    EXPECT_EQ(search.schedule.size(), fewest) << "graph " << seed;
    aheadMore += ahead.schedule.size() > fewest;
  }
  EXPECT_GT(graphs, 40u);
  EXPECT_GT(aheadMore, 5u);
}

TEST(Policy, WhatNothingWaitsForRunsOnceInTheEnd) {
  // Every step has a result of its own, and something is made of one of them.
  Book book;
  int32_t result = 0;
  for (uint32_t length : {3u, 9u, 6u}) {
    int32_t row = 0;
    for (uint32_t depth = 0; depth < length; ++depth) {
      row = book.one(depth % 3 == 2 ? kB : kA, depth, row);
      result = book.record(kPair, depth + 1, {row, row}, {row});
    }
  }
  book.one(kCopy, 20, result);
  book.flush(Policy::Search);
  std::vector<uint32_t> order = book.kernels();
  ASSERT_EQ(order.size(), 11u);
  EXPECT_EQ(order[9], kPair);
  EXPECT_EQ(book.schedule[9].count, 18);
  EXPECT_EQ(order[10], kCopy);
}

TEST(Policy, LongChainsAreOrdered) {
  // Far longer than urgencies reach, or a search; the short ones wait for the turn of their kernel.
  for (Policy policy : {Policy::LookAhead, Policy::Search}) {
    Book book;
    for (int i = 0; i < 3; ++i) {
      int32_t row = 0;
      for (uint32_t depth = 0; depth < 30000; ++depth)
        row = book.one(depth % 2 ? kB : kA, depth, row);
      book.one(kB, 0, 0);
    }
    book.flush(policy);
    EXPECT_EQ(book.schedule.size(), 30000u);
  }
}

TEST(Policy, AllRecordsRunAfterASearch) {
  // Chains long enough for urgencies to differ by less than a bit, with an end that something
  // waits for.
  for (uint32_t length = 60; length < 640; length += 13)
    for (uint32_t chains : {1u, 4u}) {
      Book book;
      for (uint32_t i = 0; i < chains; ++i) {
        int32_t row = 0;
        uint32_t longest = length - 5 * i;
        for (uint32_t depth = 0; depth < longest; ++depth)
          row = book.one((depth * (i + 3) / 4) % 2 ? kB : kA, depth, row);
        book.one(kA, longest + 1, book.one(kB, longest, row));
      }
      book.flush(Policy::Search); // checks that all is there
    }
}

TEST(Policy, SearchesOfDenseGraphsEnd) {
  // Whatever reads all rows of its instance is asked for whenever one of them is made: a search of
  // this without a bound takes minutes.
  Book book;
  for (int instance = 0; instance < 2; ++instance) {
    std::set<int32_t> read;
    auto rows = static_cast<int32_t>(book.rows.allocate(1000));
    for (int32_t i = 0; i < 1000; ++i) { // ten chains, of A and B in several orders
      int32_t chain = i % 10, from = i < 10 ? 0 : rows + i - 10;
      book.place((i / 10 + chain) % (2 + chain % 3) ? kA : kB, static_cast<uint32_t>(i / 10),
                 {from}, {from}, rows + i);
      read.insert(rows + i);
    }
    int32_t row = 0;
    for (int i = 0; i < 1000; ++i)
      row = book.record(kAll, 100, {rows, 1000}, read);
    book.one(kA, 101, row);
  }
  book.flush(Policy::Search);
}

TEST(Policy, ShortMemoryLeavesTheOrderOfDepth) {
  for (uint64_t limit = 1 << 10; limit <= 1 << 22; limit *= 2) {
    Book book(limit);
    for (int i = 0; i < 200; ++i)
      unequal(book);
    book.flush(Policy::Search);
    EXPECT_TRUE(book.schedule.size() == 7 || book.schedule.size() == 8) << limit;
    book.scheduler.beginRun(book.rows);
  }
}

TEST(Policy, TrialTakesTheFastest) {
  PolicyTrial trial;
  for (int i = 0; !trial.chosen(); ++i) {
    ASSERT_LT(i, 100);
    uint64_t time = trial.next() == Policy::Agenda ? 90 : 100;
    // The first is slow: nothing is warm yet.
    trial.took(i < 3 ? 1000 : time, 10);
  }
  EXPECT_EQ(trial.next(), Policy::Agenda);
}

TEST(Policy, NamesAreRead) {
  for (Policy policy : kOrders)
    EXPECT_EQ(policyByName(policyName(policy)), policy);
  EXPECT_EQ(policyByName("auto"), Policy::Auto);
  EXPECT_FALSE(policyByName("breadth"));
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

TEST(Policy, SessionsGiveTheSameBits) {
  for (bool once : {false, true}) {
    Model model = test::makeTreeModel(20);
    if (once)
      test::useOnceEntry(model, 20);
    test::Trees trees;
    std::vector<Instance> batch = trees.randomBatch(40);
    std::vector<std::vector<float>> expected;
    for (Policy policy :
         {Policy::Depth, Policy::Agenda, Policy::LookAhead, Policy::Search, Policy::Auto})
      for (bool hostile : {false, true}) {
        SessionOptions options;
        options.policy = policy;
        options.hostile = hostile;
        options.threads = hostile ? 2 : 1;
        Session session(model, options);
        session.initParams(1);
        for (int run = 0; run < 12; ++run) {
          session.keepAll(run == 11); // dependences are those of all launches
          std::span<const Outcome> outcomes = session.run(batch);
          for (size_t i = 0; i < outcomes.size(); ++i) {
            std::vector<float> value = test::valueOf(session, outcomes[i]);
            if (expected.size() <= i)
              expected.push_back(value);
            ASSERT_EQ(value, expected[i]);
          }
        }
        if (policy == Policy::Auto)
          EXPECT_NE(session.policy(), Policy::Auto);
        // Two kernels, leaves and nodes: no order is better than that of depth. (Hostile sessions
        // run in waves.)
        uint64_t least = session.dependences()->leastLaunches;
        EXPECT_EQ(least == session.schedule().size(), !hostile);
        EXPECT_LE(least, session.schedule().size());
      }
  }
}

} // namespace
} // namespace sheaf::rt

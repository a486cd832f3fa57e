#include "runtime/cpu/kernel_code.h"
#include "runtime/memory/sanitizer.h"
#include "runtime/model/error.h"
#include "runtime/model/keys.h"
#include "runtime/session/engine.h"
#include "runtime/session/session.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;
using namespace sheaf::rt::test;

namespace {

SessionOptions small() {
  SessionOptions options;
  options.hostStackBytes = uint64_t(64) << 20;
  options.rowSpaceBytes = uint64_t(1) << 30;
  return options;
}

const Slot *treeOf(const Instance &instance) {
  return std::bit_cast<const Slot *>(instance.args[0]);
}

struct Setting {
  int64_t hidden;
  int64_t batch;
  unsigned threads;
  bool hostile;
};

class EverySetting : public testing::TestWithParam<Setting> {};

TEST_P(EverySetting, MatchesTheReferenceBitForBit) {
  Setting setting = GetParam();
  Model model = makeTreeModel(setting.hidden);
  SessionOptions options = small();
  options.threads = setting.threads;
  options.hostile = setting.hostile;
  Session session(model, options);
  session.initParams(7);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(setting.batch);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::span<const Outcome> outcomes = session.run(batch);
    ASSERT_EQ(outcomes.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      ASSERT_TRUE(outcomes[i].ok());
      EXPECT_EQ(outcomes[i].slots[1], 1 + 2 * (int64_t(i) * 7 % 23));
      std::vector<float> expected = reference(session, treeOf(batch[i]));
      std::vector<float> actual = valueOf(session, outcomes[i]);
      ASSERT_EQ(memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)), 0)
          << "instance " << i;
    }
  }
  if (setting.threads > 1 && setting.hostile && setting.batch > 1)
    EXPECT_GT(session.counters().parallelLaunches, 0u);
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (int64_t hidden : {20, 64})
    for (int64_t batch : {1, 3, 64, 256})
      for (unsigned threads : {1u, 2u, 3u})
        for (bool hostile : {false, true})
          if (batch <= 64 || hidden == 20)
            all.push_back({hidden, batch, threads, hostile});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Session, EverySetting, testing::ValuesIn(settings()),
                         [](const auto &info) {
                           const Setting &s = info.param;
                           return "hidden" + std::to_string(s.hidden) + "_batch" +
                                  std::to_string(s.batch) + "_threads" + std::to_string(s.threads) +
                                  (s.hostile ? "_hostile" : "");
                         });

TEST(Session, EmptyBatch) {
  Model model = makeTreeModel(4);
  Session session(model, small());
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_TRUE(session.schedule().empty());
}

TEST(Session, ScheduleHoldsEveryRecordInOrder) {
  Model model = makeTreeModel(20);
  SessionOptions options = small();
  options.rowReuse = When::Never; // a row for each
  Session session(model, options);
  session.initParams(1);
  Trees trees;
  // ((0 1) 2): leaves at depth 0, nodes at depths 1 and 2.
  const Slot *tree = trees.node(trees.node(trees.leaf(10), trees.leaf(11)), trees.leaf(12));
  std::vector<Instance> batch{trees.instance(tree)};
  ASSERT_TRUE(session.run(batch)[0].ok());
  const Schedule &schedule = session.schedule();
  ASSERT_EQ(schedule.size(), 3u);
  EXPECT_EQ(schedule[0].depth, 0u);
  EXPECT_EQ(schedule[0].kernel, uint32_t(kLeafKernel));
  ASSERT_EQ(schedule[0].count, 3);
  // Two words a leaf, two granules a row.
  uint32_t first = model.paramGranules;
  const int32_t *leaves = schedule[0].records;
  EXPECT_EQ(
      std::vector<int32_t>(leaves, leaves + 6),
      (std::vector<int32_t>{20, int32_t(first), 22, int32_t(first + 2), 24, int32_t(first + 6)}));
  EXPECT_EQ(schedule[1].depth, 1u);
  EXPECT_EQ(schedule[1].count, 1);
  EXPECT_EQ(schedule[2].depth, 2u);
  const int32_t *root = schedule[2].records;
  EXPECT_EQ(std::vector<int32_t>(root, root + 3),
            (std::vector<int32_t>{int32_t(first + 4), int32_t(first + 6), int32_t(first + 8)}));
}

TEST(Session, CountsWhatItDoes) {
  Model model = makeTreeModel(20);
  Session session(model, small());
  session.initParams(1);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(16);
  session.run(batch);
  session.resetCounters();
  session.run(batch);
  session.run(batch);
  const Counters &counters = session.counters();
  uint64_t leaves = 0;
  for (int64_t i = 0; i < 16; ++i)
    leaves += uint64_t(1 + i * 7 % 23);
  EXPECT_EQ(counters.runs, 2u);
  EXPECT_EQ(counters.instances, 32u);
  EXPECT_EQ(counters.failed, 0u);
  EXPECT_EQ(counters.kernels[kLeafKernel].records, 2 * leaves);
  EXPECT_EQ(counters.kernels[kLeafKernel].launches, 2u);
  EXPECT_EQ(counters.kernels[kLeafKernel].maxRecords, leaves);
  EXPECT_EQ(counters.kernels[kNodeKernel].records, 2 * (leaves - 16));
  EXPECT_EQ(counters.launches, 2 * session.schedule().size());
  EXPECT_EQ(counters.records, 2 * (2 * leaves - 16));
  EXPECT_DOUBLE_EQ(counters.flop, 2.0 * double(leaves - 16) * 4 * 20 * 20);
  EXPECT_DOUBLE_EQ(counters.flop, counters.kernels[kNodeKernel].flop);
  EXPECT_GT(counters.flushNanoseconds, 0u);
  uint64_t launches = 0;
  for (uint64_t n : counters.launchSizes)
    launches += n;
  EXPECT_EQ(launches, counters.launches);
  MemoryUse memory = session.memory();
  EXPECT_EQ(memory.weights.now, uint64_t(model.paramGranules) * 64);
  EXPECT_EQ(memory.packed.now, uint64_t(2 * 41 * 16 * 4));
  EXPECT_EQ(memory.rows.now, (2 * leaves - 16) * 2 * 64);
}

TEST(Session, WavesChangeNoResultAndNoRecord) {
  for (bool once : {false, true}) {
    Model model = makeTreeModel(20);
    if (once)
      useOnceEntry(model, 20);
    Trees trees;
    std::vector<Instance> batch = trees.randomBatch(64);
    std::vector<std::vector<float>> expected;
    std::optional<uint64_t> records, saved;
    // All at once, by few and by many rows, and each alone.
    for (uint64_t bytes : {uint64_t(0), uint64_t(1) << 30, uint64_t(20000), uint64_t(1)}) {
      SessionOptions options = small();
      options.keepBytes = 0;
      options.waveBytes = bytes;
      options.rowReuse = When::Never; // rows that are used again are not found in later waves
      Session session(model, options);
      session.initParams(7);
      std::span<const Outcome> outcomes = session.run(batch);
      const Counters &counters = session.counters();
      if (!records) {
        records = counters.records;
        saved = counters.saved;
        for (const Outcome &outcome : outcomes)
          expected.push_back(valueOf(session, outcome));
      }
      EXPECT_EQ(counters.records, *records) << bytes;
      EXPECT_EQ(counters.saved, *saved) << bytes;
      EXPECT_EQ(*saved > 0, once);
      // An instance without a row of its own waits for the next.
      if (bytes == 1)
        EXPECT_GT(counters.flushes, once ? batch.size() / 2 : batch.size() - 1);
      else
        EXPECT_EQ(counters.flushes > 1, bytes == 20000) << bytes;
      for (size_t i = 0; i < batch.size(); ++i) {
        ASSERT_TRUE(outcomes[i].ok());
        EXPECT_EQ(valueOf(session, outcomes[i]), expected[i]) << bytes << ", instance " << i;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Depth
//===----------------------------------------------------------------------===//

constexpr int64_t kDeep = 1000000;

TEST(Session, ChainOfAMillionRecursive) {
  Model model = makeTreeModel(4);
  SessionOptions options = small();
  options.hostStackBytes = uint64_t(2) << 30;
  Session session(model, options);
  session.initParams(3);
  Trees trees;
  std::vector<Instance> shallow = trees.randomBatch(8);
  std::vector<float> before = valueOf(session, session.run(shallow)[7]);
  std::vector<Instance> batch{trees.instance(trees.chain(kDeep)), shallow[7]};
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::span<const Outcome> outcomes = session.run(batch);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].error->what();
    EXPECT_EQ(outcomes[0].slots[1], 2 * kDeep + 1);
    EXPECT_EQ(TensorHandle::unpack(outcomes[0].slots[0]).depth, kDeep + 1);
    EXPECT_EQ(session.schedule().size(), size_t(kDeep + 1));
    EXPECT_EQ(valueOf(session, outcomes[1]), before);
  }
  // Pages, directory, records: in proportion to a million nodes.
  EXPECT_LT(session.memory().records.peak, uint64_t(kDeep) * 192);
  EXPECT_GT(session.memory().stack.peak, uint64_t(kDeep) * 16);
  // What only the deep ones needed is given back, some mini-batches later.
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(valueOf(session, session.run(shallow)[7]), before);
  MemoryUse memory = session.memory();
  EXPECT_LT(memory.records.now, uint64_t(8) << 20);
  EXPECT_LT(memory.stack.now, uint64_t(20) << 20);
}

TEST(Session, ChainOfAMillionByTailCalls) {
  Model model = makeTreeModel(4);
  useTailEntry(model, 4);
  SessionOptions options = small();
  options.hostStackBytes = uint64_t(1) << 20;
  options.threads = 2;
  Session session(model, options);
  session.initParams(3);
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.chain(kDeep))};
  std::span<const Outcome> outcomes = session.run(batch);
  ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].error->what();
  EXPECT_EQ(outcomes[0].slots[1], 2 * kDeep + 1);
}

TEST(Session, OverflowOfTheHostStackFailsOneInstance) {
  Model model = makeTreeModel(4);
  SessionOptions options = small();
  options.hostStackBytes = uint64_t(4) << 20;
  Session session(model, options);
  session.initParams(3);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(2);
  batch.push_back(trees.instance(trees.chain(kDeep)));
  batch.push_back(trees.instance(trees.random(5, 9)));
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::span<const Outcome> outcomes = session.run(batch);
    EXPECT_TRUE(outcomes[0].ok());
    ASSERT_FALSE(outcomes[2].ok());
    EXPECT_EQ(outcomes[2].slots, nullptr);
    EXPECT_STREQ(outcomes[2].error->what(),
                 "instance 2: the recursion is too deep: the host stack of 4.0 MB is used up");
    ASSERT_TRUE(outcomes[3].ok());
    EXPECT_EQ(valueOf(session, outcomes[3]), reference(session, treeOf(batch[3])));
  }
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST(Session, FailingInstanceFailsAlone) {
  for (unsigned threads : {1u, 2u}) {
    Model model = makeTreeModel(20);
    SessionOptions options = small();
    options.threads = threads;
    Session session(model, options);
    session.initParams(3);
    Trees trees;
    std::vector<Instance> batch = trees.randomBatch(5);
    const Slot *good = trees.random(77, 12);
    batch.push_back(trees.instance(trees.node(good, trees.leaf(kBadWord))));
    batch.push_back(trees.instance(trees.node(good, trees.leaf(kWorseWord))));
    batch.push_back(trees.instance(good));
    std::span<const Outcome> outcomes = session.run(batch);
    for (size_t i : {0u, 1u, 2u, 3u, 4u, 7u}) {
      ASSERT_TRUE(outcomes[i].ok());
      EXPECT_EQ(valueOf(session, outcomes[i]), reference(session, treeOf(batch[i])));
    }
    ASSERT_FALSE(outcomes[5].ok());
    EXPECT_EQ(outcomes[5].error->instance(), 5);
    EXPECT_EQ(outcomes[5].error->message(),
              "tree.sheaf:3:5: word 1000 is outside of a vocabulary of 50 (1000)");
    ASSERT_FALSE(outcomes[6].ok());
    EXPECT_STREQ(outcomes[6].error->what(), "instance 6: tree.sheaf:4:5: {2} {0");
    EXPECT_EQ(session.counters().failed, 2u);
  }
}

TEST(Session, RowSpaceUsedUp) {
  Model model = makeTreeModel(20);
  SessionOptions options = small();
  options.rowSpaceBytes = uint64_t(1) << 20; // room for some 8000 rows
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.random(1, 100)),
                              trees.instance(trees.chain(20000)),
                              trees.instance(trees.random(2, 5))};
  {
    // Few are needed at one time, if it runs in windows of the order of recording.
    Session reuses(model, options);
    reuses.initParams(3);
    for (const Outcome &outcome : reuses.run(batch))
      EXPECT_TRUE(outcome.ok());
    EXPECT_GT(reuses.counters().rowWindows, 1u);
  }
  options.rowReuse = When::Never;
  Session session(model, options);
  session.initParams(3);
  std::span<const Outcome> outcomes = session.run(batch);
  EXPECT_TRUE(outcomes[0].ok());
  ASSERT_FALSE(outcomes[1].ok());
  EXPECT_EQ(outcomes[1].error->instance(), 1);
  EXPECT_NE(
      outcomes[1].error->message().find("out of memory for tensors: 128 bytes more are needed"),
      std::string::npos)
      << outcomes[1].error->message();
  // The next mini-batch starts afresh.
  batch.erase(batch.begin() + 1);
  outcomes = session.run(batch);
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_TRUE(outcomes[1].ok());
}

TEST(Session, MemoryLimit) {
  Model model = makeTreeModel(20);
  SessionOptions options = small();
  options.memoryLimit = uint64_t(4) << 20;
  Session session(model, options);
  session.initParams(3);
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.random(1, 100)),
                              trees.instance(trees.random(2, 100000))};
  std::span<const Outcome> outcomes = session.run(batch);
  EXPECT_TRUE(outcomes[0].ok());
  ASSERT_FALSE(outcomes[1].ok());
  EXPECT_NE(outcomes[1].error->message().find("of at most 4.0 MB"), std::string::npos)
      << outcomes[1].error->message();
  MemoryUse memory = session.memory();
  // The mini-batch was walked twice, so peaks are of different times.
  for (uint64_t peak : {memory.rows.peak, memory.heap.peak, memory.records.peak})
    EXPECT_LE(peak + memory.weights.now + memory.packed.now + memory.scratch.now,
              options.memoryLimit);

  options.memoryLimit = 4096;
  EXPECT_THROW(Session(model, options), UserError);
}

/// Rows of instances that have ended go where the next ones need memory.
TEST(Session, ManyInstancesInMemoryForFew) {
  Model model = makeTreeModel(20);
  useOnceEntry(model, 20);
  Trees trees;
  std::vector<Instance> batch;
  for (uint64_t i = 0; i < 96; ++i)
    batch.push_back(trees.instance(trees.random(i, i % 24 == 23 ? 3000 : 500)));
  std::vector<std::vector<float>> expected;
  uint64_t unlimited = 0;
  for (uint64_t limit : {uint64_t(1) << 30, uint64_t(8) << 20, uint64_t(3) << 20})
    for (auto [waves, reuse] : {std::pair(uint64_t(0), When::Never),
                                {uint64_t(1), When::Never},
                                {uint64_t(0), When::Worth},
                                {uint64_t(0), When::Always}}) {
      SessionOptions options = small();
      options.keepBytes = 0;
      options.rowReuse = reuse;
      options.memoryLimit = limit;
      options.waveBytes = waves;
      Session session(model, options);
      session.initParams(3);
      std::span<const Outcome> outcomes = session.run(batch);
      for (size_t i = 0; i < batch.size(); ++i) {
        ASSERT_TRUE(outcomes[i].ok())
            << limit << ", instance " << i << ": " << outcomes[i].error->message();
        std::vector<float> value = valueOf(session, outcomes[i]);
        if (unlimited == 0)
          expected.push_back(value);
        else
          EXPECT_EQ(value, expected[i]) << limit << ", instance " << i;
      }
      MemoryUse memory = session.memory();
      if (unlimited == 0)
        unlimited = memory.rows.peak;
      if (limit < unlimited) {
        if (reuse == When::Never)
          EXPECT_GT(session.counters().collections, 1u) << limit;
        else
          EXPECT_GE(session.counters().rowPlans, reuse == When::Always ? 2u : 1u) << limit;
        EXPECT_LE(memory.rows.peak + memory.weights.now + memory.packed.now, limit);
        // In large waves, where it is not asked for small ones.
        if (waves == 0)
          EXPECT_LT(session.counters().flushes, 4 * unlimited / limit) << limit;
      }
    }
  EXPECT_GT(unlimited, uint64_t(8) << 20);
}

void greedyEntry(Context *context, const Slot *args, Slot *results) {
  int32_t *record = sheaf_record(context, kLeafKernel, 0, args[0]);
  record[0] = 0;
  results[0] = TensorHandle{static_cast<uint32_t>(record[1]), 1}.pack();
  results[1] = 0;
}

TEST(Session, SizesThatCannotBe) {
  Model model = makeTreeModel(4);
  model.entry.argTypes = {kIntType};
  model.entry.fn = greedyEntry;
  Session session(model, small());
  for (Slot granules : {Slot(-1), INT64_MIN, INT64_MAX, Slot(1) << 40, Slot(1) << 27}) {
    Slot one = 1;
    std::vector<Instance> batch{{&granules, 40}, {&one, 41}};
    std::span<const Outcome> outcomes = session.run(batch);
    ASSERT_FALSE(outcomes[0].ok());
    EXPECT_EQ(std::string(outcomes[0].error->what()).find("instance 40: out of memory for tensors"),
              0u);
    EXPECT_TRUE(outcomes[1].ok());
  }
}

//===----------------------------------------------------------------------===//
// Memory over time
//===----------------------------------------------------------------------===//

TEST(Session, MemoryFollowsTheMiniBatches) {
  Model model = makeTreeModel(4);
  Session session(model, small());
  session.initParams(3);
  Trees trees;
  std::vector<Instance> smallBatch = trees.randomBatch(4);
  std::vector<Instance> large;
  for (int i = 0; i < 4; ++i)
    large.push_back(trees.instance(trees.chain(100000)));
  session.run(smallBatch);
  uint64_t records = session.memory().records.now;
  session.run(large);
  uint64_t peak = session.memory().records.peak;
  EXPECT_GT(peak, 4 * records);
  for (int i = 0; i < 60; ++i)
    session.run(smallBatch);
  EXPECT_LT(session.memory().records.now, peak / 2);
  EXPECT_EQ(valueOf(session, session.run(smallBatch)[3]),
            reference(session, treeOf(smallBatch[3])));
}

TEST(Session, SessionsAreIndependent) {
  Model model = makeTreeModel(20), other = makeTreeModel(64);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(24);
  auto job = [&](const Model &m, uint64_t seed, unsigned threads, bool *ok) {
    SessionOptions options = small();
    options.threads = threads;
    Session session(m, options);
    session.initParams(seed);
    *ok = true;
    std::vector<std::vector<float>> expected;
    for (const Instance &instance : batch)
      expected.push_back(reference(session, treeOf(instance)));
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::span<const Outcome> outcomes = session.run(batch);
      for (size_t i = 0; i < batch.size(); ++i)
        *ok &= outcomes[i].ok() && valueOf(session, outcomes[i]) == expected[i];
    }
  };
  bool ok[3] = {};
  std::thread a([&] { job(model, 1, 1, &ok[0]); });
  std::thread b([&] { job(other, 2, 2, &ok[1]); });
  std::thread c([&] { job(model, 3, 1, &ok[2]); });
  a.join();
  b.join();
  c.join();
  EXPECT_TRUE(ok[0] && ok[1] && ok[2]);
}

TEST(Session, ManySessionsInOneThread) {
  Model model = makeTreeModel(20);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(3);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 8; ++i) {
    sessions.push_back(std::make_unique<Session>(model, small()));
    sessions.back()->initParams(uint64_t(i));
  }
  for (auto &session : sessions)
    session->run(batch);
  for (auto &session : sessions)
    EXPECT_EQ(valueOf(*session, session->run(batch)[2]), reference(*session, treeOf(batch[2])));
}

//===----------------------------------------------------------------------===//
// The hostile setting finds what it is for
//===----------------------------------------------------------------------===//

UNINSTRUMENTED void overrunningKernel(const int32_t *records, int64_t begin, int64_t end, int64_t,
                                      int64_t, uint8_t *rows, const void *const *, uint8_t *) {
  for (int64_t i = begin; i < end; ++i) {
    auto *out = reinterpret_cast<float *>(rows + int64_t(records[i * 2 + 1]) * kGranuleBytes);
    for (int j = 0; j < 17; ++j)
      out[j] = 1;
  }
}

UNINSTRUMENTED void greedyScratchKernel(const int32_t *, int64_t, int64_t, int64_t, int64_t,
                                        uint8_t *, const void *const *, uint8_t *scratch) {
  scratch[64] = 1;
}

TEST(Hostile, GuardsFindRowsWrittenOver) {
  Model model = makeTreeModel(4);
  cpuCode(model).kernels[kLeafKernel].fn = overrunningKernel;
  SessionOptions options = small();
  options.hostile = true;
  Session session(model, options);
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.leaf(1))};
  try {
    session.run(batch);
    FAIL() << "the overrun was not found";
  } catch (const InternalError &error) {
    EXPECT_NE(std::string(error.what()).find("kernel 'leaf'"), std::string::npos) << error.what();
  }
}

TEST(Hostile, GuardsFindScratchOverrun) {
  Model model = makeTreeModel(4);
  cpuCode(model).kernels[kNodeKernel].fn = greedyScratchKernel;
  SessionOptions options = small();
  options.hostile = true;
  Session session(model, options);
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.node(trees.leaf(1), trees.leaf(2)))};
  EXPECT_THROW(session.run(batch), InternalError);
}

#ifdef SHEAF_ASAN
TEST(Session, RowsNotHandedOutArePoisoned) {
  Model model = makeTreeModel(4);
  Session session(model, small());
  session.initParams(1);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(3);
  for (int repeat = 0; repeat < 2; ++repeat) {
    session.run(batch);
    const uint8_t *end =
        session.rows() + uint64_t(model.paramGranules) * kGranuleBytes + session.memory().rows.now;
    EXPECT_FALSE(__asan_address_is_poisoned(end - 1));
    EXPECT_TRUE(__asan_address_is_poisoned(end));
    EXPECT_TRUE(__asan_address_is_poisoned(end + 1000));
  }
}
#endif

TEST(Session, InconsistentModels) {
  Model model = makeTreeModel(4);
  cpuCode(model).kernels[0].fn = nullptr;
  EXPECT_THROW(Session(model, small()), InternalError);
  model = makeTreeModel(4);
  model.params[kB].id = model.paramGranules;
  EXPECT_THROW(Session(model, small()), InternalError);
  model = makeTreeModel(4);
  cpuCode(model).kernels[kNodeKernel].weights[0].views[0].segments[1].kEnd = 9;
  EXPECT_THROW(Session(model, small()), InternalError);
}

UNINSTRUMENTED void keyEntry(Context *context, const Slot *, Slot *results) {
  results[0] = static_cast<Slot>(context->key);
}

// What an instance draws from: the seed, the step and its number in the data, nothing else.
TEST(Session, KeysFollowFromSeedStepAndInstance) {
  Model model;
  model.types.types.resize(1);
  model.types.types[0].kind = TypeKind::Int;
  model.entry.fn = keyEntry;
  auto keys = [&](Session &session, std::vector<int64_t> numbers) {
    std::vector<Instance> batch;
    for (int64_t number : numbers)
      batch.push_back({nullptr, number});
    std::vector<uint64_t> all;
    for (const Outcome &outcome : session.run(batch))
      all.push_back(static_cast<uint64_t>(outcome.slots[0]));
    return all;
  };
  using Keys = std::vector<uint64_t>;
  SessionOptions options = small();
  Session first(model, options);
  options.sampleSeed = 9;
  Session second(model, options);
  EXPECT_EQ(keys(first, {0, 1, 2}),
            (Keys{instanceKey(0, 0, 0), instanceKey(0, 0, 1), instanceKey(0, 0, 2)}));
  EXPECT_EQ(keys(first, {2, 0}), (Keys{instanceKey(0, 0, 2), instanceKey(0, 0, 0)}));
  EXPECT_EQ(keys(second, {1}), Keys{instanceKey(9, 0, 1)});
  second.setStep(4);
  EXPECT_EQ(keys(second, {1, 1}), (Keys{instanceKey(9, 4, 1), instanceKey(9, 4, 1)}));
  std::set<uint64_t> different;
  for (uint64_t seed : {0, 1, 2})
    for (uint64_t step : {0, 1, 2})
      for (int64_t instance : {0, 1, 2})
        different.insert(instanceKey(seed, step, instance));
  EXPECT_EQ(different.size(), 27u);
}

// A model that reads: every instance waits ten times for one more record.
std::stop_source *stopAtThird = nullptr;
int launches = 0;

void countingKernel(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *,
                    const void *const *, uint8_t *) {
  if (++launches == 3 && stopAtThird)
    stopAtThird->request_stop();
}

UNINSTRUMENTED void waitingEntry(Context *context, const Slot *, Slot *results) {
  for (int i = 0; i < 10; ++i) {
    auto depth = static_cast<uint32_t>(context->computed);
    auto id = static_cast<uint32_t>(*sheaf_record(context, 0, depth, 1));
    sheaf_wait(context, 0, TensorHandle{id, depth + 1}.pack(), 0, 4);
  }
  results[0] = 10;
}

TEST(Stop, ARunEndsAtItsNextFlush) {
  Model model;
  model.types.types.resize(1);
  model.types.types[0].kind = TypeKind::Int;
  model.entry.fn = waitingEntry;
  model.reads = true;
  KernelDesc &kernel = model.kernels.emplace_back();
  kernel.name = "counting";
  cpuCode(model).kernels[0].fn = countingKernel;
  kernel.layout = {{RecordWord::Out, "result"}};
  SessionOptions options = small();
  options.fibers = 3; // of five instances two never begin
  Session session(model, options);
  std::vector<Instance> batch;
  for (int64_t i = 0; i < 5; ++i)
    batch.push_back({nullptr, i});

  std::stop_source stop;
  stopAtThird = &stop;
  launches = 0;
  int64_t instance = 0;
  for (const Outcome &outcome : session.run(batch, stop.get_token())) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error->message(), "the run was stopped");
    EXPECT_EQ(outcome.error->instance(), instance++);
    EXPECT_FALSE(outcome.error->outOfMemory());
  }
  EXPECT_EQ(launches, 3);
  EXPECT_EQ(session.counters().failed, 5u);

  // The session is as good as before.
  stopAtThird = nullptr;
  for (const Outcome &outcome : session.run(batch)) {
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.slots[0], 10);
  }
}

TEST(Stop, NothingIsKeptThatWasNotComputed) {
  Model model = makeTreeModel(20);
  useOnceEntry(model, 20);
  Session session(model, small());
  session.initParams(7);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(8);
  std::stop_source stop;
  stop.request_stop();
  Trace trace(1);
  session.setTrace(&trace);
  for (const Outcome &outcome : session.run(batch, stop.get_token()))
    EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(session.counters().launches, 0u);
  for (const TracePart &part : trace.parts)
    EXPECT_NE(part.kind, TracePart::Weights);
  std::span<const Outcome> outcomes = session.run(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_TRUE(outcomes[i].ok());
    EXPECT_EQ(valueOf(session, outcomes[i]), reference(session, treeOf(batch[i])));
  }
}

// The walk itself asks for the stop: its instances are recorded, and nothing of them may stay.
std::stop_source *stopInWalk = nullptr;
EntryFn walkTree = nullptr;

UNINSTRUMENTED void stoppingEntry(Context *context, const Slot *args, Slot *results) {
  walkTree(context, args, results);
  if (stopInWalk)
    stopInWalk->request_stop();
}

TEST(Stop, WhatWasRecordedIsForgotten) {
  Model model = makeTreeModel(20);
  useOnceEntry(model, 20);
  walkTree = model.entry.fn;
  model.entry.fn = stoppingEntry;
  Session session(model, small());
  session.initParams(7);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(8);
  std::stop_source stop;
  stopInWalk = &stop;
  for (const Outcome &outcome : session.run(batch, stop.get_token()))
    EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(session.counters().launches, 0u);
  stopInWalk = nullptr;
  std::span<const Outcome> outcomes = session.run(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_TRUE(outcomes[i].ok());
    EXPECT_EQ(valueOf(session, outcomes[i]), reference(session, treeOf(batch[i])));
  }
}

// Host code that neither reads nor ends, by calls and by rounds of loops.
std::atomic<bool> walksOn;

UNINSTRUMENTED void endlessCalls(Context *context, const Slot *, Slot *) {
  walksOn = true;
  for (;;)
    if (--context->stepsLeft <= 0)
      sheaf_more_steps(context, 0);
}

UNINSTRUMENTED void endlessRounds(Context *context, const Slot *, Slot *) {
  walksOn = true;
  for (;;)
    if (--context->roundsLeft <= 0)
      sheaf_more_rounds(context);
}

TEST(Stop, EndsHostCodeOfOneInstance) {
  for (EntryFn fn : {endlessCalls, endlessRounds}) {
    Model model;
    model.types.types.resize(1);
    model.types.types[0].kind = TypeKind::Int;
    model.messages = {"no end in sight"};
    model.entry.fn = fn;
    SessionOptions options = small();
    options.maxSteps = INT64_MAX;
    Session session(model, options);
    walksOn = false;
    std::stop_source stop;
    std::chrono::steady_clock::time_point asked;
    std::thread other([&] {
      while (!walksOn)
        std::this_thread::yield();
      asked = std::chrono::steady_clock::now();
      stop.request_stop();
    });
    std::vector<Instance> batch = {{nullptr, 0}, {nullptr, 1}};
    std::span<const Outcome> outcomes = session.run(batch, stop.get_token());
    auto ended = std::chrono::steady_clock::now();
    other.join();
    // It ends, and not after all of its steps, which take hours. A busy machine may take a while to
    // let this thread run.
    EXPECT_LT(ended - asked, std::chrono::seconds(60));
    for (const Outcome &outcome : outcomes) {
      ASSERT_FALSE(outcome.ok());
      EXPECT_EQ(outcome.error->message(), "the run was stopped");
    }
  }
}

TEST(Stop, EndsHostCodeOfAnEnginesInstance) {
  Model model;
  model.types.types.resize(1);
  model.types.types[0].kind = TypeKind::Int;
  model.messages = {"no end in sight"};
  model.entry.fn = endlessRounds;
  Session session(model, small());
  uint64_t time = 0;
  Engine engine(session, {.clock = [&] { return time += 1000; }});
  std::optional<RunError::Cause> late, stopped;
  engine.submit({.instance = {nullptr, 0},
                 .deadline = 100'000,
                 .done = [&](const Outcome &outcome) { late = outcome.error.value().cause(); }});
  while (engine.step()) {
  }
  EXPECT_EQ(late, RunError::Cause::Deadline);

  std::stop_source stop;
  walksOn = false;
  engine.submit({.instance = {nullptr, 1},
                 .stop = stop.get_token(),
                 .done = [&](const Outcome &outcome) { stopped = outcome.error.value().cause(); }});
  std::thread other([&] {
    while (!walksOn)
      std::this_thread::yield();
    stop.request_stop();
  });
  while (engine.step()) {
  }
  other.join();
  EXPECT_EQ(stopped, RunError::Cause::Cancelled);
}

TEST(Stop, StepsAreCountedOverAllThatIsGranted) {
  static int64_t calls = 0;
  Model model;
  model.types.types.resize(1);
  model.types.types[0].kind = TypeKind::Int;
  model.messages = {"no end in sight: {steps} calls"};
  model.entry.fn = [](Context *context, const Slot *, Slot *) {
    for (;; ++calls)
      if (--context->stepsLeft <= 0)
        sheaf_more_steps(context, 0);
  };
  for (int64_t steps : {1, 2, 511, 512, 513, 1024, 100000}) {
    SessionOptions options = small();
    options.maxSteps = steps;
    Session session(model, options);
    Instance instance{nullptr, 0};
    calls = 0;
    std::span<const Outcome> outcomes = session.run({&instance, 1});
    ASSERT_FALSE(outcomes[0].ok());
    EXPECT_EQ(outcomes[0].error->message(), "no end in sight: " + std::to_string(steps) + " calls");
    EXPECT_EQ(calls, steps - 1);
  }
}

// The first outputs of SplitMix64 with the state 0, as published with its source.
TEST(Keys, AreSplitMix64) {
  EXPECT_EQ(splitKey(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(splitKey(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(splitKey(0, 2), 0x06c45d188009454fu);
}

} // namespace

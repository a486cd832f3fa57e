#include "runtime/cpu/kernel_code.h"
#include "runtime/session/session.h"
#include "runtime/walk/known.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

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

Model makeOnceModel(int64_t hidden) {
  Model model = makeTreeModel(hidden);
  useOnceEntry(model, hidden);
  return model;
}

/// What the last run recorded, by kernel.
std::vector<int64_t> recordsOf(const Session &session) {
  std::vector<int64_t> counts(2);
  for (const ScheduledBucket &bucket : session.schedule())
    counts[bucket.kernel] += bucket.count;
  return counts;
}

void expectReference(const Session &session, std::span<const Instance> batch,
                     std::span<const Outcome> outcomes) {
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_TRUE(outcomes[i].ok()) << i;
    auto *tree = std::bit_cast<const Slot *>(batch[i].args[0]);
    std::vector<float> expected = reference(session, tree);
    std::vector<float> actual = valueOf(session, outcomes[i]);
    ASSERT_EQ(memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)), 0)
        << "instance " << i;
  }
}

/// (3 3) (3 3)
const Slot *twins(Trees &trees) {
  return trees.node(trees.node(trees.leaf(3), trees.leaf(3)),
                    trees.node(trees.leaf(3), trees.leaf(3)));
}

TEST(Known, EqualRecordsRunOnce) {
  Model model = makeOnceModel(20);
  Session session(model, small());
  session.initParams(1);
  Trees trees;
  // The last is equal to a part of the first.
  std::vector<Instance> batch{trees.instance(twins(trees)), trees.instance(twins(trees)),
                              trees.instance(trees.node(trees.leaf(3), trees.leaf(3)))};
  expectReference(session, batch, session.run(batch));
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(session.counters().records, 3u);
  EXPECT_EQ(session.counters().saved, 4u + 4 + 2 + 3 + 3 + 1 - 3);
  EXPECT_EQ(session.counters().kernels[kLeafKernel].saved, 9u);
}

TEST(Known, WhatDependsOnParametersAloneIsKept) {
  Model model = makeOnceModel(20);
  Session session(model, small());
  session.initParams(1);
  Trees trees;
  std::vector<Instance> batch{trees.instance(twins(trees))};
  expectReference(session, batch, session.run(batch));
  // Now the leaf is there before anything runs.
  expectReference(session, batch, session.run(batch));
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(session.schedule()[0].depth, 0u);
  EXPECT_GT(session.memory().tables.now, 0u);
  // A result may be a kept row itself.
  std::vector<Instance> leaf{trees.instance(trees.leaf(3)), trees.instance(trees.leaf(4))};
  expectReference(session, leaf, session.run(leaf));
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{1, 0}));
}

TEST(Known, NothingIsKeptWhenNothingMayBe) {
  Model model = makeOnceModel(20);
  SessionOptions options = small();
  options.keepBytes = 0;
  Session session(model, options);
  session.initParams(1);
  Trees trees;
  std::vector<Instance> batch{trees.instance(twins(trees))};
  for (int i = 0; i < 3; ++i) {
    expectReference(session, batch, session.run(batch));
    EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{1, 2}));
  }
  EXPECT_EQ(session.memory().tables.peak, 0u);
}

TEST(Known, NewWeightsGiveNewResults) {
  Model model = makeOnceModel(20);
  for (bool hostile : {false, true}) {
    SessionOptions options = small();
    options.hostile = hostile;
    Session session(model, options);
    Trees trees;
    std::vector<Instance> batch = trees.randomBatch(8);
    // As in training: every mini-batch has other weights than the one before.
    for (uint64_t seed = 0; seed < 4; ++seed) {
      session.initParams(seed);
      expectReference(session, batch, session.run(batch));
      EXPECT_GT(recordsOf(session)[kLeafKernel], 0);
    }
    // Written in place, and packed by hand.
    uint8_t *row = session.paramRow(kB);
    session.run(batch);
    float big = 100;
    memcpy(row, &big, sizeof big);
    session.packWeights();
    expectReference(session, batch, session.run(batch));
    session.run(batch);
    EXPECT_EQ(recordsOf(session)[kLeafKernel], 0);
  }
}

TEST(Known, SameBitsUnderEverySetting) {
  for (int64_t hidden : {4, 20, 64})
    for (unsigned threads : {1u, 3u})
      for (bool hostile : {false, true}) {
        Model model = makeOnceModel(hidden);
        SessionOptions options = small();
        options.threads = threads;
        options.hostile = hostile;
        Session session(model, options);
        session.initParams(7);
        Trees trees;
        for (uint64_t seed : {1, 2, 3, 1}) {
          std::vector<Instance> batch = trees.randomBatch(24, seed);
          expectReference(session, batch, session.run(batch));
        }
        EXPECT_GT(session.counters().saved, session.counters().kernels[kNodeKernel].saved);
      }
}

TEST(Known, AFailedInstancesRecordsServeTheOthers) {
  Model model = makeOnceModel(20);
  Session session(model, small());
  session.initParams(2);
  Trees trees;
  const Slot *shared = trees.node(trees.leaf(7), trees.leaf(8));
  std::vector<Instance> batch{trees.instance(trees.node(shared, trees.leaf(kBadWord))),
                              trees.instance(trees.node(trees.leaf(9), shared))};
  std::span<const Outcome> outcomes = session.run(batch);
  EXPECT_FALSE(outcomes[0].ok());
  expectReference(session, std::span(batch).last(1), outcomes.last(1));
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(session.counters().failed, 1u);
}

TEST(Known, TheBoundHolds) {
  Model model = makeOnceModel(64);
  SessionOptions options = small();
  // Some of the 50 words, of 256 bytes each.
  options.keepBytes = 5000;
  Session session(model, options);
  session.initParams(2);
  Trees trees;
  std::vector<Instance> batch;
  for (int64_t i = 0; i < 2 * kVocab; ++i)
    batch.push_back(trees.instance(trees.leaf(i % kVocab)));
  for (int i = 0; i < 3; ++i)
    expectReference(session, batch, session.run(batch));
  EXPECT_EQ(recordsOf(session)[kLeafKernel], kVocab - 5000 / 256);
  EXPECT_LT(session.memory().tables.peak, 5000u + 8192);
}

/// What is kept makes room for what is asked for now.
TEST(Known, WhatIsKeptGivesWay) {
  Model model = makeOnceModel(64);
  for (bool hostile : {false, true}) {
    SessionOptions options = small();
    options.hostile = hostile;
    options.keepBytes = 20 * 5 * kGranuleBytes; // of 20 words, with guards
    Session session(model, options);
    session.initParams(2);
    Trees trees;
    std::vector<Instance> early, late;
    for (int64_t i = 0; i < 15; ++i) {
      early.push_back(trees.instance(trees.leaf(i)));
      late.push_back(trees.instance(trees.leaf(20 + i)));
    }
    auto computed = [&](const std::vector<Instance> &batch) {
      uint64_t before = session.counters().kernels[kLeafKernel].records;
      expectReference(session, batch, session.run(batch));
      return session.counters().kernels[kLeafKernel].records - before;
    };
    EXPECT_EQ(computed(early), 15u);
    EXPECT_EQ(computed(early), 0u);
    EXPECT_GE(computed(late), 10u);
    // Some of these find no room, again and again.
    int runs = 0;
    while (computed(late) > 0)
      ASSERT_LT(++runs, 1000);
    EXPECT_GT(runs, hostile ? 0 : 50);
    EXPECT_EQ(computed(late), 0u);
    EXPECT_GE(computed(early), 10u);
    EXPECT_LE(session.memory().tables.peak, 20u * 5 * kGranuleBytes + (hostile ? 65536 : 8192));
  }
}

TEST(Known, NoInstanceFailsForWhatIsKept) {
  Model model = makeOnceModel(64);
  Trees trees;
  std::vector<Instance> words, large{trees.instance(trees.chain(900))};
  for (int64_t i = 0; i < kVocab; ++i)
    words.push_back(trees.instance(trees.leaf(i)));
  // The least memory that does for the large one when nothing is kept.
  SessionOptions options = small();
  options.rowReuse = When::Never;
  uint64_t least = 0;
  for (uint64_t limit = 100000; least == 0; limit += 20000) {
    options.memoryLimit = limit;
    options.keepBytes = 0;
    Session session(model, options);
    session.initParams(2);
    if (session.run(large)[0].ok())
      least = limit;
  }
  options.memoryLimit = least;
  options.keepBytes = least;
  Session session(model, options);
  session.initParams(2);
  session.run(words);
  EXPECT_GT(session.memory().tables.now, uint64_t(kVocab) * 256);
  session.run(words);
  EXPECT_EQ(recordsOf(session)[kLeafKernel], 0);
  EXPECT_TRUE(session.run(large)[0].ok()) << session.run(large)[0].error->message();
  EXPECT_EQ(session.counters().failed, 0u);
  expectReference(session, words, session.run(words));
}

TEST(Known, WhatNeverRepeatsIsNotLookedForAnyMore) {
  Model model = makeOnceModel(4);
  for (KernelDesc &kernel : model.kernels)
    kernel.flop = {{1e6, {}}}; // so that what is found is worth it
  Session session(model, small());
  session.initParams(2);
  Trees trees;
  std::vector<Instance> twin{trees.instance(twins(trees))},
      chain{trees.instance(trees.chain(1500))}, longer{trees.instance(trees.chain(33000))};
  session.run(twin);
  EXPECT_EQ(recordsOf(session)[kNodeKernel], 2);
  session.run(chain); // every node is new
  session.run(twin);
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{0, 3}));
  session.run(longer);
  session.run(twin);
  EXPECT_EQ(recordsOf(session), (std::vector<int64_t>{0, 2}));
}

/// The leaves of a chain repeat, but a look-up takes longer than to compute them.
TEST(Known, WhatIsFoundMustBeWorthLooking) {
  Trees trees;
  std::vector<Instance> twin{trees.instance(twins(trees))},
      chain{trees.instance(trees.chain(9000))};
  for (double flop : {1e2, 1e6}) {
    Model model = makeOnceModel(4);
    for (KernelDesc &kernel : model.kernels)
      kernel.flop = {{flop, {}}};
    Session session(model, small());
    session.initParams(2);
    session.run(chain);
    session.run(twin);
    EXPECT_EQ(recordsOf(session)[kLeafKernel], flop > 1e3 ? 0 : 4) << flop;
  }
}

/// Each mini-batch finds out soon, and anew, that nothing repeats.
TEST(Known, TrainingTriesFewRecords) {
  Model model = makeOnceModel(20);
  model.training = true;
  MemoryMeter meter(1 << 20);
  MemoryKind rowBytes;
  MemoryUse use;
  HostRows memory(model.paramGranules, uint64_t(1) << 20);
  RowSpace rows(model.paramGranules, memory, meter, rowBytes, false);
  KnownRecords known(model, rows, meter, use, 0, false);
  auto lookedUp = [&](int32_t copies) {
    known.beginRun();
    int looked = 0;
    for (int32_t i = 0; i < 2000; ++i) {
      int32_t key[] = {i / copies, i / copies};
      if (known.skips(kNodeKernel))
        continue;
      ++looked;
      KnownRecords::Place place = known.look(kNodeKernel, key);
      EXPECT_EQ(place.in.known, i % copies > 0);
      if (!place.in.known)
        known.note(place, key, {static_cast<uint32_t>(i), 1});
    }
    return looked;
  };
  EXPECT_EQ(lookedUp(1), 128);
  EXPECT_EQ(lookedUp(2), 2000);
  EXPECT_EQ(lookedUp(1), 128);
}

template <uint32_t Words> Slot recordInRegisters(Context *context, const int32_t *words) {
  auto pair = [&](uint32_t i) {
    uint64_t low = static_cast<uint32_t>(words[i]);
    return i + 1 < Words ? low | uint64_t(static_cast<uint32_t>(words[i + 1])) << 32 : low;
  };
  if constexpr (Words <= 2)
    return sheaf_record_once2(context, 0, 3, 2, pair(0));
  else
    return sheaf_record_once4(context, 0, 3, 2, pair(0), pair(2));
}

/// In registers and from memory.
template <uint32_t Words> void recordTwice(Context *context, const Slot *args, Slot *results) {
  for (int32_t i = 0; i < args[0]; ++i) {
    int32_t words[] = {i, -i, 7, ~i};
    recordInRegisters<Words>(context, words);
    results[0] = sheaf_record_once(context, 0, 3, 2, words);
  }
}

template <uint32_t Words> void expectRecordsInRegisters(bool hostile) {
  SCOPED_TRACE(Words);
  Model model;
  model.types.types.resize(1);
  model.kernels.resize(1);
  model.kernels[0].words = Words + 1;
  cpuCode(model).kernels[0].fn = [](const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *,
                                    const void *const *, uint8_t *) {};
  model.entry.argTypes = {0};
  model.entry.resultType = 0;
  model.entry.fn = recordTwice<Words>;
  SessionOptions options = small();
  options.hostile = hostile;
  Session session(model, options);
  // What is found is worth too little: from some record on, none is looked up.
  Slot size = 5000;
  std::vector<Instance> batch{{&size, 0}};
  ASSERT_TRUE(session.run(batch)[0].ok());
  ASSERT_EQ(session.schedule().size(), 1u);
  const ScheduledBucket &bucket = session.schedule()[0];
  auto saved = static_cast<int64_t>(session.counters().saved);
  EXPECT_EQ(saved, 2048);
  ASSERT_EQ(bucket.count, 2 * size - saved);
  for (int64_t n = 0; n < bucket.count; ++n) {
    const int32_t *record = bucket.records + n * (Words + 1);
    auto i = static_cast<int32_t>(n < saved ? n : saved + (n - saved) / 2);
    int32_t words[] = {i, -i, 7, ~i};
    ASSERT_EQ(std::memcmp(record, words, Words * sizeof(int32_t)), 0) << n;
    // Guards lie between rows.
    ASSERT_EQ(record[Words] - bucket.records[Words], n * (hostile ? 3 : 2));
  }
}

TEST(Known, WordsMayComeInRegisters) {
  for (bool hostile : {false, true}) {
    expectRecordsInRegisters<1>(hostile);
    expectRecordsInRegisters<2>(hostile);
    expectRecordsInRegisters<3>(hostile);
    expectRecordsInRegisters<4>(hostile);
  }
}

TEST(Known, EqualListsHaveOneTable) {
  Model model = makeOnceModel(20);
  MemoryMeter meter(1 << 20);
  MemoryKind rowBytes;
  MemoryUse use;
  HostRows memory(model.paramGranules, uint64_t(1) << 20);
  RowSpace rows(model.paramGranules, memory, meter, rowBytes, false);
  KnownRecords known(model, rows, meter, use, 0, true);
  known.beginRun();
  // A table in the row space, as host code writes it.
  auto note = [&](std::vector<Slot> list) {
    KnownRecords::List place = known.lookList(0, list);
    EXPECT_FALSE(place.table);
    uint64_t id = rows.allocate(1);
    for (size_t i = 0; i < list.size(); ++i)
      reinterpret_cast<uint32_t *>(rows.address(id))[i] = TensorHandle::unpack(list[i]).id;
    known.noteList(place, static_cast<uint32_t>(id));
    return static_cast<uint32_t>(id);
  };
  auto handle = [](uint32_t id, uint32_t depth) { return TensorHandle{id, depth}.pack(); };
  uint32_t empty = note({}), two = note({handle(7, 1), handle(9, 1)});
  uint32_t turned = note({handle(9, 1), handle(7, 1)}),
           three = note({handle(7, 1), handle(9, 1), handle(9, 1)});
  // Depths are no part of it.
  EXPECT_EQ(known.lookList(1, std::vector{handle(7, 5), handle(9, 2)}).table, two);
  EXPECT_EQ(known.lookList(0, std::vector{handle(9, 1), handle(7, 1)}).table, turned);
  EXPECT_EQ(known.lookList(0, std::vector{handle(7, 1), handle(9, 1), handle(9, 1)}).table, three);
  EXPECT_EQ(known.lookList(0, std::vector<Slot>{}).table, empty);
  // Another list with the same hash: what is there is compared.
  reinterpret_cast<uint32_t *>(rows.address(two))[1] = 10;
  KnownRecords::List other = known.lookList(0, std::vector{handle(7, 1), handle(9, 1)});
  EXPECT_FALSE(other.table);
  EXPECT_EQ(other.in.entry, nullptr);
  // Rows are given back, or the mini-batch is over.
  known.forgetSeen();
  EXPECT_FALSE(known.lookList(0, std::vector{handle(9, 1), handle(7, 1)}).table);
}

TEST(RecordTable, KeysAreBits) {
  MemoryMeter meter(1 << 20);
  MemoryKind count;
  {
    RecordTable table(2, meter, count, 2);
    auto key = [](double value) { return std::bit_cast<std::array<int32_t, 2>>(value); };
    double nan = std::numeric_limits<double>::quiet_NaN();
    uint32_t id = 1;
    for (double value : {0.0, -0.0, nan, -nan}) {
      RecordTable::Place place = table.find(key(value).data(), 1);
      ASSERT_NE(place.entry, nullptr);
      EXPECT_FALSE(place.known);
      table.put(place, key(value).data(), {id++, 9}, 1);
    }
    RecordTable::Place place = table.find(key(nan).data(), 1);
    ASSERT_TRUE(place.known);
    EXPECT_EQ(place.entry->id, 3u);
    EXPECT_EQ(place.entry->depth, 9u);
    // Another stamp: all is forgotten, whether numbers went on or came round.
    EXPECT_FALSE(table.find(key(nan).data(), 2).known);
    EXPECT_FALSE(table.find(key(nan).data(), 1).known);
    EXPECT_EQ(count.now, table.bytes());
  }
  EXPECT_EQ(count.now, 0u);
}

TEST(RecordTable, GrowsAsFarAsItMay) {
  MemoryMeter meter(130000);
  MemoryKind count;
  RecordTable table(1, meter, count, 2);
  uint32_t put = 0;
  for (int32_t key = 0; key < 100000; ++key) {
    RecordTable::Place place = table.find(&key, 5);
    ASSERT_FALSE(place.known);
    if (!place.entry)
      continue;
    table.put(place, &key, {put++, 0}, 1);
  }
  // 20 bytes each, in a power of two, and an old and a new table at a time.
  EXPECT_GE(put, 3500u);
  EXPECT_LT(put, 4096u);
  for (int32_t key = 0; key < static_cast<int32_t>(put); ++key) {
    RecordTable::Place place = table.find(&key, 5);
    ASSERT_TRUE(place.known);
    EXPECT_EQ(place.entry->id, static_cast<uint32_t>(key));
  }
}

} // namespace

// A session on devices other than the processor.
#include "runtime/devices/devices.h"
#include "runtime/memory/memory.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include <sys/mman.h>

using namespace sheaf;
using namespace sheaf::rt;
using namespace sheaf::rt::test;

namespace {

SessionOptions on(const char *device) {
  SessionOptions options;
  options.hostStackBytes = uint64_t(64) << 20;
  options.memoryLimit = uint64_t(1) << 40;
  for (const DeviceRecord &each : devices())
    if (each.name == device)
      options.device = each.make;
  EXPECT_NE(options.device, nullptr);
  return options;
}

TEST(NullDevice, CountsAsTheProcessorDoes) {
  Model model = makeTreeModel(20);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(64);
  for (bool hostile : {false, true}) {
    Counters counters[2];
    MemoryUse memory[2];
    for (int i : {0, 1}) {
      SessionOptions options = on(i == 0 ? "cpu" : "null");
      options.hostile = hostile;
      Session session(model, options);
      session.initParams(7);
      for (int run = 0; run < 2; ++run)
        for (const Outcome &outcome : session.run(batch)) {
          ASSERT_TRUE(outcome.ok());
          EXPECT_GT(outcome.slots[1], 0); // what the host computes is there
        }
      counters[i] = session.counters();
      memory[i] = session.memory();
    }
    EXPECT_GT(counters[0].launches, 0U);
    EXPECT_EQ(counters[1].launches, counters[0].launches);
    EXPECT_EQ(counters[1].records, counters[0].records);
    EXPECT_EQ(counters[1].flop, counters[0].flop);
    EXPECT_EQ(counters[1].flushes, counters[0].flushes);
    EXPECT_EQ(counters[1].launchSizes, counters[0].launchSizes);
    for (size_t k = 0; k < model.kernels.size(); ++k) {
      EXPECT_EQ(counters[1].kernels[k].records, counters[0].kernels[k].records);
      EXPECT_EQ(counters[1].kernels[k].maxRecords, counters[0].kernels[k].maxRecords);
    }
    for (const NamedMemoryKind &kind : kMemoryKinds) {
      EXPECT_EQ((memory[1].*kind.kind).now, (memory[0].*kind.kind).now) << kind.name;
      EXPECT_EQ((memory[1].*kind.kind).peak, (memory[0].*kind.kind).peak) << kind.name;
    }
  }
}

TEST(NullDevice, RowsTakeNoMemory) {
  Model model = makeTreeModel(64);
  Trees trees;
  std::vector<Instance> batch = trees.randomBatch(4000);
  SessionOptions options = on("null");
  options.waveBytes = 0;
  options.rowReuse = When::Never;
  Session session(model, options);
  session.initParams(7);
  session.run(batch);
  uint64_t bytes = session.memory().rows.now;
  ASSERT_GT(bytes, uint64_t(8) << 20); // a page may be of 2 MB, and parameters stand in the first
  uint8_t *begin = const_cast<uint8_t *>(session.rows()) +
                   uint64_t(model.paramGranules) * kGranuleBytes + bytes / 2;
  begin -= reinterpret_cast<uintptr_t>(begin) % pageBytes();
  unsigned char isThere = 1;
  ASSERT_EQ(mincore(begin, 1, &isThere), 0);
  EXPECT_EQ(isThere & 1, 0);
}

TEST(Buffers, AreChargedWhileTheyAreThere) {
  Model model = makeTreeModel(20);
  for (const char *device : {"cpu", "null"}) {
    Session session(model, on(device));
    uint32_t first = session.makeBuffer(100, "a test"), second = session.makeBuffer(200, "a test");
    EXPECT_NE(first, second) << device;
    EXPECT_EQ(session.memory().training.now, 300U) << device;
    session.dropBuffer(first);
    EXPECT_EQ(session.memory().training.now, 200U) << device;
    session.dropBuffer(second);
    EXPECT_EQ(session.memory().training.now, 0U) << device;
  }
}

TEST(Buffers, ThatTheMachineLacksAreNotCharged) {
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "sanitizers end the process";
#endif
  Model model = makeTreeModel(20);
  SessionOptions options = on("cpu");
  options.memoryLimit = UINT64_MAX;
  Session session(model, options);
  EXPECT_THROW(session.makeBuffer(uint64_t(1) << 60, "a test"), std::bad_alloc);
  EXPECT_EQ(session.memory().training.now, 0U);
  session.dropBuffer(session.makeBuffer(100, "a test"));
  EXPECT_EQ(session.memory().training.now, 0U);
}

TEST(NullDevice, SaysWhatItLacks) {
  Model model = makeTreeModel(20);
  Trees trees;
  Session session(model, on("null"));
  session.initParams(7);
  const Outcome &outcome = session.run(trees.randomBatch(1)).front();
  EXPECT_THROW(session.tensor(kTensorType, outcome.slots), UserError);
  EXPECT_THROW(session.packedWeights(), UserError);
}

} // namespace

// What instances read, taken from a log.
#include "runtime/cpu/kernel_code.h"
#include "runtime/devices/devices.h"
#include "runtime/model/error.h"
#include "runtime/session/engine.h"
#include "runtime/session/session.h"
#include "runtime/walk/read_replay.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <bit>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

TEST(ReadReplay, GivesEachThreadOfControlItsOwn) {
  ReadLog log;
  uint32_t first = log.begin();
  log.asked(first, true);
  uint32_t child = log.fork(first);
  log.note(first, {0, 1});
  log.asked(first, false);
  log.note(first, {1, 2});
  log.note(child, {2, 3});
  uint32_t second = log.begin();
  log.note(second, {0, 4});

  ReadReplay replay(log);
  EXPECT_EQ(replay.left(), 2u);
  for (int walk = 0; walk < 2; ++walk) {
    uint32_t own = replay.begin(), other = replay.begin();
    EXPECT_EQ(replay.left(), 0u);
    EXPECT_TRUE(replay.asked(own, false)); // as there, whatever would be here
    uint32_t fork = replay.fork(own);
    EXPECT_EQ(replay.read(other, {0, -1}), 4);
    EXPECT_EQ(replay.read(own, {0, -1}), 1);
    EXPECT_FALSE(replay.asked(own, true));
    EXPECT_EQ(replay.read(own, {1, -1}), 2);
    EXPECT_EQ(replay.read(fork, {2, -1}), 3);
    for (uint32_t thread : {own, other, fork})
      EXPECT_EQ(replay.read(thread, {0, -1}), std::nullopt); // no more
    replay.keep(0);
  }
}

TEST(ReadReplay, BeginsAgain) {
  ReadLog log;
  uint32_t thread = log.begin();
  uint32_t child = log.fork(thread);
  log.note(child, {0, 7});
  ReadReplay replay(log);
  uint32_t own = replay.begin();
  for (int walk = 0; walk < 2; ++walk) {
    EXPECT_EQ(replay.read(replay.fork(own), {0, -1}), 7);
    replay.beginAgain(own);
  }
}

/// As it did: what it read when it was first walked, it reads first.
TEST(ReadReplay, BeginsAgainAsTheLogDid) {
  ReadLog log;
  uint32_t first = log.begin();
  log.note(first, {0, 1});
  uint32_t again = log.beginAgain(first);
  log.note(again, {0, 2});
  log.note(again, {0, 3});
  log.note(log.begin(), {0, 4});
  EXPECT_EQ(log.of(0).size(), 2u);
  ReadReplay replay(log);
  for (int run = 0; run < 2; ++run) {
    uint32_t own = replay.begin();
    EXPECT_EQ(replay.read(own, {0, -1}), 1);
    EXPECT_EQ(replay.read(own, {0, -1}), std::nullopt);
    EXPECT_TRUE(replay.knowsMore(own));
    own = replay.beginAgain(own);
    EXPECT_EQ(replay.read(own, {0, -1}), 2);
    EXPECT_FALSE(replay.knowsMore(own));
    EXPECT_EQ(replay.read(replay.begin(), {0, -1}), 4);
    replay.keep(0);
  }
}

TEST(ReadReplay, KnowsNothingElse) {
  ReadLog log;
  uint32_t thread = log.begin();
  log.note(thread, {3, 1});
  ReadReplay replay(log);
  uint32_t own = replay.begin();
  EXPECT_EQ(replay.read(own, {2, -1}), std::nullopt); // another place
  uint32_t unknown = replay.fork(own);
  EXPECT_EQ(replay.read(unknown, {3, -1}), std::nullopt);
  EXPECT_EQ(replay.read(replay.fork(unknown), {3, -1}), std::nullopt);
  EXPECT_EQ(replay.read(replay.begin(), {3, -1}), std::nullopt);
  EXPECT_EQ(replay.read(own, {3, -1}), 1);
}

// Adds ones to a number until it has reached the argument, looking at it after each; the result is
// how many it took.
void addOne(const int32_t *records, int64_t begin, int64_t end, int64_t, int64_t, uint8_t *rows,
            const void *const *, uint8_t *) {
  auto numberAt = [&](int32_t id) {
    return reinterpret_cast<float *>(rows + uint64_t(static_cast<uint32_t>(id)) * kGranuleBytes);
  };
  for (int64_t i = begin; i < end; ++i)
    *numberAt(records[2 * i + 1]) = *numberAt(records[2 * i]) + 1;
}

template <bool Older>
UNINSTRUMENTED void countingEntry(Context *context, const Slot *args, Slot *results) {
  Slot handle = TensorHandle{0, 0}.pack(); // the parameter
  double number = 0;
  for (results[0] = 0; number < static_cast<double>(args[0]); ++results[0]) {
    TensorHandle before = TensorHandle::unpack(handle);
    uint32_t depth = std::max(before.depth, static_cast<uint32_t>(context->computed));
    int32_t *words = sheaf_record(context, 0, depth, 1);
    words[0] = static_cast<int32_t>(before.id);
    TensorHandle sum{static_cast<uint32_t>(words[1]), depth + 1};
    handle = sum.pack();
    if (int64_t{sum.depth} > context->visible)
      sheaf_wait(context, 0, handle, 0, sizeof(float));
    number = *reinterpret_cast<const float *>(context->rows + uint64_t(sum.id) * kGranuleBytes);
    auto slot = std::bit_cast<Slot>(number);
    if (context->readWatch && Older)
      sheaf_note_read(context, 0, slot);
    else if (context->readWatch)
      number = std::bit_cast<double>(sheaf_read(context, 0, slot));
  }
}

Model countingModel(EntryFn entry = countingEntry<false>) {
  Model model;
  model.types.types.resize(1);
  model.types.types[0].kind = TypeKind::Int;
  model.entry.argTypes = {0};
  model.entry.resultType = 0;
  model.entry.fn = entry;
  model.reads = true;
  model.readPlaces = {"count.sheaf:3"};
  ParamDesc &zero = model.params.emplace_back();
  zero.name = "zero";
  zero.shape = {1};
  zero.init = "zeros";
  model.paramGranules = 1;
  KernelDesc &kernel = model.kernels.emplace_back();
  kernel.name = "addOne";
  kernel.words = 2;
  cpuCode(model).kernels[0].fn = addOne;
  kernel.layout = {{RecordWord::Row, "number", {1}}, {RecordWord::Out, "result"}};
  kernel.results = {{DType::F32, {{{1, {}}}}}};
  kernel.resultRows = {{0}};
  return model;
}

DeviceFactory device(std::string_view name) {
  for (const DeviceRecord &each : devices())
    if (each.name == name)
      return each.make;
  return nullptr;
}

class Counting : public testing::Test {
protected:
  explicit Counting(EntryFn entry = countingEntry<false>) : model(countingModel(entry)) {
    for (int64_t i = 0; i < 9; ++i)
      batch.push_back({&steps[static_cast<size_t>(i)], i});
  }

  SessionOptions on(const char *name) const {
    SessionOptions options;
    // An emulator has few addresses.
    options.hostStackBytes = uint64_t(1) << 20;
    options.fibers = 16;
    options.memoryLimit = uint64_t(256) << 20;
    options.rowSpaceBytes = uint64_t(64) << 20;
    options.device = device(name);
    return options;
  }

  Model model;
  const Slot steps[9] = {3, 1, 0, 7, 2, 9, 4, 4, 30};
  std::vector<Instance> batch;
};

TEST_F(Counting, TheNullDeviceGoesTheSameWay) {
  ReadLog log;
  Session cpu(model, on("cpu")), null(model, on("null"));
  for (Session *session : {&cpu, &null})
    session->initParams(1);
  cpu.setReadLog(&log);
  cpu.run(batch);
  cpu.run(std::span(batch).first(4));
  null.replayReads(&log);
  for (size_t count : {9, 4}) {
    std::span<const Outcome> outcomes = null.run(std::span(batch).first(count));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(outcomes[i].ok()) << outcomes[i].error->message();
      EXPECT_EQ(outcomes[i].slots[0], steps[i]);
    }
  }
  EXPECT_EQ(null.counters().launches, cpu.counters().launches);
  EXPECT_EQ(null.counters().flushes, 30u + 7u);
  EXPECT_EQ(null.counters().launchSizes, cpu.counters().launchSizes);
  EXPECT_EQ(null.memory().rows.peak, cpu.memory().rows.peak);
  // There is no more of it.
  EXPECT_THROW(null.run(std::span(batch).first(1)), UserError);
  // From its beginning.
  null.replayReads(&log);
  EXPECT_TRUE(null.run(batch)[8].ok());
}

/// One after the other, each with what it read.
TEST_F(Counting, AnEngineTakesThemToo) {
  ReadLog log;
  Session cpu(model, on("cpu")), null(model, on("null"));
  for (Session *session : {&cpu, &null})
    session->initParams(1);
  cpu.setReadLog(&log);
  cpu.run(batch);
  null.replayReads(&log);
  Engine engine(null);
  std::vector<Slot> results(batch.size(), -1);
  for (const Instance &instance : batch)
    engine.submit({.instance = instance, .done = [&](const Outcome &outcome) {
                     if (outcome.ok())
                       results[static_cast<size_t>(instance.index)] = outcome.slots[0];
                   }});
  while (engine.step()) {
  }
  EXPECT_EQ(results, std::vector<Slot>(std::begin(steps), std::end(steps)));
}

/// Whatever the device finds itself.
TEST_F(Counting, TheLogCounts) {
  ReadLog log;
  uint32_t thread = log.begin();
  log.note(thread, {0, std::bit_cast<Slot>(100.0)});
  Session cpu(model, on("cpu"));
  cpu.initParams(1);
  cpu.replayReads(&log);
  EXPECT_EQ(cpu.run(std::span(batch).first(1))[0].slots[0], 1);
  cpu.replayReads(nullptr);
  EXPECT_EQ(cpu.run(std::span(batch).first(1))[0].slots[0], 3);
}

TEST_F(Counting, AnInstanceFailsAloneWhereTheLogEnds) {
  ReadLog log;
  for (double number : {3.0, 0.5})
    log.note(log.begin(), {0, std::bit_cast<Slot>(number)});
  Session null(model, on("null"));
  null.initParams(1);
  null.replayReads(&log);
  std::span<const Outcome> outcomes = null.run(std::span(batch).first(2));
  ASSERT_TRUE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].slots[0], 1);
  ASSERT_FALSE(outcomes[1].ok());
  EXPECT_EQ(outcomes[1].error->message(),
            "count.sheaf:3: the log of reads has no value for this read: it was written by another "
            "program, or for other instances");
}

TEST_F(Counting, WithoutALogTheNullDeviceRefuses) {
  Session null(model, on("null"));
  null.initParams(1);
  ReadLog log;
  null.setReadLog(&log); // one to be written
  EXPECT_THROW(Engine engine(null), UserError);
  try {
    null.run(batch);
    FAIL();
  } catch (const UserError &error) {
    EXPECT_STREQ(error.what(), "the device computes nothing, and the program reads tensors: "
                               "count.sheaf:3: a log of what they hold is needed");
  }
  log.begin();
  null.replayReads(&log);
  try {
    null.run(batch);
    FAIL();
  } catch (const UserError &error) {
    EXPECT_STREQ(error.what(), "the log of reads has 1 more instances; 9 are to run");
  }
}

class OlderCode : public Counting {
protected:
  OlderCode() : Counting(countingEntry<true>) {}
};

TEST_F(OlderCode, IsLoggedAndDoesNotTakeOtherNumbers) {
  ReadLog log;
  Session cpu(model, on("cpu")), null(model, on("null"));
  for (Session *session : {&cpu, &null})
    session->initParams(1);
  cpu.setReadLog(&log);
  ASSERT_TRUE(cpu.run(batch)[0].ok());
  EXPECT_EQ(log.of(0).size(), 3u);
  null.replayReads(&log);
  const Outcome &outcome = null.run(batch)[0];
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->message(),
            "count.sheaf:3: code of an older Sheaf takes no value from a log: build it again");
}

} // namespace

//===- recompute_test.cpp - Rows that are dropped and made again ----------===//

#include "runtime/schedule/dropped_rows.h"
#include "runtime/schedule/row_plan.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <map>

namespace sheaf::rt {
namespace {

constexpr uint32_t kShared = 2, kOwn = 3, kAll = kShared + kOwn;

/// One kernel: reads what the step before made for others, and makes that and what it keeps.
Model model() {
  Model model;
  model.paramGranules = 4;
  KernelDesc &step = model.kernels.emplace_back();
  step.layout = {{RecordWord::Row, "s", {kShared, 16}}, {RecordWord::Out, "out"}};
  step.words = 2;
  auto tensor = [](int64_t rows) { return RecordTensor{DType::F32, {{{rows, {}}}, {{16, {}}}}}; };
  step.results = {tensor(kShared), tensor(kOwn)};
  step.flop = {{1000, {}}};
  return model;
}

/// Sequences side by side, each step after the one before, the last steps' results wanted.
class Chains {
public:
  Chains(uint32_t steps, uint32_t sequences) : sequences_(sequences) {
    records_.resize(size_t(steps) * sequences * 2);
    std::vector<uint32_t> before(sequences, 1); // a parameter
    for (uint32_t t = 0; t < steps; ++t) {
      int32_t *records = records_.data() + size_t(t) * sequences * 2;
      for (uint32_t i = 0; i < sequences; ++i) {
        records[2 * i] = static_cast<int32_t>(before[i]);
        before[i] = static_cast<uint32_t>(promised_.allocate(kAll));
        records[2 * i + 1] = static_cast<int32_t>(before[i]);
      }
      schedule_.push_back({t, 0, records, sequences});
    }
    for (uint32_t id : before)
      handles_.push_back(TensorHandle{id, 0}.pack());
    for (Slot &handle : handles_)
      results_.push_back(&handle);
  }

  bool choose(uint64_t most, bool compact) {
    return choice_.make(schedule_, promised_, results_, rows_, most, compact);
  }
  /// What stays of a step of a sequence.
  uint32_t staying(uint32_t step, uint32_t sequence = 0) const {
    return choice_.staying()[size_t(step) * sequences_ + sequence];
  }
  uint64_t promised() const { return promised_.granules(); }

  Model model_ = model();
  MemoryMeter meter_{uint64_t(1) << 30};
  MemoryKind kind_, rowKind_;
  HostRows memory_{model_.paramGranules, uint64_t(1) << 22};
  RowSpace rows_{model_.paramGranules, memory_, meter_, rowKind_, false};
  PromisedRows promised_{meter_, kind_};
  RowWords words_{model_};
  RecomputeChoice choice_{model_, words_, meter_, kind_};
  RowPlan plan_{model_, words_, meter_, kind_};
  DroppedRows dropped_{model_, words_, meter_, kind_};
  uint32_t sequences_;
  std::vector<int32_t> records_;
  Schedule schedule_;
  std::vector<Slot> handles_;
  std::vector<Slot *> results_;
};

TEST(Recompute, KeepsAllThatMayStay) {
  Chains chains(10, 3);
  ASSERT_TRUE(chains.choose(chains.promised(), false));
  EXPECT_EQ(chains.choice_.droppedGranules(), 0U);
  for (uint32_t t = 0; t < 10; ++t)
    EXPECT_EQ(chains.staying(t), kAll);
}

TEST(Recompute, DropsEveryOtherStep) {
  Chains chains(41, 3);
  ASSERT_TRUE(chains.choose(chains.promised() * 55 / 100, false));
  EXPECT_GE(chains.choice_.droppedGranules(), chains.promised() * 44 / 100);
  for (uint32_t t = 1; t < 41; ++t)
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(chains.staying(t - 1, i) == 0 && chains.staying(t, i) == 0) << t;
      EXPECT_TRUE(chains.staying(t, i) == 0 || chains.staying(t, i) == kAll);
    }
  EXPECT_EQ(chains.staying(40), kAll) << "a result";
}

TEST(Recompute, KeepsWhatOthersRead) {
  Chains chains(41, 3);
  ASSERT_TRUE(chains.choose(chains.promised() / 2, true));
  EXPECT_GE(chains.choice_.droppedGranules(), chains.promised() * 48 / 100);
  for (uint32_t t = 0; t < 40; ++t)
    EXPECT_GE(chains.staying(t), kShared) << "what others read is there";
}

TEST(Recompute, DropsShortChainsAtMost) {
  for (bool compact : {false, true}) {
    Chains chains(200, 2);
    ASSERT_TRUE(chains.choose(0, compact));
    uint32_t chain = 0, longest = 0;
    for (uint32_t t = 0; t < 200; ++t)
      longest = std::max(longest, chain = chains.staying(t) == 0 ? chain + 1 : 0);
    EXPECT_GT(longest, 1U);
    EXPECT_LE(longest, 4U);
  }
}

TEST(Recompute, MakesAgainWhatIsNeededAndWhatItFollowsFrom) {
  for (bool compact : {false, true})
    for (uint64_t share : {0, 20, 40, 60, 80}) {
      Chains chains(50, 3);
      ASSERT_TRUE(chains.choose(chains.promised() * share / 100, compact));
      std::span<const uint32_t> staying = chains.choice_.staying();
      ASSERT_TRUE(chains.plan_.make(chains.schedule_, chains.promised_, chains.results_,
                                    chains.rows_, staying));
      uint64_t next = 1000;
      ASSERT_TRUE(chains.plan_.placeStaying([&](uint64_t granules) {
        next += granules;
        return next - granules;
      }));
      EXPECT_EQ(chains.plan_.staying(), next - 1000);
      // What each place holds, by what was made: the step and the sequence, and which granule.
      std::map<uint32_t, uint32_t> held;
      auto tag = [](uint32_t allocation, uint32_t g) { return allocation * kAll + g + 1; };
      for (uint32_t a = 0; a < staying.size(); ++a) {
        auto id = static_cast<uint32_t>(PromisedRows::kFirst + a * kAll);
        for (uint32_t g = 0; g < staying[a]; ++g)
          held[chains.plan_.placeOf(id + g)] = tag(a, g);
      }
      chains.plan_.applyStaying(next);
      std::vector<MadeBy> origins(chains.schedule_.size());
      for (uint32_t i = 0; i < origins.size(); ++i)
        origins[i].launch = i;
      ASSERT_TRUE(chains.dropped_.begin(chains.choice_, chains.plan_.placesStaying(), origins, 0));
      chains.dropped_.takeNames(chains.promised_);

      uint32_t free = 1000000;
      size_t again = 0;
      for (uint32_t t = 50; t-- > 0;) {
        const ScheduledBucket &launch = chains.schedule_[t];
        std::vector<uint32_t> reads;
        for (int64_t r = 0; r < launch.count; ++r) {
          auto out = static_cast<uint32_t>(launch.records[2 * r + 1]);
          chains.dropped_.goBack(out);
          reads.insert(reads.end(),
                       {static_cast<uint32_t>(launch.records[2 * r]), out, out + kShared});
        }
        for (uint32_t id : reads)
          chains.dropped_.need(id);
        auto launches =
            chains.dropped_.makeAgain(chains.schedule_, chains.rows_, [&](uint32_t granules) {
              return (free += granules) - granules;
            });
        for (const ScheduledBucket &made : launches)
          for (int64_t r = 0; r < made.count; ++r, ++again) {
            auto from = static_cast<uint32_t>(made.records[2 * r]);
            auto to = static_cast<uint32_t>(made.records[2 * r + 1]);
            // It follows from the first granules of the step before, or from the parameter.
            uint32_t before = from == 1 ? 0 : held.at(from);
            EXPECT_EQ((before + kAll - 1) % kAll, from == 1 ? kAll - 1 : 0U);
            uint32_t sequence = from == 1 ? static_cast<uint32_t>(r) : (before - 1) / kAll % 3;
            uint32_t step = from == 1 ? 0 : (before - 1) / kAll / 3 + 1;
            for (uint32_t g = 0; g < kAll; ++g)
              held[to + g] = tag(step * 3 + sequence, g);
          }
        for (int64_t r = 0; r < launch.count; ++r) {
          uint32_t own = t * 3 + static_cast<uint32_t>(r);
          std::vector<uint32_t> wanted = {t ? tag(own - 3, 0) : 0, tag(own, 0), tag(own, kShared)};
          for (size_t i = 0; i < 3; ++i) {
            uint32_t id = reads[size_t(r) * 3 + i];
            chains.dropped_.place(id);
            EXPECT_EQ(id == 1 ? 0 : held.at(id), wanted[i]) << "step " << t << ", " << i;
          }
        }
        chains.dropped_.endPiece(/*endsSegment=*/t % 10 == 0, [&](uint32_t place, uint32_t n) {
          for (uint32_t g = 0; g < n; ++g)
            EXPECT_EQ(held.erase(place + g), 1U);
        });
        ASSERT_FALSE(HasFailure()) << "step " << t << ", " << share << ", " << compact;
      }
      EXPECT_GT(again, 0U);
    }
}

} // namespace
} // namespace sheaf::rt

// Which way the flusher sends kernels along panels of weights.
#include "runtime/cpu/flush.h"

#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

TEST(Division, PiecesHaveEqualWork) {
  using Ends = std::vector<int64_t>;
  auto cut = [](std::vector<double> works, int64_t pieces) {
    std::partial_sum(works.begin(), works.end(), works.begin());
    EXPECT_EQ(cutByWork(works, pieces, 0), 0);
    Ends ends;
    for (int64_t piece = 0; piece < pieces; ++piece)
      ends.push_back(cutByWork(works, pieces, piece + 1));
    EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
    return ends;
  };
  EXPECT_EQ(cut({1, 1, 1, 1}, 2), (Ends{2, 4}));
  // As lengths that were sorted are.
  EXPECT_EQ(cut({1, 2, 3, 4, 5, 6, 7, 8}, 2), (Ends{5, 8}));
  EXPECT_EQ(cut({8, 7, 6, 5, 4, 3, 2, 1}, 2), (Ends{2, 8}));
  // One that is most of all has a piece of its own, and others may have none.
  EXPECT_EQ(cut({100, 1, 1, 1}, 2), (Ends{1, 4}));
  EXPECT_EQ(cut({1, 1, 1, 100}, 2), (Ends{3, 4}));
  EXPECT_EQ(cut({100}, 3), (Ends{0, 1, 1}));
  EXPECT_EQ(cut({0, 0, 0}, 2).back(), 3);
  std::vector<double> works;
  for (int i = 0; i < 500; ++i)
    works.push_back(4 + i * 7 % 509);
  for (int64_t pieces = 2; pieces < 9; ++pieces) {
    double sum = 0, most = 0;
    int64_t begin = 0;
    for (int64_t end : cut(works, pieces)) {
      double piece = 0;
      for (; begin < end; ++begin)
        piece += works[static_cast<size_t>(begin)];
      sum += piece;
      most = std::max(most, piece);
    }
    EXPECT_EQ(begin, 500);
    EXPECT_LT(most, sum / static_cast<double>(pieces) + 520);
  }
}

/// What kernels were called with, by the address of their first weight.
struct Call {
  int64_t begin, end;
  bool operator==(const Call &) const = default;
};
std::mutex mutex;
std::map<std::pair<std::thread::id, const void *>, std::vector<Call>> calls;

void note(const int32_t *, int64_t, int64_t, int64_t panelBegin, int64_t panelEnd, uint8_t *,
          const void *const *weights, uint8_t *) {
  std::lock_guard lock(mutex);
  calls[{std::this_thread::get_id(), weights[0]}].push_back({panelBegin, panelEnd});
}

/// Two parameters of 64 columns in four panels, and kernels that read one of them each.
struct Panels {
  Model model;
  MemoryMeter meter{UINT64_MAX};
  MemoryKind packedBytes;
  AlignedBytes rows;
  std::unique_ptr<PackedWeights> weights;

  Panels() {
    for (uint32_t i = 0; i < 2; ++i) {
      ParamDesc param;
      param.name = "w" + std::to_string(i);
      param.shape = {8 + i, 64};
      param.id = model.paramGranules;
      model.paramGranules += static_cast<uint32_t>(tensorGranules(param.shape, param.dtype));
      model.params.push_back(param);
    }
  }
  void kernel(uint32_t param, uint32_t panels, bool serpentine) {
    KernelDesc desc;
    desc.name = "k" + std::to_string(model.kernels.size());
    model.kernels.push_back(desc);
    CpuKernel &code = cpuCode(model).kernels.back();
    code.fn = note;
    code.panels = panels;
    code.serpentine = serpentine;
    WeightUse use;
    use.kind = WeightUse::Panels;
    use.views = {{{{param, 0, 8}}, 0}};
    use.width = 64;
    code.weights = {use};
  }
  /// Launches these kernels one after the other, one record each.
  void run(const std::vector<uint32_t> &kernels, unsigned threads) {
    rows = allocateAligned(model.paramGranules * kGranuleBytes);
    weights = std::make_unique<PackedWeights>(model, rows.get(), meter, packedBytes);
    weights->pack();
    Flusher flusher(model, std::make_shared<Workers>(threads), /*hostile=*/threads > 1);
    Counters counters;
    counters.kernels.resize(model.kernels.size());
    static const int32_t record = 0;
    calls.clear();
    uint32_t depth = 0;
    for (uint32_t kernel : kernels) { // each is a flush: the direction is kept between them
      ScheduledBucket bucket{depth++, kernel, &record, 1};
      flusher.run({.buckets = {&bucket, 1}, .counters = &counters}, rows.get(), *weights, nullptr);
    }
  }
  std::vector<Call> callsOf(size_t kernel) {
    return calls[{std::this_thread::get_id(), weights->of(kernel)[0]}];
  }
};

const Call kThere{0, 4}, kBack{4, 0};

TEST(Serpentine, EveryOtherLaunchGoesBack) {
  Panels panels;
  panels.kernel(0, 4, true);
  panels.run({0, 0, 0, 0}, 1);
  EXPECT_EQ(panels.callsOf(0), (std::vector<Call>{kBack, kThere, kBack, kThere}));
}

TEST(Serpentine, KernelsThatCannotAreCalledAsEver) {
  Panels panels;
  panels.kernel(0, 4, false);
  panels.kernel(1, 0, false);
  panels.run({0, 1, 0, 1}, 1);
  EXPECT_EQ(panels.callsOf(0), (std::vector<Call>{kThere, kThere}));
  EXPECT_EQ(panels.callsOf(1), (std::vector<Call>{{0, 0}, {0, 0}}));
}

TEST(Serpentine, OneThatIsNotSplitIsToldBySomePanels) {
  Panels panels;
  panels.kernel(0, 0, true);
  panels.kernel(1, 1, true);
  panels.run({0, 0, 1, 1}, 1);
  EXPECT_EQ(panels.callsOf(0), (std::vector<Call>{{1, 0}, {0, 0}}));
  EXPECT_EQ(panels.callsOf(1), (std::vector<Call>{{1, 0}, {0, 1}}));
}

// Two kernels that read the same copy take turns; one of another copy has no part in it.
TEST(Serpentine, TheDirectionIsThatOfThePackedCopy) {
  Panels panels;
  panels.kernel(0, 4, true);
  panels.kernel(1, 4, true);
  panels.kernel(0, 4, true);
  panels.run({0, 1, 2, 1, 0}, 1);
  ASSERT_EQ(panels.weights->of(0)[0], panels.weights->of(2)[0]);
  EXPECT_EQ(panels.callsOf(0), (std::vector<Call>{kBack, kThere, kBack}));
  EXPECT_EQ(panels.callsOf(1), (std::vector<Call>{kBack, kThere}));
}

TEST(Serpentine, EachThreadTurnsItsOwnShare) {
  Panels panels;
  panels.kernel(0, 4, true);
  panels.run({0, 0, 0}, 2);
  const void *copy = panels.weights->of(0)[0];
  EXPECT_EQ(panels.callsOf(0), (std::vector<Call>{{2, 0}, {0, 2}, {2, 0}}));
  for (auto &[by, made] : calls)
    if (by.first != std::this_thread::get_id() && by.second == copy)
      EXPECT_EQ(made, (std::vector<Call>{{4, 2}, {2, 4}, {4, 2}}));
  size_t all = 0;
  for (auto &[by, made] : calls)
    all += made.size();
  EXPECT_EQ(all, 6u);
}

/// Kernels whose launches are divided by records, and how: by depth, which is what records say.
struct Divided {
  static constexpr size_t kDepths = 10;
  static inline std::function<void(size_t depth, int64_t begin)> atCall;
  std::vector<std::multiset<std::pair<int64_t, int64_t>>> pieces;

  /// `kind`: of the kernel's weights, which are not packed.
  explicit Divided(std::shared_ptr<Workers> workers, bool hostile,
                   WeightUse::Kind kind = WeightUse::Panels)
      : pieces(kDepths) {
    ParamDesc &param = model_.params.emplace_back();
    param.name = "w";
    param.shape = {8, 64};
    model_.paramGranules = static_cast<uint32_t>(tensorGranules(param.shape, param.dtype));
    memory_ = allocateAligned(model_.paramGranules * kGranuleBytes);
    model_.kernels.emplace_back().name = "k";
    model_.kernels.back().words = 1;
    CpuKernel &code = cpuCode(model_).kernels.back();
    code.fn = [](const int32_t *records, int64_t begin, int64_t end, int64_t, int64_t, uint8_t *,
                 const void *const *, uint8_t *) {
      auto depth = static_cast<size_t>(records[begin]);
      if (atCall)
        atCall(depth, begin);
      std::lock_guard lock(mutex);
      now_->pieces[depth].insert({begin, end});
    };
    WeightUse &use = code.weights.emplace_back();
    use.kind = kind;
    use.views = {{{{0, 0, 8}}, 0}};
    use.width = 64;
    now_ = this;
    constexpr int64_t kRecords = 500; // enough to be worth it
    std::vector<int32_t> records;
    std::vector<ScheduledBucket> buckets;
    for (size_t depth = 0; depth < kDepths; ++depth)
      records.insert(records.end(), kRecords, static_cast<int32_t>(depth));
    for (size_t depth = 0; depth < kDepths; ++depth)
      buckets.push_back(
          {static_cast<uint32_t>(depth), 0, records.data() + depth * kRecords, kRecords});
    PackedWeights weights(model_, memory_.get(), meter_, packed_);
    Counters counters;
    counters.kernels.resize(1);
    Flusher(model_, std::move(workers), hostile)
        .run({.buckets = buckets, .counters = &counters}, memory_.get(), weights, nullptr);
    atCall = nullptr;
  }

private:
  static inline Divided *now_ = nullptr;
  Model model_;
  MemoryMeter meter_{UINT64_MAX};
  MemoryKind packed_;
  AlignedBytes memory_;
};

// What a vendor's library computes may depend on the division, so it is the same one with all
// workers, some and none.
TEST(SharedWorkers, HaveNoSayInHowLaunchesOfLibrariesAreDivided) {
  auto workers = std::make_shared<Workers>(3);
  Divided alone(workers, /*hostile=*/false, WeightUse::Foreign);
  EXPECT_EQ(alone.pieces[4].size(), 3u);
  Workers::Team other(*workers);
  for (bool hasAll : {false, true}) {
    if (hasAll)
      other.gather();
    EXPECT_EQ(Divided(workers, false, WeightUse::Foreign).pieces, alone.pieces);
  }
}

TEST(SharedWorkers, AreDividedAnewWhileAFlushRuns) {
  auto workers = std::make_shared<Workers>(2);
  std::optional<Workers::Team> other;
  Divided::atCall = [&](size_t depth, int64_t begin) {
    if (begin != 0)
      return;
    if (depth == 3)
      other.emplace(*workers);
    if (depth == 6) {
      other.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(2)); // it may come back at once
    }
  };
  Divided flush(workers, /*hostile=*/true);
  for (size_t depth = 0; depth < Divided::kDepths; ++depth)
    EXPECT_EQ(flush.pieces[depth].size(), depth > 3 && depth < 7 ? 1u : 2u) << depth;
}

} // namespace

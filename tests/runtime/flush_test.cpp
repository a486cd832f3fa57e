// Which way the flusher sends kernels along panels of weights.
#include "runtime/cpu/flush.h"

#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

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
    Flusher flusher(model, threads, /*hostile=*/threads > 1);
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

} // namespace

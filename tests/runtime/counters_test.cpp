#include "runtime/cpu/kernel_code.h"
#include "runtime/measure/clock.h"
#include "runtime/session/session.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <ostream>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;
using namespace sheaf::rt::test;

namespace {

TEST(Clock, RunsAsTheSystemsDoes) {
  using Steady = std::chrono::steady_clock;
  // The thread may lose its core between two readings, but not each time.
  double best = 1;
  for (int attempt = 0; attempt < 10 && best > 0.005; ++attempt) {
    uint64_t begin = clockNow();
    Steady::time_point start = Steady::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    double ours = static_cast<double>(clockNow() - begin);
    double theirs = std::chrono::duration<double, std::nano>(Steady::now() - start).count();
    best = std::min(best, std::abs(ours / theirs - 1));
  }
  EXPECT_LE(best, 0.005);
}

TEST(Clock, NeverGoesBack) {
  uint64_t before = clockNow();
  for (int i = 0; i < 100000; ++i) {
    uint64_t now = clockNow();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, MeasuredTwiceIsTheSame) {
  TickScale once = measureTickScale(), again = measureTickScale();
  ASSERT_EQ(once.nanoseconds == 0, again.nanoseconds == 0);
  if (once.nanoseconds != 0)
    EXPECT_NEAR(static_cast<double>(once.nanoseconds) / static_cast<double>(again.nanoseconds), 1,
                0.01);
}

void spin(uint64_t nanoseconds) {
  for (uint64_t begin = clockNow(); clockNow() - begin < nanoseconds;) {
  }
}

/// A kernel that takes a known time and computes nothing.
template <uint64_t Nanoseconds>
void takes(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *, const void *const *,
           uint8_t *) {
  spin(Nanoseconds);
}

constexpr int64_t kNodes = 200;
constexpr uint64_t kLeafNs = 200000, kNodeNs = 1000;

/// Of one launch of the leaves' kernel and kNodes short ones of the nodes', which take as long
/// together: the parts of the time in kernels, and that over the whole flush's.
struct Shares {
  double leaf, node, ofFlush;
  bool near() const { return leaf > 0.4 && node > 0.4 && ofFlush > 0.8; }
};

std::ostream &operator<<(std::ostream &os, const Shares &shares) {
  return os << "leaf " << shares.leaf << ", node " << shares.node << ", of the flush "
            << shares.ofFlush;
}

Shares sharesAfter(Session &session, std::span<const Instance> batch, int runs) {
  session.resetCounters();
  for (int i = 0; i < runs; ++i)
    session.run(batch);
  const Counters &counters = session.counters();
  double leaf = static_cast<double>(counters.kernels[kLeafKernel].nanoseconds);
  double node = static_cast<double>(counters.kernels[kNodeKernel].nanoseconds);
  double flush = static_cast<double>(counters.flushNanoseconds - counters.orderNanoseconds);
  return {leaf / (leaf + node), node / (leaf + node), (leaf + node) / flush};
}

TEST(Counters, ShortLaunchesShareReadingsOfTheClock) {
  Model model = makeTreeModel(4);
  cpuCode(model).kernels[kLeafKernel].fn = takes<kLeafNs>;
  cpuCode(model).kernels[kNodeKernel].fn = takes<kNodeNs>;
  Trees trees;
  std::vector<Instance> batch{trees.instance(trees.chain(kNodes))};
  // A thread that loses its core spoils a measurement of a few milliseconds, and beside other
  // work it often does: one that is left alone is enough.
  Shares first{}, learnt{};
  for (int attempt = 0; attempt < 200 && !(first.near() && learnt.near()); ++attempt) {
    SessionOptions options;
    Session session(model, options);
    session.initParams(1);
    // Measured one by one at first, then mostly together, by what was learnt.
    for (auto [shares, runs] : {std::pair{&first, 10}, {&learnt, 60}}) {
      Shares now = sharesAfter(session, batch, runs);
      if (!shares->near())
        *shares = now;
    }
  }
  EXPECT_TRUE(first.near()) << first;
  EXPECT_TRUE(learnt.near()) << learnt;
}

} // namespace

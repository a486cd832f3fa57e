#include "runtime/device/workers.h"

#include "runtime/device/float_environment.h"
#include "runtime/measure/clock.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sheaf::rt {

namespace {
/// About 5 us of pausing: a barrier is met within that unless a thread has lost its core.
constexpr int kSpinsBeforeYield = 400;
/// About 200 us where no one else wants the core: longer than recording the next of small
/// mini-batches takes.
constexpr int kYieldsBeforeSleep = 400;
/// Threads have unequal parts, and sleepers take a while to wake.
constexpr double kTolerance = 1.5, kToleranceNs = 50e3;
constexpr double kMostFactor = 16;

/// Waking threads takes tens of microseconds: others that come and go quickly should not cause it.
constexpr uint64_t kGatherAgainNs = 1'000'000;

/// Turn `spins` of waiting for another thread, from 1: who is waited for may need this core.
void spin(int spins) {
  if (spins < kSpinsBeforeYield)
    pause();
  else
    sched_yield();
}
} // namespace

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

void Barrier::waitSlow(uint32_t round) {
  for (int spins = 0; round_.load(std::memory_order_acquire) == round;)
    spin(++spins);
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

Workers::Workers(unsigned threads) : pool_(std::max(threads, 1u) - 1) {
  try {
    for (Worker &worker : pool_)
      worker.runs = std::thread([this, &worker] { work(worker); });
  } catch (const std::system_error &error) {
    stop();
    throw UserError("cannot start " + std::to_string(threads) + " threads: " + error.what());
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  stop_ = true;
  for (Worker &worker : pool_)
    if (worker.runs.joinable()) {
      worker.state.fetch_add(kFate + 1);
      worker.state.notify_one();
      worker.runs.join();
    }
}

/// How many of the pool a team should have now. (The counts may be of different times.)
unsigned Workers::partOf(const Team &team) const {
  unsigned callers = std::max(callers_.load(std::memory_order_relaxed), 1u);
  unsigned wanted = threads() - std::min(callers, threads());
  unsigned others = busy_.load(std::memory_order_relaxed) - team.members_;
  return std::min((wanted + callers - 1) / callers, wanted - std::min(others, wanted));
}

void Workers::work(Worker &self) {
  FloatEnvironment environment;
  for (uint32_t seen = 0;;) {
    for (int spins = 0; self.state.load(std::memory_order_acquire) == seen &&
                        ++spins < kSpinsBeforeYield + kYieldsBeforeSleep;)
      spin(spins);
    uint32_t state = self.state.load(std::memory_order_acquire);
    if (state == seen) {
      // Sequentially consistent with the offer: either whoever makes it sees a sleeper, or this
      // sees the offer before it sleeps.
      self.sleeps = true;
      self.state.wait(seen);
      self.sleeps = false;
      continue;
    }
    seen = state;
    if (stop_)
      return;
    if ((state & kFate) != kOffered ||
        !self.state.compare_exchange_strong(state, state - kOffered + kTaken,
                                            std::memory_order_acq_rel, std::memory_order_acquire))
      continue; // it went without this thread
    seen = state - kOffered + kTaken;
    Team &team = *self.team;
    team.function_(team.argument_, self.thread);
    team.finished_.fetch_add(1, std::memory_order_release);
  }
}

void Workers::forEach(size_t count, bool little, const std::function<void(size_t)> &work) {
  struct Job {
    const std::function<void(size_t)> &work;
    size_t count;
    std::atomic<size_t> next{0};
  } job{work, count};
  auto some = [](void *argument, unsigned) {
    auto &job = *static_cast<Job *>(argument);
    for (size_t i; (i = job.next.fetch_add(1, std::memory_order_relaxed)) < job.count;)
      job.work(i);
  };
  Team team(*this);
  if (count > 1 && !little)
    team.gather();
  team.run(some, &job, /*everyone=*/false);
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

Workers::Team::Team(Workers &workers) : workers_(workers) {
  workers_.callers_.fetch_add(1, std::memory_order_relaxed);
}

Workers::Team::~Team() {
  if (members_ > 0) {
    std::lock_guard lock(workers_.mutex_);
    resize(0);
  }
  workers_.callers_.fetch_sub(1, std::memory_order_relaxed);
}

void Workers::Team::gather() {
  if (workers_.pool_.empty())
    return;
  gathered_ = clockNow();
  std::lock_guard lock(workers_.mutex_);
  resize(workers_.partOf(*this));
}

/// To so many of the pool, of which others have left as many. The pool is locked.
void Workers::Team::resize(unsigned members) {
  workers_.busy_.fetch_add(members - members_, std::memory_order_relaxed);
  for (; members_ > members; --members_) {
    last_->isFree = true;
    last_ = last_->before;
  }
  // The first that are free: a team that has all has each in the same place as ever.
  for (auto worker = workers_.pool_.begin(); members_ < members; ++worker)
    if (std::exchange(worker->isFree, false)) {
      worker->before = std::exchange(last_, &*worker);
      ++members_;
    }
  barrier_.setThreads(threads());
}

bool Workers::Team::isUneven() const {
  unsigned part = workers_.partOf(*this);
  return part < members_ || (part > members_ && clockNow() - gathered_ > kGatherAgainNs);
}

void Workers::Team::run(void (*f)(void *, unsigned), void *argument, bool everyone) {
  function_ = f;
  argument_ = argument;
  finished_.store(0, std::memory_order_relaxed);
  unsigned thread = members_;
  for (Worker *worker = last_; worker; worker = worker->before) {
    worker->team = this;
    worker->thread = thread--;
    worker->state.store((worker->state.load(std::memory_order_relaxed) | kFate) + 1 + kOffered);
    if (worker->sleeps)
      worker->state.notify_one();
  }
  {
    FloatEnvironment environment;
    f(argument, 0);
  }
  unsigned took = members_;
  if (!everyone)
    for (Worker *worker = last_; worker; worker = worker->before) {
      uint32_t state = worker->state.load(std::memory_order_relaxed);
      if ((state & kFate) == kOffered &&
          worker->state.compare_exchange_strong(state, state - kOffered + kWithdrawn,
                                                std::memory_order_relaxed))
        --took;
    }
  for (int spins = 0; finished_.load(std::memory_order_acquire) != took;)
    spin(++spins);
}

//===----------------------------------------------------------------------===//
// Patience
//===----------------------------------------------------------------------===//

double Patience::lost(double nanoseconds, double busy, unsigned threads) {
  return nanoseconds - kTolerance * busy * threads - kToleranceNs;
}

void Patience::together(double lost) {
  if (lost <= 0) {
    factor_ = 1;
    return;
  }
  debt_ = lost * factor_;
  factor_ = std::min(2 * factor_, kMostFactor);
}

void Patience::alone(double nanoseconds) { debt_ = std::max(0.0, debt_ - nanoseconds); }

} // namespace sheaf::rt

#include "runtime/cpu/workers.h"

#include "runtime/device/float_environment.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <system_error>

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

/// In Workers::state_.
constexpr uint64_t kClosed = uint64_t(1) << 31;
constexpr uint64_t kJoined = kClosed - 1;
constexpr uint64_t stateOf(uint32_t job) { return uint64_t(job) << 32; }

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

Workers::Workers(unsigned threads) : threads_(threads), barrier_(threads) {
  try {
    for (unsigned i = 1; i < threads; ++i)
      pool_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error &error) {
    stop();
    throw UserError("cannot start " + std::to_string(threads) + " threads: " + error.what());
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  stop_ = true;
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread &thread : pool_)
    thread.join();
}

void Workers::run(void (*f)(void *, unsigned), void *argument, bool everyone) {
  if (threads_ == 1) {
    FloatEnvironment environment;
    f(argument, 0);
    return;
  }
  function_ = f;
  argument_ = argument;
  finished_.store(0, std::memory_order_relaxed);
  uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  state_.store(stateOf(job), std::memory_order_release);
  // Sequentially consistent with `sleeping_`: either this sees a sleeper, or the sleeper sees the
  // new job before it sleeps.
  job_.store(job);
  if (sleeping_.load() != 0)
    job_.notify_all();
  {
    FloatEnvironment environment;
    f(argument, 0);
  }
  uint64_t joined = threads_ - 1;
  if (!everyone)
    joined = state_.fetch_or(kClosed, std::memory_order_acq_rel) & kJoined;
  for (int spins = 0; finished_.load(std::memory_order_acquire) != joined;)
    spin(++spins);
}

/// What a job is may be read between this and finished_: until then there is no other.
bool Workers::join(uint32_t job) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & ~kJoined) == stateOf(job))
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return true;
  return false;
}

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
  if (count > 1 && !little) {
    run(some, &job, /*everyone=*/false);
  } else {
    FloatEnvironment environment;
    some(&job, 0);
  }
}

void Workers::work(unsigned thread) {
  FloatEnvironment environment;
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; job_.load(std::memory_order_acquire) == seen &&
                        ++spins < kSpinsBeforeYield + kYieldsBeforeSleep;)
      spin(spins);
    uint32_t job = job_.load(std::memory_order_acquire);
    if (job == seen) {
      sleeping_.fetch_add(1);
      job_.wait(seen);
      sleeping_.fetch_sub(1);
      continue;
    }
    seen = job;
    if (stop_)
      return;
    if (!join(job))
      continue; // it went without this thread
    function_(argument_, thread);
    finished_.fetch_add(1, std::memory_order_release);
  }
}

} // namespace sheaf::rt

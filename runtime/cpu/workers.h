//===- workers.h - The threads that run kernels -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_WORKERS_H
#define SHEAF_RUNTIME_CPU_WORKERS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace sheaf::rt {

/// One pause of a spinning processor.
void pause();

/// A point that all threads of a job pass together, by spinning: about 0.1 us with two threads on
/// two cores. Threads that wait for long yield their core.
class Barrier {
public:
  explicit Barrier(unsigned threads) : threads_(threads) {}
  void wait() {
    uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    waitSlow(round);
  }

private:
  void waitSlow(uint32_t round);

  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  unsigned threads_;
};

/// Whether it is worth waiting for other threads. Where they get no core, since other programs have
/// them, a job of all threads takes whole slices of the scheduler's time; one thread then goes on
/// alone for as long as was lost, after twice in a row for twice as long, up to 16 times.
class Patience {
public:
  /// What a job has lost when so much time has passed, of which this thread, one of `threads`, has
  /// been at work for `busy`: what goes beyond the work of all, but for what imbalance and waking
  /// take.
  static double lost(double nanoseconds, double busy, unsigned threads);

  bool worthIt() const { return debt_ == 0; }
  /// A job of all threads is over.
  void together(double lost);
  /// One thread was at work for so long.
  void alone(double nanoseconds);

private:
  double debt_ = 0, factor_ = 1;
};

/// `threads - 1` threads beside the caller's. Between jobs they spin for a little and then sleep.
class Workers {
public:
  /// Throws UserError when the machine refuses so many threads.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  unsigned threads() const { return threads_; }

  /// Runs f(argument, thread) on every thread, 0 being the caller, and returns when all are done.
  void run(void (*f)(void *argument, unsigned thread), void *argument) {
    run(f, argument, /*everyone=*/true);
  }

  /// Calls `work(i)` for each i in [0, count), on whatever thread is free, or all on this one if
  /// there is too `little` to do; in a FloatEnvironment. It must not throw. Threads that get no
  /// core until all is done are not waited for.
  void forEach(size_t count, bool little, const std::function<void(size_t)> &work);

  /// Barrier of the running job.
  Barrier &barrier() { return barrier_; }

private:
  void run(void (*f)(void *argument, unsigned thread), void *argument, bool everyone);
  void work(unsigned thread);
  bool join(uint32_t job);
  void stop();

  unsigned threads_;
  Barrier barrier_;
  void (*function_)(void *, unsigned) = nullptr;
  void *argument_ = nullptr;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint32_t> job_{0};
  std::atomic<uint32_t> sleeping_{0};
  /// The job's number above, below how many have joined it, and whether no more may.
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<uint32_t> finished_{0}; ///< of those that joined
  std::vector<std::thread> pool_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_WORKERS_H

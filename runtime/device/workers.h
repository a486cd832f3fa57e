//===- workers.h - The threads that run kernels -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_DEVICE_WORKERS_H
#define SHEAF_RUNTIME_DEVICE_WORKERS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sheaf::rt {

/// One pause of a spinning processor.
void pause();

/// A point that all threads of a job pass together, by spinning: about 0.1 us with two threads on
/// two cores. Threads that wait for long yield their core.
class Barrier {
public:
  /// Of so many threads, while no one waits.
  void setThreads(unsigned threads) { threads_ = threads; }
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
  unsigned threads_ = 1;
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

/// Threads beside those of their callers, who divide them: one caller at a time has all of them,
/// several have as many each, and as many threads are at work as there are meant to be while there
/// are no more callers than that. Between jobs they spin for a little and then sleep. No one waits
/// for anyone else's job, so nothing may depend on how many threads a job has.
class Workers {
public:
  /// `threads`: the first caller's included. Throws UserError when the machine refuses so many.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  unsigned threads() const { return static_cast<unsigned>(pool_.size()) + 1; }

private:
  struct Worker;

public:
  /// A caller, while it has jobs, and the threads that run them: at first its own alone. Of one
  /// thread.
  class Team {
  public:
    explicit Team(Workers &workers);
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    /// Takes what is its part of the threads now. Between jobs.
    void gather();
    /// The caller's included.
    unsigned threads() const { return members_ + 1; }
    /// Whether others came, or went a while after it gathered: it should gather anew soon. Also
    /// while a job runs.
    bool isUneven() const;

    /// Runs f(argument, thread) on every thread, 0 being the caller, and returns when all are done;
    /// in a FloatEnvironment.
    void run(void (*f)(void *argument, unsigned thread), void *argument) {
      run(f, argument, /*everyone=*/true);
    }
    /// Barrier of the running job.
    Barrier &barrier() { return barrier_; }

  private:
    friend class Workers;
    void run(void (*f)(void *argument, unsigned thread), void *argument, bool everyone);
    void resize(unsigned members);

    Workers &workers_;
    Worker *last_ = nullptr; ///< of the members; each leads to the one before
    unsigned members_ = 0;
    uint64_t gathered_ = 0; ///< when
    Barrier barrier_;
    void (*function_)(void *, unsigned) = nullptr;
    void *argument_ = nullptr;
    alignas(64) std::atomic<uint32_t> finished_{0}; ///< of those that took the job
  };

  /// Calls `work(i)` for each i in [0, count), on whatever thread is free, or all on this one if
  /// there is too `little` to do; in a FloatEnvironment. It must not throw. Threads that get no
  /// core until all is done are not waited for.
  void forEach(size_t count, bool little, const std::function<void(size_t)> &work);

private:
  struct alignas(64) Worker {
    /// A job's number in all but the last two bits, and what became of it: 1: it is offered,
    /// 2: taken, 3: withdrawn.
    std::atomic<uint32_t> state{0};
    std::atomic<bool> sleeps{false};
    // Of the job that is offered or taken.
    Team *team = nullptr;
    unsigned thread = 0;

    bool isFree = true; ///< of no team
    Worker *before = nullptr;
    std::thread runs = {};
  };
  static constexpr uint32_t kOffered = 1, kTaken = 2, kWithdrawn = 3, kFate = 3;

  unsigned partOf(const Team &team) const;
  void work(Worker &self);
  void stop();

  std::mutex mutex_; ///< held while teams gather
  std::vector<Worker> pool_;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint32_t> callers_{0};
  std::atomic<unsigned> busy_{0}; ///< of the pool, those of teams
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_WORKERS_H

//===- executor.h - Several engines in turns --------------------*- C++ -*-===//
//
//   Executor executor;
//   executor.add(small, {.share = 2});
//   executor.add(large);
//   executor.run(stop); // in as many threads as shall step engines
//
// Who has had the least time for its share is stepped next. Nothing depends on whose turn it is but
// when results come.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_EXECUTOR_H
#define SHEAF_RUNTIME_SESSION_EXECUTOR_H

#include "runtime/session/engine.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

namespace sheaf::rt {

struct TurnOptions {
  /// Of the time that engines with something to do have together, beside the others' shares; above
  /// 0. An engine that had nothing to do has no claim on the time that went by.
  double share = 1;
  /// Told in the thread that steps what Engine::step() threw; null: Executor::step() and run()
  /// throw it. The other engines' turns come as ever, and so do this one's, unless each of its
  /// steps would throw (see there). It may submit, stop and remove.
  std::function<void(std::exception_ptr)> failed = nullptr;
};

/// Has no thread of its own. Functions may be called from any thread, and those that do not step
/// from engines' callbacks.
class Executor {
public:
  /// `clock` tells how long turns take, in nanoseconds; null: clockNow().
  explicit Executor(std::function<uint64_t()> clock = nullptr);
  /// Engines that are left are in no executor then. No one steps.
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// From then on the engine is stepped here alone. It removes itself when it is destroyed. Throws
  /// InvalidArgument for a share that is none, and for an engine that is in an executor.
  void add(Engine &engine, TurnOptions options = {});
  /// Returns when no other thread steps the engine; called from its own callbacks, its step is the
  /// last. Two engines whose callbacks remove each other would wait for ever.
  void remove(Engine &engine);

  /// One engine's turn, if one has something to do and no other thread steps it. Returns whether
  /// any has, or is stepped.
  bool step();
  /// Turns, and waiting for any engine to be given something, until a stop is asked for.
  void run(const std::stop_token &stop);

private:
  struct Member {
    TurnOptions options = {};
    double time = 0;              ///< nanoseconds that it had, for a share of 1
    uint64_t turn = 0;            ///< number of its last one
    bool hasMore = true;          ///< to do, as far as is known
    bool isBroken = false;        ///< each step would throw
    bool leaves = false;          ///< at the end of this turn
    std::thread::id stepper = {}; ///< while one steps it
    bool isStepped() const { return stepper != std::thread::id(); }
  };
  using Place = std::map<Engine *, Member>::value_type;

  uint64_t now() const;
  /// Whoever steps no more for now: where a turn is left, a thread that waits may take it.
  struct Leaving {
    Executor &executor;
    ~Leaving();
  };

  void hear(Engine &engine);
  Place *next();
  void takeTurn(Place &place, std::unique_lock<std::mutex> &lock);

  const std::function<uint64_t()> clock_;
  std::mutex mutex_; ///< no engine's lock is taken while it is held
  std::condition_variable_any arrived_;
  std::condition_variable stepped_;
  std::map<Engine *, Member> members_;
  double time_ = 0; ///< of those that have something to do the least had so much
  uint64_t turns_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_EXECUTOR_H

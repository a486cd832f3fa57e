//===- engine.h - Instances that come and go --------------------*- C++ -*-===//
//
// A mini-batch begins and ends together. An engine is given instances one by one, while others run
// or wait, and hands each result out when its instance ends; what they record at one time runs in
// the same launches. What an instance gives is what it gives alone, bit by bit: it follows from the
// program, the weights, its arguments, its number and its limits.
//
//   Engine engine(session);
//   engine.submit({.instance = {args, 7}, .done = [](const Outcome &outcome) { ... }});
//   while (engine.step()) {}
//
// An engine has no thread of its own. step() does a round: begins instances, runs host code until
// all wait, computes a slice of what was recorded, hands out results. run() is a loop around it for
// a thread that does nothing else. An Executor (executor.h) steps several in turns.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_ENGINE_H
#define SHEAF_RUNTIME_SESSION_ENGINE_H

#include "runtime/session/kept_value.h"
#include "runtime/session/session.h"
#include "runtime/session/shared_budget.h"

#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <type_traits>

namespace sheaf::rt {

/// Bounds of one instance, beside those of its session; 0: none. They decide what it gives, so they
/// count only what follows from the instance, whatever runs beside it.
struct RequestLimits {
  int64_t steps = 0;       ///< calls of recursive functions
  uint64_t stackBytes = 0; ///< of its frames: stackBytesFor() of a number of them
  /// Of all tensors that it records, results found elsewhere included. Looked at when the instance
  /// waits or ends: until then it may take more, as far as the session has it.
  uint64_t rowBytes = 0;
};

struct Request {
  /// Arguments stay alive and unchanged until `done` has been called. The number is what draws
  /// follow from, and names the instance in errors; several may have the same.
  Instance instance;
  int priority = 0; ///< higher ones begin first; else the one that came first does
  /// By the engine's clock: the instance fails (Cause::Deadline) if it has not ended by then.
  uint64_t deadline = UINT64_MAX;
  /// Asked for, from any thread, the instance fails (Cause::Cancelled) if it has not ended.
  std::stop_token stop = {};
  RequestLimits limits = {};
  /// Whether the result, without what was emitted, stays in the engine: Outcome::kept.
  bool keep = false;
  /// Arguments that are values which this engine keeps, or parts of them; what stands for them in
  /// `instance` is not looked at. Their tensors are not copied.
  std::vector<KeptArgument> kept = {};
  /// Called by step() with what the instance emits, in its order, as soon as that is computed, each
  /// value once, also if the instance is begun again; all of it before `done`, if it ends well. The
  /// slots are of EntryDesc::emits and valid until it returns. It may submit and stop requests.
  std::function<void(const Instance &, const Slot *)> emitted = {};
  /// Called by step() once, when the instance has ended; the outcome, whose tensors
  /// Session::tensor() shows, is valid until it returns. It may submit and stop requests.
  std::function<void(const Outcome &)> done = {};
};

struct EngineOptions {
  /// Instances that have begun and not ended, at most.
  unsigned mostRunning = 512;
  /// What no read needs runs when an instance has ended, with that of others that end within so
  /// many nanoseconds by the engine's clock; at once when none else runs.
  uint64_t linger = 200'000;
  /// About so many nanoseconds of kernels run between two looks for stops and deadlines.
  uint64_t slice = 2'000'000;
  /// Between slices others begin, and those go on whose tensors are there, while what is deeper is
  /// still to be computed. Else all wait for all that was recorded.
  bool joins = true;
  /// Blocks on a path of those that wait for each other, until new instances begin to count from
  /// the first depth again.
  uint32_t depths = uint32_t(1) << 20;
  /// Shared with other engines; null: the session's limit alone counts. Where all together are
  /// short, none begins an instance beside others, and each takes its youngest back.
  std::shared_ptr<SharedBudget> budget = nullptr;
  /// Nanoseconds; null: clockNow().
  std::function<uint64_t()> clock = nullptr;
};

class Engine {
public:
  /// Runs in `session`, which must outlive it and is not used otherwise meanwhile, but for
  /// Session::tensor() and counters. Throws InvalidArgument for a model made for training, a
  /// session that checks results, or one with Session::onEmit: each request has its own
  /// Request::emitted.
  explicit Engine(Session &session, EngineOptions options = {});
  /// What has not ended is dropped: `done` is not called.
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// From any thread; does not wait for what runs. Throws InvalidArgument for kept arguments of
  /// another type or engine, or that follow from other weights than are there. An instance whose
  /// weights are changed before it begins fails (Cause::Program).
  void submit(Request request);
  /// The same of several, at one time: all of them, or none if it throws std::bad_alloc.
  void submit(std::vector<Request> requests);
  /// The same with what `take` makes of the outcome, in step()'s thread. An instance that fails, or
  /// a `take` that throws, leaves an exception (RunError); one that is dropped a broken promise.
  template <typename Take>
  auto submit(Request request, Take take)
      -> std::future<std::invoke_result_t<Take, const Outcome &>>;

  /// From any thread: calls `change` in step() when the instances that run have ended, before
  /// others begin. It may change the session's weights: then no one can begin from values that were
  /// kept before, and their rows are given back.
  void whenIdle(std::function<void()> change);

  /// A round. Returns whether there is more to do; false: nothing is left, until the next submit().
  /// What a callback or a change throws is thrown, as OutOfMemory of packing weights is; the other
  /// emissions and results are handed out by the next step. After an error of computing
  /// (std::bad_alloc, InternalError) each step throws it again. By one thread at a time.
  bool step();
  /// Rounds, and waiting for requests, until a stop is asked for. Throws what step() throws.
  void run(const std::stop_token &stop);

  struct Counts {
    uint64_t submitted = 0, ended = 0;
    uint64_t failed = 0;     ///< of those that ended
    uint64_t begunAgain = 0; ///< too little memory beside others, or to fail where the program does
    uint64_t flushes = 0;    ///< or slices
    uint64_t joined = 0;     ///< begun while something was still to be computed
    uint64_t generations = 0; ///< depths begun from the first while others ran (options.depths)
  };
  /// Of the steps so far. Not while one runs.
  const Counts &counts() const;
  size_t running() const;
  /// Instances that have not begun. From any thread.
  size_t waiting() const;
  /// Values that are kept. From any thread.
  KeptUse kept() const;

private:
  friend class Executor;
  struct Entry;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <typename Take>
auto Engine::submit(Request request, Take take)
    -> std::future<std::invoke_result_t<Take, const Outcome &>> {
  using Value = std::invoke_result_t<Take, const Outcome &>;
  auto promise = std::make_shared<std::promise<Value>>();
  std::future<Value> future = promise->get_future();
  request.done = [promise, take = std::move(take)](const Outcome &outcome) mutable {
    try {
      if (!outcome.ok())
        throw *outcome.error;
      if constexpr (std::is_void_v<Value>) {
        take(outcome);
        promise->set_value();
      } else {
        promise->set_value(take(outcome));
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  };
  submit(std::move(request));
  return future;
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_ENGINE_H

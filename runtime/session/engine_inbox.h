//===- engine_inbox.h - What an engine is told from any thread --*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_ENGINE_INBOX_H
#define SHEAF_RUNTIME_SESSION_ENGINE_INBOX_H

#include "runtime/session/engine.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace sheaf::rt {

/// Holds requests, stops and changes until a step takes them in. Its lock is held for a few moves
/// at a time.
class EngineInbox {
public:
  struct Submitted {
    Request request;
    uint64_t number = 0; ///< in order of arrival
    /// Puts a stop that is asked for here; it goes before the inbox does.
    std::optional<std::stop_callback<std::function<void()>>> onStop;
  };
  struct Arrivals {
    std::vector<std::unique_ptr<Submitted>> requests;
    std::vector<std::function<void()>> changes;
  };

  void submit(Request request);
  void whenIdle(std::function<void()> change);

  Arrivals take();
  /// Numbers of requests. A stop that is asked for before its request was taken may not be here.
  std::vector<uint64_t> takeStops();

  /// Of those that were taken, so many have not begun.
  void setQueued(size_t queued);
  /// Requests that have not begun.
  size_t waiting() const;
  bool hasArrivals() const;
  /// Until there are arrivals or `stop` is asked for.
  void wait(const std::stop_token &stop);

private:
  bool isEmpty() const {
    return arrivals_.requests.empty() && arrivals_.changes.empty() && stops_.empty();
  }

  mutable std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<uint64_t> stops_;
  uint64_t next_ = 0;
  size_t queued_ = 0;
  /// Goes first: its stops refer to the others.
  Arrivals arrivals_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_ENGINE_INBOX_H

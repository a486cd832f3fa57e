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
  /// Hears when a request is to stop. While it lives there is room to note that, since whoever asks
  /// for a stop cannot be told of an error.
  class Hearing {
  public:
    Hearing(EngineInbox &inbox, uint64_t number, const std::stop_token &stop)
        : room_(inbox), callback_(stop, Note{inbox, number}) {}

  private:
    struct Room {
      explicit Room(EngineInbox &of) : inbox(of) { inbox.reserveStop(); }
      ~Room() { inbox.releaseStop(); }
      Room(const Room &) = delete;
      EngineInbox &inbox;
    };
    struct Note {
      EngineInbox &inbox;
      uint64_t number;
      void operator()() const noexcept { inbox.noteStop(number); }
    };
    Room room_;
    std::stop_callback<Note> callback_;
  };

  struct Submitted {
    Request request;
    uint64_t number = 0; ///< in order of arrival
    /// Puts a stop that is asked for here; it goes before the inbox does.
    std::optional<Hearing> onStop;
  };
  struct Arrivals {
    std::vector<std::unique_ptr<Submitted>> requests;
    std::vector<std::function<void()>> changes;
  };

  /// All of them or, when it throws, none.
  void submit(std::vector<Request> requests);
  void whenIdle(std::function<void()> change);

  Arrivals take();
  /// Numbers of requests. A stop that is asked for before its request was taken may not be here.
  std::vector<uint64_t> takeStops();

  /// The last handle of a kept value is gone.
  void noteDropped();
  /// Whether any has gone since this was last asked.
  bool takeDropped();

  /// Of those that were taken, so many have not begun.
  void setQueued(size_t queued);
  /// Requests that have not begun.
  size_t waiting() const;
  bool hasArrivals() const;
  /// Until there are arrivals or `stop` is asked for.
  void wait(const std::stop_token &stop);
  /// Called, with the inbox locked, whenever something arrives; null: no one is told.
  void listen(std::function<void()> listener);

private:
  void reserveStop();
  void releaseStop();
  void noteStop(uint64_t number);
  void tell();
  bool isEmpty() const {
    return arrivals_.requests.empty() && arrivals_.changes.empty() && stops_.empty() && !dropped_;
  }

  mutable std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::function<void()> listener_;
  std::vector<uint64_t> stops_; ///< with room for one of each that is heard
  size_t heard_ = 0;
  uint64_t next_ = 0;
  size_t queued_ = 0;
  bool dropped_ = false;
  /// Goes first: its stops refer to the others.
  Arrivals arrivals_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_ENGINE_INBOX_H

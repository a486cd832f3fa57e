//===- read_log.h - What instances read -------------------------*- C++ -*-===//
//
// Every number that host code reads from a tensor, and where. A session writes it when it is given
// one (Session::setReadLog), and another may take its numbers from it (ReadReplay).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_READ_LOG_H
#define SHEAF_RUNTIME_WALK_READ_LOG_H

#include "runtime/walk/read_watch.h"

#include <deque>
#include <vector>

namespace sheaf::rt {

class ReadLog final : public ReadWatch {
public:
  /// How many instances ran since the beginning.
  size_t instances() const override { return instances_.size(); }
  /// What one of them read, in the order of the program: calls that were forked count where they
  /// stand. Of an instance that failed, what it read before it came to the failure in that order.
  std::vector<LoggedRead> of(size_t instance) const;
  /// Forgets all but the first so many instances.
  void keep(size_t instances) override;
  void clear() { keep(0); }

  // From the session.
  uint32_t begin() override;
  /// What it read before counts no more, but is what it has to read to come to this.
  uint32_t beginAgain(uint32_t thread) override;
  bool knowsMore(uint32_t) const override { return false; }
  bool asked(uint32_t thread, bool forks) override;
  uint32_t fork(uint32_t parent) override;
  std::optional<Slot> read(uint32_t thread, LoggedRead read) override {
    note(thread, read);
    return read.value;
  }
  void note(uint32_t thread, LoggedRead read) { threads_[thread].events.push_back(read); }
  void end(uint32_t thread) override { threads_[thread].ended = true; }

private:
  friend class ReadReplay;

  // In the place of a read:
  /// a thread of control that was forked there, its number as the value;
  static constexpr uint32_t kForked = UINT32_MAX;
  /// an answer whether to fork.
  static constexpr uint32_t kAsked = UINT32_MAX - 1;
  struct Thread {
    std::vector<LoggedRead> events;
    bool ended = false;
    uint32_t again = 0; ///< of an instance that began again: as which thread, if it did
  };
  std::deque<Thread> threads_;
  std::vector<uint32_t> instances_; ///< their first threads
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_READ_LOG_H

//===- read_log.h - What instances read -------------------------*- C++ -*-===//
//
// Every number that host code reads from a tensor, and where. A session writes it when it is given
// one (Session::setReadLog); else a read costs a comparison more.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_READ_LOG_H
#define SHEAF_RUNTIME_WALK_READ_LOG_H

#include "runtime/model/layout.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace sheaf::rt {

struct LoggedRead {
  uint32_t place; ///< an index into Model::readPlaces
  Slot value;     ///< the bits of an f64; an int; a bool as 0 or 1
};

class ReadLog {
public:
  /// How many instances ran since the beginning.
  size_t instances() const { return instances_.size(); }
  /// What one of them read, in the order of the program: calls that were forked count where they
  /// stand. Of an instance that failed, what it read before it came to the failure in that order.
  std::vector<LoggedRead> of(size_t instance) const;
  /// Forgets all but the first so many instances.
  void keep(size_t instances);
  void clear() { keep(0); }

  // From the session.
  /// The thread of control of the next instance.
  uint32_t begin();
  /// What an instance read, by its thread of control, and all that it forked, is forgotten.
  void beginAgain(uint32_t thread) { threads_[thread] = {}; }
  /// One that `parent` forks now.
  uint32_t fork(uint32_t parent);
  void note(uint32_t thread, LoggedRead read) { threads_[thread].reads.push_back(read); }
  /// It has come to its end, and did not fail.
  void end(uint32_t thread) { threads_[thread].ended = true; }

private:
  /// In the place of a read: a thread of control that was forked there, its number as the value.
  static constexpr uint32_t kForked = UINT32_MAX;
  struct Thread {
    std::vector<LoggedRead> reads;
    bool ended = false;
  };
  std::deque<Thread> threads_;
  std::vector<uint32_t> instances_; ///< their first threads
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_READ_LOG_H

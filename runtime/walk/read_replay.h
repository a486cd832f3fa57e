//===- read_replay.h - What instances read, from a log ----------*- C++ -*-===//
//
// Host code goes the way that it went where the log was written. So a device that computes nothing
// is told the launches of a program that reads. Calls that were plain ones there are so here;
// those that were made by sheaf_fork() there are forked here as the session sees fit.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_READ_REPLAY_H
#define SHEAF_RUNTIME_WALK_READ_REPLAY_H

#include "runtime/walk/read_log.h"

#include <algorithm>
#include <vector>

namespace sheaf::rt {

class ReadReplay final : public ReadWatch {
public:
  /// Of a log that stays as it is meanwhile; its instances one after the other.
  explicit ReadReplay(const ReadLog &log) : log_(log), next_(log.threads_.size()) {}

  /// Instances of the log that have not begun.
  size_t left() const { return log_.instances() - begun_; }

  size_t instances() const override { return begun_; }
  void keep(size_t instances) override { begun_ = std::min(begun_, instances); }
  uint32_t begin() override;
  uint32_t beginAgain(uint32_t thread) override;
  bool knowsMore(uint32_t thread) const override {
    return thread != kUnknown && log_.threads_[thread].again;
  }
  bool asked(uint32_t thread, bool forks) override;
  uint32_t fork(uint32_t parent) override;
  std::optional<Slot> read(uint32_t thread, LoggedRead read) override;
  void end(uint32_t) override {}

private:
  /// A thread of control that the log does not know: nothing is known of it.
  static constexpr uint32_t kUnknown = UINT32_MAX;

  /// The same, from its first event on.
  uint32_t rewind(uint32_t thread) {
    if (thread != kUnknown)
      next_[thread] = 0;
    return thread;
  }
  /// The value of the thread's next event, if that is of this place.
  std::optional<Slot> take(uint32_t thread, uint32_t place);

  const ReadLog &log_;
  std::vector<size_t> next_; ///< event of each thread of control
  size_t begun_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_READ_REPLAY_H

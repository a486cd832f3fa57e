//===- interrupt.h - Interrupted output -------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_INTERRUPT_H
#define SHEAF_TOOLS_SHEAF_INTERRUPT_H

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace sheaf::tool {

/// Makes interrupting signals clean up before they end the process. To be made before any thread is
/// started; one at a time. Until it goes, processes that are started inherit the signals blocked.
class InterruptGuard {
public:
  /// Removes the half-written file beside `path`. Nothing to do for standard output (`-` or empty).
  explicit InterruptGuard(const std::string &path);
  /// `cleanUp` runs on a thread of its own, beside what the process does.
  explicit InterruptGuard(std::function<void()> cleanUp);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

private:
  std::unique_ptr<class SignalWatch> watch_;
};

/// Lets the first interrupting signal be asked for where work can be left; the second ends the
/// process. To be made before any thread is started; one at a time, and instead of a guard.
class StopSignal {
public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;

  /// Until it is called signals end the process at once.
  void begin() { listens_ = true; }
  /// The signal that came; 0: none.
  int received() const { return received_; }
  /// Asked to stop when one has come.
  std::stop_token token() const { return stop_.get_token(); }

private:
  std::atomic<bool> listens_ = false;
  std::atomic<int> received_ = 0;
  std::stop_source stop_;
  std::unique_ptr<class SignalWatch> watch_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_INTERRUPT_H

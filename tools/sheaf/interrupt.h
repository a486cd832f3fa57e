//===- interrupt.h - Interrupted output -------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_INTERRUPT_H
#define SHEAF_TOOLS_SHEAF_INTERRUPT_H

#include <functional>
#include <memory>
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
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_INTERRUPT_H

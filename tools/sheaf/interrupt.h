//===- interrupt.h - Interrupted output -------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_INTERRUPT_H
#define SHEAF_TOOLS_SHEAF_INTERRUPT_H

#include <memory>
#include <string>

namespace sheaf::tool {

/// Makes interrupting signals remove the half-written file beside `path` before they end the
/// process. Nothing to do for standard output (`-` or empty). To be made before any thread is
/// started; one at a time.
class InterruptGuard {
public:
  explicit InterruptGuard(std::string path);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_INTERRUPT_H

//===- host_stack.h - The stack that instances recurse on -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_HOST_STACK_H
#define SHEAF_RUNTIME_HOST_STACK_H

#include "runtime/memory.h"

namespace sheaf::rt {

/// A large, lazily committed stack for generated host code. One call runs on it at a time; it
/// returns, or is given up from within: then its frames are dropped without unwinding, so code that
/// runs here must own nothing that needs a destructor at a point where it can fail.
class HostStack {
public:
  HostStack(uint64_t bytes, MemoryKind &count);
  ~HostStack();
  HostStack(const HostStack &) = delete;
  HostStack &operator=(const HostStack &) = delete;

  /// Runs f(argument) on this stack. False when it was given up.
  bool call(void (*f)(void *), void *argument);

  /// Called on this stack: leaves it for good; call() returns false.
  [[noreturn]] void abandon();

  /// Frames must not reach below; what is left under it is for the runtime's own functions.
  uint8_t *limit() const { return limit_; }
  /// What frames may take together.
  uint64_t bytes() const { return static_cast<uint64_t>(stack_.data() + stack_.size() - limit_); }

  /// Gives pages back that only a deep recursion used. Called between mini-batches.
  void trim();
  uint64_t residentBytes() const;

private:
  struct Entry;
  [[noreturn]] void leave(bool completed);

  Reservation stack_;
  MemoryKind &count_;
  uint8_t *limit_;
  void (*function_)(void *) = nullptr;
  void *argument_ = nullptr;
  void *caller_ = nullptr; ///< the context that entered the stack
  bool completed_ = false;
  // What the sanitizers call the stack that entered this one.
  const void *callerBottom_ = nullptr;
  size_t callerSize_ = 0;
  void *callerFiber_ = nullptr;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_HOST_STACK_H

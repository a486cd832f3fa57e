//===- host_stack.h - The stacks that instances run on ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_HOST_STACK_H
#define SHEAF_RUNTIME_HOST_STACK_H

#include "runtime/memory.h"

#include <memory>
#include <vector>

namespace sheaf::rt {

/// A large, lazily committed stack for generated host code. One call runs on it at a time; it
/// returns, waits, or is given up from within: then its frames are dropped without unwinding, so
/// code that runs here must own nothing that needs a destructor at a point where it can fail.
class HostStack {
public:
  /// On [data, data + size), which the caller owns.
  HostStack(uint8_t *data, uint64_t size);
  HostStack(const HostStack &) = delete;
  HostStack &operator=(const HostStack &) = delete;

  enum class Left : uint8_t { Completed, Abandoned, Waiting };

  /// Runs f(argument) on this stack until it returns, waits or is given up.
  Left call(void (*f)(void *), void *argument);
  /// Goes on behind the wait() by which the stack was left.
  Left resume();

  /// Called on this stack: leaves it; returns when resume() is called.
  void wait();
  /// Called on this stack: leaves it for good.
  [[noreturn]] void abandon();

  /// Frames must not reach below; what is left under it is for the runtime's own functions.
  uint8_t *limit() const { return data_ + overheadBytes(); }
  /// Frames that would reach below ask HostStacks::deepen() first.
  uint8_t *taken() const { return taken_; }

  /// Address space that a stack needs beside its frames.
  static uint64_t overheadBytes();

private:
  friend class HostStacks;
  struct Entry;
  Left enter(void *context, void *data);
  void leave(Left how);

  uint8_t *data_;
  uint64_t size_;
  uint8_t *taken_; ///< the budget has paid for what lies above
  void (*function_)(void *) = nullptr;
  void *argument_ = nullptr;
  void *caller_ = nullptr; ///< the context that entered the stack
  void *self_ = nullptr;   ///< waiting: where it goes on
  Left left_ = Left::Completed;
  uint64_t frames_ = 0; ///< bytes of the frames that were given up
  // What the sanitizers call the stack that entered this one, and this one.
  const void *callerBottom_ = nullptr;
  size_t callerSize_ = 0;
  void *callerFiber_ = nullptr;
  void *fiber_ = nullptr;
};

/// A number of equal stacks in one range of addresses. All but the first 64 KB of each count
/// against the budget, as deep as frames have reached.
class HostStacks {
public:
  /// `bytes` for the frames of each. Fewer bytes each when the machine refuses the address space.
  HostStacks(uint64_t bytes, unsigned count, MemoryMeter &meter, MemoryKind &memory);
  ~HostStacks();

  /// A stack that no one uses, or null. The one given back last comes first: its pages are warm.
  HostStack *take();
  void giveBack(HostStack *stack) { free_.push_back(stack); }

  /// Makes room for frames down to `frame`, and some more.
  enum class Deepened : uint8_t { Done, UsedUp, NoMemory };
  Deepened deepen(HostStack &stack, const uint8_t *frame);

  /// What frames may take together on one stack.
  uint64_t bytes() const { return each_ - HostStack::overheadBytes(); }

  /// Gives pages back that only a deep recursion used, of a few stacks. Called between
  /// mini-batches.
  void trim();
  /// Gives back all that is only kept, of stacks that no one uses. False when there was nothing.
  bool giveBack();

private:
  bool charge(HostStack &stack, uint64_t bytes);
  void shrink(HostStack &stack, uint64_t bytes);

  Reservation space_;
  uint64_t each_;
  unsigned count_;
  MemoryMeter &meter_;
  MemoryKind &memory_;
  std::vector<std::unique_ptr<HostStack>> made_;
  std::vector<HostStack *> free_;
  size_t trimmed_ = 0; ///< stacks looked at by trim() so far
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_HOST_STACK_H

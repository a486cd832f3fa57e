//===- host_stack.h - The stacks that instances run on ----------*- C++ -*-===//
//
// Thousands of calls may wait at one time, and any of them may recurse deeply. So a stack has two
// ranges of addresses: a small one, which stands next to those of the other stacks, so that all of
// them share few page tables, and for the few calls that need it a large one of its own. Host code
// whose frame finds the first used up goes on on the other (Tasks::goOn): from there on it is the
// same call on another stack, which no one notices but the sanitizers.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_HOST_STACK_H
#define SHEAF_RUNTIME_WALK_HOST_STACK_H

#include "runtime/memory/memory.h"

#include <memory>
#include <vector>

namespace sheaf::rt {

/// Lazily committed addresses for frames, which begin at its top.
struct StackRange {
  /// `overhead`: addresses that frames must not reach, at the bottom: a page that faults, and what
  /// is left for the runtime's own functions.
  StackRange(Reservation &space, uint64_t begin, uint64_t size, uint64_t overhead,
             uint64_t freeBytes);

  uint8_t *data;
  uint64_t size;
  uint64_t overhead;
  uint64_t freeBytes; ///< what the budget need not pay for, from the top
  uint8_t *taken;     ///< the budget has paid for what lies above, or need not

  uint8_t *top() const { return data + size; }
  /// Frames must not reach below.
  uint8_t *limit() const { return data + overhead; }
};

/// A range with addresses of its own.
struct FurtherRange {
  /// `bytes` for frames, or at least `least`. Throws UserError when the machine refuses that.
  FurtherRange(uint64_t bytes, uint64_t least, uint64_t overhead);
  Reservation space;
  StackRange range;
  bool isFree = false;
};

/// A stack for generated host code. One call runs on it at a time; it returns, waits, or is given
/// up from within: then its frames are dropped without unwinding, so code that runs here must own
/// nothing that needs a destructor at a point where it can fail.
class HostStack {
public:
  explicit HostStack(const StackRange &first);
  HostStack(const HostStack &) = delete;
  HostStack &operator=(const HostStack &) = delete;

  enum class Left : uint8_t { Completed, Abandoned, Waiting };
  using Body = void (*)(void *);

  /// Runs f(argument) on this stack until it returns, waits or is given up.
  Left call(Body f, void *argument);
  /// Goes on after the wait() by which the stack was left.
  Left resume();
  /// Hints that call() or resume() comes soon: where its frames stand is brought into the cache.
  void prefetch() const;

  /// Called on this stack: leaves it; returns when resume() is called.
  void wait();
  /// Called on this stack: leaves it for good.
  [[noreturn]] void abandon();
  /// Called on its first range: runs f(argument) on `further`, which is part of the stack until it
  /// returns; it may wait and be given up as any other.
  void callOn(FurtherRange &further, Body f, void *argument);

  /// Where it runs now.
  StackRange &range() { return further_ ? further_->range : first_; }

private:
  friend class HostStacks;
  struct Entry;
  struct FurtherEntry;
  Left enter(void *context, void *data);
  void leave(Left how);
  void noteFree();

  StackRange first_;
  FurtherRange *further_ = nullptr;
  void *caller_ = nullptr; ///< the context that entered the stack
  void *self_ = nullptr;   ///< where it goes on, or about where it begins
  Left left_ = Left::Completed;
  Body function_ = nullptr;
  void *argument_ = nullptr;
  const uint8_t *dropped_ = nullptr;      ///< given up: its deepest frame
  const uint8_t *firstDropped_ = nullptr; ///< and that on the first range, if there are two
  // What the sanitizers call the stack that entered this one, and this one.
  const void *callerBottom_ = nullptr;
  size_t callerSize_ = 0;
  [[maybe_unused]] void *callerFiber_ = nullptr;
  [[maybe_unused]] void *fiber_ = nullptr;
};

/// A number of equal stacks. All but the first 64 KB of each count against the budget, as deep as
/// frames have reached.
class HostStacks {
public:
  struct Sizes {
    uint64_t bytes;     ///< for the frames of each
    unsigned count = 1; ///< stacks
    /// Frames may go on on a further range (Deepened::Further). Else a stack has one range, with
    /// fewer bytes when the machine refuses the address space.
    bool further = false;
    uint64_t largestFrame = 0; ///< what one frame may take, at least
  };
  HostStacks(const Sizes &sizes, MemoryMeter &meter, MemoryKind &memory);
  ~HostStacks();

  /// A stack that no one uses, or null. The one given back last comes first: its pages are warm.
  HostStack *take();
  void giveBack(HostStack *stack);
  /// How many more it could give.
  uint64_t freeCount() const { return count_ - (made_.size() - free_.size()); }

  /// Makes room for frames down to `frame`, and some more; or they are to go on on what further()
  /// gives.
  enum class Deepened : uint8_t { Done, Further, UsedUp, NoMemory };
  Deepened deepen(HostStack &stack, const uint8_t *frame);
  /// For callOn(). Null when the machine refuses the address space.
  FurtherRange *further();
  void giveBackFurther(FurtherRange *further);

  /// What the frames of the program may take together on one stack.
  uint64_t bytes() const { return bytes_; }

  /// Gives pages back that only a deep recursion used, of a few stacks. Called between
  /// mini-batches.
  void trim();
  /// Gives back all that is only kept, of stacks that no one uses, and addresses, too. False when
  /// none of it counted.
  bool giveBack();

private:
  /// The number of ranges that may count against the budget, and each of them.
  size_t meteredCount() const { return mayGoFurther_ ? further_.size() : made_.size(); }
  StackRange &metered(size_t i) const {
    return mayGoFurther_ ? further_[i]->range : made_[i]->first_;
  }
  bool charge(StackRange &range, uint64_t bytes);
  void shrink(StackRange &range, uint64_t bytes);

  bool mayGoFurther_;
  unsigned count_;
  uint64_t overhead_; ///< StackRange::overhead of all
  Reservation space_; ///< of the first ranges
  uint64_t each_;     ///< bytes of them
  uint64_t bytes_;
  MemoryMeter &meter_;
  MemoryKind &memory_;
  std::vector<std::unique_ptr<HostStack>> made_;
  std::vector<HostStack *> free_;
  std::vector<std::unique_ptr<FurtherRange>> further_;
  std::vector<FurtherRange *> freeFurther_; ///< of these
  size_t trimmed_ = 0; ///< of those that are metered, looked at by trim() so far
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_HOST_STACK_H

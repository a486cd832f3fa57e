#include "runtime/host_stack.h"

#include "runtime/sanitizer.h"

#include <boost/context/detail/fcontext.hpp>

namespace sheaf::rt {

namespace bc = boost::context::detail;

namespace {
/// For the runtime's functions (and their system calls) under the deepest frame of an instance.
constexpr uint64_t kReserveBytes = uint64_t(256) << 10;
/// What the frames of a stack take in any case.
constexpr uint64_t kFirstBytes = uint64_t(64) << 10;
/// Kept between mini-batches by all stacks together; deeper pages are given back.
constexpr uint64_t kKeepBytes = uint64_t(16) << 20;
/// Giving back the pages of a stack is a system call.
constexpr size_t kTrimmedAtOnce = 8;
constexpr uint64_t kLeastBytes = uint64_t(1) << 20;

uint64_t wholePages(uint64_t bytes) {
  return (bytes + pageBytes() - 1) / pageBytes() * pageBytes();
}

/// The one place where the machine stack is switched. `to` runs on [bottom, bottom + size).
/// `leaving`: the current stack is not returned to. `left`, if given, is told the bounds of the
/// stack from which the control comes back.
bc::transfer_t switchStack(bc::fcontext_t to, void *data, [[maybe_unused]] const void *bottom,
                           [[maybe_unused]] size_t size, [[maybe_unused]] void *fiber,
                           [[maybe_unused]] bool leaving,
                           [[maybe_unused]] const void **leftBottom = nullptr,
                           [[maybe_unused]] size_t *leftSize = nullptr) {
#ifdef SHEAF_ASAN
  void *fakeStack = nullptr;
  __sanitizer_start_switch_fiber(leaving ? nullptr : &fakeStack, bottom, size);
#endif
#ifdef SHEAF_TSAN
  __tsan_switch_to_fiber(fiber, 0);
#endif
  bc::transfer_t back = bc::jump_fcontext(to, data);
#ifdef SHEAF_ASAN
  __sanitizer_finish_switch_fiber(fakeStack, leftBottom, leftSize);
#endif
  return back;
}
} // namespace

struct HostStack::Entry {
  static void start(bc::transfer_t from) {
    auto *self = static_cast<HostStack *>(from.data);
#ifdef SHEAF_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->callerBottom_, &self->callerSize_);
#endif
    self->caller_ = from.fctx;
    self->function_(self->argument_);
    self->leave(Left::Completed);
    __builtin_unreachable();
  }
};

uint64_t HostStack::overheadBytes() { return pageBytes() + kReserveBytes; }

HostStack::HostStack(uint8_t *data, uint64_t size)
    : data_(data), size_(size), taken_(std::max(limit(), data + size - kFirstBytes)) {}

HostStack::Left HostStack::enter(void *context, void *data) {
#ifdef SHEAF_TSAN
  callerFiber_ = __tsan_get_current_fiber();
#endif
  bc::transfer_t back = switchStack(context, data, data_, size_, fiber_, /*leaving=*/false);
  if (left_ == Left::Waiting) {
    self_ = back.fctx;
    return left_;
  }
#ifdef SHEAF_TSAN
  // A new one each time: an abandoned call leaves its frames in the sanitizer's own stack.
  __tsan_destroy_fiber(fiber_);
#endif
#ifdef SHEAF_ASAN
  // Dropped frames leave their red zones behind; a completed call drops those of leave().
  constexpr uint64_t kLeaving = uint64_t(64) << 10;
  uint64_t dropped = std::min(frames_ + kLeaving, size_ - pageBytes());
  frames_ = 0;
  unpoison(data_ + size_ - dropped, dropped);
#endif
  return left_;
}

HostStack::Left HostStack::call(void (*f)(void *), void *argument) {
  function_ = f;
  argument_ = argument;
#ifdef SHEAF_TSAN
  fiber_ = __tsan_create_fiber(0);
#endif
  return enter(bc::make_fcontext(data_ + size_, size_, Entry::start), this);
}

HostStack::Left HostStack::resume() { return enter(self_, nullptr); }

void HostStack::leave(Left how) {
  left_ = how;
  bc::transfer_t back = switchStack(caller_, nullptr, callerBottom_, callerSize_, callerFiber_,
                                    /*leaving=*/how != Left::Waiting, &callerBottom_, &callerSize_);
  caller_ = back.fctx;
}

void HostStack::wait() { leave(Left::Waiting); }

void HostStack::abandon() {
  frames_ =
      static_cast<uint64_t>(data_ + size_ - static_cast<uint8_t *>(__builtin_frame_address(0)));
  leave(Left::Abandoned);
  __builtin_unreachable();
}

//===----------------------------------------------------------------------===//
// HostStacks
//===----------------------------------------------------------------------===//

HostStacks::HostStacks(uint64_t bytes, unsigned count, MemoryMeter &meter, MemoryKind &memory)
    : space_((wholePages(bytes) + HostStack::overheadBytes()) * count,
             (wholePages(std::min(bytes, kLeastBytes)) + HostStack::overheadBytes()) * count,
             "the host stack"),
      each_(space_.size() / count / pageBytes() * pageBytes()), count_(count), meter_(meter),
      memory_(memory) {}

HostStacks::~HostStacks() {
  for (const std::unique_ptr<HostStack> &stack : made_)
    shrink(*stack, kFirstBytes);
}

HostStack *HostStacks::take() {
  if (!free_.empty()) {
    HostStack *stack = free_.back();
    free_.pop_back();
    return stack;
  }
  if (made_.size() == count_)
    return nullptr;
  uint64_t begin = made_.size() * each_;
  space_.guardPage(begin);
  made_.push_back(std::make_unique<HostStack>(space_.data() + begin, each_));
  return made_.back().get();
}

/// True when the budget pays for the first `bytes` of a stack's frames, or for as many as there
/// are.
bool HostStacks::charge(HostStack &stack, uint64_t bytes) {
  uint8_t *top = stack.data_ + stack.size_;
  bytes = std::min(wholePages(bytes), static_cast<uint64_t>(top - stack.limit()));
  if (!meter_.charge(memory_, bytes - static_cast<uint64_t>(top - stack.taken_)))
    return false;
  stack.taken_ = top - bytes;
  return true;
}

HostStacks::Deepened HostStacks::deepen(HostStack &stack, const uint8_t *frame) {
  if (frame <= stack.limit())
    return Deepened::UsedUp;
  auto needed = static_cast<uint64_t>(stack.data_ + stack.size_ - frame) + kFirstBytes;
  if (charge(stack, needed + needed / 8) || charge(stack, needed) ||
      (giveBack() && charge(stack, needed)))
    return Deepened::Done;
  return Deepened::NoMemory;
}

/// Gives back what frames below the first `bytes` took.
void HostStacks::shrink(HostStack &stack, uint64_t bytes) {
  uint8_t *top = stack.data_ + stack.size_;
  auto taken = static_cast<uint64_t>(top - stack.taken_);
  if (taken <= bytes)
    return;
  space_.release(static_cast<uint64_t>(stack.taken_ - space_.data()),
                 static_cast<uint64_t>(top - bytes - space_.data()));
  meter_.uncharge(memory_, taken - bytes);
  stack.taken_ = top - bytes;
}

void HostStacks::trim() {
  if (made_.empty())
    return;
  uint64_t keep = wholePages(std::max(kKeepBytes / made_.size(), kFirstBytes));
  for (size_t n = std::min(made_.size(), kTrimmedAtOnce); n > 0; --n)
    shrink(*made_[trimmed_++ % made_.size()], keep);
}

bool HostStacks::giveBack() {
  uint64_t before = memory_.now;
  for (HostStack *stack : free_)
    shrink(*stack, kFirstBytes);
  return memory_.now < before;
}

} // namespace sheaf::rt

#include "runtime/host_stack.h"

#include "runtime/sanitizer.h"

#include <boost/context/detail/fcontext.hpp>

namespace sheaf::rt {

namespace bc = boost::context::detail;

namespace {
/// For the runtime's functions (and their system calls) under the deepest frame of an instance.
constexpr uint64_t kReserveBytes = uint64_t(256) << 10;
/// Kept between mini-batches; deeper pages are given back.
constexpr uint64_t kKeepBytes = uint64_t(16) << 20;
constexpr uint64_t kLeastBytes = uint64_t(1) << 20;
uint64_t overheadBytes() { return pageBytes() + kReserveBytes; }

/// The one place where the machine stack is switched. `to` runs on [bottom, bottom + size).
/// `leaving`: the current stack is not returned to.
bc::transfer_t switchStack(bc::fcontext_t to, void *data, [[maybe_unused]] const void *bottom,
                           [[maybe_unused]] size_t size, [[maybe_unused]] void *fiber,
                           [[maybe_unused]] bool leaving) {
#ifdef SHEAF_ASAN
  void *fakeStack = nullptr;
  __sanitizer_start_switch_fiber(leaving ? nullptr : &fakeStack, bottom, size);
#endif
#ifdef SHEAF_TSAN
  __tsan_switch_to_fiber(fiber, 0);
#endif
  bc::transfer_t back = bc::jump_fcontext(to, data);
#ifdef SHEAF_ASAN
  __sanitizer_finish_switch_fiber(fakeStack, nullptr, nullptr);
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
    self->leave(true);
  }
};

HostStack::HostStack(uint64_t bytes, MemoryKind &count)
    : stack_(bytes + overheadBytes(), std::min(bytes, kLeastBytes) + overheadBytes(),
             "the host stack"),
      count_(count),
      // The machine gives whole pages, or less than was asked for.
      limit_(stack_.data() +
             std::max(overheadBytes(), stack_.size() - std::min(bytes, stack_.size()))) {
  stack_.guardFirstPage();
}

HostStack::~HostStack() = default;

bool HostStack::call(void (*f)(void *), void *argument) {
  function_ = f;
  argument_ = argument;
  completed_ = false;
  bc::fcontext_t context =
      bc::make_fcontext(stack_.data() + stack_.size(), stack_.size(), Entry::start);
  void *fiber = nullptr;
#ifdef SHEAF_TSAN
  // A new one each time: an abandoned call leaves its frames in the sanitizer's own stack.
  callerFiber_ = __tsan_get_current_fiber();
  fiber = __tsan_create_fiber(0);
#endif
  switchStack(context, this, stack_.data(), stack_.size(), fiber, /*leaving=*/false);
#ifdef SHEAF_TSAN
  __tsan_destroy_fiber(fiber);
#endif
#ifdef SHEAF_ASAN
  // Dropped frames leave their red zones behind; a completed call drops those of leave().
  constexpr uint64_t kLeaving = uint64_t(64) << 10;
  uint64_t dropped = completed_ ? std::min(kLeaving, stack_.size()) : residentBytes();
  unpoison(stack_.data() + stack_.size() - dropped, dropped);
#endif
  return completed_;
}

void HostStack::leave(bool completed) {
  completed_ = completed;
  switchStack(caller_, nullptr, callerBottom_, callerSize_, callerFiber_, /*leaving=*/true);
  __builtin_unreachable();
}

void HostStack::abandon() { leave(false); }

uint64_t HostStack::residentBytes() const {
  // Frames are laid down from the top, so the first block without a page ends what was used.
  constexpr uint64_t kBlock = uint64_t(1) << 20;
  uint64_t total = 0;
  for (uint64_t end = stack_.size(); end > pageBytes();) {
    uint64_t begin = end > kBlock + pageBytes() ? end - kBlock : pageBytes();
    uint64_t bytes = stack_.residentBytes(begin, end);
    if (bytes == 0)
      break;
    total = stack_.size() - begin;
    end = begin;
  }
  return total;
}

void HostStack::trim() {
  uint64_t size = stack_.size();
  count_.now = std::min(size, kKeepBytes);
  if (size > kKeepBytes + pageBytes() &&
      stack_.residentBytes(size - kKeepBytes - pageBytes(), size - kKeepBytes) != 0) {
    uint64_t used = residentBytes();
    count_.peak = std::max(count_.peak, used);
    stack_.release(size - used, size - kKeepBytes);
  }
}

} // namespace sheaf::rt

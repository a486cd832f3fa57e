#include "runtime/walk/host_stack.h"

#include "runtime/memory/sanitizer.h"
#include "runtime/model/error.h"

#include <boost/context/detail/fcontext.hpp>

namespace sheaf::rt {

namespace bc = boost::context::detail;

namespace {
/// For the runtime's functions (and their system calls) under the deepest frame of an instance.
constexpr uint64_t kReserveBytes = uint64_t(256) << 10;
/// What the frames of a stack take in any case.
constexpr uint64_t kFirstBytes = uint64_t(64) << 10;
/// For what calls the program's first function.
constexpr uint64_t kEntryBytes = 4096;
/// Calls that find no stack to be forked onto run on that of their caller. Where a frame stands
/// there must not decide how deep a recursion may be, so the runtime's frames between them are not
/// counted; the smallest frame of a function with those is five times as large as by itself.
constexpr uint64_t kFurtherTimes = 5;
/// Of a process's 128 TB of addresses, what the further ranges of a session are to take at most if
/// each has room for the frames alone.
constexpr uint64_t kFurtherAddresses = uint64_t(4) << 40;
/// Kept between mini-batches by all stacks together; deeper pages are given back.
constexpr uint64_t kKeepBytes = uint64_t(16) << 20;
/// Giving back the pages of a stack is a system call.
constexpr size_t kTrimmedAtOnce = 8;
constexpr uint64_t kLeastBytes = uint64_t(1) << 20;
/// What a call that waited looks at when it goes on: its frame and the one that called it; and what
/// a call takes when it begins.
constexpr size_t kPrefetched = 6 * 64;

uint64_t wholePages(uint64_t bytes) {
  return (bytes + pageBytes() - 1) / pageBytes() * pageBytes();
}

/// Frames that were dropped leave their red zones behind, and so do those of whoever leaves.
void unpoisonFrames([[maybe_unused]] const StackRange &range,
                    [[maybe_unused]] const uint8_t *lowest) {
#ifdef SHEAF_ASAN
  constexpr ptrdiff_t kLeaving = ptrdiff_t(64) << 10;
  const uint8_t *bottom = range.data + pageBytes();
  const uint8_t *from = lowest - bottom > kLeaving ? lowest - kLeaving : bottom;
  unpoison(from, static_cast<size_t>(range.top() - from));
#endif
}

/// The one place where the machine stack is switched. `to` runs on [bottom, bottom + size).
/// `leaving`: the current stack is not returned to. `left`, if given, is told the bounds of the
/// stack from which the control comes back.
bc::transfer_t switchStack(bc::fcontext_t to, void *data, [[maybe_unused]] const void *bottom,
                           [[maybe_unused]] size_t size, [[maybe_unused]] bool leaving,
                           [[maybe_unused]] const void **leftBottom = nullptr,
                           [[maybe_unused]] size_t *leftSize = nullptr) {
#ifdef SHEAF_ASAN
  void *fakeStack = nullptr;
  __sanitizer_start_switch_fiber(leaving ? nullptr : &fakeStack, bottom, size);
#endif
  bc::transfer_t back = bc::jump_fcontext(to, data);
#ifdef SHEAF_ASAN
  __sanitizer_finish_switch_fiber(fakeStack, leftBottom, leftSize);
#endif
  return back;
}
} // namespace

//===----------------------------------------------------------------------===//
// HostStack
//===----------------------------------------------------------------------===//

StackRange::StackRange(Reservation &space, uint64_t begin, uint64_t size, uint64_t overhead,
                       uint64_t freeBytes)
    : data(space.data() + begin), size(size), overhead(overhead), freeBytes(freeBytes),
      taken(std::max(limit(), top() - freeBytes)) {
  space.guardPage(begin);
}

FurtherRange::FurtherRange(uint64_t bytes, uint64_t least, uint64_t overhead)
    : space(wholePages(bytes) + overhead, wholePages(least) + overhead, "the host stack"),
      range(space, 0, space.size(), overhead, /*freeBytes=*/0) {}

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

struct HostStack::FurtherEntry {
  HostStack *self;
  Body f;
  void *argument;

  static void start(bc::transfer_t from) {
    auto *entry = static_cast<FurtherEntry *>(from.data);
#ifdef SHEAF_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    entry->f(entry->argument);
    const StackRange &first = entry->self->first_;
    switchStack(from.fctx, nullptr, first.data, first.size, /*leaving=*/true);
    __builtin_unreachable();
  }
};

HostStack::HostStack(const StackRange &first) : first_(first) { noteFree(); }

void HostStack::noteFree() { self_ = first_.top() - kPrefetched; }

HostStack::Left HostStack::enter(void *context, void *data) {
#ifdef SHEAF_TSAN
  callerFiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, 0);
#endif
  bc::transfer_t back = switchStack(context, data, range().data, range().size, /*leaving=*/false);
  if (left_ == Left::Waiting) {
    self_ = back.fctx;
    return left_;
  }
#ifdef SHEAF_TSAN
  // A new one each time: an abandoned call leaves its frames in the sanitizer's own stack.
  __tsan_destroy_fiber(fiber_);
#endif
  unpoisonFrames(range(), dropped_);
  if (further_)
    unpoisonFrames(first_, firstDropped_);
  noteFree();
  return left_;
}

HostStack::Left HostStack::call(Body f, void *argument) {
  function_ = f;
  argument_ = argument;
  dropped_ = first_.top();
#ifdef SHEAF_TSAN
  fiber_ = __tsan_create_fiber(0);
#endif
  return enter(bc::make_fcontext(first_.top(), first_.size, Entry::start), this);
}

HostStack::Left HostStack::resume() { return enter(self_, nullptr); }

void HostStack::prefetch() const {
  for (size_t i = 0; i < kPrefetched; i += 64)
    __builtin_prefetch(static_cast<const char *>(self_) + i, 1);
}

void HostStack::leave(Left how) {
  left_ = how;
#ifdef SHEAF_TSAN
  __tsan_switch_to_fiber(callerFiber_, 0);
#endif
  bc::transfer_t back = switchStack(caller_, nullptr, callerBottom_, callerSize_,
                                    /*leaving=*/how != Left::Waiting, &callerBottom_, &callerSize_);
  caller_ = back.fctx;
}

void HostStack::wait() { leave(Left::Waiting); }

void HostStack::abandon() {
  dropped_ = static_cast<uint8_t *>(__builtin_frame_address(0));
  leave(Left::Abandoned);
  __builtin_unreachable();
}

void HostStack::callOn(FurtherRange &further, Body f, void *argument) {
  FurtherEntry entry{this, f, argument};
  firstDropped_ = static_cast<uint8_t *>(__builtin_frame_address(0));
  further_ = &further;
  // For the thread sanitizer it is one stack: it follows calls, not addresses. The address
  // sanitizer keeps the first range's fake frames for good when the call is given up.
  const StackRange &range = further.range;
  switchStack(bc::make_fcontext(range.top(), range.size, FurtherEntry::start), &entry, range.data,
              range.size, /*leaving=*/false);
  further_ = nullptr;
  unpoisonFrames(range, range.top());
}

//===----------------------------------------------------------------------===//
// HostStacks
//===----------------------------------------------------------------------===//

HostStacks::HostStacks(const Sizes &sizes, MemoryMeter &meter, MemoryKind &memory)
    : mayGoFurther_(sizes.further), count_(sizes.count),
      // Frames are compared by where they begin, those of functions that cannot recurse not at all.
      overhead_(pageBytes() + wholePages(kReserveBytes + 2 * sizes.largestFrame)),
      space_((wholePages(sizes.further ? kFirstBytes : sizes.bytes + kEntryBytes) + overhead_) *
                 count_,
             (wholePages(sizes.further ? kFirstBytes : std::min(sizes.bytes, kLeastBytes)) +
              overhead_) *
                 count_,
             "the host stack"),
      each_(space_.size() / count_ / pageBytes() * pageBytes()),
      bytes_(sizes.further ? sizes.bytes
                           : std::min(sizes.bytes, each_ - overhead_ -
                                                       std::min(kEntryBytes, each_ - overhead_))),
      meter_(meter), memory_(memory) {}

HostStacks::~HostStacks() {
  for (size_t i = 0; i < meteredCount(); ++i)
    shrink(metered(i), metered(i).freeBytes);
}

HostStack *HostStacks::take() {
  if (!free_.empty()) {
    HostStack *stack = free_.back();
    free_.pop_back();
    return stack;
  }
  if (made_.size() == count_)
    return nullptr;
  made_.push_back(std::make_unique<HostStack>(
      StackRange(space_, made_.size() * each_, each_, overhead_, kFirstBytes)));
  return made_.back().get();
}

void HostStacks::giveBack(HostStack *stack) {
  if (stack->further_)
    giveBackFurther(stack->further_);
  stack->further_ = nullptr;
  free_.push_back(stack);
}

FurtherRange *HostStacks::further() {
  if (freeFurther_.empty()) {
    // Called by host code, which nothing may be thrown through.
    try {
      uint64_t least = bytes_ + kEntryBytes;
      uint64_t most = std::min(kFurtherTimes * bytes_ + kEntryBytes, kFurtherAddresses / count_);
      further_.push_back(std::make_unique<FurtherRange>(std::max(least, most), least, overhead_));
      freeFurther_.reserve(further_.capacity());
    } catch (const std::exception &) {
      return nullptr;
    }
    return further_.back().get();
  }
  FurtherRange *further = freeFurther_.back();
  freeFurther_.pop_back();
  further->isFree = false;
  return further;
}

void HostStacks::giveBackFurther(FurtherRange *further) {
  further->isFree = true;
  freeFurther_.push_back(further);
}

/// True when the budget pays for the first `bytes` of a range, or for as many as there are.
bool HostStacks::charge(StackRange &range, uint64_t bytes) {
  bytes = std::min(wholePages(bytes), static_cast<uint64_t>(range.top() - range.limit()));
  if (!meter_.charge(memory_, bytes - static_cast<uint64_t>(range.top() - range.taken)))
    return false;
  range.taken = range.top() - bytes;
  return true;
}

HostStacks::Deepened HostStacks::deepen(HostStack &stack, const uint8_t *frame) {
  StackRange &range = stack.range();
  if (mayGoFurther_ && !stack.further_)
    return frame > range.taken ? Deepened::Done : Deepened::Further;
  // On a further range it is not the program that is too deep.
  if (frame <= range.limit())
    return mayGoFurther_ ? Deepened::NoMemory : Deepened::UsedUp;
  auto needed = static_cast<uint64_t>(range.top() - frame) + kFirstBytes;
  if (charge(range, needed + needed / 8) || charge(range, needed) ||
      (giveBack() && charge(range, needed)))
    return Deepened::Done;
  return Deepened::NoMemory;
}

/// Gives back what frames below the first `bytes` took.
void HostStacks::shrink(StackRange &range, uint64_t bytes) {
  auto taken = static_cast<uint64_t>(range.top() - range.taken);
  if (taken <= bytes)
    return;
  releasePages(range.taken, range.top() - bytes);
  meter_.uncharge(memory_, taken - bytes);
  range.taken = range.top() - bytes;
}

void HostStacks::trim() {
  size_t count = meteredCount();
  if (count == 0)
    return;
  uint64_t keep = wholePages(std::max(kKeepBytes / count, kFirstBytes));
  for (size_t n = std::min(count, kTrimmedAtOnce); n > 0; --n)
    shrink(metered(trimmed_++ % count), keep);
}

bool HostStacks::giveBack() {
  uint64_t before = memory_.now;
  if (!mayGoFurther_)
    for (HostStack *stack : free_)
      shrink(stack->first_, kFirstBytes);
  for (FurtherRange *further : freeFurther_)
    shrink(further->range, 0);
  freeFurther_.clear();
  std::erase_if(further_, [](const auto &further) { return further->isFree; });
  return memory_.now < before;
}

} // namespace sheaf::rt

#include "runtime/walk/read_log.h"

namespace sheaf::rt {

void ReadLog::keep(size_t instances) {
  if (instances >= instances_.size())
    return;
  threads_.resize(instances_[instances]);
  instances_.resize(instances);
}

uint32_t ReadLog::begin() {
  instances_.push_back(static_cast<uint32_t>(threads_.size()));
  threads_.emplace_back();
  return instances_.back();
}

uint32_t ReadLog::beginAgain(uint32_t thread) {
  auto again = static_cast<uint32_t>(threads_.size());
  threads_.emplace_back();
  return threads_[thread].again = again;
}

bool ReadLog::asked(uint32_t thread, bool forks) {
  note(thread, {kAsked, forks});
  return forks;
}

uint32_t ReadLog::fork(uint32_t parent) {
  auto thread = static_cast<uint32_t>(threads_.size());
  threads_.emplace_back();
  note(parent, {kForked, static_cast<Slot>(thread)});
  return thread;
}

std::vector<LoggedRead> ReadLog::of(size_t instance) const {
  std::vector<LoggedRead> reads;
  struct Open {
    const Thread *thread;
    size_t next;
  };
  const Thread *first = &threads_[instances_.at(instance)];
  while (first->again)
    first = &threads_[first->again];
  std::vector<Open> open{{first, 0}};
  while (!open.empty()) {
    Open &top = open.back();
    if (top.next == top.thread->events.size()) {
      // What would come next was not read, whatever others read that come after it.
      if (!top.thread->ended)
        break;
      open.pop_back();
      continue;
    }
    LoggedRead event = top.thread->events[top.next++];
    if (event.place == kForked)
      open.push_back({&threads_[static_cast<uint32_t>(event.value)], 0});
    else if (event.place != kAsked)
      reads.push_back(event);
  }
  return reads;
}

} // namespace sheaf::rt

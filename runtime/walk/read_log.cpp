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

uint32_t ReadLog::fork(uint32_t parent) {
  auto thread = static_cast<uint32_t>(threads_.size());
  threads_.emplace_back();
  threads_[parent].reads.push_back({kForked, static_cast<Slot>(thread)});
  return thread;
}

std::vector<LoggedRead> ReadLog::of(size_t instance) const {
  std::vector<LoggedRead> reads;
  struct Open {
    const Thread *thread;
    size_t next;
  };
  std::vector<Open> open{{&threads_[instances_.at(instance)], 0}};
  while (!open.empty()) {
    Open &top = open.back();
    if (top.next == top.thread->reads.size()) {
      // What would come next was not read, whatever others read that come after it.
      if (!top.thread->ended)
        break;
      open.pop_back();
      continue;
    }
    LoggedRead read = top.thread->reads[top.next++];
    if (read.place == kForked)
      open.push_back({&threads_[static_cast<uint32_t>(read.value)], 0});
    else
      reads.push_back(read);
  }
  return reads;
}

} // namespace sheaf::rt

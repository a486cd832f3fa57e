#include "runtime/walk/grown.h"

#include <new>

namespace sheaf::rt {

void GrownRows::note(uint32_t id, int64_t used, int64_t capacity) {
  if (!meter_.charge(count_, kEntryBytes))
    return;
  // No exception may leave: generated code is on the stack.
  try {
    rooms_[id] = {used, capacity};
  } catch (const std::bad_alloc &) {
    meter_.uncharge(count_, kEntryBytes);
  }
}

void GrownRows::keep(GranuleBits &live, uint64_t first) {
  for (auto it = rooms_.begin(); it != rooms_.end();) {
    uint64_t begin = it->first - first;
    // Every version begins there. A view of its first row may, too.
    if (live.any(begin, begin + 1)) {
      Room &room = it->second;
      uint64_t end = live.last(begin, begin + static_cast<uint64_t>(room.used)) + 1;
      room.used = static_cast<int64_t>(end - begin);
      live.set(begin, begin + static_cast<uint64_t>(room.capacity));
      ++it;
    } else {
      meter_.uncharge(count_, kEntryBytes);
      it = rooms_.erase(it);
    }
  }
}

void GrownRows::forget() {
  meter_.uncharge(count_, rooms_.size() * kEntryBytes);
  rooms_.clear();
}

} // namespace sheaf::rt

//===- grown.h - Rows that are appended in place ----------------*- C++ -*-===//
//
// A tensor that grows has room after its rows. Every version of it is a value that never changes:
// where it begins and how many rows it has. Rows for the longest version are written after it, and
// its own stay where they are; whoever holds a shorter one sees as many as before. A shorter one
// that grows itself is copied, as is one whose room is used up: then there is room for as much
// again, so that each row is copied twice at most, on average.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_GROWN_H
#define SHEAF_RUNTIME_WALK_GROWN_H

#include "runtime/memory/granule_bits.h"
#include "runtime/memory/memory.h"

#include <unordered_map>

namespace sheaf::rt {

class GrownRows {
public:
  /// With `hostile` there is next to no room, and much is copied.
  GrownRows(MemoryMeter &meter, MemoryKind &count, bool hostile)
      : meter_(meter), count_(count), hostile_(hostile) {}
  ~GrownRows() { forget(); }
  GrownRows(const GrownRows &) = delete;

  /// Takes the `more` granules after a tensor of `granules` from `id` on: false when it is not the
  /// longest version of what begins there, or has no room.
  bool take(uint32_t id, int64_t granules, int64_t more) {
    auto it = rooms_.find(id);
    if (it == rooms_.end() || it->second.used != granules || it->second.capacity - granules < more)
      return false;
    it->second.used += more;
    return true;
  }
  /// What to reserve for `used` granules, of which `more` are new.
  int64_t capacityFor(int64_t used, int64_t more) const {
    return used + (hostile_ ? more : std::max(used, std::min(kLeastRoom * more, kEnoughRoom)));
  }
  /// Granules that are reserved from `id` on; 0: nothing is known of it.
  int64_t capacity(uint32_t id) const {
    auto it = rooms_.find(id);
    return it == rooms_.end() ? 0 : it->second.capacity;
  }
  /// Granules from `id` on are reserved. Where memory is short that is forgotten: then rows cannot
  /// be appended in place.
  void note(uint32_t id, int64_t used, int64_t capacity);

  /// What is reserved for tensors that are needed stays, and the rest is forgotten: `live` has a
  /// bit for each granule from `first` on. The longest version that is needed may grow in place,
  /// whoever had longer ones. Nothing is pending.
  void keep(GranuleBits &live, uint64_t first);
  void forget();

private:
  /// Room for so many times what is appended, at least; but no more than so many granules for that.
  static constexpr int64_t kLeastRoom = 16, kEnoughRoom = 512;
  static constexpr uint64_t kEntryBytes = 64; ///< of the map, about

  struct Room {
    int64_t used, capacity;
  };
  std::unordered_map<uint32_t, Room> rooms_; ///< by the first granule
  MemoryMeter &meter_;
  MemoryKind &count_;
  bool hostile_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_GROWN_H

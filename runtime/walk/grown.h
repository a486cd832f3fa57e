//===- grown.h - Rows that are appended in place ----------------*- C++ -*-===//
//
// A tensor that grows has room after its rows. Every version of it is a value that never changes:
// where it begins and how many rows it has. Rows for the longest version are written after it, and
// its own stay where they are; whoever holds a shorter one sees as many as before. A shorter one
// that grows itself goes on elsewhere, as does one whose room is used up: its rows are copied, and
// there is room for as much again, so that each row is copied twice at most, on average.
//
// Where several go on from the same rows, and these are long, all but the first have them in common
// (memory/shared_rows.h): whole pages stand at the addresses of each, and the rest is copied. The
// first of these copies the rows to pages, since those of most tensors never are common; when
// nothing runs, the tensor that it went on from has these pages, too.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_GROWN_H
#define SHEAF_RUNTIME_WALK_GROWN_H

#include "runtime/memory/granule_bits.h"
#include "runtime/memory/shared_rows.h"
#include "runtime/model/abi.h"
#include "runtime/model/rooms.h"
#include "runtime/schedule/when.h"

#include <optional>
#include <unordered_map>

namespace sheaf::rt {

class GrownRows {
public:
  /// With `hostile` there is next to no room, and much is copied, or common.
  GrownRows(RowSpace &rows, MemoryMeter &meter, MemoryKind &count, bool hostile)
      : rows_(rows), meter_(meter), count_(count), hostile_(hostile),
        shared_(rows, meter, count, hostile) {}
  ~GrownRows() { forgetRooms(); }
  GrownRows(const GrownRows &) = delete;

  /// When rows are common: Worth, where that takes about as long as to copy them at most and for
  /// long, or memory is short. Not while launches are put in an order that follows from who wrote
  /// which rows.
  void shareWhen(When when);

  /// Takes the `more` granules after a tensor of `granules` from `id` on: false when it is not the
  /// longest version of what begins there, or has no room.
  bool take(uint32_t id, int64_t granules, int64_t more) {
    auto it = rooms_.find(id);
    if (it == rooms_.end() || it->second.used != granules ||
        it->second.capacity - granules < more || granules < it->second.common)
      return false;
    it->second.used += more;
    return true;
  }

  /// Where a tensor goes on.
  struct Place {
    uint64_t id;        ///< or RowSpace::kFull: there is no memory for it, with whatever room
    int64_t there = 0;  ///< its first granules that need not be copied,
    uint32_t depth = 0; ///< and that are there at this depth
  };
  /// For `whole`, of so many granules, and `more` after them. A record of `depth` copies what is
  /// not there.
  Place goOn(TensorHandle whole, int64_t granules, int64_t more, uint32_t depth);
  /// It has been recorded that this is such a place, with the rows of `whole`: others that go on
  /// from these may have them from there.
  void copied(uint32_t whole, int64_t granules, TensorHandle copy);

  /// What to reserve for `used` granules, of which `more` are new.
  int64_t capacityFor(int64_t used, int64_t more) const {
    return used + (hostile_ ? more : std::max(used, std::min(kLeastRoom * more, kEnoughRoom)));
  }
  /// Granules that are reserved from `id` on; 0: nothing is known of it.
  int64_t capacity(uint32_t id) const {
    auto it = rooms_.find(id);
    return it == rooms_.end() ? 0 : it->second.capacity;
  }
  /// SharedRows::addMemory.
  void addMemory(const RowRange &rows, std::vector<RowRange> &memory) const {
    shared_.addMemory(rows, memory);
  }

  /// What is reserved for tensors that are needed stays, and the rest is forgotten: `live` has a
  /// bit for each granule of the rows. The longest version that is needed may grow in place,
  /// whoever had longer ones. Nothing is pending.
  void keep(GranuleBits &live);
  /// Whether rows have become common since, of tensors that were there.
  bool takeJoined() { return std::exchange(joined_, false); }
  /// Before rows are reset. Throws std::bad_alloc when the machine refuses memory for mappings.
  void forget();
  /// Copies that were recorded may never be made.
  void forgetCopies();

  /// Tensors that went on with rows in common, and bytes that were not copied for them.
  struct Counts {
    uint64_t shared = 0, bytes = 0;
  } counts;

private:
  static constexpr uint64_t kEntryBytes = 96; ///< of the map, about

  /// Elsewhere, the first `granules` of a tensor, from `depth` on.
  struct Copy {
    uint32_t id;
    int64_t granules;
    uint32_t depth;
    bool isEqual = false; ///< it has been made, and that was seen
  };
  /// Or a tensor that has none, a part of one that has, perhaps: what went on from it is a copy.
  struct Room {
    int64_t used, capacity;
    int64_t common = 0;     ///< granules that others may have in common with it
    bool wentOn = false;    ///< elsewhere, from its longest version
    int64_t branchedAt = 0; ///< granules that it began with, when another had these, too
    std::optional<Copy> copy = std::nullopt; ///< whose pages can be shown
  };
  void note(uint32_t id, const Room &room);
  bool isLong(TensorHandle whole, int64_t granules) const;
  bool isShort() const { return meter_.used() > meter_.limit() / 2; }
  bool isBriefly(const Room &room, int64_t granules) const;
  /// How a tensor goes on: by a record of this depth, with Room::branchedAt.
  struct Step {
    uint32_t depth;
    int64_t branchedAt;
  };
  Place share(TensorHandle whole, int64_t granules, int64_t more, const Step &step);
  bool isInside(uint64_t id) const;
  void makeCommon(uint64_t id, Room &room, const GranuleBits &live);
  void forgetRooms();
  int64_t pagesOf(int64_t granules) const {
    return granules / static_cast<int64_t>(shared_.page());
  }

  std::unordered_map<uint32_t, Room> rooms_; ///< by the first granule
  RowSpace &rows_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  bool hostile_;
  int64_t leastShared_ = INT64_MAX, leastWhenShort_ = INT64_MAX; ///< granules
  uint64_t mappingPages_ = 0;
  bool sharesBriefly_ = true;
  bool joined_ = false;
  SharedRows shared_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_GROWN_H

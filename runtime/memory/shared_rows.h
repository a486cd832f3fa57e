//===- shared_rows.h - Rows that tensors have in common ---------*- C++ -*-===//
//
// Rooms of row addresses, made of whole pages, which may show the pages of others (row_pages.h):
// what several tensors begin with is in memory once. A page's memory is there as long as a room
// shows it, and counts once. Addresses without a room stay here, without memory, for rooms to come;
// those after all rows go back to the row space.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEMORY_SHARED_ROWS_H
#define SHEAF_RUNTIME_MEMORY_SHARED_ROWS_H

#include "runtime/memory/rows.h"

#include <map>

namespace sheaf::rt {

class SharedRows {
public:
  /// Its own memory is charged to `count`; fresh pages are filled with NaN patterns if `fills`.
  SharedRows(RowSpace &rows, MemoryMeter &meter, MemoryKind &count, bool fills)
      : rows_(rows), meter_(meter), count_(count), fills_(fills) {}
  ~SharedRows() { meter_.uncharge(count_, mappings_ * kMappingBytes); }
  SharedRows(const SharedRows &) = delete;

  /// Whether the rows' memory can do it. All else is called only where it can.
  bool isPossible() { return rows_.memory().pages() != nullptr; }
  /// Granules of a page.
  uint64_t page() const { return maps().pageGranules(); }

  /// Whether a room begins at `id`.
  bool has(uint64_t id) const {
    auto room = rooms_.find(id);
    return room != rooms_.end() && !room->second.isFree();
  }
  /// How many of the first `pages` of the room at `id` to have in common, where a mapping costs as
  /// much as copying so many pages: 0 when it has none, or is none.
  uint64_t worthSharing(uint64_t id, uint64_t pages, uint64_t mappingPages) const;

  /// Makes a room of `pages`, of which the first `common`, less than all, are those of the room at
  /// `from`, and may only be read; or kFull, where addresses, mappings or memory are short.
  uint64_t make(uint64_t pages, uint64_t from, uint64_t common);
  /// As many pages of rows, from granule `id` on, hold the same as the first ones of the room at
  /// `from`: they become these, a room of its own that may only be read. False when it cannot be.
  /// Nothing runs.
  bool join(uint64_t id, uint64_t from, uint64_t pages);

  /// Rooms of which `live`, with a bit for each granule of the rows, has any granule stay as a
  /// whole; others are given up. Addresses that stay here are set. Nothing runs.
  void keep(GranuleBits &live);
  /// Gives all up, before the rows are reset. Throws std::bad_alloc when the machine refuses it.
  void forget();

  /// Where these rows lie, with numbers of their own for shared pages: the same memory has the
  /// same.
  void addMemory(const RowRange &rows, std::vector<RowRange> &memory) const;

private:
  struct Segment {
    uint64_t at;    ///< in the room
    uint64_t page;  ///< which ones stand there
    uint64_t pages; ///< so many
  };
  /// Where none is: addresses without memory.
  struct Room {
    uint64_t pages;
    std::vector<Segment> segments; ///< in their order, without gaps
    bool isFree() const { return segments.empty(); }
  };
  using Rooms = std::map<uint64_t, Room>;
  struct Run {
    uint64_t pages;
    uint64_t uses; ///< rooms that show them
  };

  RowPages &maps() const { return *rows_.memory().pages(); }
  uint64_t granules(uint64_t pages) const { return pages * page(); }
  std::vector<Segment> firstOf(uint64_t id, uint64_t pages) const;
  Rooms::iterator take(uint64_t pages);
  bool takeMappings(size_t count);
  void giveMappings(size_t count);
  size_t show(uint64_t id, std::span<const Segment> segments);
  void clear(uint64_t id, uint64_t pages);
  void cut(uint64_t page);
  /// Whether a room has some of the granules from `id` on.
  bool overlaps(uint64_t id, uint64_t length) const;
  void use(const Segment &segment);
  void giveUp(Room &room, uint64_t id);
  bool restore(const Rooms::value_type &room);

  /// With a room, a run of pages and their places in maps, about.
  static constexpr uint64_t kMappingBytes = 224;

  RowSpace &rows_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  bool fills_;
  uint64_t mappings_ = 0;
  Rooms rooms_;                  ///< by their first granules
  std::map<uint64_t, Run> runs_; ///< of pages, by the first
  uint64_t nextPage_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_SHARED_ROWS_H

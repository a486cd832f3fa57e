#include "runtime/memory/shared_rows.h"

#include "runtime/memory/sanitizer.h"

#include <iterator>
#include <new>
#include <utility>

namespace sheaf::rt {

uint64_t SharedRows::worthSharing(uint64_t id, uint64_t pages, uint64_t mappingPages) const {
  auto room = rooms_.find(id);
  if (room == rooms_.end())
    return 0;
  // What each number of segments costs, with the rest copied; short ones at the end are not worth
  // it, so tensors that go on from each other again and again have few.
  uint64_t best = 0, least = pages, mapped = 0;
  for (const Segment &segment : room->second.segments) {
    if (segment.at >= pages)
      break;
    uint64_t end = std::min(segment.at + segment.pages, pages);
    mapped += mappingPages;
    if (mapped + (pages - end) < least) {
      least = mapped + (pages - end);
      best = end;
    }
  }
  return best;
}

/// The segments of a room's first pages.
std::vector<SharedRows::Segment> SharedRows::firstOf(uint64_t id, uint64_t pages) const {
  std::vector<Segment> first;
  if (pages == 0)
    return first;
  for (const Segment &segment : rooms_.at(id).segments)
    if (segment.at < pages)
      first.push_back({segment.at, segment.page, std::min(segment.pages, pages - segment.at)});
  return first;
}

/// Whether there may be so many more, and what is noted of them.
bool SharedRows::takeMappings(size_t count) {
  if (!maps().take(count))
    return false;
  if (meter_.charge(count_, count * kMappingBytes)) {
    mappings_ += count;
    return true;
  }
  maps().giveBack(count);
  return false;
}

void SharedRows::giveMappings(size_t count) {
  maps().giveBack(count);
  meter_.uncharge(count_, count * kMappingBytes);
  mappings_ -= count;
}

/// No run goes beyond this page.
void SharedRows::cut(uint64_t page) {
  auto run = runs_.upper_bound(page);
  if (run == runs_.begin())
    return;
  --run;
  uint64_t before = page - run->first;
  if (before == 0 || before >= run->second.pages)
    return;
  runs_.emplace_hint(std::next(run), page, Run{run->second.pages - before, run->second.uses});
  run->second.pages = before;
}

/// They have been cut at its ends.
void SharedRows::use(const Segment &segment) {
  for (auto run = runs_.find(segment.page);
       run != runs_.end() && run->first < segment.page + segment.pages; ++run)
    ++run->second.uses;
}

/// Addresses for a room, without segments; or the end.
SharedRows::Rooms::iterator SharedRows::take(uint64_t pages) {
  // (A map's node is made first: addresses that are taken have a place here.)
  Rooms made;
  made.emplace(0, Room{pages, {}});
  auto free = rooms_.begin();
  while (free != rooms_.end() && !(free->second.isFree() && free->second.pages >= pages))
    ++free;
  uint64_t at = 0;
  if (free == rooms_.end()) {
    at = rows_.takeBare(granules(pages));
    if (at == RowSpace::kFull)
      return rooms_.end();
  } else {
    at = free->first;
    auto rest = rooms_.extract(free);
    rest.mapped().pages -= pages;
    if (rest.mapped().pages > 0) {
      rest.key() += granules(pages);
      rooms_.insert(std::move(rest));
    }
  }
  unpoison(rows_.address(at), granules(pages) * kGranuleBytes);
  auto node = made.extract(made.begin());
  node.key() = at;
  return rooms_.insert(std::move(node)).position;
}

uint64_t SharedRows::make(uint64_t pages, uint64_t from, uint64_t common) try {
  std::vector<Segment> segments = firstOf(from, common);
  if (common > 0)
    cut(segments.back().page + segments.back().pages);
  Segment own{common, nextPage_, pages - common};
  segments.push_back(own);
  if (!takeMappings(segments.size()))
    return RowSpace::kFull;
  auto run = runs_.end();
  Rooms::iterator room = rooms_.end();
  try {
    run = runs_.emplace(own.page, Run{own.pages, 0}).first;
    room = take(pages);
  } catch (const std::bad_alloc &) {
  }
  bool hasMemory = room != rooms_.end() && rows_.takeMemory(granules(own.pages));
  if (hasMemory && show(room->first, segments) == segments.size()) {
    for (const Segment &segment : segments)
      use(segment);
    nextPage_ += own.pages;
    room->second.segments = std::move(segments);
    if (fills_)
      rows_.memory().fill({room->first + granules(common), granules(own.pages)}, 0xFF);
    return room->first;
  }
  if (hasMemory)
    rows_.giveMemory(granules(own.pages));
  if (room != rooms_.end())
    clear(room->first, pages);
  if (run != runs_.end())
    runs_.erase(run);
  giveMappings(segments.size());
  return RowSpace::kFull;
} catch (const std::bad_alloc &) {
  return RowSpace::kFull;
}

bool SharedRows::overlaps(uint64_t id, uint64_t length) const {
  auto after = rooms_.lower_bound(id);
  if (after != rooms_.end() && after->first < id + length)
    return true;
  if (after == rooms_.begin())
    return false;
  const auto &[begin, room] = *std::prev(after);
  return begin + granules(room.pages) > id;
}

bool SharedRows::join(uint64_t id, uint64_t from, uint64_t pages) try {
  std::vector<Segment> segments = firstOf(from, pages);
  if (segments.empty() || overlaps(id, granules(pages)))
    return false;
  cut(segments.back().page + segments.back().pages);
  Rooms made;
  made.emplace(id, Room{0, {}});
  if (!takeMappings(segments.size()))
    return false;
  // What is not shown stays as it was.
  size_t shown = show(id, segments);
  giveMappings(segments.size() - shown);
  segments.resize(shown);
  if (segments.empty())
    return false;
  for (const Segment &segment : segments)
    use(segment);
  uint64_t common = segments.back().at + segments.back().pages;
  rows_.giveMemory(granules(common));
  Room &room = rooms_.insert(made.extract(made.begin())).position->second;
  room.pages = common;
  room.segments = std::move(segments);
  return true;
} catch (const std::bad_alloc &) {
  return false;
}

/// How many of them stand where they belong, in a room that begins at `id`.
size_t SharedRows::show(uint64_t id, std::span<const Segment> segments) {
  size_t shown = 0;
  for (const Segment &segment : segments) {
    // Pages that are new are of the last segment, and of this room.
    if (!maps().show(id + granules(segment.at), segment.page, segment.pages,
                     segment.page == nextPage_))
      break;
    ++shown;
  }
  return shown;
}

void SharedRows::clear(uint64_t id, uint64_t pages) {
  maps().hide(id, pages);
  poison(rows_.address(id), granules(pages) * kGranuleBytes);
}

/// Nothing needs what stands in this room: its addresses are free.
void SharedRows::giveUp(Room &room, uint64_t id) {
  clear(id, room.pages);
  for (const Segment &segment : room.segments)
    for (auto run = runs_.find(segment.page);
         run != runs_.end() && run->first < segment.page + segment.pages;) {
      if (--run->second.uses > 0) {
        ++run;
        continue;
      }
      maps().drop(run->first, run->second.pages);
      rows_.giveMemory(granules(run->second.pages));
      run = runs_.erase(run);
    }
  giveMappings(room.segments.size());
  room.segments.clear();
}

void SharedRows::keep(GranuleBits &live) {
  uint64_t first = rows_.first();
  for (auto &[id, room] : rooms_) {
    uint64_t begin = id - first, end = begin + granules(room.pages);
    if (room.isFree())
      continue;
    if (live.any(begin, end))
      live.set(begin, end);
    else
      giveUp(room, id);
  }
  // Free addresses that touch are one.
  for (auto room = rooms_.begin(); room != rooms_.end();) {
    auto next = std::next(room);
    if (next != rooms_.end() && room->second.isFree() && next->second.isFree() &&
        room->first + granules(room->second.pages) == next->first) {
      room->second.pages += next->second.pages;
      rooms_.erase(next);
    } else {
      room = next;
    }
  }
  uint64_t end = live.any(0, live.size()) ? live.last(live.next(0, true), live.size()) + 1 : 0;
  for (auto room = rooms_.end(); room != rooms_.begin();) {
    --room;
    if (!room->second.isFree())
      continue;
    uint64_t begin = room->first - first;
    if (begin >= end && restore(*room))
      room = rooms_.erase(room);
    else
      live.set(begin, begin + granules(room->second.pages));
  }
}

bool SharedRows::restore(const Rooms::value_type &room) {
  if (!maps().restore(room.first, room.second.pages))
    return false;
  rows_.giveBare(granules(room.second.pages));
  return true;
}

void SharedRows::forget() {
  while (!rooms_.empty()) {
    auto room = rooms_.begin();
    if (!room->second.isFree())
      giveUp(room->second, room->first);
    if (!restore(*room))
      throw std::bad_alloc();
    rooms_.erase(room);
  }
}

void SharedRows::addMemory(const RowRange &rows, std::vector<RowRange> &memory) const {
  uint64_t at = rows.begin;
  // Rows of no room, up to granule `end`.
  auto others = [&](uint64_t end) {
    if (end > at)
      memory.push_back({at, end - at});
    at = std::max(at, end);
  };
  auto room = rooms_.upper_bound(at);
  if (room != rooms_.begin())
    --room;
  for (; room != rooms_.end() && room->first < rows.end(); ++room)
    for (const Segment &segment : room->second.segments) {
      uint64_t begin = room->first + granules(segment.at);
      uint64_t end = std::min(begin + granules(segment.pages), rows.end());
      others(std::min(begin, rows.end()));
      if (end > at) {
        memory.push_back(
            {RowSpace::kMaxGranules + granules(segment.page) + (at - begin), end - at});
        at = end;
      }
    }
  others(rows.end());
}

} // namespace sheaf::rt

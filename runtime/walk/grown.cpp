#include "runtime/walk/grown.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace sheaf::rt {

namespace {

/// Bytes of rows that are common, and where memory is short (docs/design/rows-in-common.md).
constexpr uint64_t kLeastShared = uint64_t(512) << 10, kSharedWhenShort = uint64_t(64) << 10;
/// As many take as long to copy, to pages that are new, as to show them at another address.
constexpr uint64_t kMappingBytes = uint64_t(32) << 10;
/// Of its length, a tensor with rows in common has room for this part: to go on elsewhere it copies
/// none of them.
constexpr int64_t kSharedRoom = 16;
/// A branch that has not grown by this part of its length is one of many that come and go, as those
/// of a beam: pages for each step take longer than copies to where earlier ones lay.
constexpr int64_t kBriefly = 8;

} // namespace

void GrownRows::shareWhen(When when) {
  leastShared_ = leastWhenShort_ = INT64_MAX;
  if (when == When::Never || !shared_.isPossible())
    return;
  bool always = when == When::Always || hostile_;
  leastShared_ = static_cast<int64_t>(always ? shared_.page() : kLeastShared / kGranuleBytes);
  leastWhenShort_ = static_cast<int64_t>(kSharedWhenShort / kGranuleBytes);
  sharesBriefly_ = always;
  mappingPages_ = always ? 0 : kMappingBytes / kGranuleBytes / shared_.page();
}

bool GrownRows::isLong(TensorHandle whole, int64_t granules) const {
  if (granules < std::min(leastShared_, leastWhenShort_))
    return false;
  // What is promised may lie anywhere in the end.
  return !rows_.promises() && !PromisedRows::has(whole.id) &&
         (granules >= leastShared_ || isShort());
}

/// Whether a tensor is a branch of late.
bool GrownRows::isBriefly(const Room &room, int64_t granules) const {
  return !sharesBriefly_ && granules - room.branchedAt < room.branchedAt / kBriefly && !isShort();
}

/// Where memory is short nothing is noted: then rows cannot be appended in place.
void GrownRows::note(uint32_t id, const Room &room) {
  if (!meter_.charge(count_, kEntryBytes))
    return;
  // No exception may leave: generated code is on the stack.
  try {
    if (!rooms_.insert_or_assign(id, room).second)
      meter_.uncharge(count_, kEntryBytes);
  } catch (const std::bad_alloc &) {
    meter_.uncharge(count_, kEntryBytes);
  }
}

GrownRows::Place GrownRows::goOn(TensorHandle whole, int64_t granules, int64_t more,
                                 uint32_t depth) {
  bool isLong = this->isLong(whole, granules);
  int64_t used = granules + more, capacity = capacityFor(used, more), branchedAt = 0;
  if (isLong) {
    auto room = rooms_.find(whole.id);
    bool isKnown = room != rooms_.end();
    bool isFirst = !isKnown || (room->second.used == granules && !room->second.wentOn);
    branchedAt = !isFirst ? used : isKnown ? room->second.branchedAt : 0;
    if (isFirst ? shared_.has(whole.id) : !isBriefly(room->second, granules))
      if (Place place = share(whole, granules, more, {depth, branchedAt});
          place.id != RowSpace::kFull)
        return place;
    if (isKnown)
      room->second.wentOn |= isFirst;
    else
      note(whole.id, {.used = granules, .capacity = granules, .common = granules, .wentOn = true});
    if (hostile_)
      capacity += static_cast<int64_t>(shared_.page()) - 1;
  }
  uint64_t id = rows_.allocateNow(capacity);
  if (id == RowSpace::kFull) {
    capacity = used;
    id = rows_.allocateNow(capacity);
  } else if (isLong) {
    // So that it can have pages in common.
    int64_t before = -static_cast<int64_t>(id) & (static_cast<int64_t>(shared_.page()) - 1);
    if (used + before <= capacity) {
      id += static_cast<uint64_t>(before);
      capacity -= before;
    }
  }
  if (id != RowSpace::kFull)
    note(static_cast<uint32_t>(id), {.used = used, .capacity = capacity, .branchedAt = branchedAt});
  return {id};
}

/// The same, in a room of pages, with those in common that are worth it.
GrownRows::Place GrownRows::share(TensorHandle whole, int64_t granules, int64_t more,
                                  const Step &step) {
  auto it = rooms_.find(whole.id);
  std::optional<uint32_t> from = whole.id;
  int64_t most = granules;
  Place place{RowSpace::kFull, 0, whole.depth};
  if (!shared_.has(whole.id)) {
    // A copy that others wait for longer than for the tensor would hold this one up.
    const std::optional<Copy> &copy = it->second.copy;
    from.reset();
    if (copy && copy->depth <= step.depth + 1) {
      from = copy->id;
      most = std::min(granules, copy->granules);
      place.depth = std::max(place.depth, copy->depth);
    }
  }
  int64_t page = static_cast<int64_t>(shared_.page()), used = granules + more;
  uint64_t common =
      from ? shared_.worthSharing(*from, static_cast<uint64_t>(most / page), mappingPages_) : 0;
  if (common == 0)
    place.depth = 0;
  int64_t room = hostile_ ? more : std::max(kEnoughRoom, used / kSharedRoom);
  auto pages = static_cast<uint64_t>((used + room + page - 1) / page);
  place.id = shared_.make(pages, from.value_or(0), common);
  if (place.id == RowSpace::kFull)
    return place;
  place.there = static_cast<int64_t>(common) * page;
  if (common > 0) {
    ++counts.shared;
    counts.bytes += static_cast<uint64_t>(place.there) * kGranuleBytes;
  }
  note(static_cast<uint32_t>(place.id), {.used = used,
                                         .capacity = static_cast<int64_t>(pages) * page,
                                         .common = place.there,
                                         .branchedAt = step.branchedAt});
  if (from)
    if (auto source = rooms_.find(*from); source != rooms_.end())
      source->second.common = std::max(source->second.common, place.there);
  return place;
}

void GrownRows::copied(uint32_t whole, int64_t granules, TensorHandle copy) {
  auto it = rooms_.find(whole);
  if (it == rooms_.end() || shared_.has(whole) || !shared_.has(copy.id))
    return;
  std::optional<Copy> &known = it->second.copy;
  if (!known || known->granules < granules || known->depth > copy.depth)
    known = {copy.id, granules, copy.depth};
}

/// Whether a tensor is a part of one that has room.
bool GrownRows::isInside(uint64_t id) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const auto &entry) {
    return entry.first < id && id < entry.first + static_cast<uint64_t>(entry.second.capacity);
  });
}

/// A tensor that has a copy in pages has these itself from now on, as far as both hold the same.
void GrownRows::makeCommon(uint64_t id, Room &room, const GranuleBits &live) {
  Copy &copy = *room.copy;
  copy.granules = std::min(copy.granules, room.used);
  auto it = rooms_.find(copy.id);
  bool isThere = shared_.has(copy.id) && it != rooms_.end();
  // Of a run that was given up it may never have been made.
  auto bytes = static_cast<size_t>(copy.granules) * kGranuleBytes;
  if (isThere && !copy.isEqual)
    copy.isEqual = memcmp(rows_.address(id), rows_.address(copy.id), bytes) == 0;
  int64_t pages = pagesOf(copy.granules), page = static_cast<int64_t>(shared_.page());
  bool joins = isThere && copy.isEqual && pages > 0 && id % shared_.page() == 0 && !isInside(id) &&
               shared_.join(id, copy.id, static_cast<uint64_t>(pages));
  if (joins) {
    room.common = std::max(room.common, pages * page);
    it->second.common = std::max(it->second.common, pages * page);
    joined_ = true;
  }
  copy.depth = 0;
  uint64_t begin = copy.id - rows_.first();
  if (joins || !isThere || !copy.isEqual || !live.any(begin, begin + 1))
    room.copy.reset();
}

void GrownRows::keep(GranuleBits &live) {
  uint64_t first = rows_.first();
  // Before rooms are forgotten: one that no one needs may have the only pages that can be shown.
  for (auto &[id, room] : rooms_) {
    uint64_t begin = id - first;
    // Every version begins there. A view of its first row may, too.
    if (!live.any(begin, begin + 1))
      continue;
    uint64_t end = live.last(begin, begin + static_cast<uint64_t>(room.used)) + 1;
    room.used = static_cast<int64_t>(end - begin);
    if (room.copy)
      makeCommon(id, room, live);
  }
  std::erase_if(rooms_, [&](const auto &entry) {
    uint64_t begin = entry.first - first;
    if (live.any(begin, begin + 1)) {
      live.set(begin, begin + static_cast<uint64_t>(entry.second.capacity));
      return false;
    }
    meter_.uncharge(count_, kEntryBytes);
    return true;
  });
  shared_.keep(live);
}

void GrownRows::forgetCopies() {
  for (auto &[id, room] : rooms_)
    room.copy.reset();
}

void GrownRows::forgetRooms() {
  meter_.uncharge(count_, rooms_.size() * kEntryBytes);
  rooms_.clear();
}

void GrownRows::forget() {
  forgetRooms();
  shared_.forget();
}

} // namespace sheaf::rt

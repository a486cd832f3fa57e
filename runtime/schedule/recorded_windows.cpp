#include "runtime/schedule/recorded_windows.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace sheaf::rt {

namespace {

/// Numbers by granule, and the greatest of a range of them, by a tree: a tensor that grows is read
/// again and again.
class Greatest {
public:
  static uint64_t bytes(uint64_t size) { return 2 * size * sizeof(uint32_t); }
  explicit Greatest(uint64_t size) : size_(size), nodes_(2 * size) {}

  void raise(uint64_t at, uint32_t to) {
    for (at += size_; at > 0 && nodes_[at] < to; at /= 2)
      nodes_[at] = to;
  }
  uint32_t of(uint64_t begin, uint64_t end) const {
    uint32_t greatest = 0;
    begin += size_;
    for (end = std::min(end, size_) + size_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2)
        greatest = std::max(greatest, nodes_[begin++]);
      if (end % 2)
        greatest = std::max(greatest, nodes_[--end]);
    }
    return greatest;
  }

private:
  uint64_t size_;
  std::vector<uint32_t> nodes_; ///< leaves from size_ on; node i is over 2 i and 2 i + 1
};

} // namespace

RecordedWindows::RecordedWindows(const Model &model, const RowWords &words, MemoryMeter &meter,
                                 MemoryKind &count)
    : model_(model), words_(words), meter_(meter), count_(count),
      moved_(meter, count, alignof(int32_t), size_t(64) << 10, /*redzones=*/false) {}

void RecordedWindows::release() {
  std::exchange(launches_, {}); // an assignment of {} would keep the memory
  std::exchange(recorded_, {});
  std::exchange(parts_, {});
  meter_.uncharge(count_, std::exchange(charged_, 0));
}

bool RecordedWindows::charge(uint64_t bytes) {
  if (!meter_.charge(count_, bytes))
    return false;
  charged_ += bytes;
  return true;
}

bool RecordedWindows::find(std::span<const ScheduledBucket> launches, PromisedRows &promised,
                           const RowSpace &space) {
  release();
  uint64_t records = 0;
  bool anyHere = false; // whether records write into rows that have memory
  auto isHere = [&](uint32_t id) {
    // (Those that are kept for others wait for none that is not.)
    return !PromisedRows::has(id) && id >= space.first() && id < space.next();
  };
  for (const ScheduledBucket &launch : launches) {
    records += static_cast<uint64_t>(launch.count);
    uint32_t words = model_.kernels[launch.kernel].words;
    for (int64_t r = 0; r < launch.count; ++r)
      anyHere |= isHere(static_cast<uint32_t>(launch.records[(r + 1) * words - 1]));
  }
  uint64_t allocations = promised.number(), here = anyHere ? space.next() - space.first() : 0;
  // By allocation, and by granule of those that have memory: the latest of all who wrote into it.
  std::vector<uint32_t> written;
  std::optional<Greatest> writtenHere;
  uint64_t passing = allocations * sizeof(uint32_t) + Greatest::bytes(here);
  if (!charge(records * sizeof(uint32_t) + launches.size_bytes() + passing))
    return false;
  try {
    launches_.assign(launches.begin(), launches.end());
    recorded_.reserve(records);
    written.assign(allocations, 0);
    writtenHere.emplace(here);
  } catch (const std::bad_alloc &) {
    release();
    return false;
  }
  // Whoever a record waits for stands at a lower depth, so it has been seen.
  for (const ScheduledBucket &launch : launches_) {
    const KernelDesc &kernel = model_.kernels[launch.kernel];
    for (int64_t r = 0; r < launch.count; ++r) {
      const int32_t *record = launch.records + r * kernel.words;
      auto out = static_cast<uint32_t>(record[kernel.words - 1]);
      uint32_t latest = 0;
      words_.forEach(launch.kernel, record, space, [&](uint32_t, uint32_t id, uint64_t granules) {
        if (PromisedRows::has(id))
          latest = std::max(latest, written[promised.numberOf(id)]);
        else if (here && isHere(id))
          latest =
              std::max(latest, writtenHere->of(id - space.first(), id - space.first() + granules));
      });
      if (PromisedRows::has(out)) {
        latest = std::max(latest, static_cast<uint32_t>(out - PromisedRows::kFirst));
        uint32_t &of = written[promised.numberOf(out)];
        of = std::max(of, latest);
      } else if (isHere(out)) {
        uint64_t at = out - space.first();
        for (const RecordTensor &result : kernel.results)
          for (uint64_t end = std::min(at + granulesOf(result, record), here); at < end; ++at)
            writtenHere->raise(at, latest);
      }
      recorded_.push_back(latest);
    }
  }
  meter_.uncharge(count_, passing);
  charged_ -= passing;
  return true;
}

uint64_t RecordedWindows::cut(uint64_t granules, Schedule &schedule, size_t begin) {
  parts_.clear();
  schedule.resize(begin);
  if (begin == 0) // no schedule shows what was cut before
    moved_.reset();
  auto putBack = [&] {
    schedule.resize(begin);
    schedule.insert(schedule.end(), launches_.begin(), launches_.end());
    return uint64_t(0);
  };
  try {
    const uint32_t *recorded = recorded_.data();
    for (const ScheduledBucket &launch : launches_) {
      if (!addParts(launch, recorded, granules))
        return putBack();
      recorded += launch.count;
    }
    // Within a window in order of depth, as they came.
    std::sort(parts_.begin(), parts_.end(), [](const Part &a, const Part &b) {
      return std::pair(a.window, a.number) < std::pair(b.window, b.number);
    });
    uint64_t windows = 0;
    uint32_t depth = begin > 0 ? schedule[begin - 1].depth + 1 : 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part &part = parts_[i];
      bool opens = i == 0 || parts_[i - 1].window != part.window;
      if (i > 0 && (opens || parts_[i - 1].launch.depth != part.launch.depth))
        ++depth;
      windows += opens;
      schedule.push_back(part.launch);
      schedule.back().depth = depth;
    }
    return windows;
  } catch (const std::bad_alloc &) {
    return putBack();
  }
}

/// Divides a launch by the windows of its records, which keep their order. False when there is no
/// memory to.
bool RecordedWindows::addParts(const ScheduledBucket &launch, const uint32_t *recorded,
                               uint64_t granules) {
  auto windowOf = [&](int64_t r) { return static_cast<uint32_t>(recorded[r] / granules); };
  const int32_t *records = launch.records;
  uint32_t words = model_.kernels[launch.kernel].words;
  std::vector<std::pair<uint32_t, int64_t>> order;
  if (!std::is_sorted(recorded, recorded + launch.count,
                      [&](uint32_t a, uint32_t b) { return a / granules < b / granules; })) {
    auto bytes = static_cast<size_t>(launch.count) * words * sizeof(int32_t);
    auto *moved = static_cast<int32_t *>(moved_.allocate(bytes));
    if (!moved)
      return false;
    for (int64_t r = 0; r < launch.count; ++r)
      order.push_back({windowOf(r), r});
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i)
      memcpy(moved + i * words, records + order[i].second * words, words * sizeof(int32_t));
    records = moved;
  }
  auto number = static_cast<uint32_t>(parts_.size());
  auto windowAt = [&](int64_t i) {
    return order.empty() ? windowOf(i) : order[static_cast<size_t>(i)].first;
  };
  for (int64_t end, i = 0; i < launch.count; i = end) {
    for (end = i + 1; end < launch.count && windowAt(end) == windowAt(i);)
      ++end;
    parts_.push_back(
        {windowAt(i), number, {launch.depth, launch.kernel, records + i * words, end - i}});
  }
  return true;
}

} // namespace sheaf::rt

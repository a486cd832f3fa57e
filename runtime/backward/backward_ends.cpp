//===- backward_ends.cpp - Records that go back before their turn ---------===//
#include "runtime/backward/backward.h"

namespace sheaf::rt {

/// Whether no record waits for what this one gives.
bool Backward::isEnd(const Kernel &kernel, const int32_t *record) const {
  const auto &arguments = kernel.gradient->arguments;
  return std::all_of(arguments.begin(), arguments.end(), [&](const ArgumentGradient &argument) {
    return static_cast<uint32_t>(record[argument.word]) < model_.paramGranules;
  });
}

/// Finds the ends after this bucket in the order of the walk, and by when all users of each have
/// gone back.
void Backward::findEnds(std::span<const ScheduledBucket> forward, size_t last) {
  endsFound_ = true;
  ends_.clear();
  placeOf_.assign(last + 1, 0);
  uint32_t place = 0;
  // By granule. Users go back before what they use, so the last user of rows is the last that is
  // met.
  uint64_t bytes = sources_.size() * sizeof(uint32_t);
  if (!meter_.charge(records_, bytes))
    outOfMemory();
  charged_ += bytes; // until account() looks
  std::vector<uint32_t> users(sources_.size(), 0);
  for (size_t i = last + 1; i-- > 0;) {
    const ScheduledBucket &bucket = forward[i];
    const Kernel &kernel = kernels_[bucket.kernel];
    placeOf_[i] = place;
    place += static_cast<uint32_t>(bucket.count);
    if (kernel.gradient->kernel < 0)
      continue;
    uint32_t words = model_.kernels[bucket.kernel].words;
    for (int64_t r = 0; r < bucket.count; ++r) {
      const int32_t *record = bucket.records + r * words;
      uint32_t behind = placeOf_[i] + static_cast<uint32_t>(r) + 1;
      for (size_t a = 0; a < kernel.arguments.size(); ++a) {
        auto row = static_cast<uint32_t>(record[kernel.gradient->arguments[a].word]);
        if (row >= model_.paramGranules)
          std::fill_n(users.begin() + at(row), granulesOf(kernel.arguments[a], record), behind);
      }
      if (i == last || !isEnd(kernel, record))
        continue;
      End end{static_cast<uint32_t>(i), static_cast<uint32_t>(r), 0};
      const uint32_t *made = users.data() + at(static_cast<uint32_t>(record[words - 1]));
      for (int64_t g = 0, granules = granulesMade(kernel, record); g < granules; ++g)
        end.usersEnd = std::max(end.usersEnd, made[g]);
      ends_.push_back(end);
    }
  }
  gone_.assign(place, false);
}

/// The ends whose users have all gone back, when the walk has come to this record of this bucket,
/// as far as the segment has room; others wait for the next one.
void Backward::goBackEnds(std::span<const ScheduledBucket> forward, size_t bucket, int64_t record,
                          const Runner &run) {
  if (!endsFound_)
    findEnds(forward, bucket);
  uint64_t room = segment_ + segment_ / 4;
  uint32_t place = placeOf_[bucket] + static_cast<uint32_t>(record);
  size_t first = schedule_.size(), kept = 0;
  for (size_t i = 0; i < ends_.size();) {
    uint32_t which = ends_[i].bucket;
    size_t behind = i;
    int64_t left = 0;
    for (; behind < ends_.size() && ends_[behind].bucket == which; ++behind)
      left += ends_[behind].usersEnd <= place;
    if (which >= bucket) { // its turn has come
      i = behind;
      continue;
    }
    const ScheduledBucket &from = forward[which];
    uint32_t words = model_.kernels[from.kernel].words;
    Launch launch{kernels_[from.kernel], depth_ + 1};
    for (; i < behind; ++i) {
      End end = ends_[i];
      if (end.usersEnd > place || made_ >= room) {
        ends_[kept++] = end;
        continue;
      }
      gone_[placeOf_[which] + end.record] = true;
      goBack(launch, from.records + int64_t(end.record) * words, --left);
      if (isPiece()) {
        close(launch);
        sumFirst(first);
        runPiece(run, /*endsSegment=*/false);
        first = schedule_.size();
        launch.depth = depth_ + 1;
        launch.count = launch.room = 0;
      }
    }
    close(launch);
  }
  ends_.resize(kept);
  sumFirst(first);
}

} // namespace sheaf::rt

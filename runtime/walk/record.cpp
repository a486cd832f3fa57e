#include "runtime/walk/record.h"

#include <cstring>
#include <new>
#include <numeric>

namespace sheaf::rt {

namespace {
/// Buckets deep down are those of chains, with a record or two each.
constexpr uint32_t kWideDepths = 256;
constexpr uint32_t kFirstRecords = 8;
/// Pages kept without a reason.
constexpr uint64_t kSparePages = 1024;
} // namespace

BucketTable::BucketTable(const Model &model, MemoryMeter &meter, MemoryKind &count, bool hostile)
    : kernels_(model.kernels.size()), meter_(meter), count_(count),
      arena_(meter, count, alignof(int32_t), size_t(64) << 10, hostile), hostile_(hostile),
      depthLimit_(uint32_t(1) << model.depthBits), empty_(std::make_unique<Page>()) {
  uint32_t phases = 1;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    kernels_[i].words = model.kernels[i].words;
    kernels_[i].base = model.kernels[i].phase << model.depthBits;
    kernels_[i].deferred = model.kernels[i].deferred;
    phases = std::max(phases, model.kernels[i].phase + 1);
  }
  phaseBegins_.resize(phases + 1);
}

BucketTable::~BucketTable() {
  freePages(/*all=*/true);
  meter_.uncharge(count_, tableBytes_);
  for (Kernel &kernel : kernels_)
    ::operator delete(kernel.directory);
}

bool BucketTable::growDirectory(Kernel &kernel, uint32_t pages) {
  pages = std::max({pages, kernel.pageCount * 2, 4u});
  uint64_t bytes = uint64_t(pages) * sizeof(Page *);
  if (!meter_.charge(count_, bytes))
    return false;
  auto **fresh = static_cast<Page **>(::operator new(bytes, std::nothrow));
  if (!fresh) {
    meter_.uncharge(count_, bytes);
    return false;
  }
  std::copy_n(kernel.directory, kernel.pageCount, fresh);
  std::fill(fresh + kernel.pageCount, fresh + pages, empty_.get());
  ::operator delete(kernel.directory);
  meter_.uncharge(count_, uint64_t(kernel.pageCount) * sizeof(Page *));
  kernel.directory = fresh;
  kernel.pageCount = pages;
  kernel.pages = fresh - (kernel.base >> kPageBits);
  kernel.pageEnd = (kernel.base >> kPageBits) + pages;
  return true;
}

bool BucketTable::noteTouched(const Touched &touched) {
  if (touched_.size() == touched_.capacity()) {
    // What is charged covers the other vectors with an element a bucket, here and in the schedule.
    constexpr uint64_t kBytes = 2 * sizeof(Touched) + sizeof(ScheduledBucket) + sizeof(uint64_t);
    size_t capacity = std::max<size_t>(64, 2 * touched_.capacity());
    uint64_t more = capacity * kBytes - tableBytes_;
    if (!meter_.charge(count_, more))
      return false;
    // No exception may leave: generated code is on the stack.
    try {
      touched_.reserve(capacity);
    } catch (const std::bad_alloc &) {
      meter_.uncharge(count_, more);
      return false;
    }
    tableBytes_ += more;
  }
  touched_.push_back(touched);
  return true;
}

bool BucketTable::grow(uint32_t kernelIndex, uint32_t depth) {
  Kernel &kernel = kernels_[kernelIndex];
  uint32_t ownDepth = depth - kernel.base;
  uint32_t pageIndex = ownDepth >> kPageBits;
  if (pageIndex >= kernel.pageCount && !growDirectory(kernel, pageIndex + 1))
    return false;
  Page *&page = kernel.directory[pageIndex];
  if (page == empty_.get()) {
    if (!meter_.charge(count_, sizeof(Page)))
      return false;
    Page *fresh = new (std::nothrow) Page;
    if (!fresh) {
      meter_.uncharge(count_, sizeof(Page));
      return false;
    }
    page = fresh;
    ++pages_;
    ++kernel.ownPages;
  }
  Bucket &bucket = page->buckets[ownDepth & kPageMask];
  uint64_t recordBytes = uint64_t(kernel.words) * sizeof(int32_t);
  uint64_t have = static_cast<uint64_t>(bucket.end - bucket.begin) * sizeof(int32_t);
  if (have == 0) {
    uint32_t room = hostile_                 ? 1
                    : bucket.expected        ? bucket.expected
                    : ownDepth < kWideDepths ? kFirstRecords
                                             : 1;
    auto *memory = static_cast<int32_t *>(arena_.allocate(room * recordBytes));
    // A past mini-batch's need is no reason to fail this one.
    for (; !memory && room > 1;
         memory = static_cast<int32_t *>(arena_.allocate(room * recordBytes)))
      room /= 2;
    if (!memory)
      return false;
    if (!noteTouched({depth, kernelIndex, &bucket}))
      return false;
    if (page->touched != generation_) {
      page->touched = generation_;
      ++pagesTouched_;
    }
    bucket.begin = bucket.cursor = memory;
    bucket.end = memory + room * kernel.words;
    return true;
  }
  if (!hostile_ && arena_.extend(bucket.end, have)) {
    bucket.end += have / sizeof(int32_t);
    return true;
  }
  auto *memory = static_cast<int32_t *>(arena_.allocate(2 * have));
  if (!memory)
    return false;
  memcpy(memory, bucket.begin, have);
  bucket.begin = memory;
  bucket.cursor = memory + have / sizeof(int32_t);
  bucket.end = bucket.cursor + have / sizeof(int32_t);
  return true;
}

/// Those from `begin` on, in order of depth and kernel.
std::span<BucketTable::Touched> BucketTable::sortTouched(size_t begin) {
  std::span<Touched> some = std::span(touched_).subspan(begin);
  auto before = [](const Touched &a, const Touched &b) {
    return a.depth != b.depth ? a.depth < b.depth : a.kernel < b.kernel;
  };
  if (std::is_sorted(some.begin(), some.end(), before))
    return some;
  // Phases one after the other, each as deep as its deepest bucket.
  auto phaseOf = [this](const Touched &t) { return t.depth / depthLimit_; };
  std::fill(phaseBegins_.begin(), phaseBegins_.end(), 0);
  for (const Touched &t : some) {
    uint64_t &end = phaseBegins_[phaseOf(t) + 1];
    end = std::max<uint64_t>(end, t.depth % depthLimit_ + 1);
  }
  std::partial_sum(phaseBegins_.begin(), phaseBegins_.end(), phaseBegins_.begin());
  if (some.size() < 256 || phaseBegins_.back() / 4 > some.size()) {
    std::sort(some.begin(), some.end(), before);
    return some;
  }
  // Two stable counting sorts: a million depths in no order must not cost n log n.
  auto pass = [&](uint64_t range, auto key) {
    histogram_.assign(size_t(range) + 1, 0);
    for (const Touched &t : some)
      ++histogram_[key(t) + 1];
    for (size_t i = 1; i < histogram_.size(); ++i)
      histogram_[i] += histogram_[i - 1];
    sorted_.resize(some.size());
    for (const Touched &t : some)
      sorted_[histogram_[key(t)]++] = t;
    std::copy(sorted_.begin(), sorted_.end(), some.begin());
  };
  pass(kernels_.size(), [](const Touched &t) { return t.kernel; });
  pass(phaseBegins_.back(),
       [&](const Touched &t) { return phaseBegins_[phaseOf(t)] + t.depth % depthLimit_; });
  return some;
}

ScheduledBucket BucketTable::launchOf(const Touched &touched) const {
  const Bucket &bucket = *touched.bucket;
  return {touched.depth, touched.kernel, bucket.begin,
          (bucket.cursor - bucket.begin) / kernels_[touched.kernel].words};
}

void BucketTable::empty(const Touched &touched) {
  Bucket &bucket = *touched.bucket;
  bucket.expected = static_cast<uint32_t>(std::min<int64_t>(launchOf(touched).count, UINT32_MAX));
  bucket.begin = bucket.cursor = bucket.end = nullptr;
}

uint32_t BucketTable::drain(Schedule &schedule, What what, const Part &part) {
  // Instances may wait very often: what a read does not need is not looked at each time.
  size_t kept = what == What::Demanded ? deferred_ : 0;
  std::span<Touched> rest = sortTouched(kept);
  for (; !rest.empty() && rest.front().depth < part.end; rest = rest.subspan(1)) {
    const Touched &t = rest.front();
    if (what == What::Demanded && kernels_[t.kernel].deferred) {
      touched_[kept++] = t;
      continue;
    }
    ScheduledBucket launch = launchOf(t);
    int64_t count = launch.count;
    if (part.take && count > 0)
      launch.count = part.take(launch);
    if (launch.count > 0)
      schedule.push_back(launch);
    if (launch.count < count) {
      t.bucket->begin += launch.count * kernels_[t.kernel].words;
      break;
    }
    empty(t);
  }
  // What was not looked at any more stands after, but for what is deferred: that comes first.
  sorted_.clear();
  for (const Touched &t : rest) {
    if (what == What::Demanded && kernels_[t.kernel].deferred)
      touched_[kept++] = t;
    else
      sorted_.push_back(t);
  }
  deferred_ = what == What::Demanded ? kept : 0;
  touched_.resize(kept);
  touched_.insert(touched_.end(), sorted_.begin(), sorted_.end());
  return sorted_.empty() ? kNone : sorted_.front().depth;
}

void BucketTable::drainLater(Schedule &schedule) {
  std::span<Touched> some = sortTouched(0);
  auto later = std::find_if(some.begin(), some.end(),
                            [&](const Touched &t) { return t.depth >= depthLimit_; });
  for (const Touched &t : some.subspan(static_cast<size_t>(later - some.begin()))) {
    if (ScheduledBucket launch = launchOf(t); launch.count > 0)
      schedule.push_back(launch);
    empty(t);
  }
  touched_.resize(static_cast<size_t>(later - some.begin()));
  deferred_ = 0;
}

void BucketTable::discard() {
  for (const Touched &t : touched_)
    t.bucket->begin = t.bucket->cursor = t.bucket->end = nullptr;
  touched_.clear();
  deferred_ = 0;
}

void BucketTable::freePages(bool all) {
  for (Kernel &kernel : kernels_) {
    if (kernel.ownPages == 0)
      continue;
    for (uint32_t i = 0; i < kernel.pageCount; ++i) {
      Page *&page = kernel.directory[i];
      if (page == empty_.get() || (!all && page->touched == generation_))
        continue;
      delete page;
      page = empty_.get();
      --kernel.ownPages;
      --pages_;
      meter_.uncharge(count_, sizeof(Page));
    }
  }
}

bool BucketTable::giveBack() {
  uint64_t before = count_.now;
  freePages(/*all=*/false);
  arena_.giveBack();
  return count_.now < before;
}

void BucketTable::giveBackAll(Schedule &schedule) {
  freePages(/*all=*/true);
  giveBackTables(schedule);
  arena_.giveBack();
}

void BucketTable::giveBackTables(Schedule &schedule) {
  std::vector<Touched>().swap(touched_);
  std::vector<Touched>().swap(sorted_);
  std::vector<uint32_t>().swap(histogram_);
  Schedule().swap(schedule);
  meter_.uncharge(count_, tableBytes_);
  tableBytes_ = 0;
}

void BucketTable::reset(Schedule &schedule, bool goesOn) {
  discard();
  schedule.clear();
  arena_.reset();
  if (pages_ > kSparePages + (goesOn ? 0 : 4 * pagesTouched_)) {
    freePages(/*all=*/goesOn);
    giveBackTables(schedule);
  }
  ++generation_;
  pagesTouched_ = 0;
}

} // namespace sheaf::rt

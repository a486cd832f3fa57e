//===- record.h - Recording blocks into buckets -----------------*- C++ -*-===//
//
// A bucket holds the records of one kernel at one depth, one after the other. It is found through a
// two-level directory: kernel -> page of 64 depths -> bucket; pages exist where there are buckets,
// so a chain of a million depths costs memory in proportion to its records. The directory of a
// kernel begins at the first depth of its phase.
//
// Records live in an arena until the next mini-batch. A bucket starts with room for as many records
// as it had the last time (so a repeated shape never grows one) and doubles from there.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_RECORD_H
#define SHEAF_RUNTIME_WALK_RECORD_H

#include "runtime/memory/rows.h"
#include "runtime/model/model.h"
#include "runtime/schedule/schedule.h"

#include <functional>
#include <memory>
#include <string>

namespace sheaf::rt {

class BucketTable {
public:
  BucketTable(const Model &model, MemoryMeter &meter, MemoryKind &count, bool hostile);
  ~BucketTable();
  BucketTable(const BucketTable &) = delete;
  BucketTable &operator=(const BucketTable &) = delete;

  struct Bucket {
    int32_t *cursor = nullptr; ///< where the next record goes
    int32_t *end = nullptr;
    int32_t *begin = nullptr;
    uint32_t expected = 0; ///< records it held when it was last drained
  };

  /// The bucket if it has room for one more record, else null: call grow() and ask again. The
  /// caller takes a record by moving the cursor on by words().
  Bucket *find(uint32_t kernel, uint32_t depth) const {
    const Kernel &k = kernels_[kernel];
    uint32_t page = depth >> kPageBits;
    if (page >= k.pageEnd) [[unlikely]]
      return nullptr;
    Bucket &bucket = k.pages[page]->buckets[depth & kPageMask];
    return bucket.cursor != bucket.end ? &bucket : nullptr;
  }
  uint32_t words(uint32_t kernel) const { return kernels_[kernel].words; }
  /// Depths of a phase, each of which takes at least a row, are limited.
  uint32_t depthLimit() const { return depthLimit_; }
  uint32_t depthInPhase(uint32_t kernel, uint32_t depth) const {
    return depth - kernels_[kernel].base;
  }

  /// Makes room for one more record; false when the budget or the machine does not allow it.
  bool grow(uint32_t kernel, uint32_t depth);

  /// Appends what is pending to `schedule` in order, and forgets it here; all of it, or only what
  /// a read may depend on. Costs O(buckets).
  enum class What : uint8_t { All, Demanded };
  void drain(Schedule &schedule, What what = What::All) { drain(schedule, what, {}); }
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    uint32_t end = kNone; ///< nothing that stands at this depth or deeper
    /// Of each launch so many records, until it takes fewer than there are; null: all.
    std::function<int64_t(const ScheduledBucket &)> take = nullptr;
  };
  /// The same of a part. Returns the depth of the first that is left of what was asked for, or
  /// kNone.
  uint32_t drain(Schedule &schedule, What what, const Part &part);
  /// Appends what is pending of later phases, and forgets it here.
  void drainLater(Schedule &schedule);
  bool isEmpty() const { return touched_.empty(); }

  /// Takes the memory of all records back, those that `schedule` shows and those still pending.
  /// When the mini-batch `goesOn`, the depths to come are others.
  void reset(Schedule &schedule, bool goesOn = false);
  /// Gives back what this mini-batch has not touched; whether there was any.
  bool giveBack();
  /// Gives back all that is there for records. After reset().
  void giveBackAll(Schedule &schedule);
  /// Memory of records, without any.
  std::unique_ptr<BumpArena> noRecords() const { return arena_.emptyLike(); }
  /// Gives the memory of all records that were drained to `other`, which has none: they stay while
  /// it does. Before reset().
  void swapRecords(BumpArena &other) noexcept { arena_.swap(other); }

private:
  static constexpr uint32_t kPageBits = 6;
  static constexpr uint32_t kPageMask = (1u << kPageBits) - 1;

  struct Page {
    Bucket buckets[1u << kPageBits];
    uint32_t touched = 0; ///< the generation in which a bucket of it was last used
  };
  struct Kernel {
    /// The page of depths d << kPageBits ... is pages[d]. It counts from depth 0, where a later
    /// phase has no pages: before `directory`.
    Page **pages = nullptr;
    uint32_t pageEnd = 0; ///< pages[i] exist up to here
    uint32_t words = 1;
    uint32_t base = 0;          ///< the first depth of its phase
    Page **directory = nullptr; ///< never null inside: kernels share one empty page
    uint32_t pageCount = 0;
    uint32_t ownPages = 0;
    bool deferred = false;
  };
  struct Touched {
    uint32_t depth;
    uint32_t kernel;
    Bucket *bucket;
  };

  ScheduledBucket launchOf(const Touched &touched) const;
  void empty(const Touched &touched);
  bool growDirectory(Kernel &kernel, uint32_t pages);
  bool noteTouched(const Touched &touched);
  void discard();
  void giveBackTables(Schedule &schedule);
  void freePages(bool all);
  std::span<Touched> sortTouched(size_t begin);

  std::vector<Kernel> kernels_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  BumpArena arena_;
  bool hostile_;
  uint32_t depthLimit_;
  std::unique_ptr<Page> empty_;
  std::vector<Touched> touched_, sorted_;
  size_t deferred_ = 0; ///< of touched_, the first: a read has been seen not to need them
  std::vector<uint32_t> histogram_;
  std::vector<uint64_t> phaseBegins_; ///< when sorted: what stands before each phase
  uint32_t generation_ = 1;
  uint64_t pages_ = 0, pagesTouched_ = 0;
  uint64_t tableBytes_ = 0; ///< of the vectors, the schedule's included
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_RECORD_H

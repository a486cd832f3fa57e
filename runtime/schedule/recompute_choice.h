//===- recompute_choice.h - What the backward pass makes again --*- C++ -*-===//
//
// In training every row of the forward pass is needed once more. Where memory does not hold them
// all, some are dropped, and made again by the segment of the backward pass that needs them, from
// what stayed. Which ones is decided when all launches of the forward pass are there, and none has
// run.
//
// There are two ways. Records are dropped as a whole where what they read stays: of a recurrence
// every other step. That computes least again. Or, of each record only that part stays that others
// read, what the program computes; the rest is kept for the gradient of the record itself. So none
// is made again for others, which takes least room in the backward pass. Where one way is not
// enough it is followed by the other, and at last by records that follow from dropped ones, in
// short chains. So what is made again follows from what stayed within a few records, whatever the
// length of the sequence.
//
// What costs least a byte goes first: kernels are taken by what their records compute for a
// granule. Of the last kernels that are needed for it only a part is dropped, launches evenly
// spread over the schedule.
//
// The same rows come back with the same bits, since no kernel's results depend on who else is in a
// launch. Checkmate and dynamic tensor rematerialisation (DTR) choose so for static graphs and for
// eager programs.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_RECOMPUTE_CHOICE_H
#define SHEAF_RUNTIME_SCHEDULE_RECOMPUTE_CHOICE_H

#include "runtime/memory/promised_rows.h"
#include "runtime/schedule/row_words.h"
#include "runtime/schedule/schedule.h"

#include <span>
#include <vector>

namespace sheaf::rt {

/// Where an allocation is made: all of it by one record.
struct MadeBy {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t launch = kNone, record = 0;
  uint32_t begin = 0; ///< its first granule, counted from PromisedRows::kFirst
};

class RecomputeChoice {
public:
  /// Its memory is charged to `count` while there is a choice.
  RecomputeChoice(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count)
      : model_(model), words_(words), meter_(meter), count_(count) {}
  ~RecomputeChoice() { meter_.uncharge(count_, charged_); }
  RecomputeChoice(const RecomputeChoice &) = delete;

  /// Chooses of what was `promised` to the records of these launches so that at most `most`
  /// granules stay, or as few as may. `compact`: so that the backward pass takes less room rather
  /// than less time. What stays in any case: what `results` name, what stands in tables, and
  /// tensors that several records write parts of. False when there is no memory to.
  bool make(std::span<const ScheduledBucket> launches, PromisedRows &promised,
            std::span<Slot *const> results, const RowSpace &space, uint64_t most, bool compact);

  /// By allocation, as PromisedRows::number() counts: how many of its granules stay, the first
  /// ones.
  std::span<const uint32_t> staying() const { return staying_; }
  /// Likewise; of what is not dropped, too. After the last one stands where all end.
  std::span<const MadeBy> made() const { return made_; }
  uint64_t droppedGranules() const { return droppedGranules_; }
  /// Whether no more stays than was asked for.
  bool isEnough() const { return isEnough_; }

private:
  /// What may be dropped of what a kernel's records make.
  struct Part {
    uint64_t granules = 0;
    int expense = 0;  ///< of making a granule again: a power of two
    double share = 0; ///< of the granules that is dropped
    double due = 0;   ///< granules, by now
  };
  struct Kernel {
    double work = 0;
    Part whole; ///< all of it
    Part own;   ///< what no other record reads
    /// Granules of results up to each, if they are always the same.
    std::vector<uint32_t> ends;
  };

  void findMakers(std::span<Slot *const> results);
  void findShared();
  uint32_t endOfResult(const ScheduledBucket &launch, const int32_t *record, uint32_t granules);
  void findWork();
  bool drop(uint64_t wanted, bool compact);
  template <typename Size> void share(Part Kernel::*which, uint64_t wanted, Size size);
  void keepAll();
  void dropWhole(uint64_t wanted);
  void dropWhole(const ScheduledBucket &launch, const uint32_t *made);
  void dropOwn(uint64_t wanted);
  template <typename Size, typename Drop>
  void dropSome(Part &part, const ScheduledBucket &launch, Size size, Drop drop);
  template <typename Visit> void forEachLaunch(Visit visit);
  uint32_t wholeOf(uint32_t allocation) const {
    return mayDrop(allocation) ? staying_[allocation] : 0;
  }
  uint32_t ownOf(uint32_t allocation) const {
    return mayDrop(allocation) && staying_[allocation] == granulesOf(allocation)
               ? granulesOf(allocation) - shared_[allocation]
               : 0;
  }
  uint32_t granulesOf(uint32_t allocation) const {
    return made_[allocation + 1].begin - made_[allocation].begin;
  }
  bool mayDrop(uint32_t allocation) const {
    return allocation != MadeBy::kNone && !stays_[allocation];
  }

  const Model &model_;
  const RowWords &words_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;

  std::span<const ScheduledBucket> launches_;
  const PromisedRows *promised_ = nullptr;
  const RowSpace *space_ = nullptr;
  std::vector<Kernel> kernels_;
  std::vector<uint32_t> byRecord_; ///< in the order of the launches: the allocation, or kNone
  // By allocation.
  std::vector<MadeBy> made_;
  std::vector<bool> stays_;       ///< all of it, in any case
  std::vector<uint32_t> shared_;  ///< granules up to the last that another record reads
  std::vector<uint32_t> staying_; ///< granules
  std::vector<uint8_t> chain_;    ///< of dropped ones: records in a row until something stayed
  uint32_t longest_ = 0;          ///< that chains may be
  uint64_t droppedGranules_ = 0;
  bool isEnough_ = true;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_RECOMPUTE_CHOICE_H

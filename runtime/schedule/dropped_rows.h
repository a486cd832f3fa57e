//===- dropped_rows.h - Rows that are made again ----------------*- C++ -*-===//
//
// What the forward pass of a training did not keep (recompute_choice.h), by name: the ids that were
// promised, which stay in the records. A piece of the backward pass says which of them it needs;
// the launches that make these, and what these follow from, are put together of the records that
// made them before.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_DROPPED_ROWS_H
#define SHEAF_RUNTIME_SCHEDULE_DROPPED_ROWS_H

#include "runtime/memory/memory.h"
#include "runtime/schedule/recompute_choice.h"

#include <functional>

namespace sheaf::rt {

class DroppedRows {
public:
  /// Its memory is charged to `count`.
  DroppedRows(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count);
  ~DroppedRows() { forget(); }
  DroppedRows(const DroppedRows &) = delete;

  /// `places`: by allocation, of what stays of it (RowPlan). `origins`: of the launches that were
  /// chosen from, where each begins in the schedule from number `first` on. False when there is no
  /// memory for that. Names are taken when all has run.
  bool begin(const RecomputeChoice &choice, std::span<const uint32_t> places,
             std::span<const MadeBy> origins, size_t first);
  void takeNames(PromisedRows &promised) noexcept { names_.swap(promised); }
  void forget();
  /// Each has what the other had. Of one session.
  void swap(DroppedRows &other) noexcept;

  bool isEmpty() const { return made_.empty(); }
  /// All that was promised, dropped or not: ids are below PromisedRows::kFirst + this.
  uint64_t granules() const { return names_.granules(); }

  //===--- A piece of the backward pass ------------------------------------===//

  /// Until the record that made it has gone back.
  void need(uint32_t id) {
    if (PromisedRows::has(id))
      needPromised(id);
  }
  /// What the records of these launches read.
  void need(std::span<const ScheduledBucket> launches, const RowSpace &space);
  /// The launches that make all that is needed and not there, in an order in which they may run;
  /// each allocation in a place that `allocate(granules)` gives. They are there until the piece
  /// ends. Throws std::bad_alloc.
  using Allocate = std::function<uint32_t(uint32_t granules)>;
  std::span<const ScheduledBucket> makeAgain(std::span<const ScheduledBucket> forward,
                                             const RowSpace &space, const Allocate &allocate);
  /// Writes places for ids that were needed, or stayed.
  void place(uint32_t &id) const {
    if (PromisedRows::has(id))
      id = placeOf(id);
  }
  void place(std::span<const ScheduledBucket> launches, const RowSpace &space) const;
  /// A record goes back whose results begin here. Gives how many granules must be made again for
  /// it, if they are not there.
  uint32_t goBack(uint32_t id);
  /// Whether a promised row is there until the mini-batch is forgotten.
  bool stays(uint32_t id) const { return offsetOf(id) < rowOf(id).staying; }
  /// Whether what made one made the other.
  bool isOneAllocation(uint32_t a, uint32_t b) const { return &rowOf(a) == &rowOf(b); }
  /// What is needed no more is given back by `giveBack(place, granules)`: what made it has gone
  /// back, or the segment ends.
  using GiveBack = std::function<void(uint32_t place, uint32_t granules)>;
  void endPiece(bool endsSegment, const GiveBack &giveBack);
  /// Nothing is needed or made again.
  void begin();

private:
  struct Row {
    MadeBy made;
    uint32_t staying = 0; ///< granules, the first ones
    uint32_t stays = 0;   ///< where these are
    uint32_t place = 0;   ///< of all of it; 0: not needed
    bool isGone = false;  ///< its maker has gone back
  };
  static constexpr uint32_t kNeeded = UINT32_MAX; ///< a place

  const Row &rowOf(uint32_t id) const { return made_[names_.numberOf(id)]; }
  uint32_t offsetOf(uint32_t id) const {
    return static_cast<uint32_t>(id - PromisedRows::kFirst) - rowOf(id).made.begin;
  }
  void needPromised(uint32_t id);
  uint32_t granulesOf(uint32_t allocation) const {
    return made_[allocation + 1].made.begin - made_[allocation].made.begin;
  }
  uint32_t placeOf(uint32_t id) const;

  const Model &model_;
  const RowWords &words_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  PromisedRows names_;
  std::vector<Row> made_;        ///< by allocation; and after them where all end
  BumpArena arena_;              ///< words of what is made again
  std::vector<uint32_t> needed_; ///< allocations that are to be made again
  std::vector<uint32_t> placed_; ///< that are there again
  std::vector<ScheduledBucket> launches_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_DROPPED_ROWS_H

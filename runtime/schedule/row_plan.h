//===- row_plan.h - Where promised rows of a flush lie ----------*- C++ -*-===//
//
// Before the first kernel of a flush runs, all its launches are there, with the exact sizes of what
// they make and with all who read it. So each promised allocation is needed from the first launch
// that writes into it to the last one that reads it, and what is not needed at the same time may
// lie in the same place. Launches of one depth may run in any order: they count as one group.
//
// Allocations that are made and needed no more in the same groups lie side by side, so that what
// becomes free is large again. Those that are still needed when the flush is over lie apart.
//
// In training all are needed once more, by the backward pass: those stay that it does not make
// again (recompute_choice.h). Where only the first granules of one stay, which are all that others
// read, they are copied to where they stay as soon as its group has run. What is made again must be
// known by a name until then, so its ids stay in the records, and what runs are copies of these.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_ROW_PLAN_H
#define SHEAF_RUNTIME_SCHEDULE_ROW_PLAN_H

#include "runtime/memory/promised_rows.h"
#include "runtime/schedule/row_words.h"
#include "runtime/schedule/schedule.h"

#include <span>
#include <utility>
#include <vector>

namespace sheaf::rt {

class RowPlan {
public:
  /// Its memory is charged to `count` while there is a plan.
  RowPlan(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count)
      : model_(model), words_(words), meter_(meter), count_(count) {}
  ~RowPlan() { release(); }
  RowPlan(const RowPlan &) = delete;

  /// Whether the model says which words of records name rows.
  bool isPossible() const { return words_.areAllKnown(); }

  /// Plans for what was `promised` to the records of these launches, which are all that name it but
  /// for the handles in `needed`. `staying`: by allocation, as PromisedRows::number() counts, how
  /// many of its granules stay whoever needs them; nothing: none. False when there is no memory to.
  bool make(std::span<const ScheduledBucket> launches, PromisedRows &promised,
            std::span<Slot *const> needed, const RowSpace &space,
            std::span<const uint32_t> staying = {});

  /// Whether make() looks for places in all that is free, however long that takes.
  void looksAtAll(bool all) { looksAtAll_ = all; }

  /// Granules of what stays after the flush, and of the place for all else.
  uint64_t staying() const { return stayingGranules_; }
  uint64_t passing() const { return passing_; }
  /// Granules that are needed at one time, at most: no place for these launches in their order is
  /// smaller.
  uint64_t least() const { return least_; }
  /// Of each group: the first of its launches, and the granules that are needed while it runs.
  struct Group {
    size_t launch;
    uint64_t granules;
  };
  Group group(size_t number) const { return {groups_[number], live_[number]}; }
  size_t groupCount() const { return live_.size(); }
  /// Calls `visit(launch, words)` for each record whose results are needed while a group runs.
  template <typename Visit> void forEachNeeded(size_t group, Visit visit) const;

  /// Rows of a flush that are free after so many of its launches.
  struct Release {
    size_t launches;
    RowRange rows;
  };
  /// What becomes free, in the order in which it does, until all has run. After apply().
  std::vector<Release> releases() const;

  /// Asks `allocate(granules)` for a place for each tensor that stays, so that they fill holes.
  /// False when there is none for one: it returned RowSpace::kFull.
  template <typename Allocate> bool placeStaying(Allocate allocate);

  /// Gives all else its place from granule `passing` on: writes places into the words of records,
  /// into the tables that they name, and into the needed handles. After placeStaying().
  void apply(uint64_t passing);
  /// The same for those that stay as a whole; the others keep their ids.
  void applyStaying(uint64_t passing);
  /// Where a promised row lies that is read, and one that is made: another place if only a part of
  /// it stays. After one of these.
  uint32_t placeOf(uint32_t id) const;
  uint32_t placeMade(uint32_t id) const;
  /// How much of the allocation of this id is copied when its group has run; 0: nothing.
  uint32_t granulesCopied(uint32_t id) const {
    uint32_t allocation = promised_->numberOf(id);
    return isDivided(allocation) ? staying_[allocation] : 0;
  }
  /// By allocation: where what stays of it is; of no use where nothing does.
  std::span<const uint32_t> placesStaying() const { return divided_.empty() ? places_ : divided_; }
  std::span<const ScheduledBucket> launches() const { return launches_; }

  /// Gives its memory back. No plan is left.
  void release();

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kStays = UINT32_MAX;                               ///< a last group
  static constexpr uint32_t kUnplaced = UINT32_MAX, kToPlace = UINT32_MAX - 1; ///< places

  /// What a group makes that is needed up to the same last one.
  struct Cell {
    uint64_t left = 0;                   ///< granules without a place
    uint64_t begin = 0, at = 0, end = 0; ///< what it fills now
  };
  struct Range {
    uint64_t begin, end;
    uint64_t granules() const { return end - begin; }
  };
  /// What is free after a group.
  struct Piece {
    uint64_t begin, end;
    uint32_t next; ///< of the same group, or kNone
  };

  bool reserve(uint64_t records, uint64_t allocations, uint64_t groups);
  void findGroups();
  void findLastGroups();
  bool isDivided(uint32_t allocation) const {
    return !staying_.empty() && staying_[allocation] > 0 &&
           staying_[allocation] < granulesOf(allocation);
  }
  template <typename Move> void applyBy(Move move);
  void placeGroup(uint32_t group, size_t &record);
  void place(uint32_t allocation);
  void take(Cell &cell, uint64_t least);
  void leave(Cell &cell, uint32_t last);
  void free(uint64_t begin, uint64_t end);
  void forgetSmall();
  uint64_t granulesOf(uint32_t allocation) const {
    return starts_[allocation + 1] - starts_[allocation];
  }
  uint32_t groups() const { return static_cast<uint32_t>(groups_.size() - 1); }

  const Model &model_;
  const RowWords &words_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;

  std::span<const ScheduledBucket> launches_;
  std::span<Slot *const> handles_;
  PromisedRows *promised_ = nullptr;
  const RowSpace *space_ = nullptr;
  std::vector<uint32_t> groups_; ///< the first launch of each, and after them how many launches
  std::vector<uint32_t> made_;   ///< by record, in the order of the launches: its allocation
  // By allocation.
  std::vector<uint32_t> starts_;  ///< granules from the first promised one on; and after them all
  std::vector<uint32_t> last_;    ///< the last group that needs it
  std::vector<uint32_t> places_;  ///< ids of those that stay; the others' count from passingAt_
  std::vector<uint32_t> staying_; ///< granules that stay in any case; empty: none
  std::vector<uint32_t> divided_; ///< places of the parts that stay, if there are such
  // While groups are placed.
  std::vector<Cell> cells_;          ///< by last group
  std::vector<uint32_t> cellsInUse_; ///< those of the group
  std::vector<Range> free_;          ///< in order
  std::vector<uint32_t> freeAfter_;  ///< by group: the first of its pieces, or kNone
  std::vector<Piece> pieces_;

  bool looksAtAll_ = false;
  uint64_t stayingGranules_ = 0, passing_ = 0, least_ = 0;
  uint64_t needed_ = 0;        ///< in the group that is being placed
  std::vector<uint64_t> live_; ///< by group
  uint64_t passingAt_ = 0;
};

template <typename Allocate> bool RowPlan::placeStaying(Allocate allocate) {
  for (uint32_t allocation = 0; allocation < last_.size(); ++allocation) {
    bool divided = isDivided(allocation) && last_[allocation] != kStays;
    if ((last_[allocation] != kStays && !divided) || places_[allocation] == kUnplaced)
      continue;
    uint64_t id = allocate(divided ? staying_[allocation] : granulesOf(allocation));
    if (id == RowSpace::kFull)
      return false;
    (divided ? divided_ : places_)[allocation] = static_cast<uint32_t>(id);
  }
  return true;
}

template <typename Visit> void RowPlan::forEachNeeded(size_t group, Visit visit) const {
  const uint32_t *made = made_.data();
  for (size_t i = 0; i < groups_[group + 1]; ++i) {
    const ScheduledBucket &launch = launches_[i];
    uint32_t words = model_.kernels[launch.kernel].words;
    for (int64_t r = 0; r < launch.count; ++r, ++made) {
      if (*made != kNone && last_[*made] >= group)
        visit(launch, launch.records + r * words);
    }
  }
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_ROW_PLAN_H

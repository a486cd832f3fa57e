//===- recorded_windows.h - Launches in windows of recording ----*- C++ -*-===//
//
// In order of depth all leaves of a tree have rows before the first of its nodes runs. Recording
// goes through a program as one would who runs it, and needs little at a time: a subtree is done
// before the next begins. So where memory is short the records of a flush are divided by when they
// were recorded, into windows, each of which runs in order of depth before the next. What a record
// waits for was recorded before it, so it stands in its window or in an earlier one.
//
// When a record was recorded shows in the id that its results were promised
// (memory/promised_rows.h): ids are handed out in that order.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_RECORDED_WINDOWS_H
#define SHEAF_RUNTIME_SCHEDULE_RECORDED_WINDOWS_H

#include "runtime/memory/promised_rows.h"
#include "runtime/schedule/row_words.h"
#include "runtime/schedule/schedule.h"

#include <span>
#include <vector>

namespace sheaf::rt {

class RecordedWindows {
public:
  /// Its memory is charged to `count`.
  RecordedWindows(const Model &model, const RowWords &words, MemoryMeter &meter, MemoryKind &count);
  ~RecordedWindows() { release(); }
  RecordedWindows(const RecordedWindows &) = delete;

  /// No schedule shows what was cut before.
  void beginRun() { moved_.reset(); }
  /// The same, and gives all memory back.
  void giveBack() {
    release();
    moved_.reset();
    moved_.giveBack();
  }

  /// Finds out when the records of these launches were recorded. The launches are in order of depth
  /// and all that were `promised` anything; they are kept until release(). False when there is no
  /// memory to.
  bool find(std::span<const ScheduledBucket> launches, PromisedRows &promised,
            const RowSpace &space);
  bool isEmpty() const { return launches_.empty(); }

  /// Replaces the launches of `schedule` from `begin` on by those that were found, in windows in
  /// each of which about so many granules were promised. Returns how many windows there are; 0 when
  /// there is no memory, and then the launches are as they were found. Records that it moves stay
  /// where they are until beginRun().
  uint64_t cut(uint64_t granules, Schedule &schedule, size_t begin);

  /// Gives its memory back.
  void release();

private:
  /// Records of one launch and one window.
  struct Part {
    uint32_t window, number; ///< in the order of the launches
    ScheduledBucket launch;
  };
  bool charge(uint64_t bytes);
  bool addParts(const ScheduledBucket &launch, const uint32_t *recorded, uint64_t granules);

  const Model &model_;
  const RowWords &words_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  std::vector<ScheduledBucket> launches_;
  /// By record, in the order of the launches: granules that were promised before it, or before the
  /// last of those that it waits for if that was recorded later.
  std::vector<uint32_t> recorded_;
  std::vector<Part> parts_;
  BumpArena moved_; ///< records of launches that are not in order of recording
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_RECORDED_WINDOWS_H

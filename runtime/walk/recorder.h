//===- recorder.h - The state behind abi.h's Context ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_WALK_RECORDER_H
#define SHEAF_RUNTIME_WALK_RECORDER_H

#include "runtime/memory/scratch.h"
#include "runtime/model/error.h"
#include "runtime/walk/grown.h"
#include "runtime/walk/known.h"
#include "runtime/walk/list.h"
#include "runtime/walk/record.h"
#include "runtime/walk/tasks.h"

#include <functional>
#include <string_view>
#include <vector>

namespace sheaf::rt {

/// Rows that the host wrote, in the order in which it did.
struct WrittenRows {
  bool wanted = false; ///< a device has to be told of them
  std::vector<RowRange> ranges;
  void note(uint64_t id, int64_t granules) {
    if (wanted) [[unlikely]]
      appendRange(ranges, {id, static_cast<uint64_t>(granules)});
  }
};

/// Rows that host code reads, of a device with a memory of its own.
struct ReadRows {
  struct Wait {
    uint32_t depth; ///< at which they stand
    RowRange rows;
  };
  bool wanted = false;     ///< the device has to be told of them
  std::vector<Wait> waits; ///< for these someone waits
  /// Lets the host see rows that are computed, at once.
  std::function<void(const RowRange &)> fetch = [](const RowRange &) {};
  void note(const RowRange &rows, uint32_t depth) {
    if (wanted) [[unlikely]]
      waits.push_back({depth, rows});
  }
};

/// What generated code is given: a Context and, after it, what the functions of abi.h need.
struct Recorder : Context {
  RowSpace rowSpace;
  PromisedRows promised; ///< of records that have not run, while RowSpace::promises()
  WrittenRows written;   ///< inputs, and tables of lists
  ReadRows reads;
  Scratch scratch; ///< of the threads that run kernels
  BucketTable buckets;
  KnownRecords known;
  GrownRows grown;
  Heap heap;
  Lists lists;
  HostStacks stacks;
  const MemoryMeter &meter;
  Failure failure;   ///< of what runs now
  Shortage shortage; ///< when that was, for want of memory
  static constexpr std::string_view kMiniBatch = "the mini-batch";
  std::string_view holder = kMiniBatch; ///< of memory, in messages
  Tasks tasks;

  struct Limits {
    uint64_t heapBytes;  ///< of address space
    uint64_t stackBytes; ///< of each stack
    unsigned stacks;
    int64_t steps;
    uint64_t keepBytes; ///< KnownRecords
    unsigned threads;   ///< that run kernels
  };
  /// `rowMemory` must outlive this.
  Recorder(const Model &model, RowMemory &rowMemory, MemoryMeter &meter, MemoryUse &memory,
           const Limits &limits, bool hostile);

  /// What stands at this depth or above is computed (Context::computed).
  void setComputed(int64_t depth) {
    computed = depth;
    visible = reads.wanted ? -1 : depth;
  }

  /// Memory is short: gives back what is only kept to save time. Whether there was any; stacks
  /// count if they `keptStacks` before that the same walk would not take again.
  bool giveBack(bool keptStacks);

  /// Sets what fails, and what memory holds now if that is why.
  void setFailure(const Failure &why);
  /// That of an instance.
  void takeFailure(const Walk &walk);

  /// Gives the task that runs up. On its stack only.
  [[noreturn]] void fail(const Failure &why);

  /// What failed, in words. `enough`: bytes without which there is no room; 0: not known.
  std::string describe(const Model &model, const Walk::Limits &limits = {},
                       uint64_t enough = 0) const;
};

RunError::Cause causeOf(const Failure &why, const Model &model);
/// Of the program's line that Recorder::describe() names; 0: not known.
int64_t columnOf(const Failure &why, const Model &model);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_RECORDER_H

//===- trace.h - When a session did what ------------------------*- C++ -*-===//
//
// What counters sum up, event by event: every launch on every thread, every stretch of recording,
// every wait, flush and mini-batch, and the memory held between them. A session writes one when it
// is given one; else it costs a comparison at each of these.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEASURE_TRACE_H
#define SHEAF_RUNTIME_MEASURE_TRACE_H

#include "runtime/measure/clock.h"
#include "runtime/measure/counters.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

namespace sheaf::rt {

/// [begin, end) in nanoseconds of clockNow().
struct TraceSpan {
  uint64_t begin = 0, end = 0;
  uint64_t nanoseconds() const { return end - begin; }
};

/// One thread inside one kernel: a launch, or its part of one.
struct TraceLaunch {
  TraceSpan span;
  uint32_t launch; ///< of the mini-batch: its place in Session::schedule()
  uint32_t kernel;
  uint32_t depth;
  int64_t records;    ///< of the part
  uint32_t panelsEnd; ///< pieces of columns [panelsBegin, panelsEnd) of the kernel's
  uint32_t panelsBegin;
};

/// One stretch of an instance's host code. After stretches that took less than 1 us on average up
/// to eight share a reading of the clock and are given equal times.
struct TraceWalk {
  enum Left : uint8_t {
    Ended,  ///< the instance, or the call that it forked, is done
    Waits,  ///< for tensors; `place` says where
    Joins,  ///< for a call that it forked
    GaveUp, ///< it failed
  };
  TraceSpan span;
  int64_t instance; ///< Instance::index
  const void *task; ///< the same for all stretches of one thread of control
  bool forked;      ///< a call that an instance forked
  Left left;
  uint32_t place; ///< index into Model::reads
};

/// Launches that ran together, because instances waited or at the end.
struct TraceFlush {
  TraceSpan span;
  uint64_t ordered; ///< when all had been put in order
  uint32_t firstLaunch, lastLaunch;
  bool demanded;         ///< because instances waited
  uint32_t worthForking; ///< after it: calls are forked while fewer others wait (forking.h)
};

/// Anything that is told by its time alone.
struct TracePart {
  enum Kind : uint8_t {
    MiniBatch, ///< the whole of Session::run
    Weights,   ///< packed, and what follows from them computed
    Inputs,    ///< of one instance brought into rows
    Backward,  ///< the whole of Session::backward
  } kind;
  TraceSpan span;
  int64_t number; ///< MiniBatch: how many ran before; Inputs: Instance::index; else 0
};

/// What is held at one time, in bytes, in the order of kMemoryKinds.
struct TraceMemory {
  uint64_t time;
  std::array<uint64_t, std::size(kMemoryKinds)> bytes;
};

/// Belongs to whoever gives it to a session, and must outlive it there. Not to be read while the
/// session runs.
class Trace {
public:
  explicit Trace(unsigned threads) : launches(threads) {}

  std::vector<std::vector<TraceLaunch>> launches; ///< by thread
  std::vector<TraceWalk> walks;
  std::vector<TraceFlush> flushes;
  std::vector<TracePart> parts;
  std::vector<TraceMemory> memory;

  size_t size() const {
    size_t sum = walks.size() + flushes.size() + parts.size() + memory.size();
    for (const std::vector<TraceLaunch> &some : launches)
      sum += some.size();
    return sum;
  }
  void clear() {
    for (std::vector<TraceLaunch> &some : launches)
      some.clear();
    walks.clear();
    flushes.clear();
    parts.clear();
    memory.clear();
  }
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEASURE_TRACE_H

//===- counters.h - What a session counts -----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEASURE_COUNTERS_H
#define SHEAF_RUNTIME_MEASURE_COUNTERS_H

#include <array>
#include <cstdint>
#include <vector>

namespace sheaf::rt {

struct KernelCounters {
  uint64_t records = 0;
  uint64_t saved = 0;      ///< memoised records: not made, the results were there (known.h)
  uint64_t launches = 0;   ///< buckets run; one that several threads share counts once
  uint64_t maxRecords = 0; ///< in one launch
  /// Inside the kernel, summed over threads. The time of short launches that were measured together
  /// is divided by what each kernel took when it was measured alone.
  uint64_t nanoseconds = 0;
  double flop = 0; ///< of products, as executed, without padding
};

/// Sums since the session was made or the counters were reset. Always on: records are counted by
/// the bucket, and the clock is read once a launch, or where launches are short once for several.
struct Counters {
  uint64_t runs = 0;
  uint64_t instances = 0;
  uint64_t failed = 0; ///< instances that ended with an error
  uint64_t records = 0;
  uint64_t saved = 0; ///< records that were not made
  uint64_t launches = 0;
  uint64_t parallelLaunches = 0; ///< launches that more than one thread shared
  uint64_t flushes = 0; ///< times that what was recorded ran: at the end, and when instances wait
  uint64_t collections = 0; ///< times that rows were given back while instances waited
  uint64_t evictions = 0;   ///< times that what was kept gave way to others
  /// Rows of flushes that were known as a whole before they ran (row_plan.h): how many, their
  /// bytes, those that they were given, and the least that any place for them has.
  uint64_t rowPlans = 0, promisedBytes = 0, plannedBytes = 0, leastBytes = 0;
  uint64_t rowWindows = 0; ///< in which their launches ran (recorded_windows.h)
  /// In training: bytes of rows that the forward pass dropped, and records that the backward pass
  /// ran again for them.
  uint64_t droppedBytes = 0, recomputed = 0;
  uint64_t waits = 0;   ///< of instances, and calls inside them, for a read
  uint64_t forked = 0;  ///< calls that ran beside the one that made them
  uint64_t inlined = 0; ///< those that found no stack and ran as plain calls
  uint64_t inPlace = 0; ///< those that ran as such since enough waited already (forking.h)
  /// Tensors that grew elsewhere than in place with rows in common (grown.h), and bytes of these.
  uint64_t sharedTensors = 0, sharedBytes = 0;
  uint64_t barriers = 0;
  double flop = 0;
  uint64_t recordNanoseconds = 0; ///< wall: inputs copied, instances walked, blocks recorded
  uint64_t flushNanoseconds = 0;  ///< wall: buckets ordered and run
  uint64_t orderNanoseconds = 0;  ///< wall: of these, buckets ordered
  uint64_t planNanoseconds = 0;   ///< wall: of these, rows given places
  /// Launches by size: [i] counts those of 2^i to 2^(i+1) - 1 records.
  std::array<uint64_t, 32> launchSizes{};
  std::vector<KernelCounters> kernels; ///< by index in Model::kernels

  double recordsPerLaunch() const {
    return launches ? static_cast<double>(records) / static_cast<double>(launches) : 0;
  }
};

/// Bytes that a session holds, by kind; `peak` since it was made.
struct MemoryKind {
  uint64_t now = 0;
  uint64_t peak = 0;
};

struct MemoryUse {
  MemoryKind weights; ///< parameters in the row space
  MemoryKind packed;  ///< parameters as kernels read them
  MemoryKind rows;    ///< tensors of the last mini-batch, inputs included
  MemoryKind tables;  ///< results kept from one mini-batch to the next, and where they are found
  MemoryKind heap;    ///< data values and lists
  MemoryKind records; ///< records, buckets and their directory
  MemoryKind scratch; ///< of all threads
  MemoryKind stack;   ///< of host stacks, beyond the first 64 KB of each
  /// Of a training from step to step, and of no mini-batch: what the optimiser remembers, averages
  /// of weights, sums of gradients.
  MemoryKind training;
};

/// The kinds of a mini-batch, by the names that reports and messages have for them.
struct NamedMemoryKind {
  const char *name;
  MemoryKind MemoryUse::*kind;
  const char *words;
};
inline constexpr NamedMemoryKind kMemoryKinds[] = {
    {"weights", &MemoryUse::weights, "weights"},
    {"packed", &MemoryUse::packed, "packed weights"},
    {"rows", &MemoryUse::rows, "tensors"},
    {"tables", &MemoryUse::tables, "results that are kept to be found again"},
    {"heap", &MemoryUse::heap, "data values and lists"},
    {"records", &MemoryUse::records, "records"},
    {"scratch", &MemoryUse::scratch, "kernels' scratch memory"},
    {"stack", &MemoryUse::stack, "host stacks"},
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEASURE_COUNTERS_H

//===- schedule.h - What a run did, in order --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_SCHEDULE_H
#define SHEAF_RUNTIME_SCHEDULE_SCHEDULE_H

#include "runtime/model/model.h"

#include <span>

namespace sheaf::rt {

/// One launch: `count` records of KernelDesc::words words each, one after the other.
struct ScheduledBucket {
  uint32_t depth = 0;
  uint32_t kernel = 0;
  const int32_t *records = nullptr;
  int64_t count = 0;
};

/// The launches of a run in the order in which they ran. Those of one flush have ascending depths;
/// neighbours of one depth do not depend on each other. Under another policy than that of depth
/// (policy.h) the numbers are made for that. Read backwards it is a valid order for everything that
/// walks from results to arguments.
using Schedule = std::vector<ScheduledBucket>;

/// Launches that may run in any order, or at the same time: neighbours of one depth. Returns where
/// those end that begin with this one; what follows runs after them.
inline size_t groupEnd(std::span<const ScheduledBucket> launches, size_t begin) {
  size_t end = begin + 1;
  while (end < launches.size() && launches[end].depth == launches[begin].depth)
    ++end;
  return end;
}

/// What the records of a run waited for. They are numbered in the order of the schedule, those of a
/// launch as they stand in it.
struct Dependences {
  static constexpr uint32_t kNone = UINT32_MAX;
  /// By record: of those whose rows it reads the one that ran last; kNone when no record of the run
  /// made any.
  std::vector<uint32_t> latest;
  /// By the first kernel of a family (KernelDesc::family): the records on the longest chain of the
  /// family's own, which others may stand between. No order needs fewer launches of it.
  std::vector<uint32_t> longestChains;
  uint64_t leastLaunches = 0; ///< these summed: no order needs fewer launches
};

/// What the terms are for all records of a launch together, each of `words` words.
inline double sumOverRecords(std::span<const FlopTerm> terms, uint32_t words,
                             const ScheduledBucket &launch) {
  double sum = 0;
  for (const FlopTerm &term : terms) {
    if (term.extentWords.empty()) {
      sum += term.coefficient * static_cast<double>(launch.count);
      continue;
    }
    for (int64_t i = 0; i < launch.count; ++i) {
      const int32_t *record = launch.records + i * words;
      double product = term.coefficient;
      for (uint32_t word : term.extentWords)
        product *= record[word];
      sum += product;
    }
  }
  return sum;
}

/// Bytes of weights that a launch reads.
inline double weightBytes(const KernelDesc &kernel) {
  double bytes = 0;
  for (const WeightRead &weight : kernel.weights)
    bytes += weight.bytes;
  return bytes;
}

/// Granules of a result of a record with these words.
inline uint64_t granulesOf(const RecordTensor &result, const int32_t *words) {
  std::vector<int64_t> shape;
  for (const WordSum &extent : result.extents)
    shape.push_back(evaluate(extent, words));
  return static_cast<uint64_t>(tensorGranules(shape, result.dtype));
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_SCHEDULE_H

//===- schedule.h - What a run did, in order --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_H
#define SHEAF_RUNTIME_SCHEDULE_H

#include <cstdint>
#include <vector>

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

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_H

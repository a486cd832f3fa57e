//===- recorder.h - The state behind abi.h's Context ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_RECORDER_H
#define SHEAF_RUNTIME_RECORDER_H

#include "runtime/host_stack.h"
#include "runtime/list.h"
#include "runtime/record.h"

namespace sheaf::rt {

/// Why an instance was given up.
struct Failure {
  enum Kind { None, Message, StackOverflow, Rows, Heap, Records, Depth } kind = None;
  uint32_t message = 0; ///< Message: index into Model::messages
  int64_t a = 0, b = 0; ///< Message: {0} and {1}
  uint64_t wanted = 0;  ///< Rows: granules; Heap: bytes; Depth: the depth
};

/// What generated code is given: a Context and, behind it, what the functions of abi.h need.
struct Recorder : Context {
  RowSpace rowSpace;
  BucketTable buckets;
  BumpArena heap;
  Lists lists;
  HostStack stack;
  Failure failure;

  Recorder(const Model &model, MemoryMeter &meter, MemoryUse &memory, uint64_t rowSpaceBytes,
           uint64_t stackBytes, bool hostile);

  /// Gives the instance that is being walked up. On the host stack only.
  [[noreturn]] void fail(const Failure &why);

  /// `why` in words.
  std::string describe(const Failure &why, const Model &model, const MemoryMeter &meter) const;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_RECORDER_H

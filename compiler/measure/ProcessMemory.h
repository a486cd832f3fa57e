//===- ProcessMemory.h - Memory of this process -----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_MEASURE_PROCESSMEMORY_H
#define SHEAF_COMPILER_MEASURE_PROCESSMEMORY_H

#include <cstdint>

namespace sheaf::driver {

/// Bytes of it that lie in memory, code and libraries with them; 0 where the system does not say.
struct ProcessMemory {
  uint64_t now = 0, peak = 0;
};
ProcessMemory processMemory();

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_MEASURE_PROCESSMEMORY_H

//===- file_range.h - Bytes of an open file ---------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_FILE_RANGE_H
#define SHEAF_RUNTIME_MODEL_FILE_RANGE_H

#include <cstdint>

namespace sheaf::rt {

/// Bytes of an open file, from a multiple of the page size on.
struct FileRange {
  int file = -1;
  uint64_t offset = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_FILE_RANGE_H

//===- Link.h - Object files into one code image ----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_LINK_H
#define SHEAF_COMPILER_DRIVER_LINK_H

#include "runtime/code.h"

#include <map>
#include <string>
#include <vector>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace sheaf::driver {

/// Code as the runtime loads it (runtime/code.h).
struct LinkedCode {
  rt::CodeLayout layout;
  std::vector<uint8_t> image;
  std::map<std::string, uint64_t, std::less<>> symbols; ///< offsets in the image
};

/// Links position independent ELF objects for x86-64. What none of them defines is imported from
/// the runtime. Throws InternalError for what generated code never has: data that can be written,
/// absolute addresses inside of code, names that the runtime does not know.
LinkedCode linkObjects(const std::vector<const llvm::MemoryBuffer *> &objects);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_LINK_H

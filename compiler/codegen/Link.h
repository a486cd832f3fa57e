//===- Link.h - Object files into one code image ----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_CODEGEN_LINK_H
#define SHEAF_COMPILER_CODEGEN_LINK_H

#include "runtime/cpu/code.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// Code as the runtime loads it (runtime/cpu/code.h).
struct LinkedCode {
  rt::CodeLayout layout;
  std::vector<uint8_t> image;
  /// By object what it defines for others, as offsets in the image.
  std::vector<std::map<std::string, uint64_t, std::less<>>> symbols;
};

/// Links position independent ELF objects of one architecture, x86-64 or AArch64. No object knows
/// of another: what one does not define is imported from the runtime, and two may use the same
/// name. Throws InternalError for what generated code never has: data that can be written, absolute
/// addresses inside of code, names that the runtime does not know.
LinkedCode linkObjects(std::span<const std::vector<uint8_t>> objects);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_CODEGEN_LINK_H

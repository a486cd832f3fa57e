//===- ProcessMemory.cpp - Memory of this process -------------------------===//
#include "compiler/measure/ProcessMemory.h"

#include <fstream>
#include <string>

namespace sheaf::driver {

ProcessMemory processMemory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    auto kilobytes = [&](std::string_view name) {
      return line.starts_with(name) ? std::stoull(line.substr(name.size())) * 1024 : 0;
    };
    if (uint64_t now = kilobytes("VmRSS:"))
      memory.now = now;
    if (uint64_t peak = kilobytes("VmHWM:"))
      memory.peak = peak;
  }
  return memory;
}

} // namespace sheaf::driver

//===- held_memory.h - What holds the memory of a session -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_HELD_MEMORY_H
#define SHEAF_RUNTIME_MEMORY_HELD_MEMORY_H

#include "runtime/measure/counters.h"

#include <array>
#include <cstdint>
#include <string>

namespace sheaf::rt {

/// A number of bytes as messages tell it: `4032 bytes`, `63.9 MB`.
std::string bytesText(uint64_t bytes);
/// The same, not less than they are: for a limit that is to hold them.
std::string bytesTextUp(uint64_t bytes);

/// What a session held at one time, by kind, as messages tell it.
class HeldMemory {
public:
  HeldMemory() = default;
  /// `kinds`: null, where they are not known. Their rows are those of the last time that these were
  /// counted: there are `rows` bytes of them.
  HeldMemory(const MemoryUse *kinds, uint64_t used, uint64_t limit, uint64_t rows);

  uint64_t used() const { return used_; }
  uint64_t limit() const { return limit_; }
  /// `63.9 MB of at most 64.0 MB: 55.1 MB of tensors, 6.2 MB of records`: the largest kinds.
  std::string text() const;

private:
  static constexpr size_t kKinds = std::size(kMemoryKinds) + 1; ///< and what training holds
  std::array<uint64_t, kKinds> kinds_{};
  uint64_t used_ = 0, limit_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_HELD_MEMORY_H

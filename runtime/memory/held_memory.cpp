#include "runtime/memory/held_memory.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sheaf::rt {

namespace {
/// Kinds of which a message tells, at most, and the part of all below which one does not matter.
constexpr size_t kMostKinds = 3;
constexpr uint64_t kLeastPart = 20;
} // namespace

std::string bytesText(uint64_t bytes) {
  if (bytes < (uint64_t(1) << 20))
    return std::to_string(bytes) + " bytes";
  uint64_t tenths = (bytes >> 20) * 10 + ((bytes & 0xFFFFF) * 10 >> 20);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MB";
}

std::string bytesTextUp(uint64_t bytes) {
  constexpr uint64_t kTenth = (uint64_t(1) << 20) / 10 + 1;
  return bytesText(bytes < (uint64_t(1) << 20) ? bytes : bytes + kTenth);
}

HeldMemory::HeldMemory(const MemoryUse *kinds, uint64_t used, uint64_t limit, uint64_t rows)
    : used_(used), limit_(limit) {
  if (!kinds)
    return;
  for (size_t i = 0; i + 1 < kKinds; ++i) {
    auto kind = kMemoryKinds[i].kind;
    kinds_[i] = kind == &MemoryUse::rows ? rows : (kinds->*kind).now;
  }
  kinds_.back() = kinds->training.now;
}

std::string HeldMemory::text() const {
  std::string text = bytesText(used_) + " of at most " + bytesText(limit_);
  std::array<size_t, kKinds> order;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(kinds_[b], a) < std::pair(kinds_[a], b); });
  for (size_t told = 0; told < kMostKinds; ++told) {
    uint64_t bytes = kinds_[order[told]];
    if (bytes == 0 || bytes < used_ / kLeastPart)
      break;
    size_t kind = order[told];
    text += (told ? ", " : ": ") + bytesText(bytes) + " of " +
            (kind < std::size(kMemoryKinds) ? kMemoryKinds[kind].words : "what training remembers");
  }
  return text;
}

} // namespace sheaf::rt

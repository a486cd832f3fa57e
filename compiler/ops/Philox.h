//===- Philox.h - Random bits from a counter --------------------*- C++ -*-===//
//
// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (2011): four words of 32 bits from a counter and a key, any of them computed by itself.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_PHILOX_H
#define SHEAF_COMPILER_OPS_PHILOX_H

#include <array>
#include <cstdint>

namespace sheaf::ops {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxFactors[] = {0xd2511f53, 0xcd9e8d57};
inline constexpr uint32_t kPhiloxIncrements[] = {0x9e3779b9, 0xbb67ae85};

using PhiloxWords = std::array<uint32_t, 4>;

constexpr PhiloxWords philox(PhiloxWords counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    uint64_t a = uint64_t(kPhiloxFactors[0]) * counter[0];
    uint64_t b = uint64_t(kPhiloxFactors[1]) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key[0] += kPhiloxIncrements[0];
    key[1] += kPhiloxIncrements[1];
  }
  return counter;
}

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_PHILOX_H

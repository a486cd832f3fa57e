//===- keys.h - Keys of random draws ----------------------------*- C++ -*-===//
//
// Every call of a program has a key, made by splitting that of its caller, so that what a call
// draws depends on where it stands and not on what else runs (docs/language.md, "Random numbers").
// Generated code does the same arithmetic (compiler/host).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_KEYS_H
#define SHEAF_RUNTIME_MODEL_KEYS_H

#include <cstdint>

namespace sheaf::rt {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): the
/// generator's increment, and the shifts and factors of its finaliser (David Stafford's mix 13).
inline constexpr uint64_t kKeyIncrement = 0x9e3779b97f4a7c15;
inline constexpr uint64_t kKeyFactors[] = {0xbf58476d1ce4e5b9, 0x94d049bb133111eb};
inline constexpr unsigned kKeyShifts[] = {30, 27, 31};

/// Output `number` of the SplitMix64 generator whose state is `key`. Different for different
/// numbers.
constexpr uint64_t splitKey(uint64_t key, uint64_t number) {
  uint64_t z = key + (number + 1) * kKeyIncrement;
  z = (z ^ z >> kKeyShifts[0]) * kKeyFactors[0];
  z = (z ^ z >> kKeyShifts[1]) * kKeyFactors[1];
  return z ^ z >> kKeyShifts[2];
}

/// The key that the walk of an instance begins with.
constexpr uint64_t instanceKey(uint64_t seed, uint64_t step, int64_t instance) {
  return splitKey(splitKey(splitKey(0, seed), step), static_cast<uint64_t>(instance));
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_KEYS_H

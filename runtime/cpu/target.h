//===- target.h - The CPU that code is made for -----------------*- C++ -*-===//
//
// What planner, code generator, reports and artefacts know of a CPU stands here and nowhere else.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_TARGET_H
#define SHEAF_RUNTIME_CPU_TARGET_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::rt {

/// Bytes of the data caches of one core.
struct CacheSizes {
  int64_t l1 = 0, l2 = 0;
  bool operator==(const CacheSizes &) const = default;
};

struct Target {
  std::string architecture;          ///< as kArchitecture
  std::string cpu;                   ///< LLVM's name of what code is made for
  std::string tuning;                ///< of what it is scheduled for; empty in an artefact
  std::vector<std::string> features; ///< LLVM's names of those that it may use, sorted (cpu.h)

  // These follow from the others: see derive().
  int64_t lanes = 0;     ///< f32 lanes of a vector: 16, 8 or 4
  int64_t registers = 0; ///< vector registers: 32 or 16
  bool halves = false;   ///< computes with 16 lanes in two halves, so 8 take half as long
  bool fma = false;      ///< without it products are multiply, then add: another numeric class
  bool f16 = false;      ///< converts between f16 and f32
  bool bf16 = false;     ///< sums pairs of bf16 products (AVX512_BF16)
  bool tiles = false;    ///< multiplies tiles of bf16 (AMX): another numeric class

  /// That plans are made for; 0 in artefacts that do not say it. No bit of a result follows from
  /// it.
  CacheSizes caches;

  bool has(std::string_view feature) const;
  /// Fills in what follows from architecture, CPU and features.
  void derive();
  /// What processors with vectors of this width have at least, mostly.
  CacheSizes defaultCaches() const;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_TARGET_H

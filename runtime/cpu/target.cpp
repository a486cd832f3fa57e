//===- target.cpp - The CPU that code is made for -------------------------===//
#include "runtime/cpu/target.h"

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/cpu_tables.h"

#include <algorithm>

namespace sheaf::rt {

bool Target::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

void Target::derive() {
  if (architecture == kAArch64) {
    // All have vectors of four (Advanced SIMD). What sums pairs of bf16 products there (BFDOT)
    // rounds otherwise than the chain of sums that is promised, so nothing uses it.
    lanes = 4;
    registers = 32;
    halves = bf16 = tiles = false;
    fma = f16 = true;
    return;
  }
  bool wide = has("avx512f");
  lanes = wide ? 16 : has("avx") ? 8 : 4;
  registers = wide ? 32 : 16;
  halves = wide && computesInHalves(cpu);
  fma = has("fma");
  f16 = has("f16c");
  bf16 = has("avx512bf16");
  tiles = has("amx-bf16");
}

CacheSizes Target::defaultCaches() const { return {32 << 10, lanes == 16 ? 1 << 20 : 512 << 10}; }

} // namespace sheaf::rt

#include "runtime/cpu.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <cpuid.h>

namespace sheaf::rt {

namespace {

enum Register : uint8_t { Eax, Ebx, Ecx, Edx };

/// Which registers the operating system must save, as bits of XCR0.
constexpr uint64_t kNone = 0, kAvx = 0x6, kAvx512 = 0xE6, kAmx = 0x60006;

/// A bit that cpuid tells (Intel's manual, volume 2A, CPUID).
struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register where;
  uint8_t bit;
  uint64_t state;
};

constexpr std::array kFeatures = {
    Feature{"adx", 7, 0, Ebx, 19, kNone},
    Feature{"amx-bf16", 7, 0, Edx, 22, kAmx},
    Feature{"amx-fp16", 7, 1, Eax, 21, kAmx},
    Feature{"amx-int8", 7, 0, Edx, 25, kAmx},
    Feature{"amx-tile", 7, 0, Edx, 24, kAmx},
    Feature{"avx", 1, 0, Ecx, 28, kAvx},
    Feature{"avx2", 7, 0, Ebx, 5, kAvx},
    Feature{"avx512bf16", 7, 1, Eax, 5, kAvx512},
    Feature{"avx512bitalg", 7, 0, Ecx, 12, kAvx512},
    Feature{"avx512bw", 7, 0, Ebx, 30, kAvx512},
    Feature{"avx512cd", 7, 0, Ebx, 28, kAvx512},
    Feature{"avx512dq", 7, 0, Ebx, 17, kAvx512},
    Feature{"avx512f", 7, 0, Ebx, 16, kAvx512},
    Feature{"avx512fp16", 7, 0, Edx, 23, kAvx512},
    Feature{"avx512ifma", 7, 0, Ebx, 21, kAvx512},
    Feature{"avx512vbmi", 7, 0, Ecx, 1, kAvx512},
    Feature{"avx512vbmi2", 7, 0, Ecx, 6, kAvx512},
    Feature{"avx512vl", 7, 0, Ebx, 31, kAvx512},
    Feature{"avx512vnni", 7, 0, Ecx, 11, kAvx512},
    Feature{"avx512vp2intersect", 7, 0, Edx, 8, kAvx512},
    Feature{"avx512vpopcntdq", 7, 0, Ecx, 14, kAvx512},
    Feature{"avxifma", 7, 1, Eax, 23, kAvx},
    Feature{"avxneconvert", 7, 1, Edx, 5, kAvx},
    Feature{"avxvnni", 7, 1, Eax, 4, kAvx},
    Feature{"avxvnniint16", 7, 1, Edx, 10, kAvx},
    Feature{"avxvnniint8", 7, 1, Edx, 4, kAvx},
    Feature{"bmi", 7, 0, Ebx, 3, kNone},
    Feature{"bmi2", 7, 0, Ebx, 8, kNone},
    Feature{"cmov", 1, 0, Edx, 15, kNone},
    Feature{"f16c", 1, 0, Ecx, 29, kAvx},
    Feature{"fma", 1, 0, Ecx, 12, kAvx},
    Feature{"lzcnt", 0x80000001, 0, Ecx, 5, kNone},
    Feature{"movbe", 1, 0, Ecx, 22, kNone},
    Feature{"popcnt", 1, 0, Ecx, 23, kNone},
    Feature{"sse", 1, 0, Edx, 25, kNone},
    Feature{"sse2", 1, 0, Edx, 26, kNone},
    Feature{"sse3", 1, 0, Ecx, 0, kNone},
    Feature{"sse4.1", 1, 0, Ecx, 19, kNone},
    Feature{"sse4.2", 1, 0, Ecx, 20, kNone},
    Feature{"sse4a", 0x80000001, 0, Ecx, 6, kNone},
    Feature{"ssse3", 1, 0, Ecx, 9, kNone},
};

/// The registers that the operating system saves.
uint64_t savedState() {
  std::array<uint32_t, 4> r{};
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &r[Eax], &r[Ebx], &r[Ecx], &r[Edx]) || !(r[Ecx] & osxsave))
    return 0;
  uint32_t low, high;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool has(const Feature &feature) {
  std::array<uint32_t, 4> r{};
  return __get_cpuid_count(feature.leaf, feature.subleaf, &r[Eax], &r[Ebx], &r[Ecx], &r[Edx]) &&
         (r[feature.where] >> feature.bit & 1) && (savedState() & feature.state) == feature.state;
}

} // namespace

bool hasFeature(std::string_view name) {
  auto known = std::find_if(kFeatures.begin(), kFeatures.end(),
                            [&](const Feature &feature) { return feature.name == name; });
  return known != kFeatures.end() && has(*known);
}

} // namespace sheaf::rt

//===- cpu_tables.cpp - Features and where machines tell of them ----------===//
//
// A feature stands here when LLVM's code generators may use it by themselves; those that only
// stand in the names of processors (protection keys, crypto, ...) need no row. Where LLVM learns a
// feature, tests/kernels/features_test.cpp asks for a row, or for a reason to do without one.
//
//===----------------------------------------------------------------------===//
#include "runtime/cpu/cpu_tables.h"

#include <algorithm>
#include <array>

namespace sheaf::rt {

namespace {

/// Which registers the operating system must save, as bits of XCR0.
constexpr uint64_t kNone = 0, kAvx = 0x6, kAvx512 = 0xE6, kAmx = 0x60006;

constexpr X86Feature bit(std::string_view name, uint32_t leaf, uint32_t subleaf, Register where,
                         unsigned number, uint64_t state) {
  return {name, leaf, subleaf, where, 1u << number, 1u << number, state};
}

/// The version of AVX10 that the processor has.
constexpr X86Feature avx10(std::string_view name, uint32_t version) {
  return {name, 0x24, 0, Ebx, 0xFF, version, kAvx512};
}

// Intel's manual, volume 2A, CPUID; AMD's, volume 3, appendix E.
constexpr std::array kX86 = {
    bit("adx", 7, 0, Ebx, 19, kNone),
    bit("amx-avx512", 0x1E, 1, Eax, 7, kAmx | kAvx512),
    bit("amx-bf16", 7, 0, Edx, 22, kAmx),
    bit("amx-complex", 7, 1, Edx, 8, kAmx),
    bit("amx-fp16", 7, 1, Eax, 21, kAmx),
    bit("amx-fp8", 0x1E, 1, Eax, 4, kAmx),
    bit("amx-int8", 7, 0, Edx, 25, kAmx),
    bit("amx-movrs", 0x1E, 1, Eax, 8, kAmx),
    bit("amx-tf32", 0x1E, 1, Eax, 6, kAmx),
    bit("amx-tile", 7, 0, Edx, 24, kAmx),
    bit("avx", 1, 0, Ecx, 28, kAvx),
    bit("avx10.1", 7, 1, Edx, 19, kAvx512),
    avx10("avx10.1", 1),
    bit("avx10.2", 7, 1, Edx, 19, kAvx512),
    avx10("avx10.2", 2),
    bit("avx2", 7, 0, Ebx, 5, kAvx),
    bit("avx512bf16", 7, 1, Eax, 5, kAvx512),
    bit("avx512bitalg", 7, 0, Ecx, 12, kAvx512),
    bit("avx512bw", 7, 0, Ebx, 30, kAvx512),
    bit("avx512cd", 7, 0, Ebx, 28, kAvx512),
    bit("avx512dq", 7, 0, Ebx, 17, kAvx512),
    bit("avx512f", 7, 0, Ebx, 16, kAvx512),
    bit("avx512fp16", 7, 0, Edx, 23, kAvx512),
    bit("avx512ifma", 7, 0, Ebx, 21, kAvx512),
    bit("avx512vbmi", 7, 0, Ecx, 1, kAvx512),
    bit("avx512vbmi2", 7, 0, Ecx, 6, kAvx512),
    bit("avx512vl", 7, 0, Ebx, 31, kAvx512),
    bit("avx512vnni", 7, 0, Ecx, 11, kAvx512),
    bit("avx512vp2intersect", 7, 0, Edx, 8, kAvx512),
    bit("avx512vpopcntdq", 7, 0, Ecx, 14, kAvx512),
    bit("avxifma", 7, 1, Eax, 23, kAvx),
    bit("avxneconvert", 7, 1, Edx, 5, kAvx),
    bit("avxvnni", 7, 1, Eax, 4, kAvx),
    bit("avxvnniint16", 7, 1, Edx, 10, kAvx),
    bit("avxvnniint8", 7, 1, Edx, 4, kAvx),
    bit("bmi", 7, 0, Ebx, 3, kNone),
    bit("bmi2", 7, 0, Ebx, 8, kNone),
    bit("cmov", 1, 0, Edx, 15, kNone),
    bit("cx16", 1, 0, Ecx, 13, kNone),
    bit("f16c", 1, 0, Ecx, 29, kAvx),
    bit("fma", 1, 0, Ecx, 12, kAvx),
    bit("fma4", 0x80000001, 0, Ecx, 16, kAvx),
    bit("gfni", 7, 0, Ecx, 8, kNone),
    bit("lzcnt", 0x80000001, 0, Ecx, 5, kNone),
    bit("movbe", 1, 0, Ecx, 22, kNone),
    bit("popcnt", 1, 0, Ecx, 23, kNone),
    bit("prfchw", 0x80000001, 0, Ecx, 8, kNone),
    bit("sahf", 0x80000001, 0, Ecx, 0, kNone),
    bit("sse", 1, 0, Edx, 25, kNone),
    bit("sse2", 1, 0, Edx, 26, kNone),
    bit("sse3", 1, 0, Ecx, 0, kNone),
    bit("sse4.1", 1, 0, Ecx, 19, kNone),
    bit("sse4.2", 1, 0, Ecx, 20, kNone),
    bit("sse4a", 0x80000001, 0, Ecx, 6, kNone),
    bit("ssse3", 1, 0, Ecx, 9, kNone),
    bit("tbm", 0x80000001, 0, Ecx, 21, kNone),
    bit("xop", 0x80000001, 0, Ecx, 11, kAvx),
};

constexpr uint64_t bits(std::initializer_list<unsigned> numbers) {
  uint64_t all = 0;
  for (unsigned number : numbers)
    all |= uint64_t(1) << number;
  return all;
}

// Linux' Documentation/arch/arm64/elf_hwcaps.rst; the numbers are part of its interface.
constexpr std::array kAArch64Features = {
    AArch64Feature{"altnzcv", 0, bits({7})},      AArch64Feature{"bf16", 0, bits({14})},
    AArch64Feature{"complxnum", bits({14}), 0},   AArch64Feature{"crc", bits({7}), 0},
    AArch64Feature{"cssc", 0, bits({34})},        AArch64Feature{"dotprod", bits({20}), 0},
    AArch64Feature{"flagm", bits({27}), 0},       AArch64Feature{"fp-armv8", bits({0}), 0},
    AArch64Feature{"fp16fml", bits({23}), 0},     AArch64Feature{"fptoint", 0, bits({8})},
    AArch64Feature{"fullfp16", bits({9, 10}), 0}, AArch64Feature{"i8mm", 0, bits({13})},
    AArch64Feature{"jsconv", bits({13}), 0},      AArch64Feature{"lse", bits({8}), 0},
    AArch64Feature{"lse2", bits({25}), 0},        AArch64Feature{"mops", 0, bits({43})},
    AArch64Feature{"neon", bits({1}), 0},         AArch64Feature{"rcpc", bits({15}), 0},
    AArch64Feature{"rcpc-immo", bits({26}), 0},   AArch64Feature{"rcpc3", 0, bits({46})},
    AArch64Feature{"rdm", bits({12}), 0},         AArch64Feature{"sve", bits({22}), 0},
    AArch64Feature{"sve2", 0, bits({1})},         AArch64Feature{"sve2p1", 0, bits({36})},
};

// AMD's Software Optimization Guide for the Zen 4 microarchitecture, 2.11.
constexpr std::array<std::string_view, 1> kHalves = {"znver4"};

} // namespace

bool computesInHalves(std::string_view cpu) {
  return std::find(kHalves.begin(), kHalves.end(), cpu) != kHalves.end();
}
std::span<const X86Feature> x86Features() { return kX86; }
std::span<const AArch64Feature> aarch64Features() { return kAArch64Features; }

} // namespace sheaf::rt

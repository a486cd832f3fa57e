//===- cpu_tables.h - Features and where machines tell of them --*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_CPU_TABLES_H
#define SHEAF_RUNTIME_CPU_CPU_TABLES_H

#include <cstdint>
#include <span>
#include <string_view>

namespace sheaf::rt {

enum Register : uint8_t { Eax, Ebx, Ecx, Edx };

/// What must hold for a machine to have a feature: bits of a register of cpuid, taken as a number,
/// are `least` or more, and the system saves the registers `state` (bits of XCR0). A feature with
/// several rows needs all of them.
struct X86Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register where;
  uint32_t bits;
  uint32_t least;
  uint64_t state;
};

/// The same of AArch64: bits of AT_HWCAP and AT_HWCAP2.
struct AArch64Feature {
  std::string_view name;
  uint64_t hwcap, hwcap2;
};

std::span<const X86Feature> x86Features();
std::span<const AArch64Feature> aarch64Features();
/// Whether a processor, by LLVM's name, takes vectors of AVX-512 through units of half their width.
/// No feature tells of it.
bool computesInHalves(std::string_view cpu);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_CPU_TABLES_H

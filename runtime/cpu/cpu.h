//===- cpu.h - What this processor can do -----------------------*- C++ -*-===//
//
// The features of processors, by LLVM's names, and how a machine tells which it has. The compiler
// asks LLVM for no others, so whatever else LLVM knows of a processor is never used by code.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_CPU_H
#define SHEAF_RUNTIME_CPU_CPU_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::rt {

constexpr const char *kX86_64 = "x86_64", *kAArch64 = "aarch64";

/// The architecture that this library was built for, as LLVM names it.
#if defined(__x86_64__)
constexpr const char *kArchitecture = kX86_64;
#elif defined(__aarch64__)
constexpr const char *kArchitecture = kAArch64;
#else
#error "generated code is for x86-64 and AArch64"
#endif

/// All features of an architecture that a machine can be asked for, sorted. None of an unknown one.
std::vector<std::string_view> knownFeatures(std::string_view architecture);

/// A machine as its processor and its operating system describe it.
class Machine {
public:
  /// What the instruction leaves in EAX, EBX, ECX and EDX, called with a leaf and a subleaf.
  using Cpuid = std::function<std::array<uint32_t, 4>(uint32_t, uint32_t)>;
  /// `xcr0` says which registers the system saves; it is asked only where the processor allows it.
  static Machine x86_64(const Cpuid &cpuid, const std::function<uint64_t()> &xcr0);
  /// By the words AT_HWCAP and AT_HWCAP2 of Linux' auxiliary vector.
  static Machine aarch64(uint64_t hwcap, uint64_t hwcap2);

  std::string_view architecture() const { return architecture_; }
  /// Those of knownFeatures() that it has, sorted.
  const std::vector<std::string_view> &features() const { return features_; }
  bool has(std::string_view feature) const;

private:
  std::string_view architecture_;
  std::vector<std::string_view> features_;
};

/// The one that this process runs on.
const Machine &thisMachine();

/// The first of these features that the machine lacks, or that is not known.
std::optional<std::string> missingFeature(std::span<const std::string> features,
                                          const Machine &machine = thisMachine());

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_CPU_H

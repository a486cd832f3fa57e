//===- cpu.h - What this processor can do -----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_H
#define SHEAF_RUNTIME_CPU_H

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sheaf::rt {

/// The architecture that this library was built for, as LLVM names it.
#if defined(__x86_64__)
constexpr const char *kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char *kArchitecture = "aarch64";
#else
#error "generated code is for x86-64 and AArch64"
#endif

/// Whether the processor and the system have this feature (LLVM's name). False for one that is not
/// known here. In cpu_ARCHITECTURE.cpp.
bool hasFeature(std::string_view name);

/// The first of these features (LLVM's names) that the processor or the system lacks, or that is
/// not known here.
std::optional<std::string> missingFeature(std::span<const std::string> features);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_H

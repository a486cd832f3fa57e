//===- Phases.h - The phases of a compilation -------------------*- C++ -*-===//
//
// What `--emit` can show, in pipeline order. This list is the only one.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_DRIVER_PHASES_H
#define SHEAF_COMPILER_DRIVER_PHASES_H

#include <array>
#include <optional>
#include <string_view>

namespace sheaf::driver {

enum class Phase { Ast, Program, Blocks, Host, Kernels, Llvm, Asm };

struct PhaseInfo {
  Phase phase;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<PhaseInfo, 7> kPhases{{
    {Phase::Ast, "ast", "the syntax tree, as source text in normal form"},
    {Phase::Program, "program",
     "the typed program for one instance, without generics and closures"},
    {Phase::Blocks, "blocks", "the program with its tensor code formed into blocks"},
    {Phase::Host, "host", "the host code that walks one instance and records blocks, as LLVM IR"},
    {Phase::Kernels, "kernels", "the batched kernels, one a block, at the level of vectors"},
    {Phase::Llvm, "llvm", "host code and kernels as the LLVM IR that is compiled"},
    {Phase::Asm, "asm", "host code and kernels as assembly of the target"},
}};

inline std::optional<Phase> phaseByName(std::string_view name) {
  for (const PhaseInfo &info : kPhases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_PHASES_H

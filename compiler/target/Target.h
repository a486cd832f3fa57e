//===- Target.h - The machine that code is made for -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_TARGET_TARGET_H
#define SHEAF_COMPILER_TARGET_TARGET_H

#include "runtime/cpu/target.h"

#include <string>

namespace llvm {
class Triple;
} // namespace llvm

namespace sheaf::rt {
class Machine;
} // namespace sheaf::rt

namespace sheaf::target {

/// "host" for this machine, "aarch64" for any processor of that architecture, or LLVM's
/// name of one, such as x86-64-v3 or neoverse-n1. Throws UserError for a name that is none.
/// Sizes of caches that are not given (0) are asked of this machine for "host", else, and where it
/// hides them, they are those that such processors mostly have.
rt::Target detect(const std::string &cpu, rt::CacheSizes given = {});
/// A machine whose processor LLVM calls `cpu`. Only what the machine says that it has is used,
/// whatever the name promises; one that LLVM does not know is as good as any.
rt::Target ofMachine(const rt::Machine &machine, const std::string &cpu);

/// LLVM's name of architecture and system.
llvm::Triple tripleOf(const rt::Target &target);

/// Throws UserError when the target's code cannot run on this machine, naming what it lacks.
void checkRunsHere(const rt::Target &target);
bool runsHere(const rt::Target &target);

} // namespace sheaf::target

#endif // SHEAF_COMPILER_TARGET_TARGET_H

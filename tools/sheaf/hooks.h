//===- hooks.h - Where tests take hold --------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_HOOKS_H
#define SHEAF_TOOLS_SHEAF_HOOKS_H

#include "compiler/driver/Compiler.h"

namespace sheaf::tool {

/// Changes the options of every compilation. Null, but in the program sheaf-faulty
/// (tests/reports/faults.cpp).
extern void (*changeOptions)(driver::CompileOptions &options);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_HOOKS_H

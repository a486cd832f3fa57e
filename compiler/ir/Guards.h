//===- Guards.h - Checks that stand for what they guard ---------*- C++ -*-===//
#ifndef SHEAF_COMPILER_IR_GUARDS_H
#define SHEAF_COMPILER_IR_GUARDS_H

#include "llvm/ADT/StringRef.h"

namespace sheaf::ir {

/// A number that a check and the operation that it guards have in common: the check is made where
/// what that operation gives is needed. Checks without are the program's own, and always made
/// (passes::dropUnneededPass, after which there are none with).
inline constexpr llvm::StringLiteral kGuardAttr = "sheaf.guard";

} // namespace sheaf::ir

#endif // SHEAF_COMPILER_IR_GUARDS_H

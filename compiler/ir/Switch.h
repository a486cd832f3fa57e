//===- Switch.h - What can be left out --------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_IR_SWITCH_H
#define SHEAF_COMPILER_IR_SWITCH_H

#include <string_view>

namespace sheaf::ir {

/// An optimisation, or a part of one, that can be switched off by itself.
struct Switch {
  std::string_view name;
  std::string_view meaning;
  bool computesProducts = false; ///< it names who may compute products
};

} // namespace sheaf::ir

#endif // SHEAF_COMPILER_IR_SWITCH_H

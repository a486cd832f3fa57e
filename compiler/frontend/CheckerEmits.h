//===- CheckerEmits.h - What functions emit ---------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKEREMITS_H
#define SHEAF_COMPILER_FRONTEND_CHECKEREMITS_H

#include "compiler/frontend/CheckerBuiltins.h"

namespace sheaf {

class EmitCalls : BuiltinCalls {
public:
  using BuiltinCalls::BuiltinCalls;

  void addTo(BuiltinTable &table);
  /// Whether the type of the function around says that it emits this; `what` does.
  bool mayEmit(TypeRef emits, const std::string &what, SourceRange range);

private:
  E emit(std::vector<Arg> args, SourceRange range, TypeRef hint);
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKEREMITS_H

//===- CheckerDecls.h - What is asked of declarations -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERDECLS_H
#define SHEAF_COMPILER_FRONTEND_CHECKERDECLS_H

#include "compiler/frontend/CheckerState.h"

namespace sheaf {

/// What bodies ask of the declarations that they name, which are checked when they are first asked
/// for.
class DeclarationChecker {
public:
  /// The result type is known; checks the body if it takes that. False: it cannot be known.
  virtual bool needResult(FnInfo &fn, SourceRange use) = 0;
  /// Checks the body of a function without a result type, if that has not begun.
  virtual void settle(FnInfo &fn) = 0;
  /// The type of a constant is known. False: it is being checked, so it depends on itself.
  virtual bool checkLet(LetInfo &let) = 0;
  /// A function of any rank for these ranks.
  virtual FnInfo *expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks,
                              SourceRange call) = 0;

protected:
  ~DeclarationChecker() = default;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERDECLS_H

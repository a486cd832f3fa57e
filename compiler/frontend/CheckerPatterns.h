//===- CheckerPatterns.h - Checking patterns --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERPATTERNS_H
#define SHEAF_COMPILER_FRONTEND_CHECKERPATTERNS_H

#include "compiler/frontend/CheckerExtents.h"

namespace sheaf {

class PatternChecker : CheckerPart {
public:
  PatternChecker(CheckerState &state, ExtentRules &extents)
      : CheckerPart(state), extents(extents) {}

  /// A pattern for a value of this type; its names are visible from then on.
  typed::Pattern *checkPattern(const Pattern &pattern, TypeRef type);
  /// The same; `names` are those of the patterns beside it, which it must not repeat.
  typed::Pattern *checkPattern(const Pattern &pattern, TypeRef type, std::set<std::string> &names);
  /// One that is not written.
  typed::Pattern *makePattern(typed::PatternKind kind, SourceRange range, TypeRef type);
  void requireIrrefutable(const typed::Pattern &pattern, const std::string &where);
  /// Whether the arms of a match cover all values, and each of them some.
  void checkArms(const MatchExpr &syntax, const typed::MatchExpr &match);

private:
  typed::Variable *bindVariable(const std::string &name, TypeRef type, SourceRange range);

  ExtentRules &extents;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERPATTERNS_H

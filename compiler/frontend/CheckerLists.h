//===- CheckerLists.h - Calls of functions of lists -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERLISTS_H
#define SHEAF_COMPILER_FRONTEND_CHECKERLISTS_H

#include "compiler/frontend/CheckerBuiltins.h"

namespace sheaf {

/// Functions that make lists and look at them, without a function as an argument; those of extents,
/// which tensors have as well.
class ListCalls : BuiltinCalls {
public:
  ListCalls(CheckerState &state, ExtentRules &extents, OperatorCalls &operators,
            ArgumentChecker &arguments, PatternChecker &patterns)
      : BuiltinCalls(state, extents, operators, arguments), patterns(patterns) {}

  void addTo(BuiltinTable &table);

private:
  E zip(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E zipShortest(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E range(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E enumerate(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E reverse(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E len(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E shape(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E append(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E concat(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E rows(std::vector<Arg> args, SourceRange range, TypeRef hint);

  struct Zipped {
    std::vector<const typed::Expr *> lists;
    TypeRef row; ///< a tuple of an element of each
  };
  std::optional<Zipped> zipped(const std::vector<Arg> &args, const std::string &name,
                               SourceRange range);
  E extentOf(E value, size_t axis, SourceRange range);

  PatternChecker &patterns;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERLISTS_H

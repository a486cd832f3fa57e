//===- CheckerBuiltins.h - Calls of built-in functions ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERBUILTINS_H
#define SHEAF_COMPILER_FRONTEND_CHECKERBUILTINS_H

#include "compiler/frontend/CheckerOps.h"

#include <functional>
#include <map>
#include <string_view>

namespace sheaf {

/// Of a function that is built into the language beside operators: the typed call.
using BuiltinRule =
    std::function<CheckerState::E(std::vector<Arg> args, SourceRange range, TypeRef hint)>;
using BuiltinTable = std::map<std::string_view, BuiltinRule>;

/// What those that check such calls have in common.
class BuiltinCalls : protected CheckerPart {
public:
  BuiltinCalls(CheckerState &state, ExtentRules &extents, OperatorCalls &operators,
               ArgumentChecker &arguments)
      : CheckerPart(state), extents(extents), operators(operators), arguments(arguments) {}

protected:
  /// False: there are fewer or more arguments, or one has a name, which is reported.
  bool wantArgs(const std::vector<Arg> &args, size_t least, size_t most, const std::string &name,
                SourceRange range);
  E inferArg(const Arg &arg, TypeRef hint = nullptr) { return arguments.inferArg(arg, hint); }
  E checkArg(const Arg &arg, const Expectation &expected) {
    return arguments.checkArg(arg, expected);
  }
  E listArg(const Arg &arg, const std::string &what, bool allowLayers, TypeRef hint = nullptr,
            const std::string &order = {}) {
    return arguments.listArg(arg, what, allowLayers, hint, order);
  }
  /// The rule that a member is.
  template <typename Calls> static BuiltinRule rule(Calls &calls, auto member) {
    return [&calls, member](std::vector<Arg> args, SourceRange range, TypeRef hint) {
      return (calls.*member)(std::move(args), range, hint);
    };
  }

  ExtentRules &extents;
  OperatorCalls &operators;
  ArgumentChecker &arguments;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERBUILTINS_H

//===- CheckerEmits.cpp - Checking what functions emit --------------------===//
//
// What an instance emits has one type, which every function says that emits or calls one that does.
// Lambdas belong to the function that they stand in.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

namespace sheaf {

/// Whether the type of the function around says that it emits this; `what` does.
bool BodyChecker::mayEmit(TypeRef emits, const std::string &what, SourceRange range) {
  if (isError(emits))
    return true;
  if (!context->fn) {
    diags.error(range, fmt::format("a constant cannot emit, but {} does", what),
                "emit inside a function");
    return false;
  }
  const FnInfo &fn = *context->fn;
  if (fn.emits &&
      (isError(fn.emits) || (types.subsume(emits, fn.emits) && types.subsume(fn.emits, emits))))
    return true;
  std::string type = types.print(types.zonk(emits));
  if (fn.emits)
    diags.error(range,
                fmt::format("{} emits '{}', but '{}' emits '{}'", what, type, fn.name,
                            types.print(fn.emits)),
                "what an instance emits has one type");
  else
    diags.error(
        range,
        fmt::format("{} emits '{}', but the type of '{}' does not say so", what, type, fn.name),
        fmt::format("fn {}(...) -> ... emits {} = ...", fn.name, type));
  return false;
}

BodyChecker::E BodyChecker::builtinEmit(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "emit", range))
    return error(range);
  const FnInfo *fn = context->fn;
  if (!fn || !fn->emits) {
    E value = inferArg(args[0]);
    return isError(value->type) || !mayEmit(value->type, "this", range) ? error(range) : value;
  }
  E value = checkArg(args[0], {fn->emits, fmt::format("what '{}' emits", fn->name)});
  if (isError(value->type) || isError(fn->emits))
    return error(range);
  return state.makeBuiltin(typed::Builtin::Emit, {value}, range, types.unit());
}

/// A call whose value is not used has none.
void BodyChecker::checkDoStmt(const Stmt &stmt, typed::BlockExpr &block) {
  E value = infer(*stmt.value);
  TypeRef type = types.resolve(value->type);
  if (isError(type))
    return;
  if (!type->is(TypeKind::Tuple) || !type->args.empty()) {
    diags.error(stmt.range, "the value of this expression is not used",
                "name it with 'let', or make it the last line of the block");
    return;
  }
  typed::Stmt result;
  result.range = stmt.range;
  result.pattern = patterns.makePattern(typed::PatternKind::Wildcard, stmt.range, type);
  result.value = value;
  result.type = type;
  block.stmts.push_back(std::move(result));
}

} // namespace sheaf

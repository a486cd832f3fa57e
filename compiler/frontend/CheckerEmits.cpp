//===- CheckerEmits.cpp - Checking what functions emit --------------------===//
//
// What an instance emits has one type, which every function says that emits or calls one that does.
// Lambdas belong to the function that they stand in.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerImpl.h"

#include <fmt/format.h>

namespace sheaf {

void Checker::checkEmits(FnInfo &fn) {
  TypeScope scope;
  fn.emits = conversion.convertType(*fn.decl->emits, scope);
  if (!types.contains(fn.emits, TypeKind::Parameter))
    return;
  diags.error(fn.decl->emits->range,
              fmt::format("'{}' emits '{}', which differs from call to call", fn.name,
                          types.print(fn.emits)),
              "what is emitted has one type, without type parameters");
  fn.emits = types.error();
}

/// Whether the type of the function around says that it emits this; `what` does.
bool Checker::mayEmit(TypeRef emits, const std::string &what, SourceRange range) {
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

Checker::E Checker::builtinEmit(std::vector<Arg> args, SourceRange range, TypeRef) {
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
  return makeBuiltin(typed::Builtin::Emit, {value}, range, types.unit());
}

/// A call whose value is not used has none.
void Checker::checkDoStmt(const Stmt &stmt, typed::BlockExpr &block) {
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

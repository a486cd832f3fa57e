//===- CheckerEmits.cpp - Checking what functions emit --------------------===//
//
// What an instance emits has one type, which every function says that emits or calls one that does.
// Lambdas belong to the function that they stand in.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerEmits.h"

#include <fmt/format.h>

namespace sheaf {

void EmitCalls::addTo(BuiltinTable &table) { table["emit"] = rule(*this, &EmitCalls::emit); }

bool EmitCalls::mayEmit(TypeRef emits, const std::string &what, SourceRange range) {
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

EmitCalls::E EmitCalls::emit(std::vector<Arg> args, SourceRange range, TypeRef) {
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

} // namespace sheaf

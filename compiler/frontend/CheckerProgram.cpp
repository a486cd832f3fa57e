//===- CheckerProgram.cpp - Checks that need the whole file ---------------===//

#include "compiler/frontend/CheckerImpl.h"
#include "compiler/frontend/CheckerWalk.h"
#include "compiler/frontend/Draws.h"
#include "compiler/ir/Components.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace sheaf {

void Checker::checkEntry() {
  const FnInfo *entry = out.findFunction(options.entry);
  if (!entry) {
    if (options.requireEntry) {
      std::vector<std::string> names;
      for (const FnInfo *fn : out.functions)
        names.push_back(fn->name);
      std::string help = suggest(options.entry, names);
      diags.error({}, fmt::format("there is no function '{}' to begin with", options.entry),
                  help.empty() ? fmt::format("declare fn {}(...) -> ... = ..., or name another "
                                             "function with --entry",
                                             options.entry)
                               : help);
    }
    return;
  }
  const Identifier &name = entry->decl->name;
  if (!entry->packs.empty()) {
    diags.error(name.range,
                fmt::format("'{}' is where a run begins, so its tensors have a number of axes",
                            entry->name),
                fmt::format("write them instead of '*{}'", entry->packs.front()));
    return;
  }
  if (!entry->typeParams.empty())
    diags.error(name.range,
                fmt::format("'{}' is where a run begins, so it cannot be generic", entry->name),
                fmt::format("say what type '{}' is", entry->typeParams.front()->name));
  for (size_t i = 0; i < entry->paramTypes.size(); ++i)
    if (!types.isFirstClass(entry->paramTypes[i]))
      diags.error(entry->decl->params[i].type->range,
                  fmt::format("'{}' is where a run begins, so it cannot take a {}", entry->name,
                              types.contains(entry->paramTypes[i], TypeKind::Layer) ? "layer"
                                                                                    : "function"));
  // Data bring their own extents, and those inside data types are nowhere compared.
  std::function<bool(TypeRef, bool)> hasDimInData = [&](TypeRef type, bool inside) {
    type = types.resolve(type);
    inside |= type->is(TypeKind::Data);
    if (type->is(TypeKind::Tensor) && inside)
      for (const Dim &dim : type->tensor.dims)
        for (const std::string &symbol : dims.resolve(dim).symbols())
          if (std::any_of(entry->dims.begin(), entry->dims.end(),
                          [&](const DimParam &param) { return param.symbol == symbol; }))
            return true;
    return std::any_of(type->args.begin(), type->args.end(),
                       [&](TypeRef arg) { return hasDimInData(arg, inside); });
  };
  for (size_t i = 0; i < entry->paramTypes.size(); ++i)
    if (hasDimInData(entry->paramTypes[i], false))
      diags.error(entry->decl->params[i].type->range,
                  fmt::format("'{}' is where a run begins, so it cannot take '{}', which has a "
                              "per-instance dim inside a data type",
                              entry->name, types.print(entry->paramTypes[i])),
                  "write '?' for the dim; each value taken from the data has an extent of its own");
}

void Checker::checkCallGraph() {
  std::map<const FnInfo *, unsigned> numbers;
  for (const FnInfo &fn : storage.fns)
    numbers.emplace(&fn, numbers.size());
  std::vector<std::vector<unsigned>> next(storage.fns.size());
  for (const BodyChecker::CallEdge &edge : bodies.calls())
    next[numbers.at(edge.caller)].push_back(numbers.at(edge.callee->fn));
  Components components = findComponents(next);
  for (FnInfo &fn : storage.fns) {
    fn.component = components.of[numbers.at(&fn)];
    fn.recursive = components.cyclic[numbers.at(&fn)];
  }
  std::set<const FnInfo *> reported;
  for (const BodyChecker::CallEdge &edge : bodies.calls()) {
    const FnInfo &callee = *edge.callee->fn;
    if (edge.caller->component != callee.component || reported.contains(edge.caller))
      continue;
    for (size_t i = 0; i < callee.typeParams.size(); ++i) {
      TypeRef arg = types.resolve(edge.callee->typeArgs[i]);
      if (arg->is(TypeKind::Parameter) || !types.contains(arg, TypeKind::Parameter))
        continue;
      reported.insert(edge.caller);
      diags.error(edge.range,
                  fmt::format("this recursive call of '{}' is at '{}' for '{}', a larger type at "
                              "each call",
                              callee.name, types.print(arg), callee.typeParams[i]->name),
                  "a generic function must call itself with its own type parameters");
      break;
    }
    for (const typed::Expr *arg : edge.args) {
      if (reported.contains(edge.caller) || !wrapsParameter(arg))
        continue;
      reported.insert(edge.caller);
      diags.error(arg->range,
                  fmt::format("this recursive call of '{}' passes a function that uses a function "
                              "parameter of '{}', a larger function at each call",
                              callee.name, edge.caller->name),
                  "pass the parameter on as it is");
    }
  }
}

void Checker::checkConstants() {
  Draws draws(out, /*training=*/true);
  for (const LetInfo &let : storage.lets)
    if (!let.isLayer && draws.mayDraw(*let.value))
      diags.error(let.value->range,
                  fmt::format("'{}' is a constant, so it cannot be random", let.name),
                  "draw inside a function");
}

/// Whether a function argument is a lambda that uses a function parameter of its surroundings,
/// itself or through a `let`. Passing the parameter itself on is not wrapping it.
bool Checker::wrapsParameter(const typed::Expr *function) const {
  std::vector<const typed::Expr *> waiting = {function};
  std::set<const typed::Expr *> seen;
  bool wraps = false;
  while (!waiting.empty() && !wraps) {
    const typed::Expr *expr = waiting.back();
    waiting.pop_back();
    if (!seen.insert(expr).second)
      continue;
    if (const auto *local = expr->as<typed::LocalExpr>()) {
      if (local->variable->staticValue)
        waiting.push_back(local->variable->staticValue);
      continue;
    }
    const auto *lambda = expr->as<typed::LambdaExpr>();
    if (!lambda)
      continue;
    typed::walk(lambda->body, [&](const typed::Expr &inner) {
      const auto *local = inner.as<typed::LocalExpr>();
      if (!local || !types.resolve(local->type)->is(TypeKind::Function))
        return;
      if (local->variable->staticValue)
        waiting.push_back(local->variable->staticValue);
      else
        wraps = true;
    });
  }
  return wraps;
}

} // namespace sheaf

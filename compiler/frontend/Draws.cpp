//===- Draws.cpp - What draws random numbers ------------------------------===//

#include "compiler/frontend/Draws.h"

#include "compiler/frontend/CheckerWalk.h"

namespace sheaf {
namespace {

bool isSite(const typed::Expr &expr) {
  using typed::Builtin;
  if (const auto *apply = expr.as<typed::ApplyExpr>())
    return apply->op->draws();
  if (const auto *builtin = expr.as<typed::BuiltinExpr>())
    return builtin->builtin == Builtin::Map || builtin->builtin == Builtin::Fold ||
           builtin->builtin == Builtin::Scan || builtin->builtin == Builtin::Filter ||
           builtin->builtin == Builtin::Loop;
  return expr.is(typed::ExprKind::Call);
}

} // namespace

Draws::Draws(const CheckedModule &checked, bool training)
    : training(training), functions(checked.functions) {
  for (const LayerInfo *layer : checked.layers)
    functions.insert(functions.end(), layer->fns.begin(), layer->fns.end());
  for (size_t i = 0; i < functions.size(); ++i)
    functions.insert(functions.end(), functions[i]->expansions.begin(),
                     functions[i]->expansions.end());
  std::map<const FnInfo *, std::vector<const FnInfo *>> callers;
  std::vector<const FnInfo *> work;
  for (const FnInfo *fn : functions) {
    number(*fn);
    typed::walk(fn->body, [&](const typed::Expr &expr) {
      const auto *apply = expr.as<typed::ApplyExpr>();
      if (apply && draws(*apply->op) && drawing.insert(fn).second)
        work.push_back(fn);
      if (const auto *callee = expr.as<typed::FunctionExpr>())
        callers[callee->fn].push_back(fn);
    });
  }
  while (!work.empty()) {
    const FnInfo *fn = work.back();
    work.pop_back();
    for (const FnInfo *caller : callers[fn])
      if (drawing.insert(caller).second)
        work.push_back(caller);
  }
}

void Draws::number(const FnInfo &fn) {
  // By place: named arguments stand in the order of the parameters in the tree.
  std::multimap<uint32_t, const typed::Expr *> found;
  typed::walk(fn.body, [&](const typed::Expr &expr) {
    if (isSite(expr))
      found.emplace(expr.range.begin, &expr);
  });
  uint32_t next = 0;
  for (auto [place, expr] : found)
    if (sites.try_emplace(expr, next).second)
      ++next;
}

bool Draws::mayDraw(const typed::Expr &expr) const {
  bool found = false;
  typed::walk(&expr, [&](const typed::Expr &inner) {
    const auto *apply = inner.as<typed::ApplyExpr>();
    const auto *callee = inner.as<typed::FunctionExpr>();
    found |= (apply && draws(*apply->op)) || (callee && mayDraw(*callee->fn));
  });
  return found;
}

} // namespace sheaf

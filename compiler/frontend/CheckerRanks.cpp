//===- CheckerRanks.cpp - Functions of tensors of any rank ----------------===//
//
// `fn apply(x: f32[*rows, n]) -> f32[*rows, m]` is expanded for each number of axes that calls
// bring: `f32[rows0, n]`, `f32[rows0, rows1, n]`. An expansion is a function like any other, with
// per-instance dims for `*rows`. That for one extent is always made, so that what nothing calls is
// checked as well.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerImpl.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {
namespace {

/// The names of the extents `*rows` in a type, in order, with their places.
void collectPacks(const TypeExpr &type, std::vector<Identifier> &packs) {
  auto ofDims = [&](const std::vector<DimExpr> &dims) {
    for (const DimExpr &dim : dims)
      if (dim.isPack)
        packs.push_back({dim.expr->to<NameExpr>().name, dim.range});
  };
  auto ofAll = [&](const std::vector<const TypeExpr *> &types) {
    for (const TypeExpr *inner : types)
      collectPacks(*inner, packs);
  };
  switch (type.kind) {
  case TypeExprKind::Tensor:
    return ofDims(type.to<TensorTypeExpr>().dims);
  case TypeExprKind::Token:
    if (type.to<TokenTypeExpr>().dims)
      ofDims(*type.to<TokenTypeExpr>().dims);
    return;
  case TypeExprKind::List:
    return collectPacks(*type.to<ListTypeExpr>().element, packs);
  case TypeExprKind::Tuple:
    return ofAll(type.to<TupleTypeExpr>().elements);
  case TypeExprKind::Function:
    ofAll(type.to<FunctionTypeExpr>().params);
    return collectPacks(*type.to<FunctionTypeExpr>().result, packs);
  case TypeExprKind::Named:
    return ofAll(type.to<NamedTypeExpr>().args);
  default:
    return;
  }
}

} // namespace

bool Checker::makeGeneric(FnInfo &fn) {
  std::vector<Identifier> packs;
  for (const FnParam &param : fn.decl->params)
    if (param.type)
      collectPacks(*param.type, packs);
  if (packs.empty())
    return false;
  for (const Identifier &pack : packs)
    if (std::find(fn.packs.begin(), fn.packs.end(), pack.name) == fn.packs.end())
      fn.packs.push_back(pack.name);
  if (!fn.decl->result)
    diags.error(fn.decl->name.range,
                fmt::format("the result type of '{}' must be written, as its parameters are of any "
                            "rank",
                            fn.name),
                fmt::format("fn {}(...) -> f32[*{}, ...] = ...", fn.name, fn.packs.front()));
  std::map<std::string, size_t> ranks;
  for (const std::string &pack : fn.packs)
    ranks.emplace(pack, 1);
  expansionOf(fn, std::move(ranks), fn.decl->name.range);
  return true;
}

FnInfo *Checker::expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks, SourceRange call) {
  for (FnInfo *made : fn.expansions)
    if (made->ranks == ranks)
      return made;
  FnInfo &made = storage.fns.emplace_back();
  made.name = fn.name;
  made.isUsed = fn.isUsed;
  made.qualifiedName = fn.qualifiedName;
  made.decl = fn.decl;
  made.layer = fn.layer;
  made.generic = &fn;
  made.ranks = std::move(ranks);
  made.expandedAt = call;
  fn.expansions.push_back(&made);
  checkSignature(made);
  if (!made.result)
    made.result = types.error(); // it is not written, which has been reported
  return &made;
}

/// Which number of extents each `*rows` of a type stands for, given the type of an argument.
void BodyChecker::ranksOf(const TypeExpr &written, TypeRef given,
                          std::map<std::string, size_t> &ranks) {
  given = types.resolve(given);
  const std::vector<DimExpr> *syntax = nullptr;
  if (const auto *tensor = written.as<TensorTypeExpr>())
    syntax = &tensor->dims;
  else if (const auto *token = written.as<TokenTypeExpr>(); token && token->dims)
    syntax = &*token->dims;
  if (syntax && given->is(TypeKind::Tensor)) {
    std::vector<std::string> names;
    for (const DimExpr &dim : *syntax)
      if (dim.isPack)
        names.push_back(dim.expr->to<NameExpr>().name);
    size_t others = syntax->size() - names.size(), all = given->tensor.dims.size();
    if (names.size() == 1)
      ranks.try_emplace(names.front(), all > others ? all - others : 0);
  } else if (const auto *list = written.as<ListTypeExpr>(); list && given->is(TypeKind::List)) {
    ranksOf(*list->element, given->element(), ranks);
  } else if (const auto *tuple = written.as<TupleTypeExpr>();
             tuple && given->is(TypeKind::Tuple) && given->args.size() == tuple->elements.size()) {
    for (size_t i = 0; i < tuple->elements.size(); ++i)
      ranksOf(*tuple->elements[i], given->args[i], ranks);
  }
}

BodyChecker::E BodyChecker::callOfAnyRank(FnInfo &fn, E layer, std::vector<Arg> args,
                                          SourceRange calleeRange, SourceRange range,
                                          uint32_t siteId) {
  constexpr size_t mostAxes = 8;
  std::vector<std::string> names;
  for (const FnParam &param : fn.decl->params) {
    const auto *binding = param.pattern->as<BindingPattern>();
    names.push_back(binding ? binding->name : std::string());
  }
  if (!arrange(args, names, fn.name, range)) {
    for (const Arg &arg : args)
      if (arg.syntax && !arg.syntax->is<LambdaExpr>() && !namesFunction(*arg.syntax))
        inferArg(arg);
    return error(range);
  }
  std::map<std::string, size_t> ranks;
  bool bad = false;
  for (size_t i = 0; i < args.size(); ++i) {
    std::vector<Identifier> packs;
    const TypeExpr *written = fn.decl->params[i].type;
    if (!written || written->is<FunctionTypeExpr>())
      continue;
    collectPacks(*written, packs);
    if (packs.empty())
      continue;
    args[i].typed = inferArg(args[i]);
    bad |= isError(args[i].typed->type);
    ranksOf(*written, args[i].typed->type, ranks);
  }
  if (bad)
    return error(range);
  for (const std::string &pack : fn.packs) {
    size_t rank = ranks.try_emplace(pack, 1).first->second;
    if (rank > mostAxes)
      return fail(range, fmt::format("'*{}' of '{}' stands for {} extents here, but at most for {}",
                                     pack, fn.name, rank, mostAxes));
  }
  return callFunction(*declarations.expansionOf(fn, std::move(ranks), range), layer,
                      std::move(args), calleeRange, range, siteId);
}

} // namespace sheaf

//===- CheckerLoops.cpp - Checking loops ----------------------------------===//
//
// `map` and `filter`, and those that carry a value from step to step: `fold`, `scan` and `loop`.
//
// The type of what is carried is written at a function's parameter, or is what the context asks for
// (that may leave extents open, or know lengths of lists). Else it is that of the start value,
// whose lists may grow; if a step does not fit it, the step is checked as what it makes of that
// type, and extents that differ become `?`, until one more step changes nothing.
//
// Extents `?` that are equal when a loop starts and that a step of such leaves equal are one extent
// in the step, the condition and the result (tiedDim): a loop may grow keys and values.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerLoops.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

void LoopCalls::addTo(BuiltinTable &table) {
  table["map"] = rule(*this, &LoopCalls::map);
  table["filter"] = rule(*this, &LoopCalls::filter);
  table["fold"] = rule(*this, &LoopCalls::fold);
  table["scan"] = rule(*this, &LoopCalls::scan);
  table["loop"] = rule(*this, &LoopCalls::loop);
}

//===----------------------------------------------------------------------===//
// Over lists, without a value that is carried
//===----------------------------------------------------------------------===//

LoopCalls::E LoopCalls::map(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 2, 2, "map", range))
    return error(range);
  E list = listArg(args[1], "the second argument of 'map'", true);
  TypeRef element = isError(list->type) ? types.error() : types.resolve(list->type)->element();
  TypeRef result = types.variable(/*keepsLengths=*/true);
  E function = checkArg(args[0], {types.function({element}, result), "the function of 'map'"});
  if (isError(list->type) || isError(function->type))
    return state.makeBuiltin(typed::Builtin::Map, {function, list}, range, types.error());
  return state.makeBuiltin(
      typed::Builtin::Map, {function, list}, range,
      types.list(types.resolve(function->type)->result(), extents.lengthOf(*list)));
}

LoopCalls::E LoopCalls::filter(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  if (!wantArgs(args, 2, 2, "filter", range))
    return error(range);
  E list = listArg(args[1], "the second argument of 'filter'", false, hint);
  TypeRef element = isError(list->type) ? types.error() : types.resolve(list->type)->element();
  E function =
      checkArg(args[0], {types.function({element}, types.boolType()), "the function of 'filter'"});
  bool bad = isError(list->type) || isError(function->type);
  return state.makeBuiltin(typed::Builtin::Filter, {function, list}, range,
                           bad ? types.error() : types.list(element));
}

//===----------------------------------------------------------------------===//
// What is carried
//===----------------------------------------------------------------------===//

/// Checks the bodies of functions without result types, and constants, that an expression may
/// speak of: what is tried and taken back is then no more than the expression itself.
void LoopCalls::settleNames(const Expr &expr) {
  auto settleNamed = [&](const Named *named) {
    if (!named)
      return;
    if (auto *fn = std::get_if<FnInfo *>(&named->what))
      declarations.settle(**fn);
    if (auto *let = std::get_if<LetInfo *>(&named->what))
      declarations.checkLet(**let);
  };
  if (const auto *name = expr.as<NameExpr>()) {
    settleNamed(state.findGlobal(name->name));
    if (context->layer)
      for (FnInfo *fn : context->layer->fns)
        if (fn->name == name->name)
          declarations.settle(*fn);
  } else if (const auto *field = expr.as<FieldExpr>()) {
    if (std::optional<size_t> file = state.qualifier(*field->base))
      settleNamed(std::as_const(state).findMember(*file, field->field.name));
    for (LayerInfo &layer : storage.layers)
      for (FnInfo *fn : layer.fns)
        if (fn->name == field->field.name)
          declarations.settle(*fn);
  }
  forEachChild(expr, [&](const Expr &child) { settleNames(child); });
}

LoopCalls::Trial::Trial(LoopCalls &checker)
    : checker(checker), reported(checker.diags.mark()), bound(checker.types.boundMark()),
      opened(checker.context->opened.size()), calls(checker.bodies.beginTrial()) {}

LoopCalls::Trial::~Trial() {
  checker.bodies.endTrial(calls, isKept);
  if (isKept)
    return;
  checker.diags.forgetSince(reported);
  checker.types.unbindSince(bound);
  checker.context->opened.resize(opened);
}

bool LoopCalls::Trial::good() const { return checker.diags.errorCount() == reported.errors; }

/// The type that the first parameter of one of the functions is written with; an extent that it
/// names is any. Null: none is written.
TypeRef LoopCalls::writtenCarried(const std::vector<const Arg *> &functions) {
  for (const Arg *function : functions) {
    const auto *lambda = function->syntax ? function->syntax->as<LambdaExpr>() : nullptr;
    if (!lambda || lambda->params.empty() || !lambda->params[0].type)
      continue;
    TypeScope scope;
    scope.newDims = NewDims::Bind;
    return types.mapDims(
        conversion.convertType(*lambda->params[0].type, scope),
        [&](const Dim &dim) { return dims.hasFreeVariables(dim) ? unknownDim() : dim; });
  }
  return nullptr;
}

/// Leaves those of one label together that are together in both. Whether that parts some.
static bool refine(std::vector<size_t> &labels, const std::vector<size_t> &others) {
  if (labels.size() != others.size()) {
    bool had = !labels.empty();
    labels.clear();
    return had;
  }
  std::vector<size_t> finer(labels.size());
  for (size_t i = 0; i < labels.size(); ++i)
    for (finer[i] = 0; labels[finer[i]] != labels[i] || others[finer[i]] != others[i];)
      ++finer[i];
  return std::exchange(labels, finer) != finer;
}

/// The type with the extents `?` that a step changes, given the type of the start value; null where
/// extents are not what keeps a step from fitting.
/// `labels`: which extents of the start value are equal; then, which are in every round.
TypeRef LoopCalls::widenCarried(const CarryingStep &step, const Arg &begin, TypeRef start,
                                std::vector<size_t> &labels) {
  constexpr int mostSteps = 64;
  TypeRef carried = start;
  for (int i = 0; i < mostSteps; ++i) {
    TypeRef next;
    bool fits;
    {
      Trial trial(*this);
      TypeRef result = types.variable();
      E function = checkStep(step, extents.tieExtents(carried, labels), result);
      if (!trial.good() || isError(function->type))
        return nullptr;
      next = types.zonk(result, /*literals=*/false);
      if (refine(labels, extents.labelsOf(next)))
        continue;
      fits = types.subsume(next, carried);
      // Two numbers that differ are a mistake, as they are in branches.
      if (fits && !types.join(start, next))
        return nullptr;
    }
    if (fits)
      return carried;
    if (begin.syntax) {
      TypeRef before = carried;
      carried = bodies.withLiteralsOf(*begin.syntax, carried, next);
      start = bodies.withLiteralsOf(*begin.syntax, start, next);
      if (carried != before)
        continue;
    }
    // An extent that is `?` already, of one value or another, is printed as one that is opened
    // here.
    bool opened = false;
    auto opens = [&](const Dim &a, const Dim &b) {
      bool opensIt = isUnknown(b) || !dims.same(a, b);
      opened |= opensIt && !isUnknown(a);
      return opensIt;
    };
    TypeRef wider =
        types.widen(carried, next, opens, [&](TypeRef part) { return types.forgetLengths(part); });
    if (!wider || (!opened && types.print(wider) == types.print(carried)))
      return nullptr;
    carried = wider;
  }
  return nullptr;
}

/// Which extents of what a loop carries, given its type, are equal in every round: they are when it
/// starts, and what a step makes of such has them equal.
std::vector<size_t> LoopCalls::provenTies(const CarryingStep &step, const Arg &start,
                                          TypeRef wanted) {
  size_t unknown = 0;
  extents.mapExtents(wanted, [&](const Dim &dim) {
    unknown += isUnknown(dim);
    return dim;
  });
  std::vector<size_t> labels;
  if (unknown < 2 || !start.syntax)
    return labels;
  {
    Trial trial(*this);
    E value = inferArg(start);
    if (trial.good() && !isError(value->type))
      labels = extents.labelsOf(value->type);
  }
  const std::vector<size_t> none = extents.labelsOf(extents.tieExtents(wanted, {}));
  while (extents.labelsOf(extents.tieExtents(wanted, labels)) != none) {
    Trial trial(*this);
    TypeRef result = types.variable();
    E function = checkStep(step, extents.tieExtents(wanted, labels), result);
    if (!trial.good() || isError(function->type))
      return {};
    if (!refine(labels, extents.labelsOf(types.zonk(result, /*literals=*/false))))
      return labels;
  }
  return {};
}

LoopCalls::E LoopCalls::checkStep(const CarryingStep &step, TypeRef carried, TypeRef result) {
  std::vector<TypeRef> params = {carried};
  params.insert(params.end(), step.others.begin(), step.others.end());
  Expectation expected = {types.function(std::move(params), result),
                          fmt::format("{} of '{}'", step.what, step.loop)};
  expected.resultHint = extents.tieExtents(carried, {});
  expected.keepsTies = true;
  expected.help = oneAccumulator;
  if (types.resolve(carried)->is(TypeKind::Tensor))
    expected.help += fmt::format("; if an extent changes, write the parameter's type with '?', as "
                                 "in {} ...",
                                 step.others.empty() ? "|x: f32[?, h]|" : "|acc: f32[?, h], x|");
  return checkArg(step.function, expected);
}

LoopCalls::Carried LoopCalls::checkCarried(const CarryingStep &step, const Arg &start,
                                           TypeRef wanted) {
  std::string what = fmt::format("the start value of '{}'", step.loop);
  if (wanted)
    wanted = extents.tieExtents(wanted, {});
  Carried result;
  result.type = wanted;
  if (wanted) {
    result.start = checkArg(start, {wanted, what});
  } else {
    result.start = inferArg(start);
    result.type = types.forgetLengths(result.start->type);
  }
  if (!isError(result.start->type) && !types.isFirstClass(result.start->type))
    result.start = fail(result.start->range, what + " cannot be a function or layer");
  if (isError(result.start->type))
    result.type = types.error();

  const Expr *syntax = step.function.syntax;
  std::pair key(syntax, context->ranks);
  if (wanted || !syntax || !types.isSound(result.type)) {
    TypeRef plain = result.type;
    if (wanted && syntax && types.isSound(plain)) {
      auto known = carriedTypes.find(key);
      if (known == carriedTypes.end()) {
        settleNames(*syntax);
        known = carriedTypes.emplace(key, Widened{nullptr, provenTies(step, start, plain)}).first;
      }
      result.type = extents.tieExtents(plain, known->second.labels);
    }
    result.step = checkStep(step, result.type, plain);
    return result;
  }
  // Literals of the start value are what the step makes of them: 0.0 is an f32 beside one.
  auto begun = [&](TypeRef carried) {
    TypeRef type = types.resolve(result.type);
    return start.syntax ? bodies.withLiteralsOf(*start.syntax, type, carried) : type;
  };
  auto isOpen = [](const Dim &, const Dim &to) { return isUnknown(to); };
  TypeRef carried = nullptr;
  std::vector<size_t> labels;
  if (auto known = carriedTypes.find(key); known != carriedTypes.end()) {
    carried = known->second.type;
    labels = known->second.labels;
  } else {
    settleNames(*syntax);
    {
      Trial trial(*this);
      result.step = checkStep(step, result.type, result.type);
      if (trial.good() && !isError(result.step->type)) {
        trial.keep();
        return result;
      }
    }
    labels = extents.labelsOf(result.start->type);
    carried = widenCarried(step, start, result.type, labels);
    // When this is checked again, there are other symbols for what is around.
    TypeRef later = carried ? types.widen(begun(carried), carried, isOpen,
                                          [&](TypeRef part) { return extents.close(part, 0); })
                            : nullptr;
    carriedTypes.emplace(std::move(key), Widened{later, labels});
  }
  if (carried)
    if (TypeRef wider =
            types.widen(begun(carried), carried, isOpen, [](TypeRef part) { return part; })) {
      result.type = wider;
      if (start.syntax)
        result.start = bodies.literalsAs(*start.syntax, result.start, wider);
      result.start = bodies.require(result.start, {wider, what});
    }
  TypeRef plain = result.type;
  if (carried)
    result.type = extents.tieExtents(plain, labels);
  result.step = checkStep(step, result.type, plain);
  return result;
}

//===----------------------------------------------------------------------===//
// fold, scan, loop
//===----------------------------------------------------------------------===//

LoopCalls::E LoopCalls::fold(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  return foldOrScan(std::move(args), range, hint, false);
}

LoopCalls::E LoopCalls::scan(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  return foldOrScan(std::move(args), range, hint, true);
}

/// What the place of a loop says of what it carries, if that is more than the start value says.
TypeRef LoopCalls::wantedCarried(TypeRef hint) {
  if (!hint)
    return nullptr;
  hint = types.forgetLengths(hint, /*thatAreFree=*/true);
  return types.containsUnknown(hint) || types.containsLength(hint) ? hint : nullptr;
}

LoopCalls::E LoopCalls::foldOrScan(std::vector<Arg> args, SourceRange range, TypeRef hint,
                                   bool scan) {
  std::string name = scan ? "scan" : "fold";
  if (!wantArgs(args, 3, 3, name, range))
    return error(range);
  E list = listArg(args[2], fmt::format("the third argument of '{}'", name), true, nullptr,
                   fmt::format("it is written {}(f, start, xs)", name));
  TypeRef element = isError(list->type) ? types.error() : types.resolve(list->type)->element();
  size_t before = diags.errorCount();
  TypeRef carried = writtenCarried({&args[0]});
  if (diags.errorCount() != before)
    return error(range);
  if (!carried)
    if (TypeRef wanted = wantedCarried(hint))
      carried = !scan                        ? wanted
                : wanted->is(TypeKind::List) ? types.resolve(wanted->element())
                                             : nullptr;
  Carried loop = checkCarried({name, "the function", args[0], {element}}, args[1], carried);
  bool bad = isError(list->type) || isError(loop.start->type) || isError(loop.step->type);
  TypeRef type = bad    ? types.error()
                 : scan ? types.list(extents.tieExtents(loop.type, {}), extents.lengthOf(*list))
                        : loop.type;
  return state.makeBuiltin(scan ? typed::Builtin::Scan : typed::Builtin::Fold,
                           {loop.step, loop.start, list}, range, type);
}

LoopCalls::E LoopCalls::loop(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  if (!wantArgs(args, 3, 3, "loop", range))
    return error(range);
  constexpr const char *form = "it is written loop(|x| CONDITION, |x| STEP, start)";
  if (args[2].syntax && args[2].syntax->is<LambdaExpr>())
    return fail(args[2].range, "the start value of 'loop' must be a value, but this is a function",
                form);
  for (size_t i : {0, 1})
    if (args[i].syntax && !args[i].syntax->is<LambdaExpr>() &&
        !bodies.namesFunction(*args[i].syntax) &&
        !(args[i].syntax->is<NameExpr>() && state.findLocal(args[i].syntax->to<NameExpr>().name)))
      return fail(args[i].range,
                  fmt::format("the {} of 'loop' must be a function of what the loop carries",
                              i == 0 ? "condition" : "step"),
                  form);
  size_t before = diags.errorCount();
  TypeRef carried = writtenCarried({&args[1], &args[0]});
  if (diags.errorCount() != before)
    return error(range);
  if (!carried)
    carried = wantedCarried(hint);
  Carried loop = checkCarried({"loop", "the step", args[1], {}}, args[2], carried);
  bool bad = isError(loop.start->type) || isError(loop.step->type);
  E condition =
      checkArg(args[0], {types.function({bad ? types.error() : loop.type}, types.boolType()),
                         "the condition of 'loop'"});
  bad |= isError(condition->type);
  return state.makeBuiltin(typed::Builtin::Loop, {condition, loop.step, loop.start}, range,
                           bad ? types.error() : loop.type);
}

} // namespace sheaf

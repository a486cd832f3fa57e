//===- CheckerLambdas.cpp - Checking functions as values ------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

BodyChecker::E BodyChecker::checkLambda(const LambdaExpr &expr, const Expectation &expected) {
  TypeRef want = types.resolve(expected.type);
  bool known = want->is(TypeKind::Function);
  if (known && want->paramCount() != expr.params.size()) {
    diags.error(expr.range,
                fmt::format("{} takes {} argument{}, but this one has {} parameter{}",
                            expected.what, want->paramCount(), want->paramCount() == 1 ? "" : "s",
                            expr.params.size(), expr.params.size() == 1 ? "" : "s"));
    known = false;
  }
  auto *lambda = make<typed::LambdaExpr>(expr.range, nullptr);
  lambda->enclosing = context->fn;
  size_t mark = context->opened.size();
  CheckerState::Scope scope(state);
  std::set<std::string> names;
  for (size_t i = 0; i < expr.params.size(); ++i) {
    const FnParam &param = expr.params[i];
    TypeRef given = known ? types.resolve(want->args[i]) : types.error();
    std::vector<typed::OpenedDim> openedDims;
    TypeRef type = extents.open(given, openedDims);
    if (param.type) {
      TypeScope typeScope;
      typeScope.newDims = NewDims::Bind;
      typeScope.allowLayer = true;
      TypeRef annotation = conversion.convertType(*param.type, typeScope);
      if (given->is(TypeKind::Variable)) {
        given = types.mapDims(annotation, [&](const Dim &dim) {
          return dims.hasFreeVariables(dim) ? unknownDim() : dim;
        });
        types.subsume(want->args[i], given);
        type = extents.open(given, openedDims);
      }
      if (!isError(type) && !types.subsume(type, annotation)) {
        diags.error(param.type->range,
                    fmt::format("this parameter is given '{}', but its type is written '{}'",
                                types.print(given), types.print(annotation)) +
                        compareInNumbers(given, annotation));
        type = types.error();
      }
      if (isError(type)) {
        for (const auto &[name, dim] : typeScope.made)
          context->locals.push_back({name, Dim::fresh()});
        if (typeScope.made.empty())
          type = annotation;
      } else {
        type = extents.mergeAnnotation(annotation, type);
        conversion.bindAnnotationDims(typeScope);
      }
    }
    typed::Pattern *pattern = patterns.checkPattern(*param.pattern, type, names);
    pattern->opened.insert(pattern->opened.end(), openedDims.begin(), openedDims.end());
    patterns.requireIrrefutable(*pattern, "a parameter");
    lambda->params.push_back(pattern);
    lambda->paramTypes.push_back(given);
  }
  finishLambda(*lambda, *expr.body, nullptr, known ? want->result() : nullptr, expected, mark);
  return lambda;
}

/// Checks the body (as written, or already typed) against the result type wanted.
void BodyChecker::finishLambda(typed::LambdaExpr &lambda, const Expr &syntax, E body,
                               TypeRef result, const Expectation &expected, size_t mark) {
  Expectation want = expected;
  want.what = "the result of " + expected.what;
  want.keepsTies = false;
  TypeRef resolved = result ? types.resolve(result) : nullptr;
  if (!body && resolved && !resolved->is(TypeKind::Variable)) {
    want.type = resolved;
    body = check(syntax, want);
    lambda.resultType = resolved;
  } else {
    if (!body)
      body = infer(syntax, expected.resultHint ? expected.resultHint : resolved);
    TypeRef closed = extents.close(body->type, mark, expected.keepsTies);
    if (!isError(closed) && !types.isFirstClass(closed)) {
      diags.error(body->range,
                  fmt::format("{} cannot return a {}", expected.what,
                              types.contains(closed, TypeKind::Layer) ? "layer" : "function"));
      closed = types.error();
    }
    if (resolved && !isError(closed)) {
      want.type = resolved;
      TypeRef before = types.zonk(resolved);
      if (!types.subsume(closed, resolved, expected.postponed)) {
        want.type = resolved->is(TypeKind::Variable) ? resolved : before;
        reportMismatch(body->range, want, closed);
        closed = types.error();
      }
    }
    lambda.resultType = isError(closed) ? closed : resolved ? types.resolve(resolved) : closed;
  }
  lambda.body = body;
  bool bad = isError(body->type) || isError(lambda.resultType);
  lambda.type = bad ? types.error() : types.function(lambda.paramTypes, lambda.resultType);
}

BodyChecker::E BodyChecker::inferStandaloneLambda(const LambdaExpr &expr) {
  std::vector<TypeRef> params;
  bool bad = false;
  for (const FnParam &param : expr.params) {
    if (!param.type) {
      diags.error(param.pattern->range, "the type of this parameter is not known here",
                  "write it: |x: TYPE| ...");
      bad = true;
      continue;
    }
    params.push_back(types.variable());
  }
  if (bad)
    return error(expr.range);
  return checkLambda(
      expr,
      {types.function(std::move(params), types.variable(/*keepsLengths=*/true)), "this function"});
}

bool BodyChecker::namesFunction(const Expr &expr) const {
  // Whether a field's base is a layer shows when it is called.
  auto isFunction = [](const Named &named) {
    if (const auto *ctor = std::get_if<CheckerState::ConstructorRef>(&named.what))
      return !ctor->data->constructors[ctor->index].fields.empty();
    return std::holds_alternative<FnInfo *>(named.what);
  };
  if (const auto *field = expr.as<FieldExpr>()) {
    std::optional<size_t> file = state.qualifier(*field->base);
    const Named *named = file ? state.findMember(*file, field->field.name) : nullptr;
    return !named || isFunction(*named);
  }
  const auto *name = expr.as<NameExpr>();
  if (!name || state.findLocal(name->name))
    return false;
  if (context->layer)
    for (const FnInfo *fn : context->layer->fns)
      if (fn->name == name->name)
        return true;
  if (const Named *named = state.findGlobal(name->name))
    return isFunction(*named);
  const ops::Op *op = ops::OpTable::get().find(name->name);
  return builtins.contains(name->name) || (op && !op->internal);
}

BodyChecker::E BodyChecker::expandFunctionName(const Expr &expr, const Expectation &expected) {
  TypeRef want = types.resolve(expected.type);
  auto *lambda = make<typed::LambdaExpr>(expr.range, nullptr);
  lambda->enclosing = context->fn;
  size_t mark = context->opened.size();
  std::vector<Arg> args;
  for (size_t i = 0; i < want->paramCount(); ++i) {
    TypeRef given = types.resolve(want->args[i]);
    typed::Pattern *pattern = patterns.makePattern(typed::PatternKind::Bind, expr.range, nullptr);
    pattern->type = extents.open(given, pattern->opened);
    typed::Variable &variable = storage.variables.emplace_back();
    variable.name = fmt::format("x{}", i);
    variable.type = pattern->type;
    variable.range = expr.range;
    pattern->variable = &variable;
    lambda->params.push_back(pattern);
    lambda->paramTypes.push_back(given);
    auto *value = make<typed::LocalExpr>(expr.range, pattern->type);
    value->variable = &variable;
    args.push_back({nullptr, value, expr.range, nullptr});
  }
  E body = extents.opened(callNamed(expr, std::move(args), expr.range, ~0u, nullptr));
  if (isError(body->type))
    return error(expr.range);
  finishLambda(*lambda, expr, body, want->result(), expected, mark);
  return lambda;
}

} // namespace sheaf

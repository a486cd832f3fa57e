//===- CheckerBranches.cpp - Checking blocks, branches, matches -----------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

BodyChecker::E BodyChecker::inferBlock(const BlockExpr &expr, const Expectation *expected,
                                       TypeRef hint) {
  CheckerState::Scope scope(state);
  auto *block = make<typed::BlockExpr>(expr.range, nullptr);
  for (const Stmt &stmt : expr.stmts) {
    switch (stmt.kind) {
    case Stmt::Kind::Let:
      checkLetStmt(stmt, *block);
      break;
    case Stmt::Kind::Check:
      checkCheckStmt(stmt, *block);
      break;
    case Stmt::Kind::Do:
      checkDoStmt(stmt, *block);
      break;
    }
  }
  E result = expected ? check(*expr.result, *expected) : infer(*expr.result, hint);
  block->result = result;
  block->type = result->type;
  return block;
}

void BodyChecker::checkLetStmt(const Stmt &stmt, typed::BlockExpr &block) {
  typed::Stmt result;
  result.range = stmt.range;
  std::vector<typed::OpenedDim> openedDims;
  TypeScope scope;
  scope.newDims = NewDims::Bind;
  scope.allowLayer = true;
  E value;
  TypeRef type;
  if (stmt.type) {
    TypeRef annotation = conversion.convertType(*stmt.type, scope);
    const auto *binding = stmt.pattern->as<BindingPattern>();
    value = check(*stmt.value,
                  {annotation, binding ? fmt::format("'{}'", binding->name) : "the value"});
    if (isError(value->type) || isError(annotation)) {
      type = types.isSound(annotation) ? extents.close(annotation, context->opened.size())
                                       : types.error();
      for (const auto &[name, dim] : scope.made)
        context->locals.push_back(
            {name, dims.hasFreeVariables(dim) ? Dim::fresh() : dims.resolve(dim)});
      if (!scope.made.empty())
        type = types.error();
    } else {
      type = extents.mergeAnnotation(annotation, value->type);
      conversion.bindAnnotationDims(scope);
    }
    type = extents.open(type, openedDims);
  } else {
    value = infer(*stmt.value);
    type = types.resolve(value->type);
  }
  bool isStatic = types.contains(type, TypeKind::Function) || types.contains(type, TypeKind::Layer);
  if (isStatic && !stmt.pattern->is<BindingPattern>() && !stmt.pattern->is<WildcardPattern>()) {
    diags.error(stmt.pattern->range, "a function or layer can only be given one name");
    type = types.error();
    isStatic = false;
  }
  typed::Pattern *pattern = patterns.checkPattern(*stmt.pattern, type);
  pattern->opened.insert(pattern->opened.end(), openedDims.begin(), openedDims.end());
  patterns.requireIrrefutable(*pattern, "a 'let'");
  if (pattern->variable) {
    if (isStatic) {
      pattern->variable->staticValue = value;
    } else if (types.resolve(type)->is(TypeKind::Int)) {
      pattern->variable->dim = extents.unroundedDim(*value);
      if (!pattern->variable->dim && isNatural(*value))
        dims.assumeNatural(Dim::symbol(pattern->variable->dimSymbol));
    }
  }
  result.pattern = pattern;
  result.value = value;
  result.type = type;
  block.stmts.push_back(std::move(result));
}

void BodyChecker::checkCheckStmt(const Stmt &stmt, typed::BlockExpr &block) {
  typed::Stmt result;
  result.range = stmt.range;
  E condition = check(*stmt.value, {types.boolType(), "the condition of 'check'"});
  result.value = condition;
  if (stmt.message) {
    result.message = *stmt.message;
  } else {
    std::string text = state.written(*stmt.value);
    std::replace(text.begin(), text.end(), '\n', ' ');
    result.message = "check failed: " + text;
  }
  block.stmts.push_back(std::move(result));
  if (!isError(condition->type))
    assumeComparisons(*condition, /*holds=*/true, /*certain=*/true);
}

/// What the comparison says if it holds, or if it does not, of two extents.
static typed::ScalarOp comparisonThatHolds(typed::ScalarOp op, bool holds) {
  using typed::ScalarOp;
  switch (op) {
  case ScalarOp::Eq:
    return holds ? ScalarOp::Eq : ScalarOp::Ne;
  case ScalarOp::Ne:
    return holds ? ScalarOp::Ne : ScalarOp::Eq;
  case ScalarOp::Lt:
    return holds ? ScalarOp::Lt : ScalarOp::Ge;
  case ScalarOp::Le:
    return holds ? ScalarOp::Le : ScalarOp::Gt;
  case ScalarOp::Gt:
    return holds ? ScalarOp::Gt : ScalarOp::Le;
  case ScalarOp::Ge:
    return holds ? ScalarOp::Ge : ScalarOp::Lt;
  default:
    return op;
  }
}

void BodyChecker::assumeComparisons(const typed::Expr &condition, bool holds, bool certain) {
  using typed::ScalarOp;
  const auto *scalar = condition.as<typed::ScalarExpr>();
  if (!scalar)
    return;
  if (scalar->op == ScalarOp::Not)
    return assumeComparisons(*scalar->operands[0], !holds, certain);
  if (scalar->op == (holds ? ScalarOp::And : ScalarOp::Or)) {
    for (const typed::Expr *operand : scalar->operands)
      assumeComparisons(*operand, holds, certain);
    return;
  }
  if (scalar->operands.size() != 2 || scalar->op == ScalarOp::And || scalar->op == ScalarOp::Or)
    return;
  std::optional<Dim> a = extents.toDim(*scalar->operands[0]),
                     b = extents.toDim(*scalar->operands[1]);
  if (!a || !b)
    return;
  ScalarOp op = comparisonThatHolds(scalar->op, holds);
  std::optional<int64_t> x = dims.value(*a), y = dims.value(*b);
  if (x && y) {
    if (op == ScalarOp::Eq && *x != *y && certain)
      diags.error(condition.range, fmt::format("this check never holds: {} is not {}", *x, *y));
    return;
  }
  switch (op) {
  case ScalarOp::Eq:
    return dims.assume(*a, *b);
  case ScalarOp::Lt:
    return dims.assumeNatural(*b - *a - Dim(1));
  case ScalarOp::Le:
    return dims.assumeNatural(*b - *a);
  case ScalarOp::Gt:
    return dims.assumeNatural(*a - *b - Dim(1));
  case ScalarOp::Ge:
    return dims.assumeNatural(*a - *b);
  default:
    return;
  }
}

/// Whether an int is at least 0 whatever the extents are that it is made of.
bool BodyChecker::isNatural(const typed::Expr &expr) {
  using typed::ScalarOp;
  if (std::optional<Dim> dim = extents.unroundedDim(expr))
    return dims.isNatural(*dim);
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar)
    return false;
  auto is = [&](const typed::Expr *operand) { return isNatural(*operand); };
  switch (scalar->op) {
  case ScalarOp::Abs:
    return true;
  case ScalarOp::FloorMod:
    return isNatural(*scalar->operands[1]);
  case ScalarOp::Max:
    return std::any_of(scalar->operands.begin(), scalar->operands.end(), is);
  case ScalarOp::Add:
  case ScalarOp::Mul:
  case ScalarOp::Div:
  case ScalarOp::Mod:
  case ScalarOp::FloorDiv:
  case ScalarOp::Min:
    return std::all_of(scalar->operands.begin(), scalar->operands.end(), is);
  default:
    return false;
  }
}

BodyChecker::E BodyChecker::inferIf(const IfExpr &expr, const Expectation *expected, TypeRef hint) {
  auto *result = make<typed::IfExpr>(expr.range, nullptr);
  E condition = check(*expr.condition, {types.boolType(), "the condition of 'if'"});
  result->condition = condition;
  TypeRef branchType = nullptr;
  auto branch = [&](const Expr &syntax, bool holds) -> E {
    size_t mark = context->opened.size();
    CheckerState::Scope scope(state);
    if (!isError(condition->type))
      assumeComparisons(*condition, holds, /*certain=*/false);
    if (expected)
      return check(syntax, *expected);
    E value = infer(syntax, hint);
    branchType = extents.close(value->type, mark);
    return value;
  };
  E thenExpr = branch(*expr.thenExpr, true);
  TypeRef thenType = branchType;
  E elseExpr = branch(*expr.elseExpr, false);
  TypeRef elseType = branchType;
  result->thenExpr = thenExpr;
  result->elseExpr = elseExpr;
  if (expected) {
    bool bad = isError(thenExpr->type) || isError(elseExpr->type) || isError(condition->type);
    result->type = bad ? types.error() : expected->type;
    return result;
  }
  result->type = joinBranches({thenType, elseType}, {thenExpr->range, elseExpr->range},
                              "the branches of 'if'");
  return result;
}

/// The type of a value that comes from one of several branches.
TypeRef BodyChecker::joinBranches(const std::vector<TypeRef> &branches,
                                  const std::vector<SourceRange> &ranges, const std::string &what) {
  TypeRef joined = nullptr;
  for (size_t i = 0; i < branches.size(); ++i) {
    if (isError(branches[i]))
      return types.error();
    if (!types.isFirstClass(branches[i])) {
      diags.error(ranges[i],
                  fmt::format("{} cannot give a {}", what,
                              types.contains(branches[i], TypeKind::Layer) ? "layer" : "function"),
                  "call it inside instead");
      return types.error();
    }
    TypeRef next = joined ? types.join(joined, branches[i]) : branches[i];
    if (!next) {
      diags.error(ranges[i],
                  fmt::format("{} must have one type, but this is '{}' and before it stands '{}'",
                              what, types.print(branches[i]), types.print(joined)) +
                      compareInNumbers(branches[i], joined));
      return types.error();
    }
    joined = next;
  }
  return joined ? joined : types.error();
}

BodyChecker::E BodyChecker::inferMatch(const MatchExpr &expr, const Expectation *expected,
                                       TypeRef hint) {
  auto *match = make<typed::MatchExpr>(expr.range, nullptr);
  E scrutinee = infer(*expr.scrutinee);
  match->scrutinee = scrutinee;
  TypeRef type = types.resolve(scrutinee->type);
  if (!types.isFirstClass(type)) {
    diags.error(expr.scrutinee->range,
                fmt::format("a value of type '{}' cannot be matched", types.print(type)));
    type = types.error();
  }
  if (type->is(TypeKind::Variable) && type->numeric)
    types.subsume(type, types.intType());
  size_t patternErrors = 0;
  bool bad = false;
  std::vector<TypeRef> branches;
  std::vector<SourceRange> ranges;
  for (const MatchArm &arm : expr.arms) {
    size_t mark = context->opened.size();
    CheckerState::Scope scope(state);
    typed::MatchArm result;
    size_t before = diags.errorCount() + state.errorPatterns;
    result.pattern = patterns.checkPattern(*arm.pattern, type);
    patternErrors += diags.errorCount() + state.errorPatterns - before;
    if (arm.guard)
      result.guard = check(*arm.guard, {types.boolType(), "a guard"});
    if (expected) {
      E body = check(*arm.body, *expected);
      bad |= isError(body->type);
      result.body = body;
    } else {
      E body = infer(*arm.body, hint);
      branches.push_back(extents.close(body->type, mark));
      ranges.push_back(body->range);
      result.body = body;
    }
    match->arms.push_back(result);
  }
  if (patternErrors == 0 && !isError(type) && !expr.arms.empty())
    patterns.checkArms(expr, *match);
  if (expected)
    match->type = bad || isError(type) || expr.arms.empty() ? types.error() : expected->type;
  else
    match->type = joinBranches(branches, ranges, "the arms of 'match'");
  return match;
}

} // namespace sheaf

//===- CheckerExpectations.cpp - Types that are wanted --------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

std::string BodyChecker::compareInNumbers(TypeRef expected, TypeRef actual) const {
  std::string a = types.printValues(expected), b = types.printValues(actual);
  if ((a.empty() && b.empty()) || !types.hasOnlyKnownDims(expected) ||
      !types.hasOnlyKnownDims(actual))
    return {};
  if (a.empty())
    a = types.print(expected);
  if (b.empty())
    b = types.print(actual);
  return fmt::format(" ({} against {})", a, b);
}

/// How an extent that was `?` comes to be one that is wanted; empty when that is not what is wrong.
std::string BodyChecker::openedExtentHelp(TypeRef want, TypeRef have) const {
  if (!want->is(TypeKind::Tensor) || !have->is(TypeKind::Tensor) ||
      want->tensor.dims.size() != have->tensor.dims.size() ||
      want->tensor.dtype != have->tensor.dtype)
    return {};
  // What is to be compared needs a name, and `?` has none.
  std::vector<std::pair<Dim, std::string>> given;
  std::string free = "mkpqrst";
  auto nameOf = [&](const Dim &dim) -> std::string {
    for (const auto &[known, name] : given)
      if (dims.same(known, dim))
        return name;
    std::string printed = dims.print(dim);
    if (printed != "?")
      return printed;
    while (!free.empty() &&
           (state.findDim(free.substr(0, 1)) || state.findLocal(free.substr(0, 1))))
      free.erase(0, 1);
    if (free.empty())
      return {};
    given.emplace_back(dim, free.substr(0, 1));
    free.erase(0, 1);
    return given.back().second;
  };
  std::vector<Dim> wanted, actual;
  for (size_t i = 0; i < want->tensor.dims.size(); ++i) {
    wanted.push_back(dims.resolve(want->tensor.dims[i]));
    actual.push_back(dims.resolve(have->tensor.dims[i]));
  }
  std::string named, other, checks;
  bool areBothUnnamed = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (dims.same(wanted[i], actual[i]))
      continue;
    bool isThere = dims.print(wanted[i]) != "?" ||
                   std::any_of(actual.begin(), actual.end(),
                               [&](const Dim &dim) { return dims.same(dim, wanted[i]); });
    if (!actual[i].asSymbol() || !actual[i].isFresh() ||
        (!isThere && (!wanted[i].asSymbol() || isUnknown(wanted[i]))))
      return {};
    areBothUnnamed |= !isThere;
    std::string mine = nameOf(actual[i]), theirs = nameOf(wanted[i]);
    if (mine.empty() || theirs.empty())
      return {};
    checks += fmt::format("{}check {} == {}", checks.empty() ? "" : ", ", mine, theirs);
  }
  auto list = [&](std::string &text, const Dim &dim) {
    auto known = std::find_if(given.begin(), given.end(),
                              [&](const auto &pair) { return dims.same(pair.first, dim); });
    text += (text.empty() ? "" : ", ") + (known == given.end() ? dims.print(dim) : known->second);
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    list(named, actual[i]);
    list(other, wanted[i]);
  }
  if (checks.empty())
    return {};
  if (areBothUnnamed)
    return fmt::format("name both extents, and compare: let x: {0}[{1}] = ..., let y: {0}[{2}] = "
                       "..., then {3}",
                       ops::dtypeName(want->tensor.dtype), named, other, checks);
  return fmt::format("name the extent that is '?' here, and compare: let x: {}[{}] = ..., then {}",
                     ops::dtypeName(want->tensor.dtype), named, checks);
}

/// What to do where a list is of another length, or of none that is known.
std::string BodyChecker::lengthHelp(TypeRef want, TypeRef have) const {
  if (!want->is(TypeKind::List) || !have->is(TypeKind::List) || !want->length())
    return {};
  if (const Dim *length = have->length()) {
    Dim wanted = dims.resolve(*want->length()), given = dims.resolve(*length);
    if ((wanted - given).isConstant() || (dims.value(wanted) && dims.value(given)))
      return {};
  }
  std::string length = types.isNamed(*want->length()) ? dims.print(*want->length()) : "len(ys)";
  return fmt::format("if it always has so many elements, say so before: let xs = ..., then check "
                     "len(xs) == {}",
                     length);
}

std::optional<size_t> BodyChecker::axisOfOtherExtent(TypeRef want, TypeRef have) const {
  if (!want->is(TypeKind::Tensor) || !have->is(TypeKind::Tensor))
    return std::nullopt;
  for (size_t i = 0; i < std::min(want->tensor.dims.size(), have->tensor.dims.size()); ++i)
    if (!dims.same(want->tensor.dims[i], have->tensor.dims[i]))
      return i;
  return std::nullopt;
}

void BodyChecker::reportMismatch(SourceRange range, const Expectation &expected, TypeRef actual) {
  TypeRef want = types.resolve(expected.type), have = types.resolve(actual);
  std::string help = expected.help;
  bool isNumber = want->is(TypeKind::Float) || want->is(TypeKind::Int) ||
                  (want->is(TypeKind::Variable) && want->numeric);
  if (help == LoopCalls::oneAccumulator && isNumber && have->is(TypeKind::Tensor) &&
      have->tensor.dtype == ops::DType::F32) {
    std::string extents;
    for (const Dim &dim : have->tensor.dims)
      extents += (extents.empty() ? "" : ", ") + dims.print(dim);
    if (extents.empty())
      help += "; begin with f32(0.0)";
    else if (extents.find('?') == std::string::npos)
      help += fmt::format("; begin with zeros({})", extents);
  } else if (help.empty()) {
    bool scalar = want->is(TypeKind::Tensor) && want->tensor.dims.empty() && !want->tensor.vocab;
    if (want->is(TypeKind::Float) && have->is(TypeKind::Int))
      help = "write float(...)";
    else if (want->is(TypeKind::Int) && (have->is(TypeKind::Float) || have->is(TypeKind::Token)))
      help = "write int(...)";
    else if (scalar && (have->is(TypeKind::Float) || have->is(TypeKind::Int) ||
                        (have->is(TypeKind::Variable) && have->numeric)))
      help = fmt::format("write {}(...)", ops::dtypeName(want->tensor.dtype));
    else if (want->is(TypeKind::Bool) && have->is(TypeKind::Tensor))
      help = have->tensor.dims.empty()
                 ? "'read' waits for the element and gives it as a host value, as in "
                   "if read(...) { ... }; where(c, a, b) chooses between tensors without waiting"
                 : "where(c, a, b) chooses between tensors, element by element; a decision takes "
                   "one element, which 'read' gives as a host value";
    else if ((want->is(TypeKind::Int) || want->is(TypeKind::Float)) && have->is(TypeKind::Tensor))
      help = "'read' waits for the element of a tensor and gives it as a host value";
    else if (want->is(TypeKind::Tensor) && have->is(TypeKind::List))
      help = operators.tensorOfListHelp(have);
    else if (types.containsUnknown(have) && !types.containsUnknown(want))
      help = "an extent '?' may differ from element to element";
    else if (want->is(TypeKind::List) && want->length())
      help = lengthHelp(want, have);
    else
      help = openedExtentHelp(want, have);
  }
  std::string wanted = types.print(want), given = types.print(have);
  if (wanted != given || want->is(TypeKind::Error)) {
    diags.error(range,
                fmt::format("{} must be '{}', but this is '{}'{}", expected.what, wanted, given,
                            compareInNumbers(want, have)),
                help);
    return;
  }
  if (want->is(TypeKind::List) && want->length()) {
    diags.error(range,
                fmt::format("{} must be '{}', but the length of this '{}' is not known to be the "
                            "same",
                            expected.what, wanted, given),
                help);
    return;
  }
  std::optional<size_t> axis = axisOfOtherExtent(want, have);
  std::string where = axis ? fmt::format(" of axis {}", *axis) : "";
  Diagnostic &error = diags.error(
      range,
      fmt::format("{} must be '{}', but the extent '?'{} of this '{}' is not known to be the same",
                  expected.what, wanted, where, given),
      help);
  if (std::optional<std::string> symbol =
          axis ? dims.resolve(want->tensor.dims[*axis]).asSymbol() : std::nullopt)
    if (auto at = state.openedAt.find(*symbol); at != state.openedAt.end())
      error.withNote(at->second, fmt::format("as that{} of this", where));
}

BodyChecker::E BodyChecker::require(E value, const Expectation &expected) {
  if (!types.isSound(value->type))
    return isError(value->type) ? value : error(value->range);
  if (!types.isSound(expected.type))
    return value;
  TypeRef before = types.zonk(expected.type);
  if (types.subsume(value->type, expected.type, expected.postponed))
    return value;
  Expectation shown = expected;
  shown.type = before;
  // max(x, 0) is the greatest along axis 0, where others compare with 0.
  const auto *apply = value->as<typed::ApplyExpr>();
  std::string help = apply ? operators.elementwiseHelp(*apply->op) : "";
  if (shown.help.empty() && !help.empty() &&
      types.print(apply->operands[0]->type) == types.print(before))
    shown.help = help;
  reportMismatch(value->range, shown, value->type);
  return error(value->range);
}

/// Whether an expression is a number or truth value as it is written, which may stand for a tensor
/// without axes of this type.
bool BodyChecker::isLiteralOf(const Expr &expr, TypeRef type) const {
  type = types.resolve(type);
  if (!type->is(TypeKind::Tensor) || !type->tensor.dims.empty() || type->tensor.vocab)
    return false;
  const auto *unary = expr.as<UnaryExpr>();
  bool isNegative = unary && unary->op == UnaryOp::Negate;
  const Expr &number = isNegative ? *unary->operand : expr;
  if (type->tensor.dtype == ops::DType::Bool)
    return expr.is<BoolLiteralExpr>();
  return number.is<IntLiteralExpr>() ||
         (number.is<FloatLiteralExpr>() && ops::isFloat(type->tensor.dtype));
}

BodyChecker::E BodyChecker::literalAs(const Expr &expr, TypeRef type) {
  ops::DType dtype = types.resolve(type)->tensor.dtype;
  TypeRef host = ops::isFloat(dtype)         ? types.floatType()
                 : dtype == ops::DType::Bool ? types.boolType()
                                             : types.intType();
  const ops::Op *conversion = ops::OpTable::get().find(std::string(ops::dtypeName(dtype)));
  std::vector<Arg> args = {Arg{nullptr, infer(expr, host), expr.range, nullptr}};
  return operators.applyOp(*conversion, args, expr.range);
}

/// The type of a value that is written so, where its literals are what stands in `next`.
TypeRef BodyChecker::withLiteralsOf(const Expr &expr, TypeRef type, TypeRef next) {
  type = types.resolve(type);
  next = types.resolve(next);
  bool isHost = type->is(TypeKind::Float) || type->is(TypeKind::Bool) || type->is(TypeKind::Int) ||
                (type->is(TypeKind::Variable) && type->numeric);
  if (isHost && isLiteralOf(expr, next))
    return next;
  const auto *tuple = expr.as<TupleExpr>();
  if (!tuple || !type->is(TypeKind::Tuple) || !next->is(TypeKind::Tuple) ||
      type->args.size() != next->args.size() || type->args.size() != tuple->elements.size())
    return type;
  std::vector<TypeRef> fields;
  bool changed = false;
  for (size_t i = 0; i < type->args.size(); ++i) {
    fields.push_back(withLiteralsOf(*tuple->elements[i], type->args[i], next->args[i]));
    changed |= fields.back() != types.resolve(type->args[i]);
  }
  return changed ? types.tuple(std::move(fields)) : type;
}

/// The value, which is written so, with its literals as what stands in `type`.
BodyChecker::E BodyChecker::literalsAs(const Expr &expr, E value, TypeRef type) {
  type = types.resolve(type);
  if (isLiteralOf(expr, type))
    return types.resolve(value->type)->is(TypeKind::Tensor) ? value : literalAs(expr, type);
  const auto *syntax = expr.as<TupleExpr>();
  const auto *tuple = value->as<typed::TupleExpr>();
  if (!syntax || !tuple || !type->is(TypeKind::Tuple) ||
      type->args.size() != tuple->elements.size())
    return value;
  auto *result = make<typed::TupleExpr>(value->range, nullptr);
  std::vector<TypeRef> fields;
  for (size_t i = 0; i < type->args.size(); ++i) {
    result->elements.push_back(
        literalsAs(*syntax->elements[i], const_cast<E>(tuple->elements[i]), type->args[i]));
    fields.push_back(result->elements.back()->type);
  }
  result->type = types.tuple(std::move(fields));
  return result;
}

BodyChecker::E BodyChecker::check(const Expr &expr, const Expectation &expected) {
  TypeRef want = types.resolve(expected.type);
  switch (expr.kind) {
  case ExprKind::Block:
    return inferBlock(expr.to<BlockExpr>(), &expected, want);
  case ExprKind::If:
    return inferIf(expr.to<IfExpr>(), &expected, want);
  case ExprKind::Match:
    return inferMatch(expr.to<MatchExpr>(), &expected, want);
  case ExprKind::Lambda:
    if (want->is(TypeKind::Function) || want->is(TypeKind::Error))
      return checkLambda(expr.to<LambdaExpr>(), expected);
    return fail(expr.range, fmt::format("{} must be '{}', but this is a function", expected.what,
                                        types.print(want)));
  case ExprKind::Tuple: {
    const auto &elements = expr.to<TupleExpr>().elements;
    if (!want->is(TypeKind::Tuple) || want->args.size() != elements.size() || elements.empty())
      break;
    auto *tuple = make<typed::TupleExpr>(expr.range, nullptr);
    std::vector<TypeRef> fields;
    for (size_t i = 0; i < elements.size(); ++i) {
      Expectation field = expected;
      field.type = want->args[i];
      field.what = fmt::format("field {} of {}", i + 1, expected.what);
      E element = check(*elements[i], field);
      tuple->elements.push_back(element);
      fields.push_back(isError(element->type) ? types.error() : want->args[i]);
    }
    tuple->type = types.tuple(std::move(fields));
    return tuple;
  }
  case ExprKind::List: {
    if (!want->is(TypeKind::List) || types.contains(want, TypeKind::Layer))
      break;
    const auto &elements = expr.to<ListExpr>().elements;
    Dim length(static_cast<int64_t>(elements.size()));
    auto *list = make<typed::ListExpr>(expr.range, types.list(want->element(), length));
    for (const Expr *element : elements) {
      Expectation inner = expected;
      inner.type = want->element();
      inner.what = fmt::format("an element of {}", expected.what);
      E value = check(*element, inner);
      if (isError(value->type))
        list->type = types.error();
      list->elements.push_back(value);
    }
    return require(list, expected);
  }
  default:
    if (want->is(TypeKind::Function) && namesFunction(expr))
      return expandFunctionName(expr, expected);
    if (isLiteralOf(expr, want))
      return literalAs(expr, want);
    break;
  }
  return require(infer(expr, want), expected);
}

BodyChecker::E BodyChecker::checkArg(const Arg &arg, const Expectation &expected) {
  return arg.typed ? require(arg.typed, expected) : check(*arg.syntax, expected);
}

BodyChecker::E BodyChecker::inferArg(const Arg &arg, TypeRef hint) {
  return arg.typed ? arg.typed : infer(*arg.syntax, hint);
}

} // namespace sheaf

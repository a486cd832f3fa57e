//===- CheckerExprs.cpp - Checking expressions ----------------------------===//

#include "compiler/frontend/CheckerBodies.h"
#include "compiler/frontend/Operators.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

BodyChecker::E BodyChecker::infer(const Expr &expr, TypeRef hint) {
  // Bodies of functions without result types are checked when they are called, so the depth is not
  // bounded by the nesting of one expression.
  constexpr unsigned deepest = 8000;
  if (depth >= deepest)
    return fail(expr.range, "functions without a result type call each other too deeply here",
                "write the result types");
  ++depth;
  E result = extents.opened(inferInner(expr, hint ? types.resolve(hint) : nullptr));
  --depth;
  if (!conversion.withinLimits(types.resolve(result->type), expr.range))
    return error(expr.range);
  return result;
}

BodyChecker::E BodyChecker::inferInner(const Expr &expr, TypeRef hint) {
  switch (expr.kind) {
  case ExprKind::IntLiteral: {
    TypeRef type = hint && hint->is(TypeKind::Float) ? types.floatType()
                   : hint && hint->is(TypeKind::Int) ? types.intType()
                                                     : types.numericVariable();
    auto *number = make<typed::NumberExpr>(expr.range, type);
    number->integer = expr.to<IntLiteralExpr>().value;
    number->number = static_cast<double>(number->integer);
    return number;
  }
  case ExprKind::FloatLiteral: {
    auto *number = make<typed::NumberExpr>(expr.range, types.floatType());
    number->number = expr.to<FloatLiteralExpr>().value;
    return number;
  }
  case ExprKind::BoolLiteral: {
    auto *literal = make<typed::BoolExpr>(expr.range, types.boolType());
    literal->value = expr.to<BoolLiteralExpr>().value;
    return literal;
  }
  case ExprKind::StringLiteral:
    return fail(expr.range, "a string cannot stand here", "there are no string values");
  case ExprKind::Name:
    return inferName(expr.to<NameExpr>());
  case ExprKind::Unary:
    return inferUnary(expr.to<UnaryExpr>(), hint);
  case ExprKind::Binary:
    return inferBinary(expr.to<BinaryExpr>(), hint);
  case ExprKind::Call:
    return inferCall(expr.to<CallExpr>(), hint);
  case ExprKind::Field:
    return inferField(expr.to<FieldExpr>());
  case ExprKind::Index:
    return inferIndex(expr.to<IndexExpr>());
  case ExprKind::List:
    return inferList(expr.to<ListExpr>(), hint);
  case ExprKind::Tuple:
    return inferTuple(expr.to<TupleExpr>(), hint);
  case ExprKind::Block:
    return inferBlock(expr.to<BlockExpr>(), nullptr, hint);
  case ExprKind::If:
    return inferIf(expr.to<IfExpr>(), nullptr, hint);
  case ExprKind::Match:
    return inferMatch(expr.to<MatchExpr>(), nullptr, hint);
  case ExprKind::Lambda:
    return inferStandaloneLambda(expr.to<LambdaExpr>());
  case ExprKind::Error:
    return error(expr.range);
  }
  return error(expr.range);
}

std::string BodyChecker::suggestValue(const std::string &name) const {
  std::string_view help = foreignWordHelp(name);
  return help.empty() ? state.suggestName(name, visibleValues()) : std::string(help);
}

std::vector<std::string> BodyChecker::visibleValues() const {
  std::vector<std::string> names;
  for (const Local &local : context->locals)
    names.push_back(local.name);
  if (context->layer) {
    for (const ParamInfo *param : context->layer->params)
      names.push_back(param->name);
    for (const LetInfo *let : context->layer->lets)
      names.push_back(let->name);
    for (const FnInfo *fn : context->layer->fns)
      names.push_back(fn->name);
    for (const DimParam &dim : context->layer->dims)
      names.push_back(dim.name);
  }
  for (const auto &[name, named] : state.fileScope().visible)
    names.push_back(name);
  for (const auto &[name, rule] : builtins)
    names.emplace_back(name);
  for (const ops::Op &op : ops::OpTable::get().all())
    if (!op.internal)
      names.push_back(op.name);
  return names;
}

BodyChecker::E BodyChecker::inferName(const NameExpr &expr) {
  const std::string &name = expr.name;
  auto dimValue = [&](const Dim &dim) {
    auto *value = make<typed::DimValueExpr>(expr.range, types.intType());
    value->dim = dim;
    return value;
  };
  if (const Local *local = state.findLocal(name)) {
    if (const Dim *dim = std::get_if<Dim>(&local->what))
      return dimValue(*dim);
    auto *variable = std::get<typed::Variable *>(local->what);
    auto *value = make<typed::LocalExpr>(expr.range, variable->type);
    value->variable = variable;
    return value;
  }
  if (context->layer) {
    auto self = [&] { return make<typed::LayerSelfExpr>(expr.range, types.error()); };
    for (const ParamInfo *info : context->layer->params)
      if (info->name == name)
        return paramValue(*info, self(), expr.range);
    for (LetInfo *info : context->layer->lets)
      if (info->name == name)
        return letValue(*info, self(), expr.range);
    for (const FnInfo *fn : context->layer->fns)
      if (fn->name == name)
        return inferFunctionName(expr);
  }
  if (std::optional<Dim> dim = state.findDim(name))
    return dimValue(*dim);
  if (const Named *named = state.findGlobal(name))
    if (E value = globalValue(*named, name, expr.range))
      return value;
  if (namesFunction(expr))
    return inferFunctionName(expr);
  return fail(expr.range, fmt::format("there is no '{}' here", name), suggestValue(name));
}

BodyChecker::E BodyChecker::paramValue(const ParamInfo &info, E layer, SourceRange range) {
  auto *value = make<typed::ParamExpr>(range, info.type);
  value->param = &info;
  value->layer = layer;
  return value;
}

BodyChecker::E BodyChecker::letValue(LetInfo &info, E layer, SourceRange range) {
  if (!declarations.checkLet(info))
    return fail(range, fmt::format("the value of '{}' depends on itself", info.name));
  if (info.isLayer) {
    auto *value = make<typed::LayerLetExpr>(range, info.type);
    value->let = &info;
    value->layer = layer;
    return value;
  }
  auto *value = make<typed::ConstantExpr>(range, info.type);
  value->let = &info;
  value->layer = layer;
  return value;
}

BodyChecker::E BodyChecker::globalValue(const Named &named, const std::string &name,
                                        SourceRange range) {
  if (const auto *ref = std::get_if<CheckerState::DimRef>(&named.what)) {
    auto *value = make<typed::DimValueExpr>(range, types.intType());
    value->dim = ref->dim;
    return value;
  }
  if (auto *info = std::get_if<ParamInfo *>(&named.what))
    return paramValue(**info, nullptr, range);
  if (auto *info = std::get_if<LetInfo *>(&named.what))
    return letValue(**info, nullptr, range);
  if (std::holds_alternative<LayerInfo *>(named.what))
    return fail(range, fmt::format("'{}' is a layer; an instance of it is made by a call", name),
                fmt::format("let x = {}(...), outside functions", name));
  if (std::holds_alternative<CheckerState::FileRef>(named.what))
    return fail(range, fmt::format("'{}' is the name of a file", name),
                fmt::format("what it declares is written {}.NAME", name));
  if (auto *ctor = std::get_if<CheckerState::ConstructorRef>(&named.what);
      ctor && ctor->data->constructors[ctor->index].fields.empty())
    return construct(*ctor, {}, range, nullptr);
  return nullptr;
}

/// A function's name where a value is wanted and no function type is known: only `let f = name`
/// comes here with success, when the function has one type.
BodyChecker::E BodyChecker::inferFunctionName(const Expr &expr) {
  const auto *name = expr.as<NameExpr>();
  FnInfo *fn = nullptr;
  if (name && context->layer)
    for (FnInfo *member : context->layer->fns)
      if (member->name == name->name)
        fn = member;
  std::string text = name ? name->name : expr.to<FieldExpr>().field.name;
  const Named *named = nullptr;
  if (name)
    named = fn ? nullptr : state.findGlobal(text);
  else if (std::optional<size_t> file = state.qualifier(*expr.to<FieldExpr>().base))
    named = state.findMember(*file, text);
  if (named)
    if (auto *global = std::get_if<FnInfo *>(&named->what))
      fn = *global;
  if (named)
    if (const auto *ctor = std::get_if<CheckerState::ConstructorRef>(&named->what)) {
      std::string fields;
      for (const DataInfo::Field &field : ctor->data->constructors[ctor->index].fields)
        fields += (fields.empty() ? "" : ", ") + field.name;
      return fail(expr.range, fmt::format("constructor '{}' needs its fields", text),
                  fmt::format("write {}({})", text, fields));
    }
  if (!fn || !fn->typeParams.empty() || !fn->dims.empty() || !fn->packs.empty())
    return fail(expr.range, fmt::format("'{}' is a function; it can be called or passed as an "
                                        "argument",
                                        text));
  if (!declarations.needResult(*fn, expr.range))
    return error(expr.range);
  for (TypeRef param : fn->paramTypes)
    if (!types.isFirstClass(param))
      return fail(expr.range, fmt::format("'{}' takes functions, so it can only be called", text));
  // An int parameter is another number in each call.
  TypeRef result = types.mapDims(fn->result, [&](const Dim &dim) {
    std::vector<std::string> symbols = dim.symbols();
    bool isOfCall =
        std::any_of(fn->intExtents.begin(), fn->intExtents.end(), [&](const IntExtent &extent) {
          return std::find(symbols.begin(), symbols.end(), extent.symbol) != symbols.end();
        });
    return isOfCall ? unknownDim() : dim;
  });
  return expandFunctionName(expr,
                            {types.function(fn->paramTypes, result), fmt::format("'{}'", text)});
}

BodyChecker::E BodyChecker::inferUnary(const UnaryExpr &expr, TypeRef hint) {
  E operand = infer(*expr.operand, hint);
  TypeRef type = types.resolve(operand->type);
  if (type->is(TypeKind::Error))
    return operand;
  bool isNot = expr.op == UnaryOp::Not;
  if (type->is(TypeKind::Tensor))
    return operators.applyInfix(isNot ? "not" : "neg", {operand}, expr.range, isNot ? "!" : "-");
  auto *scalar = make<typed::ScalarExpr>(expr.range, type);
  scalar->operands = {operand};
  if (isNot) {
    if (isError(require(operand, {types.boolType(), "the operand of '!'"})->type))
      return error(expr.range);
    scalar->type = types.boolType();
    scalar->op = typed::ScalarOp::Not;
    return scalar;
  }
  if (const auto *literal = operand->as<typed::NumberExpr>(); literal && literal->integer >= 0) {
    auto *number = make<typed::NumberExpr>(expr.range, type);
    number->integer = -literal->integer;
    number->number = -literal->number;
    return number;
  }
  bool isNumber = type->is(TypeKind::Int) || type->is(TypeKind::Float) ||
                  (type->is(TypeKind::Variable) && type->numeric);
  if (!isNumber)
    return fail(expr.range, fmt::format("'-' cannot be applied to '{}'", types.print(type)));
  scalar->op = typed::ScalarOp::Neg;
  return scalar;
}

BodyChecker::E BodyChecker::inferBinary(const BinaryExpr &expr, TypeRef hint) {
  std::string sign(spellingOf(expr.op));
  if (expr.op == BinaryOp::Cons) {
    if (hint && hint->is(TypeKind::List) && !types.contains(hint, TypeKind::Layer)) {
      E head = check(*expr.lhs, {hint->element(), "the element before '::'"});
      E tail = check(*expr.rhs, {types.list(hint->element()), "the list after '::'"});
      bool bad = isError(head->type) || isError(tail->type);
      return state.makeBuiltin(
          typed::Builtin::Cons, {head, tail}, expr.range,
          bad ? types.error()
              : types.list(hint->element(), extents.plus(extents.lengthOf(*tail), 1)));
    }
    E tail = listArg({expr.rhs, nullptr, expr.rhs->range, nullptr}, "what follows '::'", false);
    if (isError(tail->type)) {
      infer(*expr.lhs);
      return tail;
    }
    TypeRef element = types.resolve(tail->type)->element();
    E head = check(*expr.lhs, {types.forgetLengths(element), "the element before '::'"});
    if (isError(head->type))
      return error(expr.range);
    return state.makeBuiltin(typed::Builtin::Cons, {head, tail}, expr.range,
                             types.list(extents.withLengthsOfBoth(element, head->type),
                                        extents.plus(extents.lengthOf(*tail), 1)));
  }

  bool isLogic = expr.op == BinaryOp::And || expr.op == BinaryOp::Or;
  bool isComparison = expr.op == BinaryOp::Eq || expr.op == BinaryOp::Ne ||
                      expr.op == BinaryOp::Lt || expr.op == BinaryOp::Le ||
                      expr.op == BinaryOp::Gt || expr.op == BinaryOp::Ge;
  TypeRef operandHint = isLogic ? types.boolType() : isComparison ? nullptr : hint;
  E lhs = infer(*expr.lhs, operandHint), rhs = infer(*expr.rhs, operandHint);
  TypeRef a = types.resolve(lhs->type), b = types.resolve(rhs->type);
  if (a->is(TypeKind::Error) || b->is(TypeKind::Error))
    return error(expr.range);
  if (expr.op == BinaryOp::Mul && a->is(TypeKind::List) &&
      types.resolve(a->element())->is(TypeKind::Layer)) {
    E count = require(rhs, {types.intType(), "the number of repetitions"});
    std::optional<Dim> repeat = isError(count->type) ? std::nullopt : extents.toDim(*count);
    if (!repeat) {
      if (!isError(count->type))
        diags.error(rhs->range, "the number of layers must be known at compile time");
      return error(expr.range);
    }
    TypeRef type = types.list(a->element(),
                              a->length() ? std::optional(*a->length() * *repeat) : std::nullopt);
    auto *list = make<typed::LayerListExpr>(expr.range, type);
    list->repeated = lhs;
    list->repeat = *repeat;
    return list;
  }
  if (a->is(TypeKind::Tensor) || b->is(TypeKind::Tensor) || expr.op == BinaryOp::MatMul) {
    static const std::map<BinaryOp, const char *> names = {
        {BinaryOp::Or, "or"},   {BinaryOp::And, "and"},      {BinaryOp::Eq, "eq"},
        {BinaryOp::Ne, "ne"},   {BinaryOp::Lt, "lt"},        {BinaryOp::Le, "le"},
        {BinaryOp::Gt, "gt"},   {BinaryOp::Ge, "ge"},        {BinaryOp::Add, "add"},
        {BinaryOp::Sub, "sub"}, {BinaryOp::Mul, "mul"},      {BinaryOp::Div, "div"},
        {BinaryOp::Mod, "mod"}, {BinaryOp::MatMul, "matmul"}};
    return operators.applyInfix(names.at(expr.op), {lhs, rhs}, expr.range, sign);
  }
  return inferHostBinary(expr, lhs, rhs);
}

BodyChecker::E BodyChecker::inferHostBinary(const BinaryExpr &expr, E lhs, E rhs) {
  using typed::ScalarOp;
  static const std::map<BinaryOp, ScalarOp> scalarOps = {
      {BinaryOp::Or, ScalarOp::Or},   {BinaryOp::And, ScalarOp::And},
      {BinaryOp::Eq, ScalarOp::Eq},   {BinaryOp::Ne, ScalarOp::Ne},
      {BinaryOp::Lt, ScalarOp::Lt},   {BinaryOp::Le, ScalarOp::Le},
      {BinaryOp::Gt, ScalarOp::Gt},   {BinaryOp::Ge, ScalarOp::Ge},
      {BinaryOp::Add, ScalarOp::Add}, {BinaryOp::Sub, ScalarOp::Sub},
      {BinaryOp::Mul, ScalarOp::Mul}, {BinaryOp::Div, ScalarOp::Div},
      {BinaryOp::Mod, ScalarOp::Mod}};
  std::string sign(spellingOf(expr.op));
  TypeRef a = types.resolve(lhs->type), b = types.resolve(rhs->type);
  auto isPlainVariable = [](TypeRef type) {
    return type->is(TypeKind::Variable) && !type->numeric;
  };
  if (isPlainVariable(a) && isPlainVariable(b))
    return fail(expr.lhs->range, "the type of this is not known here", "write its type");
  auto isScalar = [&](TypeRef type) {
    return type->is(TypeKind::Int) || type->is(TypeKind::Float) || type->is(TypeKind::Bool) ||
           type->is(TypeKind::Token) || type->is(TypeKind::Variable);
  };
  auto refuse = [&](E operand, TypeRef type) {
    std::string help;
    if (type->is(TypeKind::List) && expr.op == BinaryOp::Add)
      help = "concat(a, b) joins lists, append(xs, x) adds an element";
    else if (type->is(TypeKind::Parameter))
      help = fmt::format("'{}' may be any type", type->name);
    return fail(operand->range,
                fmt::format("'{}' cannot be applied to '{}'", sign, types.print(type)), help);
  };
  if (!isScalar(a))
    return refuse(lhs, a);
  if (!isScalar(b))
    return refuse(rhs, b);
  if (a->is(TypeKind::Float) && isExtent(types, *rhs))
    b = types.resolve((rhs = hosts.floatOf(rhs))->type);
  else if (b->is(TypeKind::Float) && isExtent(types, *lhs))
    a = types.resolve((lhs = hosts.floatOf(lhs))->type);
  if (!types.subsume(a, b)) {
    std::string help;
    if (a->is(TypeKind::Int) && b->is(TypeKind::Float))
      help = "write float(...) around the left side";
    else if (a->is(TypeKind::Float) && b->is(TypeKind::Int))
      help = "write float(...) around the right side";
    else if (a->is(TypeKind::Token) || b->is(TypeKind::Token))
      help = "int(t) gives the number of a token";
    return fail(expr.range,
                fmt::format("'{}' needs two values of one type, but these are '{}' and '{}'", sign,
                            types.print(a), types.print(b)),
                help);
  }
  TypeRef type = types.resolve(b);
  bool isBool = type->is(TypeKind::Bool), isToken = type->is(TypeKind::Token);
  bool isFloat = type->is(TypeKind::Float);
  auto *scalar = make<typed::ScalarExpr>(expr.range, type);
  scalar->op = scalarOps.at(expr.op);
  scalar->operands = {lhs, rhs};
  switch (expr.op) {
  case BinaryOp::And:
  case BinaryOp::Or:
    if (!types.subsume(type, types.boolType()))
      return refuse(lhs, type);
    scalar->type = types.boolType();
    return scalar;
  case BinaryOp::Eq:
  case BinaryOp::Ne:
    scalar->type = types.boolType();
    return scalar;
  case BinaryOp::Lt:
  case BinaryOp::Le:
  case BinaryOp::Gt:
  case BinaryOp::Ge:
    if (isBool || isToken)
      return refuse(lhs, type);
    scalar->type = types.boolType();
    return scalar;
  case BinaryOp::Mod:
    if (isFloat)
      return refuse(lhs, type);
    [[fallthrough]];
  default:
    if (isBool || isToken)
      return refuse(lhs, type);
    return scalar;
  }
}

//===----------------------------------------------------------------------===//
// Compound values
//===----------------------------------------------------------------------===//

BodyChecker::E BodyChecker::inferTuple(const TupleExpr &expr, TypeRef hint) {
  auto *tuple = make<typed::TupleExpr>(expr.range, nullptr);
  std::vector<TypeRef> fields;
  bool hinted = hint && hint->is(TypeKind::Tuple) && hint->args.size() == expr.elements.size();
  for (size_t i = 0; i < expr.elements.size(); ++i) {
    E element = infer(*expr.elements[i], hinted ? hint->args[i] : nullptr);
    if (!types.isFirstClass(element->type))
      element =
          fail(element->range,
               fmt::format("a tuple cannot hold a {}",
                           types.contains(element->type, TypeKind::Layer) ? "layer" : "function"));
    tuple->elements.push_back(element);
    fields.push_back(element->type);
  }
  bool bad = std::any_of(fields.begin(), fields.end(), [&](TypeRef type) { return isError(type); });
  tuple->type = bad ? types.error() : types.tuple(std::move(fields));
  return tuple;
}

BodyChecker::E BodyChecker::inferList(const ListExpr &expr, TypeRef hint) {
  TypeRef elementHint = hint && hint->is(TypeKind::List) ? hint->element() : nullptr;
  std::vector<const typed::Expr *> elements;
  TypeRef joined = nullptr;
  for (const Expr *syntax : expr.elements) {
    E element = infer(*syntax, elementHint);
    if (types.contains(element->type, TypeKind::Function))
      element = fail(element->range, "a list cannot hold a function");
    TypeRef next = joined ? types.join(joined, element->type) : element->type;
    if (!next) {
      diags.error(element->range,
                  fmt::format("the elements of a list have one type, but this is '{}' and those "
                              "before it are '{}'",
                              types.print(element->type), types.print(joined)) +
                      compareInNumbers(element->type, joined));
      next = types.error();
    }
    joined = next;
    elements.push_back(element);
  }
  if (joined && isError(joined))
    return error(expr.range);
  if (joined && types.contains(joined, TypeKind::Layer)) {
    auto *list = make<typed::LayerListExpr>(
        expr.range, types.list(joined, Dim(static_cast<int64_t>(elements.size()))));
    list->elements = std::move(elements);
    return list;
  }
  auto *list =
      make<typed::ListExpr>(expr.range, types.list(joined ? joined : types.variable(),
                                                   Dim(static_cast<int64_t>(elements.size()))));
  list->elements = std::move(elements);
  return list;
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

//===- CheckerExprs.cpp - Checking expressions ----------------------------===//

#include "compiler/frontend/CheckerImpl.h"
#include "compiler/frontend/Operators.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

Checker::E Checker::fail(SourceRange range, std::string message, std::string help) {
  diags.error(range, std::move(message), std::move(help));
  return error(range);
}

std::string Checker::compareInNumbers(TypeRef expected, TypeRef actual) const {
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

void Checker::reportMismatch(SourceRange range, const Expectation &expected, TypeRef actual) {
  TypeRef want = types.resolve(expected.type), have = types.resolve(actual);
  std::string help = expected.help;
  if (help.empty()) {
    bool scalar = want->is(TypeKind::Tensor) && want->tensor.dims.empty() && !want->tensor.vocab;
    if (want->is(TypeKind::Float) && have->is(TypeKind::Int))
      help = "write float(...)";
    else if (want->is(TypeKind::Int) && (have->is(TypeKind::Float) || have->is(TypeKind::Token)))
      help = "write int(...)";
    else if (scalar && (have->is(TypeKind::Float) || have->is(TypeKind::Int) ||
                        (have->is(TypeKind::Variable) && have->numeric)))
      help = fmt::format("write {}(...)", ops::dtypeName(want->tensor.dtype));
    else if (want->is(TypeKind::Bool) && have->is(TypeKind::Tensor))
      help = "a decision cannot depend on a tensor; where(c, a, b) chooses between tensors";
    else if ((want->is(TypeKind::Int) || want->is(TypeKind::Float)) && have->is(TypeKind::Tensor))
      help = "the elements of a tensor are not known when a host value is needed";
    else if (types.containsUnknown(have) && !types.containsUnknown(want))
      help = "an extent '?' may differ from element to element";
  }
  diags.error(range,
              fmt::format("{} must be '{}', but this is '{}'{}", expected.what, types.print(want),
                          types.print(have), compareInNumbers(want, have)),
              help);
}

Checker::E Checker::require(E value, const Expectation &expected) {
  if (!types.isSound(value->type))
    return isError(value->type) ? value : error(value->range);
  if (!types.isSound(expected.type))
    return value;
  TypeRef before = types.zonk(expected.type);
  if (types.subsume(value->type, expected.type, expected.postponed))
    return value;
  Expectation shown = expected;
  shown.type = before;
  reportMismatch(value->range, shown, value->type);
  return error(value->range);
}

Checker::E Checker::check(const Expr &expr, const Expectation &expected) {
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
    auto *list = make<typed::ListExpr>(expr.range, want);
    for (const Expr *element : expr.to<ListExpr>().elements) {
      Expectation inner = expected;
      inner.type = want->element();
      inner.what = fmt::format("an element of {}", expected.what);
      E value = check(*element, inner);
      if (isError(value->type))
        list->type = types.error();
      list->elements.push_back(value);
    }
    return list;
  }
  default:
    if (want->is(TypeKind::Function) && namesFunction(expr))
      return expandFunctionName(expr, expected);
    break;
  }
  return require(infer(expr, want), expected);
}

Checker::E Checker::checkArg(const Arg &arg, const Expectation &expected) {
  return arg.typed ? require(arg.typed, expected) : check(*arg.syntax, expected);
}

Checker::E Checker::inferArg(const Arg &arg, TypeRef hint) {
  return arg.typed ? arg.typed : infer(*arg.syntax, hint);
}

//===----------------------------------------------------------------------===//
// Extents that differ from value to value
//===----------------------------------------------------------------------===//

TypeRef Checker::open(TypeRef type, std::vector<typed::OpenedDim> &openedDims,
                      std::vector<unsigned> path) {
  type = types.resolve(type);
  if (type->is(TypeKind::Tensor)) {
    ops::TensorType tensor = type->tensor;
    bool changed = false;
    for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
      if (!isUnknown(tensor.dims[axis]))
        continue;
      tensor.dims[axis] = Dim::fresh();
      std::string symbol = *tensor.dims[axis].asSymbol();
      context->opened.push_back(symbol);
      openedDims.push_back({symbol, path, static_cast<unsigned>(axis)});
      changed = true;
    }
    return changed ? types.tensor(std::move(tensor)) : type;
  }
  if (type->is(TypeKind::Tuple) && types.containsUnknown(type)) {
    std::vector<TypeRef> fields;
    for (size_t i = 0; i < type->args.size(); ++i) {
      path.push_back(static_cast<unsigned>(i));
      fields.push_back(open(type->args[i], openedDims, path));
      path.pop_back();
    }
    return types.tuple(std::move(fields));
  }
  return type;
}

Checker::E Checker::opened(E value) {
  std::vector<typed::OpenedDim> openedDims;
  TypeRef type = open(value->type, openedDims);
  if (openedDims.empty())
    return value;
  auto *result = make<typed::OpenExpr>(value->range, type);
  result->inner = value;
  result->opened = std::move(openedDims);
  return result;
}

TypeRef Checker::close(TypeRef type, size_t mark) {
  if (mark >= context->opened.size())
    return type;
  std::set<std::string> local(context->opened.begin() + static_cast<ptrdiff_t>(mark),
                              context->opened.end());
  auto mentions = [&](auto &&self, const Dim &dim) -> bool {
    for (const std::string &symbol : dims.resolve(dim).symbols()) {
      if (local.contains(symbol))
        return true;
      if (auto it = dims.quotients().find(symbol); it != dims.quotients().end()) {
        DimContext::Quotient quotient = it->second;
        if (self(self, quotient.numerator) || self(self, quotient.denominator))
          return true;
      }
    }
    return false;
  };
  return types.mapDims(type, [&](const Dim &dim) {
    return mentions(mentions, dim) ? unknownDim() : dim;
  });
}

TypeRef Checker::mergeAnnotation(TypeRef annotation, TypeRef actual) {
  annotation = types.resolve(annotation);
  actual = types.resolve(actual);
  if (annotation->is(TypeKind::Tensor) && actual->is(TypeKind::Tensor) &&
      annotation->tensor.dims.size() == actual->tensor.dims.size()) {
    ops::TensorType merged = annotation->tensor;
    for (size_t i = 0; i < merged.dims.size(); ++i)
      merged.dims[i] = isUnknown(merged.dims[i]) ? actual->tensor.dims[i]
                                                 : dims.resolve(merged.dims[i]);
    return types.tensor(std::move(merged));
  }
  if (annotation->is(TypeKind::Tuple) && actual->is(TypeKind::Tuple) &&
      annotation->args.size() == actual->args.size()) {
    std::vector<TypeRef> fields;
    for (size_t i = 0; i < annotation->args.size(); ++i)
      fields.push_back(mergeAnnotation(annotation->args[i], actual->args[i]));
    return types.tuple(std::move(fields));
  }
  return annotation;
}

void Checker::bindAnnotationDims(const TypeScope &scope) {
  for (const auto &[name, dim] : scope.made) {
    Dim bound = dims.resolve(dim);
    if (dims.hasFreeVariables(bound)) {
      diags.error(scope.madeAt.at(name),
                  fmt::format("nothing tells what dim '{}' is here", name),
                  "a new dim can only name an extent of the value");
      bound = Dim::fresh();
    }
    context->locals.push_back({name, bound});
  }
}

std::optional<Dim> Checker::toDim(const typed::Expr &expr) {
  if (const auto *number = expr.as<typed::NumberExpr>()) {
    TypeRef type = types.resolve(number->type);
    if (type->is(TypeKind::Int) || type->is(TypeKind::Variable))
      return Dim(number->integer);
    return std::nullopt;
  }
  if (const auto *dim = expr.as<typed::DimValueExpr>())
    return dim->dim;
  if (const auto *local = expr.as<typed::LocalExpr>()) {
    if (local->variable->dim)
      return *local->variable->dim;
    TypeRef type = types.resolve(local->type);
    if (!local->variable->dimSymbol.empty() && type->is(TypeKind::Int))
      return Dim::symbol(local->variable->dimSymbol);
    return std::nullopt;
  }
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar || scalar->operands.size() > 2)
    return std::nullopt;
  std::vector<Dim> operands;
  for (const typed::Expr *operand : scalar->operands) {
    std::optional<Dim> dim = toDim(*operand);
    if (!dim)
      return std::nullopt;
    operands.push_back(std::move(*dim));
  }
  std::optional<Dim> result;
  switch (scalar->op) {
  case typed::ScalarOp::Neg:
    result = Dim(0) - operands[0];
    break;
  case typed::ScalarOp::Add:
    result = operands[0] + operands[1];
    break;
  case typed::ScalarOp::Sub:
    result = operands[0] - operands[1];
    break;
  case typed::ScalarOp::Mul:
    result = operands[0] * operands[1];
    break;
  case typed::ScalarOp::Div:
    result = dims.divide(operands[0], operands[1]);
    break;
  case typed::ScalarOp::Mod:
    result = dims.remainder(operands[0], operands[1]);
    break;
  default:
    return std::nullopt;
  }
  if (result && result->str().size() > 2000)
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

Checker::E Checker::infer(const Expr &expr, TypeRef hint) {
  // Bodies of functions without result types are checked when they are called, so the depth is not
  // bounded by the nesting of one expression.
  constexpr unsigned deepest = 8000;
  if (depth >= deepest)
    return fail(expr.range, "functions without a result type call each other too deeply here",
                "write the result types");
  ++depth;
  E result = opened(inferInner(expr, hint ? types.resolve(hint) : nullptr));
  --depth;
  if (!withinLimits(types.resolve(result->type), expr.range))
    return error(expr.range);
  return result;
}

Checker::E Checker::inferInner(const Expr &expr, TypeRef hint) {
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

Checker::E Checker::inferName(const NameExpr &expr) {
  const std::string &name = expr.name;
  auto dimValue = [&](const Dim &dim) {
    auto *value = make<typed::DimValueExpr>(expr.range, types.intType());
    value->dim = dim;
    return value;
  };
  if (const Local *local = findLocal(name)) {
    if (const Dim *dim = std::get_if<Dim>(&local->what))
      return dimValue(*dim);
    auto *variable = std::get<typed::Variable *>(local->what);
    auto *value = make<typed::LocalExpr>(expr.range, variable->type);
    value->variable = variable;
    return value;
  }
  auto param = [&](const ParamInfo &info, E layer) -> E {
    auto *value = make<typed::ParamExpr>(expr.range, info.type);
    value->param = &info;
    value->layer = layer;
    return value;
  };
  auto letValue = [&](LetInfo &info, E layer) -> E {
    if (letStates[&info] == BodyState::Active)
      return fail(expr.range, fmt::format("the value of '{}' depends on itself", name));
    checkLet(info);
    if (info.isLayer) {
      auto *value = make<typed::LayerLetExpr>(expr.range, info.type);
      value->let = &info;
      value->layer = layer;
      return value;
    }
    auto *value = make<typed::ConstantExpr>(expr.range, info.type);
    value->let = &info;
    value->layer = layer;
    return value;
  };
  if (context->layer) {
    auto self = [&] { return make<typed::LayerSelfExpr>(expr.range, types.error()); };
    for (const ParamInfo *info : context->layer->params)
      if (info->name == name)
        return param(*info, self());
    for (LetInfo *info : context->layer->lets)
      if (info->name == name)
        return letValue(*info, self());
    for (const FnInfo *fn : context->layer->fns)
      if (fn->name == name)
        return inferFunctionName(expr);
  }
  if (std::optional<Dim> dim = findDim(name))
    return dimValue(*dim);
  if (const Named *named = findGlobal(name)) {
    if (auto *info = std::get_if<ParamInfo *>(&named->what))
      return param(**info, nullptr);
    if (auto *info = std::get_if<LetInfo *>(&named->what))
      return letValue(**info, nullptr);
    if (auto *layer = std::get_if<LayerInfo *>(&named->what))
      return fail(expr.range, fmt::format("'{}' is a layer; an instance of it is made by a call",
                                          name),
                  fmt::format("let x = {}(...), outside functions", (*layer)->name));
    if (auto *ctor = std::get_if<ConstructorRef>(&named->what);
        ctor && ctor->data->constructors[ctor->index].fields.empty())
      return construct(*ctor, {}, expr.range, nullptr);
  }
  if (namesFunction(expr))
    return inferFunctionName(expr);
  return fail(expr.range, fmt::format("there is no '{}' here", name),
              suggest(name, visibleValues()));
}

/// A function's name where a value is wanted and no function type is known: only `let f = name`
/// comes here with success, when the function has one type.
Checker::E Checker::inferFunctionName(const Expr &expr) {
  const auto *name = expr.as<NameExpr>();
  FnInfo *fn = nullptr;
  if (name && context->layer)
    for (FnInfo *member : context->layer->fns)
      if (member->name == name->name)
        fn = member;
  if (name && !fn)
    if (const Named *named = findGlobal(name->name))
      if (auto *global = std::get_if<FnInfo *>(&named->what))
        fn = *global;
  std::string text = name ? name->name : expr.to<FieldExpr>().field.name;
  if (const Named *named = name && !fn ? findGlobal(text) : nullptr)
    if (const auto *ctor = std::get_if<ConstructorRef>(&named->what)) {
      std::string fields;
      for (const DataInfo::Field &field : ctor->data->constructors[ctor->index].fields)
        fields += (fields.empty() ? "" : ", ") + field.name;
      return fail(expr.range, fmt::format("constructor '{}' needs its fields", text),
                  fmt::format("write {}({})", text, fields));
    }
  if (!fn || !fn->typeParams.empty() || !fn->dims.empty())
    return fail(expr.range, fmt::format("'{}' is a function; it can be called or passed as an "
                                        "argument",
                                        text));
  if (!needResult(*fn, expr.range))
    return error(expr.range);
  for (TypeRef param : fn->paramTypes)
    if (!types.isFirstClass(param))
      return fail(expr.range, fmt::format("'{}' takes functions, so it can only be called", text));
  return expandFunctionName(
      expr, {types.function(fn->paramTypes, fn->result), fmt::format("'{}'", text)});
}

Checker::E Checker::inferUnary(const UnaryExpr &expr, TypeRef hint) {
  E operand = infer(*expr.operand, hint);
  TypeRef type = types.resolve(operand->type);
  if (type->is(TypeKind::Error))
    return operand;
  bool isNot = expr.op == UnaryOp::Not;
  if (type->is(TypeKind::Tensor))
    return applyInfix(isNot ? "not" : "neg", {operand}, expr.range, isNot ? "!" : "-");
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

Checker::E Checker::inferBinary(const BinaryExpr &expr, TypeRef hint) {
  std::string sign(spellingOf(expr.op));
  if (expr.op == BinaryOp::Cons) {
    if (hint && hint->is(TypeKind::List) && !types.contains(hint, TypeKind::Layer)) {
      E head = check(*expr.lhs, {hint->element(), "the element before '::'"});
      E tail = check(*expr.rhs, {hint, "the list after '::'"});
      bool bad = isError(head->type) || isError(tail->type);
      return makeBuiltin(typed::Builtin::Cons, {head, tail}, expr.range,
                         bad ? types.error() : hint);
    }
    E tail = listArg({expr.rhs, nullptr, expr.rhs->range, nullptr}, "what follows '::'", false);
    if (isError(tail->type)) {
      infer(*expr.lhs);
      return tail;
    }
    TypeRef list = types.resolve(tail->type);
    E head = check(*expr.lhs, {list->element(), "the element before '::'"});
    return makeBuiltin(typed::Builtin::Cons, {head, tail}, expr.range,
                       isError(head->type) ? types.error() : list);
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
    std::optional<Dim> repeat = isError(count->type) ? std::nullopt : toDim(*count);
    if (!repeat) {
      if (!isError(count->type))
        diags.error(rhs->range, "the number of layers must be known at compile time");
      return error(expr.range);
    }
    auto *list = make<typed::LayerListExpr>(expr.range, a);
    list->repeated = lhs;
    list->repeat = *repeat;
    return list;
  }
  if (a->is(TypeKind::Tensor) || b->is(TypeKind::Tensor) || expr.op == BinaryOp::MatMul) {
    static const std::map<BinaryOp, const char *> names = {
        {BinaryOp::Or, "or"},   {BinaryOp::And, "and"}, {BinaryOp::Eq, "eq"},
        {BinaryOp::Ne, "ne"},   {BinaryOp::Lt, "lt"},   {BinaryOp::Le, "le"},
        {BinaryOp::Gt, "gt"},   {BinaryOp::Ge, "ge"},   {BinaryOp::Add, "add"},
        {BinaryOp::Sub, "sub"}, {BinaryOp::Mul, "mul"}, {BinaryOp::Div, "div"},
        {BinaryOp::Mod, "mod"}, {BinaryOp::MatMul, "matmul"}};
    return applyInfix(names.at(expr.op), {lhs, rhs}, expr.range, sign);
  }
  return inferHostBinary(expr, lhs, rhs);
}

Checker::E Checker::inferHostBinary(const BinaryExpr &expr, E lhs, E rhs) {
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

Checker::E Checker::inferTuple(const TupleExpr &expr, TypeRef hint) {
  auto *tuple = make<typed::TupleExpr>(expr.range, nullptr);
  std::vector<TypeRef> fields;
  bool hinted = hint && hint->is(TypeKind::Tuple) && hint->args.size() == expr.elements.size();
  for (size_t i = 0; i < expr.elements.size(); ++i) {
    E element = infer(*expr.elements[i], hinted ? hint->args[i] : nullptr);
    if (!types.isFirstClass(element->type))
      element = fail(element->range, fmt::format("a tuple cannot hold a {}",
                                                 types.contains(element->type, TypeKind::Layer)
                                                     ? "layer"
                                                     : "function"));
    tuple->elements.push_back(element);
    fields.push_back(element->type);
  }
  tuple->type = types.tuple(std::move(fields));
  return tuple;
}

Checker::E Checker::inferList(const ListExpr &expr, TypeRef hint) {
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
  TypeRef type = types.list(joined ? joined : types.variable());
  if (joined && types.contains(joined, TypeKind::Layer)) {
    auto *list = make<typed::LayerListExpr>(expr.range, type);
    list->elements = std::move(elements);
    return list;
  }
  auto *list = make<typed::ListExpr>(expr.range, type);
  list->elements = std::move(elements);
  return list;
}

Checker::E Checker::inferIndex(const IndexExpr &expr) {
  E base = infer(*expr.base);
  TypeRef type = types.resolve(base->type);
  if (type->is(TypeKind::List) && types.resolve(type->element())->is(TypeKind::Layer))
    return indexLayers(expr, base);
  if (type->is(TypeKind::List))
    return indexList(expr, base);
  if (type->is(TypeKind::Tensor))
    return indexTensor(expr, base);
  if (!type->is(TypeKind::Error))
    diags.error(expr.base->range,
                fmt::format("a value of type '{}' cannot be indexed", types.print(type)),
                type->is(TypeKind::Tuple) ? "take the tuple apart: let (a, b) = ..." : "");
  for (const IndexItem &item : expr.items)
    for (const Expr *part : {item.index, item.begin, item.end})
      if (part)
        infer(*part);
  return error(expr.range);
}

Checker::E Checker::indexList(const IndexExpr &expr, E base) {
  TypeRef type = types.resolve(base->type);
  if (expr.items.size() != 1)
    return fail(expr.range, "a list has one index");
  const IndexItem &item = expr.items.front();
  auto position = [&](const Expr &syntax, const char *what) -> E {
    E index = check(syntax, {types.intType(), what});
    if (const auto *number = index->as<typed::NumberExpr>(); number && number->integer < 0)
      return fail(syntax.range, "an index counts from the front, so it cannot be negative",
                  "the last element is xs[len(xs) - 1]");
    return index;
  };
  if (!item.isSlice) {
    E index = position(*item.index, "an index");
    return makeBuiltin(typed::Builtin::ListGet, {base, index}, expr.range,
                       isError(index->type) ? types.error() : type->element());
  }
  E begin = item.begin ? position(*item.begin, "the start of a slice") : nullptr;
  E end = item.end ? position(*item.end, "the end of a slice") : nullptr;
  bool bad = (begin && isError(begin->type)) || (end && isError(end->type));
  return makeBuiltin(typed::Builtin::ListSlice, {base, begin, end}, expr.range,
                     bad ? types.error() : type);
}

Checker::E Checker::indexLayers(const IndexExpr &expr, E base) {
  TypeRef type = types.resolve(base->type);
  if (expr.items.size() != 1)
    return fail(expr.range, "a list of layers has one index");
  const IndexItem &item = expr.items.front();
  if (!item.isSlice) {
    E index = check(*item.index, {types.intType(), "an index"});
    if (isError(index->type))
      return index;
    auto *result = make<typed::LayerIndexExpr>(expr.range, type->element());
    result->list = base;
    result->index = index;
    return result;
  }
  auto bound = [&](const Expr *syntax, const char *what) -> E {
    E value = check(*syntax, {types.intType(), what});
    if (isError(value->type))
      return value;
    std::optional<Dim> dim = toDim(*value);
    std::set<std::string> fixed;
    for (const DeclaredDim &declared : out.dims)
      fixed.insert(declared.name);
    if (context->layer)
      for (const DimParam &param : context->layer->dims)
        fixed.insert(param.symbol);
    bool known = dim.has_value();
    if (dim)
      for (const std::string &symbol : dim->symbols())
        known &= fixed.contains(symbol);
    return known ? value
                 : fail(syntax->range, "the bounds of a slice of layers must be known at compile "
                                       "time");
  };
  auto *result = make<typed::LayerSliceExpr>(expr.range, type);
  result->list = base;
  result->begin = item.begin ? bound(item.begin, "the start of a slice") : nullptr;
  result->end = item.end ? bound(item.end, "the end of a slice") : nullptr;
  if ((result->begin && isError(result->begin->type)) ||
      (result->end && isError(result->end->type)))
    return error(expr.range);
  return result;
}

Checker::E Checker::inferField(const FieldExpr &expr) {
  E base = infer(*expr.base);
  TypeRef type = types.resolve(base->type);
  const std::string &name = expr.field.name;
  if (type->is(TypeKind::Error))
    return error(expr.range);
  if (type->is(TypeKind::Layer)) {
    const LayerInfo &layer = *type->layer;
    std::map<std::string, Dim> values;
    for (size_t i = 0; i < layer.dims.size(); ++i)
      values.emplace(layer.dims[i].symbol, type->dims[i]);
    auto ofInstance = [&](TypeRef inner) {
      return types.substitute(inner, {}, [&](const std::string &symbol) -> std::optional<Dim> {
        auto it = values.find(symbol);
        return it == values.end() ? std::nullopt : std::optional<Dim>(it->second);
      });
    };
    for (const ParamInfo *param : layer.params)
      if (param->name == name) {
        auto *value = make<typed::ParamExpr>(expr.range, ofInstance(param->type));
        value->param = param;
        value->layer = base;
        return value;
      }
    for (LetInfo *let : layer.lets)
      if (let->name == name) {
        if (letStates[let] == BodyState::Active)
          return fail(expr.range, fmt::format("the value of '{}' depends on itself", name));
        checkLet(*let);
        if (let->isLayer) {
          auto *value = make<typed::LayerLetExpr>(expr.range, ofInstance(let->type));
          value->let = let;
          value->layer = base;
          return value;
        }
        auto *value = make<typed::ConstantExpr>(expr.range, ofInstance(let->type));
        value->let = let;
        value->layer = base;
        return value;
      }
    std::vector<std::string> members;
    for (const FnInfo *fn : layer.fns) {
      if (fn->name == name)
        return fail(expr.range, fmt::format("'{}' is a function; it can be called or passed as an "
                                            "argument",
                                            name));
      members.push_back(fn->name);
    }
    for (const ParamInfo *param : layer.params)
      members.push_back(param->name);
    for (const LetInfo *let : layer.lets)
      members.push_back(let->name);
    return fail(expr.field.range,
                fmt::format("layer '{}' has no member '{}'", layer.name, name),
                suggest(name, members));
  }
  if (type->is(TypeKind::Data) && type->data->constructors.size() == 1) {
    const DataInfo::Constructor &ctor = type->data->constructors.front();
    std::vector<std::string> fields;
    for (const DataInfo::Field &field : ctor.fields)
      fields.push_back(field.name);
    auto found = std::find(fields.begin(), fields.end(), name);
    if (found == fields.end())
      return fail(expr.field.range, fmt::format("'{}' has no field '{}'", type->data->name, name),
                  suggest(name, fields));
    // x.f is match x { C(_, f, _) => f }
    std::map<TypeRef, TypeRef> params;
    for (size_t i = 0; i < type->args.size(); ++i)
      params.emplace(type->data->typeParams[i], type->args[i]);
    auto *match = make<typed::MatchExpr>(expr.range, nullptr);
    match->scrutinee = base;
    typed::Pattern *pattern =
        makePattern(typed::PatternKind::Constructor, expr.range, type);
    for (size_t i = 0; i < ctor.fields.size(); ++i) {
      TypeRef fieldType = types.substitute(ctor.fields[i].type, params,
                                           [](const std::string &) { return std::nullopt; });
      bool wanted = static_cast<size_t>(found - fields.begin()) == i;
      pattern->args.push_back(makePattern(
          wanted ? typed::PatternKind::Bind : typed::PatternKind::Wildcard, expr.range, fieldType));
      if (!wanted)
        continue;
      match->type = fieldType;
      typed::Variable &variable = storage.variables.emplace_back();
      variable.name = name;
      variable.type = fieldType;
      pattern->args.back()->variable = &variable;
      auto *body = make<typed::LocalExpr>(expr.range, fieldType);
      body->variable = &variable;
      match->arms.push_back({pattern, nullptr, body});
    }
    return match;
  }
  return fail(expr.field.range,
              fmt::format("a value of type '{}' has no fields", types.print(type)),
              type->is(TypeKind::Data) ? "take it apart with match"
              : type->is(TypeKind::Tuple)
                  ? "take the tuple apart: let (a, b) = ..."
                  : "");
}

//===----------------------------------------------------------------------===//
// Blocks and branches
//===----------------------------------------------------------------------===//

Checker::E Checker::inferBlock(const BlockExpr &expr, const Expectation *expected, TypeRef hint) {
  Scope scope(*this);
  auto *block = make<typed::BlockExpr>(expr.range, nullptr);
  for (const Stmt &stmt : expr.stmts) {
    if (stmt.kind == Stmt::Kind::Let)
      checkLetStmt(stmt, *block);
    else
      checkCheckStmt(stmt, *block);
  }
  E result = expected ? check(*expr.result, *expected) : infer(*expr.result, hint);
  block->result = result;
  block->type = result->type;
  return block;
}

void Checker::checkLetStmt(const Stmt &stmt, typed::BlockExpr &block) {
  typed::Stmt result;
  result.range = stmt.range;
  std::vector<typed::OpenedDim> openedDims;
  TypeScope scope;
  scope.newDims = NewDims::Bind;
  scope.allowLayer = true;
  E value;
  TypeRef type;
  if (stmt.type) {
    TypeRef annotation = convertType(*stmt.type, scope);
    const auto *binding = stmt.pattern->as<BindingPattern>();
    value = check(*stmt.value,
                  {annotation, binding ? fmt::format("'{}'", binding->name) : "the value"});
    if (isError(value->type) || isError(annotation)) {
      type = types.isSound(annotation) ? close(annotation, context->opened.size()) : types.error();
      for (const auto &[name, dim] : scope.made)
        context->locals.push_back({name, dims.hasFreeVariables(dim) ? Dim::fresh()
                                                                    : dims.resolve(dim)});
      if (!scope.made.empty())
        type = types.error();
    } else {
      type = mergeAnnotation(annotation, value->type);
      bindAnnotationDims(scope);
    }
    type = open(type, openedDims);
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
  typed::Pattern *pattern = checkPattern(*stmt.pattern, type);
  pattern->opened.insert(pattern->opened.end(), openedDims.begin(), openedDims.end());
  requireIrrefutable(*pattern, "a 'let'");
  if (pattern->variable) {
    if (isStatic) {
      pattern->variable->staticValue = value;
    } else if (std::optional<Dim> dim = toDim(*value);
               dim && types.resolve(type)->is(TypeKind::Int)) {
      // A quotient of ints is rounded, one of extents must be exact: not the same thing.
      std::vector<std::string> symbols = dim->symbols();
      if (std::none_of(symbols.begin(), symbols.end(), [&](const std::string &symbol) {
            return dims.quotients().contains(symbol);
          }))
        pattern->variable->dim = *dim;
    }
  }
  result.pattern = pattern;
  result.value = value;
  result.type = type;
  block.stmts.push_back(std::move(result));
}

void Checker::checkCheckStmt(const Stmt &stmt, typed::BlockExpr &block) {
  typed::Stmt result;
  result.range = stmt.range;
  E condition = check(*stmt.value, {types.boolType(), "the condition of 'check'"});
  result.value = condition;
  if (stmt.message) {
    result.message = *stmt.message;
  } else {
    std::string text(diags.file().slice(stmt.value->range));
    std::replace(text.begin(), text.end(), '\n', ' ');
    result.message = "check failed: " + text;
  }
  block.stmts.push_back(std::move(result));
  if (!isError(condition->type))
    assumeEqualities(*condition, /*certain=*/true);
}

void Checker::assumeEqualities(const typed::Expr &condition, bool certain) {
  const auto *scalar = condition.as<typed::ScalarExpr>();
  if (!scalar)
    return;
  if (scalar->op == typed::ScalarOp::And) {
    for (const typed::Expr *operand : scalar->operands)
      assumeEqualities(*operand, certain);
    return;
  }
  if (scalar->op != typed::ScalarOp::Eq)
    return;
  std::optional<Dim> a = toDim(*scalar->operands[0]), b = toDim(*scalar->operands[1]);
  if (!a || !b)
    return;
  std::optional<int64_t> x = dims.value(*a), y = dims.value(*b);
  if (x && y) {
    if (*x != *y && certain)
      diags.error(condition.range, fmt::format("this check never holds: {} is not {}", *x, *y));
    return;
  }
  dims.assume(*a, *b);
}

Checker::E Checker::inferIf(const IfExpr &expr, const Expectation *expected, TypeRef hint) {
  auto *result = make<typed::IfExpr>(expr.range, nullptr);
  E condition = check(*expr.condition, {types.boolType(), "the condition of 'if'"});
  result->condition = condition;
  TypeRef branchType = nullptr;
  auto branch = [&](const Expr &syntax, bool holds) -> E {
    size_t mark = context->opened.size();
    Scope scope(*this);
    if (holds && !isError(condition->type))
      assumeEqualities(*condition, /*certain=*/false);
    if (expected)
      return check(syntax, *expected);
    E value = infer(syntax, hint);
    branchType = close(value->type, mark);
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
TypeRef Checker::joinBranches(const std::vector<TypeRef> &branches,
                              const std::vector<SourceRange> &ranges, const std::string &what) {
  TypeRef joined = nullptr;
  for (size_t i = 0; i < branches.size(); ++i) {
    if (isError(branches[i]))
      return types.error();
    if (!types.isFirstClass(branches[i])) {
      diags.error(ranges[i], fmt::format("{} cannot give a {}", what,
                                         types.contains(branches[i], TypeKind::Layer)
                                             ? "layer"
                                             : "function"),
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

Checker::E Checker::inferMatch(const MatchExpr &expr, const Expectation *expected, TypeRef hint) {
  auto *match = make<typed::MatchExpr>(expr.range, nullptr);
  E scrutinee = infer(*expr.scrutinee);
  match->scrutinee = scrutinee;
  TypeRef type = types.resolve(scrutinee->type);
  if (!types.isFirstClass(type)) {
    diags.error(expr.scrutinee->range, fmt::format("a value of type '{}' cannot be matched",
                                                   types.print(type)));
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
    Scope scope(*this);
    typed::MatchArm result;
    size_t before = diags.errorCount();
    result.pattern = checkPattern(*arm.pattern, type);
    patternErrors += diags.errorCount() - before;
    if (arm.guard)
      result.guard = check(*arm.guard, {types.boolType(), "a guard"});
    if (expected) {
      E body = check(*arm.body, *expected);
      bad |= isError(body->type);
      result.body = body;
    } else {
      E body = infer(*arm.body, hint);
      branches.push_back(close(body->type, mark));
      ranges.push_back(body->range);
      result.body = body;
    }
    match->arms.push_back(result);
  }
  if (patternErrors == 0 && !isError(type) && !expr.arms.empty())
    checkArms(expr, *match);
  if (expected)
    match->type = bad || isError(type) || expr.arms.empty() ? types.error() : expected->type;
  else
    match->type = joinBranches(branches, ranges, "the arms of 'match'");
  return match;
}

//===----------------------------------------------------------------------===//
// Functions as values
//===----------------------------------------------------------------------===//

Checker::E Checker::checkLambda(const LambdaExpr &expr, const Expectation &expected) {
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
  Scope scope(*this);
  std::set<std::string> names;
  for (size_t i = 0; i < expr.params.size(); ++i) {
    const FnParam &param = expr.params[i];
    TypeRef given = known ? types.resolve(want->args[i]) : types.error();
    std::vector<typed::OpenedDim> openedDims;
    TypeRef type = open(given, openedDims);
    if (param.type) {
      TypeScope typeScope;
      typeScope.newDims = NewDims::Bind;
      typeScope.allowLayer = true;
      TypeRef annotation = convertType(*param.type, typeScope);
      if (given->is(TypeKind::Variable)) {
        given = types.mapDims(annotation, [&](const Dim &dim) {
          return dims.hasFreeVariables(dim) ? unknownDim() : dim;
        });
        types.subsume(want->args[i], given);
        type = open(given, openedDims);
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
        type = mergeAnnotation(annotation, type);
        bindAnnotationDims(typeScope);
      }
    }
    typed::Pattern *pattern = patternInner(*param.pattern, type, names);
    pattern->opened.insert(pattern->opened.end(), openedDims.begin(), openedDims.end());
    requireIrrefutable(*pattern, "a parameter");
    lambda->params.push_back(pattern);
    lambda->paramTypes.push_back(given);
  }
  finishLambda(*lambda, *expr.body, nullptr, known ? want->result() : nullptr, expected, mark);
  return lambda;
}

/// Checks the body (as written, or already typed) against the result type wanted.
void Checker::finishLambda(typed::LambdaExpr &lambda, const Expr &syntax, E body, TypeRef result,
                           const Expectation &expected, size_t mark) {
  Expectation want = expected;
  want.what = "the result of " + expected.what;
  TypeRef resolved = result ? types.resolve(result) : nullptr;
  if (!body && resolved && !resolved->is(TypeKind::Variable)) {
    want.type = resolved;
    body = check(syntax, want);
    lambda.resultType = resolved;
  } else {
    if (!body)
      body = infer(syntax, resolved);
    TypeRef closed = close(body->type, mark);
    if (!isError(closed) && !types.isFirstClass(closed)) {
      diags.error(body->range, fmt::format("{} cannot return a {}", expected.what,
                                           types.contains(closed, TypeKind::Layer) ? "layer"
                                                                                   : "function"));
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

Checker::E Checker::inferStandaloneLambda(const LambdaExpr &expr) {
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
  return checkLambda(expr, {types.function(std::move(params), types.variable()), "this function"});
}

bool Checker::namesFunction(const Expr &expr) const {
  // Whether a field's base is a layer shows when it is called.
  if (expr.is<FieldExpr>())
    return true;
  const auto *name = expr.as<NameExpr>();
  if (!name || findLocal(name->name))
    return false;
  if (context->layer)
    for (const FnInfo *fn : context->layer->fns)
      if (fn->name == name->name)
        return true;
  if (const Named *named = findGlobal(name->name)) {
    if (const auto *ctor = std::get_if<ConstructorRef>(&named->what))
      return !ctor->data->constructors[ctor->index].fields.empty();
    return std::holds_alternative<FnInfo *>(named->what);
  }
  const ops::Op *op = ops::OpTable::get().find(name->name);
  return builtins().contains(name->name) || (op && !op->internal);
}

Checker::E Checker::expandFunctionName(const Expr &expr, const Expectation &expected) {
  TypeRef want = types.resolve(expected.type);
  auto *lambda = make<typed::LambdaExpr>(expr.range, nullptr);
  lambda->enclosing = context->fn;
  size_t mark = context->opened.size();
  std::vector<Arg> args;
  for (size_t i = 0; i < want->paramCount(); ++i) {
    TypeRef given = types.resolve(want->args[i]);
    typed::Pattern *pattern = makePattern(typed::PatternKind::Bind, expr.range, nullptr);
    pattern->type = open(given, pattern->opened);
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
  E body = opened(callNamed(expr, std::move(args), expr.range, ~0u, nullptr));
  if (isError(body->type))
    return error(expr.range);
  finishLambda(*lambda, expr, body, want->result(), expected, mark);
  return lambda;
}

} // namespace sheaf

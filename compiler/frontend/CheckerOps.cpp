//===- CheckerOps.cpp - Checking tensor operators -------------------------===//
//
// Calls become operands and attributes as the operators' records say. No operator is named here but
// those that `x[i]` and `x[a:b]` stand for.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerOps.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace sheaf {
namespace {

/// The checker's strict answers: equal only if proven.
class StrictOracle : public ops::DimOracle {
public:
  explicit StrictOracle(const DimContext &dims) : dims(dims) {}
  bool same(const Dim &a, const Dim &b) const override { return dims.same(a, b); }
  std::optional<int64_t> value(const Dim &dim) const override { return dims.value(dim); }
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override {
    return dims.exactQuotient(a, b);
  }
  Dim floorQuotient(const Dim &a, int64_t b) const override {
    // Of what is left without the remainder the quotient is exact.
    std::optional<Dim> rest = dims.remainder(a, Dim(b));
    std::optional<Dim> quotient = rest ? dims.divide(a - *rest, Dim(b)) : std::nullopt;
    return quotient ? *quotient : DimOracle::floorQuotient(a, b);
  }

protected:
  const DimContext &dims;
};

/// Takes what holds for some numbers of the dims of a layer for granted: a Program is generated for
/// each instance of the layer, and asks again with its numbers (ProgramGenerator::genApply).
class LayerOracle : public StrictOracle {
public:
  LayerOracle(const DimContext &dims, std::function<bool(const Dim &)> knownInLayer)
      : StrictOracle(dims), knownInLayer(std::move(knownInLayer)) {}
  std::optional<int64_t> value(const Dim &dim) const override {
    if (std::optional<int64_t> known = StrictOracle::value(dim))
      return known;
    // Large and divided by many: what is refused is refused whatever the number.
    constexpr int64_t someNumber = int64_t{720720} << 16;
    return knownInLayer(dim) ? std::optional(someNumber) : std::nullopt;
  }
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override {
    if (std::optional<Dim> exact = StrictOracle::quotient(a, b))
      return exact;
    return knownInLayer(a) && knownInLayer(b) ? dims.divide(a, b) : std::nullopt;
  }

private:
  std::function<bool(const Dim &)> knownInLayer;
};

} // namespace

/// Literals beside floats are floats, else ints.
void OperatorCalls::settleLiterals(const std::vector<const typed::Expr *> &operands) {
  bool hasFloat = false;
  for (const typed::Expr *operand : operands) {
    TypeRef type = types.resolve(operand->type);
    hasFloat |= type->is(TypeKind::Float) ||
                (type->is(TypeKind::Tensor) && ops::isFloat(type->tensor.dtype));
  }
  for (const typed::Expr *operand : operands) {
    TypeRef type = types.resolve(operand->type);
    if (type->is(TypeKind::Variable) && type->numeric)
      types.subsume(type, hasFloat ? types.floatType() : types.intType());
  }
}

std::optional<ops::OperandType> OperatorCalls::operandType(E value, SourceRange range,
                                                           const std::string &what) {
  TypeRef type = types.resolve(value->type);
  ops::OperandType result;
  if (type->is(TypeKind::List)) {
    result.isList = true;
    if (const Dim *length = type->length())
      result.length = dims.resolve(*length);
    result.uniform = !types.containsUnknown(type->element());
    type = types.resolve(type->element());
  }
  switch (type->kind) {
  case TypeKind::Error:
    return std::nullopt;
  case TypeKind::Tensor: {
    ops::TensorType tensor = type->tensor;
    for (Dim &dim : tensor.dims)
      dim = isUnknown(dim) ? Dim::fresh() : dims.resolve(dim);
    result.type = std::move(tensor);
    return result;
  }
  case TypeKind::Int:
    result.type = ops::HostKind::Int;
    if (std::optional<Dim> dim = result.isList ? std::nullopt : extents.toDim(*value))
      result.number = dims.value(*dim);
    break;
  case TypeKind::Float:
    result.type = ops::HostKind::Float;
    break;
  case TypeKind::Bool:
    result.type = ops::HostKind::Bool;
    break;
  case TypeKind::Token:
    result.type = ops::HostKind::Token;
    result.vocab = type->name;
    break;
  case TypeKind::Variable:
    diags.error(range, "the type of this is not known here", "write its type");
    return std::nullopt;
  default:
    diags.error(range, fmt::format("{} must be a tensor, but this is '{}'", what,
                                   types.print(value->type)));
    return std::nullopt;
  }
  if (result.isList) {
    diags.error(range, fmt::format("{} must be a tensor, but this is '{}'", what,
                                   types.print(value->type)));
    return std::nullopt;
  }
  return result;
}

OperatorCalls::E OperatorCalls::applyInfix(const char *name, std::vector<E> operands,
                                           SourceRange range, const std::string &sign) {
  const ops::Op *op = ops::OpTable::get().find(name);
  if (!op)
    return fail(range, fmt::format("'{}' cannot be applied to tensors", sign));
  auto *apply = make<typed::ApplyExpr>(range, nullptr);
  apply->op = op;
  apply->operands.assign(operands.begin(), operands.end());
  settleLiterals(apply->operands);
  std::vector<ops::OperandType> operandTypes;
  for (E operand : operands) {
    auto type = operandType(operand, operand->range, fmt::format("an operand of '{}'", sign));
    if (!type)
      return error(range);
    operandTypes.push_back(*type);
  }
  return finishApply(apply, std::move(operandTypes), range);
}

OperatorCalls::E OperatorCalls::applyOp(const ops::Op &op, const std::vector<Arg> &args,
                                        SourceRange range) {
  using ops::ParamKind;
  // Which arguments each parameter gets.
  std::vector<std::vector<const Arg *>> given(op.params.size());
  std::vector<const Arg *> positional;
  bool bad = false;
  for (const Arg &arg : args) {
    if (!arg.name) {
      positional.push_back(&arg);
      continue;
    }
    auto it = std::find_if(op.params.begin(), op.params.end(), [&](const ops::Param &param) {
      return param.name == arg.name->name && param.kind != ParamKind::Key;
    });
    if (it == op.params.end()) {
      std::vector<std::string> names;
      for (const ops::Param &param : op.params)
        if (param.kind != ParamKind::Key)
          names.push_back(param.name);
      std::string help = state.suggest(arg.name->name, names);
      if (arg.name->name == "dim" && std::find(names.begin(), names.end(), "axis") != names.end())
        help = "did you mean 'axis'?";
      diags.error(arg.name->range,
                  fmt::format("'{}' has no argument '{}'", op.name, arg.name->name), help);
      bad = true;
      continue;
    }
    auto &place = given[static_cast<size_t>(it - op.params.begin())];
    if (!place.empty()) {
      diags.error(arg.name->range,
                  fmt::format("argument '{}' of '{}' is given twice", arg.name->name, op.name));
      bad = true;
    }
    place.push_back(&arg);
  }
  size_t next = 0;
  for (size_t i = 0; i < op.params.size() && next < positional.size(); ++i) {
    bool takesAll =
        op.params[i].kind == ParamKind::Tensors || op.params[i].kind == ParamKind::Extents;
    if (!given[i].empty() || op.params[i].kind == ParamKind::Key)
      continue;
    do
      given[i].push_back(positional[next++]);
    while (takesAll && next < positional.size());
  }
  std::string usage = op.name + "(";
  for (size_t i = 0; i < op.params.size(); ++i) {
    const ops::Param &param = op.params[i];
    if (param.kind == ParamKind::Key)
      continue;
    bool many = param.kind == ParamKind::Tensors || param.kind == ParamKind::Extents;
    usage += (i ? ", " : "") + param.name + (many ? "..." : "") +
             (param.defaultValue || param.optional ? "=..." : "");
  }
  usage += ")";
  if (next < positional.size()) {
    diags.error(positional[next]->range, fmt::format("'{}' takes no more arguments", op.name),
                fmt::format("it is written {}", usage));
    bad = true;
  }

  auto *apply = make<typed::ApplyExpr>(range, nullptr);
  apply->op = &op;
  std::vector<std::pair<E, std::string>> operands;
  for (size_t i = 0; i < op.params.size(); ++i) {
    const ops::Param &param = op.params[i];
    std::string what = fmt::format("argument '{}' of '{}'", param.name, op.name);
    bool mayBeEmpty = param.defaultValue || param.optional || param.kind == ParamKind::Tensors ||
                      param.kind == ParamKind::Extents || param.kind == ParamKind::Key;
    if (given[i].empty() && !mayBeEmpty) {
      if (!bad)
        diags.error(range, fmt::format("'{}' is missing its argument '{}'", op.name, param.name),
                    fmt::format("it is written {}", usage));
      bad = true;
      continue;
    }
    std::vector<Dim> extents;
    for (const Arg *arg : given[i]) {
      switch (param.kind) {
      case ParamKind::Tensor:
      case ParamKind::Tensors:
      case ParamKind::Index: {
        E value = bodies.inferArg(*arg);
        // Beside floats a literal would become one, which no index is.
        if (param.kind == ParamKind::Index)
          settleLiterals({value});
        operands.emplace_back(value, what);
        bad |= isError(value->type);
        break;
      }
      case ParamKind::List: {
        E value = tensorsOfList(bodies.listArg(*arg, what, false));
        if (!isError(value->type) && types.resolve(value->type)->element() &&
            !types.resolve(types.resolve(value->type)->element())->is(TypeKind::Tensor)) {
          TypeRef element = types.resolve(types.resolve(value->type)->element());
          if (!element->is(TypeKind::Error)) {
            value = fail(value->range, fmt::format("{} must be a list of tensors, but this is '{}'",
                                                   what, types.print(value->type)));
          }
        }
        operands.emplace_back(value, what);
        bad |= isError(value->type);
        break;
      }
      case ParamKind::Extent:
      case ParamKind::Extents: {
        std::optional<Dim> dim = extentArg(*arg, *apply, what);
        bad |= !dim;
        extents.push_back(dim.value_or(Dim(1)));
        break;
      }
      case ParamKind::Static: {
        std::string help = param.name == "axis" ? elementwiseHelp(op) : "";
        std::optional<int64_t> value =
            staticInt(*arg, what, help.empty() ? fmt::format("it is written {}", usage) : help);
        bad |= !value;
        apply->attrs[param.name] = value.value_or(0);
        break;
      }
      case ParamKind::Number: {
        std::optional<double> value;
        if (arg->syntax)
          value = evaluateNumber(
              *arg->syntax, [&](const std::string &name) { return state.constantNumber(name); });
        if (!value) {
          diags.error(arg->range, fmt::format("{} must be a constant number", what));
          bad = true;
        }
        apply->attrs[param.name] = value.value_or(0);
        break;
      }
      case ParamKind::Key:
        break;
      }
    }
    if (param.kind == ParamKind::Extents)
      apply->attrs[param.name] = extents;
    else if (param.kind == ParamKind::Extent && !extents.empty())
      apply->attrs[param.name] = extents.front();
  }
  for (auto &[operand, what] : operands)
    apply->operands.push_back(operand);
  settleLiterals(apply->operands);
  std::vector<ops::OperandType> operandTypes;
  for (auto &[operand, what] : operands) {
    const ops::Param *list = nullptr;
    for (const ops::Param &param : op.params)
      if (param.kind == ParamKind::List)
        list = &param;
    if (isError(operand->type))
      continue;
    TypeRef type = types.resolve(operand->type);
    if (type->is(TypeKind::List) && !list) {
      diags.error(operand->range,
                  fmt::format("{} must be a tensor, but this is '{}'", what, types.print(type)),
                  tensorOfListHelp(type));
      bad = true;
      continue;
    }
    auto converted = operandType(operand, operand->range, what);
    bad |= !converted;
    if (converted)
      operandTypes.push_back(*converted);
  }
  if (bad)
    return error(range);
  if (op.draws())
    operandTypes.push_back({ops::HostKind::Int, false});
  return finishApply(apply, std::move(operandTypes), range);
}

/// A list of host scalars as one of tensors without axes; any other list as it is.
OperatorCalls::E OperatorCalls::tensorsOfList(E list) {
  if (isError(list->type))
    return list;
  TypeRef element = types.resolve(types.resolve(list->type)->element());
  if (element->is(TypeKind::Variable) && element->numeric) {
    types.subsume(element, types.intType());
    element = types.intType();
  }
  const char *conversion = element->is(TypeKind::Int)     ? "i32"
                           : element->is(TypeKind::Float) ? "f32"
                           : element->is(TypeKind::Bool)  ? "bool"
                           : element->is(TypeKind::Token) ? "token_tensor"
                                                          : nullptr;
  if (!conversion)
    return list;
  auto *lambda = make<typed::LambdaExpr>(list->range, nullptr);
  lambda->enclosing = context->fn;
  typed::Pattern *pattern = patterns.makePattern(typed::PatternKind::Bind, list->range, element);
  typed::Variable &variable = storage.variables.emplace_back();
  variable.name = "x";
  variable.type = element;
  variable.range = list->range;
  pattern->variable = &variable;
  lambda->params.push_back(pattern);
  lambda->paramTypes.push_back(element);
  auto *value = make<typed::LocalExpr>(list->range, element);
  value->variable = &variable;
  std::vector<Arg> args = {Arg{nullptr, value, list->range, nullptr}};
  E body = applyOp(*ops::OpTable::get().find(conversion), args, list->range);
  lambda->body = body;
  lambda->resultType = body->type;
  lambda->type = types.function({element}, body->type);
  return state.makeBuiltin(typed::Builtin::Map, {lambda, list}, list->range,
                           types.list(body->type, extents.lengthOf(*list)));
}

std::string OperatorCalls::tensorOfListHelp(TypeRef list) {
  TypeRef element = types.resolve(types.resolve(list)->element());
  bool isFloat =
      element->is(TypeKind::Float) || (element->is(TypeKind::Variable) && element->numeric);
  return element->is(TypeKind::Tensor) ? "stack(list) makes one tensor of a list of tensors"
         : isFloat                     ? "stack([f32(a), f32(b)]) makes a tensor of numbers"
                                       : "";
}

/// What the operator says of the operands when extents go by the names that a `let` gave them.
std::optional<ops::ShapeResult>
OperatorCalls::refusalByName(const typed::ApplyExpr &apply,
                             std::vector<ops::OperandType> operands) {
  bool isNamed = false;
  for (ops::OperandType &operand : operands)
    if (auto *tensor = std::get_if<ops::TensorType>(&operand.type))
      for (Dim &dim : tensor->dims) {
        Dim named = isUnknown(dim) ? dim : dims.named(dim);
        isNamed |= named != dims.resolve(dim);
        dim = std::move(named);
      }
  if (!isNamed)
    return std::nullopt;
  StrictOracle oracle(dims);
  ops::ShapeResult shape = apply.op->shape(operands, apply.attrs, oracle);
  return shape.error.empty() ? std::nullopt : std::optional(std::move(shape));
}

/// Where the operator would have a side transposed that is: what to write instead.
std::string OperatorCalls::doubleTransposeHelp(const typed::ApplyExpr &apply,
                                               const std::string &help) {
  for (auto [side, name] : {std::pair(0, "left"), {1, "right"}}) {
    if (!help.starts_with(fmt::format("transpose the {} side", name)))
      continue;
    const typed::Expr *operand = apply.operands[static_cast<size_t>(side)];
    if (const auto *opened = operand->as<typed::OpenExpr>())
      operand = opened->inner;
    const auto *inner = operand->as<typed::ApplyExpr>();
    if (inner && inner->op->name == "transpose")
      return fmt::format("the {0} side fits as it is: leave out its transpose", name);
  }
  return {};
}

OperatorCalls::E OperatorCalls::finishApply(typed::ApplyExpr *apply,
                                            std::vector<ops::OperandType> operands,
                                            SourceRange range) {
  StrictOracle oracle(dims);
  ops::ShapeResult shape = apply->op->shape(operands, apply->attrs, oracle);
  if (!shape.error.empty() && context->layer) {
    LayerOracle later(dims, [this](const Dim &dim) { return state.knownInLayer(dim); });
    if (ops::ShapeResult other = apply->op->shape(operands, apply->attrs, later);
        other.error.empty())
      shape = std::move(other);
  }
  if (!shape.error.empty()) {
    if (std::optional<ops::ShapeResult> byName = refusalByName(*apply, operands))
      shape = std::move(*byName);
    if (std::string help = doubleTransposeHelp(*apply, shape.help); !help.empty())
      shape.help = help;
    bool pointsAtOperand =
        shape.operand >= 0 && static_cast<size_t>(shape.operand) < apply->operands.size();
    if (shape.help.empty() && shape.unproven) {
      auto &[a, b] = *shape.unproven;
      std::string check = "check " + a.str() + " == " + b.str();
      if (!(dims.value(a) && dims.value(b)) && check.find('?') == std::string::npos)
        shape.help = "if they are always equal, say so before: " + check;
    }
    // What the help says of a '?' may be wrong: it may be the extent that is wanted.
    bool isUnnamed = shape.unproven
                         ? shape.unproven->first.isFresh() || shape.unproven->second.isFresh()
                         : false;
    bool isTransposed = isUnnamed && shape.help.starts_with("transpose the ");
    if (isTransposed || (shape.help.empty() && shape.error.find('?') != std::string::npos))
      shape.help +=
          std::string(isTransposed ? "; or, where it fits as it is, " : "") +
          "each '?' is an extent of its own; name them, as in let a: f32[n, h] = ..., and "
          "compare the names: check n == m";
    return fail(pointsAtOperand ? apply->operands[static_cast<size_t>(shape.operand)]->range
                                : range,
                dims.plainNames(shape.error), dims.plainNames(shape.help));
  }
  apply->attrs = ops::canonicalAttrs(*apply->op, operands, std::move(apply->attrs));
  // An extent that no operand and no argument determines is known once the result is there.
  std::set<std::string> known(context->opened.begin(), context->opened.end());
  std::vector<TypeRef> results;
  for (ops::TensorType &type : shape.types) {
    for (Dim &dim : type.dims) {
      std::optional<std::string> symbol = dim.asSymbol();
      if (!symbol || !dim.isFresh())
        continue;
      state.openedAt.emplace(*symbol, range);
      if (known.insert(*symbol).second)
        context->opened.push_back(*symbol);
    }
    results.push_back(types.tensor(type));
  }
  apply->results = std::move(shape.types);
  apply->type = results.size() == 1 ? results.front() : types.tuple(std::move(results));
  return apply;
}

/// What divides what, as it was written.
std::string OperatorCalls::quotientText(const typed::ScalarExpr &quotient) {
  if (diags.file().isWritten(quotient.range.begin))
    return std::string(diags.file().slice(quotient.range));
  auto text = [&](const typed::Expr &operand) { return dims.print(*extents.toDim(operand)); };
  return fmt::format("{} / {}", text(*quotient.operands[0]), text(*quotient.operands[1]));
}

std::optional<Dim> OperatorCalls::extentArg(const Arg &arg, typed::ApplyExpr &apply,
                                            const std::string &what) {
  E value = bodies.checkArg(arg, {types.intType(), what});
  if (isError(value->type))
    return std::nullopt;
  if (std::optional<Dim> dim = extents.toDim(*value))
    return dim;
  if (const typed::ScalarExpr *quotient = extents.inexactQuotient(*value)) {
    diags.error(
        value->range,
        fmt::format("{} leaves a remainder ({} / {}), but an extent must be divided exactly",
                    quotientText(*quotient), *dims.value(*extents.toDim(*quotient->operands[0])),
                    *dims.value(*extents.toDim(*quotient->operands[1]))),
        "let k: int = ... rounds the quotient, and k can be an extent");
    return std::nullopt;
  }
  Dim dim = Dim::fresh();
  dims.mayBeNegative(*dim.asSymbol());
  context->opened.push_back(*dim.asSymbol());
  apply.extents.emplace_back(*dim.asSymbol(), value);
  return dim;
}

std::string OperatorCalls::elementwiseHelp(const ops::Op &op) {
  if (op.name != "max" && op.name != "min")
    return "";
  return fmt::format("{0} reduces x along an axis; element by element it is {0}imum(a, b)",
                     op.name);
}

std::optional<int64_t> OperatorCalls::staticInt(const Arg &arg, const std::string &what,
                                                const std::string &help) {
  E value = bodies.checkArg(arg, {types.intType(), what, help});
  if (isError(value->type))
    return std::nullopt;
  std::optional<Dim> dim = extents.toDim(*value);
  std::optional<int64_t> known = dim ? dims.value(*dim) : std::nullopt;
  if (!known && dim && state.knownInLayer(*dim))
    diags.error(value->range,
                fmt::format("{} must be one number for all layers of '{}', but this depends on its "
                            "dims",
                            what, context->layer->name),
                "write a number, or a dim of the file (dim k = ...)");
  else if (!known)
    diags.error(value->range, fmt::format("{} must be known at compile time", what),
                "write a number, or a dim of the file (dim k = ...)");
  return known;
}

//===----------------------------------------------------------------------===//
// x[i, a:b]
//===----------------------------------------------------------------------===//

std::string OperatorCalls::fromTheEndHelp(const IndexExpr &expr, const IndexItem &item,
                                          const std::string &length) const {
  std::string base = state.written(*expr.base);
  bool isShort = base.size() <= 40 && base.find('\n') == std::string::npos;
  auto bound = [&](const Expr *syntax) -> std::string {
    if (!syntax)
      return "";
    std::string text = state.written(*syntax);
    return text.starts_with('-') ? fmt::format("{} - {}", length, text.substr(1)) : text;
  };
  std::string inside;
  for (const IndexItem &each : expr.items) {
    inside += inside.empty() ? "" : ", ";
    auto part = [&](const Expr *syntax) {
      return &each == &item ? bound(syntax) : syntax ? state.written(*syntax) : std::string();
    };
    inside += each.isSlice ? part(each.begin) + ":" + part(each.end) : part(each.index);
  }
  return fmt::format("write {}[{}]", isShort ? base : "x", inside);
}

OperatorCalls::E OperatorCalls::indexTensor(const IndexExpr &expr, E base) {
  const ops::OpTable &table = ops::OpTable::get();
  TypeRef whole = types.resolve(base->type);
  size_t rank = whole->tensor.dims.size();
  if (expr.items.size() > rank)
    return fail(expr.range, fmt::format("'{}' has {} ax{}, but {} {} indexed", types.print(whole),
                                        rank, rank == 1 ? "is" : "es", expr.items.size(),
                                        expr.items.size() == 1 ? "is" : "are"));
  auto apply = [&](const char *name, std::vector<const typed::Expr *> operands, ops::Attrs attrs,
                   auto &&prepare) -> E {
    auto *node = make<typed::ApplyExpr>(expr.range, nullptr);
    node->op = table.find(name);
    node->operands = std::move(operands);
    node->attrs = std::move(attrs);
    if (!prepare(*node))
      return error(expr.range);
    settleLiterals(node->operands);
    std::vector<ops::OperandType> operandTypes;
    for (const typed::Expr *operand : node->operands) {
      auto type = operandType(const_cast<E>(operand), operand->range, "an index");
      if (!type)
        return error(expr.range);
      operandTypes.push_back(*type);
    }
    return extents.opened(finishApply(node, std::move(operandTypes), expr.range));
  };
  auto nothing = [](typed::ApplyExpr &) { return true; };
  E value = base;
  int64_t axis = 0;
  for (const IndexItem &item : expr.items) {
    if (isError(value->type))
      return error(expr.range);
    for (const Expr *bound : {item.index, item.begin, item.end}) {
      const auto *minus = bound ? bound->as<UnaryExpr>() : nullptr;
      if (!minus || minus->op != UnaryOp::Negate || !minus->operand->is<IntLiteralExpr>())
        continue;
      std::string extent =
          dims.print(types.resolve(value->type)->tensor.dims[static_cast<size_t>(axis)]);
      bool isSum = extent.find_first_of("+-/ ") != std::string::npos;
      return fail(bound->range, "an index counts from the front, so it cannot be negative",
                  extent.find('?') == std::string::npos
                      ? fromTheEndHelp(expr, item, isSum ? "(" + extent + ")" : extent)
                      : "name the extent, as in let x: f32[n, h] = ..., and count from it: n - 1");
    }
    if (!item.isSlice) {
      E index = bodies.infer(*item.index);
      settleLiterals({index});
      TypeRef type = types.resolve(index->type);
      if (type->is(TypeKind::Error))
        return index;
      bool isTensor = type->is(TypeKind::Tensor);
      if (isTensor && expr.items.size() > 1)
        return fail(index->range, "a tensor of indices must be the only index",
                    "index in two steps");
      value = axis == 0 ? apply("index", {value, index}, {}, nothing)
                        : apply("element", {value, index}, {{"axis", axis}}, nothing);
      continue;
    }
    if (item.begin || item.end) {
      Dim extent = types.resolve(value->type)->tensor.dims[static_cast<size_t>(axis)];
      value = apply("slice", {value}, {{"axis", axis}}, [&](typed::ApplyExpr &node) {
        std::optional<Dim> begin = Dim(0), end = dims.resolve(extent);
        if (item.begin)
          begin = extentArg({item.begin, nullptr, item.begin->range, nullptr}, node,
                            "the start of a slice");
        if (item.end)
          end =
              extentArg({item.end, nullptr, item.end->range, nullptr}, node, "the end of a slice");
        if (!begin || !end)
          return false;
        node.attrs["start"] = *begin;
        node.attrs["size"] = *end - *begin;
        return true;
      });
    }
    ++axis;
  }
  return value;
}

} // namespace sheaf

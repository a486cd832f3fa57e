//===- CheckerLists.cpp - Checking built-in functions ---------------------===//
//
// What is built into the language beside operators: functions of lists, and of host scalars.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

const std::map<std::string_view, BodyChecker::BuiltinRule> &BodyChecker::builtins() {
  static const std::map<std::string_view, BuiltinRule> table = {
      {"map", &BodyChecker::builtinMap},
      {"filter", &BodyChecker::builtinFilter},
      {"fold", &BodyChecker::builtinFold},
      {"scan", &BodyChecker::builtinScan},
      {"loop", &BodyChecker::builtinLoop},
      {"zip", &BodyChecker::builtinZip},
      {"zip_shortest", &BodyChecker::builtinZipShortest},
      {"range", &BodyChecker::builtinRange},
      {"enumerate", &BodyChecker::builtinEnumerate},
      {"reverse", &BodyChecker::builtinReverse},
      {"len", &BodyChecker::builtinLen},
      {"shape", &BodyChecker::builtinShape},
      {"append", &BodyChecker::builtinAppend},
      {"concat", &BodyChecker::builtinConcat},
      {"rows", &BodyChecker::builtinRows},
      {"einsum", &BodyChecker::builtinEinsum},
      {"read", &BodyChecker::builtinRead},
      {"read_all", &BodyChecker::builtinReadAll},
      {"emit", &BodyChecker::builtinEmit},
      {"min", &BodyChecker::builtinMin},
      {"max", &BodyChecker::builtinMax},
      {"abs", &BodyChecker::builtinAbs},
      {"floor_div", &BodyChecker::builtinFloorDiv},
      {"floor_mod", &BodyChecker::builtinFloorMod},
      {"sqrt", &BodyChecker::builtinMath<typed::ScalarOp::Sqrt>},
      {"exp", &BodyChecker::builtinMath<typed::ScalarOp::Exp>},
      {"log", &BodyChecker::builtinMath<typed::ScalarOp::Log>},
      {"pow", &BodyChecker::builtinMath<typed::ScalarOp::Pow>},
      {"floor", &BodyChecker::builtinMath<typed::ScalarOp::Floor>},
      {"ceil", &BodyChecker::builtinMath<typed::ScalarOp::Ceil>},
      {"int", &BodyChecker::builtinInt},
      {"float", &BodyChecker::builtinFloat},
      {"token", &BodyChecker::builtinToken},
  };
  return table;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

bool BodyChecker::wantArgs(const std::vector<Arg> &args, size_t least, size_t most,
                           const std::string &name, SourceRange range) {
  for (const Arg &arg : args)
    if (arg.name) {
      diags.error(arg.name->range, fmt::format("'{}' has no argument '{}'", name, arg.name->name));
      return false;
    }
  if (args.size() >= least && args.size() <= most)
    return true;
  std::string count = least == most      ? std::to_string(least)
                      : most == SIZE_MAX ? fmt::format("{} or more", least)
                                         : fmt::format("{} or {}", least, most);
  diags.error(range,
              fmt::format("'{}' takes {} argument{}, but {} {} given", name, count,
                          most == 1 ? "" : "s", args.size(), args.size() == 1 ? "is" : "are"));
  return false;
}

/// What to write where a tensor stands for a list.
std::string BodyChecker::listOfTensorHelp(const ops::TensorType &tensor) const {
  if (tensor.dims.size() != 1)
    return tensor.dims.empty() ? "" : "rows(x) is the list of the rows of a tensor";
  std::string extent = dims.print(tensor.dims.front());
  return fmt::format("range({}) is the list of the places of this vector, and x[i] an element",
                     extent.find('?') == std::string::npos ? extent : "n");
}

BodyChecker::E BodyChecker::listArg(const Arg &arg, const std::string &what, bool allowLayers,
                                    TypeRef hint, const std::string &order) {
  if (arg.syntax && arg.syntax->is<LambdaExpr>())
    return fail(arg.range, fmt::format("{} must be a list, but this is a function", what),
                order.empty() ? "the function comes first" : order);
  E list = inferArg(arg, hint);
  TypeRef type = types.resolve(list->type);
  if (type->is(TypeKind::Error))
    return list;
  if (type->is(TypeKind::Variable) && !type->numeric) {
    types.subsume(type, types.list(types.variable()));
    type = types.resolve(type);
  }
  if (!type->is(TypeKind::List)) {
    std::string help = type->is(TypeKind::Tensor) ? listOfTensorHelp(type->tensor) : "";
    // With the arguments in another order, a list stands elsewhere.
    bool isMatrix = type->is(TypeKind::Tensor) && type->tensor.dims.size() >= 2;
    if (!order.empty() && !isMatrix)
      help = order + (help.empty() ? "" : "; " + help);
    return fail(list->range,
                fmt::format("{} must be a list, but this is '{}'", what, types.print(type)), help);
  }
  if (!allowLayers && types.contains(type, TypeKind::Layer))
    return fail(list->range, fmt::format("{} cannot be a list of layers", what));
  return list;
}

BodyChecker::E BodyChecker::functionArg(const Arg &arg, std::vector<TypeRef> params, TypeRef result,
                                        const std::string &what, const std::string &help) {
  return checkArg(arg, {types.function(std::move(params), result), what, help});
}

BodyChecker::E BodyChecker::builtinEinsum(std::vector<Arg> args, SourceRange range, TypeRef) {
  return operators.einsum(args, range);
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

std::optional<BodyChecker::Zipped> BodyChecker::zipped(const std::vector<Arg> &args,
                                                       const std::string &name, SourceRange range) {
  if (!wantArgs(args, 2, SIZE_MAX, name, range))
    return std::nullopt;
  std::vector<const typed::Expr *> lists;
  std::vector<TypeRef> elements;
  bool bad = false;
  for (const Arg &arg : args) {
    E list = listArg(arg, fmt::format("an argument of '{}'", name), false);
    bad |= isError(list->type);
    lists.push_back(list);
    elements.push_back(bad ? types.error() : types.resolve(list->type)->element());
  }
  if (bad)
    return std::nullopt;
  return Zipped{std::move(lists), types.tuple(std::move(elements))};
}

BodyChecker::E BodyChecker::builtinZipShortest(std::vector<Arg> args, SourceRange range, TypeRef) {
  std::optional<Zipped> given = zipped(args, "zip_shortest", range);
  if (!given)
    return error(range);
  auto &[lists, row] = *given;
  std::optional<Dim> shortest = extents.lengthOf(*lists.front());
  bool same = true;
  for (const typed::Expr *list : lists) {
    std::optional<Dim> other = extents.lengthOf(*list);
    if (shortest && other && dims.same(*shortest, *other))
      continue;
    same = false;
    std::optional<int64_t> x = shortest ? dims.value(*shortest) : std::nullopt;
    std::optional<int64_t> y = other ? dims.value(*other) : std::nullopt;
    shortest = x && y ? std::optional(Dim(std::min(*x, *y))) : std::nullopt;
  }
  return state.makeBuiltin(same ? typed::Builtin::Zip : typed::Builtin::ZipShortest,
                           std::move(lists), range, types.list(row, shortest));
}

BodyChecker::E BodyChecker::builtinZip(std::vector<Arg> args, SourceRange range, TypeRef) {
  std::optional<Zipped> given = zipped(args, "zip", range);
  if (!given)
    return error(range);
  auto &[lists, row] = *given;
  // Known to be of one length, they are; else that is found when the list is made.
  std::optional<Dim> length = extents.lengthOf(*lists.front());
  for (const typed::Expr *list : lists) {
    std::optional<Dim> other = extents.lengthOf(*list);
    std::optional<int64_t> x = length ? dims.value(*length) : std::nullopt;
    std::optional<int64_t> y = other ? dims.value(*other) : std::nullopt;
    if (x && y && *x != *y)
      return fail(list->range,
                  fmt::format("the lists of 'zip' must be equally long, but the first has {} "
                              "elements and this one has {}",
                              *x, *y));
    if (!x && y)
      length = other;
  }
  return state.makeBuiltin(typed::Builtin::Zip, std::move(lists), range, types.list(row, length));
}

BodyChecker::E BodyChecker::builtinRange(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 2, "range", range))
    return error(range);
  std::vector<const typed::Expr *> bounds;
  if (args.size() == 1)
    bounds.push_back(make<typed::NumberExpr>(range, types.intType()));
  bool bad = false;
  for (const Arg &arg : args) {
    E bound = checkArg(arg, {types.intType(), "an argument of 'range'"});
    bad |= isError(bound->type);
    bounds.push_back(bound);
  }
  if (bad)
    return error(range);
  std::optional<Dim> from = extents.unroundedDim(*bounds[0]), to = extents.unroundedDim(*bounds[1]);
  std::optional<Dim> length;
  if (from && to)
    length = dims.isNatural(*to - *from)   ? *to - *from
             : dims.isNatural(*from - *to) ? Dim(0)
                                           : length;
  return state.makeBuiltin(typed::Builtin::Range, std::move(bounds), range,
                           types.list(types.intType(), length));
}

BodyChecker::E BodyChecker::builtinEnumerate(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "enumerate", range))
    return error(range);
  E list = listArg(args[0], "the argument of 'enumerate'", false);
  if (isError(list->type))
    return list;
  TypeRef element = types.resolve(list->type)->element();
  return state.makeBuiltin(
      typed::Builtin::Enumerate, {list}, range,
      types.list(types.tuple({types.intType(), element}), extents.lengthOf(*list)));
}

BodyChecker::E BodyChecker::builtinReverse(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  if (!wantArgs(args, 1, 1, "reverse", range))
    return error(range);
  E list = listArg(args[0], "the argument of 'reverse'", true, hint);
  if (isError(list->type))
    return list;
  if (types.contains(list->type, TypeKind::Layer)) {
    auto *layers = make<typed::LayerSliceExpr>(range, list->type);
    layers->list = list;
    layers->reversed = true;
    return layers;
  }
  return state.makeBuiltin(typed::Builtin::Reverse, {list}, range, list->type);
}

/// An extent of a tensor as an int.
BodyChecker::E BodyChecker::extentOf(E value, size_t axis, SourceRange range) {
  TypeRef type = types.resolve(value->type);
  auto *extent = make<typed::DimValueExpr>(range, types.intType());
  extent->dim = type->tensor.dims[axis];
  if (value->is(typed::ExprKind::Local) || value->is(typed::ExprKind::Param))
    return extent;
  // The extent may have its name from this very value.
  auto *block = make<typed::BlockExpr>(range, types.intType());
  typed::Stmt stmt;
  stmt.pattern = patterns.makePattern(typed::PatternKind::Wildcard, value->range, type);
  stmt.value = value;
  stmt.type = type;
  stmt.range = range;
  block->stmts.push_back(std::move(stmt));
  block->result = extent;
  return block;
}

BodyChecker::E BodyChecker::builtinLen(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "len", range))
    return error(range);
  E value = inferArg(args[0]);
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Tensor) && !type->tensor.dims.empty())
    return extentOf(value, 0, range);
  E list = listArg({nullptr, value, value->range, nullptr}, "the argument of 'len'", true);
  return state.makeBuiltin(typed::Builtin::Len, {list}, range,
                           isError(list->type) ? types.error() : types.intType());
}

BodyChecker::E BodyChecker::builtinShape(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (args.size() == 1 && !args[0].name) {
    bool isWritten = diags.file().isWritten(args[0].range.begin);
    return fail(range, "'shape' takes a tensor and an axis",
                fmt::format("shape({}, 0) is the first extent",
                            isWritten ? diags.file().slice(args[0].range) : "x"));
  }
  if (!wantArgs(args, 2, 2, "shape", range))
    return error(range);
  E value = inferArg(args[0]);
  std::optional<int64_t> axis =
      operators.staticInt(args[1], "the axis of 'shape'", "it is written shape(x, axis)");
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Error) || !axis)
    return error(range);
  if (!type->is(TypeKind::Tensor))
    return fail(
        value->range,
        fmt::format("'shape' takes a tensor and an axis, but this is '{}'", types.print(type)),
        type->is(TypeKind::List) ? "len(xs) is the number of elements of a list" : "");
  auto rank = static_cast<int64_t>(type->tensor.dims.size());
  int64_t place = *axis < 0 ? *axis + rank : *axis;
  if (place < 0 || place >= rank)
    return fail(args[1].range,
                fmt::format("'{}' has {} ax{}, so there is no axis {}", types.print(type), rank,
                            rank == 1 ? "is" : "es", *axis));
  return extentOf(value, static_cast<size_t>(place), range);
}

BodyChecker::E BodyChecker::builtinAppend(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  if (!args.empty() && !args[0].name && !(hint && hint->is(TypeKind::List))) {
    args[0].typed = inferArg(args[0]);
    if (types.resolve(args[0].typed->type)->is(TypeKind::Tensor))
      return operators.applyOp(*ops::OpTable::get().find("append"), args, range);
  }
  if (!wantArgs(args, 2, 2, "append", range))
    return error(range);
  bool hinted = hint && hint->is(TypeKind::List) && types.containsUnknown(hint);
  E list = hinted ? checkArg(args[0], {types.list(hint->element()), "the first argument of "
                                                                    "'append'"})
                  : listArg(args[0], "the first argument of 'append'", false, hint);
  if (isError(list->type)) {
    inferArg(args[1]);
    return list;
  }
  TypeRef elementType = (hinted ? hint : types.resolve(list->type))->element();
  E element =
      checkArg(args[1], {types.forgetLengths(elementType), "the second argument of 'append'"});
  if (isError(element->type))
    return error(range);
  elementType = extents.withLengthsOfBoth(elementType, element->type);
  return state.makeBuiltin(typed::Builtin::Append, {list, element}, range,
                           types.list(elementType, extents.plus(extents.lengthOf(*list), 1)));
}

BodyChecker::E BodyChecker::builtinConcat(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  const ops::Op *op = ops::OpTable::get().find("concat");
  if (!args.empty() && !args[0].name) {
    bool hinted = hint && hint->is(TypeKind::List);
    args[0].typed = inferArg(args[0], hinted ? hint : nullptr);
    TypeRef type = types.resolve(args[0].typed->type);
    if (type->is(TypeKind::List) || !op) {
      if (!wantArgs(args, 1, SIZE_MAX, "concat", range))
        return error(range);
      E first = listArg(args[0], "an argument of 'concat'", false);
      bool bad = isError(first->type);
      TypeRef element = bad                                     ? types.error()
                        : hinted && types.containsUnknown(hint) ? hint->element()
                                                                : type->element();
      std::optional<Dim> length = extents.lengthOf(*first);
      std::vector<const typed::Expr *> lists = {first};
      for (size_t i = 1; i < args.size(); ++i) {
        E list = checkArg(args[i], {bad ? types.error() : types.list(types.forgetLengths(element)),
                                    "an argument of 'concat'"});
        bad |= isError(list->type);
        if (!bad)
          element = extents.withLengthsOfBoth(element, types.resolve(list->type)->element());
        length = extents.plus(length, extents.lengthOf(*list));
        lists.push_back(list);
      }
      return state.makeBuiltin(typed::Builtin::Concat, std::move(lists), range,
                               bad ? types.error() : types.list(element, length));
    }
  }
  return operators.applyOp(*op, args, range);
}

BodyChecker::E BodyChecker::builtinRows(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "rows", range))
    return error(range);
  E value = inferArg(args[0]);
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Error))
    return value;
  if (!type->is(TypeKind::Tensor) || type->tensor.dims.empty())
    return fail(value->range,
                fmt::format("the argument of 'rows' must be a tensor with axes, but this is '{}'",
                            types.print(type)),
                type->is(TypeKind::List) ? "a list is its elements already" : "");
  ops::TensorType row = type->tensor;
  row.dims.erase(row.dims.begin());
  return state.makeBuiltin(typed::Builtin::Rows, {value}, range,
                           types.list(types.tensor(std::move(row)), type->tensor.dims.front()));
}

BodyChecker::E BodyChecker::builtinRead(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "read", range))
    return error(range);
  E value = argOfRead(args[0]);
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Error))
    return value;
  auto refuse = [&](const char *help) {
    return fail(
        value->range,
        fmt::format("'read' takes a tensor of one element, but this is '{}'", types.print(type)),
        help);
  };
  if (!type->is(TypeKind::Tensor))
    return refuse("host values need no reading");
  const std::vector<Dim> &dims = type->tensor.dims;
  if (std::any_of(dims.begin(), dims.end(),
                  [&](const Dim &dim) { return types.dims.value(dim) != 1; }))
    return refuse(dims.size() == 1 ? "pick one first: read(x[0]), read(argmax(x)), read(sum(x)); "
                                     "read_all(x) is the list of all"
                                   : "pick one first: read(x[0, 0]), read(max(x)), read(sum(x))");
  return state.makeBuiltin(typed::Builtin::Read, {value}, range, hostTypeOf(type->tensor));
}

BodyChecker::E BodyChecker::builtinReadAll(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "read_all", range))
    return error(range);
  E value = argOfRead(args[0]);
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Error))
    return value;
  bool isTensor = type->is(TypeKind::Tensor);
  if (isTensor && type->tensor.dims.size() == 1)
    return state.makeBuiltin(typed::Builtin::Read, {value}, range,
                             types.list(hostTypeOf(type->tensor)));
  return fail(
      value->range,
      fmt::format("'read_all' takes a tensor of one axis, but this is '{}'", types.print(type)),
      !isTensor                   ? "host values need no reading"
      : type->tensor.dims.empty() ? "'read' gives the one element that it has"
                                  : "make it one axis first, read_all(reshape(x, n * m)), or read "
                                    "it row by row, map(|row| read_all(row), rows(x))");
}

/// read(sqrt(x)) of a host float is that of the operator.
BodyChecker::E BodyChecker::argOfRead(const Arg &arg) {
  bool isCall = arg.syntax && arg.syntax->is<CallExpr>();
  return inferArg(arg, isCall ? types.tensor(ops::TensorType()) : nullptr);
}

/// Of an element that is read.
TypeRef BodyChecker::hostTypeOf(const ops::TensorType &tensor) {
  return ops::isFloat(tensor.dtype)         ? types.floatType()
         : tensor.dtype == ops::DType::Bool ? types.boolType()
         : tensor.vocab                     ? types.token(*tensor.vocab)
                                            : types.intType();
}

//===----------------------------------------------------------------------===//
// Host scalars
//===----------------------------------------------------------------------===//

std::optional<bool>
BodyChecker::inferHostArgs(std::vector<Arg> &args, size_t count,
                           const std::function<bool(const typed::Expr &, TypeRef)> &isHost) {
  bool host = args.size() == count;
  for (Arg &arg : args) {
    if (arg.name) {
      host = false;
      continue;
    }
    arg.typed = inferArg(arg);
    TypeRef type = types.resolve(arg.typed->type);
    if (type->is(TypeKind::Error))
      return std::nullopt;
    host &= isHost(*arg.typed, type) || (type->is(TypeKind::Variable) && type->numeric);
  }
  return host;
}

BodyChecker::E BodyChecker::hostOrOp(const char *name, typed::ScalarOp scalarOp, size_t count,
                                     std::vector<Arg> args, SourceRange range) {
  std::optional<bool> host = inferHostArgs(args, count, [](const typed::Expr &, TypeRef type) {
    return type->is(TypeKind::Int) || type->is(TypeKind::Float);
  });
  if (!host)
    return error(range);
  if (*host) {
    auto *scalar = make<typed::ScalarExpr>(range, args[0].typed->type);
    scalar->op = scalarOp;
    for (const Arg &arg : args)
      scalar->operands.push_back(arg.typed);
    if (count == 2 && !types.subsume(args[0].typed->type, args[1].typed->type))
      return fail(range,
                  fmt::format("'{}' needs two values of one type, but these are '{}' and "
                              "'{}'",
                              name, types.print(args[0].typed->type),
                              types.print(args[1].typed->type)),
                  "write float(...) around the int");
    return scalar;
  }
  if (const ops::Op *op = ops::OpTable::get().find(name))
    return operators.applyOp(*op, args, range);
  return fail(range, fmt::format("'{}' takes {} ints or floats", name, count));
}

BodyChecker::E BodyChecker::builtinMin(std::vector<Arg> args, SourceRange range, TypeRef) {
  return hostOrOp("min", typed::ScalarOp::Min, 2, std::move(args), range);
}
BodyChecker::E BodyChecker::builtinMax(std::vector<Arg> args, SourceRange range, TypeRef) {
  return hostOrOp("max", typed::ScalarOp::Max, 2, std::move(args), range);
}
BodyChecker::E BodyChecker::builtinAbs(std::vector<Arg> args, SourceRange range, TypeRef) {
  return hostOrOp("abs", typed::ScalarOp::Abs, 1, std::move(args), range);
}

BodyChecker::E BodyChecker::floorDivision(const char *name, typed::ScalarOp op,
                                          std::vector<Arg> args, SourceRange range) {
  if (!wantArgs(args, 2, 2, name, range))
    return error(range);
  auto *scalar = make<typed::ScalarExpr>(range, types.intType());
  scalar->op = op;
  bool bad = false;
  for (const Arg &arg : args) {
    E operand = inferArg(arg);
    TypeRef type = types.resolve(operand->type);
    std::string help = type->is(TypeKind::Float) ? "floor(a / b) is that of floats" : "";
    operand = require(operand, {types.intType(), fmt::format("an argument of '{}'", name), help});
    bad |= isError(operand->type);
    scalar->operands.push_back(operand);
  }
  return bad ? error(range) : scalar;
}

BodyChecker::E BodyChecker::builtinFloorDiv(std::vector<Arg> args, SourceRange range, TypeRef) {
  return floorDivision("floor_div", typed::ScalarOp::FloorDiv, std::move(args), range);
}
BodyChecker::E BodyChecker::builtinFloorMod(std::vector<Arg> args, SourceRange range, TypeRef) {
  return floorDivision("floor_mod", typed::ScalarOp::FloorMod, std::move(args), range);
}

static std::string_view hostMathName(typed::ScalarOp op) {
  switch (op) {
  case typed::ScalarOp::Sqrt:
    return "sqrt";
  case typed::ScalarOp::Exp:
    return "exp";
  case typed::ScalarOp::Log:
    return "log";
  case typed::ScalarOp::Pow:
    return "pow";
  case typed::ScalarOp::Floor:
    return "floor";
  default:
    return "ceil";
  }
}

/// Of floats that are known while the program walks an instance, in double precision. Where a
/// tensor is wanted, and of anything else, it is the operator of this name.
BodyChecker::E BodyChecker::hostMath(typed::ScalarOp scalarOp, std::vector<Arg> args,
                                     SourceRange range, TypeRef hint) {
  bool anyFloat = false;
  std::optional<bool> host = inferHostArgs(args, scalarOp == typed::ScalarOp::Pow ? 2 : 1,
                                           [&](const typed::Expr &arg, TypeRef type) {
                                             anyFloat |= type->is(TypeKind::Float);
                                             return type->is(TypeKind::Float) || isExtent(arg);
                                           });
  if (!host)
    return error(range);
  bool wantsTensor = hint && types.resolve(hint)->is(TypeKind::Tensor);
  if (!*host || !anyFloat || wantsTensor)
    return operators.applyOp(*ops::OpTable::get().find(hostMathName(scalarOp)), args, range);
  auto *scalar = make<typed::ScalarExpr>(range, types.floatType());
  scalar->op = scalarOp;
  for (const Arg &arg : args)
    scalar->operands.push_back(isExtent(*arg.typed) ? floatOf(arg.typed) : arg.typed);
  operators.settleLiterals(scalar->operands);
  return scalar;
}

BodyChecker::E BodyChecker::convertScalar(std::vector<Arg> args, SourceRange range, TypeRef to,
                                          const char *name) {
  if (!wantArgs(args, 1, 1, name, range))
    return error(range);
  E value = inferArg(args[0]);
  TypeRef type = types.resolve(value->type);
  switch (type->kind) {
  case TypeKind::Error:
    return value;
  case TypeKind::Int:
  case TypeKind::Float:
  case TypeKind::Bool:
  case TypeKind::Token:
    break;
  case TypeKind::Variable:
    if (type->numeric)
      break;
    [[fallthrough]];
  default:
    return fail(value->range,
                fmt::format("'{}' converts ints, floats, bools and tokens, but this is '{}'", name,
                            types.print(type)),
                type->is(TypeKind::Tensor)
                    ? "'read' waits for the element of a tensor and gives it as a host value"
                    : "");
  }
  operators.settleLiterals({value});
  auto *scalar = make<typed::ScalarExpr>(range, to);
  scalar->op = typed::ScalarOp::Convert;
  scalar->operands = {value};
  return scalar;
}

BodyChecker::E BodyChecker::builtinInt(std::vector<Arg> args, SourceRange range, TypeRef) {
  return convertScalar(std::move(args), range, types.intType(), "int");
}
BodyChecker::E BodyChecker::builtinFloat(std::vector<Arg> args, SourceRange range, TypeRef) {
  return convertScalar(std::move(args), range, types.floatType(), "float");
}
BodyChecker::E BodyChecker::builtinToken(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  bool hinted = hint && hint->is(TypeKind::Token);
  if (!hinted)
    storage.vocabularies.insert("");
  return convertScalar(std::move(args), range, hinted ? hint : types.token(""), "token");
}

} // namespace sheaf

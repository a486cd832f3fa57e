//===- CheckerHost.cpp - Checking functions of host scalars ---------------===//

#include "compiler/frontend/CheckerHost.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

void HostCalls::addTo(BuiltinTable &table) {
  using typed::ScalarOp;
  table["read"] = rule(*this, &HostCalls::read);
  table["read_all"] = rule(*this, &HostCalls::readAll);
  auto addHostOrOp = [&](const char *name, ScalarOp op, size_t count) {
    table[name] = [=, this](std::vector<Arg> args, SourceRange range, TypeRef) {
      return hostOrOp(name, op, count, std::move(args), range);
    };
  };
  addHostOrOp("min", ScalarOp::Min, 2);
  addHostOrOp("max", ScalarOp::Max, 2);
  addHostOrOp("abs", ScalarOp::Abs, 1);
  auto addDivision = [&](const char *name, ScalarOp op) {
    table[name] = [=, this](std::vector<Arg> args, SourceRange range, TypeRef) {
      return floorDivision(name, op, std::move(args), range);
    };
  };
  addDivision("floor_div", ScalarOp::FloorDiv);
  addDivision("floor_mod", ScalarOp::FloorMod);
  auto addMath = [&](const char *name, ScalarOp op) {
    table[name] = [=, this](std::vector<Arg> args, SourceRange range, TypeRef hint) {
      return hostMath(op, name, std::move(args), range, hint);
    };
  };
  addMath("sqrt", ScalarOp::Sqrt);
  addMath("exp", ScalarOp::Exp);
  addMath("log", ScalarOp::Log);
  addMath("pow", ScalarOp::Pow);
  addMath("floor", ScalarOp::Floor);
  addMath("ceil", ScalarOp::Ceil);
  table["int"] = [this](std::vector<Arg> args, SourceRange range, TypeRef) {
    return convertScalar(std::move(args), range, types.intType(), "int");
  };
  table["float"] = [this](std::vector<Arg> args, SourceRange range, TypeRef) {
    return convertScalar(std::move(args), range, types.floatType(), "float");
  };
  table["token"] = rule(*this, &HostCalls::token);
}

bool isExtent(TypeContext &types, const typed::Expr &expr) {
  if (expr.is(typed::ExprKind::DimValue))
    return true;
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar || scalar->op == typed::ScalarOp::Convert ||
      !types.resolve(scalar->type)->is(TypeKind::Int))
    return false;
  bool hasDim = false;
  for (const typed::Expr *operand : scalar->operands) {
    bool isDim = isExtent(types, *operand);
    if (!isDim && !operand->is(typed::ExprKind::Number))
      return false;
    hasDim |= isDim;
  }
  return hasDim;
}

HostCalls::E HostCalls::floatOf(E value) {
  operators.settleLiterals({value});
  auto *scalar = make<typed::ScalarExpr>(value->range, types.floatType());
  scalar->op = typed::ScalarOp::Convert;
  scalar->operands = {value};
  return scalar;
}

HostCalls::E HostCalls::read(std::vector<Arg> args, SourceRange range, TypeRef) {
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

HostCalls::E HostCalls::readAll(std::vector<Arg> args, SourceRange range, TypeRef) {
  if (!wantArgs(args, 1, 1, "read_all", range))
    return error(range);
  E value = argOfRead(args[0]);
  TypeRef type = types.resolve(value->type);
  if (type->is(TypeKind::Error))
    return value;
  bool isTensor = type->is(TypeKind::Tensor);
  if (isTensor && type->tensor.dims.size() == 1)
    return state.makeBuiltin(typed::Builtin::Read, {value}, range,
                             types.list(hostTypeOf(type->tensor), type->tensor.dims.front()));
  return fail(
      value->range,
      fmt::format("'read_all' takes a tensor of one axis, but this is '{}'", types.print(type)),
      !isTensor                   ? "host values need no reading"
      : type->tensor.dims.empty() ? "'read' gives the one element that it has"
                                  : "make it one axis first, read_all(reshape(x, n * m)), or read "
                                    "it row by row, map(|row| read_all(row), rows(x))");
}

/// read(sqrt(x)) of a host float is that of the operator.
HostCalls::E HostCalls::argOfRead(const Arg &arg) {
  bool isCall = arg.syntax && arg.syntax->is<CallExpr>();
  return inferArg(arg, isCall ? types.tensor(ops::TensorType()) : nullptr);
}

/// Of an element that is read.
TypeRef HostCalls::hostTypeOf(const ops::TensorType &tensor) {
  return ops::isFloat(tensor.dtype)         ? types.floatType()
         : tensor.dtype == ops::DType::Bool ? types.boolType()
         : tensor.vocab                     ? types.token(*tensor.vocab)
                                            : types.intType();
}

//===----------------------------------------------------------------------===//
// Functions of scalars
//===----------------------------------------------------------------------===//

std::optional<bool>
HostCalls::inferHostArgs(std::vector<Arg> &args, size_t count,
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

HostCalls::E HostCalls::hostOrOp(const char *name, typed::ScalarOp scalarOp, size_t count,
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

HostCalls::E HostCalls::floorDivision(const char *name, typed::ScalarOp op, std::vector<Arg> args,
                                      SourceRange range) {
  if (!wantArgs(args, 2, 2, name, range))
    return error(range);
  auto *scalar = make<typed::ScalarExpr>(range, types.intType());
  scalar->op = op;
  bool bad = false;
  for (const Arg &arg : args) {
    E operand = inferArg(arg);
    TypeRef type = types.resolve(operand->type);
    std::string help = type->is(TypeKind::Float) ? "floor(a / b) is that of floats" : "";
    operand = arguments.require(operand,
                                {types.intType(), fmt::format("an argument of '{}'", name), help});
    bad |= isError(operand->type);
    scalar->operands.push_back(operand);
  }
  return bad ? error(range) : scalar;
}

/// Of floats that are known while the program walks an instance, in double precision. Where a
/// tensor is wanted, and of anything else, it is the operator of this name.
HostCalls::E HostCalls::hostMath(typed::ScalarOp scalarOp, const char *name, std::vector<Arg> args,
                                 SourceRange range, TypeRef hint) {
  bool anyFloat = false;
  std::optional<bool> host = inferHostArgs(
      args, scalarOp == typed::ScalarOp::Pow ? 2 : 1, [&](const typed::Expr &arg, TypeRef type) {
        anyFloat |= type->is(TypeKind::Float);
        return type->is(TypeKind::Float) || isExtent(types, arg);
      });
  if (!host)
    return error(range);
  bool wantsTensor = hint && types.resolve(hint)->is(TypeKind::Tensor);
  if (!*host || !anyFloat || wantsTensor)
    return operators.applyOp(*ops::OpTable::get().find(name), args, range);
  auto *scalar = make<typed::ScalarExpr>(range, types.floatType());
  scalar->op = scalarOp;
  for (const Arg &arg : args)
    scalar->operands.push_back(isExtent(types, *arg.typed) ? floatOf(arg.typed) : arg.typed);
  operators.settleLiterals(scalar->operands);
  return scalar;
}

HostCalls::E HostCalls::convertScalar(std::vector<Arg> args, SourceRange range, TypeRef to,
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

HostCalls::E HostCalls::token(std::vector<Arg> args, SourceRange range, TypeRef hint) {
  bool hinted = hint && hint->is(TypeKind::Token);
  if (!hinted)
    storage.vocabularies.insert("");
  return convertScalar(std::move(args), range, hinted ? hint : types.token(""), "token");
}

} // namespace sheaf

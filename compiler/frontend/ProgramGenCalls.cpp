//===- ProgramGenCalls.cpp - Calls, functions as values, layers -----------===//

#include "compiler/frontend/CheckerWalk.h"
#include "compiler/frontend/ProgramGenImpl.h"

#include <fmt/format.h>

namespace sheaf {

using namespace mlir;

bool ProgramGenerator::isStatic(TypeRef type) const {
  return types.contains(type, TypeKind::Function) || types.contains(type, TypeKind::Layer);
}

std::set<std::string> ProgramGenerator::dimsUsed(const typed::Expr &expr) const {
  std::set<std::string> used;
  std::function<void(const Dim &)> add = [&](const Dim &dim) {
    for (const std::string &symbol : types.dims.resolve(dim).symbols()) {
      if (!used.insert(symbol).second)
        continue;
      if (auto it = types.dims.quotients().find(symbol); it != types.dims.quotients().end()) {
        DimContext::Quotient quotient = it->second;
        add(quotient.numerator);
        add(quotient.denominator);
      }
    }
  };
  typed::walk(&expr, [&](const typed::Expr &inner) {
    if (const auto *value = inner.as<typed::DimValueExpr>())
      add(value->dim);
    else if (const auto *function = inner.as<typed::FunctionExpr>())
      for (const Dim &dim : function->dimArgs)
        add(dim);
    else if (const auto *apply = inner.as<typed::ApplyExpr>())
      for (const auto &[name, attr] : apply->attrs) {
        if (const auto *dim = std::get_if<Dim>(&attr))
          add(*dim);
        else if (const auto *several = std::get_if<std::vector<Dim>>(&attr))
          for (const Dim &dim : *several)
            add(dim);
      }
  });
  return used;
}

const ProgramGenerator::Subst *ProgramGenerator::internSubst(Subst subst) {
  std::string key;
  for (const auto &[param, type] : subst.typeArgs)
    key += fmt::format("{}={},", fmt::ptr(param), type.getAsOpaquePointer());
  for (const auto &[symbol, value] : subst.dims)
    key += fmt::format("{}={},", symbol, value);
  key += fmt::format("{}", fmt::ptr(subst.self));
  auto [it, inserted] = substsByKey.try_emplace(key);
  if (inserted)
    it->second = &substs.emplace_back(std::move(subst));
  return it->second;
}

//===----------------------------------------------------------------------===//
// Instances of functions
//===----------------------------------------------------------------------===//

/// The type with extents `?` where the two differ; `now` where they differ otherwise.
mlir::Type ProgramGenerator::widen(Type known, Type now) const {
  if (known == now)
    return now;
  if (auto a = dyn_cast<RankedTensorType>(known), b = dyn_cast<RankedTensorType>(now);
      a && b && a.getRank() == b.getRank() && a.getElementType() == b.getElementType()) {
    SmallVector<int64_t> shape(b.getShape());
    for (int64_t i = 0; i < b.getRank(); ++i)
      if (shape[i] != a.getShape()[i])
        shape[i] = ShapedType::kDynamic;
    return RankedTensorType::get(shape, b.getElementType(), b.getEncoding());
  }
  if (auto a = dyn_cast<TupleType>(known), b = dyn_cast<TupleType>(now);
      a && b && a.size() == b.size()) {
    SmallVector<Type> fields;
    for (auto [x, y] : llvm::zip(a.getTypes(), b.getTypes()))
      fields.push_back(widen(x, y));
    return TupleType::get(now.getContext(), fields);
  }
  if (auto a = dyn_cast<ir::ListType>(known), b = dyn_cast<ir::ListType>(now); a && b)
    return ir::ListType::get(now.getContext(), widen(a.getElement(), b.getElement()));
  return now;
}

ProgramGenerator::FnInstance *
ProgramGenerator::instanceOf(const FnInfo &fn, std::vector<Type> typeArgs,
                             std::vector<std::optional<int64_t>> dims, const LayerInstance *self,
                             std::vector<const StaticCode *> statics, FnInstance *requester) {
  auto inComponent = [&](const FnInstance *instance) {
    return instance && fn.recursive && instance->fn->component == fn.component;
  };
  FnInstance *parent = inComponent(requester) ? requester : nullptr;
  for (FnInstance *before = parent; before; before = before->parent) {
    if (before->fn != &fn || before->subst->self != self || before->statics != statics)
      continue;
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != before->dims[i])
        dims[i] = std::nullopt;
    for (size_t i = 0; i < typeArgs.size(); ++i)
      typeArgs[i] = widen(before->typeArgs[i], typeArgs[i]);
    break;
  }

  std::string key = fmt::format("{} {}", fmt::ptr(&fn), fmt::ptr(self));
  for (Type type : typeArgs)
    key += fmt::format(" {}", type.getAsOpaquePointer());
  for (const std::optional<int64_t> &dim : dims)
    key += dim ? fmt::format(" {}", *dim) : " ?";
  for (const StaticCode *code : statics)
    key += code ? fmt::format(" #{}", code->id) : " -";
  auto [it, inserted] = instancesByKey.try_emplace(key);
  if (!inserted)
    return it->second;

  FnInstance &instance = instances.emplace_back();
  it->second = &instance;
  if (instances.size() > 20000)
    refuse({}, "the program needs more than 20000 instances of its functions");
  instance.fn = &fn;
  instance.typeArgs = typeArgs;
  instance.dims = dims;
  instance.statics = std::move(statics);
  instance.parent = parent;
  Subst subst;
  subst.self = self;
  if (self)
    subst.dims = self->symbols;
  for (size_t i = 0; i < typeArgs.size(); ++i)
    subst.typeArgs.emplace(fn.typeParams[i], typeArgs[i]);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i])
      subst.dims.emplace(fn.dims[i].symbol, *dims[i]);
  instance.subst = internSubst(std::move(subst));

  instance.hasKey = draws.mayDraw(fn);
  for (const StaticCode *code : instance.statics)
    instance.hasKey |= code && code->draws;
  std::set<std::string> used = dimsUsed(*fn.body);
  SmallVector<Type> inputs;
  if (instance.hasKey)
    inputs.push_back(b.getI64Type());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] || !used.contains(fn.dims[i].symbol) || directExtent(fn, fn.dims[i].symbol))
      continue;
    instance.hidden.push_back(i);
    inputs.push_back(b.getI64Type());
  }
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    if (const StaticCode *code = instance.statics[i])
      inputs.append(code->valueTypes.begin(), code->valueTypes.end());
    else
      inputs.push_back(mlirType(fn.paramTypes[i], *instance.subst));
  }
  Type result = mlirType(fn.result, *instance.subst);
  std::string name = self ? self->path.name + "." + fn.name : fn.name;
  for (size_t i = 0; i < typeArgs.size(); ++i)
    name += (i ? ", " : "<") + typeText(typeArgs[i]);
  if (!typeArgs.empty())
    name += ">";
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module->getBody());
  At at(*this, fn.decl->name.range);
  instance.func =
      func::FuncOp::create(b, uniqueSymbol(name), FunctionType::get(&context, inputs, {result}));
  instance.func.setPrivate();
  // Copies of it keep this name, whatever their symbols are.
  instance.func->setLoc(NameLoc::get(
      b.getStringAttr(self ? self->path.name + "." + fn.name : fn.name), instance.func.getLoc()));
  pending.push_back([this, &instance] { generateBody(instance); });
  return &instance;
}

/// Where an argument, or a field of a tuple argument, has the dim as an extent or a length.
std::optional<ProgramGenerator::ExtentPlace>
ProgramGenerator::directExtent(const FnInfo &fn, const std::string &symbol) const {
  Dim dim = Dim::symbol(symbol);
  ExtentPlace place;
  std::function<bool(TypeRef)> find = [&](TypeRef type) {
    type = types.resolve(type);
    if (type->is(TypeKind::Tensor)) {
      for (unsigned axis = 0; axis < type->tensor.dims.size(); ++axis)
        if (type->tensor.dims[axis] == dim) {
          place.axis = axis;
          return true;
        }
      return false;
    }
    if (type->is(TypeKind::List))
      return type->length() && *type->length() == dim && !types.contains(type, TypeKind::Layer);
    if (!type->is(TypeKind::Tuple))
      return false;
    for (unsigned i = 0; i < type->args.size(); ++i) {
      place.path.push_back(i);
      if (find(type->args[i]))
        return true;
      place.path.pop_back();
    }
    return false;
  };
  for (unsigned i = 0; i < fn.paramTypes.size(); ++i) {
    place = {i, {}, 0};
    if (find(fn.paramTypes[i]))
      return place;
  }
  return std::nullopt;
}

/// An int argument that is an extent of the result, which no negative number is.
Value ProgramGenerator::naturalArgument(const FnInfo &fn, const IntExtent &extent,
                                        const std::vector<Value> &args) {
  Value given = args[extent.param];
  Value natural = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, given, constInt(0));
  auto check =
      ir::CheckOp::create(b, natural,
                          fmt::format("'{}' of '{}' is {{0}}, but it is an extent of the result",
                                      fn.params[extent.param]->variable->name, fn.name),
                          given);
  // What uses the argument needs the check.
  return guarded(check, arith::AddIOp::create(b, given, constInt(0)));
}

void ProgramGenerator::generateBody(FnInstance &instance) {
  const FnInfo &fn = *instance.fn;
  Frame body;
  body.subst = instance.subst;
  body.origin = &instance;
  Frame *outer = std::exchange(frame, &body);
  At at(*this, fn.decl->name.range);
  Block *block = instance.func.addEntryBlock();
  b.setInsertionPointToStart(block);
  unsigned next = 0;
  if (instance.hasKey)
    frame->key = block->getArgument(next++);
  for (size_t dim : instance.hidden)
    frame->dims[fn.dims[dim].symbol] = known(block->getArgument(next++));
  std::vector<Value> args(fn.paramTypes.size());
  std::vector<std::vector<Value>> staticArgs(fn.paramTypes.size());
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    if (const StaticCode *code = instance.statics[i])
      for (size_t k = 0; k < valueCount(*code); ++k)
        staticArgs[i].push_back(block->getArgument(next++));
    else
      args[i] = block->getArgument(next++);
  }
  for (size_t i = 0; i < fn.dims.size(); ++i)
    if (!instance.dims[i])
      if (std::optional<ExtentPlace> place = directExtent(fn, fn.dims[i].symbol))
        frame->dims[fn.dims[i].symbol] = {{}, args[place->param], place->path, place->axis};
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    if (const StaticCode *code = instance.statics[i]) {
      if (fn.params[i]->variable)
        frame->statics[fn.params[i]->variable] = {code, staticArgs[i]};
    } else {
      bindPattern(*fn.params[i], args[i]);
    }
  }
  for (const IntExtent &extent : fn.intExtents)
    bindVariable(*fn.params[extent.param]->variable, naturalArgument(fn, extent, args));
  Value result = genAs(*fn.body, instance.func.getResultTypes()[0]);
  b.setLoc(locOf(fn.body->range));
  func::ReturnOp::create(b, result);
  frame = outer;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value ProgramGenerator::genCall(const typed::CallExpr &expr) {
  CallArgs args;
  for (const typed::Expr *arg : expr.args) {
    bool isStaticArg = isStatic(arg->type);
    args.isStatic.push_back(isStaticArg);
    args.statics.push_back(isStaticArg ? genStatic(*arg) : StaticValue{});
    args.values.push_back(isStaticArg ? Value() : gen(*arg));
  }
  Type type = mlirType(expr.type);
  if (stopped)
    return placeholder(type);
  const auto *callee = expr.callee->as<typed::FunctionExpr>();
  if (!callee) {
    std::vector<Value> values;
    std::vector<StaticValue> statics;
    for (size_t i = 0; i < args.isStatic.size(); ++i) {
      if (args.isStatic[i])
        statics.push_back(args.statics[i]);
      else
        values.push_back(args.values[i]);
    }
    return coerce(applyFunction(*expr.callee, values, statics, splitKey(expr)), type);
  }
  if (!callee->layer)
    return coerce(callFunction(expr, args, nullptr), type);
  StaticValue layer = genStatic(*callee->layer);
  if (stopped)
    return placeholder(type);
  return withLayer(layer, type,
                   [&](const StaticCode &code) { return callFunction(expr, args, code.layer); });
}

Value ProgramGenerator::splitKey(const typed::Expr &site, Value index) {
  if (!frame->key)
    return {};
  return ir::SplitKeyOp::create(b, frame->key, uint64_t{draws.siteOf(site)}, index);
}

Value ProgramGenerator::callFunction(const typed::CallExpr &call, const CallArgs &args,
                                     const LayerInstance *self) {
  const auto &callee = call.callee->to<typed::FunctionExpr>();
  std::vector<Type> typeArgs;
  for (TypeRef arg : callee.typeArgs)
    typeArgs.push_back(mlirType(arg));
  std::vector<std::optional<int64_t>> dims;
  for (const Dim &dim : callee.dimArgs)
    dims.push_back(staticDim(dim));
  std::vector<const StaticCode *> statics;
  for (size_t i = 0; i < args.isStatic.size(); ++i)
    statics.push_back(args.isStatic[i] ? args.statics[i].code : nullptr);
  FnInstance *instance = instanceOf(*callee.fn, std::move(typeArgs), std::move(dims), self,
                                    std::move(statics), frame->origin);
  ArrayRef<Type> inputs = instance->func.getArgumentTypes();
  SmallVector<Value> operands;
  if (instance->hasKey)
    operands.push_back(splitKey(call));
  for (size_t dim : instance->hidden)
    operands.push_back(dimValue(callee.dimArgs[dim]));
  for (size_t i = 0; i < args.isStatic.size(); ++i) {
    if (args.isStatic[i])
      operands.append(args.statics[i].values.begin(), args.statics[i].values.end());
    else
      operands.push_back(coerce(args.values[i], inputs[operands.size()]));
  }
  return func::CallOp::create(b, instance->func, operands).getResult(0);
}

Value ProgramGenerator::applyFunction(const typed::Expr &function, const std::vector<Value> &args,
                                      const std::vector<StaticValue> &statics, Value key) {
  KeyScope scope(*this, key);
  if (const auto *lambda = function.as<typed::LambdaExpr>()) {
    size_t nextValue = 0, nextStatic = 0;
    for (const typed::Pattern *param : lambda->params) {
      if (isStatic(param->type)) {
        if (param->variable)
          frame->statics[param->variable] = statics[nextStatic];
        ++nextStatic;
        continue;
      }
      Value arg = coerce(args[nextValue++], mlirType(param->type));
      bindPattern(*param, arg);
    }
    return gen(*lambda->body);
  }
  StaticValue closure = genStatic(function);
  if (stopped)
    return placeholder(b.getI64Type());
  return callClosure(closure, args, statics, {}, key);
}

//===----------------------------------------------------------------------===//
// Closures
//===----------------------------------------------------------------------===//

const ProgramGenerator::StaticCode *ProgramGenerator::intern(StaticCode code,
                                                             const std::string &key) {
  auto [it, inserted] = codesByKey.try_emplace(key);
  if (inserted) {
    code.id = static_cast<unsigned>(codes.size());
    it->second = &codes.emplace_back(std::move(code));
  }
  return it->second;
}

ProgramGenerator::StaticValue ProgramGenerator::makeClosure(const typed::LambdaExpr &lambda) {
  StaticCode code;
  code.kind = StaticCode::Closure;
  code.lambda = &lambda;
  code.subst = frame->subst;
  code.origin = frame->origin;
  StaticValue result;

  // What is bound inside is not captured.
  std::set<const typed::Variable *> bound, seen;
  std::set<std::string> boundDims;
  auto bindAll = [&](const typed::Pattern &pattern) {
    typed::walkPattern(pattern, [&](const typed::Pattern &inner) {
      if (inner.variable)
        bound.insert(inner.variable);
      for (const typed::OpenedDim &dim : inner.opened)
        boundDims.insert(dim.symbol);
    });
  };
  for (const typed::Pattern *param : lambda.params)
    bindAll(*param);
  std::vector<const typed::Variable *> free;
  typed::walk(lambda.body, [&](const typed::Expr &expr) {
    if (const auto *inner = expr.as<typed::LambdaExpr>())
      for (const typed::Pattern *param : inner->params)
        bindAll(*param);
    if (const auto *block = expr.as<typed::BlockExpr>())
      for (const typed::Stmt &stmt : block->stmts)
        if (stmt.pattern)
          bindAll(*stmt.pattern);
    if (const auto *match = expr.as<typed::MatchExpr>())
      for (const typed::MatchArm &arm : match->arms)
        bindAll(*arm.pattern);
    if (const auto *opened = expr.as<typed::OpenExpr>())
      for (const typed::OpenedDim &dim : opened->opened)
        boundDims.insert(dim.symbol);
    if (const auto *local = expr.as<typed::LocalExpr>())
      if (seen.insert(local->variable).second)
        free.push_back(local->variable);
  });

  std::string key = fmt::format("closure {} {}", fmt::ptr(&lambda), fmt::ptr(code.subst));
  for (const std::string &symbol : dimsUsed(*lambda.body)) {
    if (!frame->dims.contains(symbol) || boundDims.contains(symbol) ||
        staticDim(Dim::symbol(symbol)))
      continue;
    code.dims.push_back(symbol);
    result.values.push_back(symbolValue(symbol));
    key += " " + symbol;
  }
  for (const typed::Variable *variable : free) {
    auto it = frame->values.find(variable);
    if (bound.contains(variable) || it == frame->values.end())
      continue;
    code.variables.push_back(variable);
    result.values.push_back(it->second);
    key += fmt::format(" {}", fmt::ptr(variable));
  }
  for (const typed::Variable *variable : free) {
    auto it = frame->statics.find(variable);
    if (bound.contains(variable) || it == frame->statics.end() || !it->second.code)
      continue;
    code.statics.emplace_back(variable, it->second.code);
    result.values.insert(result.values.end(), it->second.values.begin(), it->second.values.end());
    key += fmt::format(" {}#{}", fmt::ptr(variable), it->second.code->id);
  }
  code.draws = draws.mayDraw(*lambda.body);
  for (const auto &[variable, inner] : code.statics)
    code.draws |= inner->draws;
  for (Value value : result.values) {
    code.valueTypes.push_back(value.getType());
    key += fmt::format(" {}", value.getType().getAsOpaquePointer());
  }
  result.code = intern(std::move(code), key);
  return result;
}

void ProgramGenerator::bindStatics(const StaticCode &code, const std::vector<Value> &values) {
  size_t next = 0;
  for (const std::string &symbol : code.dims)
    frame->dims[symbol] = known(values[next++]);
  for (const typed::Variable *variable : code.variables)
    bindVariable(*variable, values[next++]);
  for (const auto &[variable, inner] : code.statics) {
    std::vector<Value> part(values.begin() + static_cast<ptrdiff_t>(next),
                            values.begin() + static_cast<ptrdiff_t>(next + valueCount(*inner)));
    next += valueCount(*inner);
    frame->statics[variable] = {inner, std::move(part)};
  }
}

Value ProgramGenerator::callClosure(const StaticValue &closure, const std::vector<Value> &args,
                                    const std::vector<StaticValue> &statics, Type result,
                                    Value drawnFrom) {
  const StaticCode &code = *closure.code;
  std::string key = std::to_string(code.id);
  for (const StaticValue &value : statics)
    key += fmt::format(" #{}", value.code->id);
  auto [it, inserted] = lambdasByKey.try_emplace(key);
  if (inserted) {
    LambdaInstance &instance = lambdas.emplace_back();
    it->second = &instance;
    if (lambdas.size() > 20000)
      refuse({}, "the program needs more than 20000 instances of its functions");
    instance.code = &code;
    instance.hasKey = code.draws;
    for (const StaticValue &value : statics)
      instance.hasKey |= value.code->draws;
    SmallVector<Type> inputs;
    if (instance.hasKey)
      inputs.push_back(b.getI64Type());
    inputs.append(code.valueTypes.begin(), code.valueTypes.end());
    size_t nextStatic = 0;
    for (TypeRef param : code.lambda->paramTypes) {
      if (!isStatic(param)) {
        inputs.push_back(mlirType(param, *code.subst));
        continue;
      }
      instance.statics.push_back(statics[nextStatic].code);
      inputs.append(statics[nextStatic].code->valueTypes.begin(),
                    statics[nextStatic].code->valueTypes.end());
      ++nextStatic;
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module->getBody());
    At at(*this, code.lambda->range);
    std::string name = code.lambda->params.empty() ? "arm" : "lambda";
    if (code.origin)
      name = code.origin->func.getSymName().str() + "." + name;
    instance.func = func::FuncOp::create(
        b, uniqueSymbol(name),
        FunctionType::get(&context, inputs, {mlirType(code.lambda->resultType, *code.subst)}));
    instance.func.setPrivate();
    pending.push_back([this, &instance] { generateLambda(instance); });
  }
  func::FuncOp func = it->second->func;
  SmallVector<Value> operands;
  if (it->second->hasKey)
    operands.push_back(drawnFrom);
  operands.append(closure.values.begin(), closure.values.end());
  size_t nextValue = 0, nextStatic = 0;
  for (TypeRef param : code.lambda->paramTypes) {
    if (isStatic(param)) {
      const StaticValue &value = statics[nextStatic++];
      operands.append(value.values.begin(), value.values.end());
    } else {
      operands.push_back(coerce(args[nextValue++], func.getArgumentTypes()[operands.size()]));
    }
  }
  Value value = func::CallOp::create(b, func, operands).getResult(0);
  return result ? coerce(value, result) : value;
}

void ProgramGenerator::generateLambda(LambdaInstance &instance) {
  const StaticCode &code = *instance.code;
  Frame body;
  body.subst = code.subst;
  body.origin = code.origin;
  Frame *outer = std::exchange(frame, &body);
  At at(*this, code.lambda->range);
  Block *block = instance.func.addEntryBlock();
  b.setInsertionPointToStart(block);
  unsigned next = 0;
  if (instance.hasKey)
    frame->key = block->getArgument(next++);
  std::vector<Value> captured;
  for (size_t i = 0; i < valueCount(code); ++i)
    captured.push_back(block->getArgument(next++));
  bindStatics(code, captured);
  size_t nextStatic = 0;
  for (size_t i = 0; i < code.lambda->params.size(); ++i) {
    const typed::Pattern &param = *code.lambda->params[i];
    if (isStatic(code.lambda->paramTypes[i])) {
      StaticValue value{instance.statics[nextStatic++], {}};
      for (size_t k = 0; k < valueCount(*value.code); ++k)
        value.values.push_back(block->getArgument(next++));
      if (param.variable)
        frame->statics[param.variable] = std::move(value);
      continue;
    }
    Value arg = block->getArgument(next++);
    bindPattern(param, coerce(arg, mlirType(param.type)));
  }
  Value result = genAs(*code.lambda->body, instance.func.getResultTypes()[0]);
  b.setLoc(locOf(code.lambda->body->range));
  func::ReturnOp::create(b, result);
  frame = outer;
}

} // namespace sheaf

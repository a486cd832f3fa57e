//===- CheckerCalls.cpp - Checking calls ----------------------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

std::vector<Arg> BodyChecker::argsOf(const CallExpr &call) {
  std::vector<Arg> args;
  for (const Argument &arg : call.args)
    args.push_back({arg.value, nullptr, arg.value->range, arg.name ? &*arg.name : nullptr});
  return args;
}

BodyChecker::E BodyChecker::inferCall(const CallExpr &call, TypeRef hint) {
  std::vector<Arg> args = argsOf(call);
  const auto *name = call.callee->as<NameExpr>();
  const Local *local = name ? state.findLocal(name->name) : nullptr;
  bool named = (name && !local) || call.callee->is<FieldExpr>();
  if (named)
    return callNamed(*call.callee, std::move(args), call.range, call.siteId, hint);
  if (!name && !call.callee->is<LambdaExpr>()) {
    E callee = infer(*call.callee);
    for (const Arg &arg : args)
      inferArg(arg);
    return isError(callee->type)
               ? callee
               : fail(call.callee->range, fmt::format("a value of type '{}' cannot be called",
                                                      types.print(callee->type)));
  }
  E callee;
  if (const auto *lambda = call.callee->as<LambdaExpr>()) {
    // Its parameters take the types of the arguments.
    std::vector<TypeRef> params;
    for (Arg &arg : args) {
      arg.typed = inferArg(arg);
      params.push_back(arg.typed->type);
    }
    callee = checkLambda(*lambda,
                         {types.function(std::move(params), types.variable(/*keepsLengths=*/true)),
                          "this function"});
  } else {
    callee = infer(*call.callee);
  }
  return callValue(callee, args, name ? name->name : "this function", call.range, call.siteId);
}

BodyChecker::E BodyChecker::callValue(E callee, const std::vector<Arg> &args,
                                      const std::string &name, SourceRange range, uint32_t siteId) {
  TypeRef type = types.resolve(callee->type);
  if (!type->is(TypeKind::Function)) {
    for (const Arg &arg : args)
      inferArg(arg);
    if (isError(type))
      return error(range);
    return fail(callee->range,
                fmt::format("'{}' is '{}', which cannot be called", name, types.print(type)),
                calledHelp(name, type));
  }
  if (args.size() != type->paramCount()) {
    for (const Arg &arg : args)
      inferArg(arg);
    return fail(range, fmt::format("'{}' takes {} argument{}, but {} {} given", name,
                                   type->paramCount(), type->paramCount() == 1 ? "" : "s",
                                   args.size(), args.size() == 1 ? "is" : "are"));
  }
  auto *call = make<typed::CallExpr>(range, type->result());
  call->callee = callee;
  call->siteId = siteId;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name)
      diags.error(args[i].name->range, fmt::format("the arguments of '{}' have no names", name));
    call->args.push_back(
        checkArg(args[i], {type->args[i], fmt::format("argument {} of '{}'", i + 1, name)}));
  }
  return call;
}

std::string BodyChecker::methodHelp(const std::string &name) const {
  std::string_view help = foreignMethodHelp(name);
  if (!help.empty())
    return std::string(help);
  const ops::Op *op = ops::OpTable::get().find(name);
  bool isFunction = state.findGlobal(name) || builtins.contains(name) || (op && !op->internal);
  return isFunction ? fmt::format("write {}(...)", name) : state.suggest(name, visibleValues());
}

std::string BodyChecker::membersHelp(const std::string &name,
                                     const std::vector<std::string> &members) const {
  std::string near = state.suggest(name, members);
  if (!near.empty() || members.empty())
    return near;
  return fmt::format("it has {}", fmt::join(members, ", "));
}

std::string BodyChecker::calledHelp(const std::string &name, TypeRef type) {
  type = types.resolve(type);
  if (type->is(TypeKind::Layer) && !type->layer->fns.empty())
    return fmt::format("write {}.{}(...)", name, type->layer->fns.front()->name);
  if (type->is(TypeKind::List) || (type->is(TypeKind::Tensor) && !type->tensor.dims.empty()))
    return fmt::format("a part of it is written {}[...]", name);
  return "";
}

BodyChecker::E BodyChecker::refuseCall(const std::vector<Arg> &args, SourceRange at,
                                       std::string message, std::string help) {
  for (const Arg &arg : args)
    if (arg.syntax && !arg.syntax->is<LambdaExpr>())
      inferArg(arg);
  return fail(at, std::move(message), std::move(help));
}

/// A call of what a file declares; null where that is a value.
BodyChecker::E BodyChecker::callGlobal(const Named &named, const std::string &name,
                                       std::vector<Arg> &args, SourceRange calleeRange,
                                       SourceRange range, uint32_t siteId, TypeRef hint) {
  if (auto *fn = std::get_if<FnInfo *>(&named.what))
    return callFunction(**fn, nullptr, std::move(args), calleeRange, range, siteId);
  if (auto *ctor = std::get_if<CheckerState::ConstructorRef>(&named.what))
    return construct(*ctor, std::move(args), range, hint);
  if (auto *layer = std::get_if<LayerInfo *>(&named.what)) {
    if (context->fn)
      return refuseCall(args, range,
                        fmt::format("layer '{}' cannot be made inside a function: its params would "
                                    "have no names",
                                    name),
                        fmt::format("let x = {}(...), outside functions", name));
    return makeLayer(**layer, args, range);
  }
  if (std::holds_alternative<CheckerState::FileRef>(named.what))
    return refuseCall(args, calleeRange, fmt::format("'{}' is the name of a file", name),
                      fmt::format("what it declares is written {}.NAME", name));
  return nullptr;
}

BodyChecker::E BodyChecker::callNamed(const Expr &callee, std::vector<Arg> args, SourceRange range,
                                      uint32_t siteId, TypeRef hint) {
  auto refuseValue = [&](const std::string &name) {
    E value = infer(callee);
    return refuseCall(args, callee.range,
                      isError(value->type) ? fmt::format("'{}' cannot be called", name)
                                           : fmt::format("'{}' is '{}', which cannot be called",
                                                         name, types.print(value->type)),
                      calledHelp(name, value->type));
  };
  if (const auto *field = callee.as<FieldExpr>()) {
    const std::string &name = field->field.name;
    if (std::optional<size_t> file = state.qualifier(*field->base)) {
      const Named *named = state.findMember(*file, field->field);
      if (!named) {
        for (const Arg &arg : args)
          if (arg.syntax && !arg.syntax->is<LambdaExpr>())
            inferArg(arg);
        return error(range);
      }
      E call = callGlobal(*named, name, args, callee.range, range, siteId, hint);
      return call ? call : refuseValue(name);
    }
    E base = infer(*field->base);
    TypeRef type = types.resolve(base->type);
    if (type->is(TypeKind::Layer))
      for (FnInfo *fn : type->layer->fns)
        if (fn->name == name)
          return callFunction(*fn, base, std::move(args), callee.range, range, siteId);
    if (isError(type))
      return error(range);
    if (!type->is(TypeKind::Layer))
      return refuseCall(args, field->field.range,
                        fmt::format("a value of type '{}' has no functions", types.print(type)),
                        methodHelp(name));
    std::vector<std::string> members;
    for (const FnInfo *fn : type->layer->fns)
      members.push_back(fn->name);
    for (const ParamInfo *param : type->layer->params)
      if (param->name == name)
        return refuseCall(args, field->field.range,
                          fmt::format("'{}' is a param, which cannot be called", param->name));
    return refuseCall(args, field->field.range,
                      fmt::format("layer '{}' has no function '{}'", type->layer->name, name),
                      membersHelp(name, members));
  }

  const std::string &name = callee.to<NameExpr>().name;
  if (context->layer)
    for (FnInfo *fn : context->layer->fns)
      if (fn->name == name) {
        E self = make<typed::LayerSelfExpr>(callee.range, types.error());
        return callFunction(*fn, self, std::move(args), callee.range, range, siteId);
      }
  if (state.isLayerMember(name))
    return refuseValue(name);
  if (const Named *named = state.findGlobal(name)) {
    E call = callGlobal(*named, name, args, callee.range, range, siteId, hint);
    return call ? call : refuseValue(name);
  }
  if (auto builtin = builtins.find(name); builtin != builtins.end())
    return builtin->second(std::move(args), range, hint);
  if (const ops::Op *op = ops::OpTable::get().find(name); op && !op->internal)
    return operators.applyOp(*op, args, range);
  std::string_view help = foreignFunctionHelp(name);
  return refuseCall(args, callee.range, fmt::format("there is no function '{}'", name),
                    help.empty() ? suggestValue(name) : std::string(help));
}

BodyChecker::E BodyChecker::makeLayer(const LayerInfo &layer, const std::vector<Arg> &args,
                                      SourceRange range) {
  if (args.size() != layer.dims.size())
    return fail(range, fmt::format("layer '{}' takes {} dim{}, but {} {} given", layer.name,
                                   layer.dims.size(), layer.dims.size() == 1 ? "" : "s",
                                   args.size(), args.size() == 1 ? "is" : "are"));
  std::vector<Arg> ordered = args;
  std::vector<std::string> names;
  for (const DimParam &dim : layer.dims)
    names.push_back(dim.name);
  if (!arrange(ordered, names, layer.name, range))
    return error(range);
  auto *value = make<typed::LayerNewExpr>(range, nullptr);
  value->info = &layer;
  for (size_t i = 0; i < ordered.size(); ++i) {
    E arg = checkArg(
        ordered[i], {types.intType(), fmt::format("dim '{}' of layer '{}'", names[i], layer.name)});
    if (isError(arg->type))
      return error(range);
    std::optional<Dim> dim = extents.toDim(*arg);
    if (!dim)
      return fail(arg->range, fmt::format("dim '{}' of layer '{}' must be made of ints and dims",
                                          names[i], layer.name));
    if (std::optional<int64_t> known = dims.value(*dim); known && *known < 1)
      return fail(arg->range, fmt::format("dim '{}' of layer '{}' is {}, but a dim is at least 1",
                                          names[i], layer.name, *known));
    value->dims.push_back(*dim);
  }
  value->type = types.layerType(&layer, value->dims);
  return value;
}

bool BodyChecker::arrange(std::vector<Arg> &args, const std::vector<std::string> &names,
                          const std::string &callee, SourceRange range) {
  bool good = true;
  std::vector<Arg> ordered(names.size());
  std::vector<bool> given(names.size(), false);
  size_t positional = 0;
  for (const Arg &arg : args) {
    size_t index = positional;
    if (arg.name) {
      auto it = std::find(names.begin(), names.end(), arg.name->name);
      if (it == names.end()) {
        std::string help = state.suggest(arg.name->name, names), list;
        for (const std::string &name : names)
          if (!name.empty())
            list += (list.empty() ? "" : ", ") + name;
        if (help.empty() && !list.empty())
          help = fmt::format("{} {}", names.size() == 1 ? "its argument is" : "its arguments are",
                             list);
        diags.error(arg.name->range,
                    fmt::format("'{}' has no argument '{}'", callee, arg.name->name), help);
        good = false;
        continue;
      }
      index = static_cast<size_t>(it - names.begin());
    } else {
      ++positional;
    }
    if (index < names.size() && given[index]) {
      diags.error(arg.range,
                  fmt::format("argument '{}' of '{}' is given twice", names[index], callee));
      good = false;
      continue;
    }
    if (index < names.size()) {
      ordered[index] = arg;
      given[index] = true;
    }
  }
  if (positional > names.size()) {
    diags.error(range, fmt::format("'{}' takes {} argument{}, but {} are given", callee,
                                   names.size(), names.size() == 1 ? "" : "s", args.size()));
    return false;
  }
  if (!good)
    return false;
  std::string missing;
  size_t count = 0;
  for (size_t i = 0; i < names.size(); ++i)
    if (!given[i]) {
      missing +=
          (count++ ? ", " : "") + (names[i].empty() ? std::to_string(i + 1) : "'" + names[i] + "'");
    }
  if (count) {
    diags.error(range, fmt::format("'{}' takes {} argument{}, but {} {} given (missing: {})",
                                   callee, names.size(), names.size() == 1 ? "" : "s", args.size(),
                                   args.size() == 1 ? "is" : "are", missing));
    return false;
  }
  args = std::move(ordered);
  return true;
}

BodyChecker::E BodyChecker::callFunction(FnInfo &fn, E layer, std::vector<Arg> args,
                                         SourceRange calleeRange, SourceRange range,
                                         uint32_t siteId) {
  if (!fn.packs.empty())
    return callOfAnyRank(fn, layer, std::move(args), calleeRange, range, siteId);
  std::vector<std::string> names;
  for (const FnParam &param : fn.decl->params) {
    const auto *binding = param.pattern->as<BindingPattern>();
    names.push_back(binding ? binding->name : std::string());
  }
  bool usable = declarations.needResult(fn, calleeRange);
  if (!arrange(args, names, fn.name, range)) {
    for (const Arg &arg : args)
      if (arg.syntax && !arg.syntax->is<LambdaExpr>() && !namesFunction(*arg.syntax))
        inferArg(arg);
    return error(range);
  }
  if (!usable)
    return error(range);

  auto *callee = make<typed::FunctionExpr>(calleeRange, types.error());
  callee->fn = &fn;
  callee->layer = layer;
  std::map<TypeRef, TypeRef> typeArgs;
  for (TypeRef param : fn.typeParams) {
    callee->typeArgs.push_back(types.variable());
    typeArgs.emplace(param, callee->typeArgs.back());
  }
  std::map<std::string, Dim> dimArgs;
  for (const DimParam &dim : fn.dims) {
    callee->dimArgs.push_back(dims.makeVariable(dims.print(Dim::symbol(dim.symbol))));
    dimArgs.emplace(dim.symbol, callee->dimArgs.back());
  }
  if (layer && fn.layer && !layer->is(typed::ExprKind::LayerSelf)) {
    TypeRef instance = types.resolve(layer->type);
    for (size_t i = 0; i < fn.layer->dims.size(); ++i)
      dimArgs.emplace(fn.layer->dims[i].symbol, instance->dims[i]);
  }
  auto instantiate = [&](TypeRef type) {
    return types.substitute(type, typeArgs, [&](const std::string &symbol) -> std::optional<Dim> {
      auto it = dimArgs.find(symbol);
      return it == dimArgs.end() ? std::nullopt : std::optional<Dim>(it->second);
    });
  };

  // Functions come last: the other arguments tell the types of their parameters.
  auto *call = make<typed::CallExpr>(range, nullptr);
  call->callee = callee;
  call->siteId = siteId;
  call->args.resize(args.size());
  TypeContext::Postponed postponed;
  std::vector<size_t> postponedBy;
  bool bad = false;
  std::vector<TypeRef> paramTypes;
  for (TypeRef type : fn.paramTypes)
    paramTypes.push_back(instantiate(type));
  auto describeArg = [&](size_t i) {
    return names[i].empty() ? fmt::format("argument {} of '{}'", i + 1, fn.name)
                            : fmt::format("argument '{}' of '{}'", names[i], fn.name);
  };
  for (bool functions : {false, true})
    for (size_t i = 0; i < args.size(); ++i) {
      if (paramTypes[i]->is(TypeKind::Function) != functions)
        continue;
      E value = checkArg(args[i], {paramTypes[i], describeArg(i), {}, &postponed});
      bad |= isError(value->type) || isError(paramTypes[i]);
      call->args[i] = value;
      postponedBy.resize(postponed.size(), i);
    }
  if (!bad) {
    for (size_t k = 0; k < postponed.size(); ++k) {
      auto [actual, wanted] = postponed[k];
      if (dims.unify(actual, wanted) == DimRelation::Equal)
        continue;
      size_t i = postponedBy[k];
      reportMismatch(call->args[i]->range, {types.zonk(paramTypes[i]), describeArg(i)},
                     call->args[i]->type);
      bad = true;
    }
    for (size_t i = 0; i < fn.dims.size() && !bad; ++i)
      if (dims.hasFreeVariables(callee->dimArgs[i])) {
        diags.error(range, fmt::format("nothing tells what dim '{}' of '{}' is here",
                                       fn.dims[i].name, fn.name));
        bad = true;
      }
    for (size_t i = 0; i < fn.typeParams.size() && !bad; ++i)
      if (!types.isFirstClass(callee->typeArgs[i])) {
        diags.error(range, fmt::format("type parameter '{}' of '{}' cannot stand for a function or "
                                       "layer",
                                       fn.typeParams[i]->name, fn.name));
        bad = true;
      }
  }
  if (context->fn)
    edges.push_back({context->fn, callee, call->args, range});
  size_t mark = context->opened.size();
  for (const IntExtent &extent : fn.intExtents) {
    if (bad)
      break;
    const typed::Expr &arg = *call->args[extent.param];
    std::optional<Dim> dim = extents.unroundedDim(arg);
    // Whatever else the argument is, the result tells.
    dimArgs.emplace(extent.symbol, dim.value_or(Dim::fresh()));
    if (!dim)
      context->opened.push_back(*dimArgs.at(extent.symbol).asSymbol());
    std::optional<int64_t> known = dim ? dims.value(*dim) : std::nullopt;
    if (known && *known < 0) {
      diags.error(arg.range, fmt::format("{} is {}, but it is an extent of the result",
                                         describeArg(extent.param), *known));
      bad = true;
    }
  }
  if (fn.emits)
    bad |= !emissions.mayEmit(instantiate(fn.emits), fmt::format("'{}'", fn.name), range);
  if (bad)
    return error(range);
  call->type = extents.close(instantiate(fn.result), mark);
  return call;
}

BodyChecker::E BodyChecker::construct(const CheckerState::ConstructorRef &ctor,
                                      std::vector<Arg> args, SourceRange range, TypeRef hint) {
  const DataInfo &data = *ctor.data;
  const DataInfo::Constructor &info = data.constructors[ctor.index];
  std::vector<std::string> names;
  for (const DataInfo::Field &field : info.fields)
    names.push_back(field.name);
  if (!arrange(args, names, info.name, range)) {
    for (const Arg &arg : args)
      if (arg.syntax && !arg.syntax->is<LambdaExpr>())
        inferArg(arg);
    return error(range);
  }
  std::vector<TypeRef> typeArgs;
  bool hinted = hint && hint->is(TypeKind::Data) && hint->data == &data;
  for (size_t i = 0; i < data.typeParams.size(); ++i)
    typeArgs.push_back(hinted ? hint->args[i] : types.variable());
  std::map<TypeRef, TypeRef> params;
  for (size_t i = 0; i < typeArgs.size(); ++i)
    params.emplace(data.typeParams[i], typeArgs[i]);
  auto *result = make<typed::ConstructExpr>(range, nullptr);
  result->constructor = ctor.index;
  bool bad = false;
  for (size_t i = 0; i < args.size(); ++i) {
    TypeRef type = types.substitute(info.fields[i].type, params,
                                    [](const std::string &) { return std::nullopt; });
    E value = checkArg(
        args[i], {type, names[i].empty() ? fmt::format("field {} of '{}'", i + 1, info.name)
                                         : fmt::format("field '{}' of '{}'", names[i], info.name)});
    bad |= isError(value->type);
    result->args.push_back(value);
  }
  result->type = bad ? types.error() : types.dataType(&data, std::move(typeArgs));
  return result;
}

} // namespace sheaf

//===- CheckerParts.cpp - Checking indices and fields ---------------------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

BodyChecker::E BodyChecker::inferIndex(const IndexExpr &expr) {
  E base = infer(*expr.base);
  TypeRef type = types.resolve(base->type);
  if (type->is(TypeKind::List) && types.resolve(type->element())->is(TypeKind::Layer))
    return indexLayers(expr, base);
  if (type->is(TypeKind::List))
    return indexList(expr, base);
  if (type->is(TypeKind::Tensor))
    return operators.indexTensor(expr, base);
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

BodyChecker::E BodyChecker::indexList(const IndexExpr &expr, E base) {
  TypeRef type = types.resolve(base->type);
  if (expr.items.size() != 1)
    return fail(expr.range, "a list has one index");
  const IndexItem &item = expr.items.front();
  auto position = [&](const Expr &syntax, const char *what) -> E {
    E index = check(syntax, {types.intType(), what});
    if (const auto *number = index->as<typed::NumberExpr>(); number && number->integer < 0) {
      std::string list = state.written(*expr.base);
      return fail(syntax.range, "an index counts from the front, so it cannot be negative",
                  operators.fromTheEndHelp(expr, item,
                                           fmt::format("len({})", list.size() <= 40 ? list : "x")));
    }
    return index;
  };
  if (!item.isSlice) {
    E index = position(*item.index, "an index");
    return state.makeBuiltin(typed::Builtin::ListGet, {base, index}, expr.range,
                             isError(index->type) ? types.error() : type->element());
  }
  E begin = item.begin ? position(*item.begin, "the start of a slice") : nullptr;
  E end = item.end ? position(*item.end, "the end of a slice") : nullptr;
  if ((begin && isError(begin->type)) || (end && isError(end->type)))
    return error(expr.range);
  // A slice that is out of range ends the instance, so the list has as many elements as it says.
  std::optional<Dim> from = begin ? extents.unroundedDim(*begin) : Dim(0);
  std::optional<Dim> to = end ? extents.unroundedDim(*end) : extents.lengthOf(*base);
  std::optional<Dim> length = from && to ? std::optional(*to - *from) : std::nullopt;
  if (std::optional<int64_t> known = length ? dims.value(*length) : std::nullopt;
      known && *known < 0)
    length = std::nullopt;
  return state.makeBuiltin(typed::Builtin::ListSlice, {base, begin, end}, expr.range,
                           types.list(type->element(), length));
}

BodyChecker::E BodyChecker::indexLayers(const IndexExpr &expr, E base) {
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
    std::optional<Dim> dim = extents.toDim(*value);
    std::set<std::string> fixed;
    for (const DeclaredDim &declared : state.out.dims)
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
  auto *result = make<typed::LayerSliceExpr>(expr.range, nullptr);
  result->list = base;
  result->begin = item.begin ? bound(item.begin, "the start of a slice") : nullptr;
  result->end = item.end ? bound(item.end, "the end of a slice") : nullptr;
  if ((result->begin && isError(result->begin->type)) ||
      (result->end && isError(result->end->type)))
    return error(expr.range);
  std::optional<Dim> from = result->begin ? extents.unroundedDim(*result->begin) : Dim(0);
  std::optional<Dim> to =
      result->end ? extents.unroundedDim(*result->end) : extents.lengthOf(*base);
  result->type =
      types.list(type->element(), from && to ? std::optional(*to - *from) : std::nullopt);
  return result;
}

BodyChecker::E BodyChecker::inferField(const FieldExpr &expr) {
  if (std::optional<size_t> file = state.qualifier(*expr.base)) {
    const Named *named = state.findMember(*file, expr.field);
    if (!named)
      return error(expr.range);
    E value = globalValue(*named, expr.field.name, expr.range);
    return value ? value : inferFunctionName(expr);
  }
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
        if (!declarations.checkLet(*let))
          return fail(expr.range, fmt::format("the value of '{}' depends on itself", name));
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
    return fail(expr.field.range, fmt::format("layer '{}' has no member '{}'", layer.name, name),
                state.suggest(name, members));
  }
  if (type->is(TypeKind::Data) && type->data->constructors.size() == 1) {
    const DataInfo::Constructor &ctor = type->data->constructors.front();
    std::vector<std::string> fields;
    for (const DataInfo::Field &field : ctor.fields)
      fields.push_back(field.name);
    auto found = std::find(fields.begin(), fields.end(), name);
    if (found == fields.end())
      return fail(expr.field.range, fmt::format("'{}' has no field '{}'", type->data->name, name),
                  state.suggest(name, fields));
    // x.f is match x { C(_, f, _) => f }
    std::map<TypeRef, TypeRef> params;
    for (size_t i = 0; i < type->args.size(); ++i)
      params.emplace(type->data->typeParams[i], type->args[i]);
    auto *match = make<typed::MatchExpr>(expr.range, nullptr);
    match->scrutinee = base;
    typed::Pattern *pattern =
        patterns.makePattern(typed::PatternKind::Constructor, expr.range, type);
    for (size_t i = 0; i < ctor.fields.size(); ++i) {
      TypeRef fieldType = types.substitute(ctor.fields[i].type, params,
                                           [](const std::string &) { return std::nullopt; });
      bool wanted = static_cast<size_t>(found - fields.begin()) == i;
      pattern->args.push_back(patterns.makePattern(
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
    const auto *local = base->as<typed::LocalExpr>();
    if (!local)
      return match;
    for (const Context::OpenedField &before : context->fields)
      if (before.variable == local->variable && before.field == name) {
        auto *again = make<typed::OpenExpr>(expr.range, before.type);
        again->inner = match;
        again->opened = before.opened;
        return again;
      }
    E value = extents.opened(match);
    if (const auto *open = value->as<typed::OpenExpr>())
      context->fields.push_back({local->variable, name, open->type, open->opened});
    return value;
  }
  std::string help;
  if (type->is(TypeKind::Data))
    help = "take it apart with match";
  else if (type->is(TypeKind::Tuple))
    help = "take the tuple apart: let (a, b) = ...";
  else if (type->is(TypeKind::Tensor) && expr.field.name == "T")
    help = "transpose(x) exchanges the last two axes";
  else if (type->is(TypeKind::Tensor) && expr.field.name == "shape")
    help = "shape(x, 0) is an extent as an int; extents have names, too: x: f32[n, h]";
  else if (std::vector<std::string> values = visibleValues();
           std::find(values.begin(), values.end(), expr.field.name) != values.end())
    help = fmt::format("it is called as a function: {}(x)", expr.field.name);
  return fail(expr.field.range,
              fmt::format("a value of type '{}' has no fields", types.print(type)), help);
}

} // namespace sheaf

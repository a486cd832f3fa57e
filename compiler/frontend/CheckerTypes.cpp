//===- CheckerTypes.cpp - Types and dims as written -----------------------===//

#include "compiler/frontend/CheckerTypes.h"

#include <fmt/format.h>

#include <utility>

namespace sheaf {

std::string nameOfExtent(const std::string &pack, size_t i) {
  return fmt::format("*{}.{}", pack, i);
}

bool TypeConversion::withinLimits(TypeRef type, SourceRange range) {
  // Walks over types take time in proportion to their written size, and shared parts count each
  // time: without a bound a few lines could keep the checker busy for ever.
  constexpr uint32_t mostNodes = 20000, deepest = 200;
  if (type->weight <= mostNodes && type->depth <= deepest)
    return true;
  diags.error(range, "this type is too large", "use a data type for large structures");
  return false;
}

TypeRef TypeConversion::convertType(const TypeExpr &expr, TypeScope &scope) {
  TypeRef type = convertInner(expr, scope);
  return withinLimits(type, expr.range) ? type : types.error();
}

TypeRef TypeConversion::convertInner(const TypeExpr &expr, TypeScope &scope) {
  bool allowFunction = std::exchange(scope.allowFunction, false);
  bool allowLayer = std::exchange(scope.allowLayer, false);
  // A wrong extent makes the whole type unknown.
  auto tensor = [&](ops::DType dtype, const std::vector<DimExpr> &syntax,
                    std::optional<std::string> vocab) {
    ops::TensorType result{dtype, {}, std::move(vocab)};
    bool bad = false, hasPack = false;
    for (const DimExpr &dim : syntax) {
      if (dim.isPack) {
        if (std::exchange(hasPack, true)) {
          diags.error(dim.range, "a tensor type has one name for any extents");
          bad = true;
          continue;
        }
        std::optional<std::vector<Dim>> extents = convertPack(dim, scope);
        bad |= !extents;
        if (extents)
          result.dims.insert(result.dims.end(), extents->begin(), extents->end());
        continue;
      }
      std::optional<Dim> converted = convertDim(dim, scope);
      bad |= !converted;
      result.dims.push_back(converted.value_or(Dim(1)));
    }
    return bad ? types.error() : types.tensor(std::move(result));
  };
  switch (expr.kind) {
  case TypeExprKind::Tensor: {
    const auto &syntax = expr.to<TensorTypeExpr>();
    static constexpr ops::DType dtypes[] = {ops::DType::F32, ops::DType::BF16, ops::DType::F16,
                                            ops::DType::I32, ops::DType::I64,  ops::DType::Bool};
    return tensor(dtypes[static_cast<int>(syntax.element)], syntax.dims, std::nullopt);
  }
  case TypeExprKind::Token: {
    const auto &syntax = expr.to<TokenTypeExpr>();
    std::string vocab = syntax.vocabulary ? syntax.vocabulary->name : std::string();
    storage.vocabularies.insert(vocab);
    if (!syntax.dims)
      return types.token(vocab);
    return tensor(ops::DType::I32, *syntax.dims, vocab);
  }
  case TypeExprKind::Host:
    switch (expr.to<HostTypeExpr>().host) {
    case HostTypeKind::Int:
      return types.intType();
    case HostTypeKind::Float:
      return types.floatType();
    case HostTypeKind::Bool:
      return types.boolType();
    }
    return types.error();
  case TypeExprKind::List: {
    scope.allowLayer = allowLayer;
    const auto &syntax = expr.to<ListTypeExpr>();
    TypeRef element = convertInner(*syntax.element, scope);
    scope.allowLayer = false;
    if (!syntax.length || syntax.length->isUnknown())
      return types.list(element);
    std::optional<Dim> length = convertDim(*syntax.length, scope);
    if (length && types.contains(element, TypeKind::Layer)) {
      diags.error(syntax.length->range, "a list of layers has no length in its type",
                  "len(layers) is known with its layers");
      return types.error();
    }
    return length ? types.list(element, length) : types.error();
  }
  case TypeExprKind::Tuple: {
    std::vector<TypeRef> fields;
    for (const TypeExpr *field : expr.to<TupleTypeExpr>().elements)
      fields.push_back(convertInner(*field, scope));
    return types.tuple(std::move(fields));
  }
  case TypeExprKind::Function: {
    const auto &syntax = expr.to<FunctionTypeExpr>();
    if (!allowFunction) {
      diags.error(expr.range, "a function type can stand only as the type of a parameter",
                  "functions can be passed as arguments, but not returned nor stored");
      return types.error();
    }
    std::vector<TypeRef> params;
    for (const TypeExpr *param : syntax.params)
      params.push_back(convertInner(*param, scope));
    TypeRef result = convertInner(*syntax.result, scope);
    return types.function(std::move(params), result);
  }
  case TypeExprKind::Named: {
    scope.allowLayer = allowLayer;
    TypeRef type = convertNamed(expr.to<NamedTypeExpr>(), scope);
    scope.allowLayer = false;
    return type;
  }
  case TypeExprKind::Error:
    return types.error();
  }
  return types.error();
}

TypeRef TypeConversion::convertNamed(const NamedTypeExpr &expr, TypeScope &scope) {
  bool allowLayer = std::exchange(scope.allowLayer, false);
  const std::string &name = expr.name.name;
  std::optional<size_t> file;
  if (expr.file && !(file = state.qualifier(expr.file->name))) {
    diags.error(expr.file->range,
                fmt::format("'{}' is not the name of a file here", expr.file->name),
                fmt::format("use \"...\" as {}", expr.file->name));
    return types.error();
  }
  auto param = context->typeParams.find(name);
  if (param != context->typeParams.end() && !file) {
    if (!expr.args.empty())
      diags.error(expr.range, fmt::format("type parameter '{}' takes no arguments", name));
    return param->second;
  }
  const auto &dataTypes = file ? state.scopes[*file].declaredTypes : state.fileScope().visibleTypes;
  if (auto found = dataTypes.find(name); found != dataTypes.end()) {
    const DataInfo &data = *found->second;
    if (expr.args.size() != data.typeParams.size()) {
      diags.error(expr.range,
                  fmt::format("type '{}' takes {} type argument{}, but {} {} given", name,
                              data.typeParams.size(), data.typeParams.size() == 1 ? "" : "s",
                              expr.args.size(), expr.args.size() == 1 ? "is" : "are"));
      return types.error();
    }
    std::vector<TypeRef> args;
    for (const TypeExpr *arg : expr.args) {
      args.push_back(convertInner(*arg, scope));
      if (!types.containsLength(args.back()))
        continue;
      diags.error(arg->range,
                  fmt::format("what '{}' stands for in '{}' has lists of any length",
                              data.typeParams[args.size() - 1]->name, name),
                  fmt::format("leave out the length here; a field can have it: data {}<{}> = "
                              "...(xs: list<T>[n])",
                              name, data.typeParams[args.size() - 1]->name));
      return types.error();
    }
    return types.dataType(&data, std::move(args));
  }
  if (const Named *named = file ? state.findMember(*file, name) : state.findGlobal(name))
    if (LayerInfo *const *layer = std::get_if<LayerInfo *>(&named->what)) {
      if (!allowLayer) {
        diags.error(expr.range, fmt::format("layer '{}' can stand only as the type of a parameter, "
                                            "or of a list that is one",
                                            name));
        return types.error();
      }
      if (expr.args.size() != (*layer)->dims.size()) {
        diags.error(expr.range,
                    fmt::format("layer '{}' has {} dim{}, but {} {} given", name,
                                (*layer)->dims.size(), (*layer)->dims.size() == 1 ? "" : "s",
                                expr.args.size(), expr.args.size() == 1 ? "is" : "are"));
        return types.error();
      }
      std::vector<Dim> layerDims;
      for (const TypeExpr *arg : expr.args) {
        const auto *dim = arg->as<NamedTypeExpr>();
        if (!dim || !dim->args.empty()) {
          diags.error(arg->range, "a dim's name must stand here");
          return types.error();
        }
        NameExpr nameExpr;
        nameExpr.name = dim->file ? dim->file->name : dim->name.name;
        nameExpr.range = arg->range;
        FieldExpr fieldExpr;
        fieldExpr.base = &nameExpr;
        fieldExpr.field = dim->name;
        fieldExpr.range = arg->range;
        std::optional<Dim> value =
            dim->file ? evaluateDim(fieldExpr, scope) : evaluateDim(nameExpr, scope);
        layerDims.push_back(value ? *value : Dim::fresh());
      }
      return types.layerType(*layer, std::move(layerDims));
    }
  std::vector<std::string> candidates = state.visibleTypes();
  if (file) {
    candidates.clear();
    for (const auto &[other, data] : dataTypes)
      candidates.push_back(other);
  }
  diags.error(expr.name.range,
              file ? fmt::format("'{}' declares no type '{}'", state.fileName(*file), name)
                   : fmt::format("there is no type '{}'", name),
              file ? state.suggest(name, candidates) : state.suggestName(name, candidates));
  return types.error();
}

std::optional<Dim> TypeConversion::convertDim(const DimExpr &expr, TypeScope &scope) {
  if (expr.isUnknown()) {
    if (scope.allowUnknown)
      return unknownDim();
    diags.error(expr.range, "the extents of a param must be known: '?' cannot stand here");
    return std::nullopt;
  }
  std::optional<Dim> dim = evaluateDim(*expr.expr, scope);
  if (dim)
    if (std::optional<int64_t> value = dims.value(*dim); value && *value < 1) {
      diags.error(expr.range, fmt::format("an extent is at least 1, but this is {}", *value));
      return std::nullopt;
    }
  return dim;
}

std::optional<Dim> TypeConversion::evaluateDim(const Expr &expr, TypeScope &scope) {
  if (const auto *literal = expr.as<IntLiteralExpr>())
    return Dim(literal->value);
  if (const auto *name = expr.as<NameExpr>()) {
    if (std::optional<Dim> dim = state.findDim(name->name))
      return dim;
    if (auto it = scope.made.find(name->name); it != scope.made.end())
      return it->second;
    if (const Local *local = state.findLocal(name->name)) {
      auto *variable = std::get<typed::Variable *>(local->what);
      TypeRef type = types.resolve(variable->type);
      if (type->is(TypeKind::Int) || (type->is(TypeKind::Variable) && type->numeric))
        return variable->dim ? *variable->dim : Dim::symbol(variable->dimSymbol);
      diags.error(expr.range, fmt::format("'{}' is '{}', but an extent is an int", name->name,
                                          types.print(type)));
      return std::nullopt;
    }
    if (scope.newDims == NewDims::Refuse) {
      std::string help = state.suggestName(name->name, state.visibleDims());
      diags.error(expr.range, fmt::format("there is no dim '{}' here", name->name),
                  !help.empty()        ? help
                  : scope.allowUnknown ? fmt::format("write '?' for an extent that may differ; one "
                                                     "that is fixed is declared: dim {} = ...",
                                                     name->name)
                                       : fmt::format("declare it: dim {} = ...", name->name));
      return std::nullopt;
    }
    Dim dim = scope.newDims == NewDims::Quantify ? dims.makeRigid(name->name)
                                                 : dims.makeVariable(name->name);
    scope.made.emplace(name->name, dim);
    scope.madeAt.emplace(name->name, expr.range);
    return dim;
  }
  if (const auto *field = expr.as<FieldExpr>())
    if (std::optional<size_t> file = state.qualifier(*field->base)) {
      const Named *named = state.findMember(*file, field->field);
      if (const auto *ref = named ? std::get_if<CheckerState::DimRef>(&named->what) : nullptr)
        return ref->dim;
      if (named)
        diags.error(expr.range, fmt::format("'{}' is not a dim", field->field.name));
      return std::nullopt;
    }
  if (const auto *unary = expr.as<UnaryExpr>(); unary && unary->op == UnaryOp::Negate) {
    std::optional<Dim> operand = evaluateDim(*unary->operand, scope);
    if (!operand)
      return std::nullopt;
    return Dim(0) - *operand;
  }
  if (const auto *binary = expr.as<BinaryExpr>()) {
    std::optional<Dim> a = evaluateDim(*binary->lhs, scope);
    std::optional<Dim> b = evaluateDim(*binary->rhs, scope);
    if (!a || !b)
      return std::nullopt;
    return combineDims(binary->op, *a, *b, expr.range);
  }
  if (!expr.is<ErrorExpr>())
    diags.error(expr.range, "an extent is made of ints, dims and + - * / %");
  return std::nullopt;
}

std::optional<Dim> TypeConversion::combineDims(BinaryOp op, const Dim &a, const Dim &b,
                                               SourceRange range) {
  std::optional<Dim> result;
  switch (op) {
  case BinaryOp::Add:
    result = a + b;
    break;
  case BinaryOp::Sub:
    result = a - b;
    break;
  case BinaryOp::Mul:
    result = a * b;
    break;
  case BinaryOp::Div:
  case BinaryOp::Mod: {
    if (dims.value(b) == 0) {
      diags.error(range, "an extent is divided by 0");
      return std::nullopt;
    }
    result = op == BinaryOp::Div ? dims.divide(a, b) : dims.remainder(a, b);
    if (!result) {
      auto withValue = [&](const Dim &dim) {
        std::string text = "'" + dims.print(dim) + "'";
        if (std::optional<int64_t> value = dims.value(dim); value && !dim.isConstant())
          text += fmt::format(" = {}", *value);
        return text;
      };
      diags.error(range, fmt::format("{} is not divisible by {}", withValue(a), withValue(b)),
                  "division of extents must leave no remainder");
    }
    return result;
  }
  default:
    diags.error(range, "an extent is made of ints, dims and + - * / %");
    return std::nullopt;
  }
  // A product of sums has as many terms as the product of their numbers of terms.
  if (result->str().size() > 2000) {
    diags.error(range, "this extent is too large an expression");
    return std::nullopt;
  }
  return result;
}

std::optional<std::vector<Dim>> TypeConversion::convertPack(const DimExpr &expr, TypeScope &scope) {
  const std::string &name = expr.expr->to<NameExpr>().name;
  auto rank = context->ranks.find(name);
  if (rank == context->ranks.end()) {
    diags.error(expr.range, fmt::format("'*{}' cannot stand here", name),
                "it stands for any extents where the parameters of the function around name it");
    return std::nullopt;
  }
  std::vector<Dim> extents;
  for (size_t i = 0; i < rank->second; ++i) {
    std::string extent = nameOfExtent(name, i);
    if (std::optional<Dim> dim = state.findDim(extent)) {
      extents.push_back(*dim);
      continue;
    }
    auto [made, inserted] = scope.made.try_emplace(extent);
    if (inserted) {
      made->second = dims.makeRigid(fmt::format("{}{}", name, i));
      scope.madeAt.emplace(extent, expr.range);
    }
    extents.push_back(made->second);
  }
  return extents;
}

void TypeConversion::bindAnnotationDims(const TypeScope &scope) {
  for (const auto &[name, dim] : scope.made) {
    Dim bound = dims.resolve(dim);
    if (dims.hasFreeVariables(bound)) {
      diags.error(scope.madeAt.at(name), fmt::format("nothing tells what dim '{}' is here", name),
                  "a new dim can only name an extent of the value");
      bound = Dim::fresh();
    }
    if (std::optional<std::string> symbol = bound.asSymbol(); symbol && bound.isFresh())
      dims.nameFresh(*symbol, name);
    context->locals.push_back({name, bound});
  }
}

} // namespace sheaf

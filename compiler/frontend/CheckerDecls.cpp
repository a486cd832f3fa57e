//===- CheckerDecls.cpp - Checking declarations ---------------------------===//

#include "compiler/frontend/CheckerImpl.h"
#include "compiler/ir/Components.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

/// Whether a parameter or a `let` of the function has this name: a value of when it runs.
static bool isRunTimeName(const FnDecl &fn, const std::string &name) {
  auto binds = [&](const Pattern &pattern) {
    const auto *binding = pattern.as<BindingPattern>();
    return binding && binding->name == name;
  };
  bool found = std::any_of(fn.params.begin(), fn.params.end(),
                           [&](const FnParam &param) { return binds(*param.pattern); });
  if (const auto *block = fn.body->as<BlockExpr>())
    for (const Stmt &stmt : block->stmts)
      found |= stmt.pattern && binds(*stmt.pattern);
  return found;
}

/// Which int parameter of a function has this name.
static std::optional<size_t> intParam(const FnInfo &fn, const std::string &name) {
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    const auto *binding = fn.decl->params[i].pattern->as<BindingPattern>();
    if (binding && binding->name == name && fn.paramTypes[i]->is(TypeKind::Int))
      return i;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void Checker::collectNames() {
  scopes.resize(module.fileCount());
  for (size_t file = 0; file < scopes.size(); ++file) {
    context->file = file;
    for (const Decl *decl : module.declsOf(file))
      collectName(*decl);
  }
  context->file = 0;
}

void Checker::refuseParam(const Decl &decl, const std::string &what) {
  diags.error(decl.name.range,
              fmt::format("'{}' is {} in a file that is used, which has no params of its own",
                          decl.name.name, what),
              "put them in a layer, and make the layer where the file is used");
}

void Checker::collectName(const Decl &decl) {
  const std::string &name = decl.name.name;
  switch (decl.kind) {
  case DeclKind::Use: {
    const auto &use = decl.to<UseDecl>();
    if (!name.empty())
      declare(decl.name, FileRef{use.file.value_or(context->file)});
    break;
  }
  case DeclKind::Dim: {
    // A dim is named from outside, where there are no files.
    for (const DeclaredDim &dim : out.dims)
      if (dim.name == name && diags.file().numberOf(dim.range.begin) != context->file)
        diags
            .error(decl.name.range, fmt::format("dim '{}' is already declared", name),
                   "the dims of a model and of the files that it uses have different names")
            .withNote(dim.range, "the first declaration is here");
    Dim symbol = dims.makeRigid(name);
    if (declare(decl.name, DimRef{symbol}))
      out.dims.push_back({name, std::nullopt, decl.name.range});
    break;
  }
  case DeclKind::Data: {
    const auto &syntax = decl.to<DataDecl>();
    DataInfo &data = storage.data.emplace_back();
    data.name = nameOfType(name);
    data.decl = &syntax;
    for (const Identifier &param : syntax.typeParams)
      data.typeParams.push_back(types.parameter(param.name));
    auto [it, inserted] = scopes[context->file].declaredTypes.try_emplace(name, &data);
    if (!inserted)
      diags.error(decl.name.range, fmt::format("type '{}' is already declared", name))
          .withNote(it->second->decl->name.range, "the first declaration is here");
    for (const DataConstructor &ctor : syntax.constructors) {
      declare(ctor.name, ConstructorRef{&data, static_cast<unsigned>(data.constructors.size())});
      data.constructors.push_back({ctor.name.name, {}, ctor.range});
    }
    out.data.push_back(&data);
    break;
  }
  case DeclKind::Param: {
    ParamInfo &param = storage.params.emplace_back();
    param.name = name;
    param.decl = &decl.to<ParamDecl>();
    declare(decl.name, &param);
    out.params.push_back(&param);
    if (context->file != 0)
      refuseParam(decl, "a param");
    break;
  }
  case DeclKind::Let: {
    LetInfo &let = storage.lets.emplace_back();
    let.name = name;
    let.decl = &decl.to<LetDecl>();
    declare(decl.name, &let);
    out.lets.push_back(&let);
    break;
  }
  case DeclKind::Fn: {
    FnInfo &fn = storage.fns.emplace_back();
    fn.name = fn.qualifiedName = name;
    fn.isUsed = context->file != 0;
    fn.decl = &decl.to<FnDecl>();
    declare(decl.name, &fn);
    out.functions.push_back(&fn);
    break;
  }
  case DeclKind::Layer: {
    LayerInfo &layer = storage.layers.emplace_back();
    layer.name = name;
    layer.decl = &decl.to<LayerDecl>();
    declare(decl.name, &layer);
    out.layers.push_back(&layer);
    collectLayer(layer);
    break;
  }
  case DeclKind::Check:
    break; // it speaks of no name
  }
}

void Checker::collectLayer(LayerInfo &layer) {
  std::map<std::string, SourceRange> names;
  auto declareMember = [&](const Identifier &name) {
    auto [it, inserted] = names.try_emplace(name.name, name.range);
    if (!inserted)
      diags
          .error(name.range,
                 fmt::format("'{}' is already declared in layer '{}'", name.name, layer.name))
          .withNote(it->second, "the first declaration is here");
  };
  for (const Identifier &dim : layer.decl->dimParams) {
    declareMember(dim);
    layer.dims.push_back({dim.name, *dims.makeRigid(dim.name).asSymbol()});
  }
  for (const Decl *member : layer.decl->members) {
    declareMember(member->name);
    if (const auto *syntax = member->as<ParamDecl>()) {
      ParamInfo &param = storage.params.emplace_back();
      param.name = syntax->name.name;
      param.decl = syntax;
      param.layer = &layer;
      layer.params.push_back(&param);
    } else if (const auto *syntax = member->as<LetDecl>()) {
      LetInfo &let = storage.lets.emplace_back();
      let.name = syntax->name.name;
      let.decl = syntax;
      let.layer = &layer;
      layer.lets.push_back(&let);
    } else if (const auto *syntax = member->as<FnDecl>()) {
      FnInfo &fn = storage.fns.emplace_back();
      fn.name = syntax->name.name;
      fn.qualifiedName = layer.name + "." + fn.name;
      fn.decl = syntax;
      fn.layer = &layer;
      layer.fns.push_back(&fn);
    }
  }
}

//===----------------------------------------------------------------------===//
// Data types
//===----------------------------------------------------------------------===//

void Checker::checkData() {
  for (DataInfo &data : storage.data) {
    Context dataContext = contextAt(data.decl->range);
    Context *outer = std::exchange(context, &dataContext);
    for (size_t i = 0; i < data.typeParams.size(); ++i) {
      const Identifier &name = data.decl->typeParams[i];
      if (!dataContext.typeParams.try_emplace(name.name, data.typeParams[i]).second)
        diags.error(name.range, fmt::format("type parameter '{}' is already declared", name.name));
    }
    for (size_t i = 0; i < data.constructors.size(); ++i) {
      std::set<std::string> names;
      for (const DataField &field : data.decl->constructors[i].fields) {
        if (!field.name.name.empty() && !names.insert(field.name.name).second)
          diags.error(field.name.range, fmt::format("field '{}' is already declared in '{}'",
                                                    field.name.name, data.constructors[i].name));
        TypeScope scope;
        data.constructors[i].fields.push_back(
            {field.name.name, conversion.convertType(*field.type, scope)});
      }
    }
    context = outer;
  }
  if (diags.hasErrors())
    return;
  checkDataIsRegular();
  checkDataIsFinite();
}

/// A type that contains itself with ever larger arguments has no finite set of instances.
void Checker::checkDataIsRegular() {
  std::map<const DataInfo *, unsigned> numbers;
  for (const DataInfo &data : storage.data)
    numbers.emplace(&data, numbers.size());
  std::vector<std::vector<unsigned>> next(storage.data.size());
  auto visit = [&](auto &&self, TypeRef type, const auto &each) -> void {
    if (type->is(TypeKind::Data))
      each(type);
    for (TypeRef arg : type->args)
      self(self, arg, each);
  };
  auto forEachReference = [&](const DataInfo &data, const auto &each) {
    for (const DataInfo::Constructor &ctor : data.constructors)
      for (const DataInfo::Field &field : ctor.fields)
        visit(visit, field.type, each);
  };
  for (const DataInfo &data : storage.data)
    forEachReference(
        data, [&](TypeRef type) { next[numbers.at(&data)].push_back(numbers.at(type->data)); });
  Components components = findComponents(next);
  for (const DataInfo &data : storage.data) {
    bool reported = false;
    forEachReference(data, [&](TypeRef type) {
      if (reported || components.of[numbers.at(&data)] != components.of[numbers.at(type->data)])
        return;
      for (TypeRef arg : type->args)
        if (!arg->is(TypeKind::Parameter) && types.contains(arg, TypeKind::Parameter)) {
          diags.error(data.decl->name.range,
                      fmt::format("type '{}' contains itself as '{}', with larger and larger "
                                  "arguments",
                                  data.name, types.print(type)),
                      "a recursive type must use its parameters as they are");
          reported = true;
          return;
        }
    });
  }
}

void Checker::checkDataIsFinite() {
  std::set<const DataInfo *> finite;
  auto has = [&](auto &&self, TypeRef type) -> bool {
    if (type->is(TypeKind::Data))
      return finite.contains(type->data);
    if (type->is(TypeKind::Tuple))
      return std::all_of(type->args.begin(), type->args.end(),
                         [&](TypeRef arg) { return self(self, arg); });
    return true;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (const DataInfo &data : storage.data)
      for (const DataInfo::Constructor &ctor : data.constructors)
        if (!finite.contains(&data) &&
            std::all_of(ctor.fields.begin(), ctor.fields.end(),
                        [&](const DataInfo::Field &field) { return has(has, field.type); }))
          changed = finite.insert(&data).second;
  }
  for (const DataInfo &data : storage.data)
    if (!finite.contains(&data) && !data.constructors.empty())
      diags.error(data.decl->name.range,
                  fmt::format("type '{}' has no finite values: each of its constructors needs "
                              "another '{}' first",
                              data.name, data.name),
                  "add a constructor that ends the recursion, or use list<...>");
}

//===----------------------------------------------------------------------===//
// Params, signatures, layers
//===----------------------------------------------------------------------===//

void Checker::checkLayerHeads() {
  for (LayerInfo &layer : storage.layers) {
    Context layerContext = contextAt(layer.decl->range);
    layerContext.layer = &layer;
    Context *outer = std::exchange(context, &layerContext);
    for (ParamInfo *param : layer.params)
      checkParam(*param);
    context = outer;
  }
}

void Checker::checkParam(ParamInfo &param) {
  TypeScope scope;
  scope.allowUnknown = false;
  param.type = conversion.convertType(*param.decl->type, scope);
  if (!isError(param.type) && !param.type->is(TypeKind::Tensor)) {
    diags.error(param.decl->type->range,
                fmt::format("param '{}' must be a tensor, but its type is '{}'", param.name,
                            types.print(param.type)));
    param.type = types.error();
  } else if (param.type->is(TypeKind::Tensor) && !ops::isFloat(param.type->tensor.dtype)) {
    diags.error(param.decl->type->range,
                fmt::format("param '{}' must have float elements, but its type is '{}'", param.name,
                            types.print(param.type)));
  }

  struct Kind {
    const char *name;
    size_t least, most;
    size_t rank;
    const char *usage;
  };
  static const Kind kinds[] = {
      {"zeros", 0, 0, 0, "zeros"},
      {"ones", 0, 0, 0, "ones"},
      {"constant", 1, 1, 0, "constant(value)"},
      {"normal", 1, 2, 0, "normal(std) or normal(mean, std)"},
      {"uniform", 1, 2, 0, "uniform(bound) or uniform(lo, hi)"},
      {"glorot", 0, 0, 0, "glorot"},
      {"he", 0, 0, 0, "he"},
      {"orthogonal", 0, 1, 2, "orthogonal or orthogonal(gain)"},
      {"identity", 0, 0, 2, "identity"},
  };
  const Initializer &init = param.decl->init;
  param.init = init.name.name;
  if (param.init.empty())
    return;
  const Kind *kind = nullptr;
  std::vector<std::string> names;
  for (const Kind &k : kinds) {
    names.push_back(k.name);
    if (param.init == k.name)
      kind = &k;
  }
  if (!kind) {
    std::string help = suggest(param.init, names);
    diags.error(init.name.range, fmt::format("there is no initialiser '{}'", param.init),
                help.empty() ? "the initialisers are zeros, ones, constant, normal, uniform, "
                               "glorot, he, orthogonal and identity"
                             : help);
    return;
  }
  if (init.args.size() < kind->least || init.args.size() > kind->most) {
    diags.error(init.range, fmt::format("initialiser '{}' is written {}", kind->name, kind->usage));
    return;
  }
  if (param.type->is(TypeKind::Tensor) && param.type->tensor.dims.size() < kind->rank)
    diags.error(init.range, fmt::format("initialiser '{}' needs a matrix, but '{}' is '{}'",
                                        kind->name, param.name, types.print(param.type)));
  for (const Argument &arg : init.args) {
    if (arg.name) {
      diags.error(arg.name->range, "arguments of initialisers have no names",
                  fmt::format("write {}", kind->usage));
      continue;
    }
    auto value = evaluateNumber(*arg.value, [&](const std::string &name) -> std::optional<double> {
      const Named *named = findConstant(name);
      bool isDim = findDim(name) || (named && std::holds_alternative<DimRef>(named->what));
      std::optional<double> constant = constantNumber(name);
      if (constant)
        param.initConstants.emplace(name, *constant);
      return isDim ? 1.0 : constant; // of one without a value yet, or of a layer
    });
    if (!value)
      diags.error(arg.value->range, "an argument of an initialiser must be a constant number");
    param.initArgs.push_back(arg.value);
  }
}

void Checker::checkSignature(FnInfo &fn) {
  if (fn.ranks.empty() && makeGeneric(fn))
    return;
  Context fnContext = contextAt(fn.decl->range);
  fnContext.ranks = fn.ranks;
  fnContext.layer = fn.layer;
  Context *outer = std::exchange(context, &fnContext);
  for (const Identifier &name : fn.decl->typeParams) {
    TypeRef param = types.parameter(name.name);
    fn.typeParams.push_back(param);
    if (!fnContext.typeParams.try_emplace(name.name, param).second)
      diags.error(name.range, fmt::format("type parameter '{}' is already declared", name.name));
    else if (fileScope().visibleTypes.contains(name.name))
      diags.error(name.range, fmt::format("type parameter '{}' hides a data type", name.name));
  }
  TypeScope scope;
  scope.newDims = NewDims::Quantify;
  for (const FnParam &param : fn.decl->params) {
    scope.allowFunction = scope.allowLayer = true;
    fn.paramTypes.push_back(param.type ? conversion.convertType(*param.type, scope)
                                       : types.error());
  }

  std::set<std::string> plain;
  bool areRight = true; // what a wrong type would have told is not known
  auto collect = [&](auto &&self, TypeRef type) -> void {
    areRight &= !type->is(TypeKind::Error);
    auto add = [&](const Dim &dim) {
      if (std::optional<std::string> symbol = dim.asSymbol())
        plain.insert(*symbol);
    };
    std::for_each(type->tensor.dims.begin(), type->tensor.dims.end(), add);
    std::for_each(type->dims.begin(), type->dims.end(), add);
    for (TypeRef arg : type->args)
      self(self, arg);
  };
  for (TypeRef type : fn.paramTypes)
    collect(collect, type);
  for (const auto &[name, dim] : scope.made) {
    if (!areRight || plain.contains(*dim.asSymbol()))
      continue;
    std::string help = suggestName(name, visibleDims());
    diags.error(scope.madeAt.at(name),
                fmt::format("dim '{}' stands only inside expressions, so no argument tells what "
                            "it is",
                            name),
                help.empty() ? fmt::format("let one argument have the extent '{0}' itself, or "
                                           "give the whole a name and divide that in the body; a "
                                           "dim that is fixed is declared: dim {0} = ...",
                                           name)
                             : help);
  }
  size_t known = scope.made.size();
  if (fn.decl->result) {
    scope.allowFunction = scope.allowLayer = false;
    std::map<std::string, Dim> before = scope.made;
    fn.result = conversion.convertType(*fn.decl->result, scope);
    if (scope.made.size() > known)
      for (const auto &[name, dim] : scope.made) {
        if (before.contains(name))
          continue;
        if (std::optional<size_t> param = intParam(fn, name)) {
          fn.intExtents.push_back({*dim.asSymbol(), *param});
          continue;
        }
        std::vector<std::string> candidates = visibleDims();
        for (const auto &[other, ignored] : before)
          candidates.push_back(other);
        std::string help = suggestName(name, candidates);
        diags.error(
            scope.madeAt.at(name),
            fmt::format("no argument of '{}' tells what dim '{}' is", fn.name, name),
            isRunTimeName(*fn.decl, name)
                ? fmt::format("'{}' is known only when '{}' runs, so write '?' for the extent",
                              name, fn.name)
            : help.empty() ? fmt::format("write '?' for an extent that only the result knows; one "
                                         "that is fixed is declared: dim {} = ...",
                                         name)
                           : help);
        fn.result = types.error();
      }
    scope.made = before;
  }
  if (fn.decl->emits)
    checkEmits(fn);
  for (const auto &[name, dim] : scope.made)
    fn.dims.push_back({name, *dim.asSymbol()});
  std::vector<std::string> declared;
  if (fn.generic && fn.generic->expansions.size() > 1)
    return static_cast<void>(context = outer); // the first has said it
  for (const DeclaredDim &dim : out.dims)
    if (dim.name.size() >= 4)
      declared.push_back(dim.name);
  for (const auto &[name, dim] : scope.made)
    if (std::string help = suggest(name, declared); name.size() >= 4 && !help.empty())
      diags.warning(scope.madeAt.at(name),
                    fmt::format("'{}' is not declared, so it is a per-instance dim here", name),
                    help);
  context = outer;
}

void Checker::checkEmits(FnInfo &fn) {
  TypeScope scope;
  fn.emits = conversion.convertType(*fn.decl->emits, scope);
  if (!types.contains(fn.emits, TypeKind::Parameter))
    return;
  diags.error(fn.decl->emits->range,
              fmt::format("'{}' emits '{}', which differs from call to call", fn.name,
                          types.print(fn.emits)),
              "what is emitted has one type, without type parameters");
  fn.emits = types.error();
}

void Checker::checkLets() {
  for (LetInfo &let : storage.lets)
    checkLet(let);
}

bool Checker::checkLet(LetInfo &let) {
  BodyState &state = letStates[&let];
  if (state != BodyState::Waiting)
    return state == BodyState::Done;
  state = BodyState::Active;
  Context letContext = contextAt(let.decl->range);
  letContext.layer = let.layer;
  Context *outer = std::exchange(context, &letContext);
  E value;
  if (let.decl->type) {
    TypeScope scope;
    scope.allowLayer = true;
    TypeRef type = conversion.convertType(*let.decl->type, scope);
    value = bodies.check(*let.decl->value, {type, fmt::format("'{}'", let.name)});
    let.type = isError(type) || isError(value->type) ? types.error() : type;
  } else {
    value = bodies.infer(*let.decl->value);
    let.type = value->type;
  }
  context = outer;
  let.value = value;
  TypeRef type = types.resolve(let.type);
  if (types.contains(type, TypeKind::Function)) {
    diags.error(let.decl->value->range, "a 'let' outside functions cannot hold a function",
                fmt::format("declare it with fn: fn {}(...) = ...", let.name));
    let.type = types.error();
  }
  let.isLayer = types.contains(type, TypeKind::Layer);
  if (!let.isLayer && !let.decl->stored.names.empty() && !isError(type))
    diags.error(let.decl->stored.range,
                fmt::format("'{}' is no layer, so files of weights do not have it", let.name),
                "'as' says what such files call a param or a layer");
  if (let.isLayer && !let.layer && diags.file().numberOf(let.decl->range.begin) != 0)
    refuseParam(*let.decl, "a layer");
  letStates[&let] = BodyState::Done;
  return true;
}

void Checker::checkLayerCycles() {
  std::map<const LayerInfo *, unsigned> numbers;
  for (const LayerInfo &layer : storage.layers)
    numbers.emplace(&layer, numbers.size());
  std::vector<std::vector<unsigned>> next(storage.layers.size());
  for (const LayerInfo &layer : storage.layers)
    for (const LetInfo *let : layer.lets) {
      TypeRef type = types.resolve(let->type);
      while (type->is(TypeKind::List))
        type = types.resolve(type->element());
      if (type->is(TypeKind::Layer))
        next[numbers.at(&layer)].push_back(numbers.at(type->layer));
    }
  Components components = findComponents(next);
  for (const LayerInfo &layer : storage.layers)
    if (components.cyclic[numbers.at(&layer)])
      diags.error(layer.decl->name.range,
                  fmt::format("layer '{}' contains itself, so it would have endlessly many params",
                              layer.name));
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

void Checker::checkBody(FnInfo &fn) {
  BodyState &state = bodyStates[&fn];
  if (state != BodyState::Waiting || !fn.packs.empty())
    return;
  if (fn.generic && fn.generic->expansions.front() != &fn) {
    checkBody(*fn.generic->expansions.front());
    if (fn.generic->expansions.front()->isRefused)
      return; // what is wrong there is wrong here
  }
  state = BodyState::Active;
  size_t errors = diags.errorCount();
  Context fnContext = contextAt(fn.decl->range);
  fnContext.ranks = fn.ranks;
  fnContext.fn = &fn;
  fnContext.layer = fn.layer;
  for (TypeRef param : fn.typeParams)
    fnContext.typeParams.emplace(param->name, param);
  Context *outer = std::exchange(context, &fnContext);
  for (const DimParam &dim : fn.dims)
    fnContext.locals.push_back({dim.name, Dim::symbol(dim.symbol)});
  {
    Scope scope(*this);
    std::set<std::string> names;
    for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
      std::vector<typed::OpenedDim> openedDims;
      TypeRef type = extents.open(fn.paramTypes[i], openedDims);
      typed::Pattern *pattern = patterns.checkPattern(*fn.decl->params[i].pattern, type, names);
      pattern->opened.insert(pattern->opened.end(), openedDims.begin(), openedDims.end());
      patterns.requireIrrefutable(*pattern, "a parameter");
      for (const IntExtent &extent : fn.intExtents)
        if (extent.param == i)
          pattern->variable->dimSymbol = extent.symbol;
      fn.params.push_back(pattern);
    }
    if (fn.result) {
      fn.body =
          bodies.check(*fn.decl->body, {fn.result, fmt::format("the result of '{}'", fn.name)});
    } else {
      E body = bodies.infer(*fn.decl->body);
      fn.body = body;
      if (fn.result == nullptr)
        fn.result = extents.close(body->type, 0);
    }
    TypeRef result = types.resolve(fn.result);
    if (!types.isFirstClass(result)) {
      bool layer = types.contains(result, TypeKind::Layer);
      diags.error(fn.decl->body->range,
                  fmt::format("'{}' cannot return a {}", fn.name, layer ? "layer" : "function"),
                  layer ? "pass the layer on as an argument"
                        : "functions can be passed as "
                          "arguments, but not returned");
      fn.result = types.error();
    }
  }
  context = outer;
  bodyStates[&fn] = BodyState::Done;
  fn.isRefused = diags.errorCount() != errors;
  if (fn.isRefused && fn.generic && fn.generic->expansions.front() != &fn)
    for (const auto &[name, rank] : fn.ranks)
      diags.note(fn.expandedAt, fmt::format("'{}' is checked for this call, where '*{}' stands for "
                                            "{} extent{}",
                                            fn.name, name, rank, rank == 1 ? "" : "s"));
}

void Checker::settle(FnInfo &fn) {
  if (!fn.result && bodyStates[&fn] == BodyState::Waiting)
    checkBody(fn);
}

bool Checker::needResult(FnInfo &fn, SourceRange use) {
  if (fn.result)
    return true;
  if (bodyStates[&fn] == BodyState::Active) {
    diags
        .error(use, fmt::format("'{}' is recursive, so its result type must be written", fn.name),
               fmt::format("fn {}(...) -> TYPE = ...", fn.name))
        .withNote(fn.decl->name.range, fmt::format("'{}' is declared here", fn.name));
    if (!bodies.isTrying()) // else it is reported again
      fn.result = types.error();
    return false;
  }
  checkBody(fn);
  return fn.result != nullptr;
}

} // namespace sheaf

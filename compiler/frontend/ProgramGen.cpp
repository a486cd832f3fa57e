//===- ProgramGen.cpp - From typed trees to Programs ----------------------===//

#include "compiler/frontend/ProgramGen.h"

#include "compiler/frontend/CheckerStack.h"
#include "compiler/frontend/ProgramGenImpl.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <fmt/format.h>

#include <cmath>

namespace sheaf {

using namespace mlir;

OwningOpRef<ModuleOp> generateProgram(const CheckedModule &checked, MLIRContext &context,
                                      const std::string &entry, Diagnostics &diags, bool training) {
  OwningOpRef<ModuleOp> result;
  runOnLargeStack([&] {
    result = ProgramGenerator(checked, context, diags, training).run(entry, /*bodies=*/true);
  });
  return result;
}

OwningOpRef<ModuleOp> generateSignature(const CheckedModule &checked, MLIRContext &context,
                                        const std::string &entry, Diagnostics &diags) {
  OwningOpRef<ModuleOp> result;
  runOnLargeStack([&] {
    result = ProgramGenerator(checked, context, diags, false).run(entry, /*bodies=*/false);
  });
  return result;
}

ProgramGenerator::ProgramGenerator(const CheckedModule &checked, MLIRContext &context,
                                   Diagnostics &diags, bool training)
    : checked(checked), draws(checked, training), types(*checked.types), context(context),
      diags(diags), b(UnknownLoc::get(&context), &context) {
  context.loadDialect<ir::SheafDialect, arith::ArithDialect, func::FuncDialect, scf::SCFDialect>();
}

Location ProgramGenerator::locOf(SourceRange where) const {
  LineColumn place = diags.file().lineColumn(where.begin);
  return FileLineColLoc::get(&context, diags.file().fileOf(where.begin).name(), place.line,
                             place.column);
}

std::string ProgramGenerator::uniqueSymbol(const std::string &name) {
  std::string result = name;
  while (!symbols.insert(result).second)
    result = fmt::format("{}.{}", name, ++symbolCounts[name]);
  return result;
}

Value ProgramGenerator::placeholder(Type type) {
  return UnrealizedConversionCastOp::create(b, type, ValueRange{}).getResult(0);
}

Value ProgramGenerator::refuse(Type type, const std::string &message, const std::string &help) {
  diags.error(range, message, help);
  stopped = true;
  return type ? placeholder(type) : Value();
}

OwningOpRef<ModuleOp> ProgramGenerator::run(const std::string &entry, bool bodies) {
  size_t errorsBefore = diags.errorCount();
  module = ModuleOp::create(locOf({}));
  Frame fileFrame;
  fileFrame.subst = &fileSubst;
  frame = &fileFrame;

  SmallVector<NamedAttribute> dimValues;
  for (const DeclaredDim &dim : checked.dims) {
    if (!dim.value) {
      diags.error(dim.range, fmt::format("dim '{}' has no value", dim.name),
                  fmt::format("give it one with --dim {}=...", dim.name));
      return {};
    }
    dimValues.push_back(b.getNamedAttr(dim.name, b.getI64IntegerAttr(*dim.value)));
  }
  (*module)->setAttr("sheaf.dims", b.getDictionaryAttr(dimValues));
  const FnInfo *fn = checked.findFunction(entry);
  if (!fn) {
    diags.error({}, fmt::format("there is no function '{}' to begin with", entry));
    return {};
  }
  for (size_t i = 0; i < fn->paramTypes.size(); ++i)
    if (!fn->typeParams.empty() || !types.isFirstClass(fn->paramTypes[i])) {
      diags.error(
          fn->decl->name.range,
          fmt::format("a run cannot begin with '{}': it is generic or takes functions", entry));
      return {};
    }

  if (fn->emits)
    emitted = mlirType(fn->emits);
  if (bodies)
    instantiateLets();
  if (stopped)
    return {};
  bool plain = entryIsPlain(*fn);
  if (!plain)
    symbols.insert(entry);
  FnInstance *instance =
      instanceOf(*fn, {}, std::vector<std::optional<int64_t>>(fn->dims.size()), nullptr,
                 std::vector<const StaticCode *>(fn->params.size()), nullptr);
  while (bodies && !pending.empty() && !stopped) {
    std::function<void()> work = std::move(pending.front());
    pending.pop_front();
    work();
  }
  if (stopped || diags.errorCount() != errorsBefore)
    return {};
  func::FuncOp func = plain ? instance->func : makeEntry(*instance, entry);
  if (stopped)
    return {};
  SymbolTable::setSymbolVisibility(func, SymbolTable::Visibility::Public);
  annotateEntry(*instance, func);
  // Tuples that were taken apart at once, and extents that nobody asked for.
  eraseUnused();
  return std::move(module);
}

/// Erases operations without effects and uses, last ones first.
void ProgramGenerator::eraseUnused() {
  std::vector<Operation *> order;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) { order.push_back(op); });
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    if (isOpTriviallyDead(*it))
      (*it)->erase();
}

//===----------------------------------------------------------------------===//
// Layers and params
//===----------------------------------------------------------------------===//

/// More names than these are a mistake; each layer that has others doubles them.
static constexpr size_t mostStoredNames = 64;

ProgramGenerator::StoredPath
ProgramGenerator::StoredPath::member(const std::string &member,
                                     const std::vector<std::string> &also) const {
  auto join = [](const std::string &outer, const std::string &inner) {
    return outer.empty() || inner.empty() ? outer + inner : outer + "." + inner;
  };
  StoredPath result{join(name, member), {}};
  auto add = [&](const std::string &outer, bool own) {
    if (!own)
      result.others.push_back(join(outer, member));
    for (const std::string &other : also)
      if (result.others.size() <= mostStoredNames)
        result.others.push_back(join(outer, other));
  };
  add(name, /*own=*/true);
  for (const std::string &other : others)
    add(other, /*own=*/false);
  return result;
}

ProgramGenerator::StoredPath ProgramGenerator::fileLetPath(const LetInfo &let) {
  return StoredPath().member(let.name, let.decl->stored.names);
}

void ProgramGenerator::emitParam(const ParamInfo &param, const LayerInstance *layer) {
  At at(*this, param.decl->name.range);
  if (++paramCount > 100000) {
    if (!stopped)
      refuse({}, "the model has more than 100000 params");
    return;
  }
  Subst subst;
  if (layer)
    subst.dims = layer->symbols;
  std::vector<double> args;
  for (const Expr *arg : param.initArgs) {
    auto value = evaluateNumber(*arg, [&](const std::string &name) -> std::optional<double> {
      if (layer)
        for (size_t i = 0; i < layer->dims.size(); ++i)
          if (layer->info->dims[i].name == name)
            return static_cast<double>(layer->dims[i]);
      for (const DeclaredDim &dim : checked.dims)
        if (dim.name == name && dim.value)
          return static_cast<double>(*dim.value);
      auto constant = param.initConstants.find(name);
      return constant == param.initConstants.end() ? std::nullopt : std::optional(constant->second);
    });
    if (!value || !std::isfinite(*value)) {
      range = arg->range;
      refuse({}, "an argument of an initialiser must be a finite number");
      return;
    }
    args.push_back(*value);
  }
  auto type = cast<RankedTensorType>(mlirType(param.type, subst));
  if (!type.hasStaticShape()) {
    refuse({}, fmt::format("an extent of param '{}' is not a whole number", param.name));
    return;
  }
  StoredPath path =
      (layer ? layer->path : StoredPath()).member(param.name, param.decl->stored.names);
  if (path.others.size() > mostStoredNames) {
    range = param.decl->stored.range;
    refuse({}, fmt::format("param '{}' has more than {} names in files of weights", path.name,
                           mostStoredNames));
    return;
  }
  symbols.insert(path.name);
  auto made = ir::ParamOp::create(b, path.name, type, param.init, b.getF64ArrayAttr(args));
  if (!path.others.empty())
    made->setAttr("sheaf.stored_as", b.getStrArrayAttr(llvm::to_vector_of<StringRef>(path.others)));
}

void ProgramGenerator::instantiateLets() {
  b.setInsertionPointToEnd(module->getBody());
  // In source order, so that files of weights read like the model.
  // (Declarations of a model that a program builds may share a place.)
  std::multimap<uint32_t, std::function<void()>> inOrder;
  for (const ParamInfo *param : checked.params)
    inOrder.emplace(param->decl->range.begin, [this, param] { emitParam(*param, nullptr); });
  for (const LetInfo *let : checked.lets)
    if (let->isLayer)
      inOrder.emplace(let->decl->range.begin, [this, let] {
        if (!fileLets.contains(let))
          fileLets[let] = layerCode(*let->value, nullptr, fileLetPath(*let));
      });
  for (auto &[place, work] : inOrder)
    if (!stopped)
      work();
}

const ProgramGenerator::LayerInstance *ProgramGenerator::makeInstance(const LayerInfo &info,
                                                                      std::vector<int64_t> dims,
                                                                      const StoredPath &path) {
  LayerInstance &instance = layers.emplace_back();
  instance.info = &info;
  instance.dims = std::move(dims);
  instance.path = path;
  for (size_t i = 0; i < info.dims.size(); ++i)
    instance.symbols.emplace(info.dims[i].symbol, instance.dims[i]);
  if (layers.size() > 100000) {
    refuse({}, "the model has more than 100000 layers");
    return &instance;
  }
  // (Declarations of a model that a program builds may share a place.)
  std::multimap<uint32_t, std::function<void()>> inOrder;
  for (const ParamInfo *param : info.params)
    inOrder.emplace(param->decl->range.begin, [&, param] { emitParam(*param, &instance); });
  for (const LetInfo *let : info.lets)
    if (let->isLayer)
      inOrder.emplace(let->decl->range.begin, [&, let] {
        instance.lets[let] =
            layerCode(*let->value, &instance, path.member(let->name, let->decl->stored.names));
      });
  for (auto &[place, work] : inOrder)
    if (!stopped)
      work();
  return &instance;
}

/// The layer or list of layers that a `let` outside functions makes or names.
const ProgramGenerator::StaticCode *ProgramGenerator::layerCode(const typed::Expr &expr,
                                                                const LayerInstance *self,
                                                                const StoredPath &path) {
  At at(*this, expr.range);
  Subst subst;
  subst.self = self;
  if (self)
    subst.dims = self->symbols;
  auto number = [&](const Dim &dim, const std::string &what) -> int64_t {
    std::optional<int64_t> value = staticDim(dim, subst);
    if (!value || *value < 1 || *value > (int64_t{1} << 31) - 1)
      refuse({}, value ? fmt::format("{} is {} here", what, *value)
                       : fmt::format("{} is not a whole number here", what));
    return value.value_or(1);
  };
  if (const auto *made = expr.as<typed::LayerNewExpr>()) {
    std::vector<int64_t> dims;
    for (size_t i = 0; i < made->dims.size(); ++i)
      dims.push_back(
          number(made->dims[i], fmt::format("dim '{}' of layer '{}'", made->info->dims[i].name,
                                            made->info->name)));
    if (stopped)
      return nullptr;
    StaticCode code;
    code.kind = StaticCode::Layer;
    code.layer = makeInstance(*made->info, std::move(dims), path);
    return intern(std::move(code), fmt::format("layer {}", path.name));
  }
  if (const auto *list = expr.as<typed::LayerListExpr>()) {
    std::vector<const StaticCode *> options;
    int64_t times = list->repeated ? number(list->repeat, "the number of layers") : 1;
    // Each repetition has layers of its own.
    for (int64_t i = 0; i < times && !stopped; ++i) {
      if (list->repeated) {
        const auto *inner = list->repeated->as<typed::LayerListExpr>();
        if (!inner || inner->repeated) {
          refuse({}, "only a list written out can be repeated", "write [A(), B()] * n");
          return nullptr;
        }
        for (const typed::Expr *element : inner->elements)
          options.push_back(layerCode(*element, self, path.member(std::to_string(options.size()))));
      } else {
        for (const typed::Expr *element : list->elements)
          options.push_back(layerCode(*element, self, path.member(std::to_string(options.size()))));
      }
    }
    if (stopped)
      return nullptr;
    return listCode(std::move(options));
  }
  // A name of another: nothing is made.
  Frame letFrame;
  letFrame.subst = &substs.emplace_back(std::move(subst));
  Frame *outer = std::exchange(frame, &letFrame);
  StaticValue value = genStatic(expr);
  frame = outer;
  if (!stopped && !value.values.empty())
    refuse({}, "the index of a layer must be known at compile time here");
  return value.code;
}

//===----------------------------------------------------------------------===//
// The entry
//===----------------------------------------------------------------------===//

/// Finds the value of a per-instance dim in an argument: the last tensor or list that has it tells.
void ProgramGenerator::bindExtents(Value value, TypeRef type, std::map<std::string, Value> &bound,
                                   const std::string &symbol) {
  type = types.resolve(type);
  std::function<bool(TypeRef)> has = [&](TypeRef t) {
    t = types.resolve(t);
    for (const std::vector<Dim> &dims : {t->tensor.dims, t->dims})
      if (std::find(dims.begin(), dims.end(), Dim::symbol(symbol)) != dims.end())
        return true;
    return std::any_of(t->args.begin(), t->args.end(), has);
  };
  if (!has(type))
    return;
  if (type->is(TypeKind::Tensor)) {
    for (size_t axis = 0; axis < type->tensor.dims.size(); ++axis)
      if (type->tensor.dims[axis] == Dim::symbol(symbol))
        bound[symbol] = ir::DimOp::create(b, value, static_cast<uint64_t>(axis));
  } else if (type->is(TypeKind::Tuple)) {
    for (size_t i = 0; i < type->args.size(); ++i)
      bindExtents(get(value, static_cast<unsigned>(i)), type->args[i], bound, symbol);
  } else if (type->is(TypeKind::List)) {
    if (type->length() && *type->length() == Dim::symbol(symbol))
      bound[symbol] = ir::LenOp::create(b, value);
    if (!has(type->element()))
      return;
    Value before = bound.contains(symbol) ? bound[symbol] : constInt(0);
    auto fold = ir::FoldOp::create(b, b.getI64Type(), before, value);
    RegionScope scope(*this);
    Block &body = fold.getBody().emplaceBlock();
    bound[symbol] = body.addArgument(b.getI64Type(), b.getLoc());
    Value element = body.addArgument(cast<ir::ListType>(value.getType()).getElement(), b.getLoc());
    b.setInsertionPointToStart(&body);
    bindExtents(element, type->element(), bound, symbol);
    ir::YieldOp::create(b, bound[symbol]);
    bound[symbol] = fold;
  }
}

/// Checks that the tensors of an argument have the extents that its type says, and its lists the
/// lengths, where those are per-instance dims.
void ProgramGenerator::checkExtents(Value value, TypeRef type, const std::string &what) {
  type = types.resolve(type);
  std::function<bool(TypeRef)> has = [&](TypeRef t) {
    t = types.resolve(t);
    for (const std::vector<Dim> &dims : {t->tensor.dims, t->dims})
      for (const Dim &dim : dims)
        if (!isUnknown(dim) && !staticDim(dim))
          return true;
    return std::any_of(t->args.begin(), t->args.end(), has);
  };
  if (!has(type))
    return;
  if (type->is(TypeKind::Tensor)) {
    for (size_t axis = 0; axis < type->tensor.dims.size(); ++axis) {
      const Dim &dim = type->tensor.dims[axis];
      if (isUnknown(dim) || staticDim(dim))
        continue;
      Value actual = ir::DimOp::create(b, value, static_cast<uint64_t>(axis));
      Value expected = dimValue(dim);
      auto from = expected.getDefiningOp<ir::DimOp>();
      if (from && from.getTensor() == value && from.getAxis() == axis)
        continue;
      Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, actual, expected);
      ir::CheckOp::create(b, same,
                          fmt::format("{} does not have the extent '{}' that its type {} says",
                                      what, types.dims.print(dim), types.print(type)));
    }
  } else if (type->is(TypeKind::Tuple)) {
    for (size_t i = 0; i < type->args.size(); ++i)
      checkExtents(get(value, static_cast<unsigned>(i)), type->args[i], what);
  } else if (type->is(TypeKind::List)) {
    if (const Dim *length = type->length(); length && !staticDim(*length)) {
      Value expected = dimValue(*length);
      auto from = expected.getDefiningOp<ir::LenOp>();
      if (!from || from.getList() != value) {
        Value actual = ir::LenOp::create(b, value);
        Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, actual, expected);
        ir::CheckOp::create(b, same,
                            fmt::format("{} does not have the length '{}' that its type {} says",
                                        what, types.dims.print(*length), types.print(type)));
      }
    }
    if (!has(type->element()))
      return;
    auto fold = ir::FoldOp::create(b, b.getI1Type(), constBool(true), value);
    RegionScope scope(*this);
    Block &body = fold.getBody().emplaceBlock();
    Value all = body.addArgument(b.getI1Type(), b.getLoc());
    Value element = body.addArgument(cast<ir::ListType>(value.getType()).getElement(), b.getLoc());
    b.setInsertionPointToStart(&body);
    checkExtents(element, type->element(), what);
    ir::YieldOp::create(b, all);
  }
}

/// Whether data of the entry's argument types need no check: each per-instance dim stands once, as
/// the extent of a tensor argument itself or the length of a list.
bool ProgramGenerator::entryIsPlain(const FnInfo &fn) const {
  std::map<std::string, unsigned> count;
  bool plain = true;
  std::function<void(TypeRef, bool)> visit = [&](TypeRef type, bool direct) {
    type = types.resolve(type);
    for (const std::vector<Dim> &dims : {type->tensor.dims, type->dims})
      for (const Dim &dim : dims) {
        if (isUnknown(dim) || staticDim(dim, fileSubst))
          continue;
        std::optional<std::string> symbol = dim.asSymbol();
        plain &= direct && symbol && ++count[*symbol] == 1;
      }
    for (TypeRef arg : type->args)
      visit(arg, direct && type->is(TypeKind::Tuple));
  };
  for (TypeRef type : fn.paramTypes)
    visit(type, true);
  return plain;
}

/// The function a run begins with. Data bring their own extents, so where the entry's type says
/// that two are equal, or that elements of a list have one in common, that is checked first.
func::FuncOp ProgramGenerator::makeEntry(FnInstance &instance, const std::string &name) {
  const FnInfo &fn = *instance.fn;
  At at(*this, fn.decl->name.range);
  Frame entryFrame;
  entryFrame.subst = &fileSubst;
  Frame *outer = std::exchange(frame, &entryFrame);
  SmallVector<Type> inputs;
  if (instance.hasKey)
    inputs.push_back(b.getI64Type());
  for (TypeRef type : fn.paramTypes)
    inputs.push_back(mlirType(type));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(instance.func);
  auto func = func::FuncOp::create(
      b, name, FunctionType::get(&context, inputs, instance.func.getResultTypes()));
  Block *body = func.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto arguments = body->getArguments().drop_front(instance.hasKey);
  // A tensor argument tells better than a list, which may be empty.
  std::map<std::string, Value> bound;
  for (const DimParam &dim : fn.dims) {
    for (bool lists : {true, false})
      for (size_t i = 0; i < fn.paramTypes.size(); ++i)
        if (types.contains(fn.paramTypes[i], TypeKind::List) == lists)
          bindExtents(arguments[i], fn.paramTypes[i], bound, dim.symbol);
    frame->dims[dim.symbol] = known(bound.contains(dim.symbol) ? bound[dim.symbol] : constInt(0));
  }
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    const auto *binding = fn.decl->params[i].pattern->as<BindingPattern>();
    checkExtents(arguments[i], fn.paramTypes[i],
                 binding ? fmt::format("argument '{}'", binding->name)
                         : fmt::format("argument {}", i + 1));
  }
  SmallVector<Value> operands;
  if (instance.hasKey)
    operands.push_back(body->getArgument(0));
  for (size_t dim : instance.hidden)
    operands.push_back(symbolValue(fn.dims[dim].symbol));
  operands.append(arguments.begin(), arguments.end());
  auto call = func::CallOp::create(b, instance.func, operands);
  func::ReturnOp::create(b, call.getResults());
  frame = outer;
  return func;
}

void ProgramGenerator::annotateEntry(const FnInstance &instance, func::FuncOp func) {
  const FnInfo &fn = *instance.fn;
  // One name for each extent of each tensor that is not inside data, in the order they are written.
  auto dimNames = [&](TypeRef type) -> ArrayAttr {
    SmallVector<Attribute> names;
    bool open = false;
    std::function<void(TypeRef)> collect = [&](TypeRef t) {
      t = types.resolve(t);
      for (const Dim &dim : t->tensor.dims) {
        open |= !staticDim(dim, fileSubst);
        names.push_back(str(isUnknown(dim) ? "?" : types.dims.print(dim)));
      }
      if (!t->is(TypeKind::Data))
        for (TypeRef arg : t->args)
          collect(arg);
    };
    collect(type);
    return open ? ArrayAttr::get(&context, names) : ArrayAttr();
  };
  if (instance.hasKey)
    func.setArgAttr(0, ir::kKeyAttr, b.getUnitAttr());
  for (unsigned i = 0, arg = instance.hasKey; arg < func.getNumArguments(); ++i, ++arg) {
    if (const auto *binding = fn.decl->params[i].pattern->as<BindingPattern>())
      func.setArgAttr(arg, "sheaf.name", str(binding->name));
    func.setArgAttr(arg, "sheaf.source_type", str(types.print(fn.paramTypes[i])));
    if (ArrayAttr names = dimNames(fn.paramTypes[i]))
      func.setArgAttr(arg, "sheaf.dims", names);
    SmallVector<Attribute> lengths;
    if (listLengths(fn.paramTypes[i], fileSubst, lengths))
      func.setArgAttr(arg, "sheaf.lengths", ArrayAttr::get(&context, lengths));
  }
  if (emitted)
    func->setAttr(ir::kEmitsAttr, TypeAttr::get(emitted));
  func.setResultAttr(0, "sheaf.source_type", str(types.print(fn.result)));
  if (ArrayAttr names = dimNames(fn.result))
    func.setResultAttr(0, "sheaf.dims", names);
  SmallVector<Attribute> lengths;
  if (listLengths(fn.result, fileSubst, lengths))
    func.setResultAttr(0, "sheaf.lengths", ArrayAttr::get(&context, lengths));
}

} // namespace sheaf

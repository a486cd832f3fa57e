//===- Types.cpp - Types of the language, and their unification -----------===//

#include "compiler/frontend/Types.h"

#include "compiler/frontend/CheckerTree.h"

#include <algorithm>
#include <limits>

namespace sheaf {

const Dim &unknownDim() {
  static const Dim unknown = Dim::symbol("?");
  return unknown;
}

Dim tiedDim(size_t number) { return Dim::symbol("=" + std::to_string(number)); }

bool isTied(const Dim &dim) {
  std::optional<std::string> symbol = dim.asSymbol();
  return symbol && symbol->front() == '=';
}

bool isUnknown(const Dim &dim) { return dim == unknownDim() || isTied(dim); }

//===----------------------------------------------------------------------===//
// Making types
//===----------------------------------------------------------------------===//

TypeContext::TypeContext() {
  errorType = make(TypeKind::Error);
  intT = make(TypeKind::Int);
  floatT = make(TypeKind::Float);
  boolT = make(TypeKind::Bool);
  unitT = make(TypeKind::Tuple);
}

Type *TypeContext::make(TypeKind kind) {
  types.emplace_back();
  types.back().kind = kind;
  return &types.back();
}

TypeRef TypeContext::compound(TypeKind kind, std::vector<TypeRef> args, const DataInfo *data) {
  Type *type = make(kind);
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max() / 4;
  for (TypeRef arg : args) {
    TypeRef resolved = resolve(arg);
    type->weight = std::min(most, type->weight + resolved->weight);
    type->depth = std::max(type->depth, resolved->depth + 1);
  }
  type->args = std::move(args);
  type->data = data;
  return type;
}

TypeRef TypeContext::token(const std::string &vocab) {
  Type *type = make(TypeKind::Token);
  type->name = vocab;
  return type;
}

TypeRef TypeContext::tensor(ops::TensorType tensorType) {
  Type *type = make(TypeKind::Tensor);
  type->tensor = std::move(tensorType);
  return type;
}

TypeRef TypeContext::tuple(std::vector<TypeRef> fields) {
  return compound(TypeKind::Tuple, std::move(fields));
}

TypeRef TypeContext::list(TypeRef element, const std::optional<Dim> &length) {
  TypeRef type = compound(TypeKind::List, {element});
  if (length && !isUnknown(*length))
    types.back().dims = {*length};
  return type;
}

TypeRef TypeContext::dataType(const DataInfo *data, std::vector<TypeRef> args) {
  return compound(TypeKind::Data, std::move(args), data);
}

TypeRef TypeContext::function(std::vector<TypeRef> params, TypeRef result) {
  params.push_back(result);
  return compound(TypeKind::Function, std::move(params));
}

TypeRef TypeContext::layerType(const LayerInfo *layer, std::vector<Dim> layerDims) {
  Type *type = make(TypeKind::Layer);
  type->layer = layer;
  type->dims = std::move(layerDims);
  return type;
}

TypeRef TypeContext::parameter(const std::string &name) {
  Type *type = make(TypeKind::Parameter);
  type->name = name;
  return type;
}

TypeRef TypeContext::variable(bool keepsLengths) {
  Type *type = make(TypeKind::Variable);
  type->id = static_cast<uint32_t>(bindings.size());
  type->keepsLengths = keepsLengths;
  bindings.push_back(nullptr);
  return type;
}

TypeRef TypeContext::numericVariable() {
  Type *type = make(TypeKind::Variable);
  type->id = static_cast<uint32_t>(bindings.size());
  type->numeric = true;
  bindings.push_back(nullptr);
  return type;
}

//===----------------------------------------------------------------------===//
// Looking at types
//===----------------------------------------------------------------------===//

TypeRef TypeContext::resolve(TypeRef type) const {
  while (type->is(TypeKind::Variable) && bindings[type->id])
    type = bindings[type->id];
  return type;
}

/// Rebuilds a type bottom-up. `leaf(type)` gives the replacement of a resolved type, or null to go
/// on into its arguments; `mapLength` that of a list's length. Types without changes keep their
/// identity.
template <typename Leaf>
TypeRef TypeContext::rebuild(TypeRef type, Leaf &&leaf,
                             const std::function<Dim(const Dim &)> &mapLength) {
  std::map<TypeRef, TypeRef> done;
  auto visit = [&](auto &&self, TypeRef t) -> TypeRef {
    t = resolve(t);
    if (auto it = done.find(t); it != done.end())
      return it->second;
    TypeRef result = leaf(t);
    if (!result) {
      result = t;
      std::vector<TypeRef> args;
      bool changed = false;
      for (TypeRef arg : t->args) {
        args.push_back(self(self, arg));
        changed |= args.back() != arg;
      }
      if (const Dim *length = t->is(TypeKind::List) ? t->length() : nullptr) {
        Dim mapped = mapLength(*length);
        if (changed || mapped != *length)
          result = list(args.front(), mapped);
      } else if (changed) {
        result = compound(t->kind, std::move(args), t->data);
      }
    }
    done.emplace(t, result);
    return result;
  };
  return visit(visit, type);
}

TypeRef TypeContext::zonk(TypeRef type, bool literals) {
  auto resolveDim = [&](const Dim &dim) { return dims.resolve(dim); };
  return rebuild(
      type,
      [&](TypeRef t) -> TypeRef {
        if (t->is(TypeKind::Variable))
          return t->numeric && literals ? intT : t;
        if (t->is(TypeKind::Tensor) || t->is(TypeKind::Layer))
          return mapDims(t, resolveDim);
        return nullptr;
      },
      resolveDim);
}

bool TypeContext::contains(TypeRef type, TypeKind kind) const {
  type = resolve(type);
  if (type->is(kind))
    return true;
  return std::any_of(type->args.begin(), type->args.end(),
                     [&](TypeRef arg) { return contains(arg, kind); });
}

bool TypeContext::hasVariables(TypeRef type) const { return contains(type, TypeKind::Variable); }
bool TypeContext::isSound(TypeRef type) const { return !contains(type, TypeKind::Error); }

bool TypeContext::isFirstClass(TypeRef type) const {
  return !contains(type, TypeKind::Function) && !contains(type, TypeKind::Layer);
}

bool TypeContext::containsUnknown(TypeRef type) const {
  type = resolve(type);
  if (type->is(TypeKind::Tensor))
    return std::any_of(type->tensor.dims.begin(), type->tensor.dims.end(), isUnknown);
  return std::any_of(type->args.begin(), type->args.end(),
                     [&](TypeRef arg) { return containsUnknown(arg); });
}

bool TypeContext::containsLength(TypeRef type) const {
  type = resolve(type);
  return (type->is(TypeKind::List) && type->length()) ||
         std::any_of(type->args.begin(), type->args.end(),
                     [&](TypeRef arg) { return containsLength(arg); });
}

bool TypeContext::hasOnlyKnownDims(TypeRef type) const {
  type = resolve(type);
  auto known = [&](const Dim &dim) {
    return isUnknown(dim) || dims.value(dims.resolve(dim)).has_value();
  };
  // A length that has no name is not shown, and so not compared.
  bool isShown = !type->is(TypeKind::List) || (type->length() && isNamed(*type->length()));
  return std::all_of(type->tensor.dims.begin(), type->tensor.dims.end(), known) &&
         (!isShown || std::all_of(type->dims.begin(), type->dims.end(), known)) &&
         std::all_of(type->args.begin(), type->args.end(),
                     [&](TypeRef arg) { return hasOnlyKnownDims(arg); });
}

TypeRef TypeContext::mapDims(TypeRef type, const std::function<Dim(const Dim &)> &map) {
  auto leaf = [&](TypeRef t) -> TypeRef {
    if (t->is(TypeKind::Layer)) {
      std::vector<Dim> mapped;
      for (const Dim &dim : t->dims)
        mapped.push_back(map(dim));
      return mapped == t->dims ? t : layerType(t->layer, std::move(mapped));
    }
    if (!t->is(TypeKind::Tensor))
      return nullptr;
    ops::TensorType mapped = t->tensor;
    for (Dim &dim : mapped.dims)
      dim = map(dim);
    return mapped == t->tensor ? t : tensor(std::move(mapped));
  };
  return rebuild(type, leaf, map);
}

TypeRef TypeContext::forgetLengths(TypeRef type, bool thatAreFree) {
  if (!containsLength(type))
    return type;
  return rebuild(
      type, [](TypeRef) -> TypeRef { return nullptr; },
      [&](const Dim &length) {
        return thatAreFree && !dims.hasFreeVariables(length) ? length : unknownDim();
      });
}

TypeRef
TypeContext::substitute(TypeRef type, const std::map<TypeRef, TypeRef> &params,
                        const std::function<std::optional<Dim>(const std::string &)> &dimLookup) {
  auto mapDim = [&](const Dim &dim) { return dims.substitute(dim, dimLookup); };
  auto leaf = [&](TypeRef t) -> TypeRef {
    if (t->is(TypeKind::Parameter)) {
      auto it = params.find(t);
      return it == params.end() ? t : it->second;
    }
    return t->is(TypeKind::Tensor) || t->is(TypeKind::Layer) ? mapDims(t, mapDim) : nullptr;
  };
  return rebuild(type, leaf, mapDim);
}

//===----------------------------------------------------------------------===//
// Comparing types
//===----------------------------------------------------------------------===//

bool TypeContext::occurs(TypeRef variable, TypeRef type) const {
  type = resolve(type);
  if (type == variable)
    return true;
  return std::any_of(type->args.begin(), type->args.end(),
                     [&](TypeRef arg) { return occurs(variable, arg); });
}

bool TypeContext::bind(TypeRef variable, TypeRef type) {
  if (variable->numeric && type->is(TypeKind::Variable) && !type->numeric)
    std::swap(variable, type);
  if (variable->numeric && !type->is(TypeKind::Int) && !type->is(TypeKind::Float) &&
      !type->is(TypeKind::Variable))
    return false;
  if (occurs(variable, type) || !isFirstClass(type))
    return false;
  bindings[variable->id] = type;
  bound.push_back(variable->id);
  return true;
}

bool TypeContext::subsumeDim(const Dim &actual, const Dim &expected, bool insideData,
                             Postponed *postponed) {
  if (isUnknown(expected))
    // A data value cannot be converted, so what its static type knows it must go on to know.
    return isUnknown(actual) || !insideData || !dims.value(actual);
  if (isUnknown(actual))
    return false;
  switch (dims.unify(actual, expected)) {
  case DimRelation::Equal:
    return true;
  case DimRelation::Different:
    return false;
  case DimRelation::Undecided:
    if (!postponed)
      return false;
    postponed->emplace_back(actual, expected);
    return true;
  }
  return false;
}

bool TypeContext::subsume(TypeRef actual, TypeRef expected, Postponed *postponed) {
  return subsume(actual, expected, /*insideData=*/false, postponed);
}

bool TypeContext::subsume(TypeRef actual, TypeRef expected, bool insideData, Postponed *postponed) {
  actual = resolve(actual);
  expected = resolve(expected);
  if (actual == expected || actual->is(TypeKind::Error) || expected->is(TypeKind::Error))
    return true;
  if (expected->is(TypeKind::Variable))
    return bind(expected, expected->keepsLengths ? actual : forgetLengths(actual));
  if (actual->is(TypeKind::Variable))
    return bind(actual, expected);
  if (actual->kind != expected->kind || actual->args.size() != expected->args.size())
    return false;
  switch (actual->kind) {
  case TypeKind::Int:
  case TypeKind::Float:
  case TypeKind::Bool:
    return true;
  case TypeKind::Token:
    return actual->name == expected->name;
  case TypeKind::Tensor: {
    const ops::TensorType &a = actual->tensor, &e = expected->tensor;
    if (a.dtype != e.dtype || a.vocab != e.vocab || a.dims.size() != e.dims.size())
      return false;
    for (size_t i = 0; i < a.dims.size(); ++i)
      if (!subsumeDim(a.dims[i], e.dims[i], insideData, postponed))
        return false;
    return true;
  }
  case TypeKind::Layer:
    if (actual->layer != expected->layer)
      return false;
    for (size_t i = 0; i < actual->dims.size(); ++i)
      if (!subsumeDim(actual->dims[i], expected->dims[i], true, postponed))
        return false;
    return true;
  case TypeKind::Data:
    if (actual->data != expected->data)
      return false;
    insideData = true;
    break;
  case TypeKind::Function:
    for (size_t i = 0; i + 1 < actual->args.size(); ++i)
      if (!subsume(expected->args[i], actual->args[i], insideData, postponed))
        return false;
    return subsume(actual->result(), expected->result(), insideData, postponed);
  case TypeKind::List:
    // Lists of one type look alike whatever their length, so inside data it may be forgotten, too.
    if (const Dim *wanted = expected->length())
      if (!actual->length() ||
          !subsumeDim(*actual->length(), *wanted, /*insideData=*/false, postponed))
        return false;
    break;
  case TypeKind::Tuple:
    break;
  default:
    return false;
  }
  for (size_t i = 0; i < actual->args.size(); ++i)
    if (!subsume(actual->args[i], expected->args[i], insideData, postponed))
      return false;
  return true;
}

TypeRef TypeContext::join(TypeRef a, TypeRef b) {
  a = resolve(a);
  b = resolve(b);
  if (a == b || b->is(TypeKind::Error))
    return a;
  if (a->is(TypeKind::Error))
    return b;
  if (a->is(TypeKind::Variable) || b->is(TypeKind::Variable))
    return subsume(a, b) ? resolve(b) : nullptr;
  if (a->kind != b->kind || a->args.size() != b->args.size())
    return nullptr;
  switch (a->kind) {
  case TypeKind::Tensor: {
    ops::TensorType joined = a->tensor;
    const ops::TensorType &other = b->tensor;
    if (joined.dtype != other.dtype || joined.vocab != other.vocab ||
        joined.dims.size() != other.dims.size())
      return nullptr;
    for (size_t i = 0; i < joined.dims.size(); ++i) {
      const Dim &x = joined.dims[i], &y = other.dims[i];
      if (!isUnknown(x) && !isUnknown(y) && dims.unify(x, y) == DimRelation::Equal)
        continue;
      if (dims.value(x) && dims.value(y))
        return nullptr;
      joined.dims[i] = unknownDim();
    }
    return tensor(std::move(joined));
  }
  case TypeKind::List: {
    TypeRef element = join(a->element(), b->element());
    if (!element)
      return nullptr;
    bool isOneLength =
        a->length() && b->length() && dims.unify(*a->length(), *b->length()) == DimRelation::Equal;
    return list(element, isOneLength ? std::optional(*a->length()) : std::nullopt);
  }
  case TypeKind::Tuple: {
    std::vector<TypeRef> args;
    for (size_t i = 0; i < a->args.size(); ++i) {
      TypeRef joined = join(a->args[i], b->args[i]);
      if (!joined)
        return nullptr;
      args.push_back(joined);
    }
    return compound(a->kind, std::move(args));
  }
  default:
    return subsume(a, b) ? b : subsume(b, a) ? a : nullptr;
  }
}

TypeRef TypeContext::widen(TypeRef start, TypeRef next,
                           const std::function<bool(const Dim &, const Dim &)> &opens,
                           const std::function<TypeRef(TypeRef)> &fill) {
  start = resolve(start);
  next = resolve(next);
  if (start->is(TypeKind::Variable) && !start->numeric)
    return fill(next);
  if (start->kind != next->kind || start->args.size() != next->args.size())
    return join(start, next);
  switch (start->kind) {
  case TypeKind::Tensor: {
    ops::TensorType widened = start->tensor;
    const ops::TensorType &other = next->tensor;
    if (widened.dtype != other.dtype || widened.vocab != other.vocab ||
        widened.dims.size() != other.dims.size())
      return nullptr;
    for (size_t i = 0; i < widened.dims.size(); ++i)
      if (opens(widened.dims[i], other.dims[i]))
        widened.dims[i] = unknownDim();
    return tensor(std::move(widened));
  }
  case TypeKind::List:
  case TypeKind::Tuple: {
    std::vector<TypeRef> args;
    for (size_t i = 0; i < start->args.size(); ++i) {
      args.push_back(widen(start->args[i], next->args[i], opens, fill));
      if (!args.back())
        return nullptr;
    }
    return start->is(TypeKind::List) ? list(args.front()) : tuple(std::move(args));
  }
  default:
    return join(start, next);
  }
}

void TypeContext::unbindSince(BoundMark mark) {
  for (size_t i = mark.types; i < bound.size(); ++i)
    bindings[bound[i]] = nullptr;
  bound.resize(mark.types);
  dims.unbindSince(mark.dims);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string TypeContext::print(TypeRef type,
                               const std::function<std::string(const Dim &)> &printDim) const {
  auto printTensorWith = [&](const ops::TensorType &tensor) {
    std::string text;
    if (tensor.vocab)
      text = tensor.vocab->empty() ? "token" : "token<" + *tensor.vocab + ">";
    else
      text = ops::dtypeName(tensor.dtype);
    if (tensor.dims.empty() && !tensor.vocab && tensor.dtype != ops::DType::Bool)
      return text;
    text += "[";
    for (size_t i = 0; i < tensor.dims.size(); ++i)
      text += (i ? ", " : "") + printDim(tensor.dims[i]);
    return text + "]";
  };
  // A type may share its parts so often that writing it out would never end.
  constexpr size_t longest = 400;
  std::string out;
  auto visit = [&](auto &&self, TypeRef t) -> void {
    t = resolve(t);
    if (out.size() > longest) {
      if (!out.ends_with("..."))
        out += "...";
      return;
    }
    auto sequence = [&](size_t count) {
      for (size_t i = 0; i < count; ++i) {
        if (i)
          out += ", ";
        self(self, t->args[i]);
      }
    };
    switch (t->kind) {
    case TypeKind::Error:
      out += "<error>";
      return;
    case TypeKind::Int:
      out += "int";
      return;
    case TypeKind::Float:
      out += "float";
      return;
    case TypeKind::Bool:
      out += "bool";
      return;
    case TypeKind::Token:
      out += t->name.empty() ? "token" : "token<" + t->name + ">";
      return;
    case TypeKind::Tensor:
      out += printTensorWith(t->tensor);
      return;
    case TypeKind::Tuple:
      out += "(";
      sequence(t->args.size());
      out += ")";
      return;
    case TypeKind::List:
      out += "list<";
      self(self, t->element());
      out += ">";
      if (t->length() && isNamed(*t->length()))
        out += "[" + printDim(*t->length()) + "]";
      return;
    case TypeKind::Data:
      out += t->data->name;
      if (!t->args.empty()) {
        out += "<";
        sequence(t->args.size());
        out += ">";
      }
      return;
    case TypeKind::Function:
      out += "(";
      sequence(t->paramCount());
      out += ") -> ";
      self(self, t->result());
      return;
    case TypeKind::Layer:
      out += t->layer->name + "(";
      for (size_t i = 0; i < t->dims.size(); ++i)
        out += (i ? ", " : "") + printDim(t->dims[i]);
      out += ")";
      return;
    case TypeKind::Variable:
      out += t->numeric ? "int" : "_";
      return;
    case TypeKind::Parameter:
      out += t->name;
      return;
    }
  };
  visit(visit, type);
  return out;
}

bool TypeContext::isNamed(const Dim &dim) const {
  return dims.print(dim).find('?') == std::string::npos;
}

std::string TypeContext::print(TypeRef type) const {
  return print(type, [&](const Dim &dim) { return dims.print(dim); });
}

std::string TypeContext::printTensor(const ops::TensorType &tensor) const {
  Type type;
  type.kind = TypeKind::Tensor;
  type.tensor = tensor;
  return print(&type);
}

std::string TypeContext::printValues(TypeRef type) const {
  std::string text = print(type, [&](const Dim &dim) {
    if (isUnknown(dim))
      return std::string("?");
    if (std::optional<int64_t> value = dims.value(dims.resolve(dim)))
      return std::to_string(*value);
    return dims.print(dim);
  });
  return text == print(type) ? std::string() : text;
}

} // namespace sheaf

//===- CheckerExtents.cpp - Extents of values -----------------------------===//

#include "compiler/frontend/CheckerExtents.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

TypeRef ExtentRules::open(TypeRef type, std::vector<typed::OpenedDim> &openedDims) {
  std::vector<unsigned> path;
  std::map<std::string, Dim> tied;
  return open(type, openedDims, path, tied);
}

/// `path`: of the fields of tuples around it. `tied`: what stands for those that are tied.
TypeRef ExtentRules::open(TypeRef type, std::vector<typed::OpenedDim> &openedDims,
                          std::vector<unsigned> &path, std::map<std::string, Dim> &tied) {
  type = types.resolve(type);
  if (type->is(TypeKind::Tensor)) {
    ops::TensorType tensor = type->tensor;
    bool changed = false;
    for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
      if (!isUnknown(tensor.dims[axis]))
        continue;
      changed = true;
      Dim fresh = Dim::fresh();
      if (isTied(tensor.dims[axis])) {
        auto [it, isFirst] = tied.try_emplace(*tensor.dims[axis].asSymbol(), fresh);
        tensor.dims[axis] = it->second;
        if (!isFirst)
          continue;
      } else {
        tensor.dims[axis] = fresh;
      }
      std::string symbol = *tensor.dims[axis].asSymbol();
      context->opened.push_back(symbol);
      openedDims.push_back({symbol, path, static_cast<unsigned>(axis)});
    }
    return changed ? types.tensor(std::move(tensor)) : type;
  }
  // A list of layers is known with its layers.
  if (type->is(TypeKind::List) && !type->length() && !types.contains(type, TypeKind::Layer)) {
    Dim length = Dim::fresh();
    context->opened.push_back(*length.asSymbol());
    openedDims.push_back({*length.asSymbol(), path, 0});
    return types.list(type->element(), length);
  }
  if (type->is(TypeKind::Tuple)) {
    bool changed = false;
    std::vector<TypeRef> fields;
    for (size_t i = 0; i < type->args.size(); ++i) {
      path.push_back(static_cast<unsigned>(i));
      fields.push_back(open(type->args[i], openedDims, path, tied));
      path.pop_back();
      changed |= fields.back() != types.resolve(type->args[i]);
    }
    return changed ? types.tuple(std::move(fields)) : type;
  }
  return type;
}

ExtentRules::E ExtentRules::opened(E value) {
  std::vector<typed::OpenedDim> openedDims;
  TypeRef type = open(value->type, openedDims);
  if (openedDims.empty())
    return value;
  for (const typed::OpenedDim &dim : openedDims)
    state.openedAt.emplace(dim.symbol, value->range);
  auto *result = make<typed::OpenExpr>(value->range, type);
  result->inner = value;
  result->opened = std::move(openedDims);
  return result;
}

TypeRef ExtentRules::close(TypeRef type, size_t mark, bool ties) {
  if (mark >= context->opened.size())
    return type;
  std::set<std::string> local(context->opened.begin() + static_cast<ptrdiff_t>(mark),
                              context->opened.end());
  auto mentions = [&](auto &&self, const Dim &dim) -> bool {
    for (const std::string &symbol : dims.resolve(dim).symbols()) {
      if (local.contains(symbol))
        return true;
      if (auto it = dims.quotients().find(symbol); it != dims.quotients().end()) {
        DimContext::Quotient quotient = it->second;
        if (self(self, quotient.numerator) || self(self, quotient.denominator))
          return true;
      }
    }
    return false;
  };
  TypeRef closed = types.mapDims(
      type, [&](const Dim &dim) { return mentions(mentions, dim) ? unknownDim() : dim; });
  return ties ? tieExtents(closed, labelsOf(type)) : closed;
}

TypeRef ExtentRules::mapExtents(TypeRef type, const std::function<Dim(const Dim &)> &map) {
  type = types.resolve(type);
  if (type->is(TypeKind::Tensor)) {
    ops::TensorType tensor = type->tensor;
    for (Dim &dim : tensor.dims)
      dim = map(dim);
    return types.tensor(std::move(tensor));
  }
  if (!type->is(TypeKind::Tuple))
    return type;
  std::vector<TypeRef> fields;
  for (TypeRef field : type->args)
    fields.push_back(mapExtents(field, map));
  return types.tuple(std::move(fields));
}

std::vector<size_t> ExtentRules::labelsOf(TypeRef type) {
  std::vector<Dim> extents;
  std::vector<size_t> labels;
  mapExtents(type, [&](const Dim &dim) {
    Dim extent = isUnknown(dim) ? dim : dims.resolve(dim);
    size_t label = extents.size();
    for (size_t i = 0; i < extents.size() && label == extents.size(); ++i)
      if (isUnknown(extent) || isUnknown(extents[i]) ? isTied(extent) && extent == extents[i]
                                                     : dims.same(extent, extents[i]))
        label = i;
    extents.push_back(extent);
    labels.push_back(label);
    return dim;
  });
  return labels;
}

TypeRef ExtentRules::tieExtents(TypeRef type, const std::vector<size_t> &labels) {
  std::map<size_t, size_t> counts; // by label, of extents that are `?`
  size_t place = 0;
  mapExtents(type, [&](const Dim &dim) {
    if (place < labels.size() && isUnknown(dim))
      ++counts[labels[place]];
    ++place;
    return dim;
  });
  bool fits = place == labels.size();
  place = 0;
  return mapExtents(type, [&](const Dim &dim) {
    size_t label = fits ? labels[place++] : 0;
    if (!isUnknown(dim))
      return dim;
    return fits && counts[label] > 1 ? tiedDim(label) : unknownDim();
  });
}

TypeRef ExtentRules::mergeAnnotation(TypeRef annotation, TypeRef actual) {
  annotation = types.resolve(annotation);
  actual = types.resolve(actual);
  if (annotation->is(TypeKind::Tensor) && actual->is(TypeKind::Tensor) &&
      annotation->tensor.dims.size() == actual->tensor.dims.size()) {
    ops::TensorType merged = annotation->tensor;
    for (size_t i = 0; i < merged.dims.size(); ++i)
      merged.dims[i] =
          isUnknown(merged.dims[i]) ? actual->tensor.dims[i] : dims.resolve(merged.dims[i]);
    return types.tensor(std::move(merged));
  }
  if (annotation->is(TypeKind::List) && actual->is(TypeKind::List)) {
    const Dim *written = annotation->length(), *known = actual->length();
    if (!written && !known)
      return annotation;
    return types.list(annotation->element(), written ? dims.resolve(*written) : *known);
  }
  if (annotation->is(TypeKind::Tuple) && actual->is(TypeKind::Tuple) &&
      annotation->args.size() == actual->args.size()) {
    std::vector<TypeRef> fields;
    for (size_t i = 0; i < annotation->args.size(); ++i)
      fields.push_back(mergeAnnotation(annotation->args[i], actual->args[i]));
    return types.tuple(std::move(fields));
  }
  return annotation;
}

std::optional<Dim> ExtentRules::lengthOf(const typed::Expr &list) const {
  TypeRef type = types.resolve(list.type);
  const Dim *length = type->is(TypeKind::List) ? type->length() : nullptr;
  return length ? std::optional(*length) : std::nullopt;
}

TypeRef ExtentRules::withLengthsOfBoth(TypeRef element, TypeRef added) {
  if (!types.containsLength(element))
    return element;
  TypeRef joined = types.join(element, added);
  return joined ? joined : types.forgetLengths(element);
}

std::optional<Dim> ExtentRules::plus(const std::optional<Dim> &a, const std::optional<Dim> &b) {
  if (!a || !b)
    return std::nullopt;
  Dim sum = *a + *b;
  // Beyond 64 bits it is a symbol that nothing gives a value.
  bool isSum = !sum.isFresh() || sum == *a || sum == *b;
  return isSum ? std::optional(std::move(sum)) : std::nullopt;
}

std::optional<Dim> ExtentRules::unroundedDim(const typed::Expr &expr) {
  std::optional<Dim> dim = toDim(expr);
  if (!dim)
    return std::nullopt;
  // A quotient of ints is rounded, one of extents must be exact: not the same thing.
  std::vector<std::string> symbols = dim->symbols();
  bool isRounded = std::any_of(symbols.begin(), symbols.end(), [&](const std::string &symbol) {
    return dims.quotients().contains(symbol);
  });
  return isRounded ? std::nullopt : dim;
}

const typed::ScalarExpr *ExtentRules::inexactQuotient(const typed::Expr &expr) {
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar)
    return nullptr;
  if (scalar->op == typed::ScalarOp::Div) {
    std::optional<Dim> a = toDim(*scalar->operands[0]), b = toDim(*scalar->operands[1]);
    std::optional<int64_t> x = a ? dims.value(*a) : std::nullopt;
    std::optional<int64_t> y = b ? dims.value(*b) : std::nullopt;
    if (x && y && *y != 0 && *y != -1 && *x % *y != 0)
      return scalar;
  }
  for (const typed::Expr *operand : scalar->operands)
    if (const typed::ScalarExpr *found = inexactQuotient(*operand))
      return found;
  return nullptr;
}

std::optional<Dim> ExtentRules::toDim(const typed::Expr &expr) {
  if (const auto *number = expr.as<typed::NumberExpr>()) {
    TypeRef type = types.resolve(number->type);
    if (type->is(TypeKind::Int) || type->is(TypeKind::Variable))
      return Dim(number->integer);
    return std::nullopt;
  }
  if (const auto *dim = expr.as<typed::DimValueExpr>())
    return dim->dim;
  if (const auto *local = expr.as<typed::LocalExpr>()) {
    if (local->variable->dim)
      return *local->variable->dim;
    TypeRef type = types.resolve(local->type);
    if (!local->variable->dimSymbol.empty() && type->is(TypeKind::Int))
      return Dim::symbol(local->variable->dimSymbol);
    return std::nullopt;
  }
  if (const auto *builtin = expr.as<typed::BuiltinExpr>();
      builtin && builtin->builtin == typed::Builtin::Len) {
    // Of a list that is not there yet nothing can ask.
    const typed::Expr &list = *builtin->args[0];
    return list.is(typed::ExprKind::Local) ? lengthOf(list) : std::nullopt;
  }
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar || scalar->operands.size() > 2)
    return std::nullopt;
  std::vector<Dim> operands;
  for (const typed::Expr *operand : scalar->operands) {
    std::optional<Dim> dim = toDim(*operand);
    if (!dim)
      return std::nullopt;
    operands.push_back(std::move(*dim));
  }
  std::optional<Dim> result;
  switch (scalar->op) {
  case typed::ScalarOp::Neg:
    result = Dim(0) - operands[0];
    break;
  case typed::ScalarOp::Add:
    result = operands[0] + operands[1];
    break;
  case typed::ScalarOp::Sub:
    result = operands[0] - operands[1];
    break;
  case typed::ScalarOp::Mul:
    result = operands[0] * operands[1];
    break;
  case typed::ScalarOp::Div:
    result = dims.divide(operands[0], operands[1]);
    break;
  case typed::ScalarOp::Mod:
    result = dims.remainder(operands[0], operands[1]);
    break;
  case typed::ScalarOp::FloorDiv:
  case typed::ScalarOp::FloorMod: {
    // Rounded, so no extent unless it is a number or comes out even whatever the numbers are.
    bool isDiv = scalar->op == typed::ScalarOp::FloorDiv;
    std::optional<int64_t> x = dims.value(operands[0]), y = dims.value(operands[1]);
    if (x && y && *y != 0)
      result = Dim(isDiv ? floorQuotient(*x, *y) : floorRemainder(*x, *y));
    else if (isDiv)
      result = dims.exactQuotient(operands[0], operands[1]);
    break;
  }
  default:
    return std::nullopt;
  }
  if (result && result->str().size() > 2000)
    return std::nullopt;
  return result;
}

} // namespace sheaf

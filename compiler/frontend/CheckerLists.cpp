//===- CheckerLists.cpp - Checking functions of lists ---------------------===//

#include "compiler/frontend/CheckerLists.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

void ListCalls::addTo(BuiltinTable &table) {
  table["zip"] = rule(*this, &ListCalls::zip);
  table["zip_shortest"] = rule(*this, &ListCalls::zipShortest);
  table["range"] = rule(*this, &ListCalls::range);
  table["enumerate"] = rule(*this, &ListCalls::enumerate);
  table["reverse"] = rule(*this, &ListCalls::reverse);
  table["len"] = rule(*this, &ListCalls::len);
  table["shape"] = rule(*this, &ListCalls::shape);
  table["append"] = rule(*this, &ListCalls::append);
  table["concat"] = rule(*this, &ListCalls::concat);
  table["rows"] = rule(*this, &ListCalls::rows);
}

std::optional<ListCalls::Zipped> ListCalls::zipped(const std::vector<Arg> &args,
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

ListCalls::E ListCalls::zipShortest(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::zip(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::range(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::enumerate(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::reverse(std::vector<Arg> args, SourceRange range, TypeRef hint) {
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
ListCalls::E ListCalls::extentOf(E value, size_t axis, SourceRange range) {
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

ListCalls::E ListCalls::len(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::shape(std::vector<Arg> args, SourceRange range, TypeRef) {
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

ListCalls::E ListCalls::append(std::vector<Arg> args, SourceRange range, TypeRef hint) {
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

ListCalls::E ListCalls::concat(std::vector<Arg> args, SourceRange range, TypeRef hint) {
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

ListCalls::E ListCalls::rows(std::vector<Arg> args, SourceRange range, TypeRef) {
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

} // namespace sheaf

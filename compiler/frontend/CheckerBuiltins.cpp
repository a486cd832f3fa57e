//===- CheckerBuiltins.cpp - Which built-in functions there are -----------===//

#include "compiler/frontend/CheckerBodies.h"

#include <fmt/format.h>

namespace sheaf {

BodyChecker::BodyChecker(CheckerState &state, ExtentRules &extents, TypeConversion &conversion,
                         PatternChecker &patterns, DeclarationChecker &declarations)
    : CheckerPart(state), extents(extents), conversion(conversion), patterns(patterns),
      declarations(declarations), operators(state, extents, patterns, *this),
      lists(state, extents, operators, *this, patterns), hosts(state, extents, operators, *this),
      loops(state, extents, operators, *this, conversion, declarations),
      emissions(state, extents, operators, *this) {
  lists.addTo(builtins);
  hosts.addTo(builtins);
  loops.addTo(builtins);
  emissions.addTo(builtins);
  builtins["einsum"] = [this](const std::vector<Arg> &args, SourceRange range, TypeRef) {
    return operators.einsum(args, range);
  };
}

bool BuiltinCalls::wantArgs(const std::vector<Arg> &args, size_t least, size_t most,
                            const std::string &name, SourceRange range) {
  for (const Arg &arg : args)
    if (arg.name) {
      diags.error(arg.name->range, fmt::format("'{}' has no argument '{}'", name, arg.name->name));
      return false;
    }
  if (args.size() >= least && args.size() <= most)
    return true;
  std::string count = least == most      ? std::to_string(least)
                      : most == SIZE_MAX ? fmt::format("{} or more", least)
                                         : fmt::format("{} or {}", least, most);
  diags.error(range,
              fmt::format("'{}' takes {} argument{}, but {} {} given", name, count,
                          most == 1 ? "" : "s", args.size(), args.size() == 1 ? "is" : "are"));
  return false;
}

/// What to write where a tensor stands for a list.
std::string BodyChecker::listOfTensorHelp(const ops::TensorType &tensor) const {
  if (tensor.dims.size() != 1)
    return tensor.dims.empty() ? "" : "rows(x) is the list of the rows of a tensor";
  std::string extent = dims.print(tensor.dims.front());
  return fmt::format("range({}) is the list of the places of this vector, and x[i] an element",
                     extent.find('?') == std::string::npos ? extent : "n");
}

BodyChecker::E BodyChecker::listArg(const Arg &arg, const std::string &what, bool allowLayers,
                                    TypeRef hint, const std::string &order) {
  if (arg.syntax && arg.syntax->is<LambdaExpr>())
    return fail(arg.range, fmt::format("{} must be a list, but this is a function", what),
                order.empty() ? "the function comes first" : order);
  E list = inferArg(arg, hint);
  TypeRef type = types.resolve(list->type);
  if (type->is(TypeKind::Error))
    return list;
  if (type->is(TypeKind::Variable) && !type->numeric) {
    types.subsume(type, types.list(types.variable()));
    type = types.resolve(type);
  }
  if (!type->is(TypeKind::List)) {
    std::string help = type->is(TypeKind::Tensor) ? listOfTensorHelp(type->tensor) : "";
    // With the arguments in another order, a list stands elsewhere.
    bool isMatrix = type->is(TypeKind::Tensor) && type->tensor.dims.size() >= 2;
    if (!order.empty() && !isMatrix)
      help = order + (help.empty() ? "" : "; " + help);
    return fail(list->range,
                fmt::format("{} must be a list, but this is '{}'", what, types.print(type)), help);
  }
  if (!allowLayers && types.contains(type, TypeKind::Layer))
    return fail(list->range, fmt::format("{} cannot be a list of layers", what));
  return list;
}

//===----------------------------------------------------------------------===//
// What may be taken back
//===----------------------------------------------------------------------===//

size_t BodyChecker::beginTrial() {
  ++trials;
  return edges.size();
}

void BodyChecker::endTrial(size_t begin, bool keep) {
  --trials;
  if (!keep)
    edges.erase(edges.begin() + static_cast<ptrdiff_t>(begin), edges.end());
}

} // namespace sheaf

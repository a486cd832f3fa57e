//===- CheckerState.cpp - Names that are visible, and nodes ---------------===//

#include "compiler/frontend/CheckerState.h"

#include "compiler/frontend/AstPrinter.h"
#include "runtime/model/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sheaf {

std::string CheckerState::written(const Expr &expr) const {
  const SourceFile &source = diags.file();
  return source.isWritten(expr.range.begin) ? std::string(source.slice(expr.range))
                                            : printExpr(expr);
}

const CheckerState::Local *CheckerState::findLocal(const std::string &name) const {
  for (auto it = context->locals.rbegin(); it != context->locals.rend(); ++it)
    if (it->name == name)
      return &*it;
  return nullptr;
}

const CheckerState::Named *CheckerState::findGlobal(const std::string &name) const {
  auto it = fileScope().visible.find(name);
  return it == fileScope().visible.end() ? nullptr : &it->second;
}

std::optional<Dim> CheckerState::findDim(const std::string &name) const {
  if (const Local *local = findLocal(name)) {
    if (const Dim *dim = std::get_if<Dim>(&local->what))
      return *dim;
    return std::nullopt;
  }
  if (context->layer)
    for (const DimParam &dim : context->layer->dims)
      if (dim.name == name)
        return Dim::symbol(dim.symbol);
  if (const Named *named = findGlobal(name))
    if (const DimRef *dim = std::get_if<DimRef>(&named->what))
      return dim->dim;
  return std::nullopt;
}

bool CheckerState::declare(const Identifier &name, Global what) {
  auto [it, inserted] =
      scopes[context->file].declared.try_emplace(name.name, Named{std::move(what), name.range});
  if (!inserted)
    diags.error(name.range, fmt::format("'{}' is already declared", name.name))
        .withNote(it->second.range, "the first declaration is here");
  return inserted;
}

std::string CheckerState::suggest(const std::string &name,
                                  const std::vector<std::string> &candidates) const {
  size_t best = std::min<size_t>(2, (name.size() + 1) / 3);
  const std::string *found = nullptr;
  for (const std::string &candidate : candidates) {
    if (candidate == name)
      continue;
    size_t distance = editDistance(name, candidate, best);
    if (distance <= best && (!found || distance < best)) {
      best = distance;
      found = &candidate;
    }
  }
  return found ? fmt::format("did you mean '{}'?", *found) : std::string();
}

std::string CheckerState::suggestName(const std::string &name,
                                      const std::vector<std::string> &candidates) const {
  for (const auto &[qualifier, named] : fileScope().visible)
    if (const auto *file = std::get_if<FileRef>(&named.what))
      if (findMember(file->number, name) || scopes[file->number].declaredTypes.contains(name))
        return fmt::format("did you mean '{}.{}'?", qualifier, name);
  return suggest(name, candidates);
}

std::vector<std::string> CheckerState::visibleDims() const {
  std::vector<std::string> names;
  for (const Local &local : context->locals)
    if (std::holds_alternative<Dim>(local.what))
      names.push_back(local.name);
  if (context->layer)
    for (const DimParam &dim : context->layer->dims)
      names.push_back(dim.name);
  for (const auto &[name, named] : fileScope().visible)
    if (std::holds_alternative<DimRef>(named.what))
      names.push_back(name);
  return names;
}

std::vector<std::string> CheckerState::visibleTypes() const {
  std::vector<std::string> names = {"int", "float", "token", "list"};
  for (const rt::DTypeInfo &info : rt::kDTypes)
    names.emplace_back(info.name);
  for (const auto &[name, type] : context->typeParams)
    names.push_back(name);
  for (const auto &[name, data] : fileScope().visibleTypes)
    names.push_back(name);
  return names;
}

bool CheckerState::isLayerMember(const std::string &name) const {
  auto isIt = [&](const auto *member) { return member->name == name; };
  const LayerInfo *layer = context->layer;
  return layer && (std::any_of(layer->params.begin(), layer->params.end(), isIt) ||
                   std::any_of(layer->lets.begin(), layer->lets.end(), isIt) ||
                   std::any_of(layer->fns.begin(), layer->fns.end(), isIt) ||
                   std::any_of(layer->dims.begin(), layer->dims.end(),
                               [&](const DimParam &dim) { return dim.name == name; }));
}

std::optional<size_t> CheckerState::qualifier(const std::string &name) const {
  if (findLocal(name) || isLayerMember(name))
    return std::nullopt;
  if (const Named *named = findGlobal(name))
    if (const auto *file = std::get_if<FileRef>(&named->what))
      return file->number;
  return std::nullopt;
}

std::optional<size_t> CheckerState::qualifier(const Expr &base) const {
  const auto *name = base.as<NameExpr>();
  return name ? qualifier(name->name) : std::nullopt;
}

const CheckerState::Named *CheckerState::findMember(size_t file, const std::string &name) const {
  const auto &declared = scopes[file].declared;
  auto it = declared.find(name);
  return it == declared.end() || std::holds_alternative<FileRef>(it->second.what) ? nullptr
                                                                                  : &it->second;
}

const CheckerState::Named *CheckerState::findMember(size_t file, const Identifier &name) {
  if (const Named *named = findMember(file, name.name))
    return named;
  std::vector<std::string> names;
  for (const auto &[other, named] : scopes[file].declared)
    if (!std::holds_alternative<FileRef>(named.what))
      names.push_back(other);
  diags.error(name.range, fmt::format("'{}' declares no '{}'", fileName(file), name.name),
              suggest(name.name, names));
  return nullptr;
}

const CheckerState::Named *CheckerState::findConstant(const std::string &name) const {
  size_t dot = name.find('.');
  if (dot == std::string::npos)
    return findLocal(name) || isLayerMember(name) ? nullptr : findGlobal(name);
  std::optional<size_t> file = qualifier(name.substr(0, dot));
  return file ? findMember(*file, name.substr(dot + 1)) : nullptr;
}

std::optional<double> CheckerState::constantNumber(const std::string &name) {
  const Named *named = findConstant(name);
  std::optional<Dim> dim = findDim(name);
  if (const DimRef *ref = named ? std::get_if<DimRef>(&named->what) : nullptr)
    dim = ref->dim;
  if (dim) {
    std::optional<int64_t> value = dims.value(*dim);
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }
  auto *const *let = named ? std::get_if<LetInfo *>(&named->what) : nullptr;
  constexpr unsigned deepest = 64; // what is made of itself is told of elsewhere
  if (!let || constantDepth == deepest)
    return std::nullopt;
  Context letContext = contextAt((*let)->decl->range);
  Context *outer = std::exchange(context, &letContext);
  ++constantDepth;
  std::optional<double> value = evaluateNumber(
      *(*let)->decl->value, [&](const std::string &inner) { return constantNumber(inner); });
  --constantDepth;
  context = outer;
  return value;
}

bool CheckerState::knownInLayer(const Dim &dim) const {
  if (!context->layer || isUnknown(dim))
    return false;
  for (const std::string &symbol : dims.resolve(dim).symbols()) {
    if (dims.value(Dim::symbol(symbol)))
      continue;
    const std::vector<DimParam> &own = context->layer->dims;
    if (std::any_of(own.begin(), own.end(), [&](auto &param) { return param.symbol == symbol; }))
      continue;
    auto quotient = dims.quotients().find(symbol);
    if (quotient == dims.quotients().end() || !knownInLayer(quotient->second.numerator) ||
        !knownInLayer(quotient->second.denominator))
      return false;
  }
  return true;
}

CheckerState::E CheckerState::fail(SourceRange range, std::string message, std::string help) {
  diags.error(range, std::move(message), std::move(help));
  return error(range);
}

CheckerState::E CheckerState::makeBuiltin(typed::Builtin builtin,
                                          std::vector<const typed::Expr *> args, SourceRange range,
                                          TypeRef type) {
  auto *node = make<typed::BuiltinExpr>(range, type);
  node->builtin = builtin;
  node->args = std::move(args);
  return node;
}

} // namespace sheaf

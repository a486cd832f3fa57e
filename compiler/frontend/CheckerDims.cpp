//===- CheckerDims.cpp - Checking the dims of a program -------------------===//

#include "compiler/frontend/CheckerImpl.h"
#include "compiler/ir/Components.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace sheaf {

namespace {

void forEachName(const Expr &expr, const std::function<void(const std::string &)> &each) {
  if (const auto *name = expr.as<NameExpr>()) {
    each(name->name);
  } else if (const auto *field = expr.as<FieldExpr>()) {
    each(field->field.name); // a dim of another file
  } else if (const auto *unary = expr.as<UnaryExpr>()) {
    forEachName(*unary->operand, each);
  } else if (const auto *binary = expr.as<BinaryExpr>()) {
    forEachName(*binary->lhs, each);
    forEachName(*binary->rhs, each);
  }
}

/// Where a dim without a value may get one.
std::string howToGive(const std::string &dim, const DimDecl &decl) {
  if (!decl.config.empty())
    return fmt::format("'{0}' in the config.json beside the weights gives it; else give --dim "
                       "{1}=256, or a value here after 'else'",
                       decl.config.front().name, dim);
  bool isDefault = dim == "vocab";
  if (!isDefault && !dim.ends_with("_vocab"))
    return fmt::format("give it one here ('dim {0} = 256') or with --dim {0}=256", dim);
  std::string vocabulary = isDefault ? "" : dim.substr(0, dim.size() - 6);
  return fmt::format("it is the size of the vocabulary of '{}' where the entry reads such tokens "
                     "from data; else give --dim {}=20000, or the vocabulary's file: --vocab "
                     "{}words.txt",
                     isDefault ? "token" : fmt::format("token<{}>", vocabulary), dim,
                     isDefault ? "" : vocabulary + "=");
}

} // namespace

void Checker::checkDims() {
  std::vector<const DimDecl *> decls; // of out.dims
  std::map<std::string, unsigned> numbers;
  for (size_t file = 0; file < module.fileCount(); ++file)
    for (const Decl *decl : module.declsOf(file)) {
      const auto *syntax = decl->as<DimDecl>();
      size_t next = decls.size();
      if (!syntax || next >= out.dims.size() || out.dims[next].range != decl->name.range)
        continue;
      numbers.try_emplace(decl->name.name, next);
      decls.push_back(syntax);
      declaredDims.try_emplace(decl->name.name, &out.dims[next]);
    }
  std::vector<std::vector<unsigned>> madeOf(decls.size());
  for (size_t i = 0; i < decls.size(); ++i)
    if (decls[i]->value)
      forEachName(*decls[i]->value, [&](const std::string &name) {
        if (auto it = numbers.find(name); it != numbers.end())
          madeOf[i].push_back(it->second);
      });
  Components components = findComponents(madeOf);
  std::set<unsigned> reported;
  for (size_t i = 0; i < decls.size(); ++i) {
    unsigned component = components.of[i];
    if (!components.cyclic[i] || !reported.insert(component).second)
      continue;
    auto &error = diags.error(
        decls[i]->value->range,
        fmt::format("dim '{}' is made of itself, so nothing tells its value", out.dims[i].name));
    for (unsigned next : madeOf[i])
      if (next != i && components.of[next] == component) {
        error.withNote(out.dims[next].range,
                       fmt::format("by way of dim '{}'", out.dims[next].name));
        break;
      }
  }
  // What a dim is made of comes before it: components are numbered so.
  std::vector<unsigned> order(decls.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    return std::pair(components.of[a], a) < std::pair(components.of[b], b);
  });
  for (unsigned i : order) {
    DeclaredDim &declared = out.dims[i];
    context->file = diags.file().numberOf(declared.range.begin);
    // A wrong value is replaced by 1 so that this mistake makes no further ones.
    declared.value = components.cyclic[i] ? 1 : valueOfDim(declared, *decls[i]);
    if (declared.value)
      dims.setValue(*findDim(declared.name)->asSymbol(), *declared.value);
  }
  context->file = 0;
  std::vector<std::string> names;
  for (const DeclaredDim &dim : out.dims)
    names.push_back(dim.name);
  for (const auto &[name, value] : options.dims)
    if (!declaredDims.contains(name))
      diags.error(
          {}, fmt::format("a value is given for dim '{}', which the file does not declare", name),
          suggest(name, names));
}

/// The value of a dim; 1 when it is wrong. What it is made of has its value.
std::optional<int64_t> Checker::valueOfDim(const DeclaredDim &declared, const DimDecl &decl) {
  constexpr int64_t greatest = (int64_t{1} << 31) - 1;
  auto inRange = [&](int64_t value, SourceRange range) -> int64_t {
    if (value >= 1 && value <= greatest)
      return value;
    diags.error(range, fmt::format("dim '{}' is {}, but a dim is from 1 to {}", declared.name,
                                   value, greatest));
    return 1;
  };
  if (auto given = options.dims.find(declared.name); given != options.dims.end())
    return inRange(given->second, declared.range);
  if (decl.value) {
    TypeScope scope;
    std::optional<Dim> dim = conversion.evaluateDim(*decl.value, scope);
    if (!dim)
      return 1;
    if (std::optional<int64_t> value = dims.value(*dim))
      return inRange(*value, decl.value->range);
    bool hasUnknown = false;
    forEachName(*decl.value, [&](const std::string &name) {
      auto it = declaredDims.find(name);
      hasUnknown |= it != declaredDims.end() && !it->second->value;
    });
    if (hasUnknown)
      return std::nullopt;
    diags.error(decl.value->range, fmt::format("dim '{}' is too large a number: a dim is from 1 "
                                               "to {}",
                                               declared.name, greatest));
    return 1;
  }
  if (!options.requireDimValues)
    return std::nullopt;
  diags.error(declared.range, fmt::format("dim '{}' has no value", declared.name),
              howToGive(declared.name, decl));
  return 1;
}

} // namespace sheaf

//===- CheckerFiles.cpp - What files take from each other -----------------===//

#include "compiler/frontend/CheckerImpl.h"
#include "compiler/ir/Components.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sheaf {

/// How messages and Programs call a data type: by its name, with that of the file before it where
/// another file has declared a type of this name.
std::string Checker::nameOfType(const std::string &name) const {
  auto isTaken = [&](const std::string &wanted) {
    return std::any_of(storage.data.begin(), storage.data.end(),
                       [&](const DataInfo &data) { return data.name == wanted; });
  };
  // Within one file a second type of a name is a mistake, which is reported.
  if (!isTaken(name) || scopes[context->file].declaredTypes.contains(name))
    return name;
  std::string stem = std::filesystem::path(fileName(context->file)).stem().string();
  std::string result = stem + "." + name;
  for (unsigned n = 2; isTaken(result); ++n)
    result = fmt::format("{}{}.{}", stem, n, name);
  return result;
}

bool Checker::linkFiles() {
  for (FileScope &scope : scopes) {
    scope.visible = scope.declared;
    scope.visibleTypes = scope.declaredTypes;
  }
  bool areThere = true;
  for (size_t file = 0; file < scopes.size(); ++file)
    for (const Decl *decl : module.declsOf(file))
      if (const auto *use = decl->as<UseDecl>()) {
        linkUse(file, *use);
        areThere &= use->file.has_value();
      }
  checkFileCycles();
  return areThere;
}

void Checker::clash(const UseDecl &use, const std::string &name, SourceRange first,
                    SourceRange second) {
  diags
      .error(use.pathRange,
             fmt::format("'{}' is declared twice, in '{}' and in '{}'", name,
                         diags.file().fileOf(first.begin).name(), fileName(*use.file)),
             fmt::format("use \"{0}\" as NAME, and what it declares is written NAME.{1}", use.path,
                         name))
      .withNote(first, "the first declaration is here")
      .withNote(second, "the second declaration is here");
}

void Checker::linkUse(size_t file, const UseDecl &use) {
  if (!use.file) {
    // The parser has told of one without a name.
    if (use.pathRange != SourceRange())
      diags.error(use.pathRange, fmt::format("'{}' cannot be used: {}", use.path, use.problem));
    return;
  }
  if (!use.name.name.empty())
    return;
  FileScope &scope = scopes[file];
  const FileScope &used = scopes[*use.file];
  for (const auto &[name, named] : used.declared) {
    if (std::holds_alternative<FileRef>(named.what))
      continue;
    auto [it, inserted] = scope.visible.try_emplace(name, named);
    if (!inserted && it->second.range != named.range)
      return clash(use, name, it->second.range, named.range);
  }
  for (const auto &[name, data] : used.declaredTypes) {
    auto [it, inserted] = scope.visibleTypes.try_emplace(name, data);
    if (!inserted && it->second != data)
      return clash(use, name, it->second->decl->name.range, data->decl->name.range);
  }
}

void Checker::checkFileCycles() {
  std::vector<std::vector<unsigned>> next(scopes.size());
  std::vector<std::vector<const UseDecl *>> uses(scopes.size());
  for (size_t file = 0; file < scopes.size(); ++file)
    for (const Decl *decl : module.declsOf(file))
      if (const auto *use = decl->as<UseDecl>(); use && use->file) {
        next[file].push_back(static_cast<unsigned>(*use->file));
        uses[file].push_back(use);
      }
  Components components = findComponents(next);
  std::set<unsigned> reported;
  for (size_t file = 0; file < scopes.size(); ++file)
    for (const UseDecl *use : uses[file]) {
      unsigned component = components.of[file];
      if (components.of[*use->file] != component || !reported.insert(component).second)
        continue;
      if (*use->file == file) {
        diags.error(use->pathRange, fmt::format("'{}' uses itself", fileName(file)));
        continue;
      }
      // The way back: within the component there is one, and its first step is any that leads on.
      Diagnostic &error = diags.error(
          use->pathRange,
          fmt::format("'{}' and '{}' use each other", fileName(file), fileName(*use->file)),
          "move what both need to a third file");
      std::set<size_t> seen = {file};
      for (size_t at = *use->file; seen.insert(at).second;) {
        for (const UseDecl *step : uses[at])
          if (components.of[*step->file] == component) {
            error.withNote(step->pathRange, fmt::format("by way of '{}'", fileName(at)));
            at = *step->file;
            break;
          }
      }
    }
}

} // namespace sheaf

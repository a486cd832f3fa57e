//===- Library.cpp - Where files that a model uses are --------------------===//
#include "compiler/driver/Library.h"

#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace sheaf::driver {

namespace fs = std::filesystem;

std::string libraryDirectory(const std::string &program) {
  std::error_code failed;
  fs::path directory = fs::canonical(program, failed).parent_path();
  // What is in the build directory, such as tests, may lie deeper than `bin`.
  for (int i = 0; i < 4 && !directory.empty(); ++i, directory = directory.parent_path())
    if (fs::path root = directory / "share/sheaf"; fs::is_directory(root / "lib", failed))
      return root.string();
  return {};
}

namespace {

class Resolver {
public:
  explicit Resolver(const std::string &library) : library_(library) {}
  Resolver(const std::string &model, const std::string &library) : Resolver(library) {
    besideAny_ = true;
    std::error_code failed;
    fs::path path = fs::canonical(model, failed);
    if (!failed)
      names_.emplace(path, model);
    paths_.emplace(model, model);
  }

  UsedFile find(const std::string &used, const std::string &by) {
    if (used.empty())
      return {{}, {}, "a file has a name"};
    auto from = paths_.find(by);
    bool besideIt = besideAny_ || from != paths_.end();
    fs::path beside = (from == paths_.end() ? fs::path(by) : from->second).parent_path();
    fs::path path = besideIt ? (beside / used).lexically_normal() : fs::path(used);
    std::error_code failed;
    if (!besideIt || !fs::exists(path, failed)) {
      fs::path shared = fs::path(library_) / used;
      if (library_.empty() || !fs::exists(shared, failed))
        return {{},
                {},
                fmt::format("there is no file '{}'{}", path.string(),
                            library_.empty()
                                ? ", and no library beside this program"
                                : fmt::format(", nor one in the library, '{}'", library_))};
      path = shared;
    }
    return read(path);
  }

private:
  UsedFile read(const fs::path &path) {
    try {
      io::SourceText text = io::readSource(path.string());
      io::requireEightBit(text);
      if (text.text.find('\0') != std::string::npos)
        return {{}, {}, fmt::format("'{}' has a NUL byte: it is no text", path.string())};
      fs::path whole = fs::canonical(path);
      // One file has one name, by whatever way it is reached.
      auto [it, isNew] = names_.try_emplace(whole, nameOf(path, whole));
      if (isNew)
        paths_.emplace(it->second, path);
      return {it->second, std::move(text.text), {}};
    } catch (const UserError &error) {
      return {{}, {}, error.what()};
    } catch (const fs::filesystem_error &error) {
      return {{}, {}, error.what()};
    }
  }

  std::string nameOf(const fs::path &path, const fs::path &whole) const {
    std::error_code failed;
    fs::path root =
        library_.empty() ? fs::path() : fs::canonical(fs::path(library_) / "lib", failed);
    fs::path inside = whole.lexically_relative(root);
    bool isShared = !root.empty() && !failed && !inside.empty() && *inside.begin() != "..";
    return isShared ? (fs::path(kLibraryPrefix) / "lib" / inside).string() : path.string();
  }

  std::string library_;
  bool besideAny_ = false;                ///< not only beside files that it found
  std::map<fs::path, std::string> names_; ///< by where a file really is
  std::map<std::string, fs::path> paths_; ///< by name
};

} // namespace

static FileResolver asFunction(std::shared_ptr<Resolver> resolver) {
  return [resolver = std::move(resolver)](const std::string &used, const std::string &by) {
    return resolver->find(used, by);
  };
}

FileResolver fileResolver(const std::string &model, const std::string &library) {
  return asFunction(std::make_shared<Resolver>(model, library));
}

FileResolver libraryResolver(const std::string &library) {
  return asFunction(std::make_shared<Resolver>(library));
}

std::vector<OwnFile> ownFiles(const SourceFile &source) {
  std::vector<fs::path> paths;
  std::vector<OwnFile> files;
  for (const SourceText &text : source.files()) {
    if (text.name().starts_with(kLibraryPrefix))
      continue;
    paths.push_back(fs::absolute(text.name()).lexically_normal());
    files.push_back({{}, std::string(text.text())});
  }
  fs::path common = paths.front().parent_path();
  auto isBelow = [&](const fs::path &path) {
    fs::path below = path.lexically_relative(common);
    return !below.empty() && *below.begin() != "..";
  };
  while (!std::all_of(paths.begin(), paths.end(), isBelow))
    common = common.parent_path();
  for (size_t i = 0; i < files.size(); ++i)
    files[i].path = paths[i].lexically_relative(common).string();
  return files;
}

} // namespace sheaf::driver

//===- Libraries.cpp - The vendors' libraries that are there --------------===//
#include "compiler/vendor/Libraries.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <dlfcn.h>

namespace sheaf::vendor {

namespace {

/// A variable of the environment that has a value as long as this object lives.
class Setting {
public:
  Setting(const char *name, const char *value) : name_(name) {
    if (const char *before = std::getenv(name))
      before_ = before;
    setenv(name, value, 1);
  }
  ~Setting() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Setting(const Setting &) = delete;
  Setting &operator=(const Setting &) = delete;

private:
  const char *name_;
  std::optional<std::string> before_;
};

LoadedLibrary load(const KnownLibrary &known) {
  LoadedLibrary library{known, nullptr, {}};
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path file =
      program.parent_path().parent_path() / "lib" / "sheaf" / ("libsheaf_" + known.module + ".so");
  if (!std::filesystem::exists(file, error)) {
    library.problem = "this build of Sheaf is without it";
    return library;
  }
  void *module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    library.problem = std::string("it cannot be loaded: ") + dlerror();
    return library;
  }
  auto table = reinterpret_cast<decltype(&sheaf_library)>(dlsym(module, "sheaf_library"));
  if (table)
    library.table = table();
  if (!library.table)
    library.problem = "its module has no table";
  return library;
}

} // namespace

const std::vector<KnownLibrary> &knownLibraries() {
  static const std::vector<KnownLibrary> known = {
      {"oneDNN", "onednn"}, {"libxsmm", "libxsmm"}, {"OpenBLAS", "openblas"}};
  return known;
}

const std::vector<LoadedLibrary> &loadedLibraries() {
  static const std::vector<LoadedLibrary> loaded = [] {
    // They look at these once, when they are loaded: one thread, for the threads are Sheaf's; and a
    // core that an older OpenBLAS may not know by its number is the newest one that it does.
    Setting threads("OMP_NUM_THREADS", "1"), blasThreads("OPENBLAS_NUM_THREADS", "1");
    std::optional<Setting> core;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vl") && !std::getenv("OPENBLAS_CORETYPE"))
      core.emplace("OPENBLAS_CORETYPE", "SKYLAKEX");
#endif
    std::vector<LoadedLibrary> libraries;
    for (const KnownLibrary &known : knownLibraries())
      libraries.push_back(load(known));
    return libraries;
  }();
  return loaded;
}

} // namespace sheaf::vendor

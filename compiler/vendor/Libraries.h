//===- Libraries.h - The vendors' libraries that are there ------*- C++ -*-===//
//
// Each library has a module of its own, lib/sheaf/libsheaf_NAME.so beside the program's directory,
// which is built where the library is installed and loaded when libraries are first asked for: a
// program that asks for none pays nothing for them. A file of this directory is what a library's
// module is made of.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_VENDOR_LIBRARIES_H
#define SHEAF_COMPILER_VENDOR_LIBRARIES_H

#include "runtime/model/library.h"

#include <string>
#include <string_view>
#include <vector>

namespace sheaf::vendor {

/// A library that Sheaf knows.
struct KnownLibrary {
  std::string name;   ///< oneDNN
  std::string module; ///< onednn: of its file, and of the option that leaves it out
};

/// In the order in which they are asked.
const std::vector<KnownLibrary> &knownLibraries();

struct LoadedLibrary {
  KnownLibrary known;
  const rt::Library *table = nullptr; ///< null: it is not there
  std::string problem;                ///< why it is not
};

/// All that are known, in the same order. The first call loads them, told to run on one thread.
const std::vector<LoadedLibrary> &loadedLibraries();

} // namespace sheaf::vendor

#endif // SHEAF_COMPILER_VENDOR_LIBRARIES_H

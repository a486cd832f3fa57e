//===- Library.h - Where files that a model uses are --------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_LIBRARY_H
#define SHEAF_COMPILER_DRIVER_LIBRARY_H

#include "compiler/frontend/Source.h"

#include <string>
#include <string_view>
#include <vector>

namespace sheaf::driver {

/// Messages call a file of the library so, wherever it is installed: `<sheaf>/lib/lstm.sheaf`.
inline constexpr std::string_view kLibraryPrefix = "<sheaf>/";

/// The directory that has the library of layers, `lib`, beside a program or a shared library: the
/// installed one, or that of the source tree for one of the build directory. Empty: there is none.
std::string libraryDirectory(const std::string &program = "/proc/self/exe");

/// Finds what a model and the files that it uses say: beside the file that says it, then in the
/// library. `model` is the model's own name for messages, a path if it is a file.
FileResolver fileResolver(const std::string &model,
                          const std::string &library = libraryDirectory());
/// Finds files of the library alone.
FileResolver libraryResolver(const std::string &library);

/// A model's own files, the model first: not those of the library.
struct OwnFile {
  std::string path; ///< from the directory that holds all of them
  std::string text;
};
std::vector<OwnFile> ownFiles(const SourceFile &source);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_LIBRARY_H

//===- ParamShapes.h - Shapes of params, and dims that make them *- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_PARAMSHAPES_H
#define SHEAF_COMPILER_DRIVER_PARAMSHAPES_H

#include "compiler/driver/Compiler.h"

namespace sheaf::driver {

using Shapes = std::map<std::string, std::vector<int64_t>>; ///< by param

/// Shapes that the params of a model have; empty where it is not right.
Shapes paramShapes(const SourceFile &source, const CompileOptions &options);

/// Other values of dims with which the params have these shapes; empty where there are none.
std::map<std::string, int64_t> dimsForShapes(const SourceFile &source,
                                             const CompileOptions &options, const Shapes &wanted);

/// The params whose rows belong to the words of a vocabulary, with its name: those whose first
/// extent is the dim that stands for its size.
std::map<std::string, std::string> vocabularyTables(const SourceFile &source,
                                                    const CompileOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_PARAMSHAPES_H

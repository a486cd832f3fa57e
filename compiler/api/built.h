//===- built.h - From what a program built to a source ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_API_BUILT_H
#define SHEAF_COMPILER_API_BUILT_H

#include "compiler/frontend/Source.h"
#include "runtime/compile/built.h"

namespace sheaf::compile::api {

/// Calls a ModelBuilder with the steps. Throws UserError for what that refuses.
SourceFile sourceOf(const Built &built, const FileResolver &resolver);

} // namespace sheaf::compile::api

#endif // SHEAF_COMPILER_API_BUILT_H

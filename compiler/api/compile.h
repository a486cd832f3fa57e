//===- compile.h - What the functions of the library share ------*- C++ -*-===//
#ifndef SHEAF_COMPILER_API_COMPILE_H
#define SHEAF_COMPILER_API_COMPILE_H

#include "compiler/driver/Compiler.h"
#include "runtime/compile/compiler.h"

#include <functional>

namespace sheaf::compile::api {

using UseModel = std::function<void(const driver::CompiledModel &model, const SourceFile &source)>;

/// Compiles what is asked for, fills in findings and vocabularies, and calls `use`. Throws what
/// answering() takes.
void compileModel(const Request &request, Answer &answer, const UseModel &use);

artefact::Description describe(const driver::CompiledModel &model, const Answer &answer);

/// Calls `work`; what it throws becomes the answer's outcome and message.
void answering(Answer &answer, const std::function<void()> &work) noexcept;

/// Compiler::explain.
void explain(const Request &request, const MiniBatch *batch, Answer &answer,
             Explanation &explanation) noexcept;

} // namespace sheaf::compile::api

#endif // SHEAF_COMPILER_API_COMPILE_H

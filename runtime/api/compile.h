//===- compile.h - What functions that compile share ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_COMPILE_H
#define SHEAF_RUNTIME_API_COMPILE_H

#include "runtime/api/handles.h"
#include "runtime/compile/compiler.h"
#include "sheaf/compiler.h"

#include <string>
#include <vector>

struct sheaf_diagnostics {
  std::vector<sheaf::compile::Finding> findings;
  std::string text;
};

namespace sheaf::api {

/// The compiler's library, opened once. A failure is no more than that: the next call tries again.
/// Throws NoCompiler.
const compile::Compiler &compiler(const char *path = nullptr);

/// What the options ask for, but for weights. Throws Invalid.
compile::Request requestOf(const sheaf_compile_options &options);

/// Throws what an answer says, unless it is that the model was compiled; `findings` are its own.
void checkOutcome(const compile::Answer &answer, const std::vector<compile::Finding> &findings);

/// Runs a function of the interface that has findings to tell. `diagnostics` may be null.
template <typename F> sheaf_status guardedTelling(sheaf_diagnostics **diagnostics, F f) noexcept {
  std::unique_ptr<sheaf_diagnostics> told;
  sheaf_status status = guarded([&] {
    told = std::make_unique<sheaf_diagnostics>();
    f(told->findings);
  });
  if (diagnostics) {
    // Without memory for the text there is none.
    if (told)
      try {
        for (const compile::Finding &finding : told->findings)
          told->text += finding.text;
      } catch (const std::bad_alloc &) {
        told->text.clear();
      }
    *diagnostics = told.release();
  }
  return status;
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_COMPILE_H

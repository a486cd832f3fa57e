// A parsed text with all that belongs to it.
#ifndef SHEAF_TESTS_FRONTEND_PARSED_H
#define SHEAF_TESTS_FRONTEND_PARSED_H

#include "compiler/frontend/Parser.h"

#include <string>
#include <utility>

namespace sheaf {

struct Parsed {
  explicit Parsed(std::string text, size_t maxErrors = 20)
      : source("m.sheaf", std::move(text)), diags(source, maxErrors),
        module(parseModule(source, diags)) {}

  SourceFile source;
  Diagnostics diags;
  Module module;
};

} // namespace sheaf

#endif // SHEAF_TESTS_FRONTEND_PARSED_H

//===- parser_fuzz.cpp - Any bytes as a source file -----------------------===//
//
// The parser answers any bytes with a tree and perhaps errors, whose text can be rendered. What it
// accepts prints, and reads back as the same.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Parser.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sheaf::SourceFile source("fuzz.sheaf", std::string(reinterpret_cast<const char *>(data), size));
  sheaf::Diagnostics diagnostics(source);
  sheaf::Module module = sheaf::parseModule(source, diagnostics);
  diagnostics.render();
  if (diagnostics.hasErrors())
    return 0;
  std::string printed = sheaf::printModule(module);
  sheaf::SourceFile again("printed.sheaf", printed);
  sheaf::Diagnostics more(again);
  sheaf::Module second = sheaf::parseModule(again, more);
  if (more.hasErrors() || sheaf::printModule(second) != printed) {
    std::fprintf(stderr, "printed form does not read back:\n%s\n%s\n", printed.c_str(),
                 more.render().c_str());
    std::abort();
  }
  return 0;
}

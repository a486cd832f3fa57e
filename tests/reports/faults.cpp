//===- faults.cpp - A compiler that breaks when it is told ----------------===//
//
// What SHEAF_FAULT asks for, in programs that hold `tanh`: `miscompile` computes sigmoid instead,
// `internal` breaks a promise, `crash` is a segmentation fault. Only in the program sheaf-faulty.
//
//===----------------------------------------------------------------------===//
#include "tools/sheaf/hooks.h"

#include "compiler/ir/Program.h"
#include "runtime/error.h"

#include <csignal>
#include <cstdlib>

namespace sheaf::tool {

namespace {

void breakWhenTold(std::string_view pass, mlir::ModuleOp module) {
  const char *asked = getenv("SHEAF_FAULT");
  if (!asked || pass != "specialise")
    return;
  std::string_view fault = asked;
  module.walk([&](ir::ApplyOp apply) {
    if (apply.getOp() != "tanh")
      return;
    if (fault == "miscompile")
      apply.setOp("sigmoid");
    else if (fault == "internal")
      throw InternalError("a fault that was asked for");
    else if (fault == "crash")
      std::raise(SIGSEGV);
  });
}

const bool installed = (changeOptions = [](driver::CompileOptions &options) {
                         options.afterPass = breakWhenTold;
                       }) != nullptr;

} // namespace

} // namespace sheaf::tool

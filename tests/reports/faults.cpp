//===- faults.cpp - A compiler that breaks when it is told ----------------===//
#include "tests/reports/faults.h"

#include "compiler/ir/Program.h"
#include "runtime/error.h"

#include <cstdlib>

namespace sheaf::tool {

std::function<void(std::string_view, mlir::ModuleOp)> faultOfEnvironment() {
  const char *asked = getenv("SHEAF_FAULT");
  if (!asked)
    return {};
  return [fault = std::string(asked)](std::string_view pass, mlir::ModuleOp module) {
    if (pass != "specialise")
      return;
    module.walk([&](ir::ApplyOp apply) {
      if (apply.getOp() != "tanh")
        return;
      if (fault == "miscompile")
        apply.setOp("sigmoid");
      else if (fault == "internal")
        throw InternalError("a fault that was asked for");
      else if (fault == "crash")
        *static_cast<volatile int *>(nullptr) = 1; // NOLINT
    });
  };
}

} // namespace sheaf::tool

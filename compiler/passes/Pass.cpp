//===- Pass.cpp - Runs a pass ---------------------------------------------===//

#include "compiler/passes/Pass.h"

#include "mlir/IR/Verifier.h"

#include <chrono>

using namespace mlir;

namespace sheaf::passes {

LogicalResult runPass(const PassRecord &pass, ModuleOp module, const std::set<std::string> &without,
                      PassReport &report) {
  report.name = pass.name;
  if (!pass.required && without.contains(report.name)) {
    report.skipped = true;
    return success();
  }
  auto begin = std::chrono::steady_clock::now();
  PassContext context{without, report.remarks};
  LogicalResult result = pass.run(module, context);
  report.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (failed(result))
    return failure();
  if (failed(mlir::verify(module)) || failed(verifyLevel(module, pass.after))) {
    emitError(module.getLoc()) << "after the pass " << pass.name;
    return failure();
  }
  return success();
}

} // namespace sheaf::passes

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

/// Null when nothing of a location is in a file.
static FileLineColLoc fileOf(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

std::string placeOf(Location loc) {
  FileLineColLoc file = fileOf(loc);
  return file ? file.getFilename().str() + ":" + std::to_string(file.getLine()) : "?";
}

int64_t columnOf(Location loc) {
  FileLineColLoc file = fileOf(loc);
  return file ? file.getColumn() : 0;
}

} // namespace sheaf::passes

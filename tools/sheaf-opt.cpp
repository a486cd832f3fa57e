//===- sheaf-opt.cpp - Runs single passes on textual Programs -------------===//
//
// For the tests of passes: reads MLIR text, runs the passes named on the command line in that
// order, and prints the result.
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Program.h"
#include "compiler/ops/Verify.h"
#include "compiler/passes/Pipeline.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sheaf::ops::registerDialects(registry);
  sheaf::passes::registerMlirPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Sheaf: passes over Programs\n", registry));
}

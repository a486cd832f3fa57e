//===- program_test.h - Tests on hand-written Programs ----------*- C++ -*-===//
#ifndef SHEAF_TESTS_ORACLE_PROGRAM_TEST_H
#define SHEAF_TESTS_ORACLE_PROGRAM_TEST_H

#include "compiler/ir/Program.h"
#include "compiler/ops/Verify.h"
#include "compiler/oracle/Oracle.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace sheaf::oracle {

class ProgramTest : public testing::Test {
protected:
  ProgramTest() {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    context_.appendDialectRegistry(registry);
  }

  void parse(const std::string &text) {
    program_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_, "test.sheaf");
    if (!program_ || mlir::failed(mlir::verify(*program_)))
      throw std::runtime_error("the program of this test is not valid");
  }

  /// What Replay calls the places of all reads, in order.
  std::vector<std::string> readPaths() {
    std::vector<std::string> paths;
    program_->walk(
        [&](ir::ReadOp read) { paths.push_back(ir::pathText(ir::pathOf(read.getLoc()))); });
    return paths;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> program_;
  Weights weights_;
};

} // namespace sheaf::oracle

#endif // SHEAF_TESTS_ORACLE_PROGRAM_TEST_H

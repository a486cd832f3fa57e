//===- faults.h - A compiler that breaks when it is told --------*- C++ -*-===//
#ifndef SHEAF_TESTS_REPORTS_FAULTS_H
#define SHEAF_TESTS_REPORTS_FAULTS_H

#include "compiler/driver/Compiler.h"

namespace sheaf::tool {

/// What SHEAF_FAULT asks for, in programs that hold `tanh`: `miscompile` computes sigmoid instead,
/// `internal` breaks a promise, `crash` writes to address 0. Only in the program sheaf-faulty.
std::function<void(std::string_view pass, mlir::ModuleOp module)> faultOfEnvironment();

} // namespace sheaf::tool

#endif // SHEAF_TESTS_REPORTS_FAULTS_H

//===- Compute.h - Operations without control flow --------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_COMPUTE_H
#define SHEAF_COMPILER_ORACLE_COMPUTE_H

#include "compiler/oracle/Code.h"
#include "compiler/oracle/Oracle.h"
#include "runtime/model/error.h"

#include <functional>
#include <optional>
#include <string>

namespace sheaf::oracle {

/// Why an instance cannot go on; becomes a RunError that says where.
struct Failure {
  std::string message;
  RunError::Cause cause = RunError::Cause::Program;
};

/// What operations need beside their operands.
struct Context {
  const ops::Arithmetic &arithmetic;
  Precision precision;
  const Weights &weights;
  const OracleOptions &options; ///< what is told of values
};

/// Lives as long as the program.
const ops::Arithmetic &arithmeticOf(Precision precision);

using Values = llvm::SmallVector<Value, 2>;

/// The results of a step of kind Compute: arithmetic on host values, tuples, data, lists,
/// parameters. Throws Failure, and InternalError for operations that are no part of a Program.
Values compute(const Step &step, llvm::ArrayRef<Value> operands, const Context &context);

/// Arithmetic on host scalars (arith, math); nullopt for other operations.
std::optional<Value> computeScalar(mlir::Operation *op, llvm::ArrayRef<Value> operands);

/// The results of a `sheaf.apply`, by the operator's reference.
Values applyOperator(const Step &step, llvm::ArrayRef<Value> operands, const Context &context);

/// What an operator decides by.
struct Deciding {
  const ops::Decision &rule;
  ops::RefTensors operands;
  ops::Attrs attrs;
  std::vector<TensorPtr> owned; ///< of the operands those that are no tensors of the program
};
/// Of a `sheaf.apply` whose record has a decision.
Deciding decidingOf(const Step &step, llvm::ArrayRef<Value> operands);

/// Ints, tokens and bools as an int.
int64_t toInt(const Value &value);
/// An int as a value of this type: an i1 is a bool, narrow ints wrap.
Value fromInt(int64_t value, mlir::Type type);
/// The element of a tensor as the type of a read: f64, i1 or i64.
Value fromElement(double element, mlir::Type type);

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_COMPUTE_H

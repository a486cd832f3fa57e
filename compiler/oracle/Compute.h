//===- Compute.h - Operations without control flow --------------*- C++ -*-===//
#ifndef SHEAF_ORACLE_COMPUTE_H
#define SHEAF_ORACLE_COMPUTE_H

#include "compiler/oracle/Code.h"
#include "compiler/oracle/Oracle.h"

#include <functional>
#include <optional>
#include <string>

namespace sheaf::oracle {

/// Why an instance cannot go on; becomes a RunError that says where.
struct Failure {
  std::string message;
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

/// Another value for an element of a decision's result.
struct Turn {
  size_t at;
  double value;
};
/// How far each of these is from being decided so (ops::Decision::distance), in units of
/// max(1, greatest |operand|).
std::vector<double> decisionDistances(const Step &step, llvm::ArrayRef<Value> operands,
                                      const ops::RefTensor &result, llvm::ArrayRef<Turn> turns);
void takeDecision(const Step &step, ops::RefTensor &result, Turn turn);

/// Ints, tokens and bools as an int.
int64_t toInt(const Value &value);
/// An int as a value of this type: an i1 is a bool, narrow ints wrap.
Value fromInt(int64_t value, mlir::Type type);

} // namespace sheaf::oracle

#endif // SHEAF_ORACLE_COMPUTE_H

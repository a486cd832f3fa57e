//===- Precedence.h - What is there before what -----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_PRECEDENCE_H
#define SHEAF_COMPILER_PASSES_PRECEDENCE_H

#include "compiler/ir/Program.h"
#include "compiler/passes/Recurrences.h"

namespace sheaf::passes {

/// A product of a row with fewer multiply-adds is not told from what else is summed: a record, with
/// what looks for it, costs about as much time.
constexpr int64_t kLeastProduct = 1024;

/// Of the tensors that meet in an operator, which are there before which. What follows from
/// constants and weights is always there (rank 0); what follows from the rows that tokens name,
/// whenever such a token came before (rank 1); the others when the recursions are so far that they
/// depend on (from rank 2 on, by their number from the outside). At the time of construction,
/// before there are blocks.
class Precedence {
public:
  static constexpr unsigned kShared = 0, kToken = 1, kInstance = 2;

  explicit Precedence(mlir::ModuleOp module);

  /// Of a value where `at` takes it.
  unsigned rank(mlir::Value value, mlir::Operation *at);
  /// Of what an operator makes.
  unsigned rank(mlir::Operation *op);
  /// How many loops there are, in its function, around what a value is made of: outside of the
  /// others it is the same.
  unsigned home(mlir::Value value);
  /// How many loops there are around it.
  static unsigned loopsAround(mlir::Block *block);
  /// Whether the recursion that makes the rank waits for tensors.
  bool reads(mlir::Operation *at, unsigned rank);

  /// Whether it multiplies a row, or a known number of rows, by weights, and is more than a little.
  bool isProduct(mlir::Operation *op) const;
  /// The same, however little it is.
  bool isChain(mlir::Operation *op) const;
  /// Whether it adds tensors of one type, or a vector to each row of a matrix, whose numbers are
  /// not rounded when they are stored.
  static bool isSum(mlir::Operation *op);

private:
  void visit(mlir::Operation *op);
  void visitOperator(ir::ApplyOp apply);
  void findHome(ir::ApplyOp apply);
  void noteIf(bool isToken, mlir::Value value);

  Recurrences recurrences_;
  /// What is the same for all instances; what follows from tokens, and lists of it.
  llvm::DenseSet<mlir::Value> shared_, tokens_;
  /// Of what an operator makes that could stand outside of loops around it.
  llvm::DenseMap<mlir::Value, unsigned> homes_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_PRECEDENCE_H

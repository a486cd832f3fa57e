//===- Code.h - Programs prepared for interpretation ------------*- C++ -*-===//
//
// Each function is numbered once: every SSA value gets a slot of the function's activation, and
// every operation knows which slots hold values that it uses for the last time. Slots are reused,
// so that a million open calls hold little more than what they still need.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ORACLE_CODE_H
#define SHEAF_COMPILER_ORACLE_CODE_H

#include "compiler/ops/Verify.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <memory>

namespace sheaf::oracle {

struct Function;
struct Code;

/// One operation.
struct Step {
  /// What the interpreter itself does; everything else computes results from operands.
  enum class Kind { Compute, Apply, Call, If, Match, Map, Filter, Fold, Scan, Yield, Return };

  Kind kind = Kind::Compute;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<uint32_t, 4> operands;
  llvm::SmallVector<uint32_t, 2> results;
  /// Slots whose values nothing uses after this operation.
  llvm::SmallVector<uint32_t, 4> deaths;
  /// One for each region; null for an empty one (an `scf.if` without else).
  llvm::SmallVector<std::unique_ptr<Code>, 2> regions;

  const ops::Op *record = nullptr; ///< Apply
  ops::ApplyParts parts;           ///< Apply: as its types show it
  Function *callee = nullptr;      ///< Call
  bool isTail = false;             ///< Call: its results are the function's
};

/// A block.
struct Code {
  llvm::SmallVector<uint32_t, 4> args;
  std::deque<Step> steps;
};

struct Function {
  mlir::func::FuncOp op;
  Code body;
  uint32_t slots = 0;
};

/// The functions of a module, prepared when they are first called.
class Functions {
public:
  explicit Functions(mlir::ModuleOp module) : module_(module) {}

  /// Throws InternalError when there is no such function with a body.
  Function &get(llvm::StringRef name);

private:
  mlir::ModuleOp module_;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Function>> functions_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_CODE_H

//===- Vjp.h - Gradient records as functions --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_VJP_H
#define SHEAF_COMPILER_ORACLE_VJP_H

#include "compiler/ir/Program.h"
#include "compiler/oracle/Code.h"

#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <tuple>
#include <vector>

namespace sheaf::oracle {

/// The vector-Jacobian product of an application: a function of its operands, its results and the
/// gradients of those results that have one, as the operator's gradient record says.
struct Vjp {
  const Function *function = nullptr;
  std::vector<unsigned> operands; ///< those that the function's results are the gradients of
};

/// Makes them when they are first asked for.
class Vjps {
public:
  explicit Vjps(mlir::MLIRContext *context);

  /// `arrived`: the results that have a gradient; `wanted`: the operands that one is wanted of.
  /// The application's record must have a rule.
  const Vjp &get(ir::ApplyOp apply, const std::vector<bool> &arrived,
                 const std::vector<bool> &wanted);

private:
  Vjp make(ir::ApplyOp apply, const std::vector<bool> &arrived, const std::vector<bool> &wanted);

  mlir::OwningOpRef<mlir::ModuleOp> module_;
  Functions functions_;
  std::map<std::tuple<mlir::Operation *, std::vector<bool>, std::vector<bool>>, Vjp> made_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_VJP_H

//===- faults.cpp - A compiler that breaks when it is told ----------------===//
//
// What SHEAF_FAULT asks for, in programs that hold `tanh`: `miscompile` computes sigmoid instead,
// `internal` breaks a promise, `crash` is a segmentation fault, `gradient` makes its gradient 1e-5
// too large, `shift=X` adds X to what it gives. `last-k` leaves the last summand out of every
// product. In programs that decide: `decision` takes the least for the greatest in `argmax`,
// `top_k` and `sample`, `comparison` swaps the sides of `>` and `<`, `cast` adds one to what
// becomes an int. Only in the program sheaf-faulty.
//
//===----------------------------------------------------------------------===//
#include "tools/sheaf/hooks.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"
#include "runtime/model/error.h"

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>

namespace sheaf::tool {

namespace {

/// After the rule that is right.
void spoilGradient() {
  auto &record = const_cast<ops::Op &>(*ops::OpTable::get().find("tanh"));
  record.gradient.rule = [right = record.gradient.rule](mlir::ImplicitLocOpBuilder &b,
                                                        const ops::GradientCall &call) {
    std::vector<mlir::Value> gradients = right(b, call);
    for (mlir::Value &gradient : gradients)
      if (gradient)
        gradient =
            ops::applyOne(b, "mul", {gradient, ops::number(b, 1 + 1e-5, ops::dtypeOf(gradient))});
    return gradients;
  };
}

bool decideWrongly(std::string_view fault, ir::ApplyOp apply) {
  llvm::StringRef op = apply.getOp();
  mlir::ImplicitLocOpBuilder builder(apply.getLoc(), apply);
  mlir::Value x = apply.getOperands().empty() ? mlir::Value() : apply->getOperand(0);
  if (fault == "decision" && (op == "argmax" || op == "top_k" || op == "sample")) {
    apply->setOperand(0, ops::applyOne(builder, "neg", x));
  } else if (fault == "comparison" && (op == "gt" || op == "lt")) {
    apply.setOp(op == "gt" ? "lt" : "gt");
  } else if (fault == "cast" && op == "i32" && ops::isFloat(ops::dtypeOf(x))) {
    apply->setOperand(0,
                      ops::applyOne(builder, "add", {x, ops::number(builder, 1, ops::dtypeOf(x))}));
  } else {
    return false;
  }
  return true;
}

/// The last column of the left factor does not count.
void dropLastSummand(ir::ApplyOp apply) {
  mlir::Value left = apply->getOperand(0);
  auto type = mlir::cast<mlir::RankedTensorType>(left.getType());
  mlir::ImplicitLocOpBuilder b(apply.getLoc(), apply);
  mlir::Value places = ops::applyOne(b, "iota", {}, {{"size", type.getShape().back()}});
  mlir::Value last =
      ops::number(b, static_cast<double>(type.getShape().back() - 1), ops::DType::I32);
  mlir::Value counts = ops::applyOne(b, "lt", {places, last});
  mlir::Value zero = ops::number(b, 0, ops::dtypeOf(left));
  apply->setOperand(0, ops::applyOne(b, "where", {counts, left, zero}));
}

/// What is added to results; those who take them take the sum.
void shift(ir::ApplyOp apply, double by) {
  mlir::ImplicitLocOpBuilder b(apply.getLoc(), apply->getContext());
  b.setInsertionPointAfter(apply);
  mlir::Value result = apply->getResult(0);
  mlir::Value amount = ops::number(b, by, ops::dtypeOf(result));
  mlir::Value sum = ops::applyOne(b, "add", {result, amount});
  result.replaceAllUsesExcept(sum, sum.getDefiningOp());
}

void breakWhenTold(std::string_view pass, mlir::ModuleOp module) {
  const char *asked = getenv("SHEAF_FAULT");
  if (!asked || pass != "specialise")
    return;
  std::string_view fault = asked;
  static std::once_flag once;
  if (fault == "gradient")
    std::call_once(once, spoilGradient);
  module.walk([&](ir::ApplyOp apply) {
    if (fault == "last-k" && apply.getOp() == "matmul")
      return dropLastSummand(apply);
    if (decideWrongly(fault, apply) || apply.getOp() != "tanh")
      return;
    if (fault == "miscompile")
      apply.setOp("sigmoid");
    else if (fault.starts_with("shift="))
      shift(apply, std::stod(std::string(fault.substr(6))));
    else if (fault == "internal")
      throw InternalError("a fault that was asked for");
    else if (fault == "crash")
      std::raise(SIGSEGV);
  });
}

const bool installed = (changeOptions = [](driver::CompileOptions &options) {
                         options.afterPass = breakWhenTold;
                       }) != nullptr;

} // namespace

} // namespace sheaf::tool

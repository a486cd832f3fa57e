//===- faults.cpp - A compiler that breaks when it is told ----------------===//
//
// What SHEAF_FAULT asks for, in programs that hold `tanh`: `miscompile` computes sigmoid instead,
// `internal` breaks a promise, `crash` is a segmentation fault, `gradient` makes its gradient 1e-5
// too large; and in programs that hold `argmax`: `decision` finds the least. Only in the program
// sheaf-faulty.
//
//===----------------------------------------------------------------------===//
#include "tools/sheaf/hooks.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Build.h"
#include "runtime/error.h"

#include <csignal>
#include <cstdlib>
#include <mutex>

namespace sheaf::tool {

namespace {

/// Behind the rule that is right.
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

void breakWhenTold(std::string_view pass, mlir::ModuleOp module) {
  const char *asked = getenv("SHEAF_FAULT");
  if (!asked || pass != "specialise")
    return;
  std::string_view fault = asked;
  static std::once_flag once;
  if (fault == "gradient")
    std::call_once(once, spoilGradient);
  module.walk([&](ir::ApplyOp apply) {
    if (apply.getOp() == "argmax" && fault == "decision") {
      mlir::ImplicitLocOpBuilder builder(apply.getLoc(), apply);
      apply->setOperand(0, ops::applyOne(builder, "neg", apply->getOperand(0)));
    }
    if (apply.getOp() != "tanh")
      return;
    if (fault == "miscompile")
      apply.setOp("sigmoid");
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

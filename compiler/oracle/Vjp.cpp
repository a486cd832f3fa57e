//===- Vjp.cpp - Gradient records as functions ----------------------------===//

#include "compiler/oracle/Vjp.h"

#include "compiler/ops/Gradient.h"

#include "mlir/IR/IRMapping.h"

namespace sheaf::oracle {

Vjps::Vjps(mlir::MLIRContext *context)
    : module_(mlir::ModuleOp::create(mlir::UnknownLoc::get(context))), functions_(*module_) {}

const Vjp &Vjps::get(ir::ApplyOp apply, const std::vector<bool> &arrived,
                     const std::vector<bool> &wanted) {
  auto [it, isNew] = made_.try_emplace({apply.getOperation(), arrived, wanted});
  if (isNew)
    it->second = make(apply, arrived, wanted);
  return it->second;
}

Vjp Vjps::make(ir::ApplyOp apply, const std::vector<bool> &arrived,
               const std::vector<bool> &wanted) {
  llvm::SmallVector<mlir::Type> types(apply->getOperandTypes());
  llvm::append_range(types, apply->getResultTypes());
  for (auto [type, has] : llvm::zip(apply->getResultTypes(), arrived))
    if (has)
      types.push_back(type);

  mlir::ImplicitLocOpBuilder b(apply.getLoc(), module_->getBodyRegion());
  std::string name = "vjp" + std::to_string(made_.size());
  auto func = mlir::func::FuncOp::create(b, name, b.getFunctionType(types, {}));
  mlir::Block *body = func.addEntryBlock();
  b.setInsertionPointToEnd(body);
  mlir::IRMapping map;
  auto args = body->getArguments();
  map.map(apply->getOperands(), args.take_front(apply->getNumOperands()));
  auto copy = mlir::cast<ir::ApplyOp>(b.clone(*apply, map));
  auto results = args.drop_front(apply->getNumOperands()).take_front(apply->getNumResults());
  auto given = args.drop_front(apply->getNumOperands() + apply->getNumResults());

  ops::GradientCall call{copy, {}, wanted};
  for (bool has : arrived) {
    call.gradients.push_back(has ? mlir::Value(given.front()) : mlir::Value());
    given = given.drop_front(has);
  }
  const ops::Op *record = ops::OpTable::get().find(std::string_view(apply.getOp()));
  std::vector<mlir::Value> gradients = record->gradient.rule(b, call);

  Vjp vjp;
  llvm::SmallVector<mlir::Value> outputs;
  for (auto [i, gradient] : llvm::enumerate(gradients))
    if (gradient && wanted[i]) {
      vjp.operands.push_back(static_cast<unsigned>(i));
      outputs.push_back(gradient);
    }
  mlir::func::ReturnOp::create(b, outputs);
  func.setFunctionType(b.getFunctionType(types, mlir::ValueRange(outputs).getTypes()));
  // What the rule takes of the results has been computed.
  copy->replaceAllUsesWith(results);
  copy->erase();
  vjp.function = &functions_.get(name);
  return vjp;
}

} // namespace sheaf::oracle

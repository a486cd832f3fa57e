//===- Training.cpp - What only gradients see -----------------------------===//
//
// stop_gradient (x) is x, and constant to gradients. In a program that is not made for training it
// is gone after expansion; else kernels have `detach`, which costs nothing.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Lanes.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"

#include "mlir/IR/BuiltinOps.h"

namespace sheaf::ops {
namespace {

using mlir::Value;

void add(std::vector<Op> &ops, const std::string &name, const std::string &summary, bool internal,
         BatchRule batch) {
  Op op;
  op.name = name;
  op.summary = summary;
  op.params = {{"x", ParamKind::Tensor}};
  op.internal = internal;
  op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
    auto operand = floatTensor(operands, 0, "stop the gradient of");
    if (auto *error = std::get_if<ShapeError>(&operand))
      return ShapeResult(*error);
    return ShapeResult::ok(std::get<TensorType>(operand));
  };
  op.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &,
                    std::span<RefTensor> results) {
    results[0].data = operands[0].data;
    return std::string();
  };
  op.batch = std::move(batch);
  ops.push_back(std::move(op));
}

} // namespace

void addTraining(std::vector<Op> &ops) {
  add(ops, "stop_gradient", "x, through which no gradient goes in training", false,
      expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
        Value x = apply.getOperands()[0];
        bool training = apply->getParentOfType<mlir::ModuleOp>()->hasAttr(kTrainingAttr);
        return {training ? applyOne(b, "detach", x) : x};
      }));
  ops.back().stopsGradient = true;
  add(ops, "detach", "x, constant to gradients", true,
      Elementwise{.emit = [](lanes::Builder &, mlir::ValueRange x) -> Value { return x[0]; },
                  .identity = true});
}

} // namespace sheaf::ops

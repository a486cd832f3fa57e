//===- Folds.cpp - The elements of a list, put together -------------------===//
//
// fold_add, fold_mul, fold_maximum, fold_minimum: internal. `reversed`: the element comes before
// what there is so far, which tells where 0 meets -0. `init` and the elements of `list` have
// one type, whose numbers are not rounded between two steps; the elements are taken from left to
// right, so the bits are those of a fold that applies the operator once for each.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Shape.h"

#include <algorithm>

namespace sheaf::ops {
namespace {

ShapeResult foldShape(std::span<const OperandType> operands) {
  const TensorType *init = operands[0].tensor(), *element = operands[1].tensor();
  if (!init || !operands[1].isList || !element || *init != *element)
    return ShapeResult::fail("cannot fold " + describe(operands[1]) + " from " +
                             describe(operands[0]));
  if (init->dtype == DType::BF16 || init->dtype == DType::F16)
    return ShapeResult::fail("cannot fold " + describe(operands[1]) + " without rounding", 1);
  return ShapeResult::ok(*init);
}

/// `step` once for each element.
std::string foldReference(const Reference &step, const RefTensors &operands, bool reversed,
                          const Arithmetic &arithmetic, RefTensor &result) {
  result.data = operands[0].data;
  for (size_t i = 1; i < operands.size(); ++i) {
    RefTensor before = result;
    std::vector<const RefTensor *> pair{&before, &operands[i]};
    if (reversed)
      std::swap(pair[0], pair[1]);
    std::string error = step(pair, {}, arithmetic, {&result, 1});
    if (!error.empty())
      return error;
  }
  return {};
}

} // namespace

std::string foldOf(std::string_view operation) { return "fold_" + std::string(operation); }

void addFolds(std::vector<Op> &ops) {
  for (const char *name : {"add", "mul", "maximum", "minimum"}) {
    const Op step =
        *std::find_if(ops.begin(), ops.end(), [&](const Op &op) { return op.name == name; });
    Op op;
    op.name = foldOf(name);
    op.summary = "`" + step.name + "` of a tensor and each element of a list, from left to right";
    op.params = {{"init", ParamKind::Tensor},
                 {"list", ParamKind::List},
                 {"reversed", ParamKind::Static, Attr(int64_t(0))}};
    op.shape = [](std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
      return foldShape(operands);
    };
    op.reference = [step = step.reference](const RefTensors &operands, const Attrs &attrs,
                                           const Arithmetic &arithmetic,
                                           std::span<RefTensor> results) {
      return foldReference(step, operands, intAttr(attrs, "reversed", 0) != 0, arithmetic,
                           results[0]);
    };
    op.batch = Fold{std::get<Elementwise>(step.batch).emit};
    op.gradient = {Gradient::Untrained};
    op.internal = true;
    ops.push_back(std::move(op));
  }
}

} // namespace sheaf::ops

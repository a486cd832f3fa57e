//===- OpTable.cpp - All operators ----------------------------------------===//

#include "compiler/ops/Shape.h"

#include <algorithm>

namespace sheaf::ops {

OpTable::OpTable() {
  addActivations(ops_);
  addAttention(ops_);
  addElementwise(ops_);
  addFunctions(ops_);
  addFolds(ops_);
  addCasts(ops_);
  addReductions(ops_);
  addMovement(ops_);
  addIndexing(ops_);
  addSelection(ops_);
  addProducts(ops_);
  addNormalise(ops_);
  addLosses(ops_);
  addPlacement(ops_);
  addScans(ops_);
  addConstants(ops_);
  addRandom(ops_);
  addTraining(ops_);
  addGradients(ops_);
  std::sort(ops_.begin(), ops_.end(), [](const Op &a, const Op &b) { return a.name < b.name; });
}

bool Op::draws() const {
  return std::any_of(params.begin(), params.end(),
                     [](const Param &param) { return param.kind == ParamKind::Key; });
}

const OpTable &OpTable::get() {
  static const OpTable table;
  return table;
}

const Op *OpTable::find(std::string_view name) const {
  auto it = std::lower_bound(ops_.begin(), ops_.end(), name,
                             [](const Op &op, std::string_view key) { return op.name < key; });
  return it != ops_.end() && it->name == name ? &*it : nullptr;
}

Attrs canonicalAttrs(const Op &op, std::span<const OperandType> operands, Attrs attrs) {
  const TensorType *first = operands.empty() ? nullptr : operands[0].tensor();
  int64_t rank = first ? static_cast<int64_t>(first->dims.size()) : 0;
  if (op.axisOfResult)
    ++rank;
  for (const Param &param : op.params) {
    if (param.defaultValue)
      attrs.try_emplace(param.name, *param.defaultValue);
    if (param.kind != ParamKind::Static || !param.name.starts_with("axis"))
      continue;
    auto it = attrs.find(param.name);
    if (it == attrs.end())
      continue;
    if (auto *axis = std::get_if<int64_t>(&it->second); axis && *axis < 0)
      *axis += rank;
  }
  return attrs;
}

} // namespace sheaf::ops

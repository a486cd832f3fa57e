//===- Tape.cpp - What a run computed -------------------------------------===//

#include "compiler/oracle/Tape.h"

#include "compiler/ir/Program.h"

namespace sheaf::oracle {
namespace {

/// Whether results of this operation may have a gradient.
bool passesGradients(const Step &step) {
  if (step.kind == Step::Kind::Apply)
    return step.record->gradient.kind != ops::Gradient::None;
  return mlir::isa<ir::RowsOp>(step.op);
}

} // namespace

bool Tape::isActive(const Value &value) const {
  if (const TensorPtr *tensor = std::get_if<TensorPtr>(&value))
    return active_.contains(tensor->get());
  const CellPtr *list = std::get_if<CellPtr>(&value);
  if (!list || (*list)->kind < Cell::Kind::Empty)
    return false;
  return llvm::any_of(elements(value), [&](const Value &each) { return isActive(each); });
}

void Tape::activate(const Value &value) {
  if (const TensorPtr *tensor = std::get_if<TensorPtr>(&value)) {
    if (ops::isFloat((*tensor)->dtype))
      active_.insert(tensor->get());
    return;
  }
  for (const Value &each : elements(value))
    activate(each);
}

void Tape::note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  if (!passesGradients(step) ||
      llvm::none_of(operands, [&](const Value &each) { return isActive(each); }))
    return;
  for (const Value &result : results)
    activate(result);
  entries.push_back({&step, {operands.begin(), operands.end()}, results});
}

} // namespace sheaf::oracle

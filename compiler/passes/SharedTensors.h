//===- SharedTensors.h - What is the same for every record ------*- C++ -*-===//
#ifndef SHEAF_COMPILER_PASSES_SHAREDTENSORS_H
#define SHEAF_COMPILER_PASSES_SHAREDTENSORS_H

#include "compiler/analysis/OpQueries.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace sheaf::passes {

/// Tells which tensors follow from parameters and constants alone, so that packing or fold-weights
/// makes weights of them.
class SharedTensors {
public:
  /// `folds`: fold-weights makes weights of what is computed.
  explicit SharedTensors(bool folds) : folds_(folds) {}

  bool contains(mlir::Value value) { return kindOf(value) != Own; }
  /// Of constants alone there is nothing to pack.
  bool isOfWeights(mlir::Value value) { return kindOf(value) == OfWeights; }

private:
  enum Kind { Own, OfConstants, OfWeights };

  Kind kindOf(mlir::Value value) {
    llvm::SmallVector<mlir::Value> work{value};
    while (!work.empty()) {
      mlir::Value next = work.back();
      if (known_.contains(next)) {
        work.pop_back();
        continue;
      }
      mlir::Operation *def = next.getDefiningOp();
      if (!isWayThrough(def)) {
        known_[next] = mlir::isa_and_nonnull<ir::ParamRefOp>(def)            ? OfWeights
                       : mlir::isa_and_nonnull<mlir::arith::ConstantOp>(def) ? OfConstants
                                                                             : Own;
        continue;
      }
      size_t before = work.size();
      for (mlir::Value operand : def->getOperands())
        if (!known_.contains(operand))
          work.push_back(operand);
      if (work.size() > before)
        continue;
      Kind kind = OfConstants;
      for (mlir::Value operand : def->getOperands())
        if (Kind each = known_.at(operand); each == Own || kind == Own)
          kind = Own;
        else
          kind = std::max(kind, each);
      known_[next] = kind;
    }
    return known_.at(value);
  }

  /// Operators whose results are shared if their operands are.
  bool isWayThrough(mlir::Operation *def) const {
    return folds_ ? isTensorCode(def) : batchRule<ops::Movement>(def) != nullptr;
  }

  bool folds_;
  llvm::DenseMap<mlir::Value, Kind> known_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_SHAREDTENSORS_H

//===- Tape.h - What a run computed -----------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_TAPE_H
#define SHEAF_COMPILER_ORACLE_TAPE_H

#include "compiler/oracle/Compute.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace sheaf::oracle {

/// The operators that ran whose results depend on parameters, in order. A tensor is known by its
/// address: values share it wherever they carry it, through lists, data, closures and calls.
class Tape {
public:
  struct Entry {
    const Step *step;
    llvm::SmallVector<Value, 4> operands;
    Values results;
  };

  /// `params`: the tensors that gradients are wanted of. They outlive the tape.
  explicit Tape(llvm::DenseSet<const ops::RefTensor *> params) : active_(std::move(params)) {}

  /// Keeps an operator if a gradient may go through it.
  void note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results);

  /// Whether a value is a float tensor that depends on a parameter, or a list with such elements.
  bool isActive(const Value &value) const;

  std::deque<Entry> entries;

private:
  void activate(const Value &value);

  /// Inactive tensors may be gone and their addresses used anew; active ones live in an entry.
  llvm::DenseSet<const ops::RefTensor *> active_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_TAPE_H

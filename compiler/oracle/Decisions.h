//===- Decisions.h - Ints that follow from floats ---------------*- C++ -*-===//
#ifndef SHEAF_ORACLE_DECISIONS_H
#define SHEAF_ORACLE_DECISIONS_H

#include "compiler/oracle/Compute.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace sheaf::oracle {

/// The decisions that operators of a run made (ops::Decision), and what was computed of their
/// results, so that one can be turned around when it is known how another arithmetic decided. It
/// keeps what may still be asked for, as far as there is room (kMostElements); what it has
/// forgotten counts as decided once and for all.
class Decisions {
public:
  /// Before a run.
  void begin(const Weights &weights);
  /// An operator that ran, or `rows`.
  void note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results);

  /// Makes element `at` of a tensor `value`: turns around the one decision that is nearest to it,
  /// and computes anew whatever followed from that, in the tensors where it stands. Returns the
  /// distance of that decision in units of max(1, greatest |operand|). Infinite when there is none;
  /// then nothing changes.
  double change(const ops::RefTensor &tensor, size_t at, double value, const Context &context);
  /// Sets one element and nothing else, of a tensor that the run made of decisions.
  void set(const ops::RefTensor &tensor, size_t at, double value);

private:
  static constexpr size_t kMostElements = size_t(1) << 24;
  static constexpr int kMostTrials = 4096;

  struct Entry {
    const Step *step = nullptr;
    llvm::SmallVector<Value, 4> operands;
    Values results;
    size_t elements = 0; ///< that it holds, weights left out
  };
  /// A decision that would do, of the entry with this number.
  struct Candidate {
    size_t entry;
    Turn turn;
    double distance;
  };

  bool follows(const Value &value) const;
  static bool isHeld(const Entry &entry);
  void forget(Entry &entry);
  void sweep();
  std::vector<size_t> behind(const ops::RefTensor &tensor) const;
  void take(const Candidate &candidate);
  void computeAnew(const Entry &entry, const Context &context);

  std::deque<Entry> entries_;
  /// Results of the entries, which hold them.
  llvm::DenseSet<const ops::RefTensor *> made_;
  llvm::DenseSet<const ops::RefTensor *> weights_;
  size_t elements_ = 0;   ///< of all entries
  size_t nextSweep_ = 64; ///< entries
};

} // namespace sheaf::oracle

#endif // SHEAF_ORACLE_DECISIONS_H

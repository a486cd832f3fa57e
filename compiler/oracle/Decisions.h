//===- Decisions.h - Ints that follow from floats ---------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_DECISIONS_H
#define SHEAF_COMPILER_ORACLE_DECISIONS_H

#include "compiler/oracle/Compute.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <deque>
#include <optional>

namespace sheaf::oracle {

/// The decisions that operators of a run made (ops::Decision), and what was computed of their
/// results, so that they can be turned around when it is known how another arithmetic decided. It
/// keeps what may still be asked for, as far as there is room (kMostElements).
class Decisions {
public:
  /// Before a run.
  void begin(const Weights &weights);
  /// An operator that ran, or `rows`.
  void note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results);

  /// Whether a tensor follows from a decision that is kept.
  bool knows(const ops::RefTensor &tensor) const { return made_.contains(&tensor); }
  /// Computes anew what these follow from and is not yet what turns have made of it: before any
  /// look at them.
  void refresh(llvm::ArrayRef<Value> values, const Context &context);
  /// And everything.
  void refreshAll(const Context &context);

  /// What was turned around to make an element what it is.
  struct Change {
    llvm::SmallVector<uint32_t, 1> turns; ///< for distance()
    bool isComplete = true; ///< false: other ways to make it so were forgotten or not tried
  };
  /// Makes element `at` of an int or bool tensor `value`, and whatever followed, in the tensors
  /// where it stands, what it is then: when it is looked at (refresh). If the tensor is a
  /// decision's result it is that decision which turns around; else decisions that the tensor
  /// follows from through ints and bools alone, the nearest ones: one of them, or several within
  /// `near` of their boundaries. Where there are none, the element is changed as it is, at an
  /// infinite distance. Of a tensor that it does not know nothing changes.
  Change change(const ops::RefTensor &tensor, size_t at, double value, double near,
                const Context &context);
  /// How far the farthest of these decisions is from being what it was made, by what it goes by
  /// now: later turns may have changed that. Infinite if there are none, and when what follows from
  /// turns could not be computed, or not within kMostAnew.
  double distance(llvm::ArrayRef<uint32_t> turns) const;
  /// Whether what follows from turns has been computed as far as was asked for.
  bool isComplete() const { return anew_ <= kMostAnew; }

private:
  static constexpr size_t kMostElements = size_t(1) << 24;
  /// What trials of a run may compute, in elements: some seconds.
  static constexpr size_t kMostTried = size_t(1) << 26;
  /// What may be computed anew after turns of a run, in elements.
  static constexpr size_t kMostAnew = size_t(1) << 28;
  /// Decisions that are not near their boundaries and are tried nevertheless.
  static constexpr size_t kMostFar = 256;

  /// An element of a result that is `value`, whatever is computed.
  struct Held {
    uint32_t turn;
    ops::RefTensor *tensor;
    size_t at;
    double value;
    bool isDecision; ///< else it is just set
  };
  struct Entry {
    uint64_t number = 0;
    const Step *step = nullptr; ///< null: forgotten
    llvm::SmallVector<Value, 4> operands;
    Values results;
    size_t elements = 0; ///< that it holds, weights left out
    std::vector<Held> held;
    std::vector<uint64_t> users; ///< entries that take its results, by number
    bool isStale = false;        ///< something that it takes was turned, or is stale
  };
  /// What a decision of this entry may be instead.
  struct Option {
    size_t entry, at;
    double value, distance;
  };
  /// Tensors and what they held.
  using Saved = std::vector<std::pair<ops::RefTensor *, std::vector<double>>>;

  bool follows(const Value &value) const;
  static bool isHeld(const Entry &entry);
  void forget(Entry &entry);
  void sweep();
  size_t indexOf(uint64_t number) const;
  size_t indexOf(const ops::RefTensor &tensor) const { return indexOf(made_.at(&tensor)); }
  std::vector<size_t> behind(const ops::RefTensor &tensor) const;
  std::vector<Option> optionsOf(llvm::ArrayRef<size_t> slice, double difference, double near);
  void take(const Entry &entry, size_t at, double value);
  static void save(const Entry &entry, Saved &saved);
  static void restore(Saved &saved);
  void computeAnew(Entry &entry, const Context &context);
  void reassert(Entry &entry, bool isTrial);
  bool computeSlice(llvm::ArrayRef<size_t> slice, size_t from, Saved &saved,
                    const Context &context);
  bool tryOption(llvm::ArrayRef<size_t> slice, const Option &option, Saved &saved,
                 const Context &context);
  std::optional<Option> originOf(llvm::ArrayRef<size_t> slice, const ops::RefTensor &tensor,
                                 size_t at, double value, const Context &context);
  std::vector<Option> search(const ops::RefTensor &tensor, size_t at, double value, double near,
                             const Context &context);
  void addAsUser(const Entry &entry);
  void markUsers(size_t from);
  void refreshEntry(size_t index, const Context &context);
  uint32_t hold(Entry &entry, const ops::RefTensor &tensor, size_t at, double value,
                bool isDecision, double distance);

  std::deque<Entry> entries_;
  uint64_t nextNumber_ = 0;
  /// Results of the entries, which hold them, with the entries' numbers.
  llvm::DenseMap<const ops::RefTensor *, uint64_t> made_;
  llvm::DenseSet<const ops::RefTensor *> weights_;
  std::vector<double> distances_; ///< by turn
  size_t elements_ = 0;           ///< of all entries
  size_t nextSweep_ = 64;         ///< entries
  size_t tried_ = 0, anew_ = 0;   ///< elements
  size_t stale_ = 0;              ///< entries
  bool hasFailed_ = false;        ///< to compute what follows from turns
  bool hasForgotten_ = false;     ///< what might have been asked for
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_DECISIONS_H

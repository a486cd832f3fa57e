//===- confusion.h - Which class was taken for which ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_CONFUSION_H
#define SHEAF_RUNTIME_TRAIN_CONFUSION_H

#include "runtime/model/value.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sheaf::rt {

/// Of what belongs to a class, how much was found (recall); of what was taken for it, how much
/// belongs to it (precision); and their harmonic mean. A ratio of nothing is 0.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

/// Counts over all instances.
class Confusion {
public:
  struct Class {
    int64_t number = 0;
    int64_t actual = 0, predicted = 0, right = 0;
    ClassScores scores() const;
  };

  void add(int64_t actual, int64_t predicted, int64_t times = 1);

  int64_t total() const { return total_; }
  double accuracy() const;
  /// Those that occur on either side, by number.
  std::vector<Class> classes() const;
  /// The means over these classes; 0 without any.
  ClassScores macro() const;
  /// Those of one class, which need not occur.
  ClassScores of(int64_t number) const;
  /// How often, by actual and predicted class.
  const std::map<std::pair<int64_t, int64_t>, int64_t> &counts() const { return counts_; }

private:
  std::map<std::pair<int64_t, int64_t>, int64_t> counts_;
  int64_t total_ = 0;
};

/// Whether values of a type are predicted classes and actual ones: a tuple of two equal ones of
/// ints, bools, tokens, tensors or lists of these; or lists of such tuples.
bool isPrediction(const TypeTable &types, uint32_t type);
/// What classes of such a type are: the type of an int, a bool, a token or a tensor.
uint32_t classType(const TypeTable &types, uint32_t type);

/// Counts what a value of such a type holds: (predicted, actual). `tensors` finds tensors, as
/// Session::tensor. Returns why that cannot be: two sides of other lengths.
std::string addPrediction(Confusion &confusion, const TypeTable &types, uint32_t type,
                          const Slot *slots,
                          const std::function<TensorView(uint32_t, const Slot *)> &tensors);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_CONFUSION_H

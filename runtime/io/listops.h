//===- listops.h - Makes ListOps trees --------------------------*- C++ -*-===//
//
// Random expressions over digits as in "ListOps: A Diagnostic Dataset for Latent Tree Learning"
// (Nangia and Bowman, 2018), such as [MAX 2 9 [MIN 4 7 ] 0 ], as binary bracket trees:
//
//     (9 (9 (9 (2 (0 [MAX) (2 2)) (9 9)) ...) (0 ]))
//
// An expression is built from the left: its operator, then one argument after the other, then `]`.
// Labels are 0 to 9:
// - a digit: the digit
// - the node of a whole expression (the one that takes the `]`): the expression's value
// - a node of the operator and its first arguments: the operator's value over these
// - the words of operators and `]`: 0
//
// MAX, MIN; MED: the median, the mean of the two middle ones rounded down; SM: sum modulo 10.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_LISTOPS_H
#define SHEAF_RUNTIME_IO_LISTOPS_H

#include <cstdint>
#include <string>

namespace sheaf::io {

struct ListOpsOptions {
  uint64_t seed = 0;
  int64_t maxDepth = 20; ///< most expressions inside each other; 1 to 1000
  int64_t maxArgs = 5;   ///< arguments of an expression: 2 to maxArgs, each as likely; 2 to 100
  double nested = 0.25;  ///< how often an argument is an expression: 0 to 1
  int64_t maxWords = 100'000;
};

/// Makes trees one by one; the same options give the same trees on every machine. The i-th tree
/// does not depend on how many are made. A tree that reaches `maxWords` words takes only digits
/// from then on.
class ListOps {
public:
  /// Throws UserError when an option is out of its range.
  explicit ListOps(const ListOpsOptions &options);

  /// Appends the next tree and a line break.
  void append(std::string &out);

private:
  uint64_t random();
  uint64_t below(uint64_t n);

  ListOpsOptions options_;
  uint64_t nestedBelow_;
  uint64_t state_;
  uint64_t made_ = 0;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_LISTOPS_H

//===- gradient_sum.h - Gradients of the parts of a step --------*- C++ -*-===//
//
// Their sum is the value of one binary tree: node (l, k) is the sum of parts [k 2^l, (k + 1) 2^l),
// its left half plus its right one, or the left one alone where there are no more parts. So it
// does not matter who makes which of its aligned sub-trees. Only one sum of each size is held at a
// time, as the digits of a binary counter: of W parts at most as many as W has digits.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H
#define SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

#include "runtime/backward/param_gradient.h"
#include "runtime/model/layout.h"
#include "runtime/model/value.h"

#include <bit>
#include <memory>
#include <span>
#include <vector>

namespace sheaf::rt {

class Session;
struct Model;

/// Adds up the gradients of parts that make one step, in their order. They outlive the runs that
/// they come from. An element that a part has no gradient for is 0 in it.
class GradientSum {
public:
  /// On the host, for gradients of several sessions, each on a device of its own.
  explicit GradientSum(const Model &model);
  /// Where a session has its rows, which must outlive it. add() throws OutOfMemory.
  explicit GradientSum(Session &session);
  ~GradientSum();
  GradientSum(const GradientSum &) = delete;

  /// Takes all memory that so many further parts need, before these take what there is. Throws
  /// OutOfMemory.
  void reserve(size_t parts);
  /// Gives back the memory of all that the sum of so many parts does not need. After clear().
  void keepOnly(size_t parts);
  /// The next part.
  void add(std::span<const ParamGradient> gradients);
  /// What is added until close() is one part: its pieces are added one after the other, so that
  /// they take one node more, however many they are.
  void open() { isOpen_ = true; }
  void close();
  /// The sum. What is added after is added to it. Of a device without values on the host
  /// (ParamGradient::data); show() brings them.
  std::span<const ParamGradient> gradients();
  void show();
  /// Begins anew.
  void clear();

private:
  /// A node of the tree: the sum of so many parts as two to `height`.
  struct Node {
    std::vector<ParamGradient> sums;
    std::vector<AlignedBytes> bytes; ///< by parameter; zero where its sum holds nothing
    unsigned height = 0;
  };

  static size_t nodesFor(size_t parts) {
    return parts > 1 ? static_cast<size_t>(std::bit_width(parts - 1)) : 0;
  }
  Node &take();
  void make(Node &node, size_t param);
  void drop(const Node &node);
  void addTo(Node &node, std::span<const ParamGradient> gradients);
  void submit(std::span<const ParamGradient> to, std::span<const ParamGradient> gradients,
              bool adds);
  void join();
  void joinEqual();
  void joinAll();
  void clear(Node &node);

  const Model &model_;
  Session *session_ = nullptr;
  std::vector<std::unique_ptr<Node>> nodes_; ///< the first `used_` are in use; the others are zero
  size_t used_ = 0;
  bool isOpen_ = false, hasPieces_ = false; ///< hasPieces_: the last node is of the open part
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_GRADIENT_SUM_H

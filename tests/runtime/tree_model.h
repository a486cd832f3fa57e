//===- tree_model.h - A model made by hand ----------------------*- C++ -*-===//
//
// What a compiler would make of
//
//   data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
//   fn value(t) = match t { Leaf(w) => embedding[w] + b
//                           Node(l, r) => concat(value(l), value(r)) @ w + b }
//   fn main(t) = (value(t), size(t))
//
// with kernels and host functions written in C++, so that the runtime is tested without a compiler.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TESTS_RUNTIME_TREE_MODEL_H
#define SHEAF_TESTS_RUNTIME_TREE_MODEL_H

#include "runtime/model/model.h"
#include "runtime/session/session.h"

#include <memory>
#include <vector>

// Functions that recurse deeply must not use the sanitizers' own, small, call stacks.
#define UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))

namespace sheaf::rt::test {

constexpr int64_t kVocab = 50;
/// Leaves with these words end their instance with messages 0 and 1.
constexpr int64_t kBadWord = 1000;
constexpr int64_t kWorseWord = 1001;

enum : uint32_t { kTokenType, kTreeType, kTensorType, kIntType, kResultType };
enum : uint32_t { kEmbedding, kW, kB };
enum : uint32_t { kLeafKernel, kNodeKernel };

/// `hidden` 4, 20 or 64 (host functions know their granules by template).
Model makeTreeModel(int64_t hidden);
/// The same, looking every record up before it is made.
void useOnceEntry(Model &model, int64_t hidden);
/// The same, walked by a loop: for chains whose right children are leaves.
void useTailEntry(Model &model, int64_t hidden);

/// Trees with their slots, for a few runs.
class Trees {
public:
  const Slot *leaf(int64_t word);
  const Slot *node(const Slot *left, const Slot *right);
  const Slot *random(uint64_t seed, int leaves);
  /// `nodes` inner nodes, each the left child of the next.
  const Slot *chain(int64_t nodes);
  Instance instance(const Slot *tree);
  std::vector<Instance> randomBatch(int64_t count, uint64_t seed = 1);

private:
  Slot *slots(size_t n);
  std::vector<std::unique_ptr<Slot[]>> blocks_;
  std::vector<std::unique_ptr<Slot>> arguments_;
  size_t left_ = 0;
  Slot *next_ = nullptr;
  int64_t index_ = 0;
};

/// The same numbers in the same order of operations; for shallow trees.
std::vector<float> reference(const Session &session, const Slot *tree);

std::vector<float> valueOf(const Session &session, const Outcome &outcome);

} // namespace sheaf::rt::test

#endif // SHEAF_TESTS_RUNTIME_TREE_MODEL_H

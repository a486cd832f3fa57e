//===- KeepOrRecompute.cpp - What a backward block reads ------------------===//

#include "compiler/passes/KeepOrRecompute.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Build.h"
#include "runtime/model/dtypes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <utility>

using namespace mlir;

namespace sheaf::passes {
namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;
/// What a per-instance extent is taken for, and each further one of a tensor: scores of words with
/// words are more than anything that words have each.
constexpr int64_t kLikelyExtent = 16, kFurtherExtent = 4096;

int64_t unknownExtents(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumDynamicDims() : 0;
}

/// The size of a tensor in memory: rows are padded to 64 bytes.
int64_t bytesOf(Value value, bool isFactor) {
  auto type = cast<RankedTensorType>(value.getType());
  ops::DType dtype = isFactor ? ops::DType::BF16 : ops::dtypeOf(value);
  int64_t bytes = rt::dtypeBytes(static_cast<rt::DType>(dtype)), likely = kLikelyExtent;
  auto multiply = [&](int64_t extent) {
    if (ShapedType::isDynamic(extent))
      extent = std::exchange(likely, kFurtherExtent);
    bytes = bytes > kInfinite / 2 / std::max<int64_t>(extent, 1) ? kInfinite / 2 : bytes * extent;
  };
  if (type.getRank() > 0)
    multiply(type.getShape().back());
  bytes = static_cast<int64_t>(llvm::alignTo(bytes, 64));
  for (int64_t extent : type.getShape().drop_back(type.getRank() > 0))
    multiply(extent);
  return bytes;
}

/// Products and reductions take long, but for products that leave more than they read, and what
/// reduces that to less: the rows of such a tensor are made and used block by block
/// (RowBlocks.cpp), and to read them from memory would take as long.
bool isComputedAgain(Operation *op, llvm::function_ref<bool(Value)> isThere) {
  auto mostUnknown = [](ValueRange values) {
    int64_t most = 0;
    for (Value value : values)
      most = std::max(most, unknownExtents(value));
    return most;
  };
  int64_t read = mostUnknown(op->getOperands()), made = mostUnknown(op->getResults());
  if (batchRule<ops::Product>(op))
    return made > read;
  return !batchRule<ops::Reduction>(op) ||
         (read >= 2 && read > made && !isThere(op->getOperand(0)));
}

/// A flow network with Ford and Fulkerson's algorithm: blocks have tens of values.
class Network {
public:
  int addNode() {
    edges_.emplace_back();
    return static_cast<int>(edges_.size()) - 1;
  }
  void addEdge(int from, int to, int64_t capacity) {
    edges_[from].push_back({to, edges_[to].size(), capacity});
    edges_[to].push_back({from, edges_[from].size() - 1, 0});
  }
  void maximise(int source, int sink) {
    while (augment(source, sink)) {
    }
  }
  /// Which nodes can still send something to the sink.
  std::vector<bool> reach(int sink) const {
    std::vector<bool> seen(edges_.size());
    std::vector<int> work{sink};
    seen[sink] = true;
    while (!work.empty()) {
      int node = work.back();
      work.pop_back();
      for (const Edge &back : edges_[node])
        if (!seen[back.to] && edges_[back.to][back.reverse].capacity > 0) {
          seen[back.to] = true;
          work.push_back(back.to);
        }
    }
    return seen;
  }

private:
  struct Edge {
    int to;
    size_t reverse;
    int64_t capacity;
  };

  bool augment(int source, int sink) {
    std::vector<std::pair<int, size_t>> from(edges_.size(), {-1, 0});
    std::vector<int> work{source};
    from[source] = {source, 0};
    for (size_t next = 0; next < work.size() && from[sink].first < 0; ++next)
      for (size_t i = 0; i < edges_[work[next]].size(); ++i) {
        const Edge &edge = edges_[work[next]][i];
        if (edge.capacity > 0 && from[edge.to].first < 0) {
          from[edge.to] = {work[next], i};
          work.push_back(edge.to);
        }
      }
    if (from[sink].first < 0)
      return false;
    int64_t least = kInfinite;
    for (int node = sink; node != source; node = from[node].first)
      least = std::min(least, edges_[from[node].first][from[node].second].capacity);
    for (int node = sink; node != source; node = from[node].first) {
      Edge &edge = edges_[from[node].first][from[node].second];
      edge.capacity -= least;
      edges_[node][edge.reverse].capacity += least;
    }
    return true;
  }

  std::vector<std::vector<Edge>> edges_;
};

} // namespace

llvm::SetVector<Value> chooseKept(ArrayRef<Operation *> copied,
                                  llvm::function_ref<bool(Value)> isThere,
                                  llvm::function_ref<bool(Value)> isFactor) {
  llvm::SmallPtrSet<Operation *, 32> copies(copied.begin(), copied.end());
  Network network;
  int source = network.addNode(), sink = network.addNode();
  llvm::SetVector<Value> chosen;
  struct Node {
    int in, out;
  };
  llvm::MapVector<Value, Node> nodes;
  SmallVector<Value> work;
  /// The node of a value that has to be computed or kept; none for arguments and what is there.
  auto nodeOf = [&](Value value) -> std::optional<Node> {
    Operation *def = value.getDefiningOp();
    if (!def || !isa<RankedTensorType>(value.getType()))
      return std::nullopt;
    if (isThere(value)) {
      chosen.insert(value);
      return std::nullopt;
    }
    auto [it, isNew] = nodes.try_emplace(value);
    if (isNew) {
      it->second = {network.addNode(), network.addNode()};
      network.addEdge(it->second.in, it->second.out, bytesOf(value, isFactor(value)));
      work.push_back(value);
    }
    return it->second;
  };

  for (Operation *op : copied)
    for (Value value : op->getResults())
      if (llvm::any_of(value.getUsers(), [&](Operation *user) { return !copies.contains(user); }))
        if (std::optional<Node> node = nodeOf(value))
          network.addEdge(node->out, sink, kInfinite);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Node node = nodes.find(value)->second;
    Operation *def = value.getDefiningOp();
    if (!isComputedAgain(def, isThere)) {
      network.addEdge(source, node.in, kInfinite);
      continue;
    }
    for (Value operand : def->getOperands())
      if (std::optional<Node> before = nodeOf(operand))
        network.addEdge(before->out, node.in, kInfinite);
  }
  network.maximise(source, sink);
  std::vector<bool> below = network.reach(sink);
  for (auto &[value, node] : nodes)
    if (!below[node.in] && below[node.out])
      chosen.insert(value);
  return chosen;
}

} // namespace sheaf::passes

//===- ProgramOrder.cpp - What stays in the order of the program ----------===//

#include "compiler/analysis/ProgramOrder.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <queue>

using namespace mlir;

namespace sheaf::passes {

bool isOrdered(Operation *op) {
  return !op->hasTrait<OpTrait::IsTerminator>() && !isMemoryEffectFree(op);
}

SmallVector<Operation *> needsOf(Operation *op) {
  SmallVector<Operation *> needs;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def != op && def->getBlock() == op->getBlock())
        needs.push_back(def);
  });
  return needs;
}

namespace {

/// Between which of the ordered operations everything in a block must run.
class OrderWindows {
public:
  OrderWindows(Block &block, const Guards &guards) {
    for (Operation &op : block) {
      numbers_[&op] = ops_.size();
      ops_.push_back({needsOf(&op), isOrdered(&op) ? ++ordered_ : 0});
      if (Operation *check = guards.lookup(&op))
        ops_.back().needs.push_back(check);
    }
  }

  bool hasOrder() const { return ordered_ > 1; }

  /// Brings the windows up to date with what runs as one.
  void compute(ArrayRef<Group> groups) {
    windows_.assign(ops_.size(), {0, ordered_ + 1});
    for (auto [op, window] : llvm::zip(ops_, windows_))
      if (op.order)
        window = {op.order, op.order};
    bool changed = true;
    auto raise = [&](unsigned &value, unsigned to) {
      changed |= value < to;
      value = std::max(value, to);
    };
    auto lower = [&](unsigned &value, unsigned to) {
      changed |= value > to;
      value = std::min(value, to);
    };
    while (changed) {
      changed = false;
      for (auto [op, window] : llvm::zip(ops_, windows_))
        for (Operation *need : op.needs)
          raise(window.behind, windows_[numbers_.lookup(need)].behind);
      for (auto [op, window] : llvm::reverse(llvm::zip(ops_, windows_)))
        for (Operation *need : op.needs)
          lower(windows_[numbers_.lookup(need)].ahead, window.ahead);
      for (const Group &group : groups) {
        Window all = of(group);
        for (Operation *op : group) {
          raise(windows_[numbers_.lookup(op)].behind, all.behind);
          lower(windows_[numbers_.lookup(op)].ahead, all.ahead);
        }
      }
    }
  }

  struct Window {
    unsigned behind = 0;  ///< the last ordered operation that comes before; 0: none does
    unsigned ahead = ~0u; ///< the first that comes after
    bool isOpen() const { return behind < ahead; }
    Window operator&(Window other) const {
      return {std::max(behind, other.behind), std::min(ahead, other.ahead)};
    }
  };
  Window of(Operation *op) const { return windows_[numbers_.lookup(op)]; }
  Window of(ArrayRef<Operation *> group) const {
    Window all;
    for (Operation *op : group)
      all = all & of(op);
    return all;
  }

private:
  struct Entry {
    SmallVector<Operation *> needs;
    unsigned order; ///< from 1; 0 of what may run anywhere
  };
  std::vector<Entry> ops_; ///< in the order of the program
  std::vector<Window> windows_;
  llvm::DenseMap<Operation *, size_t> numbers_;
  unsigned ordered_ = 0;
};

} // namespace

void cutForOrder(Block &block, std::vector<Group> &groups, const Guards &guards) {
  OrderWindows windows(block, guards);
  if (!windows.hasOrder())
    return;
  auto cannotRun = [&](const Group &group) {
    return group.size() > 1 && !windows.of(group).isOpen();
  };
  for (;;) {
    windows.compute(groups);
    std::vector<bool> cut(groups.size());
    for (auto [i, group] : llvm::enumerate(groups))
      cut[i] = cannotRun(group);
    if (llvm::none_of(cut, [](bool is) { return is; }))
      return;
    windows.compute({}); // of each operator for itself
    std::vector<Group> pieces;
    for (auto [i, group] : llvm::enumerate(groups)) {
      size_t first = pieces.size();
      OrderWindows::Window window;
      for (Operation *op : group) {
        OrderWindows::Window next = window & windows.of(op);
        if (pieces.size() == first || (cut[i] && !next.isOpen())) {
          pieces.emplace_back();
          next = windows.of(op);
        }
        pieces.back().push_back(op);
        window = next;
      }
      // It is other groups that come between its operators.
      if (cut[i] && pieces.size() == first + 1) {
        Group rest(llvm::drop_begin(group, group.size() / 2));
        pieces.back().truncate(group.size() / 2);
        pieces.push_back(std::move(rest));
      }
    }
    groups = std::move(pieces);
  }
}

LogicalResult restoreOrder(Block &block, const Guards &guards) {
  struct Entry {
    Operation *op;
    SmallVector<unsigned> users;
    unsigned missing = 0; ///< what must stand in front of it and does not yet
  };
  std::vector<Entry> entries;
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (Operation &op : block) {
    numbers[&op] = static_cast<unsigned>(entries.size());
    entries.push_back({&op, {}});
  }
  auto comesBehind = [&](unsigned later, unsigned earlier) {
    entries[earlier].users.push_back(later);
    ++entries[later].missing;
  };
  std::optional<unsigned> last; // of those that are ordered
  for (unsigned i = 0; i < entries.size(); ++i) {
    Operation *op = entries[i].op;
    for (Operation *need : needsOf(op))
      comesBehind(i, numbers.lookup(need));
    if (Operation *check = guards.lookup(op))
      comesBehind(i, numbers.lookup(check));
    if (!isOrdered(op))
      continue;
    if (last)
      comesBehind(i, *last);
    last = i;
  }

  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (unsigned i = 0; i < entries.size(); ++i)
    if (entries[i].missing == 0)
      ready.push(i);
  SmallVector<Operation *> order;
  Operation *terminator = block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  while (!ready.empty()) {
    const Entry &entry = entries[ready.top()];
    ready.pop();
    if (entry.op != terminator)
      order.push_back(entry.op);
    for (unsigned user : entry.users)
      if (--entries[user].missing == 0)
        ready.push(user);
  }
  if (order.size() + (terminator != nullptr) != entries.size())
    return failure();
  if (terminator)
    order.push_back(terminator);
  for (Operation *op : order)
    op->moveBefore(&block, block.end());
  return success();
}

} // namespace sheaf::passes

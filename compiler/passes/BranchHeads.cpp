//===- BranchHeads.cpp - Light code at the beginning of an arm ------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/CodeMotion.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Of what runs before a branch, with its record, so much may be in vain even where an arm is taken
/// that saves nothing.
constexpr double kShare = 1.0 / 32;
/// Branches in each other that code leaves at once.
constexpr unsigned kMostBranches = 8;

/// Numbers for values: equal for results of equal operators on equal values.
class Numbering {
public:
  unsigned of(Value value) {
    auto it = numbers_.find(value);
    return it != numbers_.end() ? it->second : numbers_[value] = next_++;
  }
  /// The number of the first result; those of others follow from it.
  unsigned add(Operation *op) {
    Key key{op->getName().getAsOpaquePointer(), {op->getAttrDictionary().getAsOpaquePointer()}, {}};
    for (Type type : op->getResultTypes())
      key.attributes.push_back(type.getAsOpaquePointer());
    for (Value operand : op->getOperands())
      key.operands.push_back(of(operand));
    auto [it, isNew] = known_.try_emplace(std::move(key), next_);
    if (isNew)
      next_ += std::max(op->getNumResults(), 1u);
    for (OpResult result : op->getResults())
      numbers_[result] = it->second + result.getResultNumber();
    return it->second;
  }

private:
  struct Key {
    const void *name;
    std::vector<const void *> attributes;
    std::vector<unsigned> operands;
    auto operator<=>(const Key &) const = default;
  };
  llvm::DenseMap<Value, unsigned> numbers_;
  std::map<Key, unsigned> known_;
  unsigned next_ = 0;
};

} // namespace

void CodeMotion::findRecursions() {
  module_.walk([&](func::CallOp call) {
    auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
    if (!callee || !calls_.isRecursive(callee))
      return;
    for (Region *region = call->getParentRegion(); region; region = region->getParentRegion())
      if (!now_->recursions.insert(region).second)
        break;
  });
}

/// An arm that ends a recursion is taken once, where the others are time and again.
bool CodeMotion::endsRecursion(Region &arm) const {
  return !now_->recursions.contains(&arm) &&
         llvm::any_of(arm.getParentOp()->getRegions(),
                      [&](Region &other) { return now_->recursions.contains(&other); });
}

/// What the group becomes part of before the branch, or branches one in the other.
std::optional<CodeMotion::Head> CodeMotion::findHead(const Group &group, Region &arm,
                                                     unsigned number) {
  Head head{{}, number, nullptr, nullptr};
  if (isTouched(group) || !mayMove(group) || !makersOf(group, arm.front(), head.moved).empty())
    return std::nullopt;
  SmallVector<Value> taken;
  for (Operation *op : group)
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          !maker ||
          (!head.moved.contains(maker) && !llvm::is_contained(head.moved.constants, maker)))
        taken.push_back(operand);
  unsigned left = 0;
  for (Region *from = &arm;
       isa<scf::IfOp, ir::MatchOp>(from->getParentOp()) && left < kMostBranches;
       from = head.branch->getParentRegion(), ++left) {
    if (llvm::any_of(taken, [&](Value value) { return value.getParentRegion() == from; }) ||
        endsRecursion(*from))
      return std::nullopt;
    head.branch = from->getParentOp();
    if (isTouched(head.branch))
      return std::nullopt;
    Block &block = *head.branch->getBlock();
    unsigned level = 0;
    for (Value value : taken)
      if (Operation *maker = value.getDefiningOp(); maker && maker->getBlock() == &block)
        if (const Group *made = now_->groups.of(maker);
            made && (!head.host || now_->groups.level(value, block) > level)) {
          head.host = made;
          level = now_->groups.level(value, block);
        }
    if (!head.host)
      continue;
    if (isTouched(*head.host))
      return std::nullopt;
    if (const char *why = obstacle(group, {}, block, *head.host)) {
      stays(group.front(), namesOf(group) + " stays in its branch: before it, " + why);
      return std::nullopt;
    }
    return head;
  }
  return std::nullopt;
}

/// Whether these heads of a branch, all of one host, may run wherever it does: whichever arm is
/// taken, what the others compute must cost less than the records that this one saves.
bool CodeMotion::pays(ArrayRef<const Head *> heads, Operation *branch) {
  const Group &host = *heads.front()->host;
  Numbering numbers;
  llvm::DenseSet<unsigned> before, all; // what several arms compute is computed once
  for (Operation *op : host)
    before.insert(numbers.add(op));
  struct Arm {
    llvm::DenseSet<unsigned> parts;
    double needed = 0, saved = 0;
  };
  // One more where the branch stands in an arm that is left, too: for others of that.
  std::vector<Arm> arms(branch->getNumRegions());
  double total = 0;
  size_t operators = host.size();
  for (const Head *head : heads) {
    if (head->branch != branch && arms.size() == branch->getNumRegions())
      arms.emplace_back();
    Arm &arm = arms[head->arm];
    arm.saved += kRecordWork;
    operators += head->moved.group.size();
    for (Operation *op : head->moved.constants)
      numbers.add(op);
    for (Operation *op : head->moved.group) {
      unsigned number = numbers.add(op);
      if (before.contains(number))
        continue;
      double work = work_.of(op);
      total += all.insert(number).second ? work : 0;
      arm.needed += arm.parts.insert(number).second ? work : 0;
    }
  }
  double most = std::max(0.0, kShare * (kRecordWork + ownWork(host)) - vainWork(host));
  return operators <= kLongGroup &&
         llvm::all_of(arms, [&](const Arm &arm) { return total - arm.needed <= arm.saved + most; });
}

/// Whether heads take what one of another host took, which then is read by both: their blocks would
/// be one. `note`: these do take it.
bool CodeMotion::joinsHosts(ArrayRef<const Head *> heads, bool note) {
  for (const Head *head : heads)
    for (Operation *op : head->moved.group)
      for (Value operand : op->getOperands()) {
        if (isSharedOperand(operand) || head->moved.contains(operand.getDefiningOp()) ||
            llvm::is_contained(*head->host, operand.getDefiningOp()))
          continue;
        std::pair key(operand, head->branch->getBlock());
        if (note)
          now_->takenFor[key] = head->host;
        else if (const Group *other = now_->takenFor.lookup(key); other && other != head->host)
          return true;
      }
  return false;
}

/// Whether a branch that then records nothing shifts levels after it.
bool CodeMotion::shiftsLevels(ArrayRef<const Head *> heads, Operation *branch) {
  llvm::DenseSet<Operation *> moved;
  for (const Head *head : heads)
    moved.insert(head->moved.group.begin(), head->moved.group.end());
  auto *outermost = *llvm::max_element(
      heads, [](const Head *a, const Head *b) { return b->branch->isProperAncestor(a->branch); });
  for (;; branch = branch->getParentOp()) {
    if (now_->groups.recorders().records(branch, moved))
      return false;
    if (shiftsLevels(*branch->getBlock(), branch, 0))
      return true;
    if (branch == outermost->branch)
      return false;
  }
}

const char *CodeMotion::whyHeadsStay(ArrayRef<const Head *> heads, Operation *branch) {
  const Group &host = *heads.front()->host;
  if (runsOutside(host, host.front()))
    return "the kernel before the branch runs elsewhere, too";
  if (!pays(heads, branch))
    return "it is too much to compute in vain";
  if (joinsHosts(heads, /*note=*/false))
    return "before it, it would make two blocks one";
  if (shiftsLevels(heads, branch))
    return "without it, what follows the branch might be other blocks";
  return nullptr;
}

void CodeMotion::hoist(const Head &head) {
  report(head.moved, head.branch, "of a branch runs before it, whichever is taken");
  // Constants are copied: others in the arm may take them, too.
  for (Operation *op : head.moved.constants) {
    Operation *copy = OpBuilder(head.branch).clone(*op);
    op->replaceUsesWithIf(copy,
                          [&](OpOperand &use) { return head.moved.contains(use.getOwner()); });
  }
  for (Operation *op : head.moved.group)
    op->moveBefore(head.branch);
  guests_.insert(head.moved.group.begin(), head.moved.group.end());
}

bool CodeMotion::hoistHeads(Operation *branch) {
  std::vector<Head> heads;
  for (auto [number, arm] : llvm::enumerate(branch->getRegions()))
    if (!arm.empty())
      for (const Group &group : now_->groups.of(arm.front()).groups)
        if (std::optional<Head> head = findHead(group, arm, static_cast<unsigned>(number)))
          heads.push_back(std::move(*head));
  llvm::MapVector<const Group *, SmallVector<const Head *>> byHost;
  for (const Head &head : heads)
    byHost[head.host].push_back(&head);
  bool changed = false;
  for (auto &[host, some] : byHost) {
    if (const char *why = whyHeadsStay(some, branch)) {
      for (const Head *head : some)
        stays(head->moved.group.front(),
              namesOf(head->moved.group) + " stays in its branch: " + why);
      continue;
    }
    joinsHosts(some, /*note=*/true);
    for (const Head *head : some)
      hoist(*head);
    touch(*host);
    touch(branch);
    changed = true;
  }
  return changed;
}

} // namespace sheaf::passes

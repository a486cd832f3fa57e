//===- Grouping.cpp - Which tensor code becomes one block -----------------===//

#include "compiler/analysis/Grouping.h"
#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/analysis/SplitGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {

Recorders::Recorders(ModuleOp module) : symbols_(module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (bodyRecords(func, {}))
      recording_.insert(func);
  CallGraph(module).addCallers(recording_);
}

bool Recorders::records(Operation *op, const llvm::DenseSet<Operation *> &apart) const {
  if (isa<ir::RecordOp>(op) || copiesRows(op))
    return true;
  if (auto call = dyn_cast<func::CallOp>(op))
    return recording_.contains(symbols_.lookup(call.getCallee()));
  return op->getNumRegions() && bodyRecords(op, apart);
}

bool Recorders::bodyRecords(Operation *root, const llvm::DenseSet<Operation *> &apart) const {
  return root
      ->walk([&](Operation *op) {
        bool found = op != root && !apart.contains(op) &&
                     (isTensorCode(op) || isa<ir::RecordOp>(op) || copiesRows(op) ||
                      (isa<func::CallOp>(op) && records(op)));
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isSharedOperand(Value value) {
  Operation *def = value.getDefiningOp();
  return isa_and_nonnull<ir::ParamRefOp>(def) || isFill(def) ||
         !isa<RankedTensorType>(value.getType());
}

bool isConstant(Operation *op) {
  return isa_and_nonnull<ir::ParamRefOp, arith::ConstantOp>(op) ||
         (isFill(op) && op->getNumOperands() == 0);
}

namespace {

/// Whether work of this kind is so light that batching it by itself gains nothing.
bool isLight(Operation *op) { return !batchRule<ops::Product>(op); }

/// The tensor code of one region block, split into groups; each becomes one block.
class Grouper {
public:
  Grouper(Block &block, const Recorders &recorders, bool oneByOne, bool split,
          ArrayRef<Operation *> quiet = {})
      : guards_(guardsIn(block)) {
    for (Operation &op : block)
      place(&op, recorders, llvm::is_contained(quiet, &op));
    if (oneByOne) {
      for (Operation *op : operators_)
        groups_.push_back({op});
      return;
    }
    connect();
    collect();
    sinkLightGroups();
    cutForOrder(block, groups_, guards_);
    if (split)
      splitLongGroups();
  }

  Grouping take() {
    llvm::DenseMap<Value, unsigned> levels;
    for (auto &[value, place] : places_)
      levels[value] = place.level;
    return {std::move(groups_), sunk_, cuts_, std::move(levels), std::move(guards_)};
  }

private:
  struct Place {
    unsigned level = 0;
    bool fromTensorCode = false;
  };

  /// The level of an operation is the number of recording host operations on the longest way from
  /// the block's arguments to it. Host code that takes the result of tensor code of level n is
  /// after the record of level n, so it stands on level n + 1.
  void place(Operation *op, const Recorders &recorders, bool isQuiet) {
    bool tensorCode = !isQuiet && isTensorCode(op) && !isFill(op);
    unsigned level = 0;
    auto use = [&](Value value) {
      auto it = places_.find(value);
      if (it != places_.end())
        level = std::max(level, it->second.level + (it->second.fromTensorCode && !tensorCode));
    };
    // Values from outside of this block have no place: they count as arguments.
    op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), use); });
    if (!tensorCode && !isQuiet && recorders.records(op) && !isFill(op))
      ++level;
    for (Value result : op->getResults())
      places_[result] = {level, tensorCode};
    if (!tensorCode)
      return;
    operators_.push_back(op);
    level_[op] = level;
  }

  void connect() {
    /// Of a value at a level, by what stands apart together.
    llvm::DenseMap<std::tuple<Value, unsigned, Attribute>, Operation *> readers;
    for (Operation *op : operators_) {
      components_.insert(op);
      Attribute apart = op->getAttr(kApartAttr);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        auto it = level_.find(def);
        bool isMadeHere = it != level_.end() && it->second == level_[op];
        if (isMadeHere && def->getAttr(kApartAttr) == apart)
          components_.unionSets(op, def);
        else if (!isSharedOperand(operand))
          components_.unionSets(
              op, readers.try_emplace({operand, level_[op], apart}, op).first->second);
      }
    }
  }

  void collect() {
    llvm::MapVector<Operation *, Group> groups;
    for (Operation *op : operators_)
      groups[components_.getLeaderValue(op)].push_back(op);
    for (auto &[leader, group] : groups)
      groups_.push_back(std::move(group));
  }

  /// A light group whose results all go into one later group runs there: a record less, and its
  /// results need no rows.
  void sinkLightGroups() {
    llvm::DenseMap<Operation *, unsigned> groupOf;
    for (auto [i, group] : llvm::enumerate(groups_))
      for (Operation *op : group)
        groupOf[op] = i;
    // Later groups first, so that chains sink as a whole.
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, groups_.size()));
    llvm::sort(order, [&](unsigned a, unsigned b) {
      unsigned la = level_[groups_[a].front()], lb = level_[groups_[b].front()];
      return la != lb ? la > lb : a < b;
    });
    for (unsigned i : order) {
      Group &group = groups_[i];
      if (!llvm::all_of(group, isLight))
        continue;
      llvm::SmallDenseSet<unsigned> targets;
      bool elsewhere = false;
      for (Operation *op : group)
        for (Operation *user : op->getUsers()) {
          auto it = groupOf.find(user);
          if (it == groupOf.end())
            elsewhere = true;
          else if (it->second != i)
            targets.insert(it->second);
        }
      if (elsewhere || targets.size() != 1)
        continue;
      unsigned target = *targets.begin();
      for (Operation *op : group)
        groupOf[op] = target;
      groups_[target].append(group);
      group.clear();
      ++sunk_;
    }
    llvm::erase_if(groups_, [](const Group &group) { return group.empty(); });
    for (Group &group : groups_)
      llvm::sort(group, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  }

  void splitLongGroups() {
    std::vector<Group> pieces;
    for (Group &group : groups_) {
      if (group.size() <= kLongGroup) {
        pieces.push_back(std::move(group));
        continue;
      }
      std::vector<Group> split = splitGroup(group);
      cuts_ += split.size() - 1;
      std::move(split.begin(), split.end(), std::back_inserter(pieces));
    }
    groups_ = std::move(pieces);
  }

  llvm::DenseMap<Value, Place> places_;
  SmallVector<Operation *> operators_;
  llvm::DenseMap<Operation *, unsigned> level_;
  llvm::EquivalenceClasses<Operation *> components_;
  std::vector<Group> groups_;
  Guards guards_;
  unsigned sunk_ = 0, cuts_ = 0;
};

} // namespace

Grouping groupTensorCode(Block &block, const Recorders &recorders, bool oneByOne, bool split) {
  return Grouper(block, recorders, oneByOne, split).take();
}

const Grouping &Groups::of(Block &block) {
  std::unique_ptr<Grouping> &grouping = groupings_[&block];
  if (!grouping) {
    grouping = std::make_unique<Grouping>(
        groupTensorCode(block, recorders_, /*oneByOne=*/false, /*split=*/false));
    for (const Group &group : grouping->groups)
      for (Operation *op : group)
        groupOf_[op] = &group;
  }
  return *grouping;
}

const Group *Groups::of(Operation *op) {
  if (!isTensorCode(op) || isFill(op))
    return nullptr;
  of(*op->getBlock());
  return groupOf_.lookup(op);
}

unsigned Groups::countWithout(Block &block, ArrayRef<Operation *> quiet) const {
  Grouper grouper(block, recorders_, /*oneByOne=*/false, /*split=*/false, quiet);
  return static_cast<unsigned>(grouper.take().groups.size());
}

unsigned Groups::level(Value value, Block &block) { return of(block).levels.lookup(value); }

} // namespace sheaf::passes

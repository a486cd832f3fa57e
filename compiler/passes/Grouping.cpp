//===- Grouping.cpp - Which tensor code becomes one block -----------------===//

#include "compiler/passes/Grouping.h"
#include "compiler/passes/CallGraph.h"
#include "compiler/passes/OpQueries.h"
#include "compiler/passes/ProgramOrder.h"

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
  if (isa<ir::RecordOp>(op) || takesList(op))
    return true;
  if (auto call = dyn_cast<func::CallOp>(op))
    return recording_.contains(symbols_.lookup(call.getCallee()));
  return op->getNumRegions() && bodyRecords(op, apart);
}

bool Recorders::bodyRecords(Operation *root, const llvm::DenseSet<Operation *> &apart) const {
  return root
      ->walk([&](Operation *op) {
        bool found = op != root && !apart.contains(op) &&
                     (isTensorCode(op) || isa<ir::RecordOp>(op) || takesList(op) ||
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
          ArrayRef<Operation *> quiet = {}) {
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
    cutForOrder(block, groups_);
    if (split)
      splitLongGroups();
  }

  Grouping take() {
    llvm::DenseMap<Value, unsigned> levels;
    for (auto &[value, place] : places_)
      levels[value] = place.level;
    return {std::move(groups_), sunk_, cuts_, std::move(levels)};
  }

private:
  struct Place {
    unsigned level = 0;
    bool fromTensorCode = false;
  };

  /// The level of an operation is the number of recording host operations on the longest way from
  /// the block's arguments to it. Host code that takes the result of tensor code of level n is
  /// behind the record of level n, so it stands on level n + 1.
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
    /// Of a value at a level, by those that are apart and others.
    llvm::DenseMap<std::pair<Value, unsigned>, Operation *> readers[2];
    for (Operation *op : operators_) {
      components_.insert(op);
      bool apart = op->hasAttr(kApartAttr);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        auto it = level_.find(def);
        bool isMadeHere = it != level_.end() && it->second == level_[op];
        if (isMadeHere && def->hasAttr(kApartAttr) == apart)
          components_.unionSets(op, def);
        else if (!isSharedOperand(operand))
          components_.unionSets(
              op, readers[apart].try_emplace({operand, level_[op]}, op).first->second);
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

  /// A long group is a stack of layers. It is cut where a single tensor goes on, so that layers of
  /// one form become equal blocks: one kernel, compiled once, whatever the number of layers.
  void splitLongGroups() {
    std::vector<Group> pieces;
    for (Group &group : groups_)
      if (group.size() > kLongGroup)
        llvm::append_range(pieces, split(group));
      else
        pieces.push_back(std::move(group));
    groups_ = std::move(pieces);
  }

  /// What follows from constants and host scalars alone may go on beside the one tensor. Scalars
  /// are made again in every piece.
  SmallVector<Group> split(const Group &group) {
    llvm::DenseMap<Operation *, unsigned> number;
    llvm::DenseSet<Operation *> given;
    for (auto [i, op] : llvm::enumerate(group)) {
      number[op] = static_cast<unsigned>(i);
      if (llvm::all_of(op->getOperands(), [&](Value operand) {
            Operation *def = operand.getDefiningOp();
            bool isHost = !isa<RankedTensorType, ir::ListType>(operand.getType());
            return isHost || isFill(def) || given.contains(def);
          }))
        given.insert(op);
    }
    auto isScalar = [&](Operation *op) {
      return given.contains(op) &&
             cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 0;
    };
    auto lastReader = [&](Value value) {
      unsigned last = 0;
      for (Operation *user : value.getUsers())
        if (auto it = number.find(user); it != number.end())
          last = std::max(last, it->second);
      return last;
    };

    SmallVector<Group> pieces(1);
    SmallVector<std::pair<Value, unsigned>> live; // what later operators read, and the last of them
    bool hasProduct = false;
    Scalars scalars;
    for (auto [i, op] : llvm::enumerate(group)) {
      if (isScalar(op)) {
        scalars.unplaced.insert(op);
        scalars.all.insert(op);
        continue;
      }
      Group &piece = pieces.back();
      placeScalars(op, piece, scalars);
      piece.push_back(op);
      hasProduct |= !isLight(op);
      llvm::erase_if(live, [i = i](const auto &value) { return value.second <= i; });
      if (!given.contains(op))
        for (Value result : op->getResults())
          if (unsigned last = lastReader(result); last > i)
            live.push_back({result, last});
      if (live.size() == 1 && hasProduct && piece.size() >= kShortestPiece &&
          group.size() - i - 1 >= kShortestPiece && !goesOnInRegisters(live[0].first)) {
        pieces.emplace_back();
        scalars.here.clear();
        hasProduct = false;
        ++cuts_;
      }
    }
    // Those that only others than the group read.
    llvm::append_range(pieces.back(), scalars.unplaced);
    return pieces;
  }

  /// Whether the kernel of a product is to do what follows, too: its sum with a bias, an
  /// activation.
  static bool goesOnInRegisters(Value value) {
    auto isPart = [](Operation *op) {
      return batchRule<ops::Elementwise>(op) || batchRule<ops::Movement>(op);
    };
    Operation *made = value.getDefiningOp();
    return (batchRule<ops::Product>(made) || isPart(made)) &&
           llvm::all_of(value.getUsers(), isPart);
  }

  /// Scalars stand before their first reader in each piece, so that equal pieces look alike.
  struct Scalars {
    llvm::SetVector<Operation *> unplaced;
    llvm::DenseSet<Operation *> all;
    llvm::DenseMap<Operation *, Operation *> here; ///< those of the piece
  };

  static void placeScalars(Operation *op, Group &piece, Scalars &scalars) {
    SmallVector<Operation *> work{op};
    while (!work.empty()) {
      Operation *reader = work.back(), *missing = nullptr;
      for (OpOperand &operand : reader->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (!scalars.all.contains(def))
          continue;
        if (Operation *here = scalars.here.lookup(def))
          operand.set(here->getResult(cast<OpResult>(operand.get()).getResultNumber()));
        else
          missing = def;
      }
      if (missing) {
        Operation *made = missing;
        if (scalars.unplaced.remove(missing))
          made->moveBefore(op);
        else
          made = OpBuilder(op).clone(*missing);
        scalars.here[missing] = made;
        work.push_back(made);
        continue;
      }
      if (reader != op)
        piece.push_back(reader);
      work.pop_back();
    }
  }

  static constexpr unsigned kShortestPiece = 24;

  llvm::DenseMap<Value, Place> places_;
  SmallVector<Operation *> operators_;
  llvm::DenseMap<Operation *, unsigned> level_;
  llvm::EquivalenceClasses<Operation *> components_;
  std::vector<Group> groups_;
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

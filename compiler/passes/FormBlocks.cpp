//===- FormBlocks.cpp - Straight-line tensor code into blocks -------------===//

#include "compiler/passes/BlockTable.h"
#include "compiler/passes/CallGraph.h"
#include "compiler/passes/Extents.h"
#include "compiler/passes/OpQueries.h"
#include "compiler/passes/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

//===----------------------------------------------------------------------===//
// What records
//===----------------------------------------------------------------------===//

/// Which operations may record something when they run: a level begins behind each of them.
class Recorders {
public:
  explicit Recorders(ModuleOp module) : symbols_(module) {
    CallGraph graph(module);
    // Callees come first; a cycle needs as many rounds as it is long at worst.
    for (bool changed = true; changed;) {
      changed = false;
      for (func::FuncOp func : graph.bottomUp())
        if (!recording_.contains(func) && bodyRecords(func)) {
          recording_.insert(func);
          changed = true;
        }
    }
  }

  bool records(Operation *op) {
    if (isa<ir::RecordOp>(op) || takesList(op))
      return true;
    if (auto call = dyn_cast<func::CallOp>(op))
      return recording_.contains(symbols_.lookup(call.getCallee()));
    return op->getNumRegions() && bodyRecords(op);
  }

private:
  bool bodyRecords(Operation *root) {
    return root
        ->walk([&](Operation *op) {
          bool found = op != root && (isTensorCode(op) || isa<ir::RecordOp>(op) || takesList(op) ||
                                      (isa<func::CallOp>(op) && records(op)));
          return found ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  SymbolTable symbols_;
  llvm::DenseSet<Operation *> recording_;
};

//===----------------------------------------------------------------------===//
// Which operators go together
//===----------------------------------------------------------------------===//

/// A weight, or a constant that each block makes for itself: does not tie its users together.
bool isSharedOperand(Value value) {
  Operation *def = value.getDefiningOp();
  return isa_and_nonnull<ir::ParamRefOp>(def) || isFill(def) ||
         !isa<RankedTensorType>(value.getType());
}

/// Whether work of this kind is so light that batching it by itself gains nothing.
bool isLight(Operation *op) { return !batchRule<ops::Product>(op); }

using Group = SmallVector<Operation *>;

/// The tensor code of one region block, split into groups; each becomes one block.
class Grouping {
public:
  Grouping(Block &block, Recorders &recorders, bool oneByOne, bool split) {
    for (Operation &op : block)
      place(&op, recorders);
    if (oneByOne) {
      for (Operation *op : operators_)
        groups_.push_back({op});
      return;
    }
    connect();
    collect();
    sinkLightGroups();
    if (split)
      splitLongGroups();
  }

  ArrayRef<Group> groups() const { return groups_; }
  unsigned sunk() const { return sunk_; }
  unsigned cuts() const { return cuts_; }

private:
  struct Place {
    unsigned level = 0;
    bool fromTensorCode = false;
  };

  /// The level of an operation is the number of recording host operations on the longest way from
  /// the block's arguments to it. Host code that takes the result of tensor code of level n is
  /// behind the record of level n, so it stands on level n + 1.
  void place(Operation *op, Recorders &recorders) {
    bool tensorCode = isTensorCode(op) && !isFill(op);
    unsigned level = 0;
    auto use = [&](Value value) {
      auto it = places_.find(value);
      if (it != places_.end())
        level = std::max(level, it->second.level + (it->second.fromTensorCode && !tensorCode));
    };
    // Values from outside of this block have no place: they count as arguments.
    op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), use); });
    if (!tensorCode && recorders.records(op) && !isFill(op))
      ++level;
    for (Value result : op->getResults())
      places_[result] = {level, tensorCode};
    if (!tensorCode)
      return;
    operators_.push_back(op);
    level_[op] = level;
  }

  void connect() {
    llvm::DenseMap<std::pair<Value, unsigned>, Operation *> readers;
    for (Operation *op : operators_) {
      components_.insert(op);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        auto it = level_.find(def);
        if (it != level_.end() && it->second == level_[op])
          components_.unionSets(op, def);
        else if (!isSharedOperand(operand))
          components_.unionSets(op, readers.try_emplace({operand, level_[op]}, op).first->second);
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
    SmallVector<Group> pieces;
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
            return !isa<RankedTensorType>(operand.getType()) || isFill(def) || given.contains(def);
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
    std::vector<unsigned> ends(group.size()); // by operator: how many values it is the last to read
    unsigned live = 0;                        // values that a later operator reads
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
      live -= ends[i];
      if (!given.contains(op))
        for (Value result : op->getResults())
          if (unsigned last = lastReader(result); last > i) {
            ++ends[last];
            ++live;
          }
      if (live == 1 && hasProduct && piece.size() >= kShortestPiece &&
          group.size() - i - 1 >= kShortestPiece) {
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

  static constexpr unsigned kLongGroup = 72, kShortestPiece = 24;

  llvm::DenseMap<Value, Place> places_;
  SmallVector<Operation *> operators_;
  llvm::DenseMap<Operation *, unsigned> level_;
  llvm::EquivalenceClasses<Operation *> components_;
  SmallVector<Group> groups_;
  unsigned sunk_ = 0, cuts_ = 0;
};

//===----------------------------------------------------------------------===//
// From a group to a record
//===----------------------------------------------------------------------===//

/// Moves the operators of a group into a block of their own and records it in their place.
class BlockMaker {
public:
  BlockMaker(BlockTable &table, func::FuncOp func, PassContext &context)
      : table_(table), func_(func), context_(context) {}

  void make(const Group &group) {
    llvm::SmallDenseSet<Operation *> inside(group.begin(), group.end());
    SmallVector<Value> results;
    for (Operation *op : group)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !inside.contains(user); }))
          results.push_back(result);
    if (results.empty())
      return erase(group);

    noteExtents(group);
    Inputs inputs = inputsOf(group, inside);
    ir::BlockOp block = build(group, inputs, results);
    ir::BlockOp shared = table_.intern(block, func_.getName());
    Location loc = group.front()->getLoc();
    OpBuilder builder(group.front());
    auto record = ir::RecordOp::create(builder, loc, TypeRange(results), shared.getSymName(),
                                       inputs.args.getArrayRef(),
                                       builder.getArrayAttr(inputs.weights.getArrayRef()));
    // Behind everything it reads; users that now come too early are put right by the sort.
    for (Value arg : inputs.args)
      if (Operation *def = arg.getDefiningOp();
          def && def->getBlock() == record->getBlock() && record->isBeforeInBlock(def))
        record->moveAfter(def);
    explain(group, inputs, results, shared, loc);
    for (auto [result, recorded] : llvm::zip(results, record.getResults())) {
      for (unsigned axis = 0; axis < cast<RankedTensorType>(result.getType()).getRank(); ++axis)
        if (auto same = sameExtents_.find({result, axis}); same != sameExtents_.end()) {
          Extent extent = same->second;
          sameExtents_[{recorded, axis}] = extent;
        }
      result.replaceAllUsesWith(recorded);
    }
    erase(group);
  }

private:
  struct Inputs {
    llvm::SetVector<Value> args;
    llvm::SetVector<Attribute> weights;
  };

  /// An axis of a tensor, or a host int with no axis.
  using Extent = std::pair<Value, unsigned>;
  static constexpr unsigned kNoAxis = ~0u;

  Extent extentOf(Value tensor, unsigned axis) const {
    auto same = sameExtents_.find({tensor, axis});
    return same == sameExtents_.end() ? Extent(tensor, axis) : same->second;
  }
  Extent extentOf(Value number) const {
    auto dim = number.getDefiningOp<ir::DimOp>();
    return dim ? extentOf(dim.getTensor(), dim.getAxis()) : Extent(number, kNoAxis);
  }

  /// Extents of results that are extents of operands: what a block computes can then stand for
  /// what it was computed from.
  void noteExtents(const Group &group) {
    for (Operation *op : group)
      for (OpResult result : op->getResults()) {
        auto type = cast<RankedTensorType>(result.getType());
        for (unsigned axis = 0; axis < type.getRank(); ++axis) {
          if (!type.isDynamicDim(axis))
            continue;
          auto source = extentSource(cast<ir::ApplyOp>(op), result.getResultNumber(), axis);
          if (!source)
            continue;
          Value operand = op->getOperand(source->operand);
          Extent same = source->axis ? extentOf(operand, *source->axis) : extentOf(operand);
          sameExtents_[{result, axis}] = same;
        }
      }
  }

  /// The tensor argument, and its axis, that has this extent.
  std::optional<Extent> argumentWithExtent(Value number, const Inputs &inputs) const {
    if (auto dim = number.getDefiningOp<ir::DimOp>())
      if (inputs.args.contains(dim.getTensor()))
        return Extent(dim.getTensor(), dim.getAxis());
    Extent wanted = extentOf(number);
    for (Value arg : inputs.args)
      if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
        for (unsigned axis = 0; axis < type.getRank(); ++axis)
          if (type.isDynamicDim(axis) && extentOf(arg, axis) == wanted)
            return Extent(arg, axis);
    return std::nullopt;
  }

  /// Whether the block makes the host scalar itself.
  bool isMadeInside(Value value, const Inputs &inputs) const {
    return value.getDefiningOp<arith::ConstantOp>() || argumentWithExtent(value, inputs);
  }

  Inputs inputsOf(const Group &group, const llvm::SmallDenseSet<Operation *> &inside) const {
    Inputs inputs;
    auto forEachInput = [&](auto &&visit) {
      for (Operation *op : group)
        for (Value operand : op->getOperands())
          if (isFill(operand.getDefiningOp()))
            llvm::for_each(operand.getDefiningOp()->getOperands(), visit);
          else if (!inside.contains(operand.getDefiningOp()))
            visit(operand);
    };
    // Tensors first: extents of tensors that are arguments anyway need no words of their own.
    forEachInput([&](Value value) {
      if (auto ref = value.getDefiningOp<ir::ParamRefOp>())
        inputs.weights.insert(ref.getParamAttr());
      else if (isa<RankedTensorType>(value.getType()))
        inputs.args.insert(value);
    });
    forEachInput([&](Value value) {
      if (!isa<RankedTensorType>(value.getType()) && !isMadeInside(value, inputs))
        inputs.args.insert(value);
    });
    return inputs;
  }

  ir::BlockOp build(const Group &group, const Inputs &inputs, ArrayRef<Value> results) {
    Location loc = group.front()->getLoc();
    OpBuilder builder(func_.getContext());
    auto block = ir::BlockOp::create(builder, loc, "block", inputs.args.size());
    Block &body = block.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&body);

    IRMapping map;
    for (Value arg : inputs.args)
      map.map(arg, body.addArgument(arg.getType(), arg.getLoc()));
    llvm::DenseMap<Attribute, Value> weights;
    for (Attribute weight : inputs.weights) {
      Type type = table_.param(cast<FlatSymbolRefAttr>(weight)).getType();
      weights[weight] = body.addArgument(type, loc);
    }
    // Constants, constant tensors and extents are made where they are first used.
    auto bring = [&](Value value, auto &&bring) -> void {
      if (map.contains(value))
        return;
      Operation *def = value.getDefiningOp();
      if (auto ref = dyn_cast_or_null<ir::ParamRefOp>(def))
        return map.map(value, weights.lookup(ref.getParamAttr()));
      if (auto extent = argumentWithExtent(value, inputs))
        return map.map(value, ir::DimOp::create(builder, loc, map.lookup(extent->first),
                                                builder.getI64IntegerAttr(extent->second)));
      for (Value operand : def->getOperands())
        bring(operand, bring);
      builder.clone(*def, map);
    };
    for (Operation *op : group) {
      for (Value operand : op->getOperands())
        bring(operand, bring);
      builder.clone(*op, map);
    }
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(map.lookup(result));
    ir::YieldOp::create(builder, loc, yielded);
    return block;
  }

  void explain(const Group &group, const Inputs &inputs, ArrayRef<Value> results, ir::BlockOp block,
               Location loc) {
    std::string names;
    for (Operation *op : group)
      names += (names.empty() ? "" : ", ") + cast<ir::ApplyOp>(op).getOp().str();
    std::string weights;
    for (Attribute weight : inputs.weights)
      weights += (weights.empty() ? "" : ", ") + cast<FlatSymbolRefAttr>(weight).getValue().str();
    context_.remark(loc, "block " + block.getSymName() + " of " + func_.getName() + ": " +
                             Twine(group.size()) + " operators (" + names + "), " +
                             Twine(inputs.args.size()) + " per-instance arguments, " +
                             (weights.empty() ? std::string("no weights") : "weights " + weights) +
                             ", " + Twine(results.size()) + " results");
    for (Operation *op : group) {
      Value right = op->getOperand(op->getNumOperands() - 1);
      if (batchRule<ops::Product>(op) && !right.getDefiningOp<ir::ParamRefOp>() &&
          cast<RankedTensorType>(right.getType()).getRank() > 1)
        context_.remark(op->getLoc(), "the right operand of this product differs from instance to "
                                      "instance: it is not packed");
    }
  }

  static void erase(const Group &group) {
    for (Operation *op : llvm::reverse(group)) {
      op->dropAllUses();
      op->erase();
    }
  }

  BlockTable &table_;
  func::FuncOp func_;
  PassContext &context_;
  llvm::DenseMap<Extent, Extent> sameExtents_;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Constant tensors and extents whose users have moved into blocks.
void dropUnused(func::FuncOp func) {
  // Operations with regions are left alone: what stands in them may be on the list itself.
  auto isUnused = [](Operation *op) {
    return op->use_empty() && op->getNumRegions() == 0 && isPure(op) &&
           !op->hasTrait<OpTrait::IsTerminator>();
  };
  SmallVector<Operation *> work;
  func.walk([&](Operation *op) {
    if (isUnused(op))
      work.push_back(op);
  });
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    SmallVector<Operation *> defs;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !llvm::is_contained(defs, def))
        defs.push_back(def);
    op->erase();
    for (Operation *def : defs)
      if (isUnused(def))
        work.push_back(def);
  }
}

LogicalResult formIn(func::FuncOp func, BlockTable &table, Recorders &recorders,
                     PassContext &context) {
  SmallVector<Block *> blocks;
  func.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks) {
    // A constant tensor that host code uses has to be computed like any other.
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (isFill(&op))
        table.recordFill(&op, func.getName());
    Grouping grouping(*block, recorders, context.isOff("blocks"), !context.isOff("split-blocks"));
    BlockMaker maker(table, func, context);
    for (const Group &group : grouping.groups())
      maker.make(group);
    for (Operation &op : *block)
      if (takesList(&op))
        table.attachCopy(cast<ir::ApplyOp>(op), func.getName());
    if (grouping.sunk())
      context.remark(func.getLoc(),
                     Twine(grouping.sunk()) + " light groups run inside the block that uses them");
    if (grouping.cuts())
      context.remark(func.getLoc(), "long blocks are cut in " + Twine(grouping.cuts()) +
                                        " places where one tensor goes on");
    if (!sortTopologically(block))
      return func.emitOpError("has cyclic blocks");
  }
  dropUnused(func);
  return success();
}

LogicalResult run(ModuleOp module, PassContext &context) {
  Recorders recorders(module);
  BlockTable table(module);
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (failed(formIn(func, table, recorders, context)))
      return failure();
  context.remark(module.getLoc(), Twine(table.distinct()) + " different blocks for " +
                                      Twine(table.uses()) + " places that record");
  return success();
}

} // namespace

PassRecord formBlocksPass() {
  return {
      .name = "form-blocks",
      .description =
          "Groups tensor code that can run together into blocks: in every straight-line region, "
          "the operators with the same number of recording calls, branches and loops before "
          "them that share a per-instance value or feed each other. Each block becomes one "
          "record at run time and one kernel; weights become its parameters, so that equal "
          "blocks over different weights are one kernel.",
      .run = run,
      .required = true,
      .after = Level::Blocks,
      .switches = {{"blocks", "several operators in one block"},
                   {"split-blocks", "long blocks are cut where one tensor goes on"}}};
}

} // namespace sheaf::passes

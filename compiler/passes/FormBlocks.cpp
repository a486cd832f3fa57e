//===- FormBlocks.cpp - Straight-line tensor code into blocks -------------===//

#include "compiler/analysis/Extents.h"
#include "compiler/analysis/Grouping.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/passes/BlockTable.h"
#include "compiler/passes/OwnOperands.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

//===----------------------------------------------------------------------===//
// From a group to a record
//===----------------------------------------------------------------------===//

/// Moves the operators of a group into a block of their own and records it in their place.
class BlockMaker {
public:
  BlockMaker(BlockTable &table, func::FuncOp func, PassContext &context)
      : table_(table), func_(func), context_(context) {}

  /// Gives the record, if there is anything to be recorded.
  Operation *make(const Group &group) {
    llvm::SmallDenseSet<Operation *> inside(group.begin(), group.end());
    SmallVector<Value> results;
    for (Operation *op : group)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !inside.contains(user); }))
          results.push_back(result);
    if (results.empty()) {
      erase(group);
      return nullptr;
    }

    noteExtents(group);
    Inputs inputs = inputsOf(group, inside);
    ir::BlockOp block = build(group, inputs, results);
    // An equal block may have been made elsewhere: the record says where its operators are from.
    SmallVector<Attribute> places;
    block.getBody().walk(
        [&](ir::ApplyOp apply) { places.push_back(LocationAttr(apply.getLoc())); });
    ir::BlockOp shared = table_.intern(block, func_.getName());
    Location loc = group.front()->getLoc();
    OpBuilder builder(group.front());
    auto record = ir::RecordOp::create(
        builder, FusedLoc::get({loc}, builder.getArrayAttr(places), builder.getContext()),
        TypeRange(results), shared.getSymName(), inputs.args.getArrayRef(),
        builder.getArrayAttr(inputs.weights.getArrayRef()));
    // For keep-joined.
    if (Attribute apart = commonApart(group))
      record->setAttr(kApartAttr, apart);
    explain(group, inputs, results, shared, loc);
    for (auto [result, recorded] : llvm::zip(results, record.getResults())) {
      for (unsigned axis = 0; axis < rankOf(result); ++axis)
        if (auto known = extents_.find({result, axis}); known != extents_.end()) {
          unsigned extent = known->second;
          extents_[{recorded, axis}] = extent;
        }
      result.replaceAllUsesWith(recorded);
    }
    erase(group);
    return record;
  }

private:
  static Attribute commonApart(const Group &group) {
    Attribute apart = group.front()->getAttr(kApartAttr);
    return llvm::all_of(group, [&](Operation *op) { return op->getAttr(kApartAttr) == apart; })
               ? apart
               : Attribute();
  }

  struct Inputs {
    llvm::SetVector<Value> args;
    llvm::SetVector<Attribute> weights;
  };

  /// An axis of a tensor, or a host int with no axis.
  using Place = std::pair<Value, unsigned>;
  static constexpr unsigned kNoAxis = ~0u;

  static unsigned rankOf(Value tensor) {
    return static_cast<unsigned>(cast<RankedTensorType>(tensor.getType()).getRank());
  }

  /// The number of an extent; places that are known to have the same one have one number.
  unsigned extentOf(Value tensor, unsigned axis) {
    auto [it, isNew] = extents_.try_emplace({tensor, axis}, next_);
    next_ += isNew;
    return it->second;
  }
  unsigned extentOf(Value number) {
    auto dim = number.getDefiningOp<ir::DimOp>();
    return dim ? extentOf(dim.getTensor(), dim.getAxis()) : extentOf(number, kNoAxis);
  }

  /// Extents of results that are extents of operands: what a block computes can then stand for
  /// what it was computed from.
  void noteExtents(const Group &group) {
    for (Operation *op : group)
      for (OpResult result : op->getResults())
        for (unsigned axis = 0; axis < rankOf(result); ++axis) {
          if (!cast<RankedTensorType>(result.getType()).isDynamicDim(axis))
            continue;
          auto source = extentSource(cast<ir::ApplyOp>(op), result.getResultNumber(), axis);
          if (!source)
            continue;
          Value operand = op->getOperand(source->operand);
          unsigned same = source->axis ? extentOf(operand, *source->axis) : extentOf(operand);
          extents_[{result, axis}] = same;
        }
  }

  /// The tensor argument, and its axis, that has this extent.
  std::optional<Place> argumentWithExtent(Value number, const Inputs &inputs) {
    if (auto dim = number.getDefiningOp<ir::DimOp>())
      if (inputs.args.contains(dim.getTensor()))
        return Place(dim.getTensor(), dim.getAxis());
    unsigned wanted = extentOf(number);
    for (Value arg : inputs.args)
      if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
        for (unsigned axis = 0; axis < type.getRank(); ++axis)
          if (type.isDynamicDim(axis) && extentOf(arg, axis) == wanted)
            return Place(arg, axis);
    return std::nullopt;
  }

  /// Whether the block makes the host scalar itself.
  bool isMadeInside(Value value, const Inputs &inputs) {
    return value.getDefiningOp<arith::ConstantOp>() || argumentWithExtent(value, inputs);
  }

  Inputs inputsOf(const Group &group, const llvm::SmallDenseSet<Operation *> &inside) {
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
      builder.clone(*op, map)->removeAttr(kApartAttr);
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
      // Packing follows views.
      for (Operation *def = right.getDefiningOp();
           batchRule<ops::Movement>(def) && !takesList(def) && def->getNumOperands() == 1;
           def = right.getDefiningOp())
        right = def->getOperand(0);
      if (batchRule<ops::Product>(op) && !right.getDefiningOp<ir::ParamRefOp>() &&
          cast<RankedTensorType>(right.getType()).getRank() > 1)
        context_.remark(op->getLoc(),
                        "the right operand of this product is no parameter that is known "
                        "when the program is compiled: it is not packed beforehand");
    }
  }

  void erase(const Group &group) {
    for (Operation *op : llvm::reverse(group)) {
      // A record that is made later may get its address.
      for (Value result : op->getResults())
        for (unsigned axis = 0; axis < rankOf(result); ++axis)
          extents_.erase({result, axis});
      op->dropAllUses();
      op->erase();
    }
  }

  BlockTable &table_;
  func::FuncOp func_;
  PassContext &context_;
  llvm::DenseMap<Place, unsigned> extents_;
  unsigned next_ = 0;
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

/// The last check that anything of a group comes after.
Operation *lastGuard(const Group &group, const Guards &guards) {
  Operation *last = nullptr;
  for (Operation *op : group)
    if (Operation *check = guards.lookup(op); check && (!last || last->isBeforeInBlock(check)))
      last = check;
  return last;
}

LogicalResult formIn(func::FuncOp func, BlockTable &table, const Recorders &recorders,
                     PassContext &context) {
  bool oneByOne = context.isOff("blocks");
  if (!oneByOne)
    copyIntoRegions(func);
  SmallVector<Block *> blocks;
  func.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks) {
    // A constant tensor that host code uses has to be computed like any other.
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (isFill(&op))
        table.recordFill(&op, func.getName());
    Grouping grouping =
        groupTensorCode(*block, recorders, oneByOne, !context.isOff("split-blocks"));
    if (!oneByOne)
      copyIntoGroups(grouping.groups);
    BlockMaker maker(table, func, context);
    Guards guards; // of records
    for (const Group &group : grouping.groups) {
      Operation *guard = lastGuard(group, grouping.guards);
      if (Operation *record = maker.make(group); record && guard)
        guards[record] = guard;
    }
    for (Operation &op : *block)
      if (takesList(&op))
        table.attachCopy(cast<ir::ApplyOp>(op), func.getName());
      else if (appendsRows(&op))
        table.attachRowCopy(cast<ir::ApplyOp>(op), func.getName());
    if (grouping.sunk)
      context.remark(func.getLoc(),
                     Twine(grouping.sunk) + " light groups run inside the block that uses them");
    if (grouping.cuts)
      context.remark(func.getLoc(), "long blocks are cut in " + Twine(grouping.cuts) +
                                        " places, between layers where there are any");
    if (failed(restoreOrder(*block, guards)))
      return func.emitOpError("has cyclic blocks");
  }
  dropUnused(func);
  return success();
}

LogicalResult formBlocks(ModuleOp module, PassContext &context) {
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
      .run = formBlocks,
      .required = true,
      .after = Level::Blocks,
      .switches = {
          {"blocks", "several operators in one block"},
          {"split-blocks", "long blocks are cut, between equal layers where there are any"}}};
}

} // namespace sheaf::passes

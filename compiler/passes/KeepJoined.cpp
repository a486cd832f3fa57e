//===- KeepJoined.cpp - What was hoisted, where rows are short ------------===//
//
// A product that was hoisted leaves a row for each element of a list. Where these do not fit in
// memory, its records are not made: whoever takes the row records another block instead, which
// computes the product itself. Which of both host code records, it is told when it runs
// (rt::Context::joins). A sum is one chain either way (order-sums), so no bit shows which. In
// training the order of gradients' sums would.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Precedence.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

class JoinedKeeper {
public:
  JoinedKeeper(ModuleOp module, PassContext &context)
      : module_(module), symbols_(module), context_(context) {}

  void run() {
    for (auto func : module_.getOps<func::FuncOp>())
      func.walk([&](ir::RecordOp record) {
        auto rank = dyn_cast_or_null<IntegerAttr>(record->removeAttr(kApartAttr));
        // Those of tokens are memoised: they are few.
        if (rank && rank.getInt() >= Precedence::kInstance && !func->hasAttr(ir::kFoldedAttr))
          apart_.insert(record);
      });
    if (module_->hasAttr(ops::kTrainingAttr))
      return;
    keepWhatRecordsTake();
    llvm::SetVector<Operation *> takers;
    for (ir::RecordOp record : apart_) {
      record->setAttr(ir::kHoistedAttr, UnitAttr::get(record.getContext()));
      for (Operation *user : record->getUsers())
        if (!apart_.contains(cast<ir::RecordOp>(user)))
          takers.insert(user);
    }
    for (Operation *taker : takers)
      join(cast<ir::RecordOp>(taker));
    for (auto &[record, block] : joined_)
      context_.remark(record->getLoc(), "where its rows do not fit in memory, " +
                                            cast<ir::RecordOp>(record).getBlock() +
                                            " is not recorded: " + block.getSymName() +
                                            " computes it together with what takes it");
  }

private:
  ir::BlockOp blockOf(ir::RecordOp record) {
    return symbols_.lookup<ir::BlockOp>(record.getBlock());
  }

  /// Whether the use is by a record beside it, which takes it as it is made.
  bool isTakenByRecord(OpOperand &use) {
    auto maker = use.get().getDefiningOp<ir::RecordOp>();
    auto taker = dyn_cast<ir::RecordOp>(use.getOwner());
    if (!taker || taker->getBlock() != maker->getBlock())
      return false;
    unsigned result = cast<OpResult>(use.get()).getResultNumber();
    return blockOf(maker).getBody().front().getTerminator()->getOperand(result).getType() ==
           blockOf(taker).getBody().front().getArgument(use.getOperandNumber()).getType();
  }

  /// What something else takes, too, is recorded in any case, by a form that may be joined itself.
  void keepWhatRecordsTake() {
    auto isNeeded = [&](ir::RecordOp record) {
      return llvm::any_of(record.getResults(), [&](Value result) {
        return !cast<RankedTensorType>(result.getType()).hasStaticShape() ||
               !llvm::all_of(result.getUses(),
                             [&](OpOperand &use) { return isTakenByRecord(use); });
      });
    };
    apart_.remove_if(isNeeded);
  }

  /// What was hoisted and the record takes, in order.
  SmallVector<ir::RecordOp> partsOf(ir::RecordOp taker) {
    llvm::SetVector<Operation *> parts;
    SmallVector<Operation *> work{taker};
    while (!work.empty())
      for (Value operand : work.pop_back_val()->getOperands())
        if (auto part = operand.getDefiningOp<ir::RecordOp>())
          if (apart_.contains(part) && parts.insert(part))
            work.push_back(part);
    SmallVector<ir::RecordOp> ordered;
    for (Operation *part : parts)
      ordered.push_back(cast<ir::RecordOp>(part));
    llvm::sort(ordered,
               [](ir::RecordOp a, ir::RecordOp b) { return a->isBeforeInBlock(b.getOperation()); });
    return ordered;
  }

  void join(ir::RecordOp taker) {
    SmallVector<ir::RecordOp> parts = partsOf(taker), all = parts;
    all.push_back(taker);

    // What comes from outside of them, as the block takes it, and the same of weights.
    llvm::MapVector<std::pair<Value, Type>, unsigned> args;
    llvm::SetVector<Attribute> weights;
    std::string key;
    auto isMade = [&](Value value) {
      auto record = value.getDefiningOp<ir::RecordOp>();
      return record && llvm::is_contained(parts, record);
    };
    for (ir::RecordOp record : all) {
      key += record.getBlock().str() + "(";
      Block &body = blockOf(record).getBody().front();
      for (auto [value, argument] : llvm::zip(record.getArgs(), body.getArguments()))
        if (isMade(value)) {
          auto made = cast<OpResult>(value);
          const auto *part = llvm::find(parts, cast<ir::RecordOp>(made.getOwner()));
          key += "r" + std::to_string(part - parts.begin()) + "." +
                 std::to_string(made.getResultNumber()) + " ";
        } else {
          auto [it, isNew] =
              args.insert({{value, argument.getType()}, static_cast<unsigned>(args.size())});
          key += std::to_string(it->second) + " ";
        }
      for (Attribute weight : record.getWeights()) {
        weights.insert(weight);
        key += "w" + std::to_string(llvm::find(weights, weight) - weights.begin()) + " ";
      }
      key += ")";
    }
    ir::BlockOp &block = blocks_[key];
    if (!block)
      block = build(all, llvm::to_vector(llvm::make_first_range(args)), weights.getArrayRef());

    OpBuilder builder(taker->getContext());
    builder.setInsertionPointAfter(taker);
    SmallVector<Value> inputs(taker.getResults());
    for (auto &[arg, number] : args)
      inputs.push_back(arg.first);
    auto joined =
        ir::JoinedOp::create(builder, taker.getLoc(), taker.getResultTypes(), block.getSymName(),
                             inputs, builder.getArrayAttr(weights.getArrayRef()));
    for (StringRef name : {"sheaf.phase", "sheaf.once"})
      if (Attribute attribute = taker->getAttr(name))
        joined->setAttr(name, attribute);
    taker->setAttr(ir::kInJoinedAttr, builder.getUnitAttr());
    for (auto [result, value] : llvm::zip(taker.getResults(), joined.getResults()))
      result.replaceAllUsesExcept(value, joined);
    for (ir::RecordOp part : parts)
      joined_.insert({part, block});
  }

  /// The blocks of records one after the other, the last of which is what takes the others.
  ir::BlockOp build(ArrayRef<ir::RecordOp> records, ArrayRef<std::pair<Value, Type>> args,
                    ArrayRef<Attribute> weights) {
    ir::RecordOp taker = records.back();
    Location loc = blockOf(taker).getLoc();
    OpBuilder builder(module_.getContext());
    auto block =
        ir::BlockOp::create(builder, loc, (taker.getBlock() + ".joined").str(), args.size());
    Block &body = block.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&body);
    llvm::DenseMap<std::pair<Value, Type>, Value> argument;
    llvm::DenseMap<Attribute, Value> weight;
    for (const auto &arg : args)
      argument[arg] = body.addArgument(arg.second, loc);
    for (Attribute each : weights) {
      auto name = cast<FlatSymbolRefAttr>(each);
      weight[each] = body.addArgument(symbols_.lookup<ir::ParamOp>(name.getValue()).getType(), loc);
    }
    llvm::DenseMap<Value, Value> made;
    for (ir::RecordOp record : records) {
      Block &own = blockOf(record).getBody().front();
      IRMapping map;
      unsigned count = record.getArgs().size();
      for (auto [value, place] : llvm::zip(record.getArgs(), own.getArguments()))
        map.map(place, made.contains(value) ? made[value] : argument.at({value, place.getType()}));
      for (auto [each, place] :
           llvm::zip(record.getWeights(), own.getArguments().drop_front(count)))
        map.map(place, weight.at(each));
      for (Operation &op : own.without_terminator())
        builder.clone(op, map);
      for (auto [result, value] :
           llvm::zip(record.getResults(), own.getTerminator()->getOperands()))
        made[result] = map.lookup(value);
      if (record == taker) {
        SmallVector<Value> yielded;
        for (Value value : own.getTerminator()->getOperands())
          yielded.push_back(map.lookup(value));
        ir::YieldOp::create(builder, loc, yielded);
      }
    }
    symbols_.insert(block, Block::iterator(*module_.getOps<func::FuncOp>().begin()));
    return block;
  }

  ModuleOp module_;
  SymbolTable symbols_;
  PassContext &context_;
  llvm::SetVector<ir::RecordOp> apart_;              ///< that need not be recorded
  llvm::StringMap<ir::BlockOp> blocks_;              ///< by what they are made of
  llvm::MapVector<Operation *, ir::BlockOp> joined_; ///< of each part the last
};

LogicalResult keepJoined(ModuleOp module, PassContext &context) {
  // Where operators stand by themselves, one that adds what was hoisted has no product whose chain
  // goes on from it, but the block that computes both is one chain.
  if (context.isOff("blocks"))
    return success();
  JoinedKeeper(module, context).run();
  return success();
}

} // namespace

PassRecord keepJoinedPass() {
  return {.name = "keep-joined",
          .description =
              "Beside records that take rows of hoisted products there are others that compute "
              "these products themselves: a list whose rows do not fit in memory runs by those, "
              "with the same bits. Not in training.",
          .run = keepJoined,
          .after = Level::Blocks};
}

} // namespace sheaf::passes

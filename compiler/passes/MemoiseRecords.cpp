//===- MemoiseRecords.cpp - Records that may have been made before --------===//
//
// Host code looks a marked record up before it makes it (runtime/walk/known.h). Which ones are
// worth it: a record can only repeat when its arguments can, and a float that came with the
// instance does not, nor does the key of a draw. So floats, tensors and the key of the instance are
// followed through the program; what does not depend on them is made of parameters, tokens, ints
// and constants, of which the same come again. Nothing but time hangs on the answer.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace sheaf::passes {
namespace {

class RepeatFinder {
public:
  RepeatFinder(ModuleOp module, PassContext &context)
      : module_(module), symbols_(module), context_(context) {}

  void run() {
    for (auto func : module_.getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal())
        for (BlockArgument argument : func.getArguments())
          if (carriesFloats(argument.getType()) ||
              (argument.getArgNumber() == 0 && ir::takesKey(func)))
            mark(argument);
    for (auto func : module_.getOps<func::FuncOp>())
      func.walk([&](Operation *op) { visit(op); });
    while (!work_.empty()) {
      SmallVector<Value, 2> reached = reaches_.lookup(work_.pop_back_val());
      llvm::for_each(reached, [&](Value value) { mark(value); });
    }
    markRecords();
  }

private:
  bool isFresh(Value value) const { return fresh_.contains(value); }
  bool anyFresh(ValueRange values) const {
    return llvm::any_of(values, [&](Value value) { return isFresh(value); });
  }
  void mark(Value value) {
    if (fresh_.insert(value).second)
      work_.push_back(value);
  }
  /// values[i] is fresh when sources[i] is.
  void pass(ValueRange sources, ValueRange values) {
    for (auto [source, value] : llvm::zip(sources, values))
      reaches_[source].push_back(value);
  }
  /// What is taken out of a value: of all that is in it, only tensors and floats are followed.
  void takeOut(Value whole, ValueRange parts) {
    for (Value part : parts)
      if (carriesFloats(part.getType()))
        pass(whole, part);
  }

  /// Whether values of the type hold tensors or floats.
  bool carriesFloats(Type type) {
    if (isa<RankedTensorType, FloatType>(type))
      return true;
    if (auto list = dyn_cast<ir::ListType>(type))
      return carriesFloats(list.getElement());
    if (auto tuple = dyn_cast<TupleType>(type))
      return llvm::any_of(tuple.getTypes(), [&](Type field) { return carriesFloats(field); });
    auto data = dyn_cast<ir::DataType>(type);
    if (!data)
      return false;
    // A type inside of itself adds nothing.
    auto [it, isNew] = carries_.try_emplace(data.getName().getValue().str(), false);
    if (!isNew)
      return it->second;
    llvm::SetVector<StringRef> seen;
    seen.insert(data.getName().getValue());
    bool found = false;
    // Data types may nest as deeply as the user likes.
    for (size_t i = 0; i < seen.size() && !found; ++i)
      for (auto ctor : symbols_.lookup<ir::DataOp>(seen[i]).getCtors().getAsRange<ir::CtorAttr>())
        for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
          found |= leadsToFloats(field, seen);
    return carries_[data.getName().getValue().str()] = found;
  }
  /// Whether floats stand in the type itself; the data types in it are added to `seen`.
  static bool leadsToFloats(Type type, llvm::SetVector<StringRef> &seen) {
    return type
        .walk([&](Type inner) {
          if (isa<RankedTensorType, FloatType>(inner))
            return WalkResult::interrupt();
          if (auto data = dyn_cast<ir::DataType>(inner))
            seen.insert(data.getName().getValue());
          return WalkResult::advance();
        })
        .wasInterrupted();
  }

  void visitLoop(Operation *op) {
    Block &body = op->getRegion(0).front();
    Value list = op->getOperands().back(), result = op->getResult(0);
    Value yielded = body.getTerminator()->getOperand(0);
    takeOut(list, body.getArgument(isa<ir::FoldOp, ir::ScanOp>(op) ? 1 : 0));
    if (isa<ir::FilterOp>(op))
      return pass(list, result);
    if (isa<ir::FoldOp, ir::ScanOp>(op)) {
      pass(op->getOperand(0), body.getArgument(0));
      pass(yielded, body.getArgument(0));
    }
    if (isa<ir::FoldOp>(op))
      pass(op->getOperand(0), result);
    pass(yielded, result);
  }

  void visit(Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
      if (callee.isExternal()) {
        for (Value result : call.getResults())
          mark(result);
        return;
      }
      pass(call.getOperands(), callee.getArguments());
      return pass(callee.front().getTerminator()->getOperands(), call.getResults());
    }
    if (isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op))
      return visitLoop(op);
    if (isa<scf::IfOp, ir::MatchOp>(op)) {
      for (Region &region : op->getRegions()) {
        if (region.empty())
          continue;
        if (isa<ir::MatchOp>(op))
          takeOut(op->getOperand(0), region.getArguments());
        pass(region.front().getTerminator()->getOperands(), op->getResults());
      }
      return;
    }
    if (isa<ir::GetOp, ir::ListGetOp>(op))
      return takeOut(op->getOperand(0), op->getResults());
    if (isa<ir::DimOp, ir::LenOp>(op))
      return;
    // Copies have rows of their own, and so has what comes from nowhere, unless it is a constant.
    bool isConstant = isa<ir::ParamRefOp, arith::ConstantOp, ir::ListMakeOp, ir::TupleOp,
                          ir::ConstructOp, ir::RecordOp>(op);
    bool fresh = copiesRows(op) || (op->getNumOperands() == 0 && !isConstant);
    for (Value result : op->getResults()) {
      if (fresh)
        mark(result);
      for (Value operand : op->getOperands())
        pass(operand, result);
    }
  }

  void markRecords() {
    std::map<std::string, std::pair<unsigned, unsigned>> counts; // by block: marked, all
    auto *attribute = module_.getContext();
    for (auto func : module_.getOps<func::FuncOp>()) {
      if (func->hasAttr(ir::kFoldedAttr))
        continue; // what it makes is made once
      func.walk([&](ir::RecordOp record) {
        auto &[marked, all] = counts[record.getBlock().str()];
        ++all;
        if (anyFresh(record.getArgs()))
          return;
        ++marked;
        record->setAttr("sheaf.once", UnitAttr::get(attribute));
      });
    }
    for (auto block : module_.getOps<ir::BlockOp>()) {
      auto [marked, all] = counts[block.getSymName().str()];
      if (marked > 0 && marked < all)
        context_.remark(block.getLoc(), "equal records of " + block.getSymName() +
                                            " run once, those of " + Twine(marked) + " of " +
                                            Twine(all) + " places");
      else if (marked > 0)
        context_.remark(block.getLoc(), "equal records of " + block.getSymName() + " run once");
      else if (all > 0)
        context_.remark(block.getLoc(), block.getSymName() +
                                            " depends on floats of the instance: its records are "
                                            "not compared");
    }
  }

  ModuleOp module_;
  SymbolTable symbols_;
  PassContext &context_;
  llvm::DenseSet<Value> fresh_;
  std::map<std::string, bool> carries_;
  SmallVector<Value> work_;
  llvm::DenseMap<Value, SmallVector<Value, 2>> reaches_; ///< what is fresh when each is
};

LogicalResult markRecords(ModuleOp module, PassContext &context) {
  RepeatFinder(module, context).run();
  return success();
}

} // namespace

PassRecord memoiseRecordsPass() {
  return {
      .name = "memoise-records",
      .description =
          "Records whose arguments may be met again (made of parameters, tokens and ints, not of "
          "the instance's own tensors) are looked up: two with the same arguments run once in "
          "a mini-batch, and those of parameters' rows alone once until the weights change.",
      .run = markRecords,
      .after = Level::Blocks};
}

} // namespace sheaf::passes

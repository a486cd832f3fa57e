//===- DropUnneeded.cpp - What nothing takes is not computed --------------===//

#include "compiler/analysis/Casts.h"
#include "compiler/ir/Guards.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/Needs.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Makes values that stand where nothing is taken: the least there is of each type.
class StandIns {
public:
  explicit StandIns(ModuleOp module) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (auto data : module.getOps<ir::DataOp>())
        if (!least_.contains(data.getSymName()))
          changed |= findLeast(data);
    }
  }

  bool has(Type type) const {
    return llvm::TypeSwitch<Type, bool>(type)
        .Case([&](RankedTensorType tensor) { return !ir::tokenVocab(tensor); })
        .Case([&](TupleType tuple) {
          return llvm::all_of(tuple.getTypes(), [&](Type field) { return has(field); });
        })
        .Case([&](ir::DataType data) { return least_.contains(data.getName().getValue()); })
        .Case<ir::ListType, ir::TokenType, FloatType, IntegerType>([](Type) { return true; })
        .Default(false);
  }

  Value make(ImplicitLocOpBuilder &b, Type type) {
    auto fields = [&](TypeRange types) {
      SmallVector<Value> values;
      for (Type field : types)
        values.push_back(make(b, field));
      return values;
    };
    return llvm::TypeSwitch<Type, Value>(type)
        .Case([&](RankedTensorType tensor) { return makeTensor(b, tensor); })
        .Case([&](TupleType tuple) {
          return ir::TupleOp::create(b, tuple, fields(tuple.getTypes()));
        })
        .Case([&](ir::DataType data) {
          auto [ctor, types] = least_.find(data.getName().getValue())->second;
          return ir::ConstructOp::create(b, data, ctor, fields(types));
        })
        .Case([&](ir::ListType list) { return ir::ListMakeOp::create(b, list, ValueRange()); })
        .Case([&](ir::TokenType token) {
          return ir::ConvertOp::create(b, token, make(b, b.getI64Type()));
        })
        .Default([&](Type) {
          return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
        });
  }

private:
  /// A constructor whose fields are made without a value of the type.
  bool findLeast(ir::DataOp data) {
    for (auto [number, ctor] : llvm::enumerate(data.getCtors().getAsRange<ir::CtorAttr>())) {
      SmallVector<Type> types(ctor.getFieldTypes().getAsValueRange<TypeAttr>());
      if (!llvm::all_of(types, [&](Type field) { return has(field); }))
        continue;
      least_[data.getSymName()] = {static_cast<uint64_t>(number), types};
      return true;
    }
    return false;
  }

  static Value makeTensor(ImplicitLocOpBuilder &b, RankedTensorType type) {
    std::vector<ops::Extent> extents;
    for (int64_t extent : type.getShape())
      extents.push_back(b.getI64IntegerAttr(ShapedType::isDynamic(extent) ? 0 : extent));
    Value zeros = ops::makeFilled(b, 0.0, extents);
    if (ops::DType dtype = *ops::dtypeOf(type.getElementType()); dtype != ops::DType::F32)
      zeros = ops::applyOne(b, StringRef(ops::dtypeName(dtype)), zeros);
    return makeCast(b, b.getLoc(), zeros, type);
  }

  llvm::StringMap<std::pair<uint64_t, SmallVector<Type>>> least_;
};

class Dropping {
public:
  Dropping(ModuleOp module, PassContext &context)
      : module_(module), context_(context), symbols_(module), standIns_(module),
        needs_(module, [this](Type type) { return standIns_.has(type); }) {}

  void run() {
    std::vector<Needs::Instance *> instances = needs_.instances();
    // All copies first: they are made of what the functions were.
    llvm::DenseSet<Operation *> seen;
    for (Needs::Instance *instance : instances) {
      Copy &copy = copies_[instance];
      if (seen.insert(instance->func).second) {
        copy.func = instance->func;
        continue;
      }
      copy.func = cast<func::FuncOp>(instance->func->clone(copy.map));
      copy.func.setPrivate();
      symbols_.insert(copy.func, std::next(instance->func->getIterator()));
    }
    // Copies of what is changed in place come before it.
    for (Needs::Instance *instance : instances)
      if (copies_[instance].func != instance->func)
        rewrite(*instance);
    for (Needs::Instance *instance : instances)
      if (copies_[instance].func == instance->func)
        rewrite(*instance);
    dropUnreachable(module_);
    module_.walk([](Operation *op) {
      // What a check guards may be a copy of its int, made for this alone.
      if (auto copy = dyn_cast<arith::AddIOp>(op); copy && copy->hasAttr(ir::kGuardAttr)) {
        copy.replaceAllUsesWith(copy.getLhs());
        copy.erase();
      } else {
        op->removeAttr(ir::kGuardAttr);
      }
    });
  }

private:
  struct Copy {
    func::FuncOp func;
    IRMapping map; ///< empty when the function itself is changed
  };

  void rewrite(Needs::Instance &instance) {
    Copy &copy = copies_[&instance];
    bool isCopy = copy.func != instance.func;
    auto now = [&](Operation *op) { return isCopy ? copy.map.lookup(op) : op; };
    SmallVector<Operation *> dead;
    struct Change {
      Operation *op;
      unsigned operand;
    };
    SmallVector<Change> changes;
    SmallVector<std::pair<Operation *, FlatSymbolRefAttr>> calls;
    instance.func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!needs_.isLive(instance, op)) {
        dead.push_back(now(op));
        return WalkResult::skip();
      }
      if (auto call = dyn_cast<func::CallOp>(op))
        calls.push_back(
            {now(op), FlatSymbolRefAttr::get(
                          copies_[&needs_.callee(call, instance)].func.getSymNameAttr())});
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (def && !needs_.isLive(instance, def))
          changes.push_back({now(op), operand.getOperandNumber()});
      }
      return WalkResult::advance();
    });
    for (auto [op, callee] : calls)
      cast<func::CallOp>(op).setCalleeAttr(callee);
    for (auto [op, number] : changes) {
      ImplicitLocOpBuilder builder(op->getLoc(), op);
      OpOperand &operand = op->getOpOperand(number);
      operand.set(standIns_.make(builder, operand.get().getType()));
    }
    for (Operation *op : llvm::reverse(dead))
      op->erase();
    if (!dead.empty())
      context_.remark(copy.func.getLoc(), Twine(dead.size()) + " operations of " +
                                              copy.func.getName() +
                                              " are left out: nothing takes what they compute");
  }

  ModuleOp module_;
  PassContext &context_;
  SymbolTable symbols_;
  StandIns standIns_;
  Needs needs_;
  std::map<Needs::Instance *, Copy> copies_;
};

LogicalResult dropUnneeded(ModuleOp module, PassContext &context) {
  Dropping(module, context).run();
  return success();
}

} // namespace

PassRecord dropUnneededPass() {
  return {.name = "drop-unneeded",
          .description =
              "Leaves out what no result of the entry and no check takes, in functions, loops, "
              "tuples, lists and fields of data, with what could go wrong in it. It comes before "
              "all else: the oracle interprets what remains.",
          .run = dropUnneeded,
          .required = true};
}

} // namespace sheaf::passes

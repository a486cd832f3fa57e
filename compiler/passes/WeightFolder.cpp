//===- WeightFolder.cpp - What depends on weights alone is computed once --===//

#include "compiler/passes/WeightFolder.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

#include <map>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Larger results stay where they are.
constexpr int64_t kMostElements = int64_t(64) << 20;
/// So do those that are larger than what they are made from by more than this, unless a product
/// takes them, and those that together take more than this times the memory of all weights.
constexpr int64_t kMostGrowth = 4, kMostTogether = 2;

class WeightFolder {
public:
  WeightFolder(ModuleOp module, PassContext &context)
      : module_(module), symbols_(module), context_(context),
        training_(module->hasAttr(ops::kTrainingAttr)) {
    goOn();
  }

  void run(Folded which) {
    SmallVector<ir::ApplyOp> roots;
    // In program order, so that operands are known before their users.
    for (auto func : module_.getOps<func::FuncOp>())
      if (func != function_)
        func.walk<WalkOrder::PreOrder>([&](ir::ApplyOp apply) {
          if (dependsOnWeightsAlone(apply))
            known_.insert({apply, infoOf(apply)});
        });
    if (which == Folded::All)
      leaveOut();
    for (auto &[op, info] : known_)
      if (info.usesParam && (which == Folded::All ? isRoot(op) : isPassedOn(op)))
        roots.push_back(cast<ir::ApplyOp>(op));
    int64_t room = 0;
    for (auto param : module_.getOps<ir::ParamOp>())
      if (!param->hasAttr("sheaf.synthetic"))
        room += kMostTogether * cast<RankedTensorType>(param.getType()).getNumElements();
    for (Value folded : values_) // by an earlier run
      room -= cast<RankedTensorType>(folded.getType()).getNumElements();
    for (ir::ApplyOp root : roots) {
      // Equal expressions count each time: that errs on the safe side.
      for (Type type : root->getResultTypes())
        room -= cast<RankedTensorType>(type).getNumElements();
      if (room < 0) {
        context_.remark(root.getLoc(), root.getOp() + " depends on weights alone, but there is "
                                                      "more of that than of weights");
        break;
      }
      fold(root);
    }
    finish();
  }

private:
  struct Info {
    bool usesParam = false;
    bool computes = false; ///< not addressing alone
    bool reshapes = false; ///< addressing that packing weights cannot follow
    int64_t elements = 0;  ///< of the parameters it is made from
    unsigned number = 0;   ///< equal for equal expressions
  };

  /// What was folded before stays, and more follows.
  void goOn() {
    for (auto func : module_.getOps<func::FuncOp>())
      if (auto folded = func->getAttrOfType<ArrayAttr>(ir::kFoldedAttr)) {
        function_ = func;
        Operation *end = func.getBody().front().getTerminator();
        values_ = llvm::to_vector(end->getOperands());
        llvm::append_range(names_, folded.getAsRange<FlatSymbolRefAttr>());
        end->erase();
      }
  }

  bool dependsOnWeightsAlone(ir::ApplyOp apply) const {
    if (!isTensorCode(apply))
      return false;
    for (Type type : apply->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() > kMostElements)
        return false;
    }
    return llvm::all_of(apply->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return isa_and_nonnull<ir::ParamRefOp, arith::ConstantOp>(def) || known_.contains(def);
    });
  }

  Info infoOf(ir::ApplyOp apply) {
    Info info;
    std::string key;
    llvm::raw_string_ostream stream(key);
    stream << apply.getOp() << apply.getAttrs() << apply->getResultTypes();
    for (Value operand : apply->getOperands()) {
      Operation *def = operand.getDefiningOp();
      stream << ' ';
      if (auto it = known_.find(def); it != known_.end()) {
        info.usesParam |= it->second.usesParam;
        info.computes |= it->second.computes;
        info.reshapes |= it->second.reshapes;
        info.elements += it->second.elements;
        stream << '%' << it->second.number << '.' << cast<OpResult>(operand).getResultNumber();
      } else if (auto ref = dyn_cast<ir::ParamRefOp>(def)) {
        info.usesParam = true;
        info.elements += cast<RankedTensorType>(ref.getType()).getNumElements();
        stream << ref.getParamAttr();
      } else {
        stream << cast<arith::ConstantOp>(def).getValue();
      }
    }
    auto *movement = batchRule<ops::Movement>(apply);
    info.computes |= !movement && !isFill(apply);
    info.reshapes |=
        movement &&
        (movement->kind == ops::Movement::Concat ||
         (movement->kind == ops::Movement::Reshape && !(training_ && isBatchAsMatrix(apply))));
    info.elements = std::min(info.elements, kMostElements);
    info.number = numbers_.try_emplace(key, static_cast<unsigned>(numbers_.size())).first->second;
    return info;
  }

  /// One of which both packing a weight and its gradient follow: the rows of a batch of matrices
  /// as those of one.
  static bool isBatchAsMatrix(ir::ApplyOp reshape) {
    ArrayRef<int64_t> from = cast<RankedTensorType>(reshape.getOperand(0).getType()).getShape();
    ArrayRef<int64_t> to = cast<RankedTensorType>(reshape.getResult(0).getType()).getShape();
    return from.size() >= 3 && to.size() == 2 && from.back() == to.back();
  }

  /// What is not worth it stays where it is; what it is made of may be.
  void leaveOut() {
    auto operators = llvm::to_vector(llvm::make_first_range(known_));
    for (Operation *op : llvm::reverse(operators))
      if (isRoot(op) && known_[op].usesParam && !pays(op))
        known_.erase(op);
  }

  /// Whether something else than a larger expression of weights reads it.
  bool isRoot(Operation *op) const {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return !known_.contains(user); });
  }

  /// Whether a function may be given it, by itself or in a value.
  bool isPassedOn(Operation *op) const {
    bool is = llvm::any_of(op->getUsers(), [](Operation *user) {
      return isa<func::CallOp, ir::TupleOp, ir::ConstructOp, ir::ListMakeOp>(user);
    });
    return is && (!training_ || llvm::all_of(op->getResultTypes(), [](Type type) {
             return cast<RankedTensorType>(type).getElementType().isF32();
           }));
  }

  /// A product of records has its factors in memory anyway.
  bool isFactor(Operation *op) const {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return batchRule<ops::Product>(user) && !known_.contains(user);
    });
  }

  /// Addressing costs nothing where a product packs its right operand anyway. Parts that an index
  /// picks are read as they lie. In training parameters of f32 alone have gradients.
  bool pays(Operation *op) const {
    const Info &info = known_.find(op)->second;
    for (Type type : op->getResultTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      if ((tensor.getNumElements() > kMostGrowth * info.elements && !isFactor(op)) ||
          (training_ && !tensor.getElementType().isF32()))
        return false;
    }
    if (info.computes || info.reshapes)
      return true;
    return llvm::any_of(op->getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      auto *movement = batchRule<ops::Movement>(user);
      return use.getOperandNumber() == 0 &&
             (batchRule<ops::Product>(user) || batchRule<ops::HostAddress>(user) ||
              (movement && movement->kind == ops::Movement::Gather));
    });
  }

  void fold(ir::ApplyOp root) {
    for (OpResult result : root->getResults()) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : result.getUses())
        if (!known_.contains(use.getOwner()))
          uses.push_back(&use);
      if (uses.empty())
        continue;
      FlatSymbolRefAttr param = paramFor(root, result);
      OpBuilder builder(root);
      Value ref = ir::ParamRefOp::create(builder, root.getLoc(), result.getType(), param);
      for (OpOperand *use : uses)
        use->set(ref);
    }
  }

  FlatSymbolRefAttr paramFor(ir::ApplyOp root, OpResult result) {
    auto [it, isNew] = params_.try_emplace(
        {known_.find(root)->second.number, result.getResultNumber()}, FlatSymbolRefAttr());
    if (!isNew)
      return it->second;
    Location loc = root.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(module_.getBody());
    auto param = ir::ParamOp::create(builder, loc, "folded_" + std::to_string(values_.size()),
                                     cast<RankedTensorType>(result.getType()), "zeros",
                                     builder.getF64ArrayAttr({}));
    param->setAttr("sheaf.synthetic", builder.getUnitAttr());
    symbols_.insert(param);
    it->second = FlatSymbolRefAttr::get(param.getSymNameAttr());

    if (!function_) {
      function_ =
          func::FuncOp::create(builder, loc, "folded_weights", builder.getFunctionType({}, {}));
      function_.setPrivate();
      symbols_.insert(function_);
      function_.addEntryBlock();
    }
    values_.push_back(copy(result));
    names_.push_back(it->second);
    context_.remark(loc, root.getOp() + " depends on weights alone: " + param.getSymName() +
                             " is computed " +
                             (training_ ? "before each mini-batch" : "when they are loaded"));
    return it->second;
  }

  /// The expression of a value, in the function.
  Value copy(Value value) {
    SmallVector<Operation *> work{value.getDefiningOp()};
    OpBuilder builder = OpBuilder::atBlockEnd(&function_.getBody().front());
    while (!work.empty()) {
      Operation *op = work.back();
      size_t before = work.size();
      for (Value operand : op->getOperands())
        if (!map_.contains(operand))
          work.push_back(operand.getDefiningOp());
      if (work.size() > before)
        continue;
      work.pop_back();
      if (map_.contains(op->getResult(0)))
        continue;
      auto ref = dyn_cast<ir::ParamRefOp>(op);
      auto folded = ref ? llvm::find(names_, ref.getParamAttr()) : names_.end();
      if (folded != names_.end())
        map_.map(ref.getResult(), values_[folded - names_.begin()]);
      else
        builder.clone(*op, map_);
    }
    return map_.lookup(value);
  }

  void finish() {
    if (!function_)
      return;
    OpBuilder builder = OpBuilder::atBlockEnd(&function_.getBody().front());
    func::ReturnOp::create(builder, function_.getLoc(), values_);
    function_.setFunctionType(builder.getFunctionType({}, TypeRange(ValueRange(values_))));
    function_->setAttr(ir::kFoldedAttr,
                       builder.getArrayAttr(SmallVector<Attribute>(names_.begin(), names_.end())));
    // Users come before what they use.
    for (auto &[op, info] : llvm::reverse(known_))
      if (op->use_empty())
        op->erase();
  }

  ModuleOp module_;
  SymbolTable symbols_;
  PassContext &context_;
  const bool training_;
  llvm::MapVector<Operation *, Info> known_;
  std::map<std::string, unsigned> numbers_;
  std::map<std::pair<unsigned, unsigned>, FlatSymbolRefAttr> params_;
  func::FuncOp function_;
  IRMapping map_;
  SmallVector<Value> values_;
  SmallVector<FlatSymbolRefAttr> names_;
};

} // namespace

void foldWeights(ModuleOp module, PassContext &context, Folded which) {
  WeightFolder(module, context).run(which);
}

} // namespace sheaf::passes

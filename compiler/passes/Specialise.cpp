//===- Specialise.cpp - One clone of a function per parameters reaching it ===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/Casts.h"
#include "compiler/analysis/KnownValues.h"
#include "compiler/ir/Program.h"
#include "compiler/passes/Pass.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Clones of one function; more distinct tuples of parameters than this stay unspecialised.
constexpr unsigned kMaxClones = 256;
/// An argument that is made of more values than this is one value.
constexpr unsigned kMaxParts = 512;

/// What is known of an argument where a function is called: that it is a parameter (its name), or
/// which constructor, tuple or list it is made by, of what (its type, the constructor's number, the
/// parts); else its type.
class Form {
public:
  explicit Form(Value value) { attribute_ = describe(value); }

  /// Null when there is no parameter in it, or too much.
  Attribute attribute() const {
    return hasParam_ && parts_ <= kMaxParts ? attribute_ : Attribute();
  }
  /// How many values an argument of a form is made of.
  static unsigned partsOf(Attribute form) {
    auto parts = dyn_cast_or_null<ArrayAttr>(form);
    unsigned count = 1;
    for (Attribute part : parts ? parts.getValue().drop_front(2) : ArrayRef<Attribute>())
      count += partsOf(part);
    return count;
  }
  /// Of a constructor without fields, which holds no parameter, that it is this one.
  Attribute ending() const { return parts_ == 1 ? dyn_cast<ArrayAttr>(attribute_) : Attribute(); }
  /// What is not known of it, in order.
  ArrayRef<Value> rest() const { return rest_; }

private:
  Attribute describe(Value value) {
    if (++parts_ > kMaxParts)
      return {};
    if (auto ref = castSource(value).getDefiningOp<ir::ParamRefOp>()) {
      hasParam_ = true;
      return ref.getParamAttr();
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<ir::TupleOp, ir::ConstructOp, ir::ListMakeOp>(op)) {
      rest_.push_back(value);
      return TypeAttr::get(value.getType());
    }
    auto made = dyn_cast<ir::ConstructOp>(op);
    SmallVector<Attribute> parts = {
        TypeAttr::get(value.getType()),
        IntegerAttr::get(IntegerType::get(value.getContext(), 64), made ? made.getCtor() : 0)};
    for (Value operand : op->getOperands())
      parts.push_back(describe(operand));
    return parts_ > kMaxParts ? Attribute() : ArrayAttr::get(value.getContext(), parts);
  }

  Attribute attribute_;
  SmallVector<Value> rest_;
  unsigned parts_ = 0;
  bool hasParam_ = false;
};

class Specialiser {
public:
  Specialiser(ModuleOp module, PassContext &context) : symbols_(module), context_(context) {
    RewritePatternSet patterns(module.getContext());
    populateKnownValuePatterns(patterns);
    patterns_ = std::move(patterns);
    config_.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isPrivate())
        reach(func);
  }

  void run() {
    while (!work_.empty()) {
      func::FuncOp func = work_.pop_back_val();
      if (!cloned_.contains(func))
        originals_[func] = func.clone();
      // What is made of parameters comes apart where it is used: then they are seen there.
      if (makesOfParams(func) || isGivenParts(func))
        (void)applyPatternsGreedily(func, patterns_, config_);
      func.walk([&](func::CallOp call) { visit(call, func); });
    }
  }

private:
  /// A clone for arguments that hold parameters in fields or elements.
  bool isGivenParts(func::FuncOp func) const {
    auto it = cloned_.find(func);
    return it != cloned_.end() && llvm::any_of(it->second.forms, [](Attribute form) {
             return isa_and_nonnull<ArrayAttr>(form);
           });
  }

  void reach(func::FuncOp func) {
    if (reached_.insert(func).second)
      work_.push_back(func);
  }

  /// What a clone was made of, for what, and where it is first called.
  struct Clone {
    Operation *original = nullptr, *caller = nullptr;
    SmallVector<Attribute> forms;
  };

  /// Of the calls that led here the last of this function that made a clone; null when there is
  /// none.
  const Clone *lastCloneOf(Operation *original, Operation *caller) const {
    for (auto it = cloned_.find(caller); it != cloned_.end(); it = cloned_.find(it->second.caller))
      if (it->second.original == original)
        return &it->second;
    return nullptr;
  }

  void visit(func::CallOp call, func::FuncOp caller) {
    auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return;
    SmallVector<Attribute> forms;
    SmallVector<Value> operands;
    const Clone *before = lastCloneOf(callee, caller);
    for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
      Form form(operand);
      forms.push_back(form.attribute());
      // A recursion that makes ever more has no end of forms.
      unsigned parts = Form::partsOf(forms.back());
      if (before && parts > 1 && parts > Form::partsOf(before->forms[i]))
        forms.back() = {};
      // A chain of values that hold parameters ends with one that holds none.
      if (!forms.back() && isTakenApart(callee, i))
        forms.back() = form.ending();
      if (forms.back())
        llvm::append_range(operands, form.rest());
      else
        operands.push_back(operand);
    }
    if (llvm::none_of(forms, [](Attribute form) { return form; }))
      return reach(callee);
    func::FuncOp clone = cloneFor(call, caller, callee, forms);
    if (!clone)
      return reach(callee);
    call.setCallee(clone.getName());
    call->setOperands(operands);
    reach(clone);
  }

  /// Whether there are clones for what an argument is made of.
  bool isTakenApart(func::FuncOp callee, size_t argument) {
    return llvm::any_of(clones_[callee], [&](const auto &clone) {
      return isa_and_nonnull<ArrayAttr>(clone.first[argument]);
    });
  }

  func::FuncOp cloneFor(func::CallOp call, func::FuncOp caller, func::FuncOp callee,
                        ArrayRef<Attribute> forms) {
    auto &clones = clones_[callee];
    for (auto &[key, clone] : clones)
      if (ArrayRef(key) == forms)
        return clone;
    if (clones.size() == kMaxClones) {
      context_.remark(call.getLoc(), "call of " + callee.getName() + " not specialised: it has " +
                                         Twine(kMaxClones) +
                                         " clones already; its weights are treated as different "
                                         "from instance to instance");
      return {};
    }
    // As it was before its own calls went to clones.
    auto original = originals_.find(callee);
    func::FuncOp clone = (original == originals_.end() ? callee : *original->second).clone();
    cloned_[clone] = {callee, caller, SmallVector<Attribute>(forms)};
    clone.setPrivate();
    // The table renames the clone: names stay unique.
    symbols_.insert(clone, Block::iterator(callee->getNextNode()));
    clones.push_back({SmallVector<Attribute>(forms), clone});

    Block &body = clone.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    std::string names;
    for (auto [i, form] : llvm::enumerate(forms)) {
      BlockArgument argument = body.getArgument(i);
      if (!form) {
        argument.replaceAllUsesWith(body.addArgument(argument.getType(), argument.getLoc()));
      } else {
        Value made = make(form, body, builder, clone.getLoc(), names);
        // The argument's type may leave extents open that the parameter's type knows.
        if (isa<RankedTensorType>(argument.getType()))
          made = makeCast(builder, clone.getLoc(), made, argument.getType());
        argument.replaceAllUsesWith(made);
      }
    }
    body.eraseArguments(0, forms.size());
    clone.setFunctionType(
        builder.getFunctionType(body.getArgumentTypes(), clone.getFunctionType().getResults()));
    context_.remark(call.getLoc(),
                    callee.getName() + " cloned as " + clone.getName() + " for " + names);
    return clone;
  }

  /// Makes a value of this form; what is not known of it becomes an argument of the body.
  Value make(Attribute form, Block &body, OpBuilder &builder, Location loc, std::string &names) {
    if (auto name = dyn_cast<FlatSymbolRefAttr>(form)) {
      names += (names.empty() ? "" : ", ") + name.getValue().str();
      return ir::ParamRefOp::create(builder, loc,
                                    symbols_.lookup<ir::ParamOp>(name.getAttr()).getType(), name);
    }
    if (auto type = dyn_cast<TypeAttr>(form))
      return body.addArgument(type.getValue(), loc);
    auto parts = cast<ArrayAttr>(form);
    Type type = cast<TypeAttr>(parts[0]).getValue();
    SmallVector<Value> values;
    for (Attribute part : parts.getValue().drop_front(2))
      values.push_back(make(part, body, builder, loc, names));
    if (isa<TupleType>(type))
      return ir::TupleOp::create(builder, loc, type, values);
    if (isa<ir::ListType>(type))
      return ir::ListMakeOp::create(builder, loc, type, values);
    return ir::ConstructOp::create(builder, loc, type, cast<IntegerAttr>(parts[1]), values);
  }

  SymbolTable symbols_;
  PassContext &context_;
  FrozenRewritePatternSet patterns_;
  GreedyRewriteConfig config_;
  SmallVector<func::FuncOp> work_;
  llvm::DenseMap<Operation *, OwningOpRef<func::FuncOp>> originals_;
  llvm::DenseMap<Operation *, Clone> cloned_;
  llvm::DenseSet<Operation *> reached_;
  llvm::DenseMap<Operation *, SmallVector<std::pair<SmallVector<Attribute>, func::FuncOp>>> clones_;
};

LogicalResult specialise(ModuleOp module, PassContext &context) {
  Specialiser(module, context).run();
  dropUnreachable(module);
  return success();
}

} // namespace

PassRecord specialisePass() {
  return {.name = "specialise",
          .description =
              "Clones functions per distinct tuple of parameters passed to them, through recursion "
              "and loops, so that inside each clone a weight is known to be the same for the whole "
              "batch.",
          .run = specialise};
}

} // namespace sheaf::passes

//===- Specialise.cpp - One clone of a function per parameters reaching it ===//

#include "compiler/ir/Program.h"
#include "compiler/passes/CallGraph.h"
#include "compiler/passes/Casts.h"
#include "compiler/passes/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Clones of one function; more distinct tuples of parameters than this stay unspecialised.
constexpr unsigned kMaxClones = 256;

class Specialiser {
public:
  Specialiser(ModuleOp module, PassContext &context) : symbols_(module), context_(context) {
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isPrivate())
        reach(func);
  }

  void run() {
    while (!work_.empty()) {
      func::FuncOp func = work_.pop_back_val();
      func.walk([&](func::CallOp call) { visit(call); });
    }
  }

private:
  /// For each argument the parameter it is, or null.
  using Key = std::pair<Operation *, SmallVector<Attribute>>;

  void reach(func::FuncOp func) {
    if (reached_.insert(func).second)
      work_.push_back(func);
  }

  void visit(func::CallOp call) {
    auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return;
    SmallVector<Attribute> params;
    bool any = false;
    for (Value operand : call.getOperands()) {
      auto ref = castSource(operand).getDefiningOp<ir::ParamRefOp>();
      params.push_back(ref ? Attribute(ref.getParamAttr()) : Attribute());
      any |= static_cast<bool>(ref);
    }
    if (!any)
      return reach(callee);
    func::FuncOp clone = cloneFor(call, callee, params);
    if (!clone)
      return reach(callee);
    call.setCallee(clone.getName());
    BitVector drop(params.size());
    for (auto [i, param] : llvm::enumerate(params))
      if (param)
        drop.set(i);
    call->eraseOperands(drop);
    reach(clone);
  }

  func::FuncOp cloneFor(func::CallOp call, func::FuncOp callee, ArrayRef<Attribute> params) {
    auto &clones = clones_[callee];
    for (auto &[key, clone] : clones)
      if (ArrayRef(key) == params)
        return clone;
    if (clones.size() == kMaxClones) {
      context_.remark(call.getLoc(), "call of " + callee.getName() + " not specialised: it has " +
                                         Twine(kMaxClones) +
                                         " clones already; its weights are treated as different "
                                         "from instance to instance");
      return {};
    }
    func::FuncOp clone = callee.clone();
    clone.setPrivate();
    // The table renames the clone: names stay unique.
    symbols_.insert(clone, Block::iterator(callee->getNextNode()));
    clones.push_back({SmallVector<Attribute>(params), clone});

    Block &body = clone.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    BitVector drop(params.size());
    std::string names;
    for (auto [i, param] : llvm::enumerate(params)) {
      if (!param)
        continue;
      drop.set(i);
      BlockArgument argument = body.getArgument(i);
      auto name = cast<FlatSymbolRefAttr>(param);
      Value ref = ir::ParamRefOp::create(
          builder, clone.getLoc(), symbols_.lookup<ir::ParamOp>(name.getAttr()).getType(), name);
      // The argument's type may leave extents open that the parameter's type knows.
      argument.replaceAllUsesWith(makeCast(builder, clone.getLoc(), ref, argument.getType()));
      names += (names.empty() ? "" : ", ") + cast<FlatSymbolRefAttr>(param).getValue().str();
    }
    if (failed(clone.eraseArguments(drop)))
      llvm_unreachable("arguments without uses");
    context_.remark(call.getLoc(),
                    callee.getName() + " cloned as " + clone.getName() + " for " + names);
    return clone;
  }

  SymbolTable symbols_;
  PassContext &context_;
  SmallVector<func::FuncOp> work_;
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

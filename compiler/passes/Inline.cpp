//===- Inline.cpp - Puts small functions into their callers ---------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/ir/Program.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// A function of at most this many operations goes into every caller.
constexpr int64_t kSmall = 200;
/// All inlining together may grow the program by this factor and this many operations.
constexpr int64_t kGrowthFactor = 8, kGrowthSlack = 4000;
/// Regions are walked recursively: inlining must not nest them without bound.
constexpr int64_t kMaxNesting = 600;
/// So many calls around it an operator remembers: locations are walked recursively, too.
constexpr int64_t kToldCalls = 64;

int64_t callsAround(Location location) {
  int64_t calls = 0;
  for (; auto call = dyn_cast<CallSiteLoc>(location); location = call.getCallee())
    ++calls;
  return calls;
}

int64_t sizeOf(func::FuncOp func) {
  int64_t size = 0;
  func.walk([&](Operation *) { ++size; });
  return size;
}

int64_t nestingOf(Operation *op) {
  int64_t depth = 0;
  for (; op && !isa<func::FuncOp>(op); op = op->getParentOp())
    ++depth;
  return depth;
}

int64_t heightOf(func::FuncOp func) {
  int64_t height = 0;
  func.walk([&](Operation *op) {
    if (op->getNumRegions() == 0)
      height = std::max(height, nestingOf(op));
  });
  return height;
}

class Inliner {
public:
  Inliner(ModuleOp module, PassContext &context)
      : symbols_(module), graph_(module), context_(context) {
    for (func::FuncOp func : graph_.bottomUp()) {
      size_[func] = sizeOf(func);
      height_[func] = heightOf(func);
      total_ += size_[func];
      func.walk([&](func::CallOp call) { ++sites_[calleeOf(call)]; });
    }
    limit_ = total_ * kGrowthFactor + kGrowthSlack;
  }

  void run() {
    for (func::FuncOp func : graph_.bottomUp()) {
      // Bodies that come in have had their own calls inlined: one look at each call is enough.
      SmallVector<func::CallOp> calls;
      func.walk([&](func::CallOp call) { calls.push_back(call); });
      for (func::CallOp call : calls)
        consider(func, call);
      height_[func] = heightOf(func);
    }
  }

private:
  func::FuncOp calleeOf(func::CallOp call) {
    return symbols_.lookup<func::FuncOp>(call.getCallee());
  }

  void consider(func::FuncOp caller, func::CallOp call) {
    func::FuncOp callee = calleeOf(call);
    if (!callee || callee.isExternal() || graph_.isRecursive(callee))
      return;
    bool only = callee.isPrivate() && sites_[callee] == 1;
    auto decline = [&](const Twine &why) {
      context_.remark(call.getLoc(), "call of " + callee.getName() + " not inlined: " + why);
    };
    if (!only && size_[callee] > kSmall)
      return decline("it has " + Twine(size_[callee]) + " operations (limit " + Twine(kSmall) +
                     ") and other callers");
    if (!only && total_ + size_[callee] > limit_)
      return decline("the program has grown to its limit of " + Twine(limit_) + " operations");
    if (nestingOf(call) + height_[callee] > kMaxNesting)
      return decline("regions would nest too deep");
    context_.remark(call.getLoc(), callee.getName() + " inlined into " + caller.getName());
    inlineCall(call, callee);
    size_[caller] += size_[callee];
    total_ += size_[callee];
    --sites_[callee];
    callee.walk([&](func::CallOp inner) { ++sites_[calleeOf(inner)]; });
  }

  static void inlineCall(func::CallOp call, func::FuncOp callee) {
    OpBuilder builder(call);
    IRMapping map;
    Block &body = callee.getBody().front();
    map.map(body.getArguments(), call.getOperands());
    for (Operation &op : body.without_terminator())
      builder.clone(op, map)->walk([&](Operation *inner) {
        // Reads are found again by their path. Of others it is told to people.
        if (isa<ir::ReadOp>(inner) ||
            (isa<ir::ApplyOp, func::CallOp>(inner) && callsAround(inner->getLoc()) < kToldCalls))
          inner->setLoc(ir::inlinedAt(inner->getLoc(), callee, call.getLoc()));
      });
    for (auto [result, value] : llvm::zip(call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    call.erase();
  }

  SymbolTable symbols_;
  CallGraph graph_;
  PassContext &context_;
  llvm::DenseMap<Operation *, int64_t> size_, height_, sites_;
  int64_t total_ = 0, limit_ = 0;
};

LogicalResult inlineCalls(ModuleOp module, PassContext &context) {
  dropUnreachable(module);
  Inliner(module, context).run();
  dropUnreachable(module);
  return success();
}

} // namespace

PassRecord inlinePass() {
  return {.name = "inline",
          .description =
              "Puts the bodies of functions that do not call themselves in place of their calls: "
              "always when there is one call, else up to a size. Blocks then reach across what "
              "were function boundaries. Drops functions that nothing calls.",
          .run = inlineCalls};
}

} // namespace sheaf::passes

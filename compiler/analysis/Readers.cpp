//===- Readers.cpp - What may wait for a tensor, or emit ------------------===//

#include "compiler/analysis/Readers.h"
#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/Forks.h"
#include "compiler/ir/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace sheaf::passes {

static bool has(Operation *root, llvm::function_ref<bool(Operation *)> wanted) {
  return root
      ->walk([&](Operation *op) {
        return wanted(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Readers::Readers(ModuleOp module) : symbols_(module) {
  CallGraph graph(module);
  reading_ = graph.readers();
  emitting_ = graph.emitters();
}

bool Readers::reads(Operation *root) const {
  return has(root, [&](Operation *op) { return isa<ir::ReadOp>(op) || isReadingCall(op); });
}

bool Readers::callsReader(Operation *root) const {
  return has(root, [&](Operation *op) { return isReadingCall(op); });
}

bool Readers::emits(Operation *root) const {
  return has(root, [&](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    return isa<ir::EmitOp>(op) || (call && emitting_.contains(symbols_.lookup(call.getCallee())));
  });
}

bool Readers::isReadingCall(Operation *op) const {
  // A fork may be of a function that was made since.
  auto call = dyn_cast<func::CallOp>(op);
  return call && (isForked(call) || reading_.contains(symbols_.lookup(call.getCallee())));
}

} // namespace sheaf::passes

//===- EmitForks.cpp - Calls beside the one that makes them ---------------===//

#include "compiler/host/Emitter.h"

using namespace mlir;

namespace sheaf::host {

FunctionEmitter::Fork FunctionEmitter::startFork(func::CallOp call) {
  func::FuncOp callee = m_.function(call.getCallee()).source;
  Slots args;
  for (auto [operand, type] : llvm::zip(call.getOperands(), callee.getArgumentTypes()))
    args.append(as(operand, type));
  size_t results = slotTypes(callee.getResultTypes(), m_.context).size();
  llvm::Value *memory =
      callRuntime("sheaf_alloc", b_.getPtrTy(),
                  static_cast<llvm::Value *>(i64(static_cast<int64_t>(args.size() + results))));
  store(memory, args);
  llvm::Value *out = slotAt(memory, static_cast<int64_t>(args.size()));
  // It may run at once, on this stack.
  bool saved = saveRoots(call, /*own=*/false);
  llvm::Value *task =
      callRuntime("sheaf_fork", b_.getPtrTy(),
                  static_cast<llvm::Value *>(m_.thunk(call.getCallee())), memory, out);
  dropRoots(saved);
  return {task, out};
}

void FunctionEmitter::emitFork(func::CallOp call) { forks_[call] = startFork(call); }

void FunctionEmitter::emitForkedArms(ArrayRef<Arm> arms, Operation *op) {
  llvm::BasicBlock *meet = newBlock("forked");
  SmallVector<std::pair<Fork, llvm::BasicBlock *>> incoming;
  for (const Arm &arm : arms) {
    b_.SetInsertPoint(arm.entry);
    if (auto match = dyn_cast<ir::MatchOp>(op))
      bindFields(match, *arm.block);
    Fork fork;
    if (auto call = dyn_cast<func::CallOp>(arm.block->front());
        call && isForked(call) && call.getResultTypes() == op->getResultTypes()) {
      fork = startFork(call);
    } else {
      Slots slots = emitRegion(*arm.block, op->getResultTypes());
      fork = {llvm::ConstantPointerNull::get(b_.getPtrTy()),
              callRuntime("sheaf_alloc", b_.getPtrTy(),
                          static_cast<llvm::Value *>(i64(static_cast<int64_t>(slots.size()))))};
      store(fork.results, slots);
    }
    incoming.push_back({fork, b_.GetInsertBlock()});
    b_.CreateBr(meet);
  }
  b_.SetInsertPoint(meet);
  llvm::PHINode *task = b_.CreatePHI(b_.getPtrTy(), incoming.size());
  llvm::PHINode *results = b_.CreatePHI(b_.getPtrTy(), incoming.size());
  for (auto &[fork, from] : incoming) {
    task->addIncoming(fork.task, from);
    results->addIncoming(fork.results, from);
  }
  forks_[op] = {task, results};
}

TypeRange FunctionEmitter::forkedTypes(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return op->getResultTypes();
  func::FuncOp callee = m_.function(call.getCallee()).source;
  return callee.getResultTypes();
}

void FunctionEmitter::join(Operation *op, const Fork &fork, Operation *at, bool own) {
  bool saved = saveRoots(at, own);
  callRuntime("sheaf_join", b_.getVoidTy(), fork.task);
  dropRoots(saved);
  int64_t next = 0;
  for (auto [result, type] : llvm::zip(op->getResults(), forkedTypes(op))) {
    set(result, coerce(load(slotAt(fork.results, next), type), type, result.getType()));
    next += slotCount(type);
  }
}

void FunctionEmitter::joinForks(Operation *op, Operation *next) {
  if (forks_.empty())
    return;
  bool all = op->hasTrait<OpTrait::IsTerminator>();
  SmallVector<Operation *> joined;
  for (auto &[forked, fork] : forks_) {
    if (forked->getBlock() != op->getBlock())
      continue;
    bool used =
        llvm::any_of(forked->getUsers(), [&](Operation *user) { return op->isAncestor(user); });
    if (all || used)
      joined.push_back(forked);
  }
  for (Operation *forked : joined) {
    join(forked, forks_.lookup(forked), next ? next : op, /*own=*/true);
    forks_.erase(forked);
  }
}

/// All calls of a map whose body is one call: all are started before the first is joined.
void FunctionEmitter::emitForkedMap(ir::MapOp op, func::CallOp call) {
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Block &body = op.getBody().front();
  Type from = cast<ir::ListType>(op.getList().getType()).getElement();
  Type to = cast<ir::ListType>(op.getResult().getType()).getElement();
  llvm::Value *result = newList(to, size), *out = listElements(result);
  // Two slots an element: the task, and where its results will be.
  llvm::Value *started = callRuntime("sheaf_alloc", b_.getPtrTy(), b_.CreateMul(size, i64(2)));
  auto forksFrom = [&](llvm::Value *place, llvm::Value *count) {
    partial_.push_back({{rt::RootDesc::Forks, forkedType(call)}, {place, count}});
  };
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    bindElement(body.getArgument(0), load(slotAt(in, b_.CreateMul(i, i64(slotCount(from)))), from),
                from);
    bindNumber(body, 1, i);
    forksFrom(started, i);
    partial_.push_back({{rt::RootDesc::List, to}, {result, i64(0)}});
    Fork fork = startFork(call);
    partial_.pop_back_n(2);
    store(slotAt(started, b_.CreateMul(i, i64(2))), {fork.task, fork.results});
    return Slots();
  });
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    llvm::Value *place = slotAt(started, b_.CreateMul(i, i64(2)));
    forksFrom(place, b_.CreateSub(size, i));
    partial_.push_back({{rt::RootDesc::List, to}, {result, i}});
    join(call,
         {b_.CreateLoad(b_.getPtrTy(), place), b_.CreateLoad(b_.getPtrTy(), slotAt(place, 1))}, op,
         /*own=*/false);
    partial_.pop_back_n(2);
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(to)))), as(call.getResult(0), to));
    return Slots();
  });
  set(op.getResult(), {result});
}

} // namespace sheaf::host

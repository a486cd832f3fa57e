//===- EmitForks.cpp - Calls beside the one that makes them ---------------===//

#include "compiler/host/Emitter.h"

using namespace mlir;

namespace sheaf::host {

FunctionEmitter::Place FunctionEmitter::placeOf(Value value) {
  SmallVector<ir::GetOp> path;
  while (auto get = value.getDefiningOp<ir::GetOp>()) {
    path.push_back(get);
    value = get.getTuple();
  }
  auto result = dyn_cast<OpResult>(value);
  if (!result || !forks_.contains(result.getOwner()))
    return {};
  Place place{result.getOwner()};
  auto enter = [&](TypeRange types, unsigned number) {
    for (Type before : types.take_front(number))
      place.slot += slotCount(before);
    place.type = types[number];
  };
  enter(forkedTypes(place.forked), result.getResultNumber());
  for (ir::GetOp get : llvm::reverse(path))
    enter(cast<TupleType>(place.type).getTypes(), get.getIndex());
  return place;
}

FunctionEmitter::Fork FunctionEmitter::startFork(func::CallOp call, Operation *op) {
  func::FuncOp callee = m_.function(call.getCallee()).source;
  Slots args;
  std::vector<Root> roots;
  Awaited awaited;
  llvm::MapVector<Operation *, SmallVector<Place>> forks;
  for (auto [operand, type] : llvm::zip(call.getOperands(), callee.getArgumentTypes())) {
    std::optional<Awaited::Argument> &argument = awaited.arguments.emplace_back();
    if (Place place = placeOf(operand); place.forked) {
      forks[place.forked].push_back(place);
      auto fork = forks.find(place.forked) - forks.begin();
      argument = {static_cast<unsigned>(fork), place.slot, place.type};
    } else {
      args.append(as(operand, type));
      roots.push_back({rt::RootDesc::Value, type});
    }
  }
  for (auto &[forked, taken] : forks) {
    const Fork &fork = forks_.find(forked)->second;
    args.append({fork.task, fork.results});
    roots.push_back({rt::RootDesc::Fork, takenType(std::move(taken), call.getContext())});
  }
  awaited.forks = static_cast<unsigned>(forks.size());
  forgetTaken(op);
  llvm::BasicBlock *forked = nullptr, *meet = nullptr;
  SmallVector<std::pair<Fork, llvm::BasicBlock *>> either;
  if (forks.empty()) {
    llvm::BasicBlock *here = newBlock("in.place");
    forked = newBlock("fork");
    meet = newBlock("started");
    b_.CreateCondBr(asksToFork(), forked, here);
    b_.SetInsertPoint(here);
    Fork fork = callInPlace(call);
    either.push_back({fork, b_.GetInsertBlock()});
    b_.CreateBr(meet);
    b_.SetInsertPoint(forked);
  }
  // With arguments that it waits for, the others stand in a frame that says what they are.
  if (!forks.empty())
    args.insert(args.begin(), {llvm::ConstantPointerNull::get(b_.getPtrTy()),
                               i64(m_.rootPlace(std::move(roots)))});
  auto results = static_cast<int64_t>(slotTypes(callee.getResultTypes(), m_.context).size());
  llvm::Value *out =
      callRuntime("sheaf_alloc", b_.getPtrTy(),
                  static_cast<llvm::Value *>(i64(results + static_cast<int64_t>(args.size()))));
  llvm::Value *memory = slotAt(out, results);
  store(memory, args);
  // It may run at once, on this stack.
  bool saved = saveRoots(call, /*own=*/false);
  llvm::Value *task =
      forks.empty()
          ? callRuntime("sheaf_fork", b_.getPtrTy(),
                        static_cast<llvm::Value *>(m_.thunk(call.getCallee())), memory, out)
          : callRuntime("sheaf_fork_behind", b_.getPtrTy(),
                        static_cast<llvm::Value *>(m_.thunk(call.getCallee(), awaited)), memory,
                        out, slotAt(memory, static_cast<int64_t>(args.size() - 2 * forks.size())),
                        static_cast<llvm::Value *>(i64(static_cast<int64_t>(forks.size()))));
  dropRoots(saved);
  if (!meet)
    return {task, out};
  either.push_back({Fork{task, out}, b_.GetInsertBlock()});
  b_.CreateBr(meet);
  b_.SetInsertPoint(meet);
  return eitherFork(either);
}

llvm::Value *FunctionEmitter::asksToFork() {
  return b_.CreateIsNotNull(callRuntime("sheaf_forks", b_.getInt32Ty()));
}

FunctionEmitter::Fork FunctionEmitter::callInPlace(func::CallOp call) {
  return doneFork(callPlainly(call, /*tail=*/false));
}

FunctionEmitter::Fork FunctionEmitter::doneFork(ArrayRef<llvm::Value *> results) {
  llvm::Value *count = i64(static_cast<int64_t>(results.size()));
  Fork fork{llvm::ConstantPointerNull::get(b_.getPtrTy()),
            callRuntime("sheaf_alloc", b_.getPtrTy(), count)};
  store(fork.results, results);
  return fork;
}

/// The one that comes from where control does.
FunctionEmitter::Fork
FunctionEmitter::eitherFork(ArrayRef<std::pair<Fork, llvm::BasicBlock *>> incoming) {
  auto count = static_cast<unsigned>(incoming.size());
  llvm::PHINode *task = b_.CreatePHI(b_.getPtrTy(), count);
  llvm::PHINode *results = b_.CreatePHI(b_.getPtrTy(), count);
  for (auto &[fork, from] : incoming) {
    task->addIncoming(fork.task, from);
    results->addIncoming(fork.results, from);
  }
  return {task, results};
}

void FunctionEmitter::runWaiting(const Awaited &awaited, llvm::Function *thunk) {
  llvm::Function *code = function_.code;
  b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "entry", code));
  ctx_ = code->getArg(0);
  func::FuncOp source = function_.source;
  ArrayRef<Type> types = source.getArgumentTypes();
  llvm::Value *memory = code->getArg(1), *frame = slotAt(memory, -kRootHeaderSlots);
  linkRoots(frame);
  int64_t next = 0;
  for (auto [type, argument] : llvm::zip(types, awaited.arguments))
    next += argument ? 0 : slotCount(type);
  SmallVector<llvm::Value *> results;
  for (unsigned i = 0; i < awaited.forks; ++i) {
    callRuntime("sheaf_join", b_.getVoidTy(),
                static_cast<llvm::Value *>(b_.CreateLoad(b_.getPtrTy(), slotAt(memory, next++))));
    results.push_back(b_.CreateLoad(b_.getPtrTy(), slotAt(memory, next++)));
  }
  unlinkRoots(frame);
  Slots args;
  next = 0;
  for (auto [type, argument] : llvm::zip(types, awaited.arguments)) {
    if (argument) {
      Slots there = load(slotAt(results[argument->fork], argument->slot), argument->type);
      args.append(coerce(there, argument->type, type));
    } else {
      args.append(load(slotAt(memory, next), type));
      next += slotCount(type);
    }
  }
  llvm::Value *all = temporary(static_cast<int64_t>(args.size()));
  store(all, args);
  b_.CreateCall(thunk, {ctx_, all, code->getArg(2)});
  b_.CreateRetVoid();
}

void FunctionEmitter::emitFork(func::CallOp call) { openFork(call, startFork(call, call)); }

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
      fork = startFork(call, op);
    } else {
      Slots slots = emitRegion(*arm.block, op->getResultTypes());
      fork = doneFork(slots);
      forgetTaken(op);
    }
    incoming.push_back({fork, b_.GetInsertBlock()});
    b_.CreateBr(meet);
  }
  b_.SetInsertPoint(meet);
  openFork(op, eitherFork(incoming));
}

TypeRange FunctionEmitter::forkedTypes(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return op->getResultTypes();
  func::FuncOp callee = m_.function(call.getCallee()).source;
  return callee.getResultTypes();
}

void FunctionEmitter::takeResults(Operation *op, const Fork &fork) {
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
    if (all || passes::waitsFor(op, forked))
      joined.push_back(forked);
  }
  if (joined.empty())
    return;
  // What the first leaves is needed while the others are waited for, so they stay open.
  bool saved = saveRoots(next ? next : op, /*own=*/true);
  for (Operation *forked : joined)
    join(forks_.find(forked)->second);
  dropRoots(saved);
  for (Operation *forked : joined) {
    takeResults(forked, forks_.find(forked)->second);
    closeFork(forked);
    for (Operation *part : passes::partsOf(forked))
      if (part != forked && part->isBeforeInBlock(op))
        emitGet(cast<ir::GetOp>(part));
  }
}

/// A map whose body is one call. As long as enough wait, they are plain calls, one after the other.
/// From where that is no longer so all are started before the first is joined, the last as a plain
/// call: nothing is left to do beside it.
void FunctionEmitter::emitForkedMap(ir::MapOp op, func::CallOp call) {
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Block &body = op.getBody().front();
  Type from = cast<ir::ListType>(op.getList().getType()).getElement();
  Type to = cast<ir::ListType>(op.getResult().getType()).getElement();
  llvm::Value *result = newList(to, size), *out = listElements(result);
  auto left = TupleType::get(op.getContext(), forkedTypes(call));
  auto bind = [&](llvm::Value *i) {
    bindElement(body.getArgument(0), load(slotAt(in, b_.CreateMul(i, i64(slotCount(from)))), from),
                from);
    bindNumber(body, 1, i);
  };
  auto put = [&](llvm::Value *i, ArrayRef<llvm::Value *> value) {
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(to)))), coerce(value, left.getType(0), to));
  };
  auto isThere = [&](llvm::Value *count) {
    partial_.push_back({{rt::RootDesc::List, to}, {result, count}});
  };

  llvm::BasicBlock *before = b_.GetInsertBlock(), *next = newBlock("next"), *ask = newBlock("ask"),
                   *plain = newBlock("plain"), *rest = newBlock("rest");
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  llvm::PHINode *first = b_.CreatePHI(b_.getInt64Ty(), 2);
  first->addIncoming(i64(0), before);
  b_.CreateCondBr(b_.CreateICmpSLT(first, size), ask, rest);
  b_.SetInsertPoint(ask);
  b_.CreateCondBr(asksToFork(), rest, plain);
  b_.SetInsertPoint(plain);
  bind(first);
  isThere(first);
  put(first, callPlainly(call, /*tail=*/false));
  partial_.pop_back();
  first->addIncoming(b_.CreateAdd(first, i64(1), "", true, true), b_.GetInsertBlock());
  b_.CreateBr(next);
  b_.SetInsertPoint(rest);

  // Two slots an element: the task, and where its results will be.
  llvm::Value *more = b_.CreateSub(size, first);
  llvm::Value *started = callRuntime("sheaf_alloc", b_.getPtrTy(), b_.CreateMul(more, i64(2)));
  auto placeOf = [&](llvm::Value *k) { return slotAt(started, b_.CreateMul(k, i64(2))); };
  auto forksFrom = [&](llvm::Value *place, llvm::Value *count) {
    partial_.push_back({{rt::RootDesc::Forks, left}, {place, count}});
  };
  auto start = [&](llvm::Value *k, llvm::function_ref<Fork()> how) {
    bind(b_.CreateAdd(first, k));
    forksFrom(started, k);
    isThere(first);
    Fork fork = how();
    partial_.pop_back_n(2);
    store(placeOf(k), {fork.task, fork.results});
  };
  llvm::Value *any = b_.CreateZExt(b_.CreateICmpNE(more, i64(0)), b_.getInt64Ty());
  llvm::Value *last = b_.CreateSub(more, any);
  loop(last, {}, [&](llvm::Value *k, ArrayRef<llvm::Value *>) {
    start(k, [&] { return startFork(call, call); });
    return Slots();
  });
  loop(any, {}, [&](llvm::Value *, ArrayRef<llvm::Value *>) {
    start(last, [&] { return callInPlace(call); });
    return Slots();
  });
  loop(more, {}, [&](llvm::Value *k, ArrayRef<llvm::Value *>) {
    llvm::Value *place = placeOf(k), *i = b_.CreateAdd(first, k);
    forksFrom(place, b_.CreateSub(more, k));
    isThere(i);
    Fork fork{b_.CreateLoad(b_.getPtrTy(), place), b_.CreateLoad(b_.getPtrTy(), slotAt(place, 1))};
    bool saved = saveRoots(op, /*own=*/false);
    join(fork);
    dropRoots(saved);
    partial_.pop_back_n(2);
    put(i, load(fork.results, left.getType(0)));
    return Slots();
  });
  set(op.getResult(), {result});
}

} // namespace sheaf::host

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
  forgetTaken(op);
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
  return {task, out};
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
      fork = {llvm::ConstantPointerNull::get(b_.getPtrTy()),
              callRuntime("sheaf_alloc", b_.getPtrTy(),
                          static_cast<llvm::Value *>(i64(static_cast<int64_t>(slots.size()))))};
      store(fork.results, slots);
      forgetTaken(op);
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
  openFork(op, {task, results});
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

/// All calls of a map whose body is one call: all are started before the first is joined.
void FunctionEmitter::emitForkedMap(ir::MapOp op, func::CallOp call) {
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Block &body = op.getBody().front();
  Type from = cast<ir::ListType>(op.getList().getType()).getElement();
  Type to = cast<ir::ListType>(op.getResult().getType()).getElement();
  llvm::Value *result = newList(to, size), *out = listElements(result);
  // Two slots an element: the task, and where its results will be.
  llvm::Value *started = callRuntime("sheaf_alloc", b_.getPtrTy(), b_.CreateMul(size, i64(2)));
  Type left = TupleType::get(op.getContext(), forkedTypes(call));
  auto forksFrom = [&](llvm::Value *place, llvm::Value *count) {
    partial_.push_back({{rt::RootDesc::Forks, left}, {place, count}});
  };
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    bindElement(body.getArgument(0), load(slotAt(in, b_.CreateMul(i, i64(slotCount(from)))), from),
                from);
    bindNumber(body, 1, i);
    forksFrom(started, i);
    partial_.push_back({{rt::RootDesc::List, to}, {result, i64(0)}});
    Fork fork = startFork(call, call);
    partial_.pop_back_n(2);
    store(slotAt(started, b_.CreateMul(i, i64(2))), {fork.task, fork.results});
    return Slots();
  });
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    llvm::Value *place = slotAt(started, b_.CreateMul(i, i64(2)));
    forksFrom(place, b_.CreateSub(size, i));
    partial_.push_back({{rt::RootDesc::List, to}, {result, i}});
    Fork fork{b_.CreateLoad(b_.getPtrTy(), place), b_.CreateLoad(b_.getPtrTy(), slotAt(place, 1))};
    bool saved = saveRoots(op, /*own=*/false);
    join(fork);
    dropRoots(saved);
    takeResults(call, fork);
    partial_.pop_back_n(2);
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(to)))), as(call.getResult(0), to));
    return Slots();
  });
  set(op.getResult(), {result});
}

} // namespace sheaf::host

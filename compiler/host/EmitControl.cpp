//===- EmitControl.cpp - Functions, branches and calls --------------------===//

#include "compiler/host/Emitter.h"

#include "runtime/model/error.h"

#include "llvm/IR/MDBuilder.h"

using namespace mlir;

namespace sheaf::host {

FunctionEmitter::FunctionEmitter(ModuleEmitter &module, const Function &function)
    : m_(module), function_(function), b_(module.context) {}

void FunctionEmitter::run() {
  func::FuncOp source = function_.source;
  llvm::Function *code = function_.code;
  b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "entry", code));
  unsigned next = 0;
  ctx_ = code->getArg(next++);
  if (function_.resultsInMemory)
    resultMemory_ = code->getArg(next++);
  SmallVector<llvm::Value *> args;
  while (next < code->arg_size())
    args.push_back(code->getArg(next++));
  Block &body = source.getBody().front();
  setAll(body.getArguments(), args);
  // Parts of other functions are neither calls nor frames of the program's own.
  if (function_.recursive && !source->hasAttr(ir::kOutlinedAttr)) {
    checkStack();
    countStep();
  }
  emitTail(body);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Slots FunctionEmitter::as(Value value, Type type) {
  return coerce(slots_.find(value)->second, value.getType(), type);
}

Slots FunctionEmitter::coerce(ArrayRef<llvm::Value *> slots, Type from, Type to) {
  if (from == to)
    return Slots(slots);
  Slots out;
  if (auto tuple = dyn_cast<TupleType>(from)) {
    for (auto [a, b] : llvm::zip(tuple.getTypes(), cast<TupleType>(to).getTypes())) {
      int64_t count = slotCount(a);
      out.append(coerce(slots.take_front(count), a, b));
      slots = slots.drop_front(count);
    }
    return out;
  }
  auto fromTensor = dyn_cast<RankedTensorType>(from), toTensor = dyn_cast<RankedTensorType>(to);
  if (!fromTensor || !toTensor)
    throw InternalError("host code meets a value of another type than is asked for");
  out.push_back(slots.front());
  for (auto [axis, extent] : llvm::enumerate(extents(fromTensor, slots)))
    if (toTensor.isDynamicDim(axis))
      out.push_back(extent);
  return out;
}

void FunctionEmitter::setAll(ValueRange values, ArrayRef<llvm::Value *> slots) {
  for (Value value : values) {
    int64_t count = slotCount(value.getType());
    set(value, Slots(slots.take_front(count)));
    slots = slots.drop_front(count);
  }
}

llvm::Value *FunctionEmitter::slotAt(llvm::Value *base, llvm::Value *index) {
  return b_.CreateInBoundsGEP(b_.getInt64Ty(), base, index);
}

Slots FunctionEmitter::load(llvm::Value *address, Type type) {
  Slots out;
  for (auto [i, slotType] : llvm::enumerate(slotTypes(type, m_.context)))
    out.push_back(fromSlot(b_, b_.CreateLoad(b_.getInt64Ty(), slotAt(address, i)), slotType));
  return out;
}

void FunctionEmitter::store(llvm::Value *address, ArrayRef<llvm::Value *> slots) {
  for (auto [i, value] : llvm::enumerate(slots))
    b_.CreateStore(toSlot(b_, value), slotAt(address, i));
}

llvm::AllocaInst *FunctionEmitter::inFrame(int64_t slots) {
  llvm::BasicBlock &entry = function_.code->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  return builder.CreateAlloca(b_.getInt64Ty(), i64(slots));
}

llvm::AllocaInst *FunctionEmitter::inFrame(llvm::AllocaInst *&memory, int64_t slots) {
  if (!memory)
    memory = inFrame(int64_t(1));
  if (slots > cast<llvm::ConstantInt>(memory->getArraySize())->getSExtValue())
    memory->setOperand(0, i64(slots));
  return memory;
}

llvm::BasicBlock *FunctionEmitter::newBlock(const char *name) {
  return llvm::BasicBlock::Create(m_.context, name, function_.code);
}

void FunctionEmitter::failHere(Location where, const llvm::Twine &text, llvm::Value *a,
                               llvm::Value *b) {
  llvm::CallInst *call = callRuntime("sheaf_fail", b_.getVoidTy(),
                                     static_cast<llvm::Value *>(i32(m_.message(where, text))),
                                     a ? a : i64(0), b ? b : i64(0));
  call->setDoesNotReturn();
  b_.CreateUnreachable();
}

void FunctionEmitter::require(llvm::Value *good, Location where, const llvm::Twine &text,
                              llvm::Value *a, llvm::Value *b) {
  if (auto *constant = dyn_cast<llvm::ConstantInt>(good); constant && constant->isOne())
    return;
  llvm::BasicBlock *goOn = newBlock("ok"), *fail = newBlock("fail");
  b_.CreateCondBr(good, goOn, fail, llvm::MDBuilder(m_.context).createLikelyBranchWeights());
  b_.SetInsertPoint(fail);
  failHere(where, text, a, b);
  b_.SetInsertPoint(goOn);
}

//===----------------------------------------------------------------------===//
// Functions and regions
//===----------------------------------------------------------------------===//

void FunctionEmitter::checkStack() {
  func::FuncOp source = function_.source;
  llvm::Type *ptr = b_.getPtrTy();
  llvm::Value *frame = b_.CreateIntrinsic(llvm::Intrinsic::frameaddress, {ptr}, {i32(0)});
  llvm::Value *taken = b_.CreateLoad(ptr, contextField(offsetof(rt::Context, stackTaken)));
  llvm::BasicBlock *goOn = newBlock("ok"), *deeper = newBlock("deeper");
  b_.CreateCondBr(b_.CreateICmpUGT(frame, taken), goOn, deeper,
                  llvm::MDBuilder(m_.context).createLikelyBranchWeights());
  b_.SetInsertPoint(deeper);
  llvm::Value *elsewhere = callRuntime(
      "sheaf_deepen", b_.getInt32Ty(), frame,
      static_cast<llvm::Value *>(i32(m_.message(
          source.getLoc(), "the recursion is too deep: the host stack of {stack} is used up"))));
  if (m_.reads) {
    llvm::BasicBlock *further = newBlock("further");
    b_.CreateCondBr(b_.CreateICmpEQ(elsewhere, i32(0)), goOn, further);
    b_.SetInsertPoint(further);
    SmallVector<llvm::Value *> args(llvm::make_pointer_range(function_.code->args()));
    emitTailCall(m_.goOn(function_), args);
  } else {
    b_.CreateBr(goOn);
  }
  b_.SetInsertPoint(goOn);
}

void FunctionEmitter::countStep() {
  func::FuncOp source = function_.source;
  countDown(offsetof(rt::Context, stepsLeft), [&] {
    return callRuntime(
        "sheaf_more_steps", b_.getVoidTy(),
        static_cast<llvm::Value *>(i32(m_.message(
            source.getLoc(), "no end in sight: {steps} calls of recursive functions were made"))));
  });
}

void FunctionEmitter::countRound() {
  countDown(offsetof(rt::Context, roundsLeft),
            [&] { return callRuntime("sheaf_more_rounds", b_.getVoidTy()); });
}

/// One less of a member of rt::Context, and when none is left, which is seldom, a call.
void FunctionEmitter::countDown(size_t member, llvm::function_ref<llvm::CallInst *()> usedUp) {
  llvm::Value *field = contextField(member);
  llvm::Value *left = b_.CreateSub(b_.CreateLoad(b_.getInt64Ty(), field), i64(1));
  b_.CreateStore(left, field);
  llvm::BasicBlock *goOn = newBlock("ok"), *none = newBlock("none");
  b_.CreateCondBr(b_.CreateICmpSGT(left, i64(0)), goOn, none,
                  llvm::MDBuilder(m_.context).createLikelyBranchWeights());
  b_.SetInsertPoint(none);
  usedUp()->addFnAttr(llvm::Attribute::Cold);
  b_.CreateBr(goOn);
  b_.SetInsertPoint(goOn);
}

Operation *FunctionEmitter::tailOf(Block &block) {
  Operation *terminator = block.getTerminator();
  if (terminator->getNumOperands() == 0)
    return nullptr;
  Operation *op = terminator->getOperand(0).getDefiningOp();
  if (!op || op->getBlock() != &block ||
      ValueRange(op->getResults()) != terminator->getOperands() ||
      !llvm::all_of(op->getResults(), [](Value v) { return v.hasOneUse(); }))
    return nullptr;
  // It runs last: what stands after it must not be able to fail.
  for (Operation *next = op->getNextNode(); next != terminator; next = next->getNextNode())
    if (!next->hasTrait<OpTrait::ConstantLike>() && !isa<ir::ParamRefOp>(next))
      return nullptr;
  func::FuncOp source = function_.source;
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getResultTypes() == source.getResultTypes() ? op : nullptr;
  return isa<scf::IfOp, ir::MatchOp>(op) ? op : nullptr;
}

void FunctionEmitter::emitTail(Block &block) {
  // Nothing but the terminator uses the results of the tail operation, so it may run last.
  Operation *tail = tailOf(block);
  for (Operation &op : block.without_terminator())
    if (&op != tail)
      emit(&op);
  joinForks(block.getTerminator(), tail);
  if (tail)
    emitTailOp(tail);
  else
    emitReturn(block.getTerminator()->getOperands());
}

void FunctionEmitter::emitTailOp(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return emitCall(call, true);
  auto match = dyn_cast<ir::MatchOp>(op);
  for (const Arm &arm : match ? openMatch(match) : openIf(cast<scf::IfOp>(op))) {
    b_.SetInsertPoint(arm.entry);
    if (match)
      bindFields(match, *arm.block);
    emitTail(*arm.block);
  }
}

Slots FunctionEmitter::emitRegion(Block &block, TypeRange types) {
  for (Operation &op : block.without_terminator())
    emit(&op);
  joinForks(block.getTerminator());
  Slots out;
  for (auto [value, type] : llvm::zip(block.getTerminator()->getOperands(), types))
    out.append(as(value, type));
  return out;
}

void FunctionEmitter::emitReturn(OperandRange values) {
  func::FuncOp source = function_.source;
  Slots slots;
  for (auto [value, type] : llvm::zip(values, source.getResultTypes()))
    slots.append(as(value, type));
  if (function_.resultsInMemory) {
    store(resultMemory_, slots);
    b_.CreateRetVoid();
  } else if (slots.empty()) {
    b_.CreateRetVoid();
  } else if (slots.size() == 1) {
    b_.CreateRet(toSlot(b_, slots[0]));
  } else {
    llvm::Value *pair = llvm::PoisonValue::get(function_.code->getReturnType());
    for (unsigned i = 0; i < slots.size(); ++i)
      pair = b_.CreateInsertValue(pair, toSlot(b_, slots[i]), i);
    b_.CreateRet(pair);
  }
}

//===----------------------------------------------------------------------===//
// Calls and branches
//===----------------------------------------------------------------------===//

void FunctionEmitter::emitCall(func::CallOp call, bool tail) {
  Slots slots = callPlainly(call, tail);
  if (!tail)
    setAll(call.getResults(), slots);
}

Slots FunctionEmitter::callPlainly(func::CallOp call, bool tail) {
  const Function &callee = m_.function(call.getCallee());
  SmallVector<llvm::Type *> types = slotTypes(call.getResultTypes(), m_.context);
  SmallVector<llvm::Value *> args{ctx_};
  llvm::Value *memory = nullptr;
  if (callee.resultsInMemory) {
    memory = tail ? resultMemory_ : temporary(types.size());
    args.push_back(memory);
  }
  func::FuncOp source = callee.source;
  for (auto [operand, type] : llvm::zip(call.getOperands(), source.getArgumentTypes()))
    args.append(as(operand, type));
  if (tail) {
    emitTailCall(callee.code, args);
    return {};
  }
  bool saved = callee.mayWait && saveRoots(call, /*own=*/false);
  llvm::CallInst *result = b_.CreateCall(callee.code, args);
  result->setCallingConv(llvm::CallingConv::Tail);
  dropRoots(saved);
  Slots slots;
  for (auto [i, type] : llvm::enumerate(types)) {
    llvm::Value *slot = memory              ? b_.CreateLoad(b_.getInt64Ty(), slotAt(memory, i))
                        : types.size() == 1 ? result
                                            : b_.CreateExtractValue(result, i);
    slots.push_back(fromSlot(b_, slot, type));
  }
  return slots;
}

void FunctionEmitter::emitTailCall(llvm::Function *callee, ArrayRef<llvm::Value *> args) {
  llvm::CallInst *result = b_.CreateCall(callee, args);
  result->setCallingConv(llvm::CallingConv::Tail);
  result->setTailCallKind(llvm::CallInst::TCK_MustTail);
  if (result->getType()->isVoidTy())
    b_.CreateRetVoid();
  else
    b_.CreateRet(result);
}

SmallVector<FunctionEmitter::Arm> FunctionEmitter::openIf(scf::IfOp op) {
  auto blockOf = [](Region &region) { return region.empty() ? nullptr : &region.front(); };
  SmallVector<Arm> arms{{blockOf(op.getThenRegion()), newBlock("then")},
                        {blockOf(op.getElseRegion()), newBlock("else")}};
  b_.CreateCondBr(one(op.getCondition()), arms[0].entry, arms[1].entry);
  return arms;
}

SmallVector<FunctionEmitter::Arm> FunctionEmitter::openMatch(ir::MatchOp match) {
  SmallVector<Arm> arms;
  for (Region &region : match.getArms())
    arms.push_back({&region.front(), newBlock("arm")});
  ArrayRef<int64_t> cases = match.getCases();
  if (arms.size() == 1) {
    b_.CreateBr(arms[0].entry);
    return arms;
  }
  // The last arm, with a case or without, takes what the others do not: together they cover all.
  llvm::Value *ctor = b_.CreateLoad(b_.getInt64Ty(), one(match.getScrutinee()));
  auto *branch = b_.CreateSwitch(ctor, arms.back().entry, arms.size() - 1);
  for (unsigned i = 0; i + 1 < arms.size(); ++i)
    branch->addCase(i64(cases[i]), arms[i].entry);
  return arms;
}

void FunctionEmitter::bindFields(ir::MatchOp match, Block &arm) {
  llvm::Value *data = one(match.getScrutinee());
  int64_t slot = 1;
  for (BlockArgument field : arm.getArguments()) {
    set(field, load(slotAt(data, slot), field.getType()));
    slot += slotCount(field.getType());
  }
}

void FunctionEmitter::joinArms(ArrayRef<Arm> arms, Operation *op) {
  llvm::BasicBlock *join = newBlock("join");
  SmallVector<std::pair<Slots, llvm::BasicBlock *>> incoming;
  for (const Arm &arm : arms) {
    b_.SetInsertPoint(arm.entry);
    Slots slots;
    if (arm.block) {
      if (auto match = dyn_cast<ir::MatchOp>(op))
        bindFields(match, *arm.block);
      slots = emitRegion(*arm.block, op->getResultTypes());
    }
    incoming.push_back({std::move(slots), b_.GetInsertBlock()});
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  Slots merged;
  for (auto [i, type] : llvm::enumerate(slotTypes(op->getResultTypes(), m_.context))) {
    llvm::PHINode *phi = b_.CreatePHI(type, incoming.size());
    for (auto &[slots, from] : incoming)
      phi->addIncoming(slots[i], from);
    merged.push_back(phi);
  }
  setAll(op->getResults(), merged);
}

void FunctionEmitter::emitIf(scf::IfOp op) {
  isForked(op) ? emitForkedArms(openIf(op), op) : joinArms(openIf(op), op);
}
void FunctionEmitter::emitMatch(ir::MatchOp match) {
  isForked(match) ? emitForkedArms(openMatch(match), match) : joinArms(openMatch(match), match);
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

void FunctionEmitter::emit(Operation *op) {
  joinForks(op);
  bool known = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](func::CallOp op) { isForked(op) ? emitFork(op) : emitCall(op, false); })
      .Case([&](scf::IfOp op) { emitIf(op); })
      .Case([&](ir::MatchOp op) { emitMatch(op); })
      .Case([&](ir::RecordOp op) { emitRecord(op); })
      .Case([&](ir::JoinedOp op) { emitJoined(op); })
      .Case([&](ir::ApplyOp op) { emitApply(op); })
      .Case([&](ir::ParamRefOp op) {
        // Where none reads, what follows from parameters begins where the instance does.
        llvm::Value *id = i64(m_.paramId(op.getParam()));
        set(op, {m_.reads ? id : makeHandle(id, loadComputed())});
      })
      .Case([&](ir::DimOp op) { emitDim(op); })
      .Case([&](ir::GhostOp op) { emitGhost(op); })
      .Case([&](ir::ReadOp op) { emitRead(op); })
      .Case([&](ir::EmitOp op) { emitEmit(op); })
      .Case([&](ir::ConvertOp op) { emitConvert(op); })
      .Case<ir::DivOp, ir::RemOp>([&](Operation *op) { emitDivision(op); })
      .Case([&](ir::SplitKeyOp op) { emitSplitKey(op); })
      .Case([&](ir::CheckOp op) {
        std::string text;
        for (char c : op.getMessage())
          text += c == '{' && op.getValues().empty() ? "{{" : std::string(1, c);
        auto value = [&](size_t i) {
          return i < op.getValues().size() ? one(op.getValues()[i]) : nullptr;
        };
        require(one(op.getCondition()), op.getLoc(), text, value(0), value(1));
      })
      .Case([&](ir::TupleOp op) { emitTuple(op); })
      .Case([&](ir::GetOp op) {
        // What takes a fork's results apart does so when they are there.
        if (!placeOf(op.getTuple()).forked)
          emitGet(op);
      })
      .Case([&](ir::ConstructOp op) { emitConstruct(op); })
      .Default([&](Operation *op) { known = emitList(op) || emitArith(op) || emitMath(op); });
  if (!known)
    throw InternalError("host code cannot do " + op->getName().getStringRef().str());
}

} // namespace sheaf::host

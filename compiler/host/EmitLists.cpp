//===- EmitLists.cpp - Lists and loops over them --------------------------===//

#include "compiler/host/Emitter.h"

#include "compiler/model/ModelTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace sheaf::host {
namespace {

/// More ints than any memory has room for.
constexpr int64_t kLongestRange = int64_t(1) << 40;

Type elementOf(Value list) { return cast<ir::ListType>(list.getType()).getElement(); }

} // namespace

bool FunctionEmitter::emitList(Operation *op) {
  bool known = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ir::ListMakeOp op) { emitMake(op); })
      .Case<ir::ConsOp, ir::AppendOp>([&](Operation *op) { emitGrow(op); })
      .Case([&](ir::ListConcatOp op) {
        set(op,
            {callRuntime("sheaf_list_concat", b_.getPtrTy(), one(op.getLhs()), one(op.getRhs()))});
      })
      .Case([&](ir::ReverseOp op) {
        set(op, {callRuntime("sheaf_list_reverse", b_.getPtrTy(), one(op.getList()))});
      })
      .Case([&](ir::LenOp op) { set(op, {listSize(one(op.getList()))}); })
      .Case([&](ir::ListGetOp op) { emitListGet(op); })
      .Case([&](ir::ListSliceOp op) { emitListSlice(op); })
      .Case([&](ir::ZipOp op) { emitZip(op); })
      .Case([&](ir::RangeOp op) { emitRange(op); })
      .Case([&](ir::RowsOp op) { emitRows(op); })
      .Case([&](ir::MapOp op) { emitMap(op); })
      .Case([&](ir::FilterOp op) { emitFilter(op); })
      .Case([&](ir::FoldOp op) { emitFold(op); })
      .Case([&](ir::ScanOp op) { emitScan(op); })
      .Default([&](Operation *) { known = false; });
  return known;
}

llvm::Value *FunctionEmitter::listSize(llvm::Value *list) {
  return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(
                                            b_.getInt8Ty(), list, offsetof(rt::ListObject, size)));
}

llvm::Value *FunctionEmitter::listElements(llvm::Value *list) {
  return b_.CreateLoad(
      b_.getPtrTy(),
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), list, offsetof(rt::ListObject, elements)));
}

llvm::Value *FunctionEmitter::readElements(Value list) {
  llvm::Value *object = one(list);
  if (m_.chainedLists)
    object = callRuntime("sheaf_list_flat", b_.getPtrTy(), object);
  return listElements(object);
}

llvm::Value *FunctionEmitter::newList(Type element, llvm::Value *size) {
  return callRuntime("sheaf_list_new", b_.getPtrTy(),
                     static_cast<llvm::Value *>(i64(slotCount(element))), size);
}

Slots FunctionEmitter::loop(
    llvm::Value *count, Slots carried,
    llvm::function_ref<Slots(llvm::Value *, ArrayRef<llvm::Value *>)> body) {
  llvm::BasicBlock *before = b_.GetInsertBlock(), *header = newBlock("loop"),
                   *round = newBlock("round"), *done = newBlock("done");
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode *index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(i64(0), before);
  SmallVector<llvm::PHINode *> phis;
  Slots current;
  for (llvm::Value *value : carried) {
    phis.push_back(b_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    current.push_back(phis.back());
  }
  b_.CreateCondBr(b_.CreateICmpSLT(index, count), round, done);
  b_.SetInsertPoint(round);
  Slots next = body(index, current);
  countRound();
  index->addIncoming(b_.CreateAdd(index, i64(1), "", true, true), b_.GetInsertBlock());
  for (auto [phi, value] : llvm::zip(phis, next))
    phi->addIncoming(value, b_.GetInsertBlock());
  b_.CreateBr(header);
  b_.SetInsertPoint(done);
  return current;
}

void FunctionEmitter::bindElement(BlockArgument argument, ArrayRef<llvm::Value *> slots,
                                  Type type) {
  set(argument, coerce(slots, type, argument.getType()));
}

void FunctionEmitter::bindNumber(Block &body, unsigned argument, llvm::Value *number) {
  if (argument < body.getNumArguments())
    set(body.getArgument(argument), {number});
}

void FunctionEmitter::emitMake(ir::ListMakeOp op) {
  Type element = op.getType().getElement();
  llvm::Value *list = newList(element, i64(op.getElements().size()));
  if (!op.getElements().empty()) {
    llvm::Value *elements = listElements(list);
    int64_t slot = 0;
    for (Value value : op.getElements()) {
      store(slotAt(elements, slot), as(value, element));
      slot += slotCount(element);
    }
  }
  set(op, {list});
}

void FunctionEmitter::emitGrow(Operation *op) {
  auto cons = dyn_cast<ir::ConsOp>(op);
  Value list = cons ? cons.getTail() : cast<ir::AppendOp>(op).getInit();
  Value added = cons ? cons.getHead() : cast<ir::AppendOp>(op).getLast();
  Slots slots = as(added, elementOf(list));
  llvm::Value *memory = temporary(slots.size());
  store(memory, slots);
  set(op->getResult(0),
      {cons ? callRuntime("sheaf_list_cons", b_.getPtrTy(), memory, one(list))
            : callRuntime("sheaf_list_append", b_.getPtrTy(), one(list), memory)});
}

void FunctionEmitter::emitListGet(ir::ListGetOp op) {
  llvm::Value *list = one(op.getList()), *index = one(op.getIndex()), *size = listSize(list);
  // As unsigned numbers, negative indices are too large as well.
  require(b_.CreateICmpULT(index, size), op.getLoc(), "index {0} is out of range for a list of {1}",
          index, size);
  Type element = elementOf(op.getList());
  llvm::Value *slot = b_.CreateMul(index, i64(slotCount(element)));
  // The first element is in place in every list: taking a list apart costs no flattening.
  bool first = matchPattern(op.getIndex(), m_Zero());
  llvm::Value *elements = first ? listElements(list) : readElements(op.getList());
  set(op, load(slotAt(elements, slot), element));
}

void FunctionEmitter::emitListSlice(ir::ListSliceOp op) {
  llvm::Value *list = one(op.getList()), *lo = one(op.getLo()), *hi = one(op.getHi());
  require(b_.CreateICmpULE(hi, listSize(list)), op.getLoc(),
          "the end {0} of a slice is out of range for a list of {1}", hi, listSize(list));
  require(b_.CreateICmpULE(lo, hi), op.getLoc(), "a slice from {0} to {1} is out of range", lo, hi);
  set(op, {callRuntime("sheaf_list_slice", b_.getPtrTy(), list, lo, hi)});
}

void FunctionEmitter::emitZip(ir::ZipOp op) {
  auto tuple = cast<TupleType>(op.getType().getElement());
  if (op.getLists().empty())
    return set(op, {newList(tuple, i64(0))});
  llvm::Value *size = listSize(one(op.getLists().front()));
  SmallVector<llvm::Value *> elements;
  for (Value list : op.getLists()) {
    llvm::Value *other = listSize(one(list));
    require(b_.CreateICmpEQ(size, other), op.getLoc(),
            "lists of {0} and {1} elements cannot be zipped", size, other);
    elements.push_back(readElements(list));
  }
  llvm::Value *result = newList(tuple, size), *out = listElements(result);
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    Slots slots;
    for (auto [list, from, field] : llvm::zip(op.getLists(), elements, tuple.getTypes())) {
      Type element = elementOf(list);
      Slots value = load(slotAt(from, b_.CreateMul(i, i64(slotCount(element)))), element);
      slots.append(coerce(value, element, field));
    }
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(tuple)))), slots);
    return Slots();
  });
  set(op, {result});
}

void FunctionEmitter::emitRange(ir::RangeOp op) {
  llvm::Value *lo = one(op.getLo()), *hi = one(op.getHi());
  llvm::Value *size = b_.CreateSelect(b_.CreateICmpSGT(hi, lo), b_.CreateSub(hi, lo), i64(0));
  // As unsigned numbers, differences that do not fit are too large as well.
  require(b_.CreateICmpULE(size, i64(kLongestRange)), op.getLoc(),
          "the range from {0} to {1} is too long", lo, hi);
  llvm::Value *list = newList(op.getType().getElement(), size), *out = listElements(list);
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    b_.CreateStore(b_.CreateAdd(lo, i), slotAt(out, i));
    return Slots();
  });
  set(op, {list});
}

void FunctionEmitter::emitRows(ir::RowsOp op) {
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  Type element = op.getType().getElement();
  ArrayRef<llvm::Value *> slots = slots_.find(op.getTensor())->second;
  SmallVector<llvm::Value *> shape = extents(type, slots);
  auto row = RankedTensorType::get(type.getShape().drop_front(), type.getElementType(),
                                   type.getEncoding());
  int64_t bytes = rt::dtypeBytes(runtimeDType(type));
  llvm::Value *step = granules(ArrayRef(shape).drop_front(), bytes);
  Slots first{slots.front()};
  for (auto [axis, extent] : llvm::enumerate(ArrayRef(shape).drop_front()))
    if (row.isDynamicDim(axis))
      first.push_back(extent);
  llvm::Value *list = newList(element, shape.front()), *out = listElements(list);
  loop(shape.front(), {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    Slots value = first;
    value.front() = b_.CreateAdd(first.front(), b_.CreateMul(i, step));
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(element)))), coerce(value, row, element));
    return Slots();
  });
  set(op, {list});
}

void FunctionEmitter::emitMap(ir::MapOp op) {
  if (auto call = dyn_cast<func::CallOp>(op.getBody().front().front()); call && isForked(call))
    return emitForkedMap(op, call);
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Type from = elementOf(op.getList()), to = elementOf(op.getResult());
  llvm::Value *result = newList(to, size), *out = listElements(result);
  Block &body = op.getBody().front();
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    bindElement(body.getArgument(0), load(slotAt(in, b_.CreateMul(i, i64(slotCount(from)))), from),
                from);
    bindNumber(body, 1, i);
    partial_.push_back({{rt::RootDesc::List, to}, {result, i}});
    Slots value = emitRegion(body, to);
    partial_.pop_back();
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(to)))), value);
    return Slots();
  });
  set(op.getResult(), {result});
}

void FunctionEmitter::emitFilter(ir::FilterOp op) {
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Type element = elementOf(op.getList());
  int64_t width = slotCount(element);
  llvm::Value *all = newList(element, size), *out = listElements(all);
  Block &body = op.getBody().front();
  Slots kept = loop(size, {i64(0)}, [&](llvm::Value *i, ArrayRef<llvm::Value *> count) {
    Slots value = load(slotAt(in, b_.CreateMul(i, i64(width))), element);
    bindElement(body.getArgument(0), value, element);
    bindNumber(body, 1, i);
    partial_.push_back({{rt::RootDesc::List, element}, {all, count[0]}});
    llvm::Value *keep = emitRegion(body, IntegerType::get(op.getContext(), 1)).front();
    partial_.pop_back();
    // There is always room for one more: what is not kept is written over.
    store(slotAt(out, b_.CreateMul(count[0], i64(width))), value);
    return Slots{b_.CreateAdd(count[0], b_.CreateZExt(keep, b_.getInt64Ty()))};
  });
  set(op.getResult(), {callRuntime("sheaf_list_slice", b_.getPtrTy(), all,
                                   static_cast<llvm::Value *>(i64(0)), kept[0])});
}

void FunctionEmitter::emitFold(ir::FoldOp op) {
  llvm::Value *in = readElements(op.getList());
  Type element = elementOf(op.getList()), acc = op.getResult().getType();
  Block &body = op.getBody().front();
  set(op.getResult(),
      loop(listSize(one(op.getList())), as(op.getInit(), acc),
           [&](llvm::Value *i, ArrayRef<llvm::Value *> carried) {
             bindElement(body.getArgument(0), carried, acc);
             bindElement(body.getArgument(1),
                         load(slotAt(in, b_.CreateMul(i, i64(slotCount(element)))), element),
                         element);
             bindNumber(body, 2, i);
             return emitRegion(body, acc);
           }));
}

void FunctionEmitter::emitScan(ir::ScanOp op) {
  llvm::Value *size = listSize(one(op.getList())), *in = readElements(op.getList());
  Type element = elementOf(op.getList()), acc = elementOf(op.getResult());
  llvm::Value *result = newList(acc, size), *out = listElements(result);
  Block &body = op.getBody().front();
  loop(size, as(op.getInit(), acc), [&](llvm::Value *i, ArrayRef<llvm::Value *> carried) {
    bindElement(body.getArgument(0), carried, acc);
    bindElement(body.getArgument(1),
                load(slotAt(in, b_.CreateMul(i, i64(slotCount(element)))), element), element);
    bindNumber(body, 2, i);
    partial_.push_back({{rt::RootDesc::List, acc}, {result, i}});
    Slots next = emitRegion(body, acc);
    partial_.pop_back();
    store(slotAt(out, b_.CreateMul(i, i64(slotCount(acc)))), next);
    return next;
  });
  set(op.getResult(), {result});
}

} // namespace sheaf::host

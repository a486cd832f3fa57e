//===- EmitRecords.cpp - Records, rows and extents ------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/host/Emitter.h"
#include "compiler/ir/Place.h"
#include "compiler/model/ModelTypes.h"
#include "runtime/model/error.h"

#include "llvm/IR/MDBuilder.h"

using namespace mlir;

namespace sheaf::host {
namespace {

/// More granules than a row space has: sheaf_record answers with the instance's error.
constexpr int64_t kTooMany = int64_t(1) << 40;
/// Extents are 32-bit words of records.
constexpr int64_t kMostExtent = INT32_MAX;

int64_t bytesOf(RankedTensorType type) { return rt::dtypeBytes(runtimeDType(type)); }

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

SmallVector<llvm::Value *> FunctionEmitter::extents(RankedTensorType type,
                                                    ArrayRef<llvm::Value *> slots) {
  SmallVector<llvm::Value *> out;
  size_t next = 1;
  for (int64_t extent : type.getShape())
    out.push_back(ShapedType::isDynamic(extent) ? slots[next++] : i64(extent));
  return out;
}

llvm::Value *FunctionEmitter::multiply(llvm::Value *a, llvm::Value *b) {
  // Constants came from static types, whose sizes have been looked at.
  if (isa<llvm::Constant>(a) && isa<llvm::Constant>(b))
    return b_.CreateMul(a, b);
  llvm::Value *pair = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, a, b);
  return b_.CreateSelect(b_.CreateExtractValue(pair, 1), i64(kTooMany),
                         b_.CreateExtractValue(pair, 0));
}

/// As rt::tensorGranules.
llvm::Value *FunctionEmitter::granules(ArrayRef<llvm::Value *> shape, int64_t elementBytes) {
  if (shape.empty())
    return i64(1);
  llvm::Value *bytes = b_.CreateMul(shape.back(), i64(elementBytes));
  llvm::Value *row = b_.CreateLShr(b_.CreateAdd(bytes, i64(rt::kGranuleBytes - 1)),
                                   i64(llvm::Log2_64(rt::kGranuleBytes)));
  llvm::Value *total = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, row, i64(1));
  for (llvm::Value *extent : llvm::reverse(shape.drop_back()))
    total = multiply(total, extent);
  // Sums of a few of these must not wrap around.
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, total, i64(kTooMany));
}

/// Horner's scheme over one symbol after the other.
llvm::Value *FunctionEmitter::evaluate(const Dim &dim,
                                       const std::map<std::string, llvm::Value *> &symbols,
                                       Location where) {
  if (dim.isConstant())
    return i64(dim.constant());
  std::string symbol = dim.symbols().front();
  auto it = symbols.find(symbol);
  if (it == symbols.end())
    throw InternalError(ir::placeOf(where) + ": the extent " + dim.str() +
                        " is not made of a record's words");
  Dim rest = dim.substitute([&](const std::string &name) {
    return name == symbol ? std::optional(Dim(0)) : std::nullopt;
  });
  Dim factor = *(dim - rest).dividedBy(Dim::symbol(symbol));
  llvm::Value *product = it->second;
  if (factor != Dim(1))
    product = b_.CreateMul(product, evaluate(factor, symbols, where));
  return rest == Dim(0) ? product : b_.CreateAdd(product, evaluate(rest, symbols, where));
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

llvm::Value *FunctionEmitter::makeHandle(llvm::Value *id, llvm::Value *depth) {
  return b_.CreateOr(b_.CreateShl(depth, 32), id);
}

llvm::Value *FunctionEmitter::loadComputed() {
  return b_.CreateLoad(b_.getInt64Ty(), contextField(offsetof(rt::Context, computed)));
}

llvm::Value *FunctionEmitter::maxDepth(unsigned instance, ArrayRef<Argument> args) {
  uint32_t phase = m_.input.instances.all()[instance].phase;
  llvm::Value *depth = nullptr;
  if (phase > 0)
    depth = i64(int64_t(phase) << rt::depthBits(m_.input.instances.phases()));
  for (const Argument &arg : args) {
    if (!isa<RankedTensorType>(arg.type))
      continue;
    llvm::Value *own = depthOf(arg.slots.front());
    depth = depth ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, depth, own) : own;
  }
  // What is computed stands no deeper than anything else that is: so that instances which reached a
  // read by ways of unequal length go on in step. Where none reads, inputs, parameters and what is
  // kept stand there already, and what takes no tensor begins there: an engine's instances begin
  // beside others that are on their way. Later phases stand deeper in any case.
  if (phase == 0 && (m_.reads || !depth)) {
    llvm::Value *computed = loadComputed();
    depth = depth ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, depth, computed) : computed;
  }
  return depth ? depth : i64(0);
}

/// A row and its extents take a word each, host scalars two.
int64_t FunctionEmitter::countWords(ArrayRef<Argument> args) {
  int64_t words = 0;
  for (const Argument &arg : args)
    words += isa<RankedTensorType>(arg.type) ? arg.slots.size() : 2;
  return words;
}

int64_t FunctionEmitter::writeWords(llvm::Value *words, ArrayRef<Argument> args) {
  int64_t next = 0;
  auto put = [&](llvm::Value *value) {
    llvm::Value *address = b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), words, next);
    b_.CreateAlignedStore(value, address, llvm::Align(4));
    next += value->getType()->getIntegerBitWidth() / 32;
  };
  for (const Argument &arg : args) {
    if (isa<RankedTensorType>(arg.type))
      for (llvm::Value *slot : arg.slots)
        put(b_.CreateTrunc(slot, b_.getInt32Ty()));
    else
      put(toSlot(b_, arg.slots.front()));
  }
  return next;
}

llvm::Value *FunctionEmitter::recordOnce(llvm::Value *kernel, llvm::Value *depth,
                                         llvm::Value *granules, ArrayRef<Argument> args) {
  llvm::Type *handle = b_.getInt64Ty();
  int64_t count = countWords(args);
  if (count == 0 || count > 4) {
    llvm::Value *words = temporary((count + 1) / 2);
    writeWords(words, args);
    return callRuntime("sheaf_record_once", handle, kernel, depth, granules, words);
  }
  SmallVector<llvm::Value *> pairs((count + 1) / 2, i64(0));
  int64_t next = 0;
  auto put = [&](llvm::Value *word) {
    llvm::Value *&pair = pairs[next / 2];
    pair =
        b_.CreateOr(pair, next % 2 ? b_.CreateShl(word, 32) : b_.CreateAnd(word, i64(UINT32_MAX)));
    ++next;
  };
  for (const Argument &arg : args) {
    for (llvm::Value *slot : arg.slots) {
      llvm::Value *word = toSlot(b_, slot);
      put(word);
      if (!isa<RankedTensorType>(arg.type))
        put(b_.CreateLShr(word, 32));
    }
  }
  if (pairs.size() == 1)
    return callRuntime("sheaf_record_once2", handle, kernel, depth, granules, pairs[0]);
  return callRuntime("sheaf_record_once4", handle, kernel, depth, granules, pairs[0], pairs[1]);
}

SmallVector<Slots> FunctionEmitter::record(unsigned instance, ArrayRef<Argument> args,
                                           Location where, bool once) {
  const kernels::Kernel &kernel = m_.kernel(instance);
  ir::BlockOp block = kernel.block;

  // What the extents of results and temporaries are made of.
  std::map<std::string, llvm::Value *> symbols;
  for (auto [i, arg] : llvm::enumerate(args)) {
    std::string name = std::to_string(i);
    if (auto tensor = dyn_cast<RankedTensorType>(arg.type)) {
      for (auto [axis, extent] : llvm::enumerate(extents(tensor, arg.slots)))
        symbols[name + "." + std::to_string(axis)] = extent;
    } else if (arg.type.isInteger(64)) {
      symbols[name] = arg.slots.front();
    }
  }
  for (unsigned number : m_.extentArguments(block)) {
    llvm::Value *extent = args[number].slots.front();
    require(b_.CreateICmpULE(extent, i64(kMostExtent)), where,
            "a tensor cannot have the extent {0}", extent);
  }

  SmallVector<SmallVector<llvm::Value *>> shapes;
  SmallVector<llvm::Value *> sizes;
  llvm::Value *total = i64(0);
  auto sizeOf = [&](const kernels::RecordBuffer &buffer, SmallVector<llvm::Value *> &shape) {
    for (const Dim &dim : buffer.shape)
      shape.push_back(evaluate(dim, symbols, where));
    return granules(shape, rt::dtypeBytes(buffer.dtype));
  };
  for (const kernels::RecordBuffer &result : kernel.results) {
    sizes.push_back(sizeOf(result, shapes.emplace_back()));
    total = b_.CreateAdd(total, sizes.back());
  }
  if (!kernel.temporaries.empty()) {
    llvm::Value *needed = i64(0);
    for (const kernels::RecordBuffer &temporary : kernel.temporaries) {
      SmallVector<llvm::Value *> shape;
      needed = b_.CreateAdd(needed, sizeOf(temporary, shape));
    }
    callRuntime("sheaf_temporaries", b_.getVoidTy(), needed);
  }

  llvm::Value *depth = maxDepth(instance, args),
              *depthWord = b_.CreateTrunc(depth, b_.getInt32Ty());
  llvm::Value *number = i32(instance), *id, *resultDepth;
  if (once) {
    llvm::Value *handle = recordOnce(number, depthWord, total, args);
    id = b_.CreateAnd(handle, i64(UINT32_MAX));
    resultDepth = depthOf(handle);
  } else {
    llvm::Value *words = callRuntime("sheaf_record", b_.getPtrTy(), number, depthWord, total);
    int64_t outWord = writeWords(words, args);
    llvm::Value *out = b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), words, outWord);
    id = b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), out), b_.getInt64Ty());
    resultDepth = b_.CreateAdd(depth, i64(1));
  }

  SmallVector<Slots> results;
  for (auto [i, type] :
       llvm::enumerate(block.getBody().front().getTerminator()->getOperandTypes())) {
    Slots slots{makeHandle(id, resultDepth)};
    for (auto [axis, extent] : llvm::enumerate(shapes[i]))
      if (cast<RankedTensorType>(type).isDynamicDim(axis))
        slots.push_back(extent);
    results.push_back(std::move(slots));
    id = b_.CreateAdd(id, sizes[i]);
  }
  return results;
}

/// A list of tensors stands in a record as a tensor of their ids.
FunctionEmitter::Argument FunctionEmitter::tableOf(Value list, unsigned instance, bool once,
                                                   Location where) {
  llvm::Value *size = listSize(one(list));
  require(b_.CreateICmpULE(size, i64(kMostExtent)), where, "a list of {0} elements is too long",
          size);
  llvm::Value *number = i32(instance), *isOnce = i32(once);
  llvm::Value *handle = callRuntime("sheaf_list_rows", b_.getInt64Ty(), number, one(list), isOnce);
  auto type =
      RankedTensorType::get({ShapedType::kDynamic}, IntegerType::get(list.getContext(), 32));
  return {type, {handle, size}};
}

SmallVector<Slots> FunctionEmitter::recordOn(unsigned instance, ValueRange values, bool once,
                                             Location where) {
  ir::BlockOp block = m_.input.instances.all()[instance].block;
  SmallVector<Argument> args;
  for (auto [value, arg] : llvm::zip(values, block.getBody().front().getArguments()))
    if (isa<ir::ListType>(arg.getType()))
      args.push_back(tableOf(value, instance, once, where));
    else
      args.push_back({arg.getType(), as(value, arg.getType())});
  return record(instance, args, where, once);
}

/// As results of these types, one after the other.
Slots FunctionEmitter::resultsOf(unsigned instance, ArrayRef<Slots> results, TypeRange types) {
  ir::BlockOp block = m_.input.instances.all()[instance].block;
  Slots all;
  for (auto [slots, own, type] :
       llvm::zip(results, block.getBody().front().getTerminator()->getOperandTypes(), types))
    all.append(coerce(slots, own, type));
  return all;
}

Slots FunctionEmitter::recordNow(ir::RecordOp record) {
  unsigned instance = m_.input.instances.of(record);
  return resultsOf(
      instance,
      recordOn(instance, record.getArgs(), record->hasAttr("sheaf.once"), record.getLoc()),
      record.getResultTypes());
}

void FunctionEmitter::emitRecord(ir::RecordOp record) {
  // What is joined is recorded where that is decided.
  if (record->hasAttr(ir::kInJoinedAttr))
    return;
  if (!record->hasAttr(ir::kHoistedAttr))
    return setAll(record.getResults(), recordNow(record));
  auto nothing = [&] {
    return Slots(slotTypes(record.getResultTypes(), m_.context).size(), i64(0));
  };
  setAll(record.getResults(), byRows(nothing, [&] { return recordNow(record); }));
}

void FunctionEmitter::emitJoined(ir::JoinedOp op) {
  unsigned instance = m_.input.instances.of(op);
  auto joined = [&] {
    return resultsOf(instance,
                     recordOn(instance, op.getArgs(), op->hasAttr("sheaf.once"), op.getLoc()),
                     op.getResultTypes());
  };
  setAll(op.getResults(), byRows(joined, [&] { return recordNow(op.getRecord()); }));
}

/// One where rows are short, the other else.
Slots FunctionEmitter::byRows(llvm::function_ref<Slots()> joined,
                              llvm::function_ref<Slots()> apart) {
  llvm::Value *joins = b_.CreateLoad(b_.getInt64Ty(), contextField(offsetof(rt::Context, joins)));
  llvm::BasicBlock *ways[] = {newBlock("joined"), newBlock("apart")}, *met = newBlock("met");
  b_.CreateCondBr(b_.CreateICmpEQ(joins, i64(0)), ways[1], ways[0],
                  llvm::MDBuilder(m_.context).createLikelyBranchWeights());
  std::pair<Slots, llvm::BasicBlock *> incoming[2];
  for (int i = 0; i < 2; ++i) {
    b_.SetInsertPoint(ways[i]);
    Slots slots = i == 0 ? joined() : apart();
    incoming[i] = {std::move(slots), b_.GetInsertBlock()};
    b_.CreateBr(met);
  }
  b_.SetInsertPoint(met);
  Slots merged;
  for (size_t i = 0; i < incoming[0].first.size(); ++i) {
    llvm::PHINode *phi = b_.CreatePHI(b_.getInt64Ty(), 2);
    for (auto &[slots, from] : incoming)
      phi->addIncoming(slots[i], from);
    merged.push_back(phi);
  }
  return merged;
}

void FunctionEmitter::emitGhost(ir::GhostOp op) {
  Slots slots = slots_.find(op.getTensor())->second;
  slots.front() = b_.CreateAdd(slots.front(), b_.CreateShl(i64(op.getDepths()), 32));
  set(op, std::move(slots));
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

/// What counts as read: of those who want to know, seldom, what was, some know better.
llvm::Value *FunctionEmitter::tellRead(llvm::Value *place, llvm::Value *element) {
  llvm::Value *watch = b_.CreateLoad(b_.getPtrTy(), contextField(offsetof(rt::Context, readWatch)));
  llvm::BasicBlock *from = b_.GetInsertBlock(), *tell = newBlock("tell"), *goOn = newBlock("told");
  b_.CreateCondBr(b_.CreateIsNull(watch), goOn, tell,
                  llvm::MDBuilder(m_.context).createLikelyBranchWeights());
  b_.SetInsertPoint(tell);
  llvm::Value *slot = callRuntime("sheaf_read", b_.getInt64Ty(), place, toSlot(b_, element));
  llvm::Value *told = fromSlot(b_, slot, element->getType());
  b_.CreateBr(goOn);
  b_.SetInsertPoint(goOn);
  llvm::PHINode *read = b_.CreatePHI(element->getType(), 2);
  read->addIncoming(element, from);
  read->addIncoming(told, tell);
  return read;
}

void FunctionEmitter::emitRead(ir::ReadOp op) {
  llvm::Value *place = b_.getInt32(m_.readPlace(op.getLoc()));
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  Slots slots = slots_.find(op.getTensor())->second;
  llvm::Value *handle = slots.front(), *depth = depthOf(handle);
  llvm::Value *visible =
      b_.CreateLoad(b_.getInt64Ty(), contextField(offsetof(rt::Context, visible)));
  auto list = dyn_cast<ir::ListType>(op.getType());
  llvm::Value *at = list || !op.getAt() ? i64(0) : one(op.getAt());
  llvm::Value *size = list ? extents(type, slots).front() : i64(1);
  llvm::BasicBlock *wait = newBlock("wait"), *there = newBlock("there");
  b_.CreateCondBr(b_.CreateICmpSLE(depth, visible), there, wait);
  b_.SetInsertPoint(wait);
  bool saved = saveRoots(op, /*own=*/true);
  llvm::Value *each = i64(rt::dtypeBytes(runtimeDType(type)));
  callRuntime("sheaf_wait", b_.getVoidTy(), place, handle, b_.CreateMul(at, each),
              b_.CreateMul(size, each));
  dropRoots(saved);
  b_.CreateBr(there);
  b_.SetInsertPoint(there);

  llvm::Value *rows = b_.CreateLoad(b_.getPtrTy(), contextField(offsetof(rt::Context, rows)));
  llvm::Value *id = b_.CreateAnd(handle, i64(0xFFFFFFFF));
  llvm::Value *address =
      b_.CreateInBoundsGEP(b_.getInt8Ty(), rows, b_.CreateMul(id, i64(rt::kGranuleBytes)));
  if (!list) {
    return set(op, {tellRead(place, loadElement(address, at, runtimeDType(type)))});
  }
  llvm::Value *result = newList(list.getElement(), size), *out = listElements(result);
  loop(size, {}, [&](llvm::Value *i, ArrayRef<llvm::Value *>) {
    store(slotAt(out, i), {tellRead(place, loadElement(address, i, runtimeDType(type)))});
    return Slots();
  });
  set(op, {result});
}

/// Of a row that is computed, as a host value.
llvm::Value *FunctionEmitter::loadElement(llvm::Value *row, llvm::Value *at, rt::DType dtype) {
  llvm::Type *stored = nullptr;
  switch (dtype) {
  case rt::DType::F32:
    stored = b_.getFloatTy();
    break;
  case rt::DType::BF16:
    stored = b_.getBFloatTy();
    break;
  case rt::DType::F16:
    stored = b_.getHalfTy();
    break;
  case rt::DType::I32:
  case rt::DType::Bool:
    stored = b_.getInt32Ty();
    break;
  case rt::DType::I64:
    stored = b_.getInt64Ty();
    break;
  }
  llvm::Value *element = b_.CreateLoad(stored, b_.CreateInBoundsGEP(stored, row, at));
  if (stored->isFloatingPointTy())
    return b_.CreateFPExt(element, b_.getDoubleTy());
  if (dtype == rt::DType::Bool)
    return b_.CreateICmpNE(element, b_.getInt32(0));
  return b_.CreateSExtOrTrunc(element, b_.getInt64Ty());
}

//===----------------------------------------------------------------------===//
// Operators that the host does
//===----------------------------------------------------------------------===//

void FunctionEmitter::emitApply(ir::ApplyOp apply) {
  auto *address = passes::batchRule<ops::HostAddress>(apply);
  if (address && address->kind == ops::HostAddress::Row)
    return emitRow(apply);
  if (address && address->kind == ops::HostAddress::Part)
    return emitPart(apply);
  if (passes::takesList(apply) && apply->hasAttr("sheaf.copy"))
    return emitStack(apply);
  if (passes::appendsRows(apply))
    return emitAppendRows(apply);
  throw InternalError(ir::placeOf(apply.getLoc()) + ": host code cannot do the operator " +
                      apply.getOp().str());
}

/// table[i]: the address of a row, at the table's own depth.
void FunctionEmitter::emitRow(ir::ApplyOp apply) {
  Value tensor = apply.getOperand(0);
  SmallVector<llvm::Value *> shape =
      extents(cast<RankedTensorType>(tensor.getType()), slots_.find(tensor)->second);
  llvm::Value *index = one(apply.getOperand(1));
  require(b_.CreateICmpULT(index, shape.front()), apply.getLoc(),
          "index {0} is out of range for an extent of {1}", index, shape.front());
  setRows(apply, index, ArrayRef(shape).drop_front());
}

/// part(x, start, size): the address of the first row. They are in range.
void FunctionEmitter::emitPart(ir::ApplyOp apply) {
  Value tensor = apply.getOperand(0);
  SmallVector<llvm::Value *> shape =
      extents(cast<RankedTensorType>(tensor.getType()), slots_.find(tensor)->second);
  unsigned next = 1;
  auto extentOf = [&](StringRef name) -> llvm::Value * {
    if (auto known = apply.getAttrs().getAs<IntegerAttr>(name))
      return i64(static_cast<uint64_t>(known.getInt()));
    return one(apply.getOperand(next++));
  };
  llvm::Value *start = extentOf("start");
  shape.front() = extentOf("size");
  setRows(apply, start, shape);
}

/// What begins at a row of the operand, and has these extents.
void FunctionEmitter::setRows(ir::ApplyOp apply, llvm::Value *first,
                              ArrayRef<llvm::Value *> shape) {
  auto type = cast<RankedTensorType>(apply.getOperand(0).getType());
  auto resultType = cast<RankedTensorType>(apply.getResult(0).getType());
  auto row = static_cast<size_t>(type.getRank() - 1);
  llvm::Value *step = granules(shape.take_back(row), bytesOf(type));
  Slots out{b_.CreateAdd(one(apply.getOperand(0)), b_.CreateMul(first, step))};
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (resultType.isDynamicDim(axis))
      out.push_back(extent);
  set(apply.getResult(0), out);
}

/// stack(list): one record an element copies it into its place. The first record reserves the rows
/// of all; the others reserve nothing and are told where to write.
void FunctionEmitter::emitStack(ir::ApplyOp apply) {
  Location where = apply.getLoc();
  Value list = apply.getOperand(0);
  auto element = cast<RankedTensorType>(cast<ir::ListType>(list.getType()).getElement());
  auto rows = cast<RankedTensorType>(apply->getAttrOfType<TypeAttr>("sheaf.rows").getValue());
  unsigned instance = m_.input.instances.of(apply, "sheaf.copy");
  if (m_.kernel(instance).results.size() != 1 || !m_.kernel(instance).temporaries.empty())
    throw InternalError("the block that copies for a list needs more than its result");

  llvm::Value *size = listSize(one(list)), *in = readElements(list);
  int64_t width = slotCount(element);
  llvm::BasicBlock *before = b_.GetInsertBlock(), *first = newBlock("first"),
                   *known = newBlock("known");
  // All elements have the extents of the first; an empty list has none to ask.
  b_.CreateCondBr(b_.CreateICmpEQ(size, i64(0)), known, first);
  b_.SetInsertPoint(first);
  Slots head = load(in, element);
  b_.CreateBr(known);
  b_.SetInsertPoint(known);
  Slots common;
  for (llvm::Value *value : head) {
    llvm::PHINode *phi = b_.CreatePHI(b_.getInt64Ty(), 2);
    phi->addIncoming(value, first);
    phi->addIncoming(i64(0), before);
    common.push_back(phi);
  }
  llvm::Value *step = granules(extents(element, common), bytesOf(element));
  llvm::Value *total = multiply(step, size);

  // Carried: the deepest element, and the id of the first one's place.
  Slots done = loop(size, {i64(0), i64(0)}, [&](llvm::Value *i, ArrayRef<llvm::Value *> carried) {
    Slots slots = load(slotAt(in, b_.CreateMul(i, i64(width))), element);
    for (auto [own, all] : llvm::zip(ArrayRef(slots).drop_front(), ArrayRef(common).drop_front()))
      require(b_.CreateICmpEQ(own, all), where,
              "tensors with extents {0} and {1} cannot be stacked", all, own);
    Argument arg{element, slots};
    llvm::Value *depth = maxDepth(instance, arg);
    llvm::Value *isFirst = b_.CreateICmpEQ(i, i64(0));
    llvm::Value *words = callRuntime(
        "sheaf_record", b_.getPtrTy(), static_cast<llvm::Value *>(i32(instance)),
        b_.CreateTrunc(depth, b_.getInt32Ty()), b_.CreateSelect(isFirst, total, i64(0)));
    llvm::Value *out =
        b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), words, writeWords(words, arg));
    llvm::Value *given = b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), out), b_.getInt64Ty());
    llvm::Value *base = b_.CreateSelect(isFirst, given, carried[1]);
    llvm::Value *place = b_.CreateAdd(base, b_.CreateMul(i, step));
    b_.CreateStore(b_.CreateTrunc(place, b_.getInt32Ty()), out);
    return Slots{
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, carried[0], b_.CreateAdd(depth, i64(1))),
        base};
  });

  Slots result{makeHandle(done[1], done[0]), size};
  result.append(common.begin() + 1, common.end());
  Type type = rows;
  if (apply->hasAttr("sheaf.arrange")) {
    unsigned number = m_.input.instances.of(apply, "sheaf.arrange");
    ir::BlockOp block = m_.input.instances.all()[number].block;
    result = record(number, Argument{rows, result}, where).front();
    type = block.getBody().front().getTerminator()->getOperand(0).getType();
  }
  set(apply.getResult(0), coerce(result, type, apply.getResult(0).getType()));
}

/// append_rows(x, rows): the run time knows whether there is room after x, and so where to.
void FunctionEmitter::emitAppendRows(ir::ApplyOp apply) {
  unsigned instance = m_.input.instances.of(apply, "sheaf.copy");
  if (m_.kernel(instance).results.size() != 1 || !m_.kernel(instance).temporaries.empty())
    throw InternalError("the block that copies rows needs more than its result");
  auto resultType = cast<RankedTensorType>(apply.getResult(0).getType());
  SmallVector<llvm::Value *> shapes[2], depths, sizes;
  for (auto [value, shape] : llvm::zip(apply.getOperands(), shapes)) {
    auto type = cast<RankedTensorType>(value.getType());
    const Slots &slots = slots_.find(value)->second;
    shape = extents(type, slots);
    sizes.push_back(granules(shape, bytesOf(type)));
    depths.push_back(b_.CreateTrunc(maxDepth(instance, Argument{type, slots}), b_.getInt32Ty()));
  }
  llvm::Value *number = i32(instance);
  Slots out{callRuntime("sheaf_append_rows", b_.getInt64Ty(), number, depths[0],
                        one(apply.getOperand(0)), sizes[0], depths[1], one(apply.getOperand(1)),
                        sizes[1])};
  shapes[0].front() = b_.CreateAdd(shapes[0].front(), shapes[1].front());
  for (auto [axis, extent] : llvm::enumerate(shapes[0]))
    if (resultType.isDynamicDim(axis))
      out.push_back(extent);
  set(apply.getResult(0), out);
}

} // namespace sheaf::host

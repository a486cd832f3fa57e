//===- EmitAddresses.cpp - Records, extents and addresses -----------------===//

#include "compiler/kernels/cpu/Emitter.h"
#include "runtime/model/error.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

//===----------------------------------------------------------------------===//
// Small builders
//===----------------------------------------------------------------------===//

Value Emitter::constant(int64_t v) {
  Value &known = constants_[v];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(entry_);
    known = arith::ConstantIntOp::create(b, i64_, v);
  }
  return known;
}

// Equal constants are one value, so that what is computed of them is known to be equal.
Value Emitter::add(Value a, Value c) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(c);
  return x && y ? constant(*x + *y) : b.createOrFold<arith::AddIOp>(a, c);
}
Value Emitter::mul(Value a, Value c) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(c);
  return x && y ? constant(*x * *y) : b.createOrFold<arith::MulIOp>(a, c);
}
Value Emitter::minimum(Value a, Value c) { return b.createOrFold<arith::MinSIOp>(a, c); }

Value Emitter::isLess(Value a, Value c) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, c);
}

Value Emitter::bytes(Value pointer, Value offset) {
  return LLVM::GEPOp::create(b, pointer_, b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{offset});
}
Value Emitter::bytes(Value pointer, int64_t offset) {
  if (offset == 0)
    return pointer;
  if (!llvm::isInt<LLVM::kGEPConstantBitWidth>(offset))
    return bytes(pointer, constant(offset));
  return LLVM::GEPOp::create(b, pointer_, b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

Value Emitter::splat(Value element, int64_t lanes) {
  return vector::BroadcastOp::create(b, VectorType::get({lanes}, element.getType()), element);
}

Value Emitter::loadAs(Type type, Value pointer, int64_t alignment) {
  return LLVM::LoadOp::create(b, type, pointer, static_cast<unsigned>(alignment));
}
Value Emitter::loadElement(const Buffer &buffer, Value pointer) {
  return loadAs(storageType(buffer.dtype), pointer, bytesOf(buffer.dtype));
}

/// Every element of a product is one chain of these (docs/numerics.md).
Value Emitter::multiplyAdd(Value a, Value c, Value sum) {
  if (target_.fma)
    return math::FmaOp::create(b, a, c, sum);
  return arith::AddFOp::create(b, arith::MulFOp::create(b, a, c), sum);
}

void Emitter::loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
  // Where there is one turn, what is computed from its number folds.
  std::optional<int64_t> first = getConstantIntValue(lo), end = getConstantIntValue(hi);
  if (first && end && *first < *end && *end <= *first + step)
    return body(lo);
  auto loop = scf::ForOp::create(b, lo, hi, constant(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void Emitter::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

ValueRange Emitter::loopWhile(ValueRange start, llvm::function_ref<void(ValueRange)> before,
                              llvm::function_ref<void(ValueRange)> after) {
  auto through = [&](llvm::function_ref<void(ValueRange)> body) {
    return [this, body](OpBuilder &at, Location, ValueRange state) {
      b.restoreInsertionPoint(at.saveInsertionPoint());
      body(state);
    };
  };
  OpBuilder::InsertionGuard guard(b);
  return scf::WhileOp::create(b, start.getTypes(), start, through(before), through(after))
      .getResults();
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

void Emitter::enterRecord(Value record, Value chunkBegin) {
  record_ = Record();
  record_.number = record;
  record_.words = bytes(records_, mul(record, constant(4 * kernel_.words)));
  record_.inChunk = arith::SubIOp::create(b, record, chunkBegin);
  // Values that turn out to be needed deeper in the nest are inserted here.
  record_.here = marker();
}

void Emitter::withRecordAhead(int64_t ahead, llvm::function_ref<void()> body) {
  Record now = std::move(record_);
  Value last = arith::SubIOp::create(b, end_, constant(1));
  enterRecord(minimum(add(now.number, constant(ahead)), last), constant(0));
  body();
  record_ = std::move(now);
}

/// An operation that nothing uses, so it goes.
Operation *Emitter::marker() { return arith::ConstantIntOp::create(b, i64_, 0); }

Value Emitter::atRecord(llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(record_.here);
  return make();
}

Value Emitter::atEntry(llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry_);
  return make();
}

Value Emitter::word(unsigned index, bool wide) {
  Value pointer = bytes(record_.words, 4 * index);
  if (wide)
    return loadAs(i64_, pointer, 4);
  return loadAs(b.getI32Type(), pointer, 4);
}

//===----------------------------------------------------------------------===//
// Extents and host scalars
//===----------------------------------------------------------------------===//

/// "argument.axis" is the extent word of a tensor argument; "argument" an int argument.
Value Emitter::symbol(const std::string &name) {
  Value &known = record_.symbols[name];
  if (known)
    return known;
  size_t dot = name.find('.');
  unsigned argument = static_cast<unsigned>(std::stoul(name.substr(0, dot)));
  unsigned first = plan_.argumentWords[argument];
  return known = atRecord([&]() -> Value {
           if (dot == std::string::npos)
             return word(first, true);
           unsigned axis = static_cast<unsigned>(std::stoul(name.substr(dot + 1)));
           auto type = dyn_cast<RankedTensorType>(
               plan_.block->getRegion(0).front().getArgument(argument).getType());
           unsigned ordinal = 0; // of a list, its length
           if (type)
             ordinal = static_cast<unsigned>(
                 llvm::count_if(type.getShape().take_front(axis), ShapedType::isDynamic));
           return arith::ExtSIOp::create(b, i64_, word(first + 1 + ordinal, false));
         });
}

Value Emitter::extent(const Dim &dim) {
  if (dim.isConstant())
    return constant(dim.constant());
  Value sum;
  for (auto &[symbols, coefficient] : dim.terms()) {
    Value term = constant(coefficient);
    for (const std::string &name : symbols) {
      Value factor = symbol(name);
      term = atRecord([&] { return mul(term, factor); });
    }
    sum = sum ? atRecord([&] { return add(sum, term); }) : term;
  }
  return sum;
}

/// An extent to divide by. What is read of an empty tensor, at a position that is held, is not
/// used.
Value Emitter::divisor(const Dim &dim) {
  Value size = extent(dim);
  return atRecord([&] { return b.createOrFold<arith::MaxSIOp>(size, constant(1)); });
}

/// A host scalar of the block, at the record.
Value Emitter::scalar(Value value) {
  if (Value known = record_.scalars.lookup(value))
    return known;
  Value result;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    result = atRecord([&]() -> Value {
      Value raw = word(plan_.argumentWords[arg.getArgNumber()], true);
      if (arg.getType().isF64())
        return arith::BitcastOp::create(b, b.getF64Type(), raw);
      if (arg.getType().isInteger(1))
        return arith::TruncIOp::create(b, b.getI1Type(), raw);
      return raw;
    });
  } else if (auto dim = value.getDefiningOp<ir::DimOp>()) {
    result = extent(plan_.shapes->of(dim.getTensor())[dim.getAxis()]);
  } else {
    Operation *op = value.getDefiningOp();
    if (op->getDialect()->getNamespace() != arith::ArithDialect::getDialectNamespace())
      throw InternalError("block " + kernel_.symbol + ": " + op->getName().getStringRef().str() +
                          " cannot stand in a kernel");
    IRMapping map;
    for (Value operand : op->getOperands())
      map.map(operand, scalar(operand));
    result = atRecord([&] { return b.clone(*op, map)->getResult(0); });
  }
  record_.scalars[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Where the granule with this id is.
Value Emitter::granule(Value id) {
  Value wide = arith::ExtUIOp::create(b, i64_, id);
  return bytes(rows_, mul(wide, constant(rt::kGranuleBytes)));
}

/// Where a temporary begins; of a row block, its first row that is there.
Value Emitter::temporaryBase(const Buffer &buffer) {
  // A group's own lie after what the records of the chunk hand on.
  auto [isOwn, place] = layout_.temporaryPlaces[buffer.index];
  Value offset = sizeOf(ArrayRef(isOwn ? layout_.own : layout_.handedOn).take_front(place));
  return atRecord([&, isOwn = isOwn] {
    Value first = isOwn ? handedOn_ : loadAs(i64_, temporaryEntry(), 8);
    return bytes(bytes(bytes(scratch_, layout_.temporaryOffset), first), offset);
  });
}

/// Where a buffer begins; of a list, its table.
Value Emitter::base(const Buffer &buffer) {
  if (buffer.regroups) {
    Value whole = base(*buffer.regroups);
    if (llvm::all_of(buffer.partBegin, [](const Dim &dim) { return dim == Dim(0); }))
      return whole;
    std::vector<Value> begin;
    for (const Dim &dim : buffer.partBegin)
      begin.push_back(extent(dim));
    return addressFrom(whole, *buffer.regroups, begin);
  }
  if (buffer.kind == Buffer::Weight) {
    int use = layout_.rawUses[buffer.index];
    if (use == Layout::kNoUse)
      throw InternalError("kernel " + kernel_.symbol + " reads a weight that is only packed");
    Value &known = weightAddresses_[buffer.index];
    if (!known)
      known = atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * use), 8); });
    return known;
  }
  if (buffer.rowBlock >= 0)
    return baseInBlock(buffer);
  if (Value known = record_.bases.lookup(&buffer))
    return known;
  Value result;
  switch (buffer.kind) {
  case Buffer::Argument:
  case Buffer::List:
    result = atRecord([&] { return granule(word(buffer.index, false)); });
    break;
  case Buffer::Scratch:
    result = atRecord([&] {
      Value slice = mul(record_.inChunk, constant(plan_.scratch[buffer.index]));
      return bytes(bytes(scratch_, layout_.scratchOffsets[buffer.index]), slice);
    });
    break;
  case Buffer::Result: {
    // Results lie one after the other from the granule that the record's last word names.
    Value offset = sizeOf(ArrayRef(kernel_.results).take_front(buffer.index));
    result = atRecord([&] { return bytes(granule(word(kernel_.words - 1, false)), offset); });
    break;
  }
  case Buffer::Temporary: {
    result = temporaryBase(buffer);
    break;
  }
  case Buffer::Weight:
    break;
  }
  record_.bases[&buffer] = result;
  return result;
}

/// Bytes of tensors of the record that lie one after the other.
Value Emitter::sizeOf(ArrayRef<RecordBuffer> buffers) {
  Value total = constant(0);
  for (const RecordBuffer &buffer : buffers) {
    Value size = constant(rt::kGranuleBytes);
    if (!buffer.shape.empty())
      size = rowBytes(buffer.shape.back(), buffer.dtype);
    for (const Dim &outer : ArrayRef(buffer.shape).drop_back(!buffer.shape.empty())) {
      Value count = extent(outer);
      size = atRecord([&] { return mul(size, count); });
    }
    total = atRecord([&] { return add(total, size); });
  }
  return total;
}

/// Where it is noted how far into the chunk's temporaries those of the record begin.
Value Emitter::temporaryEntry() {
  return bytes(scratch_, add(constant(layout_.temporaryTable), mul(record_.inChunk, constant(8))));
}

/// Bytes from one innermost row to the next: whole granules. Rows that are `apart` are not a
/// multiple of this many bytes from each other, since a column of those would meet in a few sets of
/// the first-level cache.
Value Emitter::rowBytes(const Dim &innermost, ops::DType dtype, bool apart) {
  constexpr int64_t kMeeting = 1024;
  if (innermost.isConstant())
    return constant(rt::rowGranules(innermost.constant(), runtimeType(dtype)) * rt::kGranuleBytes);
  Value count = extent(innermost);
  return atRecord([&] {
    Value end = add(mul(count, constant(bytesOf(dtype))), constant(rt::kGranuleBytes - 1));
    Value whole = b.createOrFold<arith::AndIOp>(end, constant(-rt::kGranuleBytes));
    if (apart) {
      Value meeting = b.createOrFold<arith::CmpIOp>(
          arith::CmpIPredicate::eq, b.createOrFold<arith::AndIOp>(whole, constant(kMeeting - 1)),
          constant(0));
      whole = add(whole, b.createOrFold<arith::SelectOp>(meeting, constant(rt::kGranuleBytes),
                                                         constant(0)));
    }
    return b.createOrFold<arith::MaxSIOp>(whole, constant(rt::kGranuleBytes));
  });
}

Value Emitter::rowBytes(const Buffer &buffer) {
  return rowBytes(buffer.shape.back(), buffer.dtype, buffer.kind == Buffer::Temporary);
}

/// Bytes from one index to the next, for every axis.
const std::vector<Value> &Emitter::strides(const Buffer &buffer) {
  auto known = record_.strides.find(&buffer);
  if (known != record_.strides.end())
    return known->second;
  size_t rank = buffer.shape.size();
  if (buffer.regroups && !buffer.dense)
    return record_.strides[&buffer] = regroupedStrides(buffer);
  std::vector<Value> out(rank);
  if (rank >= 1)
    out[rank - 1] = constant(bytesOf(buffer.dtype));
  if (rank >= 2 && buffer.dense)
    out[rank - 2] = atRecord([&] { return mul(out[rank - 1], extent(buffer.shape.back())); });
  else if (rank >= 2)
    out[rank - 2] = rowBytes(buffer);
  for (size_t axis = rank; axis-- > 2;) {
    const Dim &dim = buffer.shape[axis - 1];
    Value count = extent(dim), inner = out[axis - 1];
    auto make = [&] { return mul(inner, count); };
    bool fixed = dim.isConstant() && inner.getDefiningOp<arith::ConstantOp>();
    out[axis - 2] = fixed ? atEntry(make) : atRecord(make);
  }
  // Of a row block, places along its outer axes lie in the same memory one after the other.
  if (buffer.rowBlock >= 0)
    std::fill(out.begin(), out.begin() + static_cast<int64_t>(buffer.blockAxes) - 1, constant(0));
  return record_.strides[&buffer] = std::move(out);
}

/// Of a padded tensor whose elements lie evenly along each of these axes.
std::vector<Value> Emitter::regroupedStrides(const Buffer &buffer) {
  std::vector<Value> from = strides(*buffer.regroups), out(buffer.shape.size());
  for (const Regrouping &group : regroupings(buffer.part, buffer.shape)) {
    // Where there is no axis, all are of extent 1.
    Value stride =
        group.fromBegin < group.fromEnd ? from[group.fromBegin] : constant(bytesOf(buffer.dtype));
    for (size_t axis = group.toEnd; axis-- > group.toBegin;) {
      out[axis] = stride;
      Value count = extent(buffer.shape[axis]);
      stride = atRecord([&] { return mul(stride, count); });
    }
  }
  return out;
}

/// The elements of a tensor in memory as a reshape has them, if they lie evenly along its axes;
/// else null.
const Buffer *Emitter::regrouped(Value reshape) {
  auto [entry, isNew] = regroupedOf_.try_emplace(reshape, nullptr);
  if (isNew) {
    const Buffer &source = *plan_.bufferOf.lookup(reshape.getDefiningOp()->getOperand(0));
    const std::vector<Dim> &to = plan_.shapes->of(reshape);
    if (source.dense || liesEvenly(source.shape, to)) {
      Buffer &buffer = regroupedBuffers_.emplace_back(source);
      buffer.shape = to;
      buffer.regroups = &source;
      buffer.part = source.shape;
      buffer.partBegin.clear();
      entry->second = &buffer;
    }
  }
  return entry->second;
}

Value Emitter::address(const Buffer &buffer, ArrayRef<Value> index) {
  return addressFrom(base(buffer), buffer, index);
}

Value Emitter::addressFrom(Value pointer, const Buffer &buffer, ArrayRef<Value> index) {
  const std::vector<Value> &stride = strides(buffer);
  Value offset;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    Value part = mul(index[axis], stride[axis]);
    offset = offset ? add(offset, part) : part;
  }
  return offset ? bytes(pointer, offset) : pointer;
}

/// A position, or those of a vector's lanes, between 0 and the last: a wrong one must not read
/// elsewhere; what it reads is not used. Of a tensor that turns out to be empty it reads where
/// position 0 would be, in the one range that is reserved for rows.
Value Emitter::held(Value number, Value last) {
  Value first = constant(0);
  if (auto type = dyn_cast<VectorType>(number.getType())) {
    first = splat(first, type.getNumElements());
    last = splat(last, type.getNumElements());
  }
  Value upper = b.createOrFold<arith::MinSIOp>(number, last);
  return b.createOrFold<arith::MaxSIOp>(first, upper);
}

Value Emitter::positionOf(const HostPosition &position) {
  for (const auto &[known, value] : record_.positions)
    if (known == position)
      return value;
  Value number = scalar(position.number), last = extent(position.last);
  Value value = atRecord([&] { return held(number, last); });
  record_.positions.push_back({position, value});
  return value;
}

Value Emitter::indexOf(const AxisMap &map, const Place &place) {
  Value index = extent(map.offset);
  if (map.axis >= 0)
    index = add(index, place.index[map.axis]);
  for (const HostPosition &host : map.host)
    index = add(index, positionOf(host));
  return map.index ? add(index, pickedAt(map, place)) : index;
}

/// The place that an index names; once a row, where all lanes of the row have the same.
Value Emitter::pickedAt(const AxisMap &map, const Place &place) {
  if (map.mirrored) {
    Value last = add(extent(map.indexed), constant(-1));
    Value number = b.createOrFold<arith::SubIOp>(last, indexOf(map.indexView->front(), place));
    // Of an empty tensor as in held().
    return map.indexed.isConstant() ? number : b.createOrFold<arith::MaxSIOp>(constant(0), number);
  }
  for (const Picked &known : placesOnTheWay_)
    if (known.names(map))
      return vector::ExtractOp::create(b, known.place, ArrayRef<int64_t>{place.lane});
  bool isOfRow = row_ && !dependsOn(*map.indexView, place.lanesAxis);
  OpBuilder::InsertionGuard guard(b);
  if (isOfRow) {
    if (pickedRow_ != row_)
      picked_.clear();
    pickedRow_ = row_;
    for (const Picked &known : picked_)
      if (known.names(map))
        return known.place;
    b.setInsertionPoint(row_);
  }
  const Buffer &from = *plan_.bufferOf.lookup(map.index);
  Place single = place;
  single.lanesAxis = -1;
  Value number = loadElement(from, address(from, indices(*map.indexView, single)));
  if (number.getType() != i64_)
    number = arith::ExtSIOp::create(b, i64_, number);
  number = held(number, add(extent(map.indexed), constant(-1)));
  if (isOfRow)
    picked_.push_back({map.index, *map.indexView, map.indexed, number});
  return number;
}

std::vector<Value> Emitter::indices(const View &view, const Place &place) {
  std::vector<Value> out;
  for (const AxisMap &map : view)
    out.push_back(indexOf(map, place));
  return out;
}

} // namespace sheaf::kernels::cpu

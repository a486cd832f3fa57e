//===- EmitStages.cpp - Kernel functions, elementwise and reduction stages -===//

#include "compiler/kernels/cpu/Emitter.h"
#include "compiler/ops/Lanes.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
Emitter::Emitter(const Kernel &kernel, const rt::Target &target, ModuleOp module)
    : b(kernel.block->getLoc(), module.getContext()), kernel_(kernel), layout_(layoutOf(kernel)),
      plan_(*layout_.plan), target_(target), module_(module), i64_(b.getI64Type()),
      f32_(b.getF32Type()), pointer_(LLVM::LLVMPointerType::get(module.getContext())) {}

void Emitter::run() {
  b.setInsertionPointToEnd(module_.getBody());
  auto type =
      b.getFunctionType({pointer_, i64_, i64_, i64_, i64_, pointer_, pointer_, pointer_}, {});
  auto function = func::FuncOp::create(b, kernel_.symbol, type);
  Block *body = function.addEntryBlock();
  records_ = body->getArgument(0);
  begin_ = body->getArgument(1);
  end_ = body->getArgument(2);
  panelBegin_ = body->getArgument(3);
  panelEnd_ = body->getArgument(4);
  rows_ = body->getArgument(5);
  weights_ = body->getArgument(6);
  scratch_ = body->getArgument(7);
  b.setInsertionPointToStart(body);
  func::ReturnOp::create(b);
  b.setInsertionPointToStart(body);
  if (layout_.code.serpentine) {
    walksBack_ = isLess(panelEnd_, panelBegin_);
    panelBegin_ = arith::MinSIOp::create(b, body->getArgument(3), body->getArgument(4));
    panelEnd_ = arith::MaxSIOp::create(b, body->getArgument(3), body->getArgument(4));
  }
  // Constants and weight addresses are inserted before this.
  entry_ = marker();
  if (layout_.tileConfig >= 0)
    configureTiles();

  emitChunks([&](Value begin, Value end) {
    unsigned next = 0;
    for (const RecordGroup &group : layout_.groups) {
      emitStages(next, group.begin, begin, end);
      forEachRecord(begin, end, [&] {
        inGroup_ = true;
        emitStages(group.begin, group.end, begin, end);
        inGroup_ = false;
      });
      next = group.end;
    }
    emitStages(next, static_cast<unsigned>(layout_.stages.size()), begin, end);
  });
  if (layout_.tileConfig >= 0)
    tileCall("tilerelease", {});
  for (scf::ExecuteRegionOp region : apart_)
    moveApart(region);
}

void Emitter::emitStages(unsigned from, unsigned to, Value begin, Value end) {
  for (unsigned i = from; i < to; ++i) {
    const Stage &stage = layout_.stages[i];
    if (stage.rowBlock < 0) {
      emitStage(stage, begin, end);
      continue;
    }
    const RowBlock &block = plan_.rowBlocks[static_cast<size_t>(stage.rowBlock)];
    emitRowBlock(block, begin, end);
    i = block.end - 1;
  }
}

void Emitter::emitChunks(llvm::function_ref<void(Value begin, Value end)> stages) {
  bool limited = layout_.chunkRecords != INT64_MAX;
  auto most = [&](Value begin) {
    return limited ? minimum(add(begin, constant(layout_.chunkRecords)), end_) : end_;
  };
  bool byTemporaries = layout_.temporaryTable >= 0;
  if (layout_.chunkStage < 0 && !byTemporaries) {
    if (!limited)
      return stages(begin_, end_);
    return loop(begin_, end_, layout_.chunkRecords, [&](Value begin) {
      Value first = walksBack_;
      if (first) {
        Value before = arith::DivSIOp::create(b, arith::SubIOp::create(b, begin, begin_),
                                              constant(layout_.chunkRecords));
        Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), before);
        walksBack_ = arith::XOrIOp::create(b, first, isOdd);
      }
      stages(begin, most(begin));
      walksBack_ = first;
    });
  }
  // How many records make a chunk depends on their extents: one is added, then it is seen whether
  // there is room for more. What does not fit beside others begins the next chunk.
  auto addRecord = [&](Value begin, Value last, ValueRange state) {
    Value record = state[0], rows = state[1], size = state[2];
    enterRecord(record, begin);
    Value next = add(record, constant(1));
    Value more = isLess(next, last);
    if (layout_.chunkStage >= 0) {
      const Stage &counted = layout_.stages[layout_.chunkStage];
      rows = add(rows, rowsOfRecord(counted));
      more = arith::AndIOp::create(b, more, isLess(rows, constant(counted.passRows)));
    }
    if (byTemporaries) {
      LLVM::StoreOp::create(b, size, temporaryEntry(), 8);
      Value all = add(size, sizeOf(layout_.handedOn));
      Value isOver = isLess(constant(layout_.chunkTemporaries), all);
      Value isOneMore = arith::AndIOp::create(b, isOver, isLess(begin, record));
      next = arith::SelectOp::create(b, isOneMore, record, next);
      size = arith::SelectOp::create(b, isOneMore, size, all);
      more = arith::AndIOp::create(b, more, isLess(all, constant(layout_.chunkTemporaries)));
    }
    scf::ConditionOp::create(b, more, ValueRange{next, rows, size});
  };
  forPasses(begin_, end_, [&](ValueRange begin) -> SmallVector<Value> {
    Value last = most(begin[0]);
    ValueRange chunk = loopWhile(
        {begin[0], constant(0), constant(0)},
        [&](ValueRange state) { addRecord(begin[0], last, state); },
        [&](ValueRange state) { scf::YieldOp::create(b, state); });
    Value end = chunk[0];
    handedOn_ = chunk[2];
    stages(begin[0], end);
    return {end};
  });
}

/// Passes over records until the first value of their state is `end`: each gives the next one's. If
/// the kernel is serpentine, each walks panels the other way than the one before it.
void Emitter::forPasses(ArrayRef<Value> start, Value end,
                        llvm::function_ref<SmallVector<Value>(ValueRange)> pass) {
  Value first = walksBack_;
  SmallVector<Value> state(start);
  if (first)
    state.push_back(first);
  loopWhile(
      state, [&](ValueRange now) { scf::ConditionOp::create(b, isLess(now[0], end), now); },
      [&](ValueRange now) {
        if (first)
          walksBack_ = now.back();
        SmallVector<Value> next = pass(now.take_front(start.size()));
        if (first) {
          Value isOther = arith::ConstantOp::create(b, b.getBoolAttr(true));
          next.push_back(arith::XOrIOp::create(b, now.back(), isOther));
        }
        scf::YieldOp::create(b, next);
        walksBack_ = first;
      });
}

void Emitter::emitStage(const Stage &stage, Value begin, Value end) {
  laneExtent_ = stage.shape.empty() ? Dim(1) : stage.shape.back();
  switch (stage.kind) {
  case Stage::Loop:
    return emitLoop(stage, begin, end);
  case Stage::Reduce:
    return emitReduce(stage, begin, end);
  case Stage::Products:
    return emitProducts(stage, begin, end);
  }
}

/// In a group of stages and in a row block the record has been entered.
void Emitter::forEachRecord(Value begin, Value end, llvm::function_ref<void()> body) {
  if (inGroup_ || blockRows_)
    return body();
  loop(begin, end, 1, [&](Value record) {
    enterRecord(record, begin);
    body();
  });
}

/// All of each axis.
std::vector<std::pair<Value, Value>> Emitter::rangesOf(ArrayRef<Dim> extents) {
  std::vector<std::pair<Value, Value>> ranges;
  for (const Dim &dim : extents)
    ranges.push_back({constant(0), extent(dim)});
  return ranges;
}

void Emitter::nest(ArrayRef<Dim> extents, std::vector<Value> &index,
                   llvm::function_ref<void()> body) {
  nest(ArrayRef<std::pair<Value, Value>>(rangesOf(extents)), index, body);
}

void Emitter::nest(ArrayRef<std::pair<Value, Value>> ranges, std::vector<Value> &index,
                   llvm::function_ref<void()> body) {
  if (ranges.empty())
    return body();
  loop(ranges.front().first, ranges.front().second, 1, [&](Value i) {
    index.push_back(i);
    nest(ranges.drop_front(), index, body);
    index.pop_back();
  });
}

/// The first axes of a stage of a row block: places along the outer ones, and the rows.
void Emitter::nestInBlock(const Stage &stage, ArrayRef<Dim> extents, std::vector<Value> &index,
                          llvm::function_ref<void()> body) {
  if (!blockRows_)
    return nest(extents, index, body);
  index = blockRows_->outer;
  if (stage.sumsRows)
    return nest(extents.drop_front(index.size()), index, body);
  if (extents.size() == index.size())
    return body();
  loop(blockRows_->begin, blockRows_->end, 1, [&](Value row) {
    index.push_back(row);
    nest(extents.drop_front(blockRows_->of->axes.size()), index, body);
    index.pop_back();
  });
}

void Emitter::writeRoots(const Stage &stage, Scope &scope) {
  View identity = identityView(stage.shape.size());
  for (const Root &root : stage.roots)
    store(stage, root, evaluate(root.value, identity, scope, root.computed), *scope.place);
}

void Emitter::emitLoop(const Stage &stage, Value begin, Value end) {
  forEachRecord(begin, end, [&] {
    if (stage.laysOutFor < 0)
      return emitLoopOfRecord(stage);
    const Stage &products = layout_.stages[static_cast<size_t>(stage.laysOutFor)];
    if (products.ownRows() == Dim(1))
      return; // no record has it laid out
    Value rows = extent(products.ownRows());
    when(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, rows, constant(1)),
         [&] { emitLoopOfRecord(stage); });
  });
}

void Emitter::emitLoopOfRecord(const Stage &stage) {
  Place place;
  Scope scope;
  scope.stage = &stage;
  scope.place = &place;
  if (stage.shape.empty()) {
    writeRoots(stage, scope);
    return;
  }
  if (stage.turnedAxis >= 0)
    return emitTurned(stage);
  SmallVector<RowAhead> ahead = rowsAhead(stage.shape);
  auto row = [&](Value first, Value end) {
    place.lanesAxis = static_cast<int>(stage.shape.size()) - 1;
    scope.row = marker();
    loop(first, end, place.lanes, [&](Value column) {
      place.index.push_back(column);
      writeRoots(stage, scope);
      ask(ahead, place, /*reduces=*/false);
      place.index.pop_back();
    });
  };
  if (!blockRows_)
    return forRanges(stage, [&](ArrayRef<std::pair<Value, Value>> ranges) {
      nest(ranges.drop_back(), place.index,
           [&] { row(ranges.back().first, ranges.back().second); });
    });
  nestInBlock(stage, ArrayRef(stage.shape).drop_back(), place.index,
              [&] { forSeen(stage, Seen::Columns, extent(stage.shape.back()), row); });
}

//===----------------------------------------------------------------------===//
// Row reductions
//===----------------------------------------------------------------------===//

namespace {

struct Combiner {
  ImplicitLocOpBuilder &b;
  ops::Reduction::Kind kind;

  Value operator()(Value a, Value c) const {
    switch (kind) {
    case ops::Reduction::Sum:
      return ops::lanes::add(b, a, c);
    case ops::Reduction::Min:
      return ops::lanes::minimum(b, a, c);
    default:
      return ops::lanes::maximum(b, a, c);
    }
  }
  /// Is (value c at place j) to be taken over (a at i)? NaN is greatest, ties go to the first.
  Value better(Value a, Value i, Value c, Value j) const {
    Value greater, equal;
    if (ops::lanes::isFloat(a)) {
      Value aNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, a, a);
      Value cNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, c, c);
      Value more = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, c, a);
      Value same = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, c, a);
      Value one = arith::ConstantOp::create(
          b, isa<VectorType>(aNan.getType())
                 ? TypedAttr(DenseElementsAttr::get(cast<ShapedType>(aNan.getType()), true))
                 : TypedAttr(b.getBoolAttr(true)));
      Value notA = arith::XOrIOp::create(b, aNan, one);
      greater = arith::OrIOp::create(b, more, arith::AndIOp::create(b, cNan, notA));
      equal = arith::OrIOp::create(b, same, arith::AndIOp::create(b, cNan, aNan));
    } else {
      greater = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, c, a);
      equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, c, a);
    }
    Value earlier = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, j, i);
    return arith::OrIOp::create(b, greater, arith::AndIOp::create(b, equal, earlier));
  }
  Value identity(Type type) const {
    Type element = getElementTypeOrSelf(type);
    TypedAttr attr;
    if (auto f = dyn_cast<FloatType>(element))
      attr = kind == ops::Reduction::Sum
                 ? b.getFloatAttr(f, 0.0)
                 : b.getFloatAttr(f, llvm::APFloat::getInf(f.getFloatSemantics(),
                                                           kind != ops::Reduction::Min));
    else {
      unsigned width = element.getIntOrFloatBitWidth();
      llvm::APInt least = kind == ops::Reduction::Sum   ? llvm::APInt(width, 0)
                          : kind == ops::Reduction::Min ? llvm::APInt::getSignedMaxValue(width)
                                                        : llvm::APInt::getSignedMinValue(width);
      attr = b.getIntegerAttr(element, least);
    }
    if (auto shaped = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(shaped, ArrayRef<Attribute>{attr});
    return arith::ConstantOp::create(b, attr);
  }
};

/// The upper half of a vector beside its lower half.
std::pair<Value, Value> halves(ImplicitLocOpBuilder &b, Value vector) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.push_back(i);
    high.push_back(i + lanes / 2);
  }
  return {vector::ShuffleOp::create(b, vector, vector, low),
          vector::ShuffleOp::create(b, vector, vector, high)};
}

} // namespace

void Emitter::emitReduce(const Stage &stage, Value begin, Value end) {
  Value result = stage.roots.front().value;
  if (roleOf(result) != Role::Dot)
    switch (reductionOf(result)) {
    case ops::Reduction::Top:
      return forEachRecord(begin, end, [&] { selectTop(stage); });
    case ops::Reduction::Sort:
      return forEachRecord(begin, end, [&] { sortPlaces(stage); });
    case ops::Reduction::Scan:
      return forEachRecord(begin, end, [&] { scanSums(stage); });
    case ops::Reduction::AddRows:
      return forEachRecord(begin, end, [&] { addRows(stage); });
    default:
      break;
    }
  auto apply = result.getDefiningOp<ir::ApplyOp>();
  const std::vector<Dim> &space = plan_.shapes->of(apply.getOperand(0));
  size_t last = space.size() - 1;
  size_t axis = roleOf(result) == Role::Dot ? last : axisOf(apply, "axis", -1, space.size());
  laneExtent_ = space.back();
  forEachRecord(begin, end, [&] {
    if (axis == last)
      reduceLast(stage, space);
    else
      reduceOuter(stage, space, static_cast<int64_t>(axis));
  });
}

/// Along the innermost axis: 64 partial results in 4 vectors, element k in number k mod 64 with k
/// ascending, then halves combined until one is left. The order depends on the extent alone: a row
/// that begins later, where columns are not seen, begins at a whole run of them. Four vectors hide
/// most of the latency of a sum.
void Emitter::reduceLast(const Stage &stage, const std::vector<Dim> &space) {
  const Root &root = stage.roots.front();
  auto apply = root.value.getDefiningOp<ir::ApplyOp>();
  bool dot = roleOf(root.value) == Role::Dot;
  const auto *rule = std::get_if<ops::Reduction>(&batchRuleOf(root.value));
  Combiner combine{b, rule ? rule->kind : ops::Reduction::Sum};
  bool arg = rule && rule->kind == ops::Reduction::ArgMax;
  int last = static_cast<int>(space.size()) - 1;
  Place place;
  SmallVector<RowAhead> ahead = rowsAhead(space);
  nestInBlock(stage, ArrayRef(space).drop_back(), place.index, [&] {
    place.lanesAxis = last;
    Scope scope;
    scope.stage = &stage;
    scope.place = &place;
    scope.row = marker();
    Value operand = apply.getOperand(0);
    auto vectorType = VectorType::get({kLoopLanes}, laneType(dtypeOf(operand)));
    auto numberType = VectorType::get({kLoopLanes}, b.getI32Type());
    auto [first, count] = seenOf(stage, Seen::Columns, extent(space.back()));
    if (hasRanges(stage, Seen::Columns))
      count = rangeAt(add(blockRows_->ranges, constant(-1))).second;
    constexpr int64_t run = kReduceVectors * kLoopLanes;
    Value whole =
        arith::MulIOp::create(b, arith::DivSIOp::create(b, count, constant(run)), constant(run));

    /// The partial results of one vector with the elements at `column`.
    auto step = [&](Value column, ValueRange partial, bool tail) -> SmallVector<Value> {
      place.index.push_back(column);
      scope.known.clear();
      Value x = evaluate(operand, identityView(space.size()), scope);
      Value mask = tail ? inRange(place) : Value();
      SmallVector<Value> out;
      if (dot) {
        // Batch axes and rows of the left operand do not move the vector on the right.
        Value right = apply.getOperand(1);
        View view(1);
        view[0].axis = last;
        Value y = evaluate(right, view, scope);
        if (tail) {
          Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
          x = arith::SelectOp::create(b, mask, x, zero);
          y = arith::SelectOp::create(b, mask, y, zero);
        }
        out.push_back(multiplyAdd(x, y, partial[0]));
      } else if (arg) {
        Value first = splat(arith::TruncIOp::create(b, b.getI32Type(), column), kLoopLanes);
        Value number = arith::AddIOp::create(b, first, laneNumbers(b.getI32Type(), kLoopLanes));
        Value better = combine.better(partial[0], partial[1], x, number);
        if (tail)
          better = arith::AndIOp::create(b, better, mask);
        out.push_back(arith::SelectOp::create(b, better, x, partial[0]));
        out.push_back(arith::SelectOp::create(b, better, number, partial[1]));
      } else {
        if (tail)
          x = arith::SelectOp::create(b, mask, x, combine.identity(x.getType()));
        out.push_back(combine(partial[0], x));
      }
      if (!tail)
        ask(ahead, place, /*reduces=*/true);
      place.index.pop_back();
      return out;
    };
    /// One partial result of two: the one of lower numbers first.
    auto join = [&](ValueRange low, ValueRange high) -> SmallVector<Value> {
      if (!arg)
        return {combine(low[0], high[0])};
      Value better = combine.better(low[0], low[1], high[0], high[1]);
      return {arith::SelectOp::create(b, better, high[0], low[0]),
              arith::SelectOp::create(b, better, high[1], low[1])};
    };

    SmallVector<Value> none{combine.identity(vectorType)}, start;
    if (arg)
      none.push_back(arith::ConstantOp::create(
          b, DenseElementsAttr::get(numberType, std::numeric_limits<int32_t>::max())));
    size_t each = none.size();
    for (int64_t v = 0; v < kReduceVectors; ++v)
      start.append(none);
    SmallVector<Value> sums =
        inRanges(stage, Seen::Columns, {first, whole}, start,
                 [&](Value from, Value until, ArrayRef<Value> state) -> SmallVector<Value> {
                   auto loop = scf::ForOp::create(b, from, until, constant(run), state);
                   OpBuilder::InsertionGuard guard(b);
                   b.setInsertionPointToEnd(loop.getBody());
                   SmallVector<Value> out;
                   for (int64_t v = 0; v < kReduceVectors; ++v)
                     out.append(step(add(loop.getInductionVar(), constant(v * kLoopLanes)),
                                     loop.getRegionIterArgs().slice(v * each, each), false));
                   scf::YieldOp::create(b, out);
                   return SmallVector<Value>(loop.getResults());
                 });
    SmallVector<SmallVector<Value>> partials;
    for (int64_t v = 0; v < kReduceVectors; ++v) {
      ValueRange partial = ValueRange(sums).slice(v * each, each);
      Value column = add(whole, constant(v * kLoopLanes));
      auto rest = scf::IfOp::create(b, partial.getTypes(), isLess(column, count), true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(rest.thenBlock());
      scf::YieldOp::create(b, step(column, partial, true));
      b.setInsertionPointToEnd(rest.elseBlock());
      scf::YieldOp::create(b, partial);
      partials.push_back(SmallVector<Value>(rest.getResults()));
    }
    for (; partials.size() > 1; partials.resize(partials.size() / 2))
      for (size_t v = 0; v < partials.size() / 2; ++v)
        partials[v] = join(partials[v], partials[v + partials.size() / 2]);
    SmallVector<Value> partial = partials.front();
    for (int64_t lanes = kLoopLanes; lanes > 1; lanes /= 2) {
      SmallVector<Value> low, high;
      for (Value vector : partial) {
        auto [first, second] = halves(b, vector);
        low.push_back(first);
        high.push_back(second);
      }
      partial = join(low, high);
    }
    Value result = vector::ExtractOp::create(b, partial[arg ? 1 : 0], ArrayRef<int64_t>{0});
    if (arg) {
      // Nothing to choose from gives 0.
      Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, constant(0));
      Value zero = arith::ConstantIntOp::create(b, b.getI32Type(), 0);
      result = arith::SelectOp::create(b, isEmpty, zero, result);
    }

    std::vector<Value> to(place.index.begin(), place.index.end());
    if (to.size() < root.buffer->shape.size())
      to.push_back(constant(0)); // keepdims
    LLVM::StoreOp::create(b, toStorage(result, root.buffer->dtype), address(*root.buffer, to),
                          static_cast<unsigned>(bytesOf(root.buffer->dtype)));
    place.lanesAxis = -1;
  });
}

/// Along an outer axis: lanes are neighbours on the innermost axis, the axis runs in order. Several
/// vectors run along it together, since each waits for what it was before.
void Emitter::reduceOuter(const Stage &stage, const std::vector<Dim> &space, int64_t axis) {
  const Root &root = stage.roots.front();
  Combiner combine{b, std::get<ops::Reduction>(batchRuleOf(root.value)).kind};
  bool arg = combine.kind == ops::Reduction::ArgMax;
  int last = static_cast<int>(space.size()) - 1;
  bool keepDims = root.buffer->shape.size() == space.size();
  Value operand = root.value.getDefiningOp()->getOperand(0);
  auto vectorType = VectorType::get({kLoopLanes}, laneType(dtypeOf(operand)));
  auto numberType = VectorType::get({kLoopLanes}, b.getI32Type());
  std::vector<Value> index;

  /// What is reduced in so many vectors from `column` on.
  auto reduce = [&](Value column, int64_t vectors) {
    SmallVector<Value> columns, start;
    for (int64_t v = 0; v < vectors; ++v) {
      columns.push_back(add(column, constant(v * kLoopLanes)));
      start.push_back(combine.identity(vectorType));
      if (arg)
        start.push_back(arith::ConstantOp::create(b, b.getZeroAttr(numberType)));
    }
    size_t each = arg ? 2 : 1;
    auto along = scf::ForOp::create(b, constant(0), extent(space[axis]), constant(1), start);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(along.getBody());
      SmallVector<Value> out;
      for (auto [v, begin] : llvm::enumerate(columns)) {
        Place place;
        place.lanesAxis = last;
        place.index = index;
        place.index.insert(place.index.begin() + axis, along.getInductionVar());
        place.index.push_back(begin);
        Scope scope;
        scope.stage = &stage;
        scope.place = &place;
        Value x = evaluate(operand, identityView(space.size()), scope);
        ValueRange partial = along.getRegionIterArgs().slice(v * each, each);
        if (arg) {
          Value at = arith::TruncIOp::create(b, b.getI32Type(), along.getInductionVar());
          Value number = splat(at, kLoopLanes);
          Value first =
              arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                                    arith::ConstantOp::create(b, b.getZeroAttr(numberType)));
          Value better =
              arith::OrIOp::create(b, first, combine.better(partial[0], partial[1], x, number));
          out.push_back(arith::SelectOp::create(b, better, x, partial[0]));
          out.push_back(arith::SelectOp::create(b, better, number, partial[1]));
        } else {
          out.push_back(combine(partial[0], x));
        }
      }
      scf::YieldOp::create(b, out);
    }
    for (auto [v, begin] : llvm::enumerate(columns)) {
      Value result = along.getResult(v * each + each - 1);
      Place place;
      place.index = index;
      if (keepDims)
        place.index.insert(place.index.begin() + axis, constant(0));
      place.lanesAxis = static_cast<int>(place.index.size());
      place.index.push_back(begin);
      store(stage, root, result, place);
    }
  };

  std::vector<Dim> outer(space.begin(), space.end() - 1);
  outer.erase(outer.begin() + axis);
  // As many vectors together as leave the fewest over.
  int64_t together = kReduceVectors;
  Value columns = extent(space.back()), whole;
  if (space.back().isConstant()) {
    int64_t vectors = std::max<int64_t>(llvm::divideCeil(space.back().constant(), kLoopLanes), 1);
    together = llvm::divideCeil(vectors, llvm::divideCeil(vectors, kReduceVectors));
    int64_t run = together * kLoopLanes;
    whole = constant(vectors % together == 0 ? space.back().constant()
                                             : space.back().constant() / run * run);
  } else {
    Value run = constant(together * kLoopLanes);
    whole = atRecord([&] { return mul(arith::DivSIOp::create(b, columns, run).getResult(), run); });
  }
  nest(outer, index, [&] {
    loop(constant(0), whole, together * kLoopLanes,
         [&](Value column) { reduce(column, together); });
    if (whole != columns)
      loop(whole, columns, kLoopLanes, [&](Value column) { reduce(column, 1); });
  });
}

} // namespace sheaf::kernels::cpu

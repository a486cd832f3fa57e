//===- EmitRowBlocks.cpp - Stages that go on together over blocks of rows -===//
//
// For each record, and each place along the outer axes of a row block, all of its stages compute
// some rows before the first computes the next ones. Rows are computed as ever, so the number of
// rows changes no bit.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

void Emitter::emitRowBlock(const RowBlock &block, Value begin, Value end) {
  forEachRecord(begin, end, [&] {
    std::vector<Value> outer;
    nest(ArrayRef(block.axes).drop_back(), outer, [&] {
      Value rows = extent(block.axes.back());
      for (unsigned i = block.begin; i < block.end; ++i)
        if (layout_.stages[i].sumsRows)
          startSums(layout_.stages[i], outer);
      inRowBlock(block, outer, [&] {
        loop(constant(0), rows, layout_.blockRows, [&](Value first) {
          Value last = minimum(add(first, constant(layout_.blockRows)), rows);
          blockRows_.emplace(BlockRows{&block, outer, first, last,
                                       llvm::DenseMap<const Buffer *, Value>(), marker()});
          findSeen(block);
          for (unsigned i = block.begin; i < block.end; ++i)
            emitStage(layout_.stages[i], begin, end);
          blockRows_.reset();
        });
      });
    });
  });
}

/// The columns of the block's rows that are computed.
void Emitter::findSeen(const RowBlock &block) {
  if (!block.seesLess())
    return;
  auto note = [&](Value row, Value from, Value until) {
    if (layout_.seenTable < 0)
      return;
    Value entry = seenEntry(row);
    LLVM::StoreOp::create(b, from, entry, 8);
    LLVM::StoreOp::create(b, until, bytes(entry, 8), 8);
  };
  Value columns = extent(block.columns);
  auto [from, until] = seenByRows(block, blockRows_->outer, blockRows_->begin, blockRows_->end,
                                  {columns, constant(0)}, note);
  std::tie(blockRows_->from, blockRows_->until) = wholeRuns(from, until, columns);
  if (!block.masks.empty())
    blockRows_->ranges = findRanges(block, {blockRows_->begin, blockRows_->end},
                                    {blockRows_->from, blockRows_->until}, [&](Value row) {
                                      std::vector<Value> index = blockRows_->outer;
                                      index.push_back(row);
                                      return index;
                                    });
}

/// What any of these rows sees, or `most` is.
std::pair<Value, Value>
Emitter::seenByRows(const RowBlock &block, ArrayRef<Value> outer, Value begin, Value end,
                    std::pair<Value, Value> most,
                    llvm::function_ref<void(Value row, Value from, Value until)> note) {
  auto rows = scf::ForOp::create(b, begin, end, constant(1), ValueRange{most.first, most.second});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(rows.getBody());
  auto [from, until] = seenBy(block, outer, rows.getInductionVar());
  note(rows.getInductionVar(), from, until);
  Value least = arith::MinSIOp::create(b, from, rows.getRegionIterArg(0));
  Value last = arith::MaxSIOp::create(b, until, rows.getRegionIterArg(1));
  scf::YieldOp::create(b, ValueRange{least, last});
  return {rows.getResult(0), rows.getResult(1)};
}

/// What any row of the record sees, in whole runs.
std::pair<Value, Value> Emitter::seenByAll(const RowBlock &block) {
  // Along axes that nothing follows from all places are alike.
  auto count = [&](size_t axis) {
    Value all = extent(block.axes[axis]);
    return matters(block, axis) ? all : minimum(all, constant(1));
  };
  using Range = std::pair<Value, Value>;
  std::function<Range(std::vector<Value>, Range)> from = [&](std::vector<Value> outer,
                                                             Range most) -> Range {
    Value end = count(outer.size());
    if (outer.size() + 1 == block.axes.size())
      return seenByRows(block, outer, constant(0), end, most, [](Value, Value, Value) {});
    auto places =
        scf::ForOp::create(b, constant(0), end, constant(1), ValueRange{most.first, most.second});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(places.getBody());
    outer.push_back(places.getInductionVar());
    auto [least, last] = from(outer, {places.getRegionIterArg(0), places.getRegionIterArg(1)});
    scf::YieldOp::create(b, ValueRange{least, last});
    return {places.getResult(0), places.getResult(1)};
  };
  Value columns = extent(block.columns);
  auto [least, last] = from({}, {columns, constant(0)});
  return wholeRuns(least, last, columns);
}

/// Whole runs of what reductions take at a time, so that each element stays in its lane. One run is
/// always there, since a row that sees nothing has a greatest element, too.
std::pair<Value, Value> Emitter::wholeRuns(Value from, Value until, Value columns) {
  constexpr int64_t run = kReduceVectors * kLoopLanes;
  static_assert(run % 2 == 0, "pairs count from the first column");
  auto whole = [&](Value number) {
    return mul(arith::DivSIOp::create(b, number, constant(run)), constant(run));
  };
  Value last = arith::MaxSIOp::create(b, until, constant(1));
  Value most = whole(add(last, constant(run - 1))), least = whole(from);
  least = minimum(least, add(most, constant(-run)));
  until = minimum(most, columns);
  return {minimum(least, until), until};
}

/// The first column that a row sees, and the one after the last. What it follows from may be any
/// numbers: those that are so large that the program's ints could overflow bound nothing.
std::pair<Value, Value> Emitter::seenBy(const RowBlock &block, ArrayRef<Value> outer, Value row) {
  Value columns = extent(block.columns), from = constant(0), until = columns;
  Place place;
  place.index.assign(outer.begin(), outer.end());
  place.index.push_back(row);
  Scope scope;
  scope.stage = &layout_.stages[block.begin];
  scope.place = &place;
  for (const ColumnBound &bound : block.bounds) {
    Value sum = constant(bound.offset);
    Value isSmall = arith::ConstantOp::create(b, b.getBoolAttr(true));
    for (const ColumnBound::Term &term : bound.terms) {
      Value lanes = evaluate(term.value, term.view, scope);
      Value number = vector::ExtractOp::create(b, lanes, ArrayRef<int64_t>{0});
      if (number.getType() != i64_)
        number = arith::ExtSIOp::create(b, i64_, number);
      constexpr int64_t most = int64_t(1) << 28;
      auto isBelow = [&](Value a, Value c) {
        isSmall = arith::AndIOp::create(
            b, isSmall, Value(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, c)));
      };
      isBelow(number, constant(most));
      isBelow(constant(-most), number);
      sum = term.subtracted ? Value(arith::SubIOp::create(b, sum, number)) : add(sum, number);
    }
    if (bound.isLast) {
      Value end = minimum(until, add(sum, constant(1)));
      until = arith::SelectOp::create(b, isSmall, end, until);
    } else {
      Value begin = arith::MaxSIOp::create(b, from, sum);
      from = arith::SelectOp::create(b, isSmall, begin, from);
    }
  }
  return {minimum(from, columns), arith::MaxSIOp::create(b, until, constant(0))};
}

/// Where the axis of a stage begins and ends of which these are seen.
std::pair<Value, Value> Emitter::seenOf(const Stage &stage, Seen axis, Value extent) {
  if (stage.seen != axis || !blockRows_ || !blockRows_->from)
    return {constant(0), extent};
  return {blockRows_->from, blockRows_->until};
}

/// Whether an axis of a stage goes by ranges of columns.
bool Emitter::hasRanges(const Stage &stage, Seen axis) const {
  return stage.seen == axis && blockRows_ && blockRows_->ranges;
}

/// Calls `body` with each range of an axis of which these are seen.
void Emitter::forSeen(const Stage &stage, Seen axis, Value extent,
                      llvm::function_ref<void(Value from, Value until)> body) {
  if (!hasRanges(stage, axis)) {
    auto [from, until] = seenOf(stage, axis, extent);
    return body(from, until);
  }
  loop(constant(0), blockRows_->ranges, 1, [&](Value number) {
    auto [from, until] = rangeAt(number);
    body(from, until);
  });
}

/// The same for what goes on from range to range, of the part of an axis that is at hand.
SmallVector<Value> Emitter::inRanges(
    const Stage &stage, Seen axis, std::pair<Value, Value> of, ArrayRef<Value> start,
    llvm::function_ref<SmallVector<Value>(Value from, Value until, ArrayRef<Value>)> body) {
  if (!hasRanges(stage, axis))
    return body(of.first, of.second, start);
  auto ranges = scf::ForOp::create(b, constant(0), blockRows_->ranges, constant(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(ranges.getBody());
  auto [from, until] = rangeAt(ranges.getInductionVar());
  from = arith::MaxSIOp::create(b, from, of.first);
  until = arith::MaxSIOp::create(b, from, minimum(until, of.second));
  SmallVector<Value> state(ranges.getRegionIterArgs());
  scf::YieldOp::create(b, body(from, until, state));
  return SmallVector<Value>(ranges.getResults());
}

/// Where a range of columns is noted.
Value Emitter::rangeEntry(Value number) {
  return bytes(bytes(scratch_, layout_.rangeTable), mul(number, constant(kSeenEntryBytes)));
}

std::pair<Value, Value> Emitter::rangeAt(Value number) {
  Value entry = rangeEntry(number);
  return {loadAs(i64_, entry, 8), loadAs(i64_, bytes(entry, 8), 8)};
}

/// Notes the ranges of these columns, in whole runs, that any of the places sees by the block's
/// masks: how many there are, at least one. `indexOf` gives a place along the axes of the block.
Value Emitter::findRanges(const RowBlock &block, std::pair<Value, Value> places,
                          std::pair<Value, Value> columns,
                          llvm::function_ref<std::vector<Value>(Value)> indexOf) {
  constexpr int64_t run = kReduceVectors * kLoopLanes;
  auto store = [&](Value number, Value entry, int64_t at) {
    LLVM::StoreOp::create(b, number, bytes(entry, at), 8);
  };
  auto equal = [&](Value a, Value c) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, c);
  };
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  // One run alone is there in any case.
  Value isOnly = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, columns.second,
                                       add(columns.first, constant(run)));
  auto runs = scf::ForOp::create(b, columns.first, columns.second, constant(run),
                                 ValueRange{constant(0), constant(-1)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(runs.getBody());
    Value first = runs.getInductionVar(), count = runs.getRegionIterArg(0),
          end = runs.getRegionIterArg(1), next = add(first, constant(run));
    Value isSeen = loopWhile(
        {places.first, isOnly},
        [&](ValueRange state) {
          Value goesOn = arith::AndIOp::create(b, isLess(state[0], places.second),
                                               Value(arith::XOrIOp::create(b, state[1], yes)));
          scf::ConditionOp::create(b, goesOn, state);
        },
        [&](ValueRange state) {
          Value place = state[0];
          Value sees = seesAny(block, indexOf(place), first);
          scf::YieldOp::create(b, ValueRange{add(place, constant(1)), sees});
        })[1];
    auto noted = scf::IfOp::create(b, TypeRange{i64_, i64_}, isSeen, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inBranch(b);
    b.setInsertionPointToStart(noted.thenBlock());
    Value goesOn = arith::OrIOp::create(b, equal(end, first), equal(count, constant(kMostRanges)));
    Value number = arith::SelectOp::create(b, goesOn, add(count, constant(-1)), count);
    when(arith::XOrIOp::create(b, goesOn, yes), [&] { store(first, rangeEntry(number), 0); });
    store(minimum(next, columns.second), rangeEntry(number), 8);
    scf::YieldOp::create(b, ValueRange{add(number, constant(1)), next});
    b.setInsertionPointToStart(noted.elseBlock());
    scf::YieldOp::create(b, ValueRange{count, end});
    b.setInsertionPointToEnd(runs.getBody());
    scf::YieldOp::create(b, noted.getResults());
  }
  Value count = runs.getResult(0);
  when(equal(count, constant(0)), [&] {
    store(columns.first, rangeEntry(constant(0)), 0);
    store(minimum(add(columns.first, constant(run)), columns.second), rangeEntry(constant(0)), 8);
  });
  return arith::MaxSIOp::create(b, count, constant(1));
}

/// Whether a row sees any column of the run that begins there, by the block's masks.
Value Emitter::seesAny(const RowBlock &block, std::vector<Value> index, Value first) {
  llvm::SaveAndRestore along(laneExtent_, block.columns);
  Value last =
      mul(arith::DivSIOp::create(b, add(extent(block.columns), constant(-1)), constant(kLoopLanes)),
          constant(kLoopLanes));
  Value any;
  for (int64_t v = 0; v < kReduceVectors; ++v) {
    Place place;
    place.index = index;
    place.index.push_back(minimum(add(first, constant(v * kLoopLanes)), last));
    place.lanesAxis = static_cast<int>(index.size());
    Scope scope;
    scope.stage = &layout_.stages[block.begin];
    scope.place = &place;
    Value sees;
    for (const ColumnMask &mask : block.masks) {
      Value lanes = evaluate(mask.value, mask.view, scope);
      sees = sees ? Value(arith::AndIOp::create(b, sees, lanes)) : lanes;
    }
    any = any ? Value(arith::OrIOp::create(b, any, sees)) : sees;
  }
  return vector::ReductionOp::create(b, vector::CombiningKind::OR, any);
}

/// Calls `body` with where a loop outside of row blocks begins and ends along each axis.
void Emitter::forRanges(const Stage &stage,
                        llvm::function_ref<void(ArrayRef<std::pair<Value, Value>>)> body) {
  std::vector<std::pair<Value, Value>> ranges = rangesOf(stage.shape);
  if (stage.seenAxis < 0)
    return body(ranges);
  const RowBlock &block = plan_.rowBlocks[static_cast<size_t>(stage.seenBy)];
  auto &seen = ranges[static_cast<size_t>(stage.seenAxis)];
  seen = seenByAll(block);
  if (block.masks.empty())
    return body(ranges);
  SmallVector<Value> counts;
  Value places = constant(1);
  for (auto [axis, dim] : llvm::enumerate(block.axes)) {
    counts.push_back(matters(block, axis) ? extent(dim) : minimum(extent(dim), constant(1)));
    places = mul(places, counts.back());
  }
  Value count = findRanges(block, {constant(0), places}, seen, [&](Value place) {
    std::vector<Value> index(counts.size());
    for (size_t axis = counts.size(); axis-- > 0;) {
      index[axis] = arith::RemSIOp::create(b, place, counts[axis]);
      place = arith::DivSIOp::create(b, place, counts[axis]);
    }
    return index;
  });
  loop(constant(0), count, 1, [&](Value number) {
    seen = rangeAt(number);
    body(ranges);
  });
}

/// Whether what rows see differs along an axis of a block.
bool Emitter::matters(const RowBlock &block, size_t axis) const {
  auto depends = [&](const View &view) {
    return llvm::any_of(view, [&](const AxisMap &map) {
      return map.axis == static_cast<int>(axis) || !map.host.empty() || map.index;
    });
  };
  return llvm::any_of(block.bounds,
                      [&](const ColumnBound &bound) {
                        return llvm::any_of(bound.terms, [&](const ColumnBound::Term &term) {
                          return depends(term.view);
                        });
                      }) ||
         llvm::any_of(block.masks, [&](const ColumnMask &mask) { return depends(mask.view); });
}

/// The steps of a run over k that the rows at hand give.
std::pair<Value, Value> Emitter::stepsOf(const Stage &stage, const ProductSegment &segment) {
  if (stage.sumsRows)
    return {blockRows_->begin, blockRows_->end};
  return seenOf(stage, Seen::Steps, extent(segment.extent));
}

/// Where it is noted what a row of the block sees.
Value Emitter::seenEntry(Value row) {
  Value number = b.createOrFold<arith::SubIOp>(row, blockRows_->begin);
  return bytes(bytes(scratch_, layout_.seenTable), mul(number, constant(kSeenEntryBytes)));
}

/// The same for so many rows of a tile, from a row on; of a run by blocks what its block has of
/// them.
std::pair<Value, Value> Emitter::stepsOfTile(const Stage &stage, const ProductSegment &segment,
                                             Value firstRow, int64_t rows) {
  auto [first, end] =
      stepsBlock_ ? std::pair(stepsBlock_->begin, stepsBlock_->end) : stepsOf(stage, segment);
  if (!stage.stepsOfTiles)
    return {first, end};
  Value entry = seenEntry(firstRow), from, until;
  for (int64_t row = 0; row < rows; ++row) {
    Value of = bytes(entry, row * kSeenEntryBytes);
    Value fromHere = loadAs(i64_, of, 8), untilHere = loadAs(i64_, bytes(of, 8), 8);
    from = from ? minimum(from, fromHere) : fromHere;
    until = until ? b.createOrFold<arith::MaxSIOp>(until, untilHere) : untilHere;
  }
  first = b.createOrFold<arith::MaxSIOp>(first, from);
  return {first, b.createOrFold<arith::MaxSIOp>(first, minimum(end, until))};
}

/// Sums over the rows of a block start at zero.
void Emitter::startSums(const Stage &stage, ArrayRef<Value> outer) {
  Place place;
  place.index.assign(outer.begin(), outer.end());
  place.lanes = stage.lanes;
  place.lanesAxis = static_cast<int>(stage.shape.size()) - 1;
  laneExtent_ = stage.shape.back();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(VectorType::get({stage.lanes}, f32_)));
  nest(ArrayRef(stage.shape).drop_front(outer.size()).drop_back(), place.index, [&] {
    loop(constant(0), extent(stage.shape.back()), stage.lanes, [&](Value column) {
      place.index.push_back(column);
      for (const Root &root : stage.roots)
        store(stage, root, zero, place);
      place.index.pop_back();
    });
  });
}

/// Rows are addressed by their number among all, so the tensor seems to begin as many rows before
/// what is there as the block does after the first.
Value Emitter::baseInBlock(const Buffer &buffer) {
  if (Value known = blockRows_->bases.lookup(&buffer))
    return known;
  Value stride = strides(buffer)[buffer.blockAxes - 1], there = temporaryBase(buffer);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(blockRows_->here);
  Value before = mul(arith::SubIOp::create(b, constant(0), blockRows_->begin), stride);
  return blockRows_->bases[&buffer] = bytes(there, before);
}

} // namespace sheaf::kernels::cpu
